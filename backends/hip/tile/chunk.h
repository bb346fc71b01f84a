/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: 16 bytes of consecutive elements along k, which is what a lane reads from memory and from LDS, and gives to the matrix unit.
 *
 * A tile in LDS is lanes of four chunks. Lane i of a wave reads chunk i / 16 of lane i % 16: whatever the type, the four groups of 16 then hold the four
 * quarters of the tile's depth, and a matrix instruction takes its k from each group alike. */
#ifndef TRINE_HIP_TILE_CHUNK_H
#define TRINE_HIP_TILE_CHUNK_H

#include "backends/simt/simt.h"
#include "operand.h"

enum { CHUNK = 16, CHUNKS = TILE_BYTES / CHUNK };
typedef words_4 chunk;

/* Among the threads of a warp, which run in step: what they wrote to shared memory is there for the others. */
DEVICE void sync_warp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
/* Its instructions go before those of the other warps of its SIMD. */
DEVICE void favour_warp(bool favoured) {
    if (favoured)
        __builtin_amdgcn_s_setprio(1);
    else
        __builtin_amdgcn_s_setprio(0);
}
DEVICE bool any_of_warp(bool x) { return __builtin_amdgcn_ballot_w64(x) != 0; }

struct i8 {
    using bits = uint8_t;
};
struct f64 {
    using bits = double;
};

/* Where a chunk lies. LDS serves 8 lanes of 16 bytes at a time (tests/cdna/lds_check.c): chunk c of lanes 0 to 7 lies in all 32 banks if every second lane
 * begins with the next one. */
DEVICE int chunk_place(int lane, int c) { return lane * CHUNKS + (c ^ (lane / 2 % CHUNKS)); }

/* A thread's chunks of a tile of LANES lanes, on their way from memory to LDS. */
template <class T, int LANES, int THREADS> struct tile_part {
    static constexpr int COUNT = LANES * CHUNKS / THREADS, ELEMENTS = CHUNK / sizeof(typename T::bits);
    chunk part[COUNT];

    /* Threads in a row read what is contiguous: along a lane, or from lane to lane. */
    static DEVICE int lane_of(const tile_operand &o, int i) {
        const int index = i * THREADS + thread_index();
        return o.along == 1 ? index / CHUNKS : index % LANES;
    }
    static DEVICE int chunk_of(const tile_operand &o, int i) {
        const int index = i * THREADS + thread_index();
        return o.along == 1 ? index % CHUNKS : index / LANES;
    }

    /* The tile that begins at `lane` and `depth`; 0 beyond the operand, whose last element is read instead. */
    DEVICE void load(const tile_operand &o, const void *matrix, int64_t lane, int64_t depth) {
        using bits = typename T::bits;
        const bool whole = o.wide && depth + CHUNKS * ELEMENTS <= o.depth;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int64_t l = lane + lane_of(o, i), d = depth + chunk_of(o, i) * ELEMENTS;
            const bits *from = (const bits *)matrix + (l < o.lanes ? l : o.lanes - 1) * o.lane;
            if (whole) {
                part[i] = *(const chunk *)(from + d);
                continue;
            }
            bits element[ELEMENTS];
#pragma unroll
            for (int k = 0; k < ELEMENTS; k++) {
                const bits x = from[(d + k < o.depth ? d + k : o.depth - 1) * o.along];
                element[k] = d + k < o.depth ? x : bits(0);
            }
            __builtin_memcpy(&part[i], element, sizeof part[i]);
        }
    }

    DEVICE void store(const tile_operand &o, chunk *tile) const {
#pragma unroll
        for (int i = 0; i < COUNT; i++) tile[chunk_place(lane_of(o, i), chunk_of(o, i))] = part[i];
    }
};

#endif
