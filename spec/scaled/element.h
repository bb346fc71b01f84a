/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of products with scales of blocks share: the operands, and an element of the product with its
 * errors. */
#ifndef TRINE_SPEC_SCALED_ELEMENT_H
#define TRINE_SPEC_SCALED_ELEMENT_H

#include <stdlib.h>

#include <trine/matmul.h>

#include <trine/scaled.h>

#include "blocks.h"
#include "spec/matmul/product.h"
#include "spec/quantize/codes.h"

/* Bound. The parts of k: s_t the sum of the products of part t, f_t = a_scale b_scale of its blocks, M = |alpha|
 * sum_l |f a b| + |bias|, u = 2^-24.
 *
 * A part has P <= 128 products. Those of e4m3, e5m2, e2m1 and whole numbers below 2^9 are exact in f32, and formed by a
 * unit for 16 bits too, whose cuts count 2.25 times as spec/matmul/element.h says, an operand counting as the smallest
 * normal f16, 2^-14, at least, below which are subnormals of e5m2 alone: s_t is off by 2.25 P u sum |a b|.
 *
 * Products of two types of float8 may be formed by their own units, which keep 13 bits below the largest of 32 and of
 * the sum so far (measured, as told there): s_t is off by (P + 2 ceil(P/32)) 1.02 2^-13 sum |a b| besides, an operand
 * counting as its type's smallest normal at least.
 *
 * Whole numbers are below 256 in a and 383 in b: sums of 128 products are below 2^24, and exact in any order. Then s_t
 * is multiplied by both scales, two roundings, and added up, N and as many more as lanes of a vector are added: 5.
 * alpha, its product and the bias are 3, and 6 are for the products of errors.
 *
 * Underflow: f_t, or s_t times a scale, may be subnormal, and then be off by 2^-150 before the other factor is applied.
 * Overflow: where the sum of |alpha| (1 + |a_scale|) (1 + |b_scale|) (1 + sum |a b|) exceeds the largest f32 something
 * may be infinite, as it may where a factor is.
 *
 * The number of roundings depends on types and blocks, and so stands in the magnitude. */
typedef struct operand {
    double *value; /* rows k */
    const double *scale;
    int64_t rows, k, block, columns, row_block; /* columns: of scales */
    double least;                               /* what an operand counts as at least in a unit's sum */
    bool whole, float8;                         /* of whole numbers; are both operands of float8? */
} operand;

/* Where an operand is: rows of bytes, and scales; its type and that of the other. */
typedef struct operand_place {
    const double *data, *scale; /* scale: NULL if absent */
    int64_t rows, bytes, scale_rows, scale_columns;
    trine_dtype type, other;
    int32_t offset;
    bool is_b;
} operand_place;

static inline bool is_float8(trine_dtype type) { return type == TRINE_E4M3 || type == TRINE_E5M2; }

/* Its rows have k elements. The caller frees `value`. */
static inline operand operand_of(const operand_place *at, int64_t k, int32_t format) {
    const bool packed = at->bytes < k, e2m1 = packed && format >= TRINE_SCALED_E2M1;
    const codes kind = { .bits = 4, .sign = at->type == TRINE_I8, .e2m1 = e2m1 };
    operand o = { .scale = at->scale,
                  .rows = at->rows,
                  .k = k,
                  .columns = at->scale ? at->scale_columns : 1,
                  .whole = !e2m1 && (at->type == TRINE_I8 || at->type == TRINE_U8),
                  .float8 = is_float8(at->type) && is_float8(at->other) };
    o.least = o.float8 && at->type == TRINE_E4M3 ? 0x1p-6 : 0x1p-14;
    o.block = scaled_block(k, o.columns), o.row_block = scaled_block(o.rows, o.scale ? at->scale_rows : 1);
    o.value = malloc(sizeof *o.value * (size_t)(o.rows * k + 1));
    if (o.value == NULL) abort();
    for (int64_t i = 0; i < o.rows; i++)
        for (int64_t l = 0; l < k; l++) {
            const double *row = at->data + i * at->bytes;
            const double x = packed ? codes_get(&kind, row, l) : row[l];
            o.value[i * k + l] = at->is_b && o.whole ? x - at->offset : x;
        }
    return o;
}

static inline double operand_scale(const operand *o, int64_t i, int64_t l) {
    return o->scale ? o->scale[i / o->row_block * o->columns + l / o->block] : 1;
}

typedef struct total {
    long double sum;
    double size, reach, lost;
    int64_t parts;
    bool beyond, nan;
} total;

static inline void add_part(total *t, const operand *a, const operand *b, int64_t i, int64_t j, int64_t from,
                            int64_t to) {
    const double f = operand_scale(a, i, from), g = operand_scale(b, j, from), *x = a->value + i * a->k,
                 *y = b->value + j * b->k;
    long double sum = 0;
    double size = 0;
    for (int64_t l = from; l < to; l++) {
        sum += (long double)x[l] * y[l];
        if (x[l] != 0 && y[l] != 0)
            size += fmax(trine_finite_abs(x[l]), a->least) * fmax(trine_finite_abs(y[l]), b->least);
        t->beyond |= !isfinite(x[l]) || !isfinite(y[l]);
        t->nan |= isnan(x[l]) || isnan(y[l]);
    }
    t->sum += sum * f * g;
    t->size += size * fabs(f * g);
    t->reach += (1 + size) * (1 + fabs(f)) * (1 + fabs(g));
    t->lost += 0x1p-149 * (size + fabs(f) + fabs(g) + 1);
    t->beyond |= !isfinite(f) || !isfinite(g);
    t->nan |= isnan(f) || isnan(g);
    t->parts++;
}

typedef struct scaled_result {
    double value, magnitude, slack;
} scaled_result;

/* What goes on behind a sum: factor act(alpha sum + bias), where bias and factor may be NULL. */
typedef struct scaled_finish {
    double alpha;
    const double *bias, *factor;
    int32_t activation;
    trine_dtype out;
} scaled_finish;

/* Of row i of a and row j of b. */
static inline scaled_result scaled_element(const operand *a, const operand *b, int64_t i, int64_t j,
                                           const scaled_finish *f) {
    const bool curved = f->activation > TRINE_ACTIVATION_RELU;
    const double alpha = f->alpha, times = f->factor ? *f->factor : 1, whole = fabs(times),
                 added = f->bias ? trine_finite_abs(*f->bias) : 0, most = fmin((double)a->k, SCALED_PART),
                 part = a->whole && b->whole ? 0 : 2.25 * most,
                 cut = a->float8 ? (most + 2 * ceil(most / 32)) * 1.02 * 0x1p11 : 0;
    total t = { .beyond = (f->bias && !isfinite(*f->bias)) || !isfinite(alpha) || !isfinite(times),
                .nan = (f->bias && isnan(*f->bias)) || isnan(alpha) || isnan(times) };
    for (int64_t at = 0, end; at < a->k; at = end) {
        end = scaled_end(at, a->k, a->block, b->block);
        add_part(&t, a, b, i, j, at, end);
    }
    const long double sum = alpha * t.sum + (f->bias ? *f->bias : 0);
    scaled_result r = { .value = (double)(times * activate(f->activation, sum)) };
    r.magnitude = (part + cut + (double)t.parts + (f->factor ? 17 : 16)) * (fabs(alpha) * t.size + added) * whole *
                  (curved ? 1.13 : 1) * (1 + trine_unit_roundoff(f->out));
    r.slack = trine_smallest_normal(f->out) * trine_unit_roundoff(f->out) +
              2 * (fabs(alpha) * t.lost + (double)a->k * 0x1p-148) * whole;
    if (f->factor) r.slack += 0x1p-147 * fmax(1, whole);
    if (curved && isfinite((double)sum)) r.slack += 12 * 0x1p-24 * fabs((double)sum) * whole;
    if (t.beyond || !(((1 + fabs(alpha)) * t.reach + added) * fmax(1, whole) < trine_largest(TRINE_F32)))
        r.magnitude = INFINITY, r.slack = 0;
    if (isnan(r.value) && !t.nan) r.value = INFINITY;
    return r;
}

/* The types that operands, scales, biases and outputs have. */
#define SCALED_OUTPUTS(types) types " O=f32 V=f32", types " O=bf16 V=f32|bf16", types " O=f16 V=f32|f16"
#define SCALED_PAIR(types) \
    SCALED_OUTPUTS(types " S=f32 R=f32|bf16|f16"), SCALED_OUTPUTS(types " S=e8m0 R=e8m0"), \
        SCALED_OUTPUTS(types " S=e4m3 R=e4m3")
#define SCALED_TYPES \
    SCALED_PAIR("A=e4m3|e5m2 B=e4m3|e5m2"), SCALED_PAIR("A=i8 B=i8|u8"), SCALED_PAIR("A=e4m3 B=i8|u8"), \
        SCALED_PAIR("A=u8 B=u8")

#endif
