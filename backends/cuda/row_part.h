/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in shared memory, each read once, by blocks that have one row: the whole of it, or a part in each block of a cluster. A thread copies into places of its
 * own, which no other looks at, so that it alone waits for them.
 *
 * NOTES
 * Floor: what the op reads and writes, once.
 * Predicted: a processor holds three blocks and more, at different steps, and takes the next when one ends: nobody waits for the slowest processor.
 * Measured, H200: softmax 3.95 to 4.08 TB/s for rows of 4 to 256 KB, rms_norm 3.94 to 3.99, where copying moves 4.19. Blocks that stay, each with a ring of
 * rows to come, took 3.5 to 3.7: they ended after 94 to 144 us. With rows handed out as blocks asked for them 3.7 to 3.9. The copy engine changed nothing. */
#ifndef TRINE_CUDA_ROW_PART_H
#define TRINE_CUDA_ROW_PART_H

#include <tile/cluster.h>
#include <tile/mma.h>

#include "backends/simt/row.h"
#include "elements.h"

/* The elements of a row that a block has, in pieces of N; in shared memory there is room for them as S. */
template <class T, int G, bool WHOLE, class S = T, int N = 16 / (int)sizeof(typename T::bits)> struct row_part {
    using bits = typename T::bits;
    static constexpr int ITEMS = N, STEP = G * ITEMS;
    static constexpr bool whole = WHOLE;
    using piece = held<T, ITEMS>;
    using own = held<S, ITEMS>;

    const int first, n, room;

    DEVICE row_part(const simt_part &p, int64_t row)
        : first(p.blocks > 1 ? cluster_rank() * p.length : 0), n((int)row - first < p.length ? (int)row - first : p.length),
          room((p.length + ITEMS - 1) / ITEMS * ITEMS) {}

    static DEVICE typename S::bits *memory() { return (typename S::bits *)launch_memory(); }
    /* Of several rows, where row k's part begins. */
    DEVICE typename S::bits *memory(int k) const { return memory() + k * room; }
    DEVICE bool in(int i) const { return i < n; }
    DEVICE uint32_t column(int i) const { return (uint32_t)(first + i); } /* of the row; so that an address is one instruction */

    /* Does this thread have element i? */
    static DEVICE bool mine(int i) { return i >= 0 && i / ITEMS % G == thread_index(); }

    /* How many elements the thread has. */
    DEVICE int count() const {
        const int start = thread_index() * ITEMS, before = start < n ? (n - 1 - start) / STEP : 0, rest = n - start - before * STEP;
        return start < n ? before * ITEMS + (rest < ITEMS ? rest : ITEMS) : 0;
    }

    /* Body(i) for each of the thread's pieces: i is its first element. */
    template <class Body> DEVICE void each(const Body &body) const {
#pragma unroll 1
        for (int i = thread_index() * ITEMS; i < n; i += STEP) body(i);
    }

    /* A piece of a row of type X; 0 beyond its end. */
    template <class X = T> DEVICE held<X, ITEMS> read(const void *row, int i) const {
        if constexpr (WHOLE)
            return *(const held<X, ITEMS> *)((const typename X::bits *)row + column(i));
        else
            return begun<X>(row, i).read();
    }
    /* Of a row that begins anywhere. */
    template <class X> DEVICE shifted<X, ITEMS> begun(const void *row, int i) const { return { row, (int)column(i), first + n }; }

    /* The same of a row that is read once, or zeros; asked for at once, whatever is waited for next. */
    template <class X> DEVICE held<X, ITEMS> read_if(bool yes, const void *row, int i) const {
        held<X, ITEMS> x = {};
        if constexpr (WHOLE) {
            static_assert(sizeof x == 16, "what is loaded at a time");
            const packed<uint32_t, 4> words = load_once_if(yes, (const typename X::bits *)row + column(i));
#pragma unroll
            for (int k = 0; k < 4; k++) x.word[k] = words.v[k];
        } else if (yes) {
            x = read<X>(row, i);
        }
        return x;
    }

    /* Where piece i is. Of 32 bytes the first halves of all threads' pieces are neighbours, and so are the second: copies with gaps between them are slow. */
    DEVICE packed<uint32_t, 4> &half(int i, int k, int which) const {
        typename S::bits *at = memory(k) + i;
        if constexpr (sizeof(own) == 32) {
            const int first = i - thread_index() * ITEMS, pieces = (room - first) / ITEMS < G ? (room - first) / ITEMS : G;
            at = memory(k) + first + (which * pieces + thread_index()) * (ITEMS / 2);
        }
        return *(packed<uint32_t, 4> *)at;
    }

    /* Asks for a row, or for one of type X in the second halves of its pieces; until all are there. */
    DEVICE void ask(const void *row, int k = 0) const { ask_half<T, 0>(row, k); }
    template <class X, int HALF> DEVICE void ask_half(const void *row, int k = 0) const {
        if constexpr (WHOLE) {
            const typename X::bits *from = (const typename X::bits *)row;
            keep_address(from);
            each([&](int i) { copy_bytes<(int)sizeof(piece)>(&half(i, k, HALF), from + column(i), sizeof(piece)); });
        } else if constexpr (sizeof(typename X::bits) == 4) {
            const typename X::bits *from = (const typename X::bits *)row;
            keep_address(from);
            each([&](int i) { copy_elements<ITEMS>((uint32_t *)&half(i, k, HALF), (const uint32_t *)from + column(i), n - i); });
        } else {
            copy_begun<X, HALF>(row, k);
        }
        copy_commit();
    }
    /* Through registers, some pieces asked for before any is looked at. */
    template <class X, int HALF> DEVICE void copy_begun(const void *row, int k) const {
        enum { AT_ONCE = 2 }; /* there are not so many registers */
#pragma unroll 1
        for (int start = thread_index() * ITEMS; start < n; start += AT_ONCE * STEP) {
            typename shifted<X, ITEMS>::pieces pieces[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) pieces[j] = begun<X>(row, start + j * STEP).ask();
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                const int i = start + j * STEP;
                const shifted<X, ITEMS> from = begun<X>(row, i);
                if (i < n) *(held<X, ITEMS> *)&half(i, k, HALF) = from.inner() ? from.take(pieces[j]) : from.gather();
            }
        }
    }
    DEVICE void wait() const { copy_wait<0>(); }

    /* What was asked for, and what is kept in its place. */
    template <class X, int HALF = 0> DEVICE held<X, ITEMS> come(int i) const { return *(const held<X, ITEMS> *)&half(i, 0, HALF); }
    DEVICE void keep(int i, const own &x) const {
#pragma unroll
        for (int h = 0; h < (int)sizeof x / 16; h++) half(i, 0, h) = { x.word[4 * h], x.word[4 * h + 1], x.word[4 * h + 2], x.word[4 * h + 3] };
    }

    DEVICE own get(int i, int k = 0) const {
        own x;
        if constexpr (sizeof x <= 16)
            x = *(const own *)(memory(k) + i);
        else
#pragma unroll
            for (int h = 0; h < (int)sizeof x / 16; h++) {
                const packed<uint32_t, 4> words = half(i, k, h);
#pragma unroll
                for (int j = 0; j < 4; j++) x.word[4 * h + j] = words.v[j];
            }
        return x;
    }
    DEVICE void get(float (&x)[ITEMS], int i, int k = 0) const {
        const own y = get(i, k);
#pragma unroll
        for (int k = 0; k < ITEMS; k++) x[k] = y.get(k);
    }

    template <class X = T> DEVICE void put(typename X::bits *row, int i, const held<X, ITEMS> &y) const {
        if constexpr (WHOLE) {
            store_whole(y.word, row + column(i));
        } else {
            const int lane = thread_index() % WARP, left = (n - i + ITEMS - 1) / ITEMS + lane; /* threads of the warp that have a piece here */
            begun<X>(row, i).put(y, lane, left < WARP ? left : WARP);
        }
    }
};

/* The blocks that share a row tell each other once what they have summed; one alone has nobody to tell. */
struct row_blocks {
    static constexpr int MOST = 8;
    struct mail {
        packed<uint32_t, 4> slot[MOST];
        uint64_t come;
    };
    const int size;

    static DEVICE mail &box() {
        SHARED mail m;
        return m;
    }

    /* A block's barrier is there before others send. */
    DEVICE row_blocks(const simt_part &p) : size(p.blocks) {
        if (size == 1) return;
        if (thread_index() == 0) {
            const uint32_t come = shared_address(&box().come);
            barrier_init(come, 1);
            barriers_made();
        }
        cluster_meet();
    }

    /* What the block of this thread's number gave, for each MOST threads in turn; of a number that no block has `none`. */
    template <class Value> DEVICE Value exchange(const Value &own, const Value &none) const {
        const int thread = thread_index(), other = thread % MOST;
        if (size == 1) return other == 0 ? own : none;
        packed<uint32_t, 4> x = {};
        __builtin_memcpy(&x, &own, sizeof own);
        const uint32_t to = shared_address(&box().slot[cluster_rank()]), come = shared_address(&box().come);
        if (thread == 0) barrier_expect(come, size * (int)sizeof *box().slot);
        if (thread < size)
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                const uint32_t barrier = cluster_address(come, thread);
                cluster_send(cluster_address(to + i * 4, thread), barrier, x.v[i], x.v[i + 1]);
            }
        barrier_wait(come, 0);
        Value their = none;
        if (other < size) {
            x = box().slot[other];
            __builtin_memcpy(&their, &x, sizeof their);
        }
        return their;
    }
};

/* The entries <op>_parts[_ragged]_<T>_<HELD>: body<T, part>(p). */
#define ROW_PART_SHAPE(op, params, body, T, G, HELD) \
    ENTRY_ASKING(op##_parts_##T##_##HELD, G, HELD, params) { body<T, row_part<T, G, true>, G>(p); } \
    ENTRY_HELD(op##_parts_ragged_##T##_##HELD, G, HELD, params) { body<T, row_part<T, G, false>, G>(p); }

#endif
