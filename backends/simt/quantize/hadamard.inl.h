/* SPDX-License-Identifier: Apache-2.0 */
/* hadamard on devices. A block has a row, or several, as floats in shared memory; three stages of sums and differences
 * at a time are made in registers.
 *
 * NOTES. Floor: x once, y once. Rows of more than 8192 elements are written and read once more, as floats. */
#include "hadamard.h"
#include "backends/simt/core/simt.h"

/* Where element i is: so that threads 8 elements apart, in runs of 64, have banks of their own. */
DEVICE int hadamard_place(int i) { return i + (i >> 6) * 8; }

template <int STAGES> DEVICE void hadamard_stages(float (&x)[1 << STAGES]) {
#pragma unroll
    for (int half = 1; half < 1 << STAGES; half *= 2)
#pragma unroll
        for (int k = 0; k < 1 << STAGES; k++)
            if ((k & half) == 0) {
                const float a = x[k], b = x[k + half];
                x[k] = a + b;
                x[k + half] = a - b;
            }
}

/* Stages `from` .. from + STAGES - 1 of `count` elements. */
template <int STAGES> DEVICE void hadamard_pass(float *row, int count, int from) {
    constexpr int R = 1 << STAGES;
#pragma unroll 1
    for (int o = thread_index(); o < count / R; o += SIMT_THREADS) {
        const int low = o & ((1 << from) - 1), first = (o >> from << (from + STAGES)) + low;
        float x[R];
#pragma unroll
        for (int k = 0; k < R; k++) x[k] = row[hadamard_place(first + (k << from))];
        hadamard_stages<STAGES>(x);
#pragma unroll
        for (int k = 0; k < R; k++) row[hadamard_place(first + (k << from))] = x[k];
    }
    sync_block();
}

/* put(b, sum) for the rows b of the matrix: four sums, each of a quarter of the terms. */
template <int M, class Put> DEVICE void hadamard_matrix(const uint32_t *signs, const float (&x)[M], const Put &put) {
    constexpr int SUMS = M < 4 ? M : 4;
#pragma unroll 1
    for (int b = 0; b < M; b++) {
        const uint32_t row = signs[b];
        float sum[SUMS];
#pragma unroll
        for (int c = 0; c < M; c++) {
            const float term = float_of_bits(bits_of_float(x[c]) ^ (row << (31 - c) & 0x80000000u));
            sum[c % SUMS] = c < SUMS ? term : sum[c % SUMS] + term;
        }
        if constexpr (M == 2)
            put(b, sum[0] + sum[1]);
        else
            put(b, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
}

template <int M> DEVICE void hadamard_columns(const hadamard_params &p, float *row, int count) {
#pragma unroll 1
    for (int column = thread_index(); column < count / M; column += SIMT_THREADS) {
        const int part = column >> p.stages, first = part * p.n + (column & (p.size - 1));
        float x[M];
#pragma unroll
        for (int c = 0; c < M; c++) x[c] = row[hadamard_place(first + c * p.size)];
        hadamard_matrix<M>(p.signs, x, [&](int b, float sum) { row[hadamard_place(first + b * p.size)] = sum; });
    }
    sync_block();
}

/* Where a part is. */
template <class T>
DEVICE typename T::bits *hadamard_part(const hadamard_params &p, const simt_rows &rows, int64_t item) {
    const int64_t row = divides_fast(p.items) ? (int64_t)quotient((uint32_t)item, p.parts) : item / p.parts.by;
    return (typename T::bits *)rows.data + row * rows.row + (item - row * p.parts.by) * p.n;
}

template <class From, class To> DEVICE void hadamard_block(const hadamard_params &p) {
    SHARED float row[HADAMARD_BLOCK / 64 * 72];
    const int64_t item = block_index() * p.together;
    const int parts = p.items - item < p.together ? (int)(p.items - item) : p.together, count = parts * p.n;
    const bool vectors = p.n % VECTOR == 0, begun = p.stages >= 3;
    float x[VECTOR];

#pragma unroll 1
    for (int u = thread_index(); vectors && u < count / VECTOR; u += SIMT_THREADS) {
        const int part = (int)quotient((uint32_t)u, p.units), at = (u - part * (int)p.units.by) * VECTOR;
        load<From>(x, hadamard_part<From>(p, p.x, item + part), lane{ at, p.n, p.x_aligned });
        if (begun) hadamard_stages<3>(x);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) row[hadamard_place(u * VECTOR) + k] = x[k];
    }
#pragma unroll 1
    for (int i = thread_index(); !vectors && i < count; i += SIMT_THREADS)
        row[hadamard_place(i)] = From::get(hadamard_part<From>(p, p.x, item + i / p.n)[i % p.n]);
    sync_block();

    int stage = begun ? 3 : 0;
#pragma unroll 1
    for (; stage + 3 <= p.stages; stage += 3) hadamard_pass<3>(row, count, stage);
    if (p.stages - stage == 2) hadamard_pass<2>(row, count, stage);
    if (p.stages - stage == 1) hadamard_pass<1>(row, count, stage);
    if (p.order == 12) hadamard_columns<12>(p, row, count);
    if (p.order == 20) hadamard_columns<20>(p, row, count);
    if (p.order == 28) hadamard_columns<28>(p, row, count);

#pragma unroll 1
    for (int u = thread_index(); vectors && u < count / VECTOR; u += SIMT_THREADS) {
        const int part = (int)quotient((uint32_t)u, p.units), at = (u - part * (int)p.units.by) * VECTOR;
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] = row[hadamard_place(u * VECTOR) + k] * p.scale;
        store<To>(x, hadamard_part<To>(p, p.y, item + part), lane{ at, p.n, p.y_aligned });
    }
#pragma unroll 1
    for (int i = thread_index(); !vectors && i < count; i += SIMT_THREADS)
        hadamard_part<To>(p, p.y, item + i / p.n)[i % p.n] = To::put(row[hadamard_place(i)] * p.scale);
}

/* A column of the matrix that leaves parts which a block can hold. */
template <class T, int M> DEVICE void hadamard_outer_column(const hadamard_params &p, int64_t row, int64_t column) {
    const typename T::bits *from = (const typename T::bits *)p.x.data + row * p.x.row + column;
    float *to = (float *)p.y.data + row * p.y.row + column;
    float x[M];
#pragma unroll
    for (int c = 0; c < M; c++) x[c] = T::get(from[(int64_t)c * p.size]);
    hadamard_matrix<M>(p.signs, x, [&](int b, float sum) { to[(int64_t)b * p.size] = sum; });
}

template <class T> DEVICE void hadamard_outer(const hadamard_params &p) {
    const int64_t item = block_index() * SIMT_THREADS + thread_index(), row = item >> p.stages,
                  column = item & (p.size - 1);
    if (item >= p.items) return;
    if (p.order == 2) hadamard_outer_column<T, 2>(p, row, column);
    if (p.order == 4) hadamard_outer_column<T, 4>(p, row, column);
    if (p.order == 12) hadamard_outer_column<T, 12>(p, row, column);
    if (p.order == 20) hadamard_outer_column<T, 20>(p, row, column);
    if (p.order == 28) hadamard_outer_column<T, 28>(p, row, column);
}

#define HADAMARD(T) \
    ENTRY(hadamard_##T, SIMT_THREADS, hadamard_params) { hadamard_block<T, T>(p); } \
    ENTRY(hadamard_outer_##T, SIMT_THREADS, hadamard_params) { hadamard_outer<T>(p); } \
    ENTRY(hadamard_inner_##T, SIMT_THREADS, hadamard_params) { hadamard_block<f32, T>(p); }
HADAMARD(f32)
HADAMARD(bf16)
HADAMARD(f16)
