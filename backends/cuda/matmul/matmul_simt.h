/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products without tensor cores: any types, sizes and strides.
 *
 * A block has a tile of 128 x 128 elements of d, a warp 32 x 64 of it, a thread four blocks of 4 x 4, so that a warp's
 * reads from shared memory are vectors of which 64 and 128 bytes differ. Slices of both operands lie in shared memory
 * with lanes consecutive. They are read into registers while the slice before is multiplied, and converted. Sums go
 * along k, one fused multiply-add for each element. */
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
    static DEVICE int32_t step(int32_t a, int32_t b, int32_t s) {
        return (int32_t)((uint32_t)a * (uint32_t)b + (uint32_t)s);
    }
};

/* The walk over tiles: parts of k, batches, groups of MATMUL_GROUP tile rows, in each column by column. */
struct matmul_place {
    int64_t batch, row, column; /* of the tile's first element */
    int64_t first, depth;       /* its elements of k */
    int64_t result;             /* the target's batch */
};
DEVICE matmul_place matmul_place_of(const matmul_params &p, int rows, int columns, int64_t tile) {
    const int64_t result = tile / (p.down * p.right), rest = tile - result * p.down * p.right,
                  group = rest / (MATMUL_GROUP * p.right);
    const int64_t above = group * MATMUL_GROUP,
                  high = p.down - above < MATMUL_GROUP ? p.down - above : (int64_t)MATMUL_GROUP,
                  in = rest - above * p.right;
    const int64_t part = result / p.batches, first = part * p.depth, left = p.k - first;
    return { result - part * p.batches,
             (above + in % high) * rows,
             in / high * columns,
             first,
             left < p.depth ? left : p.depth,
             result };
}

/* Where an operand's lanes from `lane` on, and elements of k from `along` on in the part of it, are. */
template <class Bits>
DEVICE const Bits *matmul_at(const matmul_operand &from, const matmul_place &at, int64_t lane, int64_t along) {
    return (const Bits *)from.data + at.batch * from.batch + lane * from.lane + (at.first + along) * from.along;
}

/* A slice of an operand's 128 lanes in a thread's registers: QUADS times 4 elements consecutive in memory. */
template <class T> struct matmul_slice {
    using Bits = typename T::bits;
    enum {
        DEPTH = T::SLICE,
        LANES = MATMUL_SIDE,
        QUADS = DEPTH * LANES / 4 / MATMUL_THREADS,
        PITCH = LANES + 4,
        RUN = DEPTH / 4,
        ROW = LANES / 4
    };
    const Bits *at;     /* the first quad, of the slice to be read next */
    int64_t next, quad; /* from slice to slice, from quad to quad */
    int64_t inner;      /* to the next element */
    int64_t deep;       /* elements of k from the first quad on */
    int rest;           /* lanes from there on */
    bool across, wide;
    Bits v[QUADS][4];

    DEVICE matmul_slice(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t end) {
        const int thread = thread_index(), lane = from.across ? thread % ROW * 4 : thread / RUN,
                  along = from.across ? thread / ROW : thread % RUN * 4;
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
        const int thread = thread_index(),
                  first = across ? thread / ROW * PITCH + thread % ROW * 4 : thread % RUN * 4 * PITCH + thread / RUN;
        const int step = across ? 1 : (int)PITCH,
                  quads = across ? (int)(MATMUL_THREADS / ROW * PITCH) : (int)(MATMUL_THREADS / RUN);
#pragma unroll
        for (int q = 0; q < QUADS; q++)
#pragma unroll
            for (int i = 0; i < 4; i++) to[first + q * quads + i * step] = T::get(v[q][i]);
    }
};

/* A thread's blocks of 4 x 4 of a warp's 32 x 64, 16 rows and 32 columns apart. Neighbours share rows, and lanes 2
 * apart columns: shared memory serves vectors of 16 bytes to a quarter of a warp at a time, and to a half where such
 * lanes ask for the same. */
DEVICE int matmul_row() {
    const int lane = thread_index() % WARP;
    return (lane / 16 * 2 + lane / 2 % 2) * 4;
}
DEVICE int matmul_column() {
    const int lane = thread_index() % WARP;
    return (lane / 4 % 4 * 2 + lane % 2) * 4;
}

/* A thread's elements of both operands in one step of k, from slices whose lanes are padded by 4. */
template <class T, int ROWS, int COLUMNS> struct matmul_step {
    using Sum = typename T::sum;
    packed<Sum, 4> x[2], y[2];

    DEVICE void load(const Sum *a, const Sum *b, int along) {
#pragma unroll
        for (int h = 0; h < 2; h++) x[h] = *(const packed<Sum, 4> *)(a + along * (ROWS + 4) + h * 16);
#pragma unroll
        for (int h = 0; h < 2; h++) y[h] = *(const packed<Sum, 4> *)(b + along * (COLUMNS + 4) + h * 32);
    }
    /* To and fro along rows: an element of one operand stays from product to product. */
    DEVICE void multiply(Sum (&sum)[8][8]) const {
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int q = 0; q < 8; q++) {
                const int j = i % 2 ? 7 - q : q;
                sum[i][j] = T::step(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sum[i][j]);
            }
    }
};

template <class T> DEVICE void matmul_staged(const matmul_params &p) {
    using Sum = typename T::sum;
    using slice = matmul_slice<T>;
    alignas(16) SHARED Sum a[2][T::SLICE * slice::PITCH];
    alignas(16) SHARED Sum b[2][T::SLICE * slice::PITCH];
    const matmul_place at = matmul_place_of(p, MATMUL_SIDE, MATMUL_SIDE, block_index());
    const int warp = thread_index() / WARP, row = warp / 2 * 32 + matmul_row(),
              column = warp % 2 * 64 + matmul_column();
    Sum sum[8][8] = {};
    slice next_a(p.a, at, at.row, p.m), next_b(p.b, at, at.column, p.n);
    int now = 0;
    for (int64_t along = 0; along < at.depth + T::SLICE; along += T::SLICE, now ^= 1) {
        if (along < at.depth) {
            next_a.read();
            next_b.read();
        }
#pragma unroll
        for (int i = 0; along > 0 && i < T::SLICE; i++) {
            matmul_step<T, MATMUL_SIDE, MATMUL_SIDE> step;
            step.load(a[now ^ 1] + row, b[now ^ 1] + column, i);
            step.multiply(sum);
        }
        if (along < at.depth) {
            next_a.write(a[now]);
            next_b.write(b[now]);
        }
        sync_block();
    }
#pragma unroll
    for (int part = 0; part < 4; part++) {
        const int down = part / 2 * 4, right = part % 2 * 4;
        Sum four[4][4];
#pragma unroll
        for (int i = 0; i < 16; i++) four[i / 4][i % 4] = sum[down + i / 4][right + i % 4];
        matmul_finish(four, p.to, { at.result, at.row + row + down * 4, 1, at.column + column + right * 8, p.m, p.n });
    }
}

#endif
