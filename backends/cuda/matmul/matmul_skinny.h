/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in which one operand has few lanes, without tensor cores: the other is read once, by vectors of 16
 * bytes, from memory to registers.
 *
 * Elements of k consecutive: a warp has two or four lanes of the large operand and goes along k. Lanes consecutive: a
 * block has a line of 128 bytes of them, eight threads to it, and its other threads have other elements of k. Either
 * way a thread has vectors of the few lanes along k, which the first-level cache serves.
 *
 * NOTES, all of one H200, which copies at 4.26 TB/s; f32, k 4096. Floor: the large operand once.
 * - 14336 lanes, consecutive: 4.1 TB/s for one few lane, 3.7 for four, 3.2 for eight. Elements of k consecutive: 4.2,
 * 3.4, 2.7.
 * - One block of 512 threads to an SM has 3.4 turns for those lanes, of which the last is mostly idle: 3.8, 3.3 and
 * 2.7; 4.0, 3.5 and 2.6. Two of 256 lost 7 % where there is only one for each. Half the registers, for twice as many,
 * lost 2 to 25 % where lanes are consecutive.
 * - Asking for the vectors of the next steps before those at hand are multiplied: 4096 lanes from 2.7 to 3.2 TB/s.
 * - Half as many vectors at once for four and eight, so that an SM holds more warps: from 2.3 to 3.2. */
#ifndef TRINE_CUDA_MATMUL_SKINNY_H
#define TRINE_CUDA_MATMUL_SKINNY_H

#include "matmul_simt.h"

/* A vector has V elements. A thread reads OWN of them in a step: of as many lanes, or of as many elements of k; and the
 * next STEPS steps while it multiplies. DEPTH: elements of k that a warp, or a block, has in a step. HELD: blocks of
 * which an SM is full. */
template <class T, int FEW, bool ACROSS, int HELD> struct matmul_skinny_shape {
    using bits = typename T::bits;
    enum {
        V = 16 / (int)sizeof(bits),
        ALONG = FEW == 4 ? 4 : 2,
        OWN = ACROSS ? V : ALONG,
        STEPS = (FEW <= 2 ? 8 : 4) / OWN
    };
    enum { THREADS = MATMUL_SKINNY_THREADS(FEW, ACROSS, HELD), WARPS = THREADS / WARP, LINE = MATMUL_SKINNY_LINE / 16 };
    enum {
        LANES = ACROSS ? MATMUL_SKINNY_LINE / (int)sizeof(bits) : WARPS * OWN,
        DEPTH = ACROSS ? THREADS / LINE * V : WARP * V
    };
};

template <class T, int FEW, bool ACROSS, int HELD>
struct matmul_skinny_thread : matmul_skinny_shape<T, FEW, ACROSS, HELD> {
    using shape = matmul_skinny_shape<T, FEW, ACROSS, HELD>;
    using Bits = typename T::bits;
    using Sum = typename T::sum;
    enum { V = shape::V, OWN = shape::OWN };
    using vector = packed<Bits, V>;
    const Bits *x[OWN], *y[FEW]; /* the vectors to be read next, and to be multiplied next */
    int64_t next, inner;         /* of x: from step to step, from element to element */
    int64_t deep;                /* elements of k from the latter on */
    int rest;                    /* lanes from the first on, if they are consecutive */
    Sum sum[FEW][OWN];

    /* Beyond the operands' lanes it is their last or first one that is read, for sums that nobody asks for. */
    DEVICE matmul_skinny_thread(const matmul_skinny_params &p, const matmul_place &at) {
        const int thread = thread_index(), along = ACROSS ? thread / shape::LINE * V : thread % WARP * V;
        const int64_t first = at.column + (ACROSS ? thread % shape::LINE * V : thread / WARP * OWN);
        deep = at.depth - along, rest = p.lanes - first < V ? (int)(p.lanes - first) : (int)V;
        next = shape::DEPTH * p.many.along, inner = ACROSS ? p.many.lane : p.many.along;
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int64_t lane = ACROSS || first + i < p.lanes ? first + (ACROSS ? 0 : i) : p.lanes - 1;
            x[i] = matmul_at<Bits>(p.many, at, lane, along + (ACROSS ? i : 0));
        }
#pragma unroll
        for (int f = 0; f < FEW; f++) y[f] = matmul_at<Bits>(p.few, at, f < p.count ? f : 0, along);
#pragma unroll
        for (int f = 0; f < FEW; f++)
#pragma unroll
            for (int i = 0; i < OWN; i++) sum[f][i] = 0;
    }

    template <bool WHOLE, int STEPS> DEVICE void read(vector (&v)[STEPS][OWN], int64_t left) {
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const int count = WHOLE ? (int)V : ACROSS ? (i < left ? rest : 0) : left < V ? (int)left : (int)V;
                v[step][i] = vector_at<WHOLE>(x[i], inner, count);
                x[i] += next;
            }
    }

    template <bool WHOLE, int STEPS> DEVICE void multiply(const vector (&v)[STEPS][OWN], int64_t left) {
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int f = 0; f < FEW; f++) {
                const vector w = vector_at<WHOLE>(y[f], 1, left < V ? (int)left : (int)V);
                y[f] += shape::DEPTH;
#pragma unroll
                for (int i = 0; i < OWN; i++)
#pragma unroll
                    for (int e = 0; e < V; e++) {
                        Sum &s = sum[f][ACROSS ? e : i];
                        s = T::step(T::get(v[step][i].v[e]), T::get(w.v[ACROSS ? i : e]), s);
                    }
            }
    }

    /* As many times STEPS as are there. */
    template <int STEPS, bool WHOLE> DEVICE void run() {
        enum { DEPTH = STEPS * shape::DEPTH, LEAST = (STEPS - 1) * shape::DEPTH + (WHOLE ? (int)V : 1) };
        vector now[STEPS][OWN], then[STEPS][OWN];
        if (deep >= LEAST) read<WHOLE>(now, deep);
        while (deep >= LEAST) {
            if (deep - DEPTH >= LEAST) read<WHOLE>(then, deep - DEPTH);
            multiply<WHOLE>(now, deep);
            deep -= DEPTH;
#pragma unroll
            for (int i = 0; i < STEPS * OWN; i++) now[i / OWN][i % OWN] = then[i / OWN][i % OWN];
        }
    }

    /* The first `count` elements, and zeros. */
    template <bool WHOLE> static DEVICE vector vector_at(const Bits *from, int64_t step, int count) {
        vector v;
        if constexpr (WHOLE) {
            v = *(const vector *)from;
        } else {
#pragma unroll
            for (int e = 0; e < V; e++) v.v[e] = e < count ? from[e * step] : Bits(0);
        }
        return v;
    }
};

template <class T, int FEW, bool ACROSS, int HELD> DEVICE void matmul_skinny(const matmul_skinny_params &p) {
    using shape = matmul_skinny_shape<T, FEW, ACROSS, HELD>;
    using Sum = typename T::sum;
    enum { LANES = shape::LANES, WARPS = ACROSS ? (int)shape::WARPS : 1, V = shape::V };
    SHARED Sum part[WARPS][FEW][LANES];
    const int64_t result = block_index() / p.right, number = result / p.batches, first = number * p.depth,
                  lane = (block_index() - result * p.right) * LANES;
    const matmul_place at = {
        result - number * p.batches, 0, lane, first, p.k - first < p.depth ? p.k - first : p.depth, result
    };
    const int thread = thread_index();
    matmul_skinny_thread<T, FEW, ACROSS, HELD> mine(p, at);
    if (p.whole && (!ACROSS || mine.rest == V)) {
        mine.template run<shape::STEPS, true>();
        mine.template run<1, true>();
    }
    mine.template run<1, false>();
#pragma unroll
    for (int f = 0; f < FEW; f++)
#pragma unroll
        for (int i = 0; i < shape::OWN; i++) {
            Sum s = mine.sum[f][i];
#pragma unroll
            for (int mask = WARP / 2; mask >= (ACROSS ? (int)shape::LINE : 1); mask /= 2) s += shuffle_xor(s, mask);
            if (ACROSS && thread % WARP < shape::LINE) part[thread / WARP % WARPS][f][thread % shape::LINE * V + i] = s;
            if (!ACROSS && thread % WARP == 0) part[0][f][thread / WARP * shape::OWN + i] = s;
        }
    sync_block();
    /* of the block's part of d, in units of 4 columns */
    const int across = p.swapped ? LANES / 4 : (FEW + 3) / 4, rows = p.swapped ? FEW : (int)LANES;
    for (int unit = thread; unit < rows * across; unit += shape::THREADS) {
        const int row = unit / across, column = unit % across * 4;
        Sum four[1][4] = {};
        for (int warp = 0; warp < WARPS; warp++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (p.swapped || column + i < FEW)
                    four[0][i] += p.swapped ? part[warp][row][column + i] : part[warp][column + i][row];
        matmul_finish(four, p.to,
                      { result, p.swapped ? row : lane + row, 1, p.swapped ? lane + column : column, p.m, p.n });
    }
}

/* Sums of parts of k to d. Of 4 threads that are 8 apart each adds a quarter of the parts, if they are many. */
template <class Sum> DEVICE void matmul_add_parts(const matmul_add_params &p) {
    const int thread = thread_index(), shares = p.shared ? 4 : 1, share = p.shared ? thread / 8 % 4 : 0;
    const int unit =
        (int)block_index() * (MATMUL_THREADS / shares) + (p.shared ? thread / WARP * 8 + thread % 8 : thread);
    const int row = unit / p.units, own = (p.parts + shares - 1) / shares,
              end = (share + 1) * own < p.parts ? (share + 1) * own : p.parts;
    const int64_t step = (int64_t)p.rows * p.units * 4;
    const int64_t column = (int64_t)(unit - row * p.units) * 4;
    Sum sum[1][4] = {};
    const auto add = [&](auto take) {
        const Sum *from = (const Sum *)p.from + share * own * step + (int64_t)unit * 4;
#pragma unroll 8
        for (int part = share * own; part < end; part++, from += step) {
            Sum next[4] = {};
            take(next, from);
#pragma unroll
            for (int i = 0; i < 4; i++) sum[0][i] = matmul_plus(1, next[i], sum[0][i]);
        }
    };
    if (row < p.rows && p.n % 4 == 0) add([](Sum(&x)[4], const Sum *from) { matmul_take(x, from); });
    if (row < p.rows && p.n % 4 != 0) /* of a row's last sums some were never written */
        add([&](Sum(&x)[4], const Sum *from) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (column + i < p.n) x[i] = from[i];
        });
#pragma unroll
    for (int mask = 8; mask < WARP && p.shared; mask *= 2)
#pragma unroll
        for (int i = 0; i < 4; i++) sum[0][i] = matmul_plus(1, shuffle_xor(sum[0][i], mask), sum[0][i]);
    const int batch = row / p.m;
    if (row < p.rows && share == 0) matmul_finish(sum, p.to, { batch, row - batch * p.m, 1, column, p.m, p.n });
}

#endif
