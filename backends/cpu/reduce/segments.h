/* SPDX-License-Identifier: Apache-2.0 */
/* What segment_reduce and its gradient share on the CPU: a thread has a segment's column, a vector of columns at a
 * time, whose rows it goes through in their order. */
#ifndef TRINE_CPU_SEGMENTS_H
#define TRINE_CPU_SEGMENTS_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_math.h"

enum { SEGMENT_VECTORS = 4 }; /* side by side, so that a row's part is whole cache lines */

typedef struct segments {
    const trine_tensor *x, *offsets, *dy, *out; /* dy: of the gradient */
    int64_t p, e, n, pieces;                    /* of a row */
    int32_t kind;
} segments;

/* Rows of a segment, and the columns from `column` on, `m` of the last vector. */
typedef struct segment_part {
    int64_t first, end, column;
    int m;
} segment_part;

INLINE int64_t segment_offset(const segments *s, int64_t i) {
    return s->offsets->dtype == TRINE_I64 ? ((const int64_t *)s->offsets->data)[i]
                                          : ((const int32_t *)s->offsets->data)[i];
}

static inline trine_status segments_ascend(const trine_call *call, const char *op, const segments *s) {
    for (int64_t i = 0, before = 0; i <= s->e; before = segment_offset(s, i++))
        if (segment_offset(s, i) < before || segment_offset(s, i) > s->p)
            return call->host->error(TRINE_ERR_ARGUMENT,
                                     "%s: offsets[%" PRId64 "] is %" PRId64 ", but must ascend from 0 to %" PRId64
                                     " at most",
                                     op, i, segment_offset(s, i), s->p);
    return TRINE_OK;
}

INLINE char *segment_row(const trine_tensor *t, int64_t i) {
    return (char *)t->data + i * t->stride[0] * (int64_t)vsize(t->dtype);
}
/* The vector k of a part, of a row that lies at `row`. */
INLINE vf segment_load(const char *row, const segment_part *a, int k, trine_dtype T) {
    return a->m == VL ? vload(row, T, a->column + k * VL) : vloadn(row, T, a->column, a->m, 0);
}
INLINE void segment_store(char *row, const segment_part *a, int k, vf x, trine_dtype T) {
    if (a->m == VL)
        vstore(row, T, a->column + k * VL, x);
    else
        vstoren(row, T, a->column, a->m, x);
}

/* body(s, part, vectors, T) for each part of the segments first .. last-1 of a share, with constants but for the part.
 * */
#define EACH_SEGMENT_PART(s, begin, finish, body, T) \
    for (int64_t k_ = (begin); k_ < (finish); k_++) { \
        const int64_t i_ = k_ / (s)->pieces; \
        const int64_t step_ = SEGMENT_VECTORS * VL, at_ = k_ % (s)->pieces * step_; \
        segment_part part_ = { segment_offset(s, i_), segment_offset(s, i_ + 1), at_, VL }; \
        if (at_ + step_ <= (s)->n) { \
            body(s, i_, &part_, SEGMENT_VECTORS, T); \
            continue; \
        } \
        for (; part_.column + VL <= (s)->n; part_.column += VL) body(s, i_, &part_, 1, T); \
        part_.m = (int)((s)->n - part_.column); \
        if (part_.m > 0) body(s, i_, &part_, 1, T); \
    }

/* The same for the kind of the call: sum_part, most_part, power_part or product_part. */
#define EACH_SEGMENT_OF_KIND(s, begin, finish, T) \
    switch ((s)->kind) { \
    case TRINE_SEGMENT_SUM: \
    case TRINE_SEGMENT_MEAN: EACH_SEGMENT_PART(s, begin, finish, sum_part, T) break; \
    case TRINE_SEGMENT_MAX: \
    case TRINE_SEGMENT_MIN: EACH_SEGMENT_PART(s, begin, finish, most_part, T) break; \
    case TRINE_SEGMENT_LOGSUMEXP: EACH_SEGMENT_PART(s, begin, finish, power_part, T) break; \
    default: EACH_SEGMENT_PART(s, begin, finish, product_part, T) \
    }

/* The larger, or the NaN. */
INLINE vi segment_beats(vf x, vf most) { return ~(x <= most) & (most == most); }

/* Of -x where a minimum is sought. */
INLINE vf segment_signed(vf x, bool least) { return least ? -x : x; }

/* ------------------------------------------------------------------------------------------------------- exponentials
 * */

/* The maximum of a column, what is subtracted from its elements, and the sum of their powers, which is 1 where the
 * maximum is infinite. */
typedef struct segment_power {
    vf most, shift, sum;
} segment_power;

INLINE void segment_powers(const segments *s, const segment_part *a, int vectors, segment_power *p, trine_dtype T) {
    for (int k = 0; k < vectors; k++) p[k].most = vset(-INFINITY), p[k].sum = vzero();
    for (int64_t i = a->first; i < a->end; i++)
        for (int k = 0; k < vectors; k++) {
            const vf x = segment_load(segment_row(s->x, i), a, k, T);
            p[k].most = vsel(segment_beats(x, p[k].most), x, p[k].most);
        }
    for (int k = 0; k < vectors; k++) p[k].shift = vsel(p[k].most == vset(-INFINITY), vzero(), p[k].most);
    for (int64_t i = a->first; i < a->end; i++)
        for (int k = 0; k < vectors; k++) p[k].sum += vexp(segment_load(segment_row(s->x, i), a, k, T) - p[k].shift);
    for (int k = 0; k < vectors; k++) p[k].sum = vsel(vabs(p[k].most) == vset(INFINITY), vset(1), p[k].sum);
}

/* ----------------------------------------------------------------------------------------------------------- products
 * */

/* The product of finite numbers other than 0 is m 2^e with 1 <= m < 2; the others are counted. Its sign is the highest
 * bit of `sign`. */
typedef struct segment_product {
    vf m;
    vi e, zeros, infs, nans;
    vu sign;
} segment_product;

INLINE segment_product segment_one(void) { return (segment_product){ .m = vset(1) }; }

/* m 2^e with m in [1, 4) */
INLINE void segment_normalize(segment_product *p) {
    const vi bits = (vi)p->m;
    p->e += (bits >> 23) - 127;
    p->m = (vf)((bits & 0x7fffff) | 0x3f800000);
}
INLINE segment_product segment_factor(vf x) {
    const vf size = vabs(x);
    const vi zero = size == vzero(), inf = size == vset(INFINITY), nan = x != x, tiny = size < 0x1p-126f;
    segment_product p = { .e = tiny & ~zero & viset(-24), .zeros = -zero, .infs = -inf, .nans = -nan, .sign = (vu)x };
    p.m = vsel(zero | inf | nan, vset(1), vsel(tiny, size * 0x1p24f, size));
    segment_normalize(&p);
    return p;
}
INLINE void segment_multiply(segment_product *p, segment_product by) {
    p->m *= by.m;
    p->e += by.e;
    segment_normalize(p);
    p->zeros += by.zeros;
    p->infs += by.infs;
    p->nans += by.nans;
    p->sign ^= by.sign;
}
/* Without a factor that it has. */
INLINE segment_product segment_without(segment_product p, segment_product by) {
    return (segment_product){ p.m / by.m,       p.e - by.e,       p.zeros - by.zeros,
                              p.infs - by.infs, p.nans - by.nans, p.sign ^ by.sign };
}

INLINE vi segment_clamp(vi x, int32_t low, int32_t high) {
    x = visel(x < low, viset(low), x);
    return visel(x > high, viset(high), x);
}
/* Rounded once: the first factor leaves a normal number. */
INLINE vf segment_value(segment_product p) {
    const vi first = segment_clamp(p.e, -100, 100), rest = segment_clamp(p.e - first, -126, 126);
    vf size = p.m * vbits((first + 127) << 23) * vbits((rest + 127) << 23);
    size = vsel(p.infs > 0, vset(INFINITY), size);
    size = vsel(p.zeros > 0, vzero(), size);
    size = vsel((p.nans > 0) | ((p.zeros > 0) & (p.infs > 0)), vset(NAN), size);
    return (vf)((vu)size | (p.sign & 0x80000000u));
}

#endif
