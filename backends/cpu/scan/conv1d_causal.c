/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal on the CPU: a block of channels of a sequence, step by step. */
#include "conv1d.h"
#include "spec/places/conv1d_causal.h"

static int64_t most_of(const trine_call *call) {
    return call->dim[CONV1D_CAUSAL_DIM_K] <= CONV_FLOATS / CONV_WIDE ? CONV_WIDE : CONV_FLOATS / CONV_MOST;
}

static conv job_of(const trine_call *call) {
    const trine_conv1d_causal_args *args = call->args;
    const int64_t *dim = call->dim;
    return (conv){ .all = scan_of(call, trine_call_given(call, CONV1D_CAUSAL_CU_SEQLENS), dim[CONV1D_CAUSAL_DIM_B],
                                  dim[CONV1D_CAUSAL_DIM_T], dim[CONV1D_CAUSAL_DIM_N], dim[CONV1D_CAUSAL_DIM_NSEQ],
                                  most_of(call), false),
                   .k = dim[CONV1D_CAUSAL_DIM_K],
                   .x = &call->tensor[CONV1D_CAUSAL_X],
                   .weight = &call->tensor[CONV1D_CAUSAL_WEIGHT],
                   .bias = trine_call_given(call, CONV1D_CAUSAL_BIAS),
                   .x0 = trine_call_given(call, CONV1D_CAUSAL_X0),
                   .silu = args->silu };
}

static void put_last(const conv *c, const scan_task *a) {
    const trine_tensor *last = trine_call_given(c->all.call, CONV1D_CAUSAL_LAST);
    const trine_dtype T = c->x->dtype;
    if (last == NULL || c->k < 2) return;
    /* the window of the step behind the last, without that step */
    const conv_window w = conv_window_of(c, a, a->steps, T);
    for (int64_t q = 0; q < c->k - 1; q++) {
        char *to = conv_state(a, last, q, T);
        if (q < w.from)
            memset(to, 0, (size_t)a->channels * vsize(T));
        else
            memcpy(to, w.row[q], (size_t)a->channels * vsize(T));
    }
}

INLINE void step(const conv *c, const scan_task *a, const conv_taps *taps, const conv_window *w, char *y, trine_dtype T,
                 int64_t from, int64_t k) {
    SCAN_EACH(a, j, m, {
        const vf z = conv_sum(taps, w, from, k, j, m, T);
        scan_put(y, T, j, m, c->silu ? z * vsigmoid(z) : z);
    });
}

INLINE void steps(const conv *c, const scan_task *a, const conv_taps *taps, trine_dtype T) {
    const trine_tensor *to = &c->all.call->tensor[CONV1D_CAUSAL_Y];
    for (int64_t t = 0; t < a->steps; t++) {
        const conv_window w = conv_window_of(c, a, t, T);
        char *y = scan_row(&c->all, a, to, t, T);
        scan_prefetch(&c->all, a, c->x, t, true, false, T);
        scan_prefetch(&c->all, a, to, t, true, true, T);
        CONV_EACH(&w, c->k, step, c, a, taps, &w, y, T);
    }
}

/* Sequences of one block of channels follow each other, so that its taps are found once. */
static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const conv *c = context;
    const int64_t each = scan_tasks(&c->all) / c->all.blocks;
    float weight[CONV_FLOATS] __attribute__((aligned(64))), bias[CONV_WIDE] __attribute__((aligned(64)));
    conv_taps taps = { .weight = weight, .bias = bias };
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const scan_task a = scan_task_of(&c->all, i % each * c->all.blocks + i / each);
        if (i == first || i % each == 0) conv_taps_of(c, &a, &taps);
        if (a.sequence == c->all.count) {
            scan_clear(&c->all, &a, &c->all.call->tensor[CONV1D_CAUSAL_Y]);
            continue;
        }
        FOR_TYPE(c->x->dtype, steps, c, &a, &taps);
        put_last(c, &a);
    }
}

static trine_status launch(const trine_call *call) {
    const conv c = job_of(call);
    const trine_status status = scan_check(&c.all);
    if (status == TRINE_OK)
        cpu_shares(call, cpu_team(call, scan_tasks(&c.all), scan_bytes(call)), scan_tasks(&c.all), tasks, &c);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    scan_edges(call, edges, CONV1D_CAUSAL_DIM_N, most_of(call));
}

CPU_KERNELS(conv1d_causal) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
