/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan_backward on the CPU: linear_scan's tasks, with the steps from the last to the first. */
#include "scan.h"
#include "spec/places/linear_scan_backward.h"

static scan job_of(const trine_call *call) {
    const trine_linear_scan_backward_args *args = call->args;
    const int64_t *dim = call->dim;
    return scan_of(call, trine_call_given(call, LINEAR_SCAN_BACKWARD_CU_SEQLENS), dim[LINEAR_SCAN_BACKWARD_DIM_B],
                   dim[LINEAR_SCAN_BACKWARD_DIM_T], dim[LINEAR_SCAN_BACKWARD_DIM_N], dim[LINEAR_SCAN_BACKWARD_DIM_NSEQ],
                   SCAN_MOST, args->reverse);
}

/* dx and dg of step k, from dh of the step after it, which the gate of that one multiplies; `after` and `before` are
 * NULL where there is no such step. */
INLINE void step(const scan *s, const scan_task *a, int64_t k, float *dh, const char *after, const void *before,
                 trine_dtype before_type, bool alone, trine_dtype T) {
    const trine_tensor *tensor = s->call->tensor;
    const char *dy = scan_row(s, a, &tensor[LINEAR_SCAN_BACKWARD_DY], k, T);
    char *dx = scan_row(s, a, &tensor[LINEAR_SCAN_BACKWARD_DX], k, T),
         *dg = scan_row(s, a, &tensor[LINEAR_SCAN_BACKWARD_DG], k, T);
    scan_prefetch(s, a, &tensor[LINEAR_SCAN_BACKWARD_DY], k, false, false, T);
    scan_prefetch(s, a, &tensor[LINEAR_SCAN_BACKWARD_G], k, false, false, T);
    scan_prefetch(s, a, &tensor[LINEAR_SCAN_BACKWARD_Y], k, false, false, T);
    scan_prefetch(s, a, &tensor[LINEAR_SCAN_BACKWARD_DX], k, false, true, T);
    scan_prefetch(s, a, &tensor[LINEAR_SCAN_BACKWARD_DG], k, false, true, T);
    SCAN_EACH(a, j, m, {
        vf state = scan_get(dy, T, j, m);
        if (after)
            state = vfma(scan_get(after, T, j, m), *(vf *)(dh + j), state);
        else if (!alone)
            state += *(vf *)(dh + j);
        *(vf *)(dh + j) = state;
        scan_put(dx, T, j, m, state);
        scan_put(dg, T, j, m, before ? state * scan_get(before, before_type, j, m) : vzero());
    });
}

INLINE void steps(const scan *s, const scan_task *a, trine_dtype T) {
    const trine_tensor *tensor = s->call->tensor, *g = &tensor[LINEAR_SCAN_BACKWARD_G],
                       *y = &tensor[LINEAR_SCAN_BACKWARD_Y];
    const float *h0 = scan_states(a, trine_call_given(s->call, LINEAR_SCAN_BACKWARD_H0)),
                *dlast = scan_states(a, trine_call_given(s->call, LINEAR_SCAN_BACKWARD_DLAST));
    float *dh0 = scan_states(a, trine_call_given(s->call, LINEAR_SCAN_BACKWARD_DH0));
    float dh[SCAN_MOST] __attribute__((aligned(64))) = { 0 };
    if (dlast) memcpy(dh, dlast, (size_t)a->channels * sizeof *dh);
    for (int64_t k = a->steps - 1; k >= 0; k--) {
        const char *after = k < a->steps - 1 ? scan_row(s, a, g, k + 1, T) : NULL;
        if (k > 0)
            step(s, a, k, dh, after, scan_row(s, a, y, k - 1, T), T, dlast == NULL, T);
        else
            step(s, a, k, dh, after, h0, TRINE_F32, dlast == NULL, T);
    }
    if (dh0 == NULL) return;
    if (a->steps > 0) {
        const char *gate = scan_row(s, a, g, 0, T);
        SCAN_EACH(a, j, m, *(vf *)(dh + j) *= scan_get(gate, T, j, m));
    }
    memcpy(dh0, dh, (size_t)a->channels * sizeof *dh);
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const scan *s = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const scan_task a = scan_task_of(s, i);
        if (a.sequence < s->count) {
            FOR_TYPE(s->call->type[LINEAR_SCAN_BACKWARD_TYPE_T], steps, s, &a);
            continue;
        }
        scan_clear(s, &a, &s->call->tensor[LINEAR_SCAN_BACKWARD_DX]);
        scan_clear(s, &a, &s->call->tensor[LINEAR_SCAN_BACKWARD_DG]);
    }
}

static trine_status launch(const trine_call *call) {
    const scan s = job_of(call);
    return scan_run(call, &s, tasks);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    scan_edges(call, edges, LINEAR_SCAN_BACKWARD_DIM_N, SCAN_MOST);
}

CPU_KERNELS(linear_scan_backward) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
