/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of rows into f32, as they are or transposed, and storing them. */
#ifndef TRINE_CPU_ATTENTION_PACK_H
#define TRINE_CPU_ATTENTION_PACK_H

#include "attention_tile.h"

INLINE vf load_part(const void *data, trine_dtype dtype, int64_t i, int64_t n) {
    return n >= VL ? vload(data, dtype, i) : n > 0 ? vloadn(data, dtype, i, (int)n, 0) : vzero();
}

/* n columns of one row times `factor`, the last vector filled up with zeros.
 * Returns a vector with a NaN iff an element is not finite. */
INLINE vf pack_row(const void *from, int64_t n, float factor, float *to, trine_dtype T) {
    vf finite = vzero();
    for (int64_t c = 0; c < n; c += VL) {
        const vf x = load_part(from, T, c, n - c);
        finite += x * 0.0f;
        put(to + c, x * factor);
    }
    return finite;
}

/* Rows `step` elements apart: rows x n. All finite? Rows of other heads lie between them, which hides the order from
 * the hardware's prefetchers. */
INLINE void pack_rows_typed(const char *from, int64_t step, int64_t rows, int64_t n, float *to, int64_t ld,
                            bool *finite, trine_dtype T) {
    const int64_t bytes = n * (int64_t)vsize(T), ahead = 8 * step * (int64_t)vsize(T);
    vf all = vzero();
    for (int64_t r = 0; r < rows; r++, from += step * (int64_t)vsize(T)) {
        for (int64_t line = 0; r + 8 < rows && line < bytes; line += 64) __builtin_prefetch(from + ahead + line);
        all += pack_row(from, n, 1, to + r * ld, T);
    }
    *finite = !vhasnan(all);
}

/* VL rows from `from` on, VL columns from c on, of which `rows` and n - c exist; `whole`: all. */
INLINE void transpose_square(const char *from, int64_t step, int64_t rows, int64_t n, int64_t c, float *to, int64_t ld,
                             bool whole, trine_dtype T) {
    vf x[VL];
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) {
        const char *row = from + i * step * (int64_t)vsize(T);
        x[i] = whole ? vload(row, T, c) : i < rows ? load_part(row, T, c, n - c) : vzero();
    }
    transpose(x);
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) put(to + i * ld, x[i]);
}

/* to[c][r] = row r, column c; columns of `to` beyond the rows, up to a multiple of NR, are zero.
 * `to` has room for n rounded up to VL rows. */
INLINE void pack_transposed_typed(const char *from, int64_t step, int64_t rows, int64_t n, float *to, int64_t ld,
                                  trine_dtype T) {
    for (int64_t r = 0; r < cpu_round_up(rows, NR); r += VL, from += VL * step * (int64_t)vsize(T)) {
        int64_t c = 0;
        if (r + VL <= rows)
            for (; c + VL <= n; c += VL) transpose_square(from, step, VL, n, c, to + c * ld + r, ld, true, T);
        for (; c < n; c += VL) transpose_square(from, step, rows - r, n, c, to + c * ld + r, ld, false, T);
    }
}

/* A row, multiplied by `factor`, from and to its type. */
INLINE void pack_scaled_typed(const void *from, int64_t n, float factor, float *to, bool *finite, trine_dtype T) {
    *finite = !vhasnan(pack_row(from, n, factor, to, T));
}
INLINE void store_scaled_typed(const float *from, int64_t n, float factor, void *to, trine_dtype T) {
    int64_t c = 0;
    for (; c + VL <= n; c += VL) vstore(to, T, c, get(from + c) * factor);
    if (c < n) vstoren(to, T, c, (int)(n - c), get(from + c) * factor);
}

static inline bool pack_scaled(const void *from, int64_t n, float factor, float *to, trine_dtype dtype) {
    bool finite;
    FOR_TYPE(dtype, pack_scaled_typed, from, n, factor, to, &finite);
    return finite;
}
static inline void store_scaled(const float *from, int64_t n, float factor, void *to, trine_dtype dtype) {
    FOR_TYPE(dtype, store_scaled_typed, from, n, factor, to);
}
static inline bool pack_rows(const void *from, int64_t step, int64_t rows, int64_t n, float *to, int64_t ld,
                             trine_dtype dtype) {
    bool finite;
    FOR_TYPE(dtype, pack_rows_typed, from, step, rows, n, to, ld, &finite);
    return finite;
}
static inline void pack_transposed(const void *from, int64_t step, int64_t rows, int64_t n, float *to, int64_t ld,
                                   trine_dtype dtype) {
    FOR_TYPE(dtype, pack_transposed_typed, from, step, rows, n, to, ld);
}

#endif
