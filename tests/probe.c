/* SPDX-License-Identifier: Apache-2.0 */
/* A child for tests of the environment: opens the library as it comes, scales four numbers on the best device, and
 * prints what it found. */
#include <stdio.h>

#include <trine/trine.h>

static trine *lib;
static trine_queue *queue;

static trine_status run(void) {
    trine_device_info_t info;
    trine_status status = trine_open(NULL, &lib);
    if (status == TRINE_OK) status = trine_queue_open(lib, TRINE_BEST_DEVICE, NULL, &queue);
    if (status != TRINE_OK) return status;
    trine_device_info(lib, trine_queue_device(queue), &info);
    printf("device=%s arch=%s units=%d l1=%lld l2=%lld l3=%lld memory=%lld\n", info.name, info.arch, info.units,
           (long long)info.cache[0], (long long)info.cache[1], (long long)info.cache[2], (long long)info.memory);
    float x[4] = { 1, 2, 3, 4 }, y[4];
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, 4), ty = trine_tensor_1d(y, TRINE_F32, 4);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &tx, .y = &ty, .alpha = 2 };
    trine_explanation why;
    status = trine_explain(queue, TRINE_OP_SCALE, &args, &why);
    if (status == TRINE_OK) status = trine_scale(queue, &args);
    if (status == TRINE_OK)
        printf("kernel=%s why=%s y=%g %g %g %g\n", why.candidate[why.chosen].kernel, why.why, y[0], y[1], y[2], y[3]);
    return status;
}

int main(void) {
    const trine_status status = run();
    if (status != TRINE_OK) printf("error: %s\n", trine_error_message());
    trine_queue_close(queue);
    trine_close(lib);
    return status != TRINE_OK;
}
