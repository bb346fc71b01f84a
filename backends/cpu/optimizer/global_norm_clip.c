/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm_clip on the CPU: squares summed in float64 by blocks of a fixed size, then one pass that scales. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_pair.h"
#include "spec/places/global_norm_clip.h"

enum { BLOCK = 16384 };

typedef double vd __attribute__((vector_size(VB)));
typedef float vf_half __attribute__((vector_size(VB / 2)));

/* acc[0..1] += a^2, without rounding the squares. */
INLINE void add_squares(vd acc[2], vf a) {
    vf_half half[2];
    memcpy(half, &a, sizeof a);
    for (int j = 0; j < 2; j++) {
        const vd x = __builtin_convertvector(half[j], vd);
        acc[j] += x * x;
    }
}

INLINE void block_squares(double *sum_out, const char *x, int64_t n, trine_dtype type) {
    vd acc[8] = { { 0 } };
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL)
        for (int j = 0; j < 4; j += 2) {
            vf value[2];
            vload2(value, x, type, i + j * VL);
            add_squares(acc + 2 * j, value[0]);
            add_squares(acc + 2 * j + 2, value[1]);
        }
    for (; i < n; i += VL) add_squares(acc, vloadn(x, type, i, n - i < VL ? (int)(n - i) : VL, 0));
    const vd all = ((acc[0] + acc[1]) + (acc[2] + acc[3])) + ((acc[4] + acc[5]) + (acc[6] + acc[7]));
    double sum = 0;
    for (int j = 0; j < VL / 2; j++) sum += all[j];
    *sum_out = sum;
}

INLINE void scale_range(char *y, const char *x, float coefficient, int64_t first, int64_t last, trine_dtype type) {
    int64_t i = first;
    for (; i + 2 * VL <= last; i += 2 * VL) {
        vf value[2];
        vload2(value, x, type, i);
        for (int j = 0; j < 2; j++) value[j] *= coefficient;
        vstore2(y, type, i, value);
    }
    for (; i + VL <= last; i += VL) vstore(y, type, i, vload(x, type, i) * coefficient);
    if (i < last) vstoren(y, type, i, (int)(last - i), vloadn(x, type, i, (int)(last - i), 0) * coefficient);
}

/* Do other_squares say the norm? */
static bool told(const trine_call *call) {
    return ((const trine_global_norm_clip_args *)call->args)->own_included &&
           call->present & 1u << GLOBAL_NORM_CLIP_OTHER_SQUARES;
}

/* Whose squares are to be summed. */
static int64_t blocks_of(const trine_call *call) {
    if (told(call) && !(call->present & 1u << GLOBAL_NORM_CLIP_SUM_SQUARES)) return 0;
    return (call->tensor[GLOBAL_NORM_CLIP_X].shape[0] + BLOCK - 1) / BLOCK;
}

static size_t workspace(const trine_call *call) { return (size_t)blocks_of(call) * sizeof(double); }

/* Writes the scalars and returns the coefficient. NaN as norm gives NaN, unless there is no limit. */
static float finish(const trine_call *call) {
    const trine_global_norm_clip_args *args = call->args;
    const double *partial = call->workspace;
    const int64_t blocks = blocks_of(call);
    const trine_tensor *other = &call->tensor[GLOBAL_NORM_CLIP_OTHER_SQUARES],
                       *squares = &call->tensor[GLOBAL_NORM_CLIP_SUM_SQUARES];
    double sum = 0;
    for (int64_t b = 0; b < blocks; b++) sum += partial[b];
    if (call->present & 1u << GLOBAL_NORM_CLIP_SUM_SQUARES) {
        if (squares->dtype == TRINE_F64)
            *(double *)squares->data = sum;
        else
            *(float *)squares->data = (float)sum;
    }
    if (told(call)) sum = 0;
    if (call->present & 1u << GLOBAL_NORM_CLIP_OTHER_SQUARES)
        for (int64_t j = 0; j < other->shape[0]; j++)
            sum += other->dtype == TRINE_F64 ? ((const double *)other->data)[j] : ((const float *)other->data)[j];
    const double norm = sqrt(sum), quotient = args->max_norm / norm;
    const float coefficient = args->max_norm == 0 || quotient >= 1 ? 1.0f : (float)quotient;
    if (call->present & 1u << GLOBAL_NORM_CLIP_NORM) *(float *)call->tensor[GLOBAL_NORM_CLIP_NORM].data = (float)norm;
    if (call->present & 1u << GLOBAL_NORM_CLIP_COEFFICIENT)
        *(float *)call->tensor[GLOBAL_NORM_CLIP_COEFFICIENT].data = coefficient;
    return coefficient;
}

typedef struct clip {
    const trine_tensor *x, *y;
    double *partial;
    float coefficient;
} clip;

static void add_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const clip *c = context;
    const int64_t n = c->x->shape[0], size = (int64_t)vsize(c->x->dtype);
    (void)thread;
    for (int64_t b = first; b < last; b++) {
        const int64_t count = n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK;
        FOR_TYPE(c->x->dtype, block_squares, &c->partial[b], (const char *)c->x->data + b * BLOCK * size, count);
    }
}

static void scale_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const clip *c = context;
    const int64_t n = c->x->shape[0];
    (void)thread;
    last = last * BLOCK < n ? last * BLOCK : n;
    if (first * BLOCK < last)
        FOR_TYPE(c->x->dtype, scale_range, c->y->data, c->x->data, c->coefficient, first * BLOCK, last);
}

static trine_status launch(const trine_call *call) {
    clip c = { .x = &call->tensor[GLOBAL_NORM_CLIP_X],
               .y = &call->tensor[GLOBAL_NORM_CLIP_Y],
               .partial = call->workspace,
               .coefficient = 1 };
    const int64_t blocks = (c.x->shape[0] + BLOCK - 1) / BLOCK;
    const int team = cpu_team(call, blocks, c.x->shape[0] * (int64_t)vsize(c.x->dtype));
    cpu_shares(call, team, blocks_of(call), add_blocks, &c);
    c.coefficient = finish(call);
    if (!(call->present & 1u << GLOBAL_NORM_CLIP_Y) || (c.y->data == c.x->data && c.coefficient == 1)) return TRINE_OK;
    cpu_shares(call, team, blocks, scale_blocks, &c);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, VL);
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, 2 * VL);
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, 4 * VL);
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, BLOCK);
}

CPU_KERNELS(global_norm_clip) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
