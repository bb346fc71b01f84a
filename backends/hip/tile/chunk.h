/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: 16 bytes of consecutive elements along k, which is what a lane reads from memory and from LDS, and gives to
 * the matrix unit.
 *
 * A tile in LDS is lanes of four chunks. Lane i of a wave reads chunk i / 16 of lane i % 16: whatever the type, the
 * four groups of 16 then hold the four quarters of the tile's depth, and a matrix instruction takes its k from each
 * group alike. */
#ifndef TRINE_HIP_TILE_CHUNK_H
#define TRINE_HIP_TILE_CHUNK_H

#include "backends/simt/core/f64.h"
#include "operand.h"

enum { CHUNK = 16, CHUNKS = TILE_BYTES / CHUNK };
typedef words_4 chunk;
typedef uint32_t chunks_2 __attribute__((ext_vector_type(8)));
DEVICE chunk joined(const chunk (&c)[1]) { return c[0]; }
DEVICE chunks_2 joined(const chunk (&c)[2]) { return __builtin_shufflevector(c[0], c[1], 0, 1, 2, 3, 4, 5, 6, 7); }

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
/* x, which the compiler computes again where it stands: what a loop needs seldom would otherwise hold registers all
 * through it. */
template <class Value> DEVICE Value afresh(Value x) {
    asm volatile("" : "+v"(x));
    return x;
}
/* What stands before is not mixed with what follows, and registers need not hold the operands of both. */
DEVICE void one_after_another() { __builtin_amdgcn_sched_barrier(0); }
/* Warps of a block of two for each SIMD can take turns, of which this is the end: the block's second half begins a turn
 * late, and so its first half ends with one. */
DEVICE void end_turn() {
    one_after_another();
    sync_block();
    one_after_another();
}
/* x, which is the same in all threads of a warp, in scalar registers. */
DEVICE uint32_t uniform(uint32_t x) { return __builtin_amdgcn_readfirstlane(x); }
DEVICE float uniform(float x) { return float_of_bits(uniform(bits_of_float(x))); }
DEVICE int64_t uniform(int64_t x) {
    const uint32_t low = uniform((uint32_t)x), high = uniform((uint32_t)(x >> 32));
    return (int64_t)((uint64_t)high << 32 | low);
}
template <int WARPS> DEVICE bool late_warp() { return uniform((uint32_t)(thread_index() / WARP)) >= WARPS / 2; }
/* Of shared memory, the low half of a pointer. */
DEVICE uint32_t lds_address(const void *x) { return uniform((uint32_t)(uintptr_t)x); }
/* A bit for each thread of the warp. */
DEVICE uint64_t ballot_of_warp(bool x) { return __builtin_amdgcn_ballot_w64(x); }

struct i8 {
    using bits = uint8_t;
};

/* Where a chunk lies. LDS serves 8 lanes of 16 bytes at a time (emulators/cdna/lds_check.c): chunk c of lanes 0 to 7
 * lies in all 32 banks if every second lane begins with the next one. And it serves 32 of 4 bytes: where operands are
 * turned, these are 8 words of two chunks of lanes 0, 8, 16 and 24.
 * All repeats after 32 lanes. */
DEVICE int chunk_place(unsigned lane, unsigned c) {
    return (lane ^ lane / 8 % 2) * CHUNKS + (c ^ lane / 2 % CHUNKS ^ lane / 16 % 2 * 2);
}

/* And by what pairs of chunks, which are 16 lanes of 16 bits, are exchanged where operands lie across k. A read that
 * turns takes a pair of each of four k, and of the four that follow 8 behind, at a time: exchanged by eight different
 * numbers, they lie in all 64 banks. */
DEVICE unsigned turned_swizzle(unsigned k) { return k % 4 + k / 8 % 2 * 4; }

/* A chunk of T as the matrix unit has it. */
template <class T> DEVICE chunk chunk_of_unit(chunk c) { return c; }

/* Of T, how many tiles of 256 lanes a block has in LDS that memory fills without a thread's doing, 0 if the
 * architecture beside this file does not do so; and whether reads of LDS turn what is consecutive across k. */
template <class T> struct direct {
    static constexpr int STAGES = 0;
    static constexpr bool READS_TURNED = false;
};

/* What a thread brings of a tile of LANES lanes, on its way from memory to LDS: COUNT vectors of what is consecutive in
 * memory. That is k; or it is lanes, and then the vectors are of consecutive k. */
template <class T, int LANES, int THREADS> struct tile_part {
    using bits = typename T::bits;
    static constexpr int COUNT = LANES * CHUNKS / THREADS, SIZE = sizeof(bits), ELEMENTS = CHUNK / SIZE,
                         DEPTH = CHUNKS * ELEMENTS;
    const tile_operand &from;
    const bits *first;      /* of the tile's first lane, at k = 0 */
    int64_t lanes;          /* from there on */
    uint32_t offset[COUNT]; /* of the thread's vectors, in bytes */
    chunk part[COUNT];

    DEVICE tile_part(const tile_operand &operand, int64_t batch, int64_t lane)
        : from(operand), first((const bits *)operand.data + batch * operand.batch + lane * operand.lane),
          lanes(operand.lanes - lane) {
        const int64_t last = lanes - (from.across ? (int)ELEMENTS : 1); /* beyond the operand it is read once more */
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int64_t l = lane_of(i);
            offset[i] = (uint32_t)(((l < last ? l : last) * from.lane + depth_of(i) * from.along) * SIZE);
        }
    }

    /* Where vector i begins. Neighbouring threads read neighbours: a lane's four chunks, or four vectors of lanes. */
    DEVICE int lane_of(int i) const {
        const int index = i * THREADS + thread_index();
        return from.across ? (thread_index() % 4 + thread_index() / (4 * (DEPTH / COUNT)) * 4) * ELEMENTS
                           : index / CHUNKS;
    }
    DEVICE int depth_of(int i) const {
        const int index = i * THREADS + thread_index();
        return from.across ? thread_index() / 4 % (DEPTH / COUNT) * COUNT + i : index % CHUNKS * ELEMENTS;
    }

    static DEVICE int clamped(int64_t count, int least) {
        return count < least ? least : count < ELEMENTS ? (int)count : ELEMENTS;
    }

    /* The tile that begins at `depth`. WHOLE: it lies inside the operand, which is wide;
     * otherwise elements beyond are 0. */
    template <bool WHOLE> DEVICE void load(int64_t depth) {
        /* of a step's pieces the last can be all beyond */
        const bits *const at = first + (WHOLE || depth < from.depth ? depth : 0) * from.along;
        if constexpr (WHOLE) {
#pragma unroll
            for (int i = 0; i < COUNT; i++) /* else widened outside of loops, to twice the registers */
                part[i] = *(const chunk *)((const char *)at + afresh(offset[i]));
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int64_t lane = afresh(lane_of(i)), k = afresh(depth_of(i)), depth_left = from.depth - depth - k,
                          lanes_left = lanes - lane;
            const bits *const vector =
                at + (lanes_left > 0 ? lane : lanes - 1) * from.lane + (depth_left > 0 ? k : 0) * from.along;
            const int some = afresh(clamped(from.across ? lanes_left : depth_left, 1)),
                      deep = afresh(clamped(depth_left, 0));
            bits element[ELEMENTS];
#pragma unroll
            for (int e = 0; e < ELEMENTS; e++) {
                const bits x = vector[e < some ? e : 0];
                element[e] = (from.across ? 0 : e) < deep ? x : bits(0);
            }
            __builtin_memcpy(&part[i], element, sizeof part[i]);
        }
    }

    DEVICE void store(chunk *tile) const {
        if (from.across) {
            bits element[COUNT][ELEMENTS];
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                const chunk c = chunk_of_unit<T>(part[i]);
                __builtin_memcpy(element[i], &c, sizeof c);
            }
            const int lane = lane_of(0), k = depth_of(0);
            /* or the addresses would be computed ahead of the question */
            bits *const to = (bits *)tile + afresh(k % ELEMENTS);
#pragma unroll
            for (int e = 0; e < ELEMENTS; e++) {
                packed<bits, COUNT> together;
#pragma unroll
                for (int i = 0; i < COUNT; i++) together.v[i] = element[i][e];
                *(packed<bits, COUNT> *)(to + chunk_place(lane + e, k / ELEMENTS) * ELEMENTS) = together;
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            tile[chunk_place(lane_of(i), depth_of(i) / ELEMENTS)] = chunk_of_unit<T>(part[i]);
    }
};

/* The same of what lies inside the operand and goes straight to LDS, where a wave's 64 chunks are consecutive: not they
 * but what they hold is exchanged. Along k that is the same four chunks of a lane; across k it is pairs of chunks of
 * the same k (turned_swizzle). */
template <class T, int LANES, int THREADS, bool ACROSS> struct direct_part {
    using bits = typename T::bits;
    static constexpr int COUNT = LANES * CHUNKS / THREADS, SIZE = sizeof(bits), ELEMENTS = CHUNK / SIZE;
    const bits *first;
    const int64_t along;
    const uint32_t own; /* where the wave's chunks begin in LDS, in bytes */
    uint32_t offset[COUNT];

    DEVICE direct_part(const tile_operand &operand, int64_t batch, int64_t lane)
        : first((const bits *)operand.data + batch * operand.batch + lane * operand.lane),
          along(ACROSS ? operand.along : 1), own(uniform((uint32_t)(thread_index() / WARP * WARP * CHUNK))) {
        /* beyond the operand it is read once more */
        const int64_t last = operand.lanes - lane - (ACROSS ? (int)ELEMENTS : 1);
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const unsigned place = i * THREADS + thread_index();
            if constexpr (ACROSS) {
                constexpr unsigned WIDE = LANES / ELEMENTS;
                const unsigned k = place / WIDE, l = (place % WIDE ^ turned_swizzle(k) * 2) * ELEMENTS;
                offset[i] = (uint32_t)((k * along + (l < last ? l : last)) * SIZE);
            } else {
                const unsigned row = place / CHUNKS, l = row ^ row / 8 % 2;
                offset[i] = (uint32_t)((l < last ? l : last) * operand.lane * SIZE +
                                       (place % CHUNKS ^ chunk_place(l, 0) % CHUNKS) * CHUNK);
            }
        }
    }
    /* To `tile`, an address of LDS. */
    DEVICE void load(int64_t depth, uint32_t tile) const {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            direct<T>::load(first + depth * along, offset[i], tile + own + i * THREADS * CHUNK);
    }
};

#endif
