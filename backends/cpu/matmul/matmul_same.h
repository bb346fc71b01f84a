/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on the CPU with the same bits as on every device (spec/same.h): each sum is a chain over k, in f32 of rounded
 * products, in f64 of fused ones; then alpha sum + beta c + bias likewise. Tiles of 32 rows by 64 or 32 columns, whose
 * operands are gathered as floats or doubles. */
#include "backends/cpu/core/same.h"
#include "spec/places/matmul.h"

enum { MATMUL_SAME_ROWS = 32, MATMUL_SAME_COLUMNS = 64, MATMUL_SAME_COLUMNS_F64 = 32 };

typedef double vd __attribute__((vector_size(VB)));

typedef struct matmul_same {
    const trine_tensor *a, *b, *c, *bias, *d;
    int64_t m, n, k, row_tiles, column_tiles;
    float alpha, beta;
    bool relu;
} matmul_same;

typedef struct matmul_same_tile {
    int64_t g, row, column;
    int rows, columns;
} matmul_same_tile;

static const char *matmul_same_refuse(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    if (type != TRINE_F32 && type != TRINE_F64 && type != TRINE_BF16 && type != TRINE_F16)
        return "what is the same everywhere has no products of this type";
    if (call->present >> MATMUL_A_SCALE & 1 || call->present >> MATMUL_B_SCALE & 1)
        return "what is the same everywhere has no scales";
    return args->activation > TRINE_ACTIVATION_RELU ? "what is the same everywhere has no activation but relu" : NULL;
}

/* A matrix of the batch, or the one that serves all of it. */
INLINE const void *matmul_same_batch(const trine_tensor *t, int64_t g) {
    return (const char *)t->data + (t->shape[0] > 1 ? g : 0) * t->stride[0] * (int64_t)trine_dtype_size(t->dtype);
}

/* SAME_CHAIN rows or fewer of b's columns, 0 beyond the last. */
INLINE void matmul_same_floats(float *to, const trine_tensor *b, const matmul_same_tile *at, int64_t p, int depth,
                               trine_dtype T) {
    const void *from = matmul_same_batch(b, at->g);
    for (int q = 0; q < depth; q++, to += MATMUL_SAME_COLUMNS)
        for (int j = 0; j < MATMUL_SAME_COLUMNS; j++)
            to[j] = j < at->columns ? sload(from, T, (p + q) * b->stride[1] + (at->column + j) * b->stride[2]) : 0;
}
static void matmul_same_doubles(double *to, const trine_tensor *b, const matmul_same_tile *at, int64_t p, int depth) {
    const double *from = matmul_same_batch(b, at->g);
    for (int q = 0; q < depth; q++, to += MATMUL_SAME_COLUMNS_F64)
        for (int j = 0; j < MATMUL_SAME_COLUMNS_F64; j++)
            to[j] = j < at->columns ? from[(p + q) * b->stride[1] + (at->column + j) * b->stride[2]] : 0;
}

INLINE vd matmul_same_fused(double a, vd b, vd c) {
#if defined(__AVX512F__)
    return (vd)_mm512_fmadd_pd(_mm512_set1_pd(a), (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
    return (vd)_mm256_fmadd_pd(_mm256_set1_pd(a), (__m256d)b, (__m256d)c);
#else
    for (size_t i = 0; i < sizeof(vd) / sizeof(double); i++) c[i] = __builtin_fma(a, b[i], c[i]);
    return c;
#endif
}

/* total += the chain of one row by 64 columns. */
static void matmul_same_chain(float *total, const float *a, const float *b, int depth) {
    enum { VECTORS = MATMUL_SAME_COLUMNS / VL };
    vf run[VECTORS] = { 0 };
    for (int q = 0; q < depth; q++) {
        const vf x = vset(a[q]);
        for (int j = 0; j < VECTORS; j++)
            run[j] += vproduct(x, *(const vf_any *)(b + q * MATMUL_SAME_COLUMNS + j * VL));
    }
    for (int j = 0; j < VECTORS; j++) *(vf_any *)(total + j * VL) += run[j];
}
static void matmul_same_chain_f64(double *total, const double *a, const double *b, int depth) {
    enum { LENGTH = VL / 2, VECTORS = MATMUL_SAME_COLUMNS_F64 / LENGTH };
    vd run[VECTORS] = { 0 };
    for (int q = 0; q < depth; q++)
        for (int j = 0; j < VECTORS; j++) {
            vd y;
            memcpy(&y, b + q * MATMUL_SAME_COLUMNS_F64 + j * LENGTH, sizeof y);
            run[j] = matmul_same_fused(a[q], y, run[j]);
        }
    for (int j = 0; j < VECTORS; j++)
        for (int i = 0; i < LENGTH; i++) total[j * LENGTH + i] += run[j][i];
}

/* alpha sum + beta c + bias of one element. */
static void matmul_same_store(const matmul_same *p, const matmul_same_tile *at, int i, int j, float sum) {
    const int64_t row = at->row + i, column = at->column + j;
    float t = same_product(p->alpha, sum);
    if (p->c) {
        const int64_t place = at->g * p->c->stride[0] + row * p->c->stride[1] + column * p->c->stride[2];
        t += same_product(p->beta, sload(p->c->data, p->c->dtype, place));
    }
    if (p->bias) t += sload(p->bias->data, p->bias->dtype, column * p->bias->stride[0]);
    if (p->relu && t < 0) t = 0;
    sstore(p->d->data, p->d->dtype, at->g * p->d->stride[0] + row * p->d->stride[1] + column * p->d->stride[2], t);
}
static void matmul_same_store_f64(const matmul_same *p, const matmul_same_tile *at, int i, int j, double sum) {
    const int64_t row = at->row + i, column = at->column + j;
    double t = __builtin_fma((double)p->alpha, sum, 0);
    if (p->c)
        t = __builtin_fma(
            (double)p->beta,
            ((const double *)p->c->data)[at->g * p->c->stride[0] + row * p->c->stride[1] + column * p->c->stride[2]],
            t);
    if (p->bias) t += ((const double *)p->bias->data)[column * p->bias->stride[0]];
    if (p->relu && t < 0) t = 0;
    ((double *)p->d->data)[at->g * p->d->stride[0] + row * p->d->stride[1] + column * p->d->stride[2]] = t;
}

/* What a thread works in: sums, a part of a row of a, and of b's rows. */
typedef struct matmul_same_f32 {
    float total[MATMUL_SAME_ROWS][MATMUL_SAME_COLUMNS], a[SAME_CHAIN], b[SAME_CHAIN * MATMUL_SAME_COLUMNS];
} matmul_same_f32;
typedef struct matmul_same_f64 {
    double total[MATMUL_SAME_ROWS][MATMUL_SAME_COLUMNS_F64], a[SAME_CHAIN], b[SAME_CHAIN * MATMUL_SAME_COLUMNS_F64];
} matmul_same_f64;

INLINE int matmul_same_depth(const matmul_same *p, int64_t from) {
    return (int)(p->k - from < SAME_CHAIN ? p->k - from : SAME_CHAIN);
}

INLINE void matmul_same_sums(const matmul_same *p, const matmul_same_tile *at, trine_dtype T) {
    const void *rows = matmul_same_batch(p->a, at->g);
    matmul_same_f32 room;
    memset(room.total, 0, sizeof room.total);
    for (int64_t from = 0; from < p->k; from += SAME_CHAIN) {
        const int depth = matmul_same_depth(p, from);
        matmul_same_floats(room.b, p->b, at, from, depth, T);
        for (int i = 0; i < at->rows; i++) {
            for (int q = 0; q < depth; q++)
                room.a[q] = sload(rows, T, (at->row + i) * p->a->stride[1] + (from + q) * p->a->stride[2]);
            matmul_same_chain(room.total[i], room.a, room.b, depth);
        }
    }
    for (int i = 0; i < at->rows; i++)
        for (int j = 0; j < at->columns; j++) matmul_same_store(p, at, i, j, room.total[i][j]);
}
static void matmul_same_sums_f64(const matmul_same *p, const matmul_same_tile *at) {
    const double *rows = matmul_same_batch(p->a, at->g);
    matmul_same_f64 room;
    memset(room.total, 0, sizeof room.total);
    for (int64_t from = 0; from < p->k; from += SAME_CHAIN) {
        const int depth = matmul_same_depth(p, from);
        matmul_same_doubles(room.b, p->b, at, from, depth);
        for (int i = 0; i < at->rows; i++) {
            for (int q = 0; q < depth; q++)
                room.a[q] = rows[(at->row + i) * p->a->stride[1] + (from + q) * p->a->stride[2]];
            matmul_same_chain_f64(room.total[i], room.a, room.b, depth);
        }
    }
    for (int i = 0; i < at->rows; i++)
        for (int j = 0; j < at->columns; j++) matmul_same_store_f64(p, at, i, j, room.total[i][j]);
}

static void matmul_same_part(const void *context, int64_t first, int64_t last, int thread) {
    const matmul_same *p = context;
    const bool wide = p->a->dtype == TRINE_F64;
    const int most = wide ? MATMUL_SAME_COLUMNS_F64 : MATMUL_SAME_COLUMNS;
    (void)thread;
    for (int64_t t = first; t < last; t++) {
        const int64_t in_batch = t % (p->row_tiles * p->column_tiles);
        matmul_same_tile at = { .g = t / (p->row_tiles * p->column_tiles),
                                .row = in_batch / p->column_tiles * MATMUL_SAME_ROWS,
                                .column = in_batch % p->column_tiles * most };
        at.rows = (int)(p->m - at.row < MATMUL_SAME_ROWS ? p->m - at.row : MATMUL_SAME_ROWS);
        at.columns = (int)(p->n - at.column < most ? p->n - at.column : most);
        if (wide)
            matmul_same_sums_f64(p, &at);
        else
            FOR_TYPE(p->a->dtype, matmul_same_sums, p, &at);
    }
}

static trine_status matmul_same_launch(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    const int columns = call->tensor[MATMUL_A].dtype == TRINE_F64 ? MATMUL_SAME_COLUMNS_F64 : MATMUL_SAME_COLUMNS;
    const matmul_same p = { .a = &call->tensor[MATMUL_A],
                            .b = &call->tensor[MATMUL_B],
                            .c = trine_call_given(call, MATMUL_C),
                            .bias = trine_call_given(call, MATMUL_BIAS),
                            .d = &call->tensor[MATMUL_D],
                            .m = call->dim[MATMUL_DIM_M],
                            .n = call->dim[MATMUL_DIM_N],
                            .k = call->dim[MATMUL_DIM_K],
                            .row_tiles = (call->dim[MATMUL_DIM_M] + MATMUL_SAME_ROWS - 1) / MATMUL_SAME_ROWS,
                            .column_tiles = (call->dim[MATMUL_DIM_N] + columns - 1) / columns,
                            .alpha = args->alpha + 0.0f,
                            .beta = args->beta + 0.0f,
                            .relu = args->activation == TRINE_ACTIVATION_RELU };
    const int64_t tiles = call->dim[MATMUL_DIM_G] * p.row_tiles * p.column_tiles;
    cpu_shares(call, cpu_team(call, tiles, p.m * p.n * p.k), tiles, matmul_same_part, &p);
    return TRINE_OK;
}
