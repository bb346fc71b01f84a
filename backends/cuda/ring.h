/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that registers do not hold, one after the other in blocks that stay: a ring in shared memory holds the row at work and those that come next. The blocks
 * of a cluster divide the columns, so that a part of any row is small beside the ring, and the same columns of a weight, or of sums over rows, are a thread's
 * from the first row to the last. A thread copies what no other looks at, so that it alone waits for it; it asks for a chunk of the row that comes into the
 * ring as soon as it is done with the one in its place. */
#ifndef TRINE_CUDA_RING_H
#define TRINE_CUDA_RING_H

#include <tile/access.h>
#include <tile/cluster.h>
#include <tile/mma.h>

#include "backends/simt/row.h"
#include "elements.h"

/* What the warps of a cluster tell each other: in turns, since some may still read while others go on. */
template <int SLOTS> struct ring_meeting {
    two slot[2][SLOTS];
    uint64_t barrier[2];

    static DEVICE ring_meeting &here() {
        SHARED ring_meeting memory;
        return memory;
    }
};

template <int I, class First, class... Rest> struct nth_type {
    using type = typename nth_type<I - 1, Rest...>::type;
};
template <class First, class... Rest> struct nth_type<0, First, Rest...> {
    using type = First;
};

/* Rows of several tensors at a time, of each CHUNKS chunks for every thread of THREADS, in as many blocks as make 512 threads of a processor. A chunk is 16 bytes
 * of the widest of their types, and as many elements of others. WHOLE: in the sense of row.h. */
template <int CHUNKS, int THREADS, bool WHOLE, class... Types> struct ring {
    template <int I> using type = typename nth_type<I, Types...>::type;
    template <int I> static constexpr int SIZE = sizeof(typename type<I>::bits);
    static constexpr bool whole = WHOLE;
    static constexpr int TENSORS = sizeof...(Types), WARPS = THREADS / WARP;
    static constexpr int ITEMS = (... && (sizeof(typename Types::bits) == 2)) ? 8 : 4;
    static constexpr bool ALONE = TENSORS == 3 && SIMT_RING_THREADS / THREADS > 1; /* what two blocks have behind their rings leaves no room for more */
    static constexpr int MOST = ALONE ? 1 : TENSORS == 3 && ITEMS == 4 ? SIMT_RING_WIDE : SIMT_RING_MOST; /* blocks of a cluster */
    static constexpr int STEP = THREADS * ITEMS, COLUMN = (0 + ... + (int)sizeof(typename Types::bits));
    static constexpr int ROW = CHUNKS * STEP * COLUMN, BYTES = SIMT_RING_BYTES / (SIMT_RING_THREADS / THREADS), ROWS = BYTES / ROW;
    template <int I> using chunk = held<type<I>, ITEMS>;

    template <int I> static constexpr int START = CHUNKS * STEP * ((I > 0) * SIZE<0> + (I > 1) * SIZE<1>);

    simt_rows from[TENSORS];
    ring_meeting<MOST * WARPS> &met;
    const int64_t rows, step; /* of all; from one row of the cluster to the next */
    const int blocks;         /* of the cluster */
    const int first, left;    /* the thread's first column; how many of the block's there are from it on */
    int64_t row;              /* the last that has come */
    int stage = 0;            /* its place in the ring */
    uint32_t given = 0, taken = 0;

    template <int N>
    DEVICE ring(const simt_ring &shape, const simt_rows (&in)[N], int64_t count, int64_t length)
        : met(ring_meeting<MOST * WARPS>::here()), rows(count), step(shape.clusters), blocks(shape.blocks),
          first(cluster_rank() * shape.part + thread_index() * ITEMS),
          left(((int)length < (cluster_rank() + 1) * shape.part ? (int)length : (cluster_rank() + 1) * shape.part) - first), row(block_index() / shape.blocks) {
#pragma unroll
        for (int t = 0; t < TENSORS; t++) from[t] = in[t];
#pragma unroll 1
        for (int s = 0; s < ROWS; s++) {
#pragma unroll
            for (int v = 0; v < CHUNKS; v++) {
                clear(v, s);
                ask(row + s * step, v, s);
            }
            copy_commit();
        }
        if (thread_index() == 0) {
            for (uint64_t &barrier : met.barrier) barrier_init(shared_address(&barrier), blocks == 1 ? WARPS : 1);
            barriers_made();
        }
        sync_block();
        if (blocks > 1) cluster_sync();
    }
    /* Has the thread columns of chunk v? Others are 0 in the ring from the beginning on. */
    DEVICE bool in_row(int v) const { return v * STEP < left; }
    DEVICE bool has(int v, int k) const { return v * STEP + (WHOLE ? 0 : k) < left; } /* element k of it */

    template <int I> static DEVICE char *memory(int v, int s) {
        return launch_memory() + s * ROW + START<I> + (v * THREADS + thread_index()) * (ITEMS * SIZE<I>);
    }

    /* A tensor that is absent is 0, and so is what is beyond the row. */
    template <int I> DEVICE bool there(int v) const { return in_row(v) && (I < 2 || from[I].data); }
    template <int I = 0> DEVICE void clear(int v, int s) const {
        if (!there<I>(v)) *(chunk<I> *)memory<I>(v, s) = {};
        if constexpr (I + 1 < TENSORS) clear<I + 1>(v, s);
    }
    template <int I = 0> DEVICE void ask(int64_t of, int v, int s) const {
        const bool yes = of < rows && there<I>(v);
        if constexpr (WHOLE)
            copy_if<ITEMS * SIZE<I>>(yes, memory<I>(v, s), row_at<type<I>>(from[I], of) + first + v * STEP);
        else if (yes && SIZE<I> == 4)
            copy_elements<ITEMS>((uint32_t *)memory<I>(v, s), (const uint32_t *)row_at<type<I>>(from[I], of) + first + v * STEP, left - v * STEP);
        else if (yes)
            *(chunk<I> *)memory<I>(v, s) = read<type<I>>(row_at<type<I>>(from[I], of), v);
        if constexpr (I + 1 < TENSORS) ask<I + 1>(of, v, s);
    }

    /* Until the next row is there; until that at hand is. */
    DEVICE void wait_next() const { copy_wait<ROWS - 2>(); }
    DEVICE void wait() const { copy_wait<ROWS - 1>(); }

    template <int I> static DEVICE chunk<I> get(int v, int s) { return *(const chunk<I> *)memory<I>(v, s); }

    /* Body(first_chunks<N>) for the N chunks of which the thread's warp has columns, at least LEAST. One question for all chunks: one round each would keep them apart. */
    template <int N> struct first_chunks {
        static constexpr int COUNT = N;
    };
    template <int LEAST = 1, int N = CHUNKS, class Body> DEVICE void used_chunks(const Body &body) const {
        if constexpr (N > LEAST)
            if ((N - 1) * STEP >= left + thread_index() % WARP * ITEMS) return used_chunks<LEAST, N - 1>(body);
        body(first_chunks<N>());
    }

    /* Chunk v of a row of a tensor of S; 0 beyond the block's columns. */
    template <class S> DEVICE held<S, ITEMS> read(const void *row_of, int v) const {
        const typename S::bits *of = (const typename S::bits *)row_of + first + v * STEP;
        if constexpr (WHOLE)
            return in_row(v) ? *(const held<S, ITEMS> *)of : held<S, ITEMS>{};
        else
            return gathered<S, ITEMS>(of, [&](int k) { return v * STEP + k < left; });
    }

    template <class S> DEVICE void put(typename S::bits *row_of, int v, const float (&value)[ITEMS]) const {
        typename S::bits *to = row_of + first + v * STEP;
        if constexpr (WHOLE) {
            const held<S, ITEMS> x = held_of<S>(value);
            constexpr int WORDS = ITEMS / x.PER_WORD, AT_ONCE = WORDS < 4 ? WORDS : 4;
#pragma unroll
            for (int i = 0; i < WORDS; i += AT_ONCE) {
                uint32_t word[AT_ONCE];
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) word[j] = x.word[i + j];
                store_if(in_row(v), (uint32_t *)to + i, word);
            }
        } else if constexpr (sizeof(typename S::bits) == 4) {
            using vectors = shifted<S, ITEMS>;
            if (in_row(v)) vectors(row_of, first + v * STEP, first + left).put(held_of<S>(value), thread_index() % WARP, vectors::lanes_with(left - v * STEP));
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (v * STEP + k < left) to[k] = S::put(value[k]);
        }
    }

    /* Chunk v of the row at hand is done with. */
    DEVICE void refill(int v) const { ask(row + ROWS * step, v, stage); }
    DEVICE int stage_after() const { return stage + 1 < ROWS ? stage + 1 : 0; }
    DEVICE void next() {
        copy_commit();
        row += step;
        stage = stage_after();
    }

    /* Row after row: a row's sums are First(State &, row, stage), and Second(State, sums) is what is done with them, once the row after has been summed too, so that
     * nobody waits for other blocks' sums. */
    template <class State, class Sums, class First, class Second> DEVICE void each_row(const First &sum_up, const Second &finish) {
        State now = {}, later = {};
        if (row >= rows) return;
        for (bool begun = false;; begun = true) {
            const int64_t coming = begun ? row + step : row;
            const bool more = coming < rows;
            Sums own = {};
            if (more) {
                if (begun)
                    wait_next();
                else
                    wait();
                own = sum_up(later, coming, begun ? stage_after() : stage);
            }
            const Sums sums = begun ? take<Sums>() : Sums{};
            if (more) give(own);
            if (begun) {
                finish(now, sums);
                if (!more) return;
                next();
            }
            now = later;
        }
    }

    /* What a warp gives for the sums of all warps of the cluster; and those, of what was given first. Between two gifts the first is taken. */
    DEVICE void give(float x) { post({ group_sum<WARP>(x), 0 }); }
    DEVICE void give(two x) { post(group_sum<WARP>(x)); }
    DEVICE void post(two x) {
        const int warp = thread_index() / WARP, lane = thread_index() % WARP, which = given++ & 1;
        two *const slot = met.slot[which];
        const uint32_t barrier = shared_address(&met.barrier[which]);
        if (blocks == 1) {
            if (lane == 0) {
                slot[warp] = x;
                barrier_come(barrier);
            }
            return;
        }
        if (thread_index() == 0) barrier_expect(barrier, blocks * WARPS * (int)sizeof(two));
        if (lane < blocks) {
            const uint32_t there = cluster_address(shared_address(&slot[cluster_rank() * WARPS + warp]), lane), met = cluster_address(barrier, lane);
            cluster_send(there, met, bits_of_float(x.a), bits_of_float(x.b));
        }
    }
    static DEVICE void add(float &total, two x) { total += x.a; }
    static DEVICE void add(two &total, two x) { total = total + x; }
    template <class Sums> DEVICE Sums take() {
        const two *const slot = met.slot[taken & 1];
        if constexpr (HAS_CLUSTERS)
            barrier_wait(shared_address(&met.barrier[taken & 1]), taken >> 1 & 1); /* of one block too: its warps may be a row apart */
        else
            sync_block();
        taken++;
        Sums total = {};
#pragma unroll
        for (int i = 0; i < MOST * WARPS; i += WARP)
            if (i + thread_index() % WARP < blocks * WARPS) add(total, slot[i + thread_index() % WARP]);
        return group_sum<WARP>(total);
    }
    template <class Sums> DEVICE Sums sum(Sums x) {
        give(x);
        return take<Sums>();
    }
};

#endif
