/* SPDX-License-Identifier: Apache-2.0 */
/* A C99 program that uses an installed trine: normalizes two rows and checks the answer. */
#include <math.h>
#include <stdio.h>

#include <trine/trine.h>

int main(void) {
    float x[2][4] = { { 1, 2, 3, 4 }, { 2, 2, 2, 2 } }, y[2][4];
    const trine_tensor tx = trine_tensor_2d(x, TRINE_F32, 2, 4), ty = trine_tensor_2d(y, TRINE_F32, 2, 4);
    const trine_rms_norm_args args = { TRINE_ARGS(rms_norm), .x = &tx, .y = &ty, .eps = 1e-6f };
    trine *lib = NULL;
    trine_queue *queue = NULL;
    trine_status status = trine_open(NULL, &lib);
    if (status == TRINE_OK) status = trine_queue_open(lib, 0, NULL, &queue);
    if (status == TRINE_OK) status = trine_rms_norm(queue, &args);
    if (status != TRINE_OK) fprintf(stderr, "%s: %s\n", trine_status_name(status), trine_error_message());
    trine_queue_close(queue);
    trine_close(lib);
    if (status != TRINE_OK) return 1;
    printf("trine %s: rms_norm([1 2 3 4]) = [%g %g %g %g]\n", TRINE_VERSION, y[0][0], y[0][1], y[0][2], y[0][3]);
    return fabsf(y[1][0] - 1) < 1e-5f && fabsf(y[0][3] - 4 / sqrtf(7.5f)) < 1e-5f ? 0 : 1;
}
