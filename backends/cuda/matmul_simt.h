/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products without tensor cores: any types, sizes and strides.
 *
 * A block has a tile of 128 x 128 elements of d, a warp 32 x 64 of it, a thread four blocks of 4 x 4 (or 64 x 64, 32 x 32 and two), so that a warp's reads from shared memory are vectors of
 * which 64 and 128 bytes differ. Slices of both operands lie in shared memory with lanes consecutive. Types that are summed as they are come by copies, some
 * slices ahead; others are read into registers while the slice before is multiplied, and converted. Sums go along k, one fused multiply-add for each element.
 *
 * NOTES. Floors: 2 m n k flops over 67 TFLOP/s (H200, f32, datasheet; 34 for f64), and the operands once. A thread reads 16 words of shared memory for 64
 * multiply-adds of a step. At 4096 on an H200, f32: 35 TFLOP/s through registers, 38 by copies, 40 with the addresses inside an operand unchecked, where
 * cuBLAS has 51; then neither the number of blocks held nor the pattern of reads from shared memory moved that by more than 2 %, and a scheduler issued in 72 %
 * of its clocks. With 8 x 16 elements to a thread, and so half as many warps, 38. Reading one step ahead, also past the barrier at the end of a slice: 46. */
#ifndef TRINE_CUDA_MATMUL_SIMT_H
#define TRINE_CUDA_MATMUL_SIMT_H

#include <tile/mma.h>

#include "matmul_finish.h"

/* How an element is read and summed: `slice` elements of k at a time. */
template <class T> struct matmul_float {
    using bits = typename T::bits;
    using sum = float;
    enum { SLICE = 16 };
    static DEVICE float get(bits b) { return T::get(b); }
    static DEVICE float step(float a, float b, float s) { return fused(a, b, s); }
};
struct matmul_double {
    using bits = double;
    using sum = double;
    enum { SLICE = 8 };
    static DEVICE double get(bits b) { return b; }
    static DEVICE double step(double a, double b, double s) { return fma(a, b, s); }
};
struct matmul_int8 {
    using bits = int8_t;
    using sum = int32_t;
    enum { SLICE = 16 };
    static DEVICE int32_t get(bits b) { return b; }
    static DEVICE int32_t step(int32_t a, int32_t b, int32_t s) { return (int32_t)((uint32_t)a * (uint32_t)b + (uint32_t)s); }
};

/* The walk over tiles: parts of k, batches, groups of MATMUL_GROUP tile rows, in each column by column. */
struct matmul_place {
    int64_t batch, row, column; /* of the tile's first element */
    int64_t first, depth;       /* its elements of k */
    int64_t result;             /* the target's batch */
};
DEVICE matmul_place matmul_place_of(const matmul_params &p, int rows, int columns) {
    const int64_t result = block_index() / (p.down * p.right), rest = block_index() - result * p.down * p.right, group = rest / (MATMUL_GROUP * p.right);
    const int64_t above = group * MATMUL_GROUP, high = p.down - above < MATMUL_GROUP ? p.down - above : (int64_t)MATMUL_GROUP, in = rest - above * p.right;
    const int64_t part = result / p.batches, first = part * p.depth, left = p.k - first;
    return { result - part * p.batches, (above + in % high) * rows, in / high * columns, first, left < p.depth ? left : p.depth, result };
}

/* Where an operand's lanes from `lane` on, and elements of k from `along` on in the part of it, are. */
template <class Bits> DEVICE const Bits *matmul_at(const matmul_operand &from, const matmul_place &at, int64_t lane, int64_t along) {
    return (const Bits *)from.data + at.batch * from.batch + lane * from.lane + (at.first + along) * from.along;
}

/* A slice of an operand's 128 lanes in a thread's registers: QUADS times 4 elements consecutive in memory. */
template <class T> struct matmul_slice {
    using Bits = typename T::bits;
    enum { DEPTH = T::SLICE, LANES = MATMUL_SIDE, QUADS = DEPTH * LANES / 4 / MATMUL_THREADS, PITCH = LANES + 4, RUN = DEPTH / 4, ROW = LANES / 4 };
    const Bits *at;     /* the first quad, of the slice to be read next */
    int64_t next, quad; /* from slice to slice, from quad to quad */
    int64_t inner;      /* to the next element */
    int64_t deep;       /* elements of k from the first quad on */
    int rest;           /* lanes from there on */
    bool across, wide;
    Bits v[QUADS][4];

    DEVICE matmul_slice(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t end) {
        const int thread = thread_index(), lane = from.across ? thread % ROW * 4 : thread / RUN, along = from.across ? thread / ROW : thread % RUN * 4;
        across = from.across, wide = from.wide, deep = tile.depth - along;
        rest = (end - first < LANES ? (int)(end - first) : (int)LANES) - lane;
        at = matmul_at<Bits>(from, tile, first + lane, along);
        next = DEPTH * from.along;
        quad = across ? MATMUL_THREADS / ROW * from.along : MATMUL_THREADS / RUN * from.lane;
        inner = across ? from.lane : from.along;
    }

    DEVICE void read() {
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const Bits *const from = at + q * quad;
            const bool in = across ? q * (int)(MATMUL_THREADS / ROW) < deep : q * (int)(MATMUL_THREADS / RUN) < rest;
            const int left = !in ? 0 : across ? rest : deep < 4 ? (int)deep : 4;
            if (wide && left >= 4) {
                const packed<Bits, 4> whole = *(const packed<Bits, 4> *)from;
#pragma unroll
                for (int i = 0; i < 4; i++) v[q][i] = whole.v[i];
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++) v[q][i] = i < left ? from[i * inner] : Bits(0);
            }
        }
        at += next, deep -= DEPTH;
    }

    DEVICE void write(typename T::sum *to) const {
        const int thread = thread_index(), first = across ? thread / ROW * PITCH + thread % ROW * 4 : thread % RUN * 4 * PITCH + thread / RUN;
        const int step = across ? 1 : (int)PITCH, quads = across ? (int)(MATMUL_THREADS / ROW * PITCH) : (int)(MATMUL_THREADS / RUN);
#pragma unroll
        for (int q = 0; q < QUADS; q++)
#pragma unroll
            for (int i = 0; i < 4; i++) to[first + q * quads + i * step] = T::get(v[q][i]);
    }
};

/* The same by copies, one slice after the other: pieces of 16 bytes where lanes are consecutive and aligned, single elements elsewhere. */
template <class T, int LANES> struct matmul_copies {
    using Bits = typename T::bits;
    enum { SIZE = sizeof(Bits), DEPTH = T::SLICE, THREADS = 2 * LANES, PITCH = LANES + 4, PIECE = 16 / SIZE, ROW = LANES / PIECE };
    enum { PIECES = DEPTH * ROW / THREADS, ELEMENTS = DEPTH * LANES / THREADS };
    const Bits *at;
    int64_t next, step; /* from slice to slice, from copy to copy */
    int64_t deep;       /* elements of k from the first copy on */
    int rest;           /* lanes from there on */
    int place;
    bool across, whole, inside; /* inside: no lane is beyond the operand */

    DEVICE matmul_copies(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t end) {
        const int thread = thread_index();
        across = from.across, whole = across && from.wide, inside = end - first >= LANES;
        const int lane = whole ? thread % ROW * PIECE : across ? thread % LANES : thread / DEPTH;
        const int along = whole ? thread / ROW : across ? thread / LANES : thread % DEPTH;
        place = along * PITCH + lane, deep = tile.depth - along;
        rest = (end - first < LANES ? (int)(end - first) : (int)LANES) - lane;
        at = matmul_at<Bits>(from, tile, first + lane, along);
        next = DEPTH * from.along;
        step = (whole ? THREADS / ROW : THREADS / LANES) * from.along;
        if (!across) step = THREADS / DEPTH * from.lane;
    }

    /* The copies of a slice, all of it in the operand or not. */
    template <bool INSIDE> DEVICE void copy_all(Bits *to) const {
#pragma unroll(INSIDE ? 8 : 1)
        for (int q = 0; whole && q < PIECES; q++) {
            const int row = q * (THREADS / ROW), bytes = INSIDE ? 16 : row >= deep || rest <= 0 ? 0 : rest < PIECE ? rest * SIZE : 16;
            copy_bytes<16>(to + row * PITCH, bytes > 0 ? at + q * step : nullptr, bytes);
        }
#pragma unroll(INSIDE ? 8 : 1)
        for (int q = 0; !whole && q < ELEMENTS; q++) {
            const int row = across ? q * (THREADS / LANES) : 0, lane = across ? 0 : q * (THREADS / DEPTH);
            const bool in = INSIDE || (row < deep && lane < rest);
            copy_bytes<SIZE>(to + row * PITCH + lane, in ? at + q * step : nullptr, in ? (int)SIZE : 0);
        }
    }

    DEVICE void copy(void *slice) {
        Bits *const to = (Bits *)slice + place;
        if (inside && deep >= DEPTH)
            copy_all<true>(to);
        else
            copy_all<false>(to);
        at += next, deep -= DEPTH;
    }
};

/* A thread's blocks of 4 x 4, 16 rows and 32 columns apart. Neighbours share rows, and lanes 2 apart columns: shared memory serves vectors of 16 bytes to a
 * quarter of a warp at a time, and to a half where such lanes ask for the same. */
DEVICE int matmul_row() {
    const int lane = thread_index() % WARP;
    return thread_index() / WARP / 2 * 32 + (lane / 16 * 2 + lane / 2 % 2) * 4;
}
template <int SIDE> DEVICE int matmul_column() {
    const int lane = thread_index() % WARP;
    return thread_index() / WARP % 2 * (SIDE / 2) + (lane / 4 % 4 * 2 + lane % 2) * 4;
}

/* A thread's elements of both operands in one step of k. */
template <class T, int SIDE> struct matmul_step {
    using Sum = typename T::sum;
    enum { PITCH = SIDE + 4, RIGHT = SIDE / 64 };
    packed<Sum, 4> x[2], y[RIGHT];

    DEVICE void load(const Sum *a, const Sum *b, int along) {
#pragma unroll
        for (int h = 0; h < 2; h++) x[h] = *(const packed<Sum, 4> *)(a + along * PITCH + h * 16);
#pragma unroll
        for (int h = 0; h < RIGHT; h++) y[h] = *(const packed<Sum, 4> *)(b + along * PITCH + h * 32);
    }
    DEVICE void multiply(Sum (&sum)[8][4 * RIGHT]) const {
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 4 * RIGHT; j++) sum[i][j] = T::step(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sum[i][j]);
    }
};

/* Adds the products of one slice. */
template <class T, class Sum> DEVICE void matmul_slice_multiply(Sum (&sum)[8][8], const Sum *a, const Sum *b) {
#pragma unroll
    for (int along = 0; along < T::SLICE; along++) {
        matmul_step<T, MATMUL_SIDE> step;
        step.load(a + matmul_row(), b + matmul_column<MATMUL_SIDE>(), along);
        step.multiply(sum);
    }
}

template <int SIDE, class Sum> DEVICE void matmul_simt_end(const matmul_params &p, const matmul_place &at, const Sum (&sum)[8][SIDE / 16]) {
    enum { RIGHT = SIDE / 64 };
#pragma unroll
    for (int part = 0; part < 2 * RIGHT; part++) {
        const int down = part / RIGHT * 4, right = part % RIGHT * 4;
        Sum four[4][4];
#pragma unroll
        for (int i = 0; i < 16; i++) four[i / 4][i % 4] = sum[down + i / 4][right + i % 4];
        matmul_finish(four, p.to, { at.result, at.row + matmul_row() + down * 4, 1, at.column + matmul_column<SIDE>() + right * 8, p.m, p.n });
    }
}

template <class T> DEVICE void matmul_staged(const matmul_params &p) {
    using Sum = typename T::sum;
    using slice = matmul_slice<T>;
    alignas(16) SHARED Sum a[2][T::SLICE * slice::PITCH];
    alignas(16) SHARED Sum b[2][T::SLICE * slice::PITCH];
    const matmul_place at = matmul_place_of(p, MATMUL_SIDE, MATMUL_SIDE);
    Sum sum[8][8] = {};
    slice next_a(p.a, at, at.row, p.m), next_b(p.b, at, at.column, p.n);
    int now = 0;
    for (int64_t along = 0; along < at.depth + T::SLICE; along += T::SLICE, now ^= 1) {
        if (along < at.depth) {
            next_a.read();
            next_b.read();
        }
        if (along > 0) matmul_slice_multiply<T>(sum, a[now ^ 1], b[now ^ 1]);
        if (along < at.depth) {
            next_a.write(a[now]);
            next_b.write(b[now]);
        }
        sync_block();
    }
    matmul_simt_end<MATMUL_SIDE>(p, at, sum);
}

/* The ring's first slices on their way, each a's and, AFTER that, b's; and the first one there. */
template <int STAGES, int STAGE, int AFTER, class A, class B, class Memory> DEVICE void matmul_fill(A &a, B &b, Memory *memory, int slices) {
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (slice < slices) {
            a.copy(memory + slice * STAGE);
            b.copy(memory + slice * STAGE + AFTER);
        }
        copy_commit();
    }
    copy_wait<STAGES - 2>();
    sync_block();
}

template <class T, int SIDE> DEVICE void matmul_copied(const matmul_params &p) {
    using Sum = typename T::sum;
    enum { STAGES = MATMUL_SIMT_STAGES, HALF = T::SLICE * matmul_copies<T, SIDE>::PITCH, STAGE = 2 * HALF };
    Sum *const memory = (Sum *)launch_memory();
    const matmul_place at = matmul_place_of(p, SIDE, SIDE);
    const int slices = (int)((at.depth + T::SLICE - 1) / T::SLICE), row = matmul_row(), column = HALF + matmul_column<SIDE>();
    Sum sum[8][SIDE / 16] = {};
    matmul_copies<T, SIDE> a(p.a, at, at.row, p.m), b(p.b, at, at.column, p.n);
    matmul_fill<STAGES, STAGE, HALF>(a, b, memory, slices);
    matmul_step<T, SIDE> step[2]; /* this one, and the next, which is read ahead */
    Sum *from = memory, *to = memory + (STAGES - 1) * STAGE;
    step[0].load(from + row, from + column, 0);
    for (int slice = 0; slice < slices; slice++) {
        Sum *const next = from < memory + (STAGES - 1) * STAGE ? from + STAGE : memory;
#pragma unroll
        for (int along = 0; along < T::SLICE; along++) {
            const bool last = along == T::SLICE - 1;
            if (last) {
                copy_wait<STAGES - 2>();
                sync_block(); /* the next slice is there, and nobody reads this one any more */
            }
            step[(along + 1) % 2].load((last ? next : from) + row, (last ? next : from) + column, last ? 0 : along + 1);
            step[along % 2].multiply(sum);
            if (along == 0 && slice + STAGES - 1 < slices) {
                a.copy(to);
                b.copy(to + HALF);
            }
            if (along == 0) copy_commit();
        }
        to = from, from = next;
    }
    matmul_simt_end<SIDE>(p, at, sum);
}

#endif
