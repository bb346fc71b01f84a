/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized by the tensor cores of sm_80 and later where codes less their offset are numbers of x's type: they
 * are the left operand as they are, and what a group's products come to is scaled afterwards, with
 *
 *     (min - scale zero) times the sum of x over the group
 *
 * added, which is a product with ones. A code goes from memory to the operand's register within one thread, two at a
 * time: as the last bits of a power of two, from which the offset is then taken. The order of k within a product is
 * free, so that a thread takes the codes of the words that it has read, and of x the elements that these go with.
 *
 * A warp has rows of weights and every so many-th chunk of 16 words of them; four threads share a row's chunk, each
 * having four words of it, one behind the other, or, where groups are not whole chunks, every fourth. Warps that have
 * the same rows add up their sums in their order.
 *
 * NOTES. Floor: codes once. x comes from the caches, once for a block's rows. A code of 4 bits costs 1.5 instructions.
 */
#ifndef TRINE_CUDA_MATMUL_QUANTIZED_CODES_H
#define TRINE_CUDA_MATMUL_QUANTIZED_CODES_H

#include <tile/bytes.h>
#include <tile/half.h>
#include <tile/mma.h>

#include "matmul_quantized.h"

enum { CODES_STEP = 4 * CODES_WORDS /* words of a row's chunk */ };

/* Rows of weights of a block; tiles of 16 of them that a warp has; warps that have different ones. */
template <int TILES> constexpr int CODES_HEIGHT = TILES <= CODES_FEW_TILES ? CODES_FEW_ROWS : CODES_ROWS;
template <int TILES> constexpr int CODES_HIGH = TILES <= 4 ? 2 : 1;
template <int TILES> constexpr int CODES_SIDE = CODES_HEIGHT<TILES> / (16 * CODES_HIGH<TILES>);

/* 1 in the type's pairs, a power of two whose fraction has room for a code, and what makes bits of e2m1, put where the
 * type's are, their number. */
template <class T> struct codes_type;
template <> struct codes_type<f16> {
    static constexpr uint32_t ONE = 0x3c003c00u, POWER = 0x64006400u, UNIT = 0x74007400u;
    static constexpr int FRACTION = 10;
    static constexpr float BASE = 1024;
};
template <> struct codes_type<bf16> {
    static constexpr uint32_t ONE = 0x3f803f80u, POWER = 0x43004300u, UNIT = 0x7e807e80u;
    static constexpr int FRACTION = 7;
    static constexpr float BASE = 128;
};

/* Codes c and c + 1 of a word, c being even, less their offset. `less`: POWER's number and the offset, as a pair. BITS:
 * of a code, or 0: p says it, and whether they are e2m1. */
template <class T, int BITS, bool E2M1>
DEVICE uint32_t codes_pair(const quantized_params &p, uint32_t word, int c, uint32_t less) {
    using type = codes_type<T>;
    const int bits = BITS ? BITS : p.bits;
    uint32_t codes;
    if constexpr (BITS == 8)
        codes = bytes_of(word, 0, 0x4040u | (uint32_t)c | (uint32_t)(c + 1) << 8);
    else if constexpr (BITS == 4)
        codes = bytes_of(word, word >> 4, 0x0400u + (uint32_t)c / 2 * 0x0101u) & 0x000f000fu;
    else
        codes = bytes_of(word >> c * bits, word >> (c + 1) * bits, 0x0400u) & 0x00010001u * ((1u << bits) - 1);
    if (BITS == 0 ? p.e2m1 : E2M1) {
        const uint32_t magnitude = (codes & 0x00070007u) << (type::FRACTION - 1);
        return pair_product(T(), (codes << 12 & 0x80008000u) | magnitude, type::UNIT);
    }
    if (bits < type::FRACTION) return pair_difference(T(), codes | type::POWER, less);
    return T::pair(quantized_step(p, codes & 0xffff), quantized_step(p, codes >> 16));
}

/* One of what scales groups, in one way for all types: each way would be code to fetch. */
DEVICE float codes_scale(const quantized_params &p, const simt_rows &of, int64_t row, int32_t g) {
    const int64_t at = row * of.row + g;
    if (p.scale_type == QUANTIZED_F32) return load_one<f32>(of.data, at);
    const uint16_t bits = ((const uint16_t *)of.data)[at];
    return p.scale_type == QUANTIZED_BF16 ? bf16::get(bits) : f16::get(bits);
}

/* Words of a row of x's elements, `inside`: if there are any. A: in one access. */
template <bool A, int N>
DEVICE void codes_load_x(uint32_t (&pair)[N], const quantized_params &p, const uint16_t *from, bool inside) {
    packed<uint32_t, N> some = {};
    if (inside && (A || p.x_aligned)) some = *(const packed<uint32_t, N> *)from;
#pragma unroll
    for (int i = 0; i < N; i++) {
        pair[i] = some.v[i];
        if (!A && inside && !p.x_aligned) pair[i] = from[2 * i] | (uint32_t)from[2 * i + 1] << 16;
    }
}

template <class T, int TILES> struct codes_warp {
    static constexpr int HIGH = CODES_HIGH<TILES>, ROWS = 2 * HIGH;  /* the latter: of weights that a thread has */
    float sum[HIGH][TILES][4], group[HIGH][TILES][4], all[TILES][4]; /* the last two of a group, the last of x alone */
    const uint16_t *x[TILES];                                        /* the thread's row of each tile */
    int64_t row[ROWS];
    uint32_t less;

    /* Products of a word of each row, with x's elements from `at` on. BITS: of a code, or 0: p says it, and x need not
     * be aligned. Either way four codes of a thread are one product. */
    template <int BITS, bool E2M1>
    DEVICE void multiply(const quantized_params &p, const uint32_t (&word)[ROWS], int64_t at, bool inside) {
        constexpr int HELD = BITS == 4 ? 4 : 2; /* words of x's elements that one access gets */
        const int each = 32 / (BITS ? BITS : p.bits);
#pragma unroll 1
        for (int c = 0; c < each; c += 2 * HELD) {
            uint32_t b[TILES][HELD];
#pragma unroll
            for (int tile = 0; tile < TILES; tile++) codes_load_x<(BITS > 0)>(b[tile], p, x[tile] + at + c, inside);
#pragma unroll
            for (int pair = 0; pair < HELD; pair += 2) {
#pragma unroll
                for (int r = 0; r < HIGH; r++) {
                    uint32_t a[4];
#pragma unroll
                    for (int half = 0; half < 4; half++)
                        a[half] = codes_pair<T, BITS, E2M1>(p, word[2 * r + half % 2], c + 2 * (pair + half / 2), less);
#pragma unroll
                    for (int tile = 0; tile < TILES; tile++)
                        warp_multiply(T(), group[r][tile], a, b[tile][pair], b[tile][pair + 1]);
                }
                if (!p.zeros.data && !p.mins.data) continue;
                constexpr uint32_t ONE = codes_type<T>::ONE, ones[4] = { ONE, ONE, ONE, ONE };
#pragma unroll
                for (int tile = 0; tile < TILES; tile++)
                    warp_multiply(T(), all[tile], ones, b[tile][pair], b[tile][pair + 1]);
            }
        }
    }

    /* What the group of a word of each of the thread's rows is scaled by, and min - scale zero. */
    DEVICE void groups_of(quantized_group (&of)[ROWS], const quantized_params &p, int32_t word) const {
        const int32_t g = (int32_t)quotient((uint32_t)word, p.group);
#pragma unroll
        for (int h = 0; h < ROWS; h++) of[h] = { codes_scale(p, p.scales, row[h], g), 0, 0 };
        if (p.mins.data)
#pragma unroll
            for (int h = 0; h < ROWS; h++) of[h].min = codes_scale(p, p.mins, row[h], g);
        if (p.zeros.data)
#pragma unroll
            for (int h = 0; h < ROWS; h++)
                of[h].min = fused(-of[h].scale, codes_scale(p, p.zeros, row[h], g), of[h].min);
    }

    /* A chunk's words of each row, the first being number `first`, and the others `apart` of each other. A loop, since
     * code that is run but a few times costs its way from memory. */
    template <int BITS, bool E2M1 = false>
    DEVICE void chunk(const quantized_params &p, uint32_t (&words)[ROWS][CODES_WORDS], int32_t first, int apart,
                      int32_t all_words) {
        quantized_group of[ROWS];
#pragma unroll 1
        for (int i = 0; i < CODES_WORDS; i++, first += apart) {
            const bool inside = first < all_words;
            uint32_t word[ROWS];
            if (i == 0 || apart != 1) groups_of(of, p, inside ? first : 0);
#pragma unroll
            for (int h = 0; h < ROWS; h++) {
                word[h] = words[h][0];
#pragma unroll
                for (int w = 1; w < CODES_WORDS; w++) words[h][w - 1] = words[h][w];
            }
            multiply<BITS, E2M1>(p, word, (int64_t)first * (32 / (BITS ? BITS : p.bits)), inside);
            if (i == CODES_WORDS - 1 || apart != 1) scale(of);
        }
    }

    /* A group ends: `of` is that of each of the thread's rows. */
    DEVICE void scale(const quantized_group (&of)[ROWS]) {
#pragma unroll
        for (int r = 0; r < HIGH; r++)
#pragma unroll
            for (int tile = 0; tile < TILES; tile++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const quantized_group &g = of[2 * r + i / 2];
                    sum[r][tile][i] = fused(group[r][tile][i], g.scale, sum[r][tile][i]);
                    sum[r][tile][i] = fused(all[tile][i % 2], g.min, sum[r][tile][i]);
                    group[r][tile][i] = 0;
                }
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int i = 0; i < 4; i++) all[tile][i] = 0;
    }
};

/* A chunk's words of one row that a thread has: from `first` on, `apart` of each other. */
DEVICE_CALLED packed<uint32_t, CODES_WORDS> codes_fetch(const quantized_params &p, const uint8_t *row, int32_t first,
                                                        int apart, int32_t all) {
    packed<uint32_t, CODES_WORDS> word;
#pragma unroll 1
    for (int i = 0; i < CODES_WORDS; i++) {
        const int32_t at = first + i * apart < all ? first + i * apart : 0,
                      g = (int32_t)quotient((uint32_t)at, p.group);
        word.v[i] = quantized_fetch(row + g * p.codes_group + (at - g * (int32_t)p.group.by) * 4, p.codes_aligned);
    }
    return word;
}
template <int ROWS>
DEVICE void codes_load(uint32_t (&word)[ROWS][CODES_WORDS], const quantized_params &p,
                       const uint8_t *const (&row)[ROWS], int32_t first, int apart, int32_t all) {
    packed<uint32_t, CODES_WORDS> four[ROWS];
    if (p.codes_vectors && apart == 1) {
#pragma unroll
        for (int h = 0; h < ROWS; h++) four[h] = load_once_if(true, row[h] + (int64_t)first * 4);
    } else {
#pragma unroll
        for (int h = 0; h < ROWS; h++) four[h] = codes_fetch(p, row[h], first, apart, all);
    }
#pragma unroll
    for (int h = 0; h < ROWS; h++)
#pragma unroll
        for (int i = 0; i < CODES_WORDS; i++) word[h][i] = four[h].v[i] ^ p.flip;
}

/* The sums of all warps, by ascending numbers, and what becomes of them. */
template <class T, int TILES> DEVICE void codes_finish(const quantized_params &p, const codes_warp<T, TILES> &mine) {
    constexpr int ROWS = CODES_HEIGHT<TILES>, SIDE = CODES_SIDE<TILES>, PARTS = SIMT_THREADS / WARP / SIDE;
    SHARED float part[PARTS][ROWS][9];
    const int thread = thread_index(), warp = thread / WARP, lane = thread % WARP,
              from = warp % SIDE * CODES_HIGH<TILES> * 16;
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (int r = 0; r < CODES_HIGH<TILES>; r++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[warp / SIDE][from + r * 16 + i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2] = mine.sum[r][tile][i];
        sync_block();
        for (int one = thread; one < 8 * ROWS; one += SIMT_THREADS) {
            const int row = one % ROWS, token = one / ROWS;
            const int64_t j = block_index() * ROWS + row;
            float total = part[0][row][token];
#pragma unroll
            for (int w = 1; w < PARTS; w++) total += part[w][row][token];
            if (j < p.n && tile * 8 + token < p.m) quantized_store(p, tile * 8 + token, j, total);
        }
        sync_block();
    }
}

template <class T, int TILES> DEVICE void quantized_codes_tiles(const quantized_params &p) {
    constexpr int HIGH = CODES_HIGH<TILES>, SIDE = CODES_SIDE<TILES>, PARTS = SIMT_THREADS / WARP / SIDE;
    const int warp = thread_index() / WARP, lane = thread_index() % WARP, own = lane / 4, fourth = lane % 4;
    const int32_t all = p.groups * (int32_t)p.group.by;
    const int apart = p.group.by % CODES_STEP == 0 ? 1 : 4; /* 1: groups are whole chunks */
    codes_warp<T, TILES> mine = {};
    const uint8_t *codes[2 * HIGH];
#pragma unroll
    for (int h = 0; h < 2 * HIGH; h++) {
        const int64_t j = block_index() * CODES_HEIGHT<TILES> + (warp % SIDE * 2 * HIGH + h) * 8 + own;
        mine.row[h] = j < p.n ? j : p.n - 1;
        codes[h] = p.codes + mine.row[h] * p.codes_row;
    }
    const float less = codes_type<T>::BASE + (p.none - 8388608.0f);
    mine.less = T::pair(less, less);
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        const int token = tile * 8 + own;
        mine.x[tile] = (const uint16_t *)p.x.data + (token < p.m ? token : p.m - 1) * p.x.row;
    }
    uint32_t next[2 * HIGH][CODES_WORDS];
    const int32_t skipped = fourth * (apart == 1 ? (int)CODES_WORDS : 1);
    int32_t start = warp / SIDE * CODES_STEP;
    if (start < all) codes_load(next, p, codes, start + skipped, apart, all);
#pragma unroll 1
    while (start < all) {
        uint32_t words[2 * HIGH][CODES_WORDS];
        const int32_t first = start + skipped;
        start += PARTS * CODES_STEP;
#pragma unroll
        for (int h = 0; h < 2 * HIGH; h++)
#pragma unroll
            for (int i = 0; i < CODES_WORDS; i++) words[h][i] = next[h][i];
        if (start < all) codes_load(next, p, codes, start + skipped, apart, all);
        if (p.bits < 4 || !p.x_aligned)
            mine.template chunk<0>(p, words, first, apart, all);
        else if (p.e2m1)
            mine.template chunk<4, true>(p, words, first, apart, all);
        else if (p.bits == 4)
            mine.template chunk<4>(p, words, first, apart, all);
        else
            mine.template chunk<8>(p, words, first, apart, all);
    }
    codes_finish<T, TILES>(p, mine);
}

#endif
