/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that registers do not hold, one after the other in blocks that stay: a ring in shared memory holds the row at work and those that come next. The blocks
 * of a cluster divide the columns, so that a part of any row is small beside the ring, and the same columns of a weight, or of sums over rows, are a thread's
 * from the first row to the last. A thread copies what no other looks at, so that it alone waits for it; it asks for a chunk of the row that comes into the
 * ring as soon as it is done with the one in its place. */
#ifndef TRINE_CUDA_RING_H
#define TRINE_CUDA_RING_H

#include <tile/cluster.h>
#include <tile/mma.h>

#include "backends/simt/row.h"

/* Rows of TENSORS tensors at a time, of each CHUNKS chunks of 16 bytes for every thread of THREADS, in as many blocks as make 512 threads of a processor. */
template <class T, int TENSORS, int CHUNKS, int THREADS> struct ring {
    using bits = typename T::bits;
    static constexpr int ITEMS = 16 / sizeof(bits), WARPS = THREADS / WARP;
    static constexpr int PLANE = THREADS * 16, ROW = TENSORS * CHUNKS * PLANE, ROWS = SIMT_RING_BYTES / (SIMT_RING_THREADS / THREADS) / ROW;
    using chunk = held<T, ITEMS>;

    /* What the warps of a cluster tell each other: in turns, since some may still read while others go on. */
    struct meeting {
        two slot[2][SIMT_RING_MOST * WARPS];
        uint64_t barrier[2];
    };

    const simt_rows (&from)[TENSORS];
    meeting &met;
    const int64_t rows, step;         /* of all; from one row of the cluster to the next */
    const int first, n, rank, blocks; /* the block's columns; its place in the cluster, and the cluster's blocks */
    const bool whole;
    int64_t row;
    int stage = 0;
    uint32_t turn = 0;

    DEVICE ring(const simt_ring &shape, const simt_rows (&in)[TENSORS], int64_t count, int64_t length)
        : from(in), met(meeting_of()), rows(count), step(shape.clusters), first(cluster_rank() * shape.part),
          n((int)length - first < shape.part ? (int)length - first : shape.part), rank(cluster_rank()), blocks(shape.blocks), whole(shape.whole),
          row(block_index() / shape.blocks) {
        for (int s = 0; s < ROWS; s++) {
#pragma unroll
            for (int v = 0; v < CHUNKS; v++) ask(row + s * step, v, s);
            copy_commit();
        }
        if (blocks == 1) return;
        if (thread_index() == 0) {
            for (uint64_t &barrier : met.barrier) barrier_init(shared_address(&barrier), 1);
            barriers_made();
        }
        sync_block();
        cluster_sync();
    }
    static DEVICE meeting &meeting_of() {
        SHARED meeting memory;
        return memory;
    }

    /* A thread's chunk v begins at this one of the block's columns. */
    DEVICE int place(int v) const { return (v * THREADS + thread_index()) * ITEMS; }

    DEVICE char *memory(int tensor, int v, int s) const { return launch_memory() + s * ROW + (tensor * CHUNKS + v) * PLANE + thread_index() * 16; }

    DEVICE void ask(int64_t of, int v, int s) const {
        if (of >= rows) return;
        const int at = place(v);
#pragma unroll
        for (int t = 0; t < TENSORS; t++)
            if (whole)
                copy_bytes<16>(memory(t, v, s), row_at<T>(from[t], of) + first + (at < n ? at : 0), at < n ? 16 : 0);
            else
                *(chunk *)memory(t, v, s) = read(row_at<T>(from[t], of), v);
    }

    /* Until the row at work is there. */
    DEVICE void wait() const { copy_wait<ROWS - 1>(); }

    DEVICE chunk get(int v, int tensor = 0) const { return *(const chunk *)memory(tensor, v, stage); }

    /* How many elements of chunk v are the row's, if any; does any thread have such? */
    DEVICE int left(int v) const { return n - place(v); }
    DEVICE bool used(int v) const { return v * THREADS * ITEMS < n; }

    /* Body(v) for the chunks that are used, two at a time. */
    template <class Body> DEVICE void each(const Body &body) const {
#pragma unroll
        for (int v = 0; v < CHUNKS; v += 2)
            if (used(v)) {
                body(v);
                body(v + 1);
            }
    }

    /* Chunk v of a row of a tensor; 0 beyond the block's columns. */
    DEVICE chunk read(const void *row_of, int v) const {
        const bits *of = (const bits *)row_of + first;
        const int at = place(v);
        if (whole && at < n) return *(const chunk *)(of + at);
        return whole ? chunk{} : gathered<T, ITEMS>(of + at, [&](int k) { return at + k < n; });
    }

    template <class S> DEVICE void put(typename S::bits *row_of, int v, const float (&value)[ITEMS]) const {
        typename S::bits *to = row_of + first;
        const int at = place(v);
        if (!whole)
            scatter<S>(value, to + at, [&](int k) { return at + k < n; });
        else if (at < n)
            store_vector<S>(value, to + at);
    }

    /* Chunk v of the row is done with. */
    DEVICE void refill(int v) const { ask(row + ROWS * step, v, stage); }
    DEVICE void next() {
        copy_commit();
        row += step;
        stage = stage + 1 < ROWS ? stage + 1 : 0;
    }

    /* What all warps of the cluster give, in order. It stays until the next meeting but one. */
    DEVICE const two *meet(two x) {
        const int warp = thread_index() / WARP, lane = thread_index() % WARP, which = turn & 1;
        two *const slot = met.slot[which];
        if (blocks == 1) {
            if (lane == 0) slot[warp] = x;
            sync_block();
        } else {
            const uint32_t barrier = shared_address(&met.barrier[which]);
            if (thread_index() == 0) barrier_expect(barrier, blocks * WARPS * (int)sizeof(two));
            if (lane < blocks) {
                const uint32_t there = cluster_address(shared_address(&slot[rank * WARPS + warp]), lane), met = cluster_address(barrier, lane);
                cluster_send(there, met, bits_of_float(x.a), bits_of_float(x.b));
            }
            barrier_wait(barrier, turn >> 1 & 1);
        }
        turn++;
        return slot;
    }
    DEVICE two sum(two x) {
        const two *const slot = meet(group_sum<WARP>(x));
        two total = { 0, 0 };
        for (int i = thread_index() % WARP; i < blocks * WARPS; i += WARP) total = total + slot[i];
        return group_sum<WARP>(total);
    }
    DEVICE float sum(float x) {
        const two *const slot = meet({ group_sum<WARP>(x), 0 });
        float total = 0;
        for (int i = thread_index() % WARP; i < blocks * WARPS; i += WARP) total += slot[i].a;
        return group_sum<WARP>(total);
    }
};

#endif
