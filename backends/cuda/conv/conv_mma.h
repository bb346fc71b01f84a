/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bf16 and f16, and their gradients, as products by the tensor cores of sm_80 and later: by the warps
 * and stages of matrix products (matmul_mma.h), to which patches come tap by tap.
 *
 * A block has a tile of positions and channels, by four warps, and of the elements of patches all or a slice, in steps
 * of 64. Of the gradient by weights, a tile of channels of dy and of elements, and a slice of the positions, 64 a step.
 * Patches are never in memory.
 *
 * NOTES. Floor: 2 n p q k r s cg flops over the rate of mma.sync; patches once for each tile of channels, weights once
 * for each tile of positions, mostly from L2. Where a row of positions begins in x is in shared memory, 16 bytes, since
 * registers are full of sums; a piece of 8 elements is one copy where a tap's channels are whole aligned pieces, else
 * eight loads, all of a step's at once. A piece costs a read of that and about 12 instructions, beside 32 to 64
 * products. */
#ifndef TRINE_CUDA_CONV_MMA_H
#define TRINE_CUDA_CONV_MMA_H

#include "backends/cuda/matmul/matmul_mma.h"
#include "backends/simt/conv/gradient.inl.h"
#include "conv_mma_shapes.h"

template <int ROWS, int COLUMNS> using conv_shape = matmul_mma_shape<ROWS, COLUMNS, 2, 2, CONV_MMA_STAGES>;
enum { CONV_MMA_PASS = CONV_MMA_THREADS / 8 }; /* rows of a stage that are copied at a time, a quarter of a step's */
static_assert(CONV_MMA_PASS * 4 == (int)CONV_MMA_STEP && CONV_MMA_STEP * 2 == 128, "a quarter of a step is a pass");

/* Where the patch of a position begins, which may be beyond edges: in memory, and along height and width. */
struct alignas(16) conv_begin {
    int64_t at;
    int32_t y, x;
};
enum { CONV_NOWHERE = -(1 << 30) };

/* An axis whose places are far within 31 bits (conv_narrow()), and all of them. */
struct conv_way {
    int32_t in, taps, dilation, every, tap;

    DEVICE explicit conv_way(const conv_walk &k)
        : in((int32_t)k.in), taps(k.taps), dilation((int32_t)k.dilation), every((int32_t)k.every), tap(k.tap) {}
};
struct conv_ways {
    conv_way d, h, w;
    int32_t channels;

    DEVICE conv_ways(const conv_walks &k, int64_t count) : d(k.d), h(k.h), w(k.w), channels((int32_t)count) {}
};

/* An element of patches: its tap and channel, how far the tap leads from a patch's begin, in memory and along the axes,
 * and where it is in the weights. */
template <bool DEEP> struct conv_tap {
    int32_t d, h, w, channel, z, y, x;
    int64_t from, weight;

    DEVICE conv_tap() {}
    DEVICE conv_tap(const conv_ways &k, const conv_view &view, const conv_view &weights, int32_t number) {
        const int32_t tap = number / k.channels;
        channel = number % k.channels;
        w = tap % k.w.taps, h = tap / k.w.taps % k.h.taps, d = tap / (k.w.taps * k.h.taps);
        place(k, view, weights);
    }
    DEVICE void place(const conv_ways &k, const conv_view &view, const conv_view &weights) {
        y = h * k.h.dilation, x = w * k.w.dilation;
        from = y * view.axis[1] + x * view.axis[2];
        weight = (k.h.tap + h * k.h.every) * weights.axis[1] + (k.w.tap + w * k.w.every) * weights.axis[2];
        if (!DEEP) return;
        z = d * k.d.dilation;
        from += z * view.axis[0], weight += (k.d.tap + d * k.d.every) * weights.axis[0];
    }
    DEVICE void advance(const conv_ways &k, const conv_view &view, const conv_view &weights, int32_t by) {
        channel += by;
        if (channel < k.channels) return;
#pragma unroll 1
        do {
            channel -= k.channels;
            if (++w < k.w.taps) continue;
            w = 0;
            if (++h == k.h.taps) h = 0, d++;
        } while (channel >= k.channels);
        place(k, view, weights);
    }
    /* Is it one, d being beyond the taps where there is none? */
    DEVICE bool there(const conv_ways &k) const { return d < k.d.taps; }
    DEVICE bool inside(const conv_ways &k, const conv_begin &row, int32_t plane) const {
        return there(k) && (uint32_t)(row.y + y) < (uint32_t)k.h.in && (uint32_t)(row.x + x) < (uint32_t)k.w.in &&
               (!DEEP || (uint32_t)(plane + z) < (uint32_t)k.d.in);
    }
};

/* ------------------------------------------------------------------------------------- the forward, and that by x */

/* Steps of elements of patches, and of the weights. */
template <class Shape, bool TRANSPOSED, bool DEEP> struct conv_feed {
    const conv_params &p;
    const conv_ways &k;
    const conv_begin *row;
    const int32_t *plane;
    const uint16_t *from, *weight; /* of the group, and of the thread's first lane */
    int32_t lanes, step, last;     /* lanes from that one on; steps */
    conv_tap<DEEP> a, b;           /* b: of transposed weights, whose rows are elements */

    DEVICE conv_feed(const conv_params &params, const conv_ways &ways, const conv_begin *rows, const int32_t *planes,
                     const conv_block &block, const conv_steps &steps)
        : p(params), k(ways), row(rows), plane(planes), step(steps.first), last(steps.last) {
        const int32_t first = step * CONV_MMA_STEP, thread = thread_index(), piece = thread % 8 * VECTOR;
        const int64_t lane = block.right * Shape::COLUMNS + (TRANSPOSED ? piece : thread / 8), left = p.lanes - lane;
        from = (const uint16_t *)p.from.data + block.group * p.channels * p.from.channel;
        weight = (const uint16_t *)p.weight.data + block.group * p.group + lane * p.weight.batch;
        lanes = left < Shape::COLUMNS ? (int32_t)left : (int32_t)Shape::COLUMNS;
        a = conv_tap<DEEP>(k, p.from, p.weight, first + piece);
        if (TRANSPOSED) b = conv_tap<DEEP>(k, p.from, p.weight, first + thread / 8);
    }

    DEVICE void patch(char *to, int number) const {
        const conv_begin at = row[number];
        const bool inside = a.inside(k, at, DEEP ? plane[number] : 0);
        copy_bytes<16>(to, from + (inside ? at.at + a.from + a.channel : 0), inside ? 16 : 0);
    }
    /* Of a lane eight elements, or of an element eight lanes. */
    DEVICE void lane_weights(char *to, int number) const {
        const bool yes = number < lanes && a.there(k);
        copy_bytes<16>(to, yes ? weight + number * p.weight.batch + a.weight + a.channel : weight, yes ? 16 : 0);
    }
    DEVICE void element_weights(char *to, int number) const {
        const bool yes = number < lanes && b.there(k);
        copy_bytes<16>(to, yes ? weight + number + b.weight + b.channel * p.weight.channel : weight, yes ? 16 : 0);
    }

    /* A whole step of either, one element at a time. */
    DEVICE void gather_patches(char *own) const {
#pragma unroll 1
        for (int pass = 0; pass < Shape::ROWS; pass += CONV_MMA_PASS) {
            const int number = pass + thread_index() / 8;
            const conv_begin at = row[number];
            const int32_t deep = DEEP ? plane[number] : 0;
            conv_tap<DEEP> one = a;
#pragma unroll 1
            for (int i = 0; i < VECTOR; i++) {
                ((uint16_t *)(own + pass * 128))[i] =
                    one.inside(k, at, deep) ? from[at.at + one.from + one.channel * p.from.channel] : (uint16_t)0;
                one.advance(k, p.from, p.weight, 1);
            }
        }
    }
    DEVICE void gather_weights(char *own) const {
        conv_tap<DEEP> one = TRANSPOSED ? b : a;
#pragma unroll 1
        for (int pass = 0; pass < Shape::COLUMNS; pass += CONV_MMA_PASS) {
            /* of transposed ones a panel of 64 lanes after the other, of whose rows this is one */
            const int number = TRANSPOSED ? pass / CONV_MMA_STEP * CONV_MMA_STEP : pass;
            if (TRANSPOSED ? pass % CONV_MMA_STEP == 0 : true) one = TRANSPOSED ? b : a;
#pragma unroll 1
            for (int i = 0; i < VECTOR; i++) {
                const int lane = TRANSPOSED ? number + i : number;
                ((uint16_t *)(own + pass * 128))[i] =
                    lane < lanes && one.there(k)
                        ? weight[lane * p.weight.batch + one.weight + one.channel * p.weight.channel]
                        : (uint16_t)0;
                if (!TRANSPOSED) one.advance(k, p.from, p.weight, 1);
            }
            if (TRANSPOSED) one.advance(k, p.from, p.weight, CONV_MMA_PASS);
        }
    }

    /* Quarter i of the next step, in its turn. */
    DEVICE void quarter(char *to, int i) {
        enum { A = Shape::ROWS / CONV_MMA_STEP, B = Shape::COLUMNS / CONV_MMA_STEP };
        char *const own = to + matmul_swizzled(thread_index() / 8, thread_index() % 8);
        if (step < last) {
            if (p.pieces) {
#pragma unroll
                for (int j = 0; j < A; j++) {
                    const int pass = (i * A + j) * CONV_MMA_PASS;
                    patch(own + pass * 128, pass + thread_index() / 8);
                }
            } else if (i == 0) {
                gather_patches(own);
            }
            if (p.weight_pieces) {
#pragma unroll
                for (int j = 0; j < B; j++) {
                    const int pass = (i * B + j) * CONV_MMA_PASS, across = j * CONV_MMA_STEP;
                    if (TRANSPOSED)
                        element_weights(own + (Shape::ROWS + across + i * CONV_MMA_PASS) * 128, across);
                    else
                        lane_weights(own + (Shape::ROWS + pass) * 128, pass);
                }
            } else if (i == 0) {
                gather_weights(own + Shape::ROWS * 128);
            }
            if (TRANSPOSED) b.advance(k, p.from, p.weight, CONV_MMA_PASS);
            if (i == 3) a.advance(k, p.from, p.weight, CONV_MMA_STEP);
        }
        if (i < 3) return;
        step++;
        copy_commit();
    }
};

/* The products of all steps, through a ring of stages. */
template <class T, class Shape, bool A_ACROSS, bool B_ACROSS, class Feed>
DEVICE void conv_mma_steps(Feed &feed, int32_t steps, char *memory, float (&sum)[Shape::M][2 * Shape::N][4]) {
    enum { STAGES = Shape::STAGES, SLICES = 4 };
    const matmul_mma_view<A_ACROSS, Shape::DOWN> left(thread_index() / WARP / Shape::RIGHT, false);
    const matmul_mma_view<B_ACROSS, Shape::RIGHT> right(thread_index() / WARP % Shape::RIGHT, true);
    matmul_mma_slice<Shape, A_ACROSS, B_ACROSS> slice[2];
    char *from = memory, *to = memory + (STAGES - 1) * Shape::STAGE;
#pragma unroll 1
    for (int stage = 0; stage < STAGES - 1; stage++)
#pragma unroll 1
        for (int i = 0; i < SLICES; i++) feed.quarter(memory + stage * Shape::STAGE, i);
    copy_wait<STAGES - 2>();
    sync_block();
    slice[0].load(from, 0, left, right);
#pragma unroll 1
    for (int32_t step = 0; step < steps; step++) {
        char *const next = from < memory + (STAGES - 1) * Shape::STAGE ? from + Shape::STAGE : memory;
#pragma unroll
        for (int i = 0; i < SLICES; i++) {
            const bool last = i == SLICES - 1;
            if (last) {
                copy_wait<STAGES - 3>(); /* what this step copies is not committed yet */
                sync_block();            /* the next step is there, and nobody reads this one any more */
            }
            slice[(i + 1) % 2].load(last ? next : from, (i + 1) % SLICES, left, right);
            slice[i % 2].multiply(T(), sum);
            feed.quarter(to, i);
        }
        to = from, from = next;
    }
}

/* A tile's sums in the memory of the ring, which nobody reads any more, rows of PITCH; and behind them a table. */
template <class Shape> struct conv_mma_tile {
    enum { PITCH = Shape::COLUMNS + 8, BYTES = Shape::ROWS * PITCH * 4, UNITS = Shape::COLUMNS / VECTOR };
    static_assert(BYTES + Shape::ROWS * 8 <= Shape::STAGES * Shape::STAGE);
    enum { LINES = CONV_MMA_THREADS / UNITS }; /* rows that threads have at a time, each 8 columns of one */
    static DEVICE int64_t *table(char *memory) { return (int64_t *)(memory + BYTES); }

    static DEVICE void put(char *memory, const float (&sum)[Shape::M][2 * Shape::N][4]) {
        const int lane = thread_index() % WARP;
#pragma unroll
        for (int i = 0; i < 2 * Shape::M; i++)
#pragma unroll
            for (int j = 0; j < 2 * Shape::N; j++)
                *(packed<float, 2> *)((float *)memory + (Shape::row(i / 2) + i % 2 * 8 + lane / 4) * PITCH +
                                      Shape::column(j / 2) + j % 2 * 8 +
                                      lane % 4 * 2) = { { sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1] } };
    }
    static DEVICE void get(float (&v)[VECTOR], const char *memory, int row, int column) {
        const packed<float, VECTOR> all =
            *(const packed<float, VECTOR> *)((const float *)memory + row * PITCH + column);
#pragma unroll
        for (int i = 0; i < VECTOR; i++) v[i] = all.v[i];
    }
};
/* Eight sums of a row, or as many as there are. */
DEVICE void conv_mma_put_sums(float *to, const float (&v)[VECTOR], int64_t count) {
    if (count >= VECTOR && (uintptr_t)to % 16 == 0) {
        *(packed<float, VECTOR> *)to = { { v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7] } };
        return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        if (i < count) to[i] = v[i];
}

/* The table says of each row where it is written, which may be before the first element; INT64_MIN: nowhere. */
template <class T, class Shape> DEVICE void conv_mma_end(const conv_params &p, const conv_block &block, char *memory) {
    using tile = conv_mma_tile<Shape>;
    const int column = thread_index() % tile::UNITS * VECTOR;
    const int64_t own = block.right * Shape::COLUMNS + column, count = p.lanes - own,
                  channel = block.group * p.lanes + own;
    if (count <= 0) return;
    float bias[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; i++) bias[i] = i < count && p.slices <= 1 ? conv_biased<T>(p, channel + i, 0.0f) : 0.0f;
#pragma unroll 1
    for (int row = thread_index() / tile::UNITS; row < Shape::ROWS; row += tile::LINES) {
        const int64_t to = tile::table(memory)[row];
        float v[VECTOR];
        if (to == INT64_MIN) continue;
        tile::get(v, memory, row, column);
        if (p.slices > 1) {
            conv_mma_put_sums((float *)p.sums + to + channel, v, count);
            continue;
        }
        uint16_t x[VECTOR], *const y = (uint16_t *)p.to.data + to + channel * p.to.channel;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) x[i] = T::put(v[i] + bias[i]);
        if (p.to_pieces)
            store_whole(x, y);
        else
#pragma unroll
            for (int i = 0; i < VECTOR; i++)
                if (i < count) y[i * p.to.channel] = x[i];
    }
}

template <class T, class Shape, bool TRANSPOSED, bool DEEP> DEVICE void conv_mma(const conv_params &p) {
    SHARED conv_begin row[Shape::ROWS];
    SHARED int32_t plane[DEEP ? Shape::ROWS : 1];
    char *const memory = launch_memory();
    const conv_block block(p);
    const conv_walks k(p.axis, TRANSPOSED, block.tile / p.down);
    const int64_t first = block.tile % p.down * Shape::ROWS, rows = p.n * k.positions();
    if (first >= rows) return;
    for (int i = thread_index(); i < Shape::ROWS; i += CONV_MMA_THREADS) {
        const conv_position at(k, first + i < rows ? first + i : first);
        const int64_t z = k.d.first + at.d * k.d.step, y = k.h.first + at.h * k.h.step, x = k.w.first + at.w * k.w.step;
        row[i] = { at.n * p.from.batch + z * p.from.axis[0] + y * p.from.axis[1] + x * p.from.axis[2],
                   first + i < rows ? (int32_t)y : (int32_t)CONV_NOWHERE, (int32_t)x };
        if (DEEP) plane[i] = (int32_t)z;
    }
    sync_block();
    float sum[Shape::M][2 * Shape::N][4] = {};
    const conv_steps steps(p, block, k.taps() * (int32_t)p.channels, CONV_MMA_STEP);
    if (steps.first < steps.last) {
        const conv_ways ways(k, p.channels);
        conv_feed<Shape, TRANSPOSED, DEEP> feed(p, ways, row, plane, block, steps);
        conv_mma_steps<T, Shape, false, TRANSPOSED>(feed, steps.last - steps.first, memory, sum);
    }
    sync_block(); /* nobody reads the ring any more */
    conv_mma_tile<Shape>::put(memory, sum);
    int64_t *const place = conv_mma_tile<Shape>::table(memory);
    const int64_t before = block.slice * p.n * p.axis[0].out * p.axis[1].out * p.axis[2].out;
    for (int i = thread_index(); i < Shape::ROWS; i += CONV_MMA_THREADS) {
        const conv_position at(k, first + i < rows ? first + i : first);
        place[i] = first + i >= rows ? INT64_MIN
                   : p.slices > 1    ? (before + conv_number(p, k, at)) * p.groups * p.lanes
                                     : conv_to(p, k, at);
    }
    sync_block();
    conv_mma_end<T, Shape>(p, block, memory);
}

/* ------------------------------------------------------------------------------------------------------ by weights */

/* Steps of positions: of dy, and of x at the taps and channels of the tile's elements. */
template <class Shape> struct gradient_feed {
    enum { A = Shape::ROWS / CONV_MMA_STEP, B = Shape::COLUMNS / CONV_MMA_STEP };
    const conv_gradient_params &p;
    const conv_walks &k;
    const conv_ways ways;
    const uint16_t *x, *dy; /* of the group, and of the thread's first channel */
    int64_t number, last;   /* the position that comes next, and the slice's end */
    conv_position at;
    int32_t rows;           /* channels of dy from the first one on */
    conv_tap<false> tap[B]; /* of the piece's first element */

    DEVICE gradient_feed(const conv_gradient_params &params, const conv_walks &walks, int64_t group, int64_t row,
                         int64_t column, int64_t first, int64_t end)
        : p(params), k(walks), ways(walks, params.channels), number(first + thread_index() / 8), last(end) {
        const int piece = thread_index() % 8 * VECTOR;
        const int64_t left = p.rows - row - piece;
        x = (const uint16_t *)p.x.data + group * p.channels * p.x.channel;
        dy = (const uint16_t *)p.dy.data + (group * p.rows + row + piece) * p.dy.channel;
        rows = left < Shape::ROWS ? (int32_t)left : (int32_t)Shape::ROWS;
        at = conv_position(k, number);
#pragma unroll
        for (int j = 0; j < B; j++)
            tap[j] = conv_tap<false>(ways, p.x, p.to, (int32_t)column + j * CONV_MMA_STEP + piece);
    }
    DEVICE void quarter(char *to, int i) {
        char *const own = to + matmul_swizzled(thread_index() / 8, thread_index() % 8) + i * CONV_MMA_PASS * 128;
        const bool there = number < last;
        const uint16_t *const from =
            dy + (at.n * p.dy.batch + at.d * p.dy.axis[0] + at.h * p.dy.axis[1] + at.w * p.dy.axis[2]);
        const int64_t z = k.d.first + at.d * k.d.step, y = k.h.first + at.h * k.h.step, w = k.w.first + at.w * k.w.step;
        const conv_begin begin = { at.n * p.x.batch + z * p.x.axis[0] + y * p.x.axis[1] + w * p.x.axis[2],
                                   there ? (int32_t)y : (int32_t)CONV_NOWHERE, (int32_t)w };
        if (p.dy_pieces) {
#pragma unroll
            for (int j = 0; j < A; j++) {
                const bool yes = there && j * CONV_MMA_STEP < rows;
                copy_bytes<16>(own + j * CONV_MMA_STEP * 128,
                               yes ? from + j * CONV_MMA_STEP : (const uint16_t *)p.dy.data, yes ? 16 : 0);
            }
        } else {
#pragma unroll 1
            for (int j = 0; j < A * VECTOR; j++) {
                const int row = j / VECTOR * CONV_MMA_STEP, lane = row + j % VECTOR;
                ((uint16_t *)(own + row * 128))[j % VECTOR] =
                    there && lane < rows ? from[lane * p.dy.channel] : (uint16_t)0;
            }
        }
        char *const cell = own + Shape::ROWS * 128;
        if (p.pieces) {
#pragma unroll
            for (int j = 0; j < B; j++) {
                const bool yes = tap[j].inside(ways, begin, 0);
                copy_bytes<16>(cell + j * CONV_MMA_STEP * 128, x + (yes ? begin.at + tap[j].from + tap[j].channel : 0),
                               yes ? 16 : 0);
            }
        } else {
            gather_patches(cell, begin);
        }
        number += CONV_MMA_PASS;
        at.advance(k, CONV_MMA_PASS);
        if (i == 3) copy_commit();
    }
    DEVICE void gather_patches(char *cell, const conv_begin &begin) const {
        conv_tap<false> one = tap[0];
#pragma unroll 1
        for (int j = 0; j < B; j++) {
#pragma unroll 1
            for (int e = 0; e < VECTOR; e++) {
                ((uint16_t *)(cell + j * CONV_MMA_STEP * 128))[e] =
                    one.inside(ways, begin, 0) ? x[begin.at + one.from + one.channel * p.x.channel] : (uint16_t)0;
                one.advance(ways, p.x, p.to, 1);
            }
            one.advance(ways, p.x, p.to, CONV_MMA_STEP - VECTOR);
        }
    }
};

template <class T, class Shape> DEVICE void gradient_mma(const conv_gradient_params &p) {
    char *const memory = launch_memory();
    const int64_t column = block_index() % p.right * Shape::COLUMNS,
                  row = block_index() / p.right % p.down * Shape::ROWS,
                  group = block_index() / (p.right * p.down) % p.groups,
                  slice = block_index() / (p.right * p.down * p.groups), first = slice * p.slice,
                  last = first + p.slice < p.positions ? first + p.slice : p.positions;
    const conv_walks k(p.axis, false, 0);
    float sum[Shape::M][2 * Shape::N][4] = {};
    if (first < last) {
        gradient_feed<Shape> feed(p, k, group, row, column, first, last);
        const int32_t steps = (int32_t)((last - first + CONV_MMA_STEP - 1) / CONV_MMA_STEP);
        conv_mma_steps<T, Shape, true, true>(feed, steps, memory, sum);
        copy_wait<0>(); /* zeros of steps behind the last */
    }
    sync_block();
    using tile = conv_mma_tile<Shape>;
    tile::put(memory, sum);
    sync_block();
    const int from = thread_index() % tile::UNITS * VECTOR;
    float *const sums = (float *)p.sums + (slice * p.groups + group) * p.rows * p.elements + column + from;
#pragma unroll 1
    for (int i = thread_index() / tile::UNITS; i < Shape::ROWS && row + i < p.rows; i += tile::LINES) {
        float v[VECTOR];
        tile::get(v, memory, i, from);
        conv_mma_put_sums(sums + (row + i) * p.elements, v, p.elements - column - from);
    }
}

#endif
