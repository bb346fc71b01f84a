/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates of a row that sample draws from on the CPU: their z and weights, and those of them that are first. */
#ifndef TRINE_CPU_CANDIDATES_H
#define TRINE_CPU_CANDIDATES_H

#include <trine/sample.h>

#include "weights.h"

enum { DIGIT = 11, DIGITS = 1 << DIGIT };
enum { BLOCK = 64 }; /* tokens of whose z the largest is known */

/* Larger numbers for larger z, which is no NaN: those of -0 and 0 are equal. */
INLINE uint32_t order_of(float z) {
    uint32_t bits;
    memcpy(&bits, &z, sizeof bits);
    if (bits << 1 == 0) bits = 0;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

typedef struct row {
    const trine_sample_args *args;
    const void *logits;
    const int32_t *counts; /* NULL: none */
    int64_t v, n;          /* tokens; those that are candidates, with their z and weights */
    int32_t *at;
    float *z, *most; /* most: of each block */
    uint64_t *weight;
    float temperature, heat, inverse;
    int64_t top_k;
    uint64_t top_p, min_p; /* in units of 2^-32 and of 2^-40 */
    uint64_t random;
} row;

INLINE vf penalized(vf z, const row *o, const int32_t *count) {
    const trine_sample_args *args = o->args;
    const vi c = *(const vi_any *)count;
    const vf times = rounded(__builtin_convertvector(c, vf) * args->frequency_penalty);
    vf less = rounded(z * vsel(z > 0, vset(o->inverse), vset(args->repetition_penalty)));
    less = rounded(less - times) - args->presence_penalty;
    return vsel(c > 0, less, z);
}

/* Tokens of a row, and what is known of them. */
typedef struct piece {
    int64_t first, last, kept; /* kept: candidates, which are the first places of the piece */
    float largest;
    bool wrong;                  /* one z is NaN */
    uint64_t sum, digit[DIGITS]; /* of weights; of those by the first digit of z */
} piece;

/* z of a piece, and the largest of each block. */
INLINE void fill_z(const row *o, piece *p, trine_dtype T) {
    vf largest = vset(-INFINITY);
    vi wrong = viset(0);
    for (int64_t first = p->first; first < p->last; first += BLOCK) {
        const int64_t last = first + BLOCK < p->last ? first + BLOCK : p->last;
        vf most = vset(-INFINITY);
        for (int64_t j = first; j < last; j += VL) {
            const int n = last - j < VL ? (int)(last - j) : VL;
            vf z = n == VL ? vload(o->logits, T, j) : vloadn(o->logits, T, j, n, -INFINITY);
            if (o->counts) {
                int32_t count[VL] = { 0 };
                memcpy(count, o->counts + j, (size_t)n * sizeof *count);
                z = penalized(z, o, count);
            }
            z = rounded(z * o->heat);
            wrong |= (z != z) & (viota() < n);
            most = vmax(vsel(viota() < n, z, vset(-INFINITY)), most);
            vstoren(o->z, TRINE_F32, j, n, z);
        }
        o->most[first / BLOCK] = vhmax(most);
        largest = vmax(most, largest);
    }
    p->largest = vhmax(largest);
    p->wrong = vany(wrong);
}

/* Where those of n end that are first in the order of z and then of the token, and whose parts have a sum of `need` at
 * least: the order of the last, and how much of `need` is left for its equals. A part is 1, or the weight. */
static void find_last(const float *z, const uint64_t *weight, int64_t n, uint64_t need, uint32_t *order_out,
                      uint64_t *left_out) {
    uint32_t known = 0, mask = 0;
    for (int end = 32; end > 0; end -= DIGIT) {
        const int low = end > DIGIT ? end - DIGIT : 0;
        const uint32_t digit = (1u << (end - low)) - 1;
        uint64_t sum[DIGITS] = { 0 };
        int64_t d = digit;
        for (int64_t j = 0; j < n; j++) {
            const uint32_t order = order_of(z[j]);
            if ((order & mask) == known) sum[order >> low & digit] += weight ? weight[j] : 1;
        }
        for (; sum[d] < need; d--) need -= sum[d];
        known |= (uint32_t)d << low;
        mask |= digit << low;
    }
    *order_out = known;
    *left_out = need;
}

/* Leaves these of the candidates, in the order of their tokens. */
static void keep_first(row *o, bool weights, uint64_t need) {
    uint32_t last;
    uint64_t left;
    int64_t kept = 0;
    find_last(o->z, weights ? o->weight : NULL, o->n, need, &last, &left);
    for (int64_t j = 0; j < o->n; j++) {
        const uint32_t order = order_of(o->z[j]);
        if (order < last || (order == last && left == 0)) continue;
        const uint64_t weight = weights ? o->weight[j] : 1;
        if (order == last) left = left > weight ? left - weight : 0;
        o->z[kept] = o->z[j];
        o->at[kept] = o->at[j];
        o->weight[kept++] = weight;
    }
    o->n = kept;
}

static uint64_t sum_of(const row *o) {
    uint64_t sum = 0;
    for (int64_t j = 0; j < o->n; j++) sum += o->weight[j];
    return sum;
}

/* Weights of places first .. last-1, and their sum. */
static uint64_t fill_weights(const row *o, float largest, int64_t first, int64_t last) {
    float part[VL] = { 0 };
    uint64_t sum = 0;
    for (int64_t j = first; j < last; j += VL) {
        const int n = last - j < VL ? (int)(last - j) : VL;
        const vf z = vloadn(o->z, TRINE_F32, j, n, -INFINITY);
        *(vf_any *)part = vsel(z == largest, vset(0x1p40f), power(z - largest));
        for (int k = 0; k < n; k++) {
            const uint64_t weight = (uint64_t)(int64_t)part[k];
            sum += o->weight[j + k] = weight < o->min_p ? 0 : weight;
        }
    }
    return sum;
}

/* Leaves the top_k candidates. As many blocks as that have a z at least as large as the last of their largest. */
static void keep_largest(row *o) {
    const int64_t blocks = (o->v + BLOCK - 1) / BLOCK;
    uint32_t least = 0;
    uint64_t left;
    if (o->top_k <= blocks) find_last(o->most, NULL, blocks, (uint64_t)o->top_k, &least, &left);
    o->n = 0;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t last = (b + 1) * BLOCK < o->v ? (b + 1) * BLOCK : o->v;
        for (int64_t j = b * BLOCK; j < last && order_of(o->most[b]) >= least; j++) {
            if (order_of(o->z[j]) < least) continue;
            o->z[o->n] = o->z[j];
            o->at[o->n++] = (int32_t)j;
        }
    }
    keep_first(o, false, (uint64_t)o->top_k);
}

#endif
