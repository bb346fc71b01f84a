/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bf16 and f16 by the matrix units of CDNA: a block of four waves has a tile of 64 positions and 64
 * channels, each wave a quarter. While 32 elements of patches and weights are multiplied out of LDS, the next are on
 * their way to registers, a chunk of either for each thread. The order of an element's sum is that of its patch.
 *
 * NOTES. Floor: patches once for each tile of channels, weights once for each tile of positions. */
#ifndef TRINE_HIP_CONV_MFMA_H
#define TRINE_HIP_CONV_MFMA_H

#include "backends/simt/conv/conv.inl.h"
#include "matrix.h"

template <class T> struct conv_mfma {
    using bits = typename T::bits;
    using matrix = unit<T>;
    using sums = typename matrix::sums;
    enum {
        ELEMENTS = CHUNK / sizeof(bits),
        DEPTH = TILE_BYTES / sizeof(bits),
        HALF = CONV_TILE / 2,
        PARTS = HALF / 16,
        GROUP = 4 /* sums of a lane in a square */
    };
    static_assert(CONV_TILE * CHUNKS == (int)SIMT_THREADS, "a thread brings a chunk of each");
    struct lds {
        chunk a[2][CONV_TILE * CHUNKS], b[2][CONV_TILE * CHUNKS];
    };

    const conv_params &p;
    const conv_walks &k;
    const bits *from;    /* of the group */
    int64_t group, lane; /* whose weights the thread brings */
    conv_position at;    /* whose patch */
    bool in_rows, in_lanes;
    conv_element e; /* the first that the thread brings next, of either */

    DEVICE conv_mfma(const conv_params &params, const conv_walks &walks, const conv_block &block, int64_t first,
                     int64_t rows, int32_t begin)
        : p(params), k(walks), group(block.group) {
        const int own = thread_index() / CHUNKS;
        from = (const bits *)p.from.data + group * p.channels * p.from.channel;
        lane = block.right * CONV_TILE + own;
        in_rows = first + own < rows, in_lanes = lane < p.lanes;
        at = conv_position(k, in_rows ? first + own : 0);
        e = conv_element(k, (int32_t)p.channels, begin + thread_index() % CHUNKS * ELEMENTS);
    }

    DEVICE chunk patch() const {
        chunk c = {};
        if (p.pieces) {
            const int64_t z = k.d.first + at.d * k.d.step + e.d * k.d.dilation,
                          y = k.h.first + at.h * k.h.step + e.h * k.h.dilation,
                          x = k.w.first + at.w * k.w.step + e.w * k.w.dilation;
            if (in_rows && e.there(k) && z >= 0 && z < k.d.in && y >= 0 && y < k.h.in && x >= 0 && x < k.w.in)
                c = *(const chunk *)(from + (at.n * p.from.batch + z * p.from.axis[0] + y * p.from.axis[1] +
                                             x * p.from.axis[2] + e.channel));
            return c;
        }
        bits element[ELEMENTS];
        conv_element one = e;
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++, one.advance(k, (int32_t)p.channels, 1))
            element[i] = in_rows && one.there(k) ? conv_bits(from, p.from, k, at, one) : bits(0);
        __builtin_memcpy(&c, element, sizeof c);
        return c;
    }
    DEVICE chunk weights() const {
        const bits *const data = (const bits *)p.weight.data;
        chunk c = {};
        if (p.weight_pieces) {
            if (in_lanes && e.there(k)) c = *(const chunk *)(data + conv_weight_at(p, k, group, lane, e));
            return c;
        }
        bits element[ELEMENTS];
        conv_element one = e;
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++, one.advance(k, (int32_t)p.channels, 1))
            element[i] = in_lanes && one.there(k) ? data[conv_weight_at(p, k, group, lane, one)] : bits(0);
        __builtin_memcpy(&c, element, sizeof c);
        return c;
    }
    static DEVICE void put(chunk *tile, chunk c) {
        tile[chunk_place(thread_index() / CHUNKS, thread_index() % CHUNKS)] = c;
    }

    /* The wave's part of a tile. */
    static DEVICE int down() { return thread_index() / WARP / 2 * HALF; }
    static DEVICE int right() { return thread_index() / WARP % 2 * HALF; }
    static DEVICE void multiply(sums (&sum)[PARTS][PARTS], const chunk *a, const chunk *b) {
        const int thread = thread_index() % WARP,
                  place[2] = { chunk_place(thread % 16, thread / 16), chunk_place(16 + thread % 16, thread / 16) };
        chunk x[PARTS], y[PARTS];
#pragma unroll
        for (int i = 0; i < PARTS; i++) x[i] = a[down() * CHUNKS + place[i]], y[i] = b[right() * CHUNKS + place[i]];
#pragma unroll
        for (int i = 0; i < PARTS; i++)
#pragma unroll
            for (int j = 0; j < PARTS; j++) matrix::multiply(sum[i][j], x[i], y[j]);
    }

    DEVICE void steps(sums (&sum)[PARTS][PARTS], lds &m, int32_t count) {
        chunk a = patch(), b = weights();
        for (int32_t step = 0, now = 0; step < count; step++, now = 1 - now) {
            put(m.a[now], a), put(m.b[now], b);
            sync_block();
            if (step + 1 < count) {
                e.advance(k, (int32_t)p.channels, DEPTH);
                a = patch(), b = weights();
            }
            multiply(sum, m.a[now], m.b[now]);
        }
    }
};

template <class T> DEVICE void conv_by_matrices(const conv_params &p) {
    using tile = conv_mfma<T>;
    SHARED typename tile::lds m;
    const conv_block block(p);
    const conv_walks k(p.axis, false, 0);
    const int64_t first = block.tile * CONV_TILE, rows = p.n * k.positions(), lanes = p.groups * p.lanes;
    typename tile::sums sum[tile::PARTS][tile::PARTS] = {};
    const conv_steps steps(p, block, k.taps() * (int32_t)p.channels, tile::DEPTH);
    if (steps.first < steps.last)
        tile(p, k, block, first, rows, steps.first * tile::DEPTH).steps(sum, m, steps.last - steps.first);
    const int thread = thread_index() % WARP;
#pragma unroll
    for (int i = 0; i < tile::PARTS; i++)
#pragma unroll
        for (int r = 0; r < tile::GROUP; r++) {
            const int64_t row = first + tile::down() + i * 16 + sum_row<typename tile::sums>(thread, r);
            if (row >= rows) continue;
            const conv_position at(k, row);
            const bool part = p.slices > 1;
            const int64_t to =
                part ? (block.slice * p.n * p.axis[0].out * p.axis[1].out * p.axis[2].out + conv_number(p, k, at)) *
                           lanes
                     : conv_to(p, k, at);
#pragma unroll
            for (int j = 0; j < tile::PARTS; j++) {
                const int64_t own = block.right * CONV_TILE + tile::right() + j * 16 + thread % 16,
                              channel = block.group * p.lanes + own;
                if (own >= p.lanes) continue;
                if (part)
                    ((float *)p.sums)[to + channel] = sum[i][j][r];
                else
                    conv_put_at<T>(p, to, channel, (float)sum[i][j][r]);
            }
        }
}

#endif
