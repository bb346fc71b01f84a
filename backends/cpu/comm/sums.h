/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and largest elements of all ranks: rank by rank in their order, in f32, or in f64 if T is. */
#ifndef TRINE_CPU_COMM_SUMS_H
#define TRINE_CPU_COMM_SUMS_H

#include <trine/comm.h>

#include "backends/cpu/core/vec.h"
#include "copy.h"

enum { SUM_PIECE = 4096 }; /* elements that a thread takes at a time */

typedef struct sums {
    trine_dtype T;
    int32_t kind;
    int ranks;
    int64_t n;
    const char *from[TRINE_MAX_RANKS];
    char *to;
} sums;

/* The first, unless the other is larger, or NaN where the first is not. */
INLINE vf larger(vf a, vf b) { return vsel((a >= b) | (a != a), a, b); }
INLINE double larger_f64(double a, double b) { return a >= b || a != a ? a : b; }

INLINE vf sum_vector(const sums *s, int64_t i, int count, trine_dtype T, bool max) {
    vf all = count == VL ? vload(s->from[0], T, i) : vloadn(s->from[0], T, i, count, 0);
    for (int r = 1; r < s->ranks; r++) {
        const vf x = count == VL ? vload(s->from[r], T, i) : vloadn(s->from[r], T, i, count, 0);
        all = max ? larger(all, x) : all + x;
    }
    return all;
}

INLINE void sum_range(const sums *s, int64_t first, int64_t last, bool max, trine_dtype T) {
    int64_t i = first;
    for (; i + VL <= last; i += VL) vstore(s->to, T, i, sum_vector(s, i, VL, T, max));
    if (i < last) vstoren(s->to, T, i, (int)(last - i), sum_vector(s, i, (int)(last - i), T, max));
}

INLINE void sum_range_f64(const sums *s, int64_t first, int64_t last, bool max) {
    enum { BLOCK = 64 };
    for (int64_t i = first; i < last; i += BLOCK) {
        double all[BLOCK];
        const int64_t count = last - i < BLOCK ? last - i : BLOCK;
        memcpy(all, s->from[0] + i * 8, (size_t)count * 8);
        for (int r = 1; r < s->ranks; r++) {
            double x[BLOCK];
            memcpy(x, s->from[r] + i * 8, (size_t)count * 8);
            for (int64_t k = 0; k < count; k++) all[k] = max ? larger_f64(all[k], x[k]) : all[k] + x[k];
        }
        memcpy(s->to + i * 8, all, (size_t)count * 8);
    }
}

static void sum_pieces(const void *context, int64_t first, int64_t last, int thread) {
    const sums *s = context;
    const int64_t begin = first * SUM_PIECE, end = last * SUM_PIECE < s->n ? last * SUM_PIECE : s->n;
    const bool max = s->kind == TRINE_RANKS_MAX;
    (void)thread;
    switch (s->T) {
    case TRINE_F64: max ? sum_range_f64(s, begin, end, true) : sum_range_f64(s, begin, end, false); break;
    case TRINE_BF16:
        max ? sum_range(s, begin, end, true, TRINE_BF16) : sum_range(s, begin, end, false, TRINE_BF16);
        break;
    case TRINE_F16: max ? sum_range(s, begin, end, true, TRINE_F16) : sum_range(s, begin, end, false, TRINE_F16); break;
    default: max ? sum_range(s, begin, end, true, TRINE_F32) : sum_range(s, begin, end, false, TRINE_F32);
    }
}

static inline void sum_all(const trine_call *call, const sums *s) {
    const int64_t pieces = (s->n + SUM_PIECE - 1) / SUM_PIECE;
    const int64_t bytes = (s->ranks + 1) * s->n * (int64_t)trine_dtype_size(s->T);
    cpu_shares(call, cpu_team(call, pieces, bytes), pieces, sum_pieces, s);
}

#endif
