/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that registers do not hold, one after the other in blocks that stay: a ring in shared memory holds the row at
 * work and those that come next. The blocks of a cluster divide the columns, so that a part of any row is small beside
 * the ring, and the same columns of a weight, or of sums over rows, are a thread's from the first row to the last. A
 * thread copies what no other looks at, so that it alone waits for it.
 *
 * NOTES. Memory moves most with little more on its way than it needs, and it matters when that is asked for (ring_way).
 * Of what a copy moves (H200), softmax_backward of f32 at 49152 has 100 % with two rows in a ring and 91 with three;
 * rms_norm_backward with dropout of bf16 at 12288 92 with a spare place, and 85 with five rows and none spare. */
#ifndef TRINE_CUDA_RING_H
#define TRINE_CUDA_RING_H

#include <tile/access.h>
#include <tile/cluster.h>
#include <tile/mma.h>

#include "backends/simt/core/row.h"
#include "elements.h"

/* What the warps of a cluster tell each other: in turns, since some may still read while others go on. */
template <int SLOTS> struct ring_meeting {
    struct side {
        two slot[SLOTS];
        uint64_t barrier;
    } side[2];

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

/* Nothing that comes with a row besides its elements. */
struct ring_bare {
    struct state {};
    DEVICE void before(state &) const {}
    DEVICE void load() const {}
    DEVICE void ask(bool, int) const {}
    DEVICE void next() const {}
};

/* How many rows a ring holds, and when the next is asked for: a chunk of it once the one in its place is done with, or
 * all while the row before is summed, into a place that is spare until then. */
enum ring_way {
    RING_NEAR,  /* two or three rows, as the host says */
    RING_THREE, /* three */
    RING_SPARE, /* three, one of them spare */
};

/* Rows of several tensors at a time, of each CHUNKS chunks for every thread of THREADS, in as many blocks as an SM
 * holds (SIMT_RING_HELD). A chunk is 16 bytes of the widest of their types, and as many elements of others.
 * WHOLE: in the sense of row.h. */
template <int CHUNKS, int THREADS, bool WHOLE, ring_way WAY, class... Types> struct ring {
    static constexpr bool SPARE = WAY == RING_SPARE;
    template <int I> using type = typename nth_type<I, Types...>::type;
    template <int I> static constexpr int SIZE = sizeof(typename type<I>::bits);
    static constexpr bool whole = WHOLE;
    static constexpr int TENSORS = sizeof...(Types), WARPS = THREADS / WARP;
    static constexpr int ITEMS = (... && (sizeof(typename Types::bits) == 2)) ? 8 : 4;
    static constexpr int HELD = SIMT_RING_HELD(THREADS);
    static constexpr int MOST = SIMT_RING_BLOCKS(THREADS, TENSORS == 3); /* blocks of a cluster */
    static constexpr int STEP = THREADS * ITEMS, COLUMN = (0 + ... + (int)sizeof(typename Types::bits));
    static constexpr int ROW = CHUNKS * STEP * COLUMN, ROWS = SIMT_RING_ROWS, BYTES = ROWS * ROW;
    static_assert(BYTES + (TENSORS == 3) * CHUNKS * STEP * 4 <= SIMT_RING_BYTES / HELD,
                  "the ring, and beside three tensors a weight as f32");
    template <int I> using chunk = held<type<I>, ITEMS>;

    template <int I> static constexpr int START = CHUNKS * STEP * ((I > 0) * SIZE<0> + (I > 1) * SIZE<1>);

    using meeting = ring_meeting<MOST * WARPS>;

    meeting &met;
    simt_rows from[TENSORS];
    const int64_t step;      /* from one row of the cluster to the next */
    const int blocks, turns; /* of the cluster; how many rows it has */
    const bool even;         /* do its threads have as many chunks each? */
    const int near;          /* rows that the ring holds, where the host says it */
    const int first, left;   /* the thread's first column; how many of the block's there are from it on */
    int turn = 0;            /* the row at work, which has come */
    int stage = 0;           /* its place in the ring */
    int64_t row;             /* its number */

    /* Besides: what comes with a row. It is copied to the row's place, by ask(is there such a row?, place), and next()
     * goes on to the row behind it; or loaded in turns, by load(), into what before(state) has. */
    template <int N, class Besides>
    DEVICE ring(const simt_ring &shape, const simt_rows (&in)[N], int64_t rows, int64_t length, Besides &besides)
        : met(meeting::here()), step(shape.clusters), blocks(shape.blocks),
          turns(shape.turns - ((shape.turns - 1) * shape.clusters + cluster_index() >= rows)),
          even(shape.part % STEP == 0), near(shape.rows), first(cluster_rank() * shape.part + thread_index() * ITEMS),
          left(((int)length < (cluster_rank() + 1) * shape.part ? (int)length : (cluster_rank() + 1) * shape.part) -
               first),
          row(cluster_index()) {
#pragma unroll
        for (int t = 0; t < TENSORS; t++) from[t] = in[t];
#pragma unroll 1
        for (int s = 0; s < depth(); s++) {
            const bool now = s + SPARE < depth();
#pragma unroll
            for (int v = 0; v < CHUNKS; v++) {
                clear(v, s);
                ask(now && s < turns, row + s * step, v, s);
            }
            besides.ask(now && s < turns, s);
            if (now) asked(besides);
        }
        if (thread_index() == 0) {
            for (auto &side : met.side) barrier_init(shared_address(&side.barrier), blocks == 1 ? WARPS : 1);
            barriers_made();
        }
        sync_block();
        if (blocks > 1) cluster_sync();
    }
    /* The thread's first column of the row at work. */
    template <class S> DEVICE typename S::bits *mine(const simt_rows &rows) const {
        return row_at<S>(rows, row) + first;
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
    /* Asks for chunk v of the row that comes next, if there is one. */
    template <int I = 0> DEVICE void ask(bool more, int64_t of_row, int v, int s) const {
        using bits = typename type<I>::bits;
        const bool yes = more && there<I>(v);
        const bits *of = row_at<type<I>>(from[I], of_row) + first;
        if constexpr (WHOLE)
            copy_if<ITEMS * SIZE<I>>(yes, memory<I>(v, s), of + v * STEP);
        else if (yes && SIZE<I> == 4)
            copy_elements<ITEMS>((uint32_t *)memory<I>(v, s), (const uint32_t *)of + v * STEP, left - v * STEP);
        else if (yes)
            *(chunk<I> *)memory<I>(v, s) = read<type<I>>(of, v);
        if constexpr (I + 1 < TENSORS) ask<I + 1>(more, of_row, v, s);
    }
    template <class Besides> DEVICE void asked(Besides &besides) {
        copy_commit();
        besides.next();
    }

    template <int I> static DEVICE chunk<I> get(int v, int s) { return *(const chunk<I> *)memory<I>(v, s); }

    /* Body(first_chunks<N>) for the N chunks of which the thread's warp has columns, at least LEAST. One question for
     * all chunks: one round each would keep them apart. */
    template <int N> struct first_chunks {
        static constexpr int COUNT = N;
    };
    template <int LEAST = 1, int N = CHUNKS, class Body> DEVICE void used_chunks(const Body &body) const {
        if constexpr (N > LEAST)
            if ((N - 1) * STEP >= left + thread_index() % WARP * ITEMS) return used_chunks<LEAST, N - 1>(body);
        body(first_chunks<N>());
    }

    /* Chunk v of a row of S, whose first column of the thread is `mine`; 0 beyond the block's columns. */
    template <class S> DEVICE held<S, ITEMS> read(const typename S::bits *mine, int v) const {
        const typename S::bits *of = mine + v * STEP;
        if constexpr (WHOLE)
            return in_row(v) ? *(const held<S, ITEMS> *)of : held<S, ITEMS>{};
        else
            return gathered<S, ITEMS>(of, [&](int k) { return v * STEP + k < left; });
    }

    template <class S> DEVICE void put(typename S::bits *mine, int v, const float (&value)[ITEMS]) const {
        typename S::bits *to = mine + v * STEP;
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
            if (in_row(v))
                vectors(mine, v * STEP, left)
                    .put(held_of<S>(value), thread_index() % WARP, vectors::lanes_with(left - v * STEP));
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (v * STEP + k < left) to[k] = S::put(value[k]);
        }
    }

    DEVICE int depth() const { return WAY == RING_NEAR ? near : ROWS; }
    DEVICE int after(int s) const { return s + 1 < depth() ? s + 1 : 0; }
    DEVICE bool again() const { return turn + depth() < turns; } /* is there a row to be asked for in its place? */
    DEVICE void refill(int v) const {
        if constexpr (!SPARE) ask(again(), row + depth() * step, v, stage);
    }
    template <class Besides> DEVICE void next(Besides &besides) {
        asked(besides);
        row += step;
        turn++;
        stage = after(stage);
    }

    /* The row behind the one that is summed, if there is one to be asked for meanwhile, and the place that is spare for
     * it. */
    struct request {
        bool more;
        int place;
    };
    DEVICE void ask_meanwhile(const request &q, int v) const {
        if constexpr (SPARE) ask(q.more, row + (ROWS - 1) * step, v, q.place);
    }

    /* Row after row: a row's sums are sum_up(state, stage, request), and finish(state, sums) is what is done with them,
     * once the row after has been summed too, so that nobody waits for other blocks' sums. */
    template <class Sums, class Besides, class First, class Second>
    DEVICE void each_row(Besides &besides, const First &sum_up, const Second &finish) {
        typename Besides::state now = {}, later = {};
        besides.before(now);
        copy_wait<1>(); /* for the first row, and of three the second */
        give(sum_up(now, stage, request{}), 0);
        besides.load();
        for (;;) {
            const bool more = turn + 1 < turns;
            Sums own = {};
            if (more) {
                const request meanwhile = { SPARE && turn + ROWS - 1 < turns, after(after(stage)) };
                besides.before(later);
                /* where all threads have as many chunks that is 3 % slower, and later it is where they do not */
                if (SPARE && !even) besides.load();
                if (SPARE || depth() == 2)
                    copy_wait<0>();
                else
                    copy_wait<1>();
                if (SPARE) besides.ask(meanwhile.more, meanwhile.place);
                own = sum_up(later, after(stage), meanwhile);
            }
            const Sums sums = take<Sums>();
            if (more) give(own, turn + 1);
            if (SPARE && even) besides.load();
            finish(now, sums);
            if (!more) return;
            if (!SPARE) {
                besides.ask(again(), stage);
                besides.load();
            }
            next(besides);
            now = later;
        }
    }

    /* What a warp gives for the sums of all warps of the cluster; and those, of the row at hand.
     * Between two gifts the first is taken. */
    DEVICE void give(float x, int of) { post({ group_sum<WARP>(x), 0 }, of); }
    DEVICE void give(two x, int of) { post(group_sum<WARP>(x), of); }
    DEVICE void post(two x, int of) {
        const int warp = thread_index() / WARP, lane = thread_index() % WARP;
        auto &side = met.side[of & 1];
        const uint32_t barrier = shared_address(&side.barrier);
        if (blocks == 1) {
            if (lane == 0) {
                side.slot[warp] = x;
                barrier_come(barrier);
            }
            return;
        }
        if (thread_index() == 0) barrier_expect(barrier, blocks * WARPS * (int)sizeof(two));
        if (lane < blocks) {
            const uint32_t there = cluster_address(shared_address(&side.slot[cluster_rank() * WARPS + warp]), lane);
            cluster_send(there, cluster_address(barrier, lane), bits_of_float(x.a), bits_of_float(x.b));
        }
    }
    static DEVICE void add(float &total, two x) { total += x.a; }
    static DEVICE void add(two &total, two x) { total = total + x; }
    template <class Sums> DEVICE Sums take() {
        const auto &side = met.side[turn & 1];
        if constexpr (HAS_CLUSTERS) /* of one block too: its warps may be a row apart */
            barrier_wait(shared_address(&side.barrier), turn >> 1 & 1);
        else
            sync_block();
        Sums total = {};
#pragma unroll
        for (int i = 0; i < MOST * WARPS; i += WARP)
            if (i + thread_index() % WARP < blocks * WARPS) add(total, side.slot[i + thread_index() % WARP]);
        return group_sum<WARP>(total);
    }
    template <class Sums> DEVICE Sums sum(Sums x) {
        give(x, turn);
        return take<Sums>();
    }
};

#endif
