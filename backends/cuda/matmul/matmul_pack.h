/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that tensor cores cannot read where they lie: rewritten with consecutive elements of k, each lane
 * aligned. */
#ifndef TRINE_CUDA_MATMUL_PACK_H
#define TRINE_CUDA_MATMUL_PACK_H

#include "backends/simt/core/simt.h"
#include "matmul.h"

/* A block has a square of lanes and elements of k in shared memory, by units of 4 elements of k; those of a lane are
 * exchanged so that a warp's reads and writes hit all banks.
 *
 * NOTES. Floor: each element read and written once. An H200: squares of 128 bytes a side took e4m3 at 4096 from 127 to
 * 119 us, and at 2048 from 21 to 31, where blocks that come early crowd. */
template <class Bits> struct matmul_square {
    enum { SIDE = MATMUL_PACK_SIDE, UNIT = 4, UNITS = SIDE / UNIT };
    using unit = packed<Bits, UNIT>;
    unit at[SIDE][UNITS];

    DEVICE unit &place(int lane, int along) { return at[lane][along / UNIT ^ lane / UNIT % UNITS]; }

    /* Neighbouring threads take neighbours in memory. */
    DEVICE void read(const Bits *from, const matmul_operand &o, int64_t lanes, int64_t depth) {
        for (int i = thread_index(); i < SIDE * SIDE; i += MATMUL_THREADS) {
            const int lane = o.across ? i % SIDE : i / SIDE, along = o.across ? i / SIDE : i % SIDE;
            if (lane < lanes && along < depth)
                place(lane, along).v[along % UNIT] = from[lane * o.lane + along * o.along];
        }
    }

    /* The same by units of consecutive lanes, of which blocks of 4 x 4 elements are turned in registers;
     * INSIDE: all of the square is there. */
    template <bool INSIDE>
    DEVICE void read_across(const Bits *from, const matmul_operand &o, int64_t lanes, int64_t depth) {
#pragma unroll
        for (int i = 0; i < UNITS * UNITS / MATMUL_THREADS; i++) {
            const int block = i * MATMUL_THREADS + thread_index(), lane = block % UNITS * UNIT,
                      along = block / UNITS * UNIT;
            unit in[UNIT];
#pragma unroll
            for (int j = 0; j < UNIT; j++) {
                const Bits *const row = from + lane + (along + j) * o.along;
                if (INSIDE || (along + j < depth && lane + UNIT <= lanes))
                    in[j] = *(const unit *)row;
                else
#pragma unroll
                    for (int e = 0; e < UNIT; e++)
                        in[j].v[e] = along + j < depth && lane + e < lanes ? row[e] : Bits(0);
            }
#pragma unroll
            for (int e = 0; e < UNIT; e++) {
                unit turned;
#pragma unroll
                for (int j = 0; j < UNIT; j++) turned.v[j] = in[j].v[e];
                place(lane + e, along) = turned;
            }
        }
    }

    /* Zeros up to `width`: what a copy of 16 bytes takes at a row's end was written. */
    DEVICE void write(Bits *to, int64_t pitch, int64_t lanes, int64_t depth, int64_t width) {
        for (int i = thread_index(); i < SIDE * UNITS; i += MATMUL_THREADS) {
            const int lane = i / UNITS, along = i % UNITS * UNIT;
            if (lane >= lanes) continue;
            if (along + UNIT <= depth)
                *(unit *)(to + lane * pitch + along) = place(lane, along);
            else
                for (int k = along; k < along + UNIT && k < width; k++)
                    to[lane * pitch + k] = k < depth ? place(lane, along).v[k - along] : Bits(0);
        }
    }
};

template <class Bits> DEVICE void matmul_pack(const matmul_pack_params &p) {
    enum { SIDE = matmul_square<Bits>::SIDE };
    alignas(16) SHARED matmul_square<Bits> square;
    const int64_t batch = block_index() / (p.blocks_along * p.blocks_lane),
                  rest = block_index() % (p.blocks_along * p.blocks_lane);
    const int64_t lane = rest / p.blocks_along * SIDE, along = rest % p.blocks_along * SIDE;
    const Bits *const from =
        (const Bits *)p.from.data + batch * p.from.batch + lane * p.from.lane + along * p.from.along;
    const int64_t lanes = p.lanes - lane, depth = p.depth - along;
    if (!p.from.across || !p.from.wide)
        square.read(from, p.from, lanes, depth);
    else if (lanes >= SIDE && depth >= SIDE)
        square.template read_across<true>(from, p.from, lanes, depth);
    else
        square.template read_across<false>(from, p.from, lanes, depth);
    sync_block();
    square.write((Bits *)p.to + (batch * p.lanes + lane) * p.pitch + along, p.pitch, lanes, depth, p.pitch - along);
}

#endif
