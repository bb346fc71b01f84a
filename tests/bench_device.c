/* SPDX-License-Identifier: Apache-2.0 */
/* The bench of a device over a driver for tests: its roof is measured by copies, binds what memory binds, and a call's
 * cost is told. TEST_STUB is that driver, TEST_DRIVER the name of the real one. */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "tap.h"

/* A result of so many seconds, held against the roof. */
static bench_result held(const bench_roofs *roofs, double seconds, double bytes, double flops) {
    bench_result r = { .median = seconds, .bytes = bytes, .flops = flops };
    bench_hold(&r, roofs);
    return r;
}

static void check_roof(trine_queue *queue) {
    bench_roofs roofs = { 0 };
    tap(bench_device_roofs_measure(&roofs, queue, 1 << 16, 1 << 24) && roofs.copy > 0 && roofs.device &&
            roofs.threads == 0,
        "copies give a roof");
    roofs.copy = 4e12;
    const bench_result half = held(&roofs, 2e-6, 4e6, 4e6), intense = held(&roofs, 2e-6, 4e6, 4e8);
    const bench_result read = held(&roofs, 0.9e-6, 4e6, 4e6), impossible = held(&roofs, 0.8e-6, 4e6, 4e6);
    tap(fabs(half.fraction - 0.5) < 1e-12 && !half.above, "half of it");
    tap(intense.bound == 0 && intense.fraction == 0 && !intense.above, "it does not bind what computes much");
    roofs.peak[PEAK_F32] = 4e14;
    const bench_result computed = held(&roofs, 2e-6, 4e6, 4e8), moved = held(&roofs, 2e-6, 4e6, 4e6),
                       beyond = held(&roofs, 0.9e-6, 1e6, 4e8);
    tap(fabs(computed.fraction - 0.5) < 1e-12 && !computed.above && fabs(moved.fraction - 0.5) < 1e-12 && beyond.above,
        "the peak of the units does");
    tap(!read.above && impossible.above, "reading may be a little faster, and no more");
}

static void check_cost(trine_queue *queue) {
    double empty, tiny, workspace;
    tap(bench_dispatch(queue, &empty, &tiny, &workspace) && empty > 0 && tiny > empty && workspace > 0,
        "what a call costs");
}

/* What a case moves and computes. */
static bench_result work_of(trine_op op, const char *text) {
    static trine_case c;
    bench_result result = { 0 };
    char error[320] = "";
    trine_case_init(&c, op);
    if (trine_case_parse(&c, text, error, sizeof error) && trine_case_finish(&c, error, sizeof error))
        bench_work(&c, &result);
    return result;
}

/* Of 4 rows of 6 a causal mask leaves 3, 4, 5 and 6. */
static void check_work(void) {
    const bench_result all = work_of(TRINE_OP_SOFTMAX, "T=f32 g=2 s=4 n=6"),
                       masked = work_of(TRINE_OP_SOFTMAX, "T=f32 g=2 s=4 n=6 causal=1");
    const bench_result gradient = work_of(TRINE_OP_SOFTMAX_BACKWARD, "T=bf16 g=2 s=4 n=6 causal=1");
    tap(all.bytes == 2 * 48 * 4 && all.flops == 5 * 48, "softmax reads and writes all");
    tap(masked.bytes == (36 + 48) * 4 && masked.flops == 5 * 36, "under a mask it reads what is visible");
    tap(gradient.bytes == (2 * 36 + 48) * 2, "and so does its gradient");
    const bench_result table = work_of(TRINE_OP_EMBEDDING, "T=f32 I=i32 t=10 v=100 n=8"),
                       attention = work_of(TRINE_OP_ATTENTION, "T=f32 sq=4 sk=4 h=1 hk=1 d=8 causal=1");
    tap(table.bytes < 100 * 8 * 4, "of a table as many rows as there are ids");
    enum { GIVEN = 10 * 8 * 4 + 10 * 4 };
    const bench_result added = work_of(TRINE_OP_EMBEDDING_BACKWARD, "T=f32 W=f32 I=i32 t=10 v=100 n=8 accumulate=1"),
                       written = work_of(TRINE_OP_EMBEDDING_BACKWARD, "T=f32 W=f32 I=i32 t=10 v=100 n=8");
    tap(added.bytes == GIVEN + 2 * 10 * 8 * 4, "and so many rows of its gradient, where that is added");
    tap(written.bytes == GIVEN + 100 * 8 * 4, "otherwise it is written, and not read");
    tap(attention.flops == work_of(TRINE_OP_ATTENTION, "T=f32 sq=4 sk=4 h=1 hk=1 d=8").flops * 10 / 16,
        "attention's flops are those of the pairs seen");
    tap(work_of(TRINE_OP_MATMUL, "T=f32 m=2 n=3 k=4").peak == PEAK_F32 &&
            work_of(TRINE_OP_MATMUL, "T=f32 m=2 n=3 k=4 precision=tf32").peak == PEAK_TF32 &&
            work_of(TRINE_OP_MUON, "T=f32 G=f32 S=f32 C=bf16 m=2 n=3 precision=bf16").peak == PEAK_BF16,
        "the peak is that of the precision");
}

static void check_case(trine_queue *queue) {
    static trine_case c;
    static bench_result result;
    char error[320] = "";
    const bench_plan plan = { .seconds = 0.01, .last_level = 1 << 16, .memory = 1 << 24, .batch = 1e-3 };
    trine_case_init(&c, TRINE_OP_SCALE);
    const bool made = trine_case_parse(&c, "n=1000", error, sizeof error) && trine_case_finish(&c, error, sizeof error);
    const bool good = made && bench_case(queue, &c, &plan, &result, error, sizeof error);
    tap(good && result.median > 0 && result.batch * result.median >= 0.5e-3 && strcmp(result.kernel, "cuda") == 0,
        "a case, its calls in batches%s", error);
}

/* Takes a microsecond, the second time two thousand. */
static bool stalls(void *context, int64_t i) {
    (void)context;
    const double start = bench_now();
    while (bench_now() - start < (i == 1 ? 2e-3 : 1e-6)) {
    }
    return true;
}

static void check_stall(void) {
    static bench_result result;
    const bench_plan plan = { .seconds = 1e-3, .batch = 1e-3 };
    tap(bench_time(stalls, NULL, NULL, &plan, &result) && result.batch > 1 && result.batch * result.median >= 0.5e-3,
        "one call that was held does not make batches small");
}

int main(void) {
    trine *lib = NULL;
    trine_queue *queue = NULL;
    if (dlopen(TEST_DRIVER, RTLD_NOW) != NULL) return tap_skip_all("this machine has a driver");
    if (dlopen(TEST_STUB, RTLD_NOW | RTLD_GLOBAL) == NULL) return tap_skip_all(dlerror());
    const bool open =
        trine_open(&(trine_options){ .struct_size = sizeof(trine_options), .backends = TEST_BACKEND, .tune_file = "" },
                   &lib) == TRINE_OK &&
        trine_queue_open(lib, trine_device_find(lib, TEST_BACKEND), NULL, &queue) == TRINE_OK;
    if (tap(open, "a queue on the device: %s", trine_error_message())) {
        check_roof(queue);
        check_cost(queue);
        check_work();
        check_case(queue);
        check_stall();
    }
    trine_queue_close(queue);
    trine_close(lib);
    return tap_end();
}
