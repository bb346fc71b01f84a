/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_quantize on the CPU: a row is read for its squares, and again for its groups. */
#include "rows.h"
#include "spec/places/rms_norm_quantize.h"

enum { PARTIAL = 2048, HALF = VL / 2 };

typedef double vd __attribute__((vector_size(VB)));
typedef float vf_half __attribute__((vector_size(VB / 2)));

typedef struct job {
    const trine_call *call;
    const trine_tensor *x, *weight, *residual, *residual_out;
    float eps, weight_offset;
    row_codes out;
} job;

static job job_of(const trine_call *call) {
    const trine_rms_norm_quantize_args *args = call->args;
    return (job){ .call = call,
                  .x = &call->tensor[RMS_NORM_QUANTIZE_X],
                  .weight = trine_call_given(call, RMS_NORM_QUANTIZE_WEIGHT),
                  .residual = trine_call_given(call, RMS_NORM_QUANTIZE_RESIDUAL),
                  .residual_out = trine_call_given(call, RMS_NORM_QUANTIZE_RESIDUAL_OUT),
                  .eps = args->eps,
                  .weight_offset = args->weight_offset,
                  .out = row_codes_of(call, RMS_NORM_QUANTIZE_CODES, RMS_NORM_QUANTIZE_SCALES, RMS_NORM_QUANTIZE_Y,
                                      call->dim[RMS_NORM_QUANTIZE_DIM_K], call->dim[RMS_NORM_QUANTIZE_DIM_GROUPS],
                                      args->powers == TRINE_POWERS_ALL, args->upward) };
}

/* A row, and what its numbers are multiplied by. */
typedef struct row {
    const char *x, *residual, *weight;
    char *residual_out;
    trine_dtype R, W, out; /* out: of residual_out */
    float first, second, m, weight_offset;
} row;

static char *row_of(const trine_tensor *t, int64_t i) {
    return t ? (char *)t->data + i * t->stride[0] * (int64_t)vsize(t->dtype) : NULL;
}

/* Of a type that is T or f32. */
INLINE vf load_either(const void *from, trine_dtype either, int64_t j, int count, trine_dtype T) {
    return either == TRINE_F32 ? row_load(from, TRINE_F32, j, count) : row_load(from, T, j, count);
}

INLINE vf sum_of(const row *p, int64_t j, int count, trine_dtype T) {
    const vf x = row_load(p->x, T, j, count);
    return p->residual ? x + load_either(p->residual, p->R, j, count, T) : x;
}

INLINE vf normalized(const void *of, int64_t j, int count, bool last, trine_dtype T) {
    const row *p = of;
    const vf h = sum_of(p, j, count, T);
    if (last && p->residual_out) {
        if (p->out == TRINE_F32)
            row_store(p->residual_out, TRINE_F32, j, count, h);
        else
            row_store(p->residual_out, T, j, count, h);
    }
    vf y = h * p->first * p->second * p->m;
    if (p->weight) y *= load_either(p->weight, p->W, j, count, T) + p->weight_offset;
    return y;
}

/* Sums that are neighbours are added until one is left; beyond `count` all are 0. */
static double by_pairs(double *sum, int64_t count) {
    while (count > 1) {
        count = (count + 1) / 2;
        for (int64_t i = 0; i < count; i++) sum[i] = sum[2 * i] + sum[2 * i + 1];
        sum[count] = 0;
    }
    return sum[0];
}

INLINE void add_squares(double *sum, vf h) {
    vf_half half[2];
    memcpy(half, &h, sizeof h);
    for (int v = 0; v < 2; v++) {
        const vd x = __builtin_convertvector(half[v], vd);
        vd s;
        memcpy(&s, sum + v * HALF, sizeof s);
        s += x * x; /* a square is exact, so that it does not matter whether this is fused */
        memcpy(sum + v * HALF, &s, sizeof s);
    }
}

INLINE void find_squares(double *squares, const row *p, int64_t k, trine_dtype T) {
    double sum[PARTIAL + VL];
    const int64_t used = k < PARTIAL ? k : PARTIAL;
    memset(sum, 0, sizeof *sum * (size_t)(used + VL));
    for (int64_t j = 0; j < k; j += VL) add_squares(sum + j % PARTIAL, sum_of(p, j, k - j < VL ? (int)(k - j) : VL, T));
    *squares = by_pairs(sum, used);
}

/* rstd = m 2^e with 1 <= m <= 2. */
static void find_factors(row *p, double rstd) {
    uint64_t bits;
    memcpy(&bits, &rstd, sizeof bits);
    if (!(rstd > 0 && rstd < INFINITY)) {
        p->first = p->second = 1;
        p->m = (float)rstd;
        return;
    }
    const int e = (int)(bits >> 52) - 1023, half = e >> 1;
    bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
    memcpy(&rstd, &bits, sizeof bits);
    p->m = (float)rstd;
    p->first = ldexpf(1, half);
    p->second = ldexpf(1, e - half);
}

INLINE void groups(const job *b, const row *p, float *kept, int64_t i, trine_dtype T) {
    for (int64_t g = 0; g < b->out.groups; g++) row_group(&b->out, normalized, p, kept, i, g, T);
}

static void some(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    row_kept kept;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        row p = { .x = row_of(b->x, i),
                  .residual = row_of(b->residual, i),
                  .weight = row_of(b->weight, 0),
                  .residual_out = row_of(b->residual_out, i),
                  .R = b->residual ? b->residual->dtype : TRINE_F32,
                  .W = b->weight ? b->weight->dtype : TRINE_F32,
                  .out = b->residual_out ? b->residual_out->dtype : TRINE_F32,
                  .weight_offset = b->weight_offset };
        double squares;
        FOR_TYPE(b->x->dtype, find_squares, &squares, &p, b->out.k);
        find_factors(&p, 1 / sqrt(squares / (double)b->out.k + (double)b->eps));
        FOR_TYPE(b->x->dtype, groups, b, &p, kept, i);
    }
}

static int64_t row_bytes(const trine_call *call) {
    return call->dim[RMS_NORM_QUANTIZE_DIM_K] *
           (int64_t)(4 * trine_dtype_size(call->type[RMS_NORM_QUANTIZE_TYPE_T]) + 1);
}

static trine_status launch(const trine_call *call) {
    const job b = job_of(call);
    const int64_t r = call->dim[RMS_NORM_QUANTIZE_DIM_R];
    cpu_shares(call, cpu_team(call, r, r * row_bytes(call)), r, some, &b);
    return TRINE_OK;
}

/* Vectors of a group, the sums of squares, what is kept of a group; and the second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, ROW_KEPT);
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, VL);
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, PARTIAL);
    cpu_team_edge(edges, RMS_NORM_QUANTIZE_DIM_R, row_bytes(call));
}

CPU_KERNELS(rms_norm_quantize) = { { CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
