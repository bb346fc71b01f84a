/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that tensor cores cannot read where they lie: rewritten with consecutive elements of k, each lane aligned. */
#ifndef TRINE_CUDA_MATMUL_PACK_H
#define TRINE_CUDA_MATMUL_PACK_H

#include "backends/simt/simt.h"
#include "matmul.h"

/* A block has a square of lanes and elements of k; neighbouring threads have neighbours in memory on either side. */
template <class Bits> DEVICE void matmul_pack(const matmul_pack_params &p) {
    enum { SIDE = MATMUL_PACK_SIDE };
    SHARED Bits square[SIDE][SIDE + 4 / sizeof(Bits)];
    const int64_t batch = block_index() / (p.blocks_along * p.blocks_lane), rest = block_index() % (p.blocks_along * p.blocks_lane);
    const int64_t lane0 = rest / p.blocks_along * SIDE, along0 = rest % p.blocks_along * SIDE;
    const Bits *from = (const Bits *)p.from.data + batch * p.from.batch;
    Bits *to = (Bits *)p.to + batch * p.lanes * p.pitch;
    const bool across = p.from.across;
    for (int i = thread_index(); i < SIDE * SIDE; i += MATMUL_THREADS) {
        const int lane = across ? i % SIDE : i / SIDE, along = across ? i / SIDE : i % SIDE;
        if (lane0 + lane < p.lanes && along0 + along < p.depth) square[lane][along] = from[(lane0 + lane) * p.from.lane + (along0 + along) * p.from.along];
    }
    sync_block();
    for (int i = thread_index(); i < SIDE * SIDE; i += MATMUL_THREADS) {
        const int lane = i / SIDE, along = i % SIDE;
        if (lane0 + lane < p.lanes && along0 + along < p.depth) to[(lane0 + lane) * p.pitch + along0 + along] = square[lane][along];
    }
}

#endif
