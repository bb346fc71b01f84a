/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form of strided blocks, for kernels: levels of one are dropped, and two that are without a gap on both
 * sides are one (Pearson et al. 2020). In bytes. */
#ifndef TRINE_SPEC_STRIDED_LAYOUT_H
#define TRINE_SPEC_STRIDED_LAYOUT_H

#include "spec/plan.h"

enum { LAYOUT_LEVELS = 4 };

typedef struct layout_level {
    int64_t count, x, packed; /* strides */
} layout_level;

typedef struct layout {
    char *x, *packed;
    int64_t n;          /* bytes of x */
    int64_t start, run; /* where the first run of bytes begins in x, and how long each is */
    int64_t rows;       /* runs */
    int levels;         /* the innermost first */
    layout_level level[LAYOUT_LEVELS];
    bool far;    /* a place is beyond 2^61 */
    bool inside; /* all places are in x */
    bool apart;  /* no two runs have a byte of x in common, as far as strides tell */
} layout;

/* Are runs and levels, from the smallest stride on, each beyond all that is inside of it? */
static inline bool layout_apart(const layout *l) {
    bool taken[LAYOUT_LEVELS] = { false };
    int64_t span = l->run;
    for (int i = 0; i < l->levels; i++) {
        int least = 0;
        while (taken[least]) least++;
        for (int d = least + 1; d < l->levels; d++)
            if (!taken[d] && llabs(l->level[d].x) < llabs(l->level[least].x)) least = d;
        const int64_t stride = llabs(l->level[least].x);
        if (stride < span) return false;
        span += stride * (l->level[least].count - 1);
        taken[least] = true;
    }
    return true;
}

/* `sizes` and `steps` of packed's leading dimensions in x, the outermost first; strides of x in elements. */
static inline layout layout_of(const trine_tensor *x, const trine_tensor *packed, int64_t start, const int64_t *steps) {
    const int64_t size = (int64_t)trine_dtype_size(x->dtype);
    layout l = { .x = x->data,
                 .packed = packed->data,
                 .n = x->shape[0] * size,
                 .start = start * size,
                 .run = packed->shape[LAYOUT_LEVELS] * size,
                 .rows = 1 };
    __int128 low = l.start, high = l.start + (__int128)l.run;
    for (int d = LAYOUT_LEVELS - 1; d >= 0; d--) {
        const layout_level level = { packed->shape[d], steps[d] * size, packed->stride[d] * size };
        if (level.count == 0) return (layout){ 0 };
        if (level.count == 1) continue;
        const __int128 reach = (__int128)(level.count - 1) * level.x;
        low += reach < 0 ? reach : 0, high += reach > 0 ? reach : 0;
        layout_level *last = l.levels > 0 ? &l.level[l.levels - 1] : NULL;
        if (last == NULL && level.x == l.run && level.packed == l.run)
            l.run *= level.count;
        else if (last != NULL && (__int128)last->x * last->count == level.x &&
                 (__int128)last->packed * last->count == level.packed)
            last->count *= level.count;
        else
            l.level[l.levels++] = level;
    }
    l.far = low < -((__int128)1 << 61) || high > (__int128)1 << 61;
    l.inside = low >= 0 && high <= l.n;
    for (int d = 0; d < l.levels; d++) l.rows *= l.level[d].count;
    l.apart = !l.far && layout_apart(&l);
    return l;
}

/* Of a call's arguments. */
#define LAYOUT_OF(call, args, X, PACKED) \
    layout_of(&(call)->tensor[X], &(call)->tensor[PACKED], (args)->start, \
              (const int64_t[]){ (args)->extent, (args)->stride_k, (args)->stride_j, (args)->stride_i })

#endif
