/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan on the CPU: the states of a block of channels stay in the first-level cache while its steps pass. */
#include "scan.h"
#include "spec/places/linear_scan.h"

static scan job_of(const trine_call *call) {
    const trine_linear_scan_args *args = call->args;
    const int64_t *dim = call->dim;
    return scan_of(call, trine_call_given(call, LINEAR_SCAN_CU_SEQLENS), dim[LINEAR_SCAN_DIM_B], dim[LINEAR_SCAN_DIM_T],
                   dim[LINEAR_SCAN_DIM_N], dim[LINEAR_SCAN_DIM_NSEQ], SCAN_MOST, args->reverse);
}

INLINE void steps(const scan *s, const scan_task *a, trine_dtype T) {
    const trine_tensor *tensor = s->call->tensor;
    const float *h0 = scan_states(a, trine_call_given(s->call, LINEAR_SCAN_H0));
    float *last = scan_states(a, trine_call_given(s->call, LINEAR_SCAN_LAST));
    float h[SCAN_MOST] __attribute__((aligned(64))) = { 0 };
    if (h0) memcpy(h, h0, (size_t)a->channels * sizeof *h);
    for (int64_t k = 0; k < a->steps; k++) {
        const char *x = scan_row(s, a, &tensor[LINEAR_SCAN_X], k, T), *g = scan_row(s, a, &tensor[LINEAR_SCAN_G], k, T);
        char *y = scan_row(s, a, &tensor[LINEAR_SCAN_Y], k, T);
        scan_prefetch(s, a, &tensor[LINEAR_SCAN_X], k, true, false, T);
        scan_prefetch(s, a, &tensor[LINEAR_SCAN_G], k, true, false, T);
        scan_prefetch(s, a, &tensor[LINEAR_SCAN_Y], k, true, true, T);
        const bool alone = k == 0 && h0 == NULL;
        SCAN_EACH(a, j, m, {
            const vf term = scan_get(x, T, j, m);
            const vf state = alone ? term : vfma(scan_get(g, T, j, m), *(vf *)(h + j), term);
            *(vf *)(h + j) = state;
            scan_put(y, T, j, m, state);
        });
    }
    if (last) memcpy(last, h, (size_t)a->channels * sizeof *h);
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const scan *s = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const scan_task a = scan_task_of(s, i);
        if (a.sequence == s->count)
            scan_clear(s, &a, &s->call->tensor[LINEAR_SCAN_Y]);
        else
            FOR_TYPE(s->call->type[LINEAR_SCAN_TYPE_T], steps, s, &a);
    }
}

static trine_status launch(const trine_call *call) {
    const scan s = job_of(call);
    return scan_run(call, &s, tasks);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    scan_edges(call, edges, LINEAR_SCAN_DIM_N, SCAN_MOST);
}

CPU_KERNELS(linear_scan) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
