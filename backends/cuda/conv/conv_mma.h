/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bf16 and f16 by the tensor cores of sm_80 and later: a block has a tile of 64 positions and 64
 * channels, a warp 32 by 16 of it. Steps of 32 elements of patches go to a ring of three stages, two ahead of their
 * use.
 *
 * NOTES. Floor: patches once for each tile of channels, weights once for each tile of positions. Rows of a stage are
 * pieces of 16 bytes whose place is turned by the row's number, so that eight rows' pieces lie in eight banks. A piece
 * is one copy where a tap's channels are whole aligned pieces, else eight loads. */
#ifndef TRINE_CUDA_CONV_MMA_H
#define TRINE_CUDA_CONV_MMA_H

#include <tile/mma.h>

#include "backends/simt/conv/conv.inl.h"

using conv_piece = packed<uint32_t, 4>;
enum {
    CONV_STAGES = 3,
    CONV_STEP = 32,                   /* elements of a step */
    CONV_PIECES = CONV_STEP / VECTOR, /* of a row along elements, */
    CONV_ACROSS = CONV_TILE / VECTOR, /* and of an element's lanes */
    CONV_WARP_ROWS = 32,
    CONV_WARP_COLUMNS = 16
};
static_assert(CONV_TILE * CONV_PIECES == (int)SIMT_THREADS && CONV_STEP * CONV_ACROSS == (int)SIMT_THREADS,
              "a thread copies a piece of each operand");

struct conv_ring {
    conv_piece a[CONV_TILE * CONV_PIECES], b[CONV_TILE * CONV_PIECES];
};

DEVICE int conv_turned(int row, int piece) { return row * CONV_PIECES + (piece ^ (row >> 1 & (CONV_PIECES - 1))); }
DEVICE int conv_turned_across(int row, int piece) { return row * CONV_ACROSS + (piece ^ (row & 7)); }

/* A piece of a position's patch. */
struct conv_feed {
    const uint16_t *from;
    conv_position at;
    conv_element e;
    bool there;

    DEVICE conv_feed(const conv_params &p, const conv_walks &k, int64_t group, int64_t first, int64_t rows) {
        const int64_t row = first + thread_index() / CONV_PIECES;
        from = (const uint16_t *)p.from.data + group * p.channels * p.from.channel;
        there = row < rows, at = conv_position(k, there ? row : 0);
        e = conv_element(k, (int32_t)p.channels, thread_index() % CONV_PIECES * VECTOR);
    }
    DEVICE void copy(conv_ring &stage, const conv_params &p, const conv_walks &k) {
        conv_piece *const to = &stage.a[conv_turned(thread_index() / CONV_PIECES, thread_index() % CONV_PIECES)];
        if (p.pieces) {
            const int64_t z = k.d.first + at.d * k.d.step + e.d * k.d.dilation,
                          y = k.h.first + at.h * k.h.step + e.h * k.h.dilation,
                          x = k.w.first + at.w * k.w.step + e.w * k.w.dilation;
            const bool inside =
                there && e.there(k) && z >= 0 && z < k.d.in && y >= 0 && y < k.h.in && x >= 0 && x < k.w.in;
            const int64_t place =
                at.n * p.from.batch + z * p.from.axis[0] + y * p.from.axis[1] + x * p.from.axis[2] + e.channel;
            copy_bytes<16>(to, from + (inside ? place : 0), inside ? 16 : 0);
        } else {
            uint16_t v[VECTOR];
            conv_element one = e;
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                v[i] = there && one.there(k) ? conv_bits(from, p.from, k, at, one) : 0;
                one.advance(k, (int32_t)p.channels, 1);
            }
            __builtin_memcpy(to, v, sizeof v);
        }
        e.advance(k, (int32_t)p.channels, CONV_STEP);
    }
};

/* A piece of the weights: of a lane some elements, or of an element some lanes. */
template <bool ACROSS> struct conv_weight_feed {
    int64_t group, lane;
    conv_element e;

    DEVICE conv_weight_feed(const conv_params &p, const conv_walks &k, int64_t own, int64_t first) {
        const int thread = thread_index();
        group = own, lane = first + (ACROSS ? thread % CONV_ACROSS * VECTOR : thread / CONV_PIECES);
        e = conv_element(k, (int32_t)p.channels, ACROSS ? thread / CONV_ACROSS : thread % CONV_PIECES * VECTOR);
    }
    DEVICE const uint16_t *at(const conv_params &p, const conv_walks &k, int64_t own, const conv_element &one) const {
        return (const uint16_t *)p.weight.data + conv_weight_at(p, k, group, own, one);
    }
    DEVICE void copy(conv_ring &stage, const conv_params &p, const conv_walks &k) {
        const int thread = thread_index();
        conv_piece *const to = &stage.b[ACROSS ? conv_turned_across(thread / CONV_ACROSS, thread % CONV_ACROSS)
                                               : conv_turned(thread / CONV_PIECES, thread % CONV_PIECES)];
        const bool some = lane < p.lanes && e.there(k);
        if (p.weight_pieces) {
            copy_bytes<16>(to, some ? at(p, k, lane, e) : (const uint16_t *)p.weight.data, some ? 16 : 0);
        } else {
            uint16_t v[VECTOR];
            conv_element one = e;
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                const int64_t own = lane + (ACROSS ? i : 0);
                v[i] = own < p.lanes && one.there(k) ? *at(p, k, own, one) : 0;
                if (!ACROSS) one.advance(k, (int32_t)p.channels, 1);
            }
            __builtin_memcpy(to, v, sizeof v);
        }
        e.advance(k, (int32_t)p.channels, CONV_STEP);
    }
};

/* A warp's products of a stage. */
template <class T, bool ACROSS>
DEVICE void conv_warp(float (&sum)[2][2][4], const conv_ring &stage, int down, int right) {
    const int index = thread_index() % WARP / 8, row = thread_index() % 8, lanes = right + index / 2 * 8;
#pragma unroll
    for (int k = 0; k < CONV_PIECES; k += 2) { /* 16 elements are two pieces */
        uint32_t a[2][4], b[4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            load_matrices<false>(a[i], &stage.a[conv_turned(down + i * 16 + index % 2 * 8 + row, k + index / 2)]);
        if constexpr (ACROSS)
            load_matrices<true>(b, &stage.b[conv_turned_across((k + index % 2) * VECTOR + row, lanes / VECTOR)]);
        else
            load_matrices<false>(b, &stage.b[conv_turned(lanes + row, k + index % 2)]);
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) warp_multiply(T(), sum[i][j], a[i], b[j * 2], b[j * 2 + 1]);
    }
}

template <class T, bool TRANSPOSED> DEVICE void conv_mma(const conv_params &p) {
    SHARED conv_ring stage[CONV_STAGES];
    const int64_t lane = block_index() % p.right * CONV_TILE, group = block_index() / p.right % p.groups,
                  tile = block_index() / (p.right * p.groups);
    const conv_walks k(p.axis, TRANSPOSED, tile / p.down);
    const int64_t first = tile % p.down * CONV_TILE, rows = p.n * k.positions();
    if (first >= rows) return;
    const int32_t elements = k.taps() * (int32_t)p.channels, steps = (elements + CONV_STEP - 1) / CONV_STEP;
    const int warp = thread_index() / WARP, down = warp / (CONV_TILE / CONV_WARP_COLUMNS) * CONV_WARP_ROWS,
              right = warp % (CONV_TILE / CONV_WARP_COLUMNS) * CONV_WARP_COLUMNS;
    float sum[2][2][4] = {};
    if (steps > 0) {
        conv_feed patches(p, k, group, first, rows);
        conv_weight_feed<TRANSPOSED> weights(p, k, group, lane);
        const auto feed = [&](conv_ring &to, int32_t step) {
            if (step < steps) patches.copy(to, p, k), weights.copy(to, p, k);
            copy_commit();
        };
#pragma unroll
        for (int s = 0; s < CONV_STAGES - 1; s++) feed(stage[s], s);
        int now = 0, next = CONV_STAGES - 1;
        for (int32_t s = 0; s < steps; s++) {
            copy_wait<CONV_STAGES - 2>();
            sync_block();
            feed(stage[next], s + CONV_STAGES - 1);
            conv_warp<T, TRANSPOSED>(sum, stage[now], down, right);
            now = now + 1 == CONV_STAGES ? 0 : now + 1, next = next + 1 == CONV_STAGES ? 0 : next + 1;
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t row = first + down + i * 16 + half * 8 + thread_index() % WARP / 4;
            if (row >= rows) continue;
            const conv_position at(k, row);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int64_t own = lane + right + j / 2 * 8 + thread_index() % 4 * 2 + j % 2;
                if (own < p.lanes) conv_put<T>(p, k, at, group * p.lanes + own, sum[i][j / 2][2 * half + j % 2]);
            }
        }
}

#endif
