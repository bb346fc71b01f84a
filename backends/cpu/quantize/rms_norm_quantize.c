/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_quantize on the CPU: a row is read for its squares, and again for its groups. Of few long rows the threads
 * share each: the partial sums of squares, then the groups, or the pieces of one. */
#include "rows.h"
#include "spec/places/rms_norm_quantize.h"

enum { PARTIAL = 2048, HALF = VL / 2, LANES = 64 }; /* partial sums of a row; those that are one thread's work */

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

/* Adds to partial sums first .. last-1 the squares of the elements that are theirs. */
INLINE void add_row(double *restrict sum, const row *p, int64_t k, int64_t first, int64_t last, trine_dtype T) {
    const row here = *p; /* which sums cannot be */
    for (int64_t at = 0; at < k; at += PARTIAL) {
        const int64_t end = at + last < k ? at + last : k;
        for (int64_t j = at + first; j < end; j += VL)
            add_squares(sum + (j - at), sum_of(&here, j, k - j < VL ? (int)(k - j) : VL, T));
    }
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

static row row_at(const job *b, int64_t i) {
    return (row){ .x = row_of(b->x, i),
                  .residual = row_of(b->residual, i),
                  .weight = row_of(b->weight, 0),
                  .residual_out = row_of(b->residual_out, i),
                  .R = b->residual ? b->residual->dtype : TRINE_F32,
                  .W = b->weight ? b->weight->dtype : TRINE_F32,
                  .out = b->residual_out ? b->residual_out->dtype : TRINE_F32,
                  .weight_offset = b->weight_offset };
}

static void settle(const job *b, row *p, double *sum) {
    const double squares = by_pairs(sum, b->out.k < PARTIAL ? b->out.k : PARTIAL);
    find_factors(p, 1 / sqrt(squares / (double)b->out.k + (double)b->eps));
}

INLINE void groups(const job *b, const row *p, float *kept, int64_t i, trine_dtype T) {
    for (int64_t g = 0; g < b->out.groups; g++) row_group(&b->out, normalized, p, kept, i, g, T);
}

static void some(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const int64_t used = b->out.k < PARTIAL ? b->out.k : PARTIAL;
    row_kept kept;
    double sum[PARTIAL + VL];
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        row p = row_at(b, i);
        memset(sum, 0, sizeof *sum * (size_t)(used + VL));
        FOR_TYPE(b->x->dtype, add_row, sum, &p, b->out.k, 0, used);
        settle(b, &p, sum);
        FOR_TYPE(b->x->dtype, groups, b, &p, kept, i);
    }
}

/* ----------------------------------------------------------------------------------------------------- shared rows */

enum { PIECE = 4096, SAVED = 1 << 19 }; /* elements of a group's piece; bytes that a thread must be spared by sharing */

typedef struct share {
    const job *b;
    row p;
    int64_t i;
    double *sum;
    vi *size; /* of pieces */
    float scale;
} share;

static void share_squares(const void *context, int64_t first, int64_t last, int thread) {
    const share *s = context;
    (void)thread;
    FOR_TYPE(s->b->x->dtype, add_row, s->sum, &s->p, s->b->out.k, first * LANES, last * LANES);
}

static void share_groups(const void *context, int64_t first, int64_t last, int thread) {
    const share *s = context;
    row_kept kept;
    (void)thread;
    for (int64_t g = first; g < last; g++)
        FOR_TYPE(s->b->x->dtype, row_group, &s->b->out, normalized, &s->p, kept, s->i, g);
}

static int64_t piece_end(const share *s, int64_t piece) {
    return (piece + 1) * PIECE < s->b->out.k ? (piece + 1) * PIECE : s->b->out.k;
}

INLINE void sizes_as(const share *s, int64_t piece, trine_dtype T) {
    s->size[piece] = row_sizes(normalized, &s->p, NULL, false, piece * PIECE, piece_end(s, piece), T);
}
static void share_sizes(const void *context, int64_t first, int64_t last, int thread) {
    const share *s = context;
    (void)thread;
    for (int64_t piece = first; piece < last; piece++) FOR_TYPE(s->b->x->dtype, sizes_as, s, piece);
}

static void share_codes(const void *context, int64_t first, int64_t last, int thread) {
    const share *s = context;
    (void)thread;
    FOR_TYPE(s->b->x->dtype, row_put_codes, &s->b->out, normalized, &s->p, NULL, false, s->scale, s->i, first * PIECE,
             piece_end(s, last - 1));
}

static void share_row(const job *b, int team, int64_t i) {
    const int64_t pieces = (b->out.k + PIECE - 1) / PIECE;
    share s = { .b = b, .p = row_at(b, i), .i = i, .size = b->call->workspace };
    s.sum = (double *)(void *)(s.size + pieces);
    memset(s.sum, 0, sizeof *s.sum * (PARTIAL + VL));
    cpu_shares(b->call, team, PARTIAL / LANES, share_squares, &s);
    settle(b, &s.p, s.sum);
    if (b->out.groups > 1) {
        cpu_shares(b->call, team, b->out.groups, share_groups, &s);
        return;
    }
    vi size = { 0 };
    cpu_shares(b->call, team, pieces, share_sizes, &s);
    for (int64_t k = 0; k < pieces; k++) size = visel(s.size[k] > size, s.size[k], size);
    s.scale = row_scale(&b->out, size, i, 0);
    cpu_shares(b->call, team, pieces, share_codes, &s);
}

static int64_t row_bytes(const trine_call *call) {
    return call->dim[RMS_NORM_QUANTIZE_DIM_K] *
           (int64_t)(4 * trine_dtype_size(call->type[RMS_NORM_QUANTIZE_TYPE_T]) + 1);
}

/* Rows that a thread does alone, and then those that all share, one after the other. */
typedef struct shares {
    int64_t whole, shared;
    int team;
} shares;

static shares shares_of(const trine_call *call) {
    enum { ROWS = 8 }; /* of a thread, from which on it does not matter that some have one more */
    const int64_t r = call->dim[RMS_NORM_QUANTIZE_DIM_R], pieces = call->dim[RMS_NORM_QUANTIZE_DIM_K] / PIECE;
    shares s = { .team = cpu_team(call, r * (pieces > 1 ? pieces : 1), r * row_bytes(call)) };
    if (pieces >= 4 && r < ROWS * (int64_t)s.team) s.shared = r % s.team;
    if (s.shared > 0 && row_bytes(call) * (s.team - s.shared) / s.team < SAVED * s.shared) s.shared = 0;
    s.whole = r - s.shared;
    return s;
}

static size_t workspace(const trine_call *call) {
    const int64_t pieces = (call->dim[RMS_NORM_QUANTIZE_DIM_K] + PIECE - 1) / PIECE;
    if (call->empty || shares_of(call).shared == 0) return 0;
    return (size_t)pieces * sizeof(vi) + (PARTIAL + VL) * sizeof(double);
}

static trine_status launch(const trine_call *call) {
    const job b = job_of(call);
    const shares s = shares_of(call);
    cpu_shares(call, s.whole < s.team ? (int)s.whole : s.team, s.whole, some, &b);
    for (int64_t i = s.whole; i < s.whole + s.shared; i++) share_row(&b, s.team, i);
    return TRINE_OK;
}

/* Vectors of a group, the sums of squares, what is kept of a group; the second thread, and a row that two share. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t k = call->dim[RMS_NORM_QUANTIZE_DIM_K];
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, ROW_KEPT);
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, VL);
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, PARTIAL);
    if (k > 0) trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, 2 * SAVED * k / row_bytes(call));
    cpu_team_edge(edges, RMS_NORM_QUANTIZE_DIM_R, row_bytes(call));
}

CPU_KERNELS(rms_norm_quantize) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
