/* SPDX-License-Identifier: Apache-2.0 */
/* The products of few queries with many keys that warps read from memory to the registers that products take them from,
 * without shared memory: bf16 and f16, d up to 128, by the tensor cores of sm_80. */
#ifndef TRINE_CUDA_ATTENTION_DECODE_PRODUCTS_H
#define TRINE_CUDA_ATTENTION_DECODE_PRODUCTS_H

#include <tile/mma.h>

#include "attention_rows.h"

/* 16 bytes at columns `column` to column + 7 of a row; zeros if it is not there, and beyond the last column. */
template <class T, bool WIDE>
DEVICE void attention_decode_read(uint32_t (&x)[4], const typename T::bits *row, int column, int columns, bool there) {
    if constexpr (WIDE) {
        const packed<uint32_t, 4> piece = load_once_if(there && column < columns, row + column);
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = piece.v[i];
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t low = there && column + 2 * i < columns ? row[column + 2 * i] : 0,
                           high = there && column + 2 * i + 1 < columns ? row[column + 2 * i + 1] : 0;
            x[i] = low | high << 16;
        }
    }
}

/* What a warp holds. Thread 4 g + c has rows g and g + 8 of the queries; keys g of each 8, their columns 8 c to 8 c + 7
 * of each 32; and of values rows 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 of each 16, their columns 8 g to 8 g + 7 of each 64.
 * So it gets columns 16 c to 16 c + 15 of each 64 of the sums. Elements of d are summed in the order in which a
 * thread's 16 bytes have them. */
template <class T, int D, int KEYS> struct attention_decode_products {
    uint32_t q[D / 32][2][4], k[KEYS / 8][D / 32][4], v[KEYS / 16][D / 64][4][4];
    float o[D / 2];
    attention_rows rows;

    DEVICE attention_decode_products() : rows(attention_rows_none()) {
#pragma unroll
        for (int i = 0; i < D / 2; i++) o[i] = 0;
    }

    /* Where a thread's elements are: of row i of its two, or its eights of keys, columns j and on of 32; of value e of
     * four of the i-th 16, columns j and on of 64. */
    static DEVICE int key_of(int i) { return i * 8 + thread_index() % WARP / 4; }
    static DEVICE int key_column(int j) { return j * 32 + thread_index() % 4 * 8; }
    static DEVICE int value_of(int i, int e) { return i * 16 + thread_index() % 4 * 2 + e % 2 + e / 2 * 8; }
    static DEVICE int value_column(int j) { return j * 64 + thread_index() % WARP / 4 * 8; }

    DEVICE void scores(float (&s)[KEYS / 2]) const {
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++) {
            float four[4] = { 0, 0, 0, 0 };
#pragma unroll
            for (int j = 0; j < D / 32; j++)
#pragma unroll
                for (int half = 0; half < 4; half += 2) {
                    const uint32_t a[4] = { q[j][0][half], q[j][1][half], q[j][0][half + 1], q[j][1][half + 1] };
                    warp_multiply(T(), four, a, k[i][j][half], k[i][j][half + 1]);
                }
#pragma unroll
            for (int e = 0; e < 4; e++) s[i * 4 + e] = four[e];
        }
    }
    DEVICE void add_values(const float (&s)[KEYS / 2]) {
        uint32_t w[KEYS / 4];
        attention_pack<T>(w, s);
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
            const uint32_t a[4] = { w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3] };
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                const uint32_t(&x)[4][4] = v[i][n / 8];
                const int word = n % 8 / 2;
                uint32_t b[2];
#pragma unroll
                for (int h = 0; h < 2; h++)
                    b[h] = n % 2 ? x[2 * h][word] >> 16 | (x[2 * h + 1][word] & 0xffff0000u)
                                 : (x[2 * h][word] & 0xffffu) | x[2 * h + 1][word] << 16;
                float four[4];
#pragma unroll
                for (int e = 0; e < 4; e++) four[e] = o[n * 4 + e];
                warp_multiply(T(), four, a, b[0], b[1]);
#pragma unroll
                for (int e = 0; e < 4; e++) o[n * 4 + e] = four[e];
            }
        }
    }

    /* Sums, with the warp's own maxima and sums of weights behind them; of 16 rows that are `step` floats apart. */
    DEVICE void put(float *to, int step) const {
        const int lane = thread_index() % WARP;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float *const row = to + (lane / 4 + r * 8) * step;
            float sum = rows.sum[r];
            sum += shuffle_xor(sum, 1);
            sum += shuffle_xor(sum, 2);
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) row[n / 8 * 64 + lane % 4 * 16 + e * 8 + n % 8] = o[n * 4 + r * 2 + e];
            if (lane % 4 == 0) row[D] = rows.top[r], row[D + 1] = sum, row[D + 2] = rows.reach[r];
        }
    }
};

#endif
