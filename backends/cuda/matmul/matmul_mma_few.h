/* SPDX-License-Identifier: Apache-2.0 */
/* Products in which one operand, the tokens, has at most MATMUL_MMA_FEW_MOST lanes, by the tensor cores of sm_80 and
 * later: the other one, the weights, is read once, from memory to the registers of products.
 *
 * Pieces of 16 bytes are multiplied as they come: of weights with consecutive k, and of tokens, a thread has 8 bytes of
 * each 32 bytes of k that a product sums, from one piece for two products; where lanes of weights are consecutive it
 * has 8 of them in 8 elements of k, and makes pairs of neighbours in k. A warp has 16 lanes of weights, or 64
 * consecutive ones. Warps beside each other share the tokens, which come to a ring in shared memory; groups of such
 * warps take the steps of k in turns, and their sums meet in shared memory, in the order of groups.
 *
 * NOTES, of one H200. Floor: the weights once; and each block reads all tokens from L2. 117 MB of weights in bf16 take
 * 40 us with 1 and 16 tokens, 41 with 32; 64 tokens took 70, where tiles take 55. */
#ifndef TRINE_CUDA_MATMUL_MMA_FEW_H
#define TRINE_CUDA_MATMUL_MMA_FEW_H

#include "matmul_mma_feed.h"

template <class T, int TOKENS_, bool ACROSS> struct matmul_mma_few_shape {
    enum {
        TOKENS = TOKENS_,
        SIZE = matmul_mma_type<T>::SIZE,
        PIECE = 16 / SIZE,
        STEP = 128 / SIZE,
        STAGES = MATMUL_MMA_FEW_STAGES
    };
    enum { LANES = MATMUL_MMA_FEW_LANES(ACROSS), M = LANES / 16, LOADS = ACROSS ? 8 : 2, AHEAD = ACROSS ? 1 : 2 };
    enum { STAGE = TOKENS * 128 };
    static_assert(!ACROSS || SIZE == 2);
};

/* Up to `count` elements that are consecutive, and zeros. */
template <class Bits> DEVICE packed<uint32_t, 4> matmul_mma_few_part(const Bits *from, int count) {
    enum { PER = 4 / sizeof(Bits) };
    packed<uint32_t, 4> x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        Bits word[PER];
#pragma unroll
        for (int e = 0; e < PER; e++) word[e] = i * PER + e < count ? from[i * PER + e] : Bits(0);
        __builtin_memcpy(&x.v[i], word, 4);
    }
    return x;
}

/* A warp's weights: two halves of a step, 64 bytes of k each. */
template <class T, class Shape, bool ACROSS> struct matmul_mma_few_weights {
    using Bits = typename matmul_mma_type<T>::bits;
    using half = packed<uint32_t, 4>[Shape::LOADS];
    enum { ROWS = ACROSS ? 1 : Shape::LOADS };
    const Bits *at[ROWS]; /* of the step to be read next */
    int64_t next, along;  /* from step to step, from element to element of k */
    int left, lanes;      /* elements of k from there on; consecutive lanes */
    bool aligned;

    DEVICE void begin(const matmul_mma_few_params &p, const matmul_place &place, int first_step, int steps_apart) {
        const int lane = thread_index() % WARP, piece = lane % 4 * Shape::PIECE, step = first_step * Shape::STEP;
        const int64_t first = place.column + (ACROSS ? lane / 4 * 8 : lane / 4);
        along = p.many.along, next = (int64_t)steps_apart * Shape::STEP * along;
        left = (int)place.depth - step - piece;
        lanes = ACROSS ? first + 8 <= p.lanes ? 8 : first < p.lanes ? (int)(p.lanes - first) : 0 : 1;
        aligned = p.whole && (!ACROSS || lanes == 8 || lanes == 0);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            /* beyond the operand's lanes the last one's */
            const int64_t own = ACROSS || first + i * 8 < p.lanes ? first + i * 8 : p.lanes - 1;
            at[i] = matmul_at<Bits>(p.many, place, own, step + piece);
        }
    }
    DEVICE void read(half &w, int which) const {
        const int deep = left - which * (Shape::STEP / 2);
        const auto from = [&](int i) {
            return ACROSS ? at[0] + (which * (Shape::STEP / 2) + i) * along
                          : at[ACROSS ? 0 : i] + which * (Shape::STEP / 2);
        };
        if (aligned && (ACROSS || deep >= Shape::PIECE || deep <= 0)) {
#pragma unroll
            for (int i = 0; i < Shape::LOADS; i++)
                w[i] = load_once_if(ACROSS ? i < deep && lanes > 0 : deep > 0, from(i));
        } else {
#pragma unroll
            for (int i = 0; i < Shape::LOADS; i++)
                w[i] = matmul_mma_few_part(from(i), !ACROSS ? deep : i < deep ? lanes : 0);
        }
    }
    DEVICE void advance(int steps_apart) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) at[i] += next;
        left -= steps_apart * Shape::STEP;
    }
    /* a's registers for the m-th 16 of a warp's lanes and one of the two products of a piece: lanes g and g + 8, or 2m
     * and 2m + 1 of the thread's. */
    static DEVICE void take(uint32_t (&a)[4], const half &w, int m, int product) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if constexpr (ACROSS) {
                const uint32_t x = w[product * 4 + i / 2 * 2].v[m], y = w[product * 4 + i / 2 * 2 + 1].v[m];
                a[i] = i % 2 ? x >> 16 | (y & 0xffff0000) : (x & 0xffff) | y << 16;
            } else {
                a[i] = w[i % 2].v[product * 2 + i / 2];
            }
    }
};

/* Where piece `piece` of a token is in a stage: a quarter of a warp reads four of two tokens, and writes all of one. */
DEVICE int matmul_mma_few_at(int token, int piece) { return token * 128 + ((piece ^ token % 2 * 4) << 4); }

/* A group's tokens, of the steps that it takes: a thread has one piece of every so many, an even number. */
template <class T, class Shape> struct matmul_mma_few_tokens {
    using Bits = typename matmul_mma_type<T>::bits;
    const Bits *at; /* the thread's first one, of the next step */
    int64_t lane;
    /* tokens from that one on; elements of k from there on; of a group's threads; where the piece is in a stage */
    int count, left, rows, place;
    bool aligned;

    DEVICE void begin(const matmul_mma_few_params &p, const matmul_place &place_of, int thread, int first_step) {
        const int token = thread / 8, along = first_step * Shape::STEP + thread % 8 * Shape::PIECE;
        at = matmul_at<Bits>(p.few, place_of, token, along), lane = p.few.lane;
        count = (int)p.count - token, left = (int)place_of.depth - along, rows = p.beside * WARP / 8,
        place = matmul_mma_few_at(token, thread % 8);
        aligned = p.few.wide;
    }
    DEVICE void copy(char *stage, int steps_apart) {
        const int deep = left < Shape::PIECE ? left > 0 ? left : 0 : (int)Shape::PIECE;
        const Bits *from = at;
        char *to = stage + place;
#pragma unroll 1
        for (int i = 0; i < count; i += rows, from += rows * lane, to += rows * 128)
            if (aligned)
                copy_bytes<16>(to, deep > 0 ? from : nullptr, deep * Shape::SIZE);
            else
                *(packed<uint32_t, 4> *)to = matmul_mma_few_part(from, deep);
        copy_commit();
        at += steps_apart * Shape::STEP, left -= steps_apart * Shape::STEP;
    }
};

/* The sums of all groups to d. */
template <class Shape, class Sum>
DEVICE void matmul_mma_few_end(const matmul_mma_few_params &p, const matmul_place &at, const Sum *tile, int pitch) {
    const int lanes = p.beside * Shape::LANES, rows = p.swapped ? (int)Shape::TOKENS : lanes,
              units = (p.swapped ? lanes : (int)Shape::TOKENS) / 4;
    const int count = p.swapped ? (int)p.count : lanes;
    for (int unit = thread_index(); unit < count * units; unit += p.beside * p.groups * WARP) {
        const int row = unit / units, column = unit % units * 4;
        Sum sum[1][4];
        matmul_take(sum[0], tile + row * pitch + column);
        for (int group = 1; group < p.groups; group++) {
            Sum more[4];
            matmul_take(more, tile + (group * rows + row) * pitch + column);
#pragma unroll
            for (int i = 0; i < 4; i++) sum[0][i] = matmul_plus(1, more[i], sum[0][i]);
        }
        matmul_finish(
            sum, p.to,
            { at.result, p.swapped ? row : at.column + row, 1, p.swapped ? at.column + column : column, p.m, p.n });
    }
}

template <class T, int TOKENS, bool ACROSS> DEVICE void matmul_mma_few(const matmul_mma_few_params &p) {
    using Shape = matmul_mma_few_shape<T, TOKENS, ACROSS>;
    using Sum = typename matmul_mma_type<T>::sum;
    using weights_type = matmul_mma_few_weights<T, Shape, ACROSS>;
    enum { M = Shape::M, N = TOKENS / 8, AHEAD = Shape::AHEAD };
    const int warp = thread_index() / WARP, lane = thread_index() % WARP, beside = p.beside, groups = p.groups;
    const int group = warp / beside, own = warp - group * beside, threads = beside * WARP;
    const int64_t result = block_index() / p.right, part = result / p.batches, first = part * p.depth,
                  deep = p.k - first < p.depth ? p.k - first : p.depth;
    matmul_place at = {
        result - part * p.batches, 0, (block_index() - result * p.right) * beside * Shape::LANES, first, deep, result
    };
    const int steps = (int)((deep + Shape::STEP - 1) / Shape::STEP), most = (steps + groups - 1) / groups;
    char *const ring = launch_memory() + group * Shape::STAGES * Shape::STAGE;

    matmul_mma_few_tokens<T, Shape> tokens;
    tokens.begin(p, at, (int)thread_index() - group * threads, group);
    matmul_place there = at;
    there.column += own * Shape::LANES;
    weights_type weights;
    weights.begin(p, there, group, groups);
    typename weights_type::half w[AHEAD][2];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        weights.read(w[i][0], 0);
        weights.read(w[i][1], 1);
        weights.advance(groups);
    }
    for (int i = 0; i < Shape::STAGES - 1; i++) tokens.copy(ring + i * Shape::STAGE, groups);
    Sum sum[M][N][4] = {};
    const int mine = matmul_mma_few_at(lane / 4, lane % 4); /* half a row further on is a flip of bits away */
    int stage = 0;
#pragma unroll 1
    for (int step = 0; step < most; step += AHEAD)
#pragma unroll
        for (int i = 0; i < AHEAD; i++) { /* beyond the last step weights are 0, and so are tokens */
            copy_wait<Shape::STAGES - 2>();
            sync_team(group, threads); /* the step is there, and nobody reads the one before any more */
            const char *const from = ring + stage * Shape::STAGE;
            char *const to = ring + (stage + Shape::STAGES - 1) % Shape::STAGES * Shape::STAGE;
            stage = stage < Shape::STAGES - 1 ? stage + 1 : 0;
#pragma unroll
            for (int which = 0; which < 2; which++) {
                uint32_t a[2][M][4];
#pragma unroll
                for (int j = 0; j < 2 * M; j++) weights_type::take(a[j / M][j % M], w[i][which], j % M, j / M);
                weights.read(w[i][which], which);
                if (which == 0) tokens.copy(to, groups);
#pragma unroll
                for (int n = 0; n < N; n++) {
                    const packed<uint32_t, 4> b = *(const packed<uint32_t, 4> *)(from + (mine ^ which * 64) + n * 1024);
#pragma unroll
                    for (int j = 0; j < 2 * M; j++)
                        warp_multiply(T(), sum[j % M][n], a[j / M][j % M], b.v[j / M * 2], b.v[j / M * 2 + 1]);
                }
            }
            weights.advance(groups);
        }
    copy_wait<0>();
    sync_block(); /* nobody reads a ring any more */
    Sum *const tile = (Sum *)launch_memory();
    const int lanes = beside * Shape::LANES, pitch = (p.swapped ? lanes : TOKENS) + 4,
              rows = p.swapped ? TOKENS : lanes;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int along = own * Shape::LANES + (ACROSS ? lane / 4 * 8 + m * 2 + e / 2 : lane / 4 + e / 2 * 8),
                          token = n * 8 + lane % 4 * 2 + e % 2;
                tile[(group * rows + (p.swapped ? token : along)) * pitch + (p.swapped ? along : token)] = sum[m][n][e];
            }
    sync_block();
    matmul_mma_few_end<Shape>(p, at, tile, pitch);
}

#endif
