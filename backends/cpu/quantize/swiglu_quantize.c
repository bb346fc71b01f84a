/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_quantize on the CPU. */
#include "rows.h"
#include "spec/places/swiglu_quantize.h"

typedef struct job {
    const trine_call *call;
    const trine_tensor *gate, *up, *factor;
    bool gelu;
    row_codes out;
} job;

static job job_of(const trine_call *call) {
    const trine_swiglu_quantize_args *args = call->args;
    return (job){ .call = call,
                  .gate = &call->tensor[SWIGLU_QUANTIZE_GATE],
                  .up = &call->tensor[SWIGLU_QUANTIZE_UP],
                  .factor = trine_call_given(call, SWIGLU_QUANTIZE_FACTOR),
                  .gelu = args->activation == TRINE_GATE_GELU,
                  .out = row_codes_of(call, SWIGLU_QUANTIZE_CODES, SWIGLU_QUANTIZE_SCALES, SWIGLU_QUANTIZE_Y,
                                      call->dim[SWIGLU_QUANTIZE_DIM_K], call->dim[SWIGLU_QUANTIZE_DIM_GROUPS],
                                      args->powers == TRINE_POWERS_ALL, args->upward) };
}

typedef struct row {
    const char *gate, *up, *factor;
    bool gelu;
} row;

/* 2^n of -150 <= n <= 127, in two factors. */
INLINE vf scaled(vf x, vi n) {
    const vi half = n >> 1;
    return x * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
}

/* e^-|v|; of NaN NaN. */
INLINE vf exp_minus(vf v) {
    const vf z = vmax(vset(-105), -vabs(v));
    const vf whole = vproduct(z, vset(1.44269504f)) + CODES_WHOLE, n = whole - CODES_WHOLE;
    const vf r = (z - vproduct(n, vset(0x1.63p-1f))) - vproduct(n, vset(-2.12194440e-4f));
    vf p = vproduct(r, vset(1.38186966e-3f)) + 8.36871564e-3f;
    p = vproduct(p, r) + 4.16682921e-2f;
    p = vproduct(p, r) + 1.66665211e-1f;
    p = vproduct(p, r) + 4.99999940e-1f;
    p = vproduct(vproduct(r, r), p) + r + 1.0f;
    return scaled(p, (vi)((vu)whole - (vu)vset(CODES_WHOLE)));
}

INLINE vf gated(vf x, vf v) {
    const vf e = exp_minus(v);
    return x * (vsel(v < 0, e, vset(1)) / (1.0f + e));
}

INLINE vf activated(const void *of, int64_t j, int count, bool last, trine_dtype T) {
    const row *p = of;
    (void)last;
    const vf x = row_load(p->gate, T, j, count), up = row_load(p->up, T, j, count);
    const vf v = p->gelu ? x * (vproduct(vproduct(x, x), vset(7.13548139e-2f)) + 1.59576917f) : x;
    const vf y = gated(x, v) * up;
    return p->factor ? y * row_load(p->factor, TRINE_F32, j, count) : y;
}

static char *row_of(const trine_tensor *t, int64_t i) {
    return t ? (char *)t->data + i * t->stride[0] * (int64_t)vsize(t->dtype) : NULL;
}

static void some(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    row_kept kept;
    (void)thread;
    for (int64_t item = first; item < last; item++) {
        const int64_t i = item / b->out.groups, g = item % b->out.groups;
        const row p = { row_of(b->gate, i), row_of(b->up, i), row_of(b->factor, 0), b->gelu };
        FOR_TYPE(b->gate->dtype, row_group, &b->out, activated, &p, kept, i, g);
    }
}

static int64_t row_bytes(const trine_call *call) {
    return call->dim[SWIGLU_QUANTIZE_DIM_K] * (int64_t)(4 * trine_dtype_size(call->type[SWIGLU_QUANTIZE_TYPE_T]) + 1);
}

static trine_status launch(const trine_call *call) {
    const job b = job_of(call);
    const int64_t r = call->dim[SWIGLU_QUANTIZE_DIM_R];
    cpu_shares(call, cpu_team(call, r * b.out.groups, r * row_bytes(call)), r * b.out.groups, some, &b);
    return TRINE_OK;
}

/* Vectors of a group, what is kept of one; and the second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, SWIGLU_QUANTIZE_DIM_K, ROW_KEPT);
    trine_kernel_edge(edges, SWIGLU_QUANTIZE_DIM_K, VL);
    cpu_team_edge(edges, SWIGLU_QUANTIZE_DIM_R, row_bytes(call));
}

CPU_KERNELS(swiglu_quantize) = { { CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
