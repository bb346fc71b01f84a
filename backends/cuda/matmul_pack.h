/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that tensor cores cannot read where they lie: rewritten with consecutive elements of k, each lane aligned. */
#ifndef TRINE_CUDA_MATMUL_PACK_H
#define TRINE_CUDA_MATMUL_PACK_H

#include "backends/simt/simt.h"
#include "matmul.h"

/* A block has a square of lanes and elements of k in shared memory. */
template <class Bits> struct matmul_square {
    enum { SIDE = MATMUL_PACK_SIDE, WORD = sizeof(Bits) < 4 ? 4 / sizeof(Bits) : 1, WORDS = SIDE / WORD };
    using word = packed<Bits, WORD>;
    Bits at[SIDE][SIDE + WORD];

    /* Neighbouring threads take neighbours in memory. */
    DEVICE void read(const Bits *from, const matmul_operand &o, int64_t lanes, int64_t depth) {
        for (int i = thread_index(); i < SIDE * SIDE; i += MATMUL_THREADS) {
            const int lane = o.across ? i % SIDE : i / SIDE, along = o.across ? i / SIDE : i % SIDE;
            if (lane < lanes && along < depth) at[lane][along] = from[lane * o.lane + along * o.along];
        }
    }

    /* The whole square from aligned words of lanes: blocks of words are turned in registers. */
    DEVICE void read_across(const Bits *from, const matmul_operand &o) {
        for (int i = thread_index(); i < WORDS * WORDS; i += MATMUL_THREADS) {
            const int lane = i % WORDS * WORD, along = i / WORDS * WORD, bits = 32 / WORD;
            uint32_t in[WORD];
#pragma unroll
            for (int j = 0; j < WORD; j++) {
                const word w = *(const word *)(from + lane + (along + j) * o.along);
                __builtin_memcpy(&in[j], &w, sizeof w);
            }
#pragma unroll
            for (int e = 0; e < WORD; e++) {
                uint32_t turned = 0;
#pragma unroll
                for (int j = 0; j < WORD; j++) turned |= (in[j] >> e * bits & (0xffffffffu >> (32 - bits))) << j * bits;
                word out;
                __builtin_memcpy(&out, &turned, sizeof out);
                *(word *)&at[lane + e][along] = out;
            }
        }
    }

    DEVICE void write(Bits *to, int64_t pitch, int64_t lanes, int64_t depth) const {
        for (int i = thread_index(); i < SIDE * WORDS; i += MATMUL_THREADS) {
            const int lane = i / WORDS, along = i % WORDS * WORD;
            if (lane >= lanes) continue;
            if (along + WORD <= depth)
                *(word *)(to + lane * pitch + along) = *(const word *)&at[lane][along];
            else
                for (int k = along; k < depth; k++) to[lane * pitch + k] = at[lane][k];
        }
    }
};

template <class Bits> DEVICE void matmul_pack(const matmul_pack_params &p) {
    enum { SIDE = MATMUL_PACK_SIDE };
    alignas(16) SHARED matmul_square<Bits> square;
    const int64_t batch = block_index() / (p.blocks_along * p.blocks_lane), rest = block_index() % (p.blocks_along * p.blocks_lane);
    const int64_t lane = rest / p.blocks_along * SIDE, along = rest % p.blocks_along * SIDE;
    const Bits *const from = (const Bits *)p.from.data + batch * p.from.batch + lane * p.from.lane + along * p.from.along;
    bool turned = false;
    if constexpr (sizeof(Bits) < 4) {
        turned = p.from.across && p.from.wide && lane + SIDE <= p.lanes && along + SIDE <= p.depth;
        if (turned) square.read_across(from, p.from);
    }
    if (!turned) square.read(from, p.from, p.lanes - lane, p.depth - along);
    sync_block();
    square.write((Bits *)p.to + (batch * p.lanes + lane) * p.pitch + along, p.pitch, p.lanes - lane, p.depth - along);
}

#endif
