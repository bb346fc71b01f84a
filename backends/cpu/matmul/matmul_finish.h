/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a matrix product: from sums to act(alpha scales sum + beta c + bias) in d. */
#ifndef TRINE_CPU_MATMUL_FINISH_H
#define TRINE_CPU_MATMUL_FINISH_H

#include <trine/elementwise.h>

#include <trine/matmul.h>

#include "backends/cpu/elementwise/gelu.h"

/* The scales of d's rows, or columns; strides in elements, 0 where one is for all. */
typedef struct scales {
    const float *data; /* NULL: absent */
    int64_t batch, step;
} scales;

/* Where sums go; strides in bytes, 0 where c is broadcast. */
typedef struct target {
    char *d;
    const char *c, *bias; /* NULL: absent */
    int64_t d_batch, d_row, c_batch, c_row, c_column;
    trine_dtype type, bias_type; /* of d and c; of bias */
    float alpha, beta;
    int32_t activation;
    scales rows, columns;
} target;

/* Are floats the sums times alpha? */
static inline bool target_plain(const target *t) {
    return t->type == TRINE_F32 && !t->c && !t->bias && !t->activation && !t->rows.data && !t->columns.data;
}

/* What multiplies the sums of a row, but for the scales of single columns; and those, or NULL. */
typedef struct factors {
    double whole;
    const float *column;
} factors;

static inline factors factors_of(const target *t, int64_t batch, int64_t row) {
    const scales *r = &t->rows, *c = &t->columns;
    factors f = { .whole = (double)t->alpha };
    if (r->data) f.whole *= (double)r->data[batch * r->batch + row * r->step];
    if (c->data && c->step == 0) f.whole *= (double)c->data[batch * c->batch];
    if (c->data && c->step != 0) f.column = c->data + batch * c->batch;
    return f;
}

INLINE vf activate(vf x, int32_t activation) {
    switch (activation) {
    case TRINE_ACTIVATION_RELU: return vsel(x < vzero(), vzero(), x);
    case TRINE_ACTIVATION_GELU_TANH: return vgelu(TRINE_GELU_TANH, x);
    case TRINE_ACTIVATION_GELU_ERF: return vgelu(TRINE_GELU_ERF, x);
    case TRINE_ACTIVATION_SILU: return x * vsigmoid(x);
    default: return x;
    }
}

INLINE vf load_part(const void *data, trine_dtype type, int n) {
    return n < VL ? vloadn(data, type, 0, n, 0) : vload(data, type, 0);
}

/* One row of n sums, from element (row, column) of the batch on; `sums` may be read in whole vectors. */
INLINE void finish_row(const target *t, const float *sums, const factors *f, char *d, const char *c, int64_t column,
                       int64_t n, trine_dtype type) {
    for (int64_t j = 0; j < n; j += VL) {
        const int part = n - j < VL ? (int)(n - j) : VL;
        vf x = *(const vf_any *)(sums + j) * (float)f->whole;
        if (f->column) x *= load_part(f->column + column + j, TRINE_F32, part);
        if (c) {
            const char *at = c + (column + j) * t->c_column;
            x = vfma(vset(t->beta), t->c_column ? load_part(at, type, part) : vset(sload(at, type, 0)), x);
        }
        if (t->bias) x += load_part(t->bias + (column + j) * (int64_t)vsize(t->bias_type), t->bias_type, part);
        if (t->activation) x = activate(x, t->activation);
        if (part == VL)
            vstore(d, type, column + j, x);
        else
            vstoren(d, type, column + j, part, x);
    }
}

static void finish_row_f64(const target *t, const double *sums, const factors *f, char *d, const char *c,
                           int64_t column, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        double x = sums[j] * f->whole;
        if (f->column) x *= (double)f->column[column + j];
        if (c) x += (double)t->beta * *(const double *)(c + (column + j) * t->c_column);
        if (t->bias) x += ((const double *)t->bias)[column + j];
        switch (t->activation) {
        case TRINE_ACTIVATION_RELU: x = x < 0 ? 0 : x; break;
        case TRINE_ACTIVATION_GELU_TANH:
            x = x / (1 + exp(-1.5957691216057307117598 * (x + 0.044715 * x * x * x)));
            break;
        case TRINE_ACTIVATION_GELU_ERF: x = x * 0.5 * erfc(x * -0.70710678118654752440084); break;
        case TRINE_ACTIVATION_SILU: x = x / (1 + exp(-x)); break;
        default: break;
        }
        ((double *)d)[column + j] = x;
    }
}

/* Modulo 2^32; alpha and beta are integers. */
static void finish_row_i32(const target *t, const int32_t *sums, char *d, const char *c, int64_t column, int64_t n) {
    const uint32_t alpha = (uint32_t)(int32_t)t->alpha, beta = (uint32_t)(int32_t)t->beta;
    for (int64_t j = 0; j < n; j++) {
        uint32_t x = (uint32_t)sums[j] * alpha;
        if (c) x += beta * *(const uint32_t *)(c + (column + j) * t->c_column);
        if (t->bias) x += ((const uint32_t *)t->bias)[column + j];
        ((int32_t *)d)[column + j] = t->activation == TRINE_ACTIVATION_RELU && (int32_t)x < 0 ? 0 : (int32_t)x;
    }
}

typedef struct block_place {
    int64_t batch, row, column, rows, columns;
} block_place;

INLINE void finish_rows(const target *t, const void *sums, int64_t stride, const block_place *at, trine_dtype type) {
    const int64_t size = type == TRINE_F64 ? 8 : 4;
    const bool plain = !t->c && !t->bias && !t->activation && !(t->columns.data && t->columns.step);
    const int64_t whole = at->columns / VL * VL;
    factors f = factors_of(t, at->batch, at->row);
    for (int64_t i = 0; i < at->rows; i++) {
        char *d = t->d + at->batch * t->d_batch + (at->row + i) * t->d_row;
        const char *c = t->c ? t->c + at->batch * t->c_batch + (at->row + i) * t->c_row : NULL,
                   *from = (const char *)sums + i * stride * size;
        if (t->rows.data && i > 0) f = factors_of(t, at->batch, at->row + i);
        if (type == TRINE_F64 && plain)
            for (int64_t j = 0; j < at->columns; j++)
                ((double *)d)[at->column + j] = ((const double *)from)[j] * f.whole;
        else if (type == TRINE_F64)
            finish_row_f64(t, (const double *)from, &f, d, c, at->column, at->columns);
        else if (type == TRINE_I32 && plain && t->alpha == 1) {
            for (int64_t j = 0; j < whole; j += VL)
                *(vi_any *)((int32_t *)d + at->column + j) = *(const vi_any *)((const int32_t *)from + j);
            memcpy((int32_t *)d + at->column + whole, (const int32_t *)from + whole,
                   (size_t)((at->columns - whole) * size));
        } else if (type == TRINE_I32)
            finish_row_i32(t, (const int32_t *)from, d, c, at->column, at->columns);
        else if (plain) {
            for (int64_t j = 0; j < whole; j += VL)
                vstore(d, type, at->column + j, *(const vf_any *)((const float *)from + j) * (float)f.whole);
            if (whole < at->columns)
                vstoren(d, type, at->column + whole, (int)(at->columns - whole),
                        *(const vf_any *)((const float *)from + whole) * (float)f.whole);
        } else
            finish_row(t, (const float *)from, &f, d, c, at->column, at->columns, type);
    }
}

/* A block of sums, whose rows are `stride` sums apart. */
static inline void finish(const target *t, const void *sums, int64_t stride, const block_place *at) {
    switch (t->type) {
    case TRINE_F64: finish_rows(t, sums, stride, at, TRINE_F64); break;
    case TRINE_I32: finish_rows(t, sums, stride, at, TRINE_I32); break;
    case TRINE_F32: finish_rows(t, sums, stride, at, TRINE_F32); break;
    case TRINE_F16: finish_rows(t, sums, stride, at, TRINE_F16); break;
    default: finish_rows(t, sums, stride, at, TRINE_BF16); break;
    }
}

#endif
