/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized by the tensor cores of sm_80 and later, for few rows of x: weights are the left operand. A block has
 * 32 rows of them, of which each warp takes every eighth chunk of 16 words of codes; the warps' sums are added in their
 * order.
 *
 * A code goes from memory to the operand's register within one thread: the order of k within a product is free, so that
 * a thread takes the codes of 16 bytes that it has read, and of x the elements that these go with.
 *
 * NOTES. Floor: codes once. x comes from the caches, once for 32 rows of weights. A weight is formed in f32, which is 4
 * or 5 instructions. */
#ifndef TRINE_CUDA_MATMUL_QUANTIZED_MMA_H
#define TRINE_CUDA_MATMUL_QUANTIZED_MMA_H

#include <tile/mma.h>

#include "matmul_quantized.h"

enum {
    QUANTIZED_WARPS = SIMT_THREADS / WARP,
    QUANTIZED_HALVES = QUANTIZED_TILE / 8, /* rows of weights that a thread has codes of */
    QUANTIZED_STEP = 4 * QUANTIZED_CHUNK   /* words of a row that a warp has at a time */
};

/* A thread's words of one row. */
struct quantized_words_of {
    uint32_t word[QUANTIZED_CHUNK];
    DEVICE void load(const quantized_params &p, const uint8_t *row, int32_t first, int32_t all) {
        if (p.codes_vectors && first + QUANTIZED_CHUNK <= all) {
            const packed<uint32_t, 4> four = *(const packed<uint32_t, 4> *)(row + (int64_t)first * 4);
#pragma unroll
            for (int i = 0; i < QUANTIZED_CHUNK; i++) word[i] = four.v[i] ^ p.flip;
            return;
        }
#pragma unroll
        for (int i = 0; i < QUANTIZED_CHUNK; i++) {
            const int32_t at = first + i < all ? first + i : 0, g = (int32_t)quotient((uint32_t)at, p.group);
            word[i] =
                quantized_fetch(row + g * p.codes_group + (at - g * (int32_t)p.group.by) * 4, p.codes_aligned) ^ p.flip;
        }
    }
};

/* N elements of a row of x, in pairs, N being 4 or 8; `inside`: are there any? */
template <int N> struct quantized_pairs {
    uint32_t pair[N / 2];
    DEVICE void load(const uint16_t *from, bool inside, bool aligned) {
        packed<uint32_t, N / 2> some = {};
        if (inside && aligned) some = *(const packed<uint32_t, N / 2> *)from;
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            pair[i] = some.v[i];
            if (inside && !aligned) pair[i] = from[2 * i] | (uint32_t)from[2 * i + 1] << 16;
        }
    }
};

/* Four weights of each of the rows g and g + 8, as the left operand has them. */
template <class T>
DEVICE void quantized_operand(uint32_t (&a)[4], const quantized_params &p, const uint32_t (&codes)[2],
                              const quantized_group *group, int bits) {
    const uint32_t mask = (1u << bits) - 1;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float w[4];
#pragma unroll
        for (int c = 0; c < 4; c++)
            w[c] = fused(quantized_step(p, codes[half] >> c * bits & mask) - group[half].zero, group[half].scale,
                         group[half].min);
        a[half] = T::pair(w[0], w[1]);
        a[half + 2] = T::pair(w[2], w[3]);
    }
}

template <class T, int TILES> struct quantized_warp {
    float sum[2][TILES][4];
    const uint16_t *x[TILES]; /* the thread's row of each tile */

    /* Products of N codes of one word, from bit `from` on, that go with x's elements from `at` on. */
    template <int N>
    DEVICE void multiply(const quantized_params &p, const quantized_words_of (&words)[QUANTIZED_HALVES], int i,
                         int from, int bits, int64_t at, bool inside,
                         const quantized_group (&group)[QUANTIZED_HALVES]) {
        quantized_pairs<N> b[TILES];
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) b[tile].load(x[tile] + at, inside, p.x_aligned);
#pragma unroll
        for (int c = 0; c < N; c += 4)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint32_t codes[2] = { words[2 * r].word[i] >> (from + c * bits),
                                            words[2 * r + 1].word[i] >> (from + c * bits) };
                uint32_t a[4];
                quantized_operand<T>(a, p, codes, group + 2 * r, bits);
#pragma unroll
                for (int tile = 0; tile < TILES; tile++)
                    warp_multiply(T(), sum[r][tile], a, b[tile].pair[c / 2], b[tile].pair[c / 2 + 1]);
            }
    }
};

/* The sums of all warps, by ascending numbers, and what becomes of them. */
template <class T, int TILES>
DEVICE void quantized_finish(const quantized_params &p, const quantized_warp<T, TILES> &mine) {
    SHARED float part[QUANTIZED_WARPS][QUANTIZED_TILE][9];
    const int thread = thread_index(), warp = thread / WARP, lane = thread % WARP;
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[warp][r * 16 + i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2] = mine.sum[r][tile][i];
        sync_block();
        const int row = thread % QUANTIZED_TILE, token = thread / QUANTIZED_TILE;
        const int64_t j = block_index() * QUANTIZED_TILE + row;
        float total = part[0][row][token];
#pragma unroll
        for (int w = 1; w < QUANTIZED_WARPS; w++) total += part[w][row][token];
        if (j < p.n && tile * 8 + token < p.m) quantized_store(p, tile * 8 + token, j, total);
        sync_block();
    }
}

/* BITS: of a code, or 0: p says it. */
template <class T, int TILES, int BITS> DEVICE void quantized_mma(const quantized_params &p) {
    const int lane = thread_index() % WARP, own = lane / 4;
    const int bits = BITS ? BITS : p.bits, each = 32 / bits;
    const int32_t all = p.groups * (int32_t)p.group.by;
    int64_t row[QUANTIZED_HALVES];
    const uint8_t *codes[QUANTIZED_HALVES];
#pragma unroll
    for (int h = 0; h < QUANTIZED_HALVES; h++) {
        const int64_t j = block_index() * QUANTIZED_TILE + h * 8 + own;
        row[h] = j < p.n ? j : p.n - 1;
        codes[h] = p.codes + row[h] * p.codes_row;
    }
    quantized_warp<T, TILES> warp = {};
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        const int token = tile * 8 + own;
        warp.x[tile] = (const uint16_t *)p.x.data + (token < p.m ? token : p.m - 1) * p.x.row;
    }
    const bool one_group = p.group.by % QUANTIZED_CHUNK == 0; /* that a thread's words of a chunk have */
    quantized_words_of next[QUANTIZED_HALVES];
    int32_t first = thread_index() / WARP * QUANTIZED_STEP + lane % 4 * QUANTIZED_CHUNK;
#pragma unroll
    for (int h = 0; h < QUANTIZED_HALVES; h++) next[h].load(p, codes[h], first, all);
#pragma unroll 1
    for (int32_t start = thread_index() / WARP * QUANTIZED_STEP; start < all;
         start += QUANTIZED_WARPS * QUANTIZED_STEP) {
        quantized_words_of words[QUANTIZED_HALVES];
        quantized_group group[QUANTIZED_HALVES];
        const int32_t here = first;
        first += QUANTIZED_WARPS * QUANTIZED_STEP;
#pragma unroll
        for (int h = 0; h < QUANTIZED_HALVES; h++) {
            words[h] = next[h];
            if (first - lane % 4 * QUANTIZED_CHUNK < all) next[h].load(p, codes[h], first, all);
        }
#pragma unroll
        for (int i = 0; i < QUANTIZED_CHUNK; i++) {
            const bool inside = here + i < all;
            if (i == 0 || !one_group) {
                const int32_t g = (int32_t)quotient((uint32_t)(inside ? here + i : 0), p.group);
#pragma unroll
                for (int h = 0; h < QUANTIZED_HALVES; h++) {
                    group[h] = quantized_group_of(p, row[h], g);
                    if (!inside) group[h] = {};
                }
            }
            const int64_t at = (int64_t)(here + i) * each;
            if constexpr (BITS == 4) {
                warp.template multiply<8>(p, words, i, 0, 4, at, inside, group);
            } else {
#pragma unroll 1
                for (int c = 0; c < each; c += 4)
                    warp.template multiply<4>(p, words, i, c * bits, bits, at + c, inside, group);
            }
        }
    }
    quantized_finish<T, TILES>(p, warp);
}

#endif
