/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in shared memory, each read once, by blocks that have one row: the whole of it, or a part in each block of a cluster. A thread copies into places of its
 * own, which no other looks at, so that it alone waits for them, and for one after the other.
 *
 * NOTES
 * Floor: what the op reads and writes, once.
 * Predicted: a processor holds three blocks and more, at different steps, and takes the next when one ends: nobody waits for the slowest processor.
 * Measured, H200: softmax 3.95 to 4.08 TB/s for rows of 4 to 256 KB, rms_norm 3.94 to 3.99, where copying moves 4.19. Blocks that stay, each with a ring of
 * rows to come, took 3.5 to 3.7: they ended after 94 to 144 us. With rows handed out as blocks asked for them 3.7 to 3.9. The copy engine changed nothing.
 * What a block does once for its rows is as many instructions as what it does for their elements, and binds where those are many (layer_norm, dropout). */
#ifndef TRINE_CUDA_ROW_PART_H
#define TRINE_CUDA_ROW_PART_H

#include <tile/cluster.h>
#include <tile/mma.h>

#include "backends/simt/row.h"
#include "elements.h"

/* The elements of a row that a block has, in pieces of N; in shared memory there is room for them as S. A processor holds HELD such blocks. */
template <class T, int G, int HELD, bool WHOLE, class S = T, int N = 16 / (int)sizeof(typename T::bits)> struct row_part {
    using bits = typename T::bits;
    static constexpr int ITEMS = N, STEP = G * ITEMS;
    static constexpr bool whole = WHOLE;
    using piece = held<T, ITEMS>;
    using own = held<S, ITEMS>;

    /* A thread's pieces of each of so many rows, at most. */
    template <int ROWS> static constexpr int TURNS = (SIMT_PART_BYTES / HELD + ROWS * G * (int)sizeof(own) - 1) / (ROWS * G * (int)sizeof(own));

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

    /* Where piece i is. Of 32 bytes the first halves of all pieces come first: copies with gaps between them are slow. */
    DEVICE packed<uint32_t, 4> &half(int i, int k, int which) const {
        constexpr int HALVES = (int)sizeof(own) / 16;
        return *(packed<uint32_t, 4> *)(memory(k) + (which * room + i) / HALVES);
    }

    /* Asks for the thread's pieces, Ask(i) for each, which come one after the other: in TURNS groups of copies, of which the last may be empty. */
    template <int TURNS, class Ask> DEVICE void ask_each(const Ask &ask) const {
        const int turns = (room + STEP - 1) / STEP;
#pragma unroll 1
        for (int t = 0, i = thread_index() * ITEMS; t < turns; t++, i += STEP) {
            if (i < n) ask(i);
            copy_commit();
        }
#pragma unroll
        for (int t = 1; t < TURNS; t++)
            if (t >= turns) copy_commit();
    }
    /* Body(i) for each, once it is there. */
    template <int TURNS, class Body> DEVICE void each_come(const Body &body) const {
        each([&](int i) {
            copy_wait<TURNS - 1>();
            body(i);
            copy_commit();
        });
    }
    /* Of a row of type X, to one half of its place. */
    template <class X, int HALF> DEVICE void ask_piece(const typename X::bits *from, int i, int k = 0) const {
        if constexpr (WHOLE)
            copy_bytes<(int)sizeof(held<X, ITEMS>)>(&half(i, k, HALF), from + column(i), sizeof(held<X, ITEMS>));
        else if constexpr (sizeof(typename X::bits) == 4)
            copy_elements<ITEMS>((uint32_t *)&half(i, k, HALF), (const uint32_t *)from + column(i), n - i);
    }
    template <class X> static constexpr bool COPIED = WHOLE || sizeof(typename X::bits) == 4;

    /* Asks for rows. */
    template <int ROWS> DEVICE void ask(const void *const (&row)[ROWS]) const {
        const bits *from[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            from[k] = (const bits *)row[k];
            keep_address(from[k]);
            if constexpr (!COPIED<T>) copy_begun<T, 0>(row[k], k);
        }
        if constexpr (COPIED<T>)
            ask_each<TURNS<ROWS>>([&](int i) {
#pragma unroll
                for (int k = 0; k < ROWS; k++) ask_piece<T, 0>(from[k], i, k);
            });
    }
    DEVICE void ask(const void *row) const {
        const void *const one[] = { row };
        ask(one);
    }
    /* Asks for a row, and for one of type X in the second halves of its pieces, if it is given. */
    template <class X> DEVICE void ask_both(const void *row, const void *other) const {
        const bits *from = (const bits *)row;
        const typename X::bits *second = (const typename X::bits *)other;
        keep_address(from);
        keep_address(second);
        if constexpr (!COPIED<T>) copy_begun<T, 0>(row, 0);
        if constexpr (!COPIED<X>)
            if (other) copy_begun<X, 1>(other, 0);
        ask_each<TURNS<1>>([&](int i) {
            if constexpr (COPIED<T>) ask_piece<T, 0>(from, i);
            if constexpr (COPIED<X>)
                if (other) ask_piece<X, 1>(second, i);
        });
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
            begun<X>(row, i).put(y, thread_index() % WARP, shifted<X, ITEMS>::lanes_with(n - i));
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

    /* A block's barrier is there before others send; until then nobody waits for a block that begins late. */
    DEVICE row_blocks(const simt_part &p) : size(p.blocks) {
        if (size == 1) return;
        if (thread_index() == 0) {
            const uint32_t come = shared_address(&box().come);
            barrier_init(come, 1);
            barriers_made();
        }
        cluster_arrive();
    }

    /* Each block gives something of each of ROWS rows. What block thread % MOST gave of row thread / MOST % ROWS; of a number that no block has `none`. */
    template <class Value, int ROWS> DEVICE Value exchange(const Value (&own)[ROWS], const Value &none) const {
        const int thread = thread_index(), other = thread % MOST, row = thread / MOST % ROWS;
        Value their = own[0];
#pragma unroll
        for (int k = 1; k < ROWS; k++) their = row == k ? own[k] : their;
        if (size == 1) return other == 0 ? their : none;
        packed<uint32_t, 4> x = {};
        static_assert(sizeof own <= sizeof x, "a slot");
        __builtin_memcpy(&x, &own, sizeof own);
        const uint32_t to = shared_address(&box().slot[cluster_rank()]), come = shared_address(&box().come);
        cluster_wait();
        if (thread == 0) barrier_expect(come, size * (int)sizeof x);
        if (thread < size) cluster_send_piece(cluster_address(to, thread), cluster_address(come, thread), x);
        barrier_wait(come, 0);
        their = none;
        if (other < size) __builtin_memcpy(&their, (const Value *)&box().slot[other] + row, sizeof their);
        return their;
    }
    template <class Value> DEVICE Value exchange(const Value &own, const Value &none) const {
        const Value one[] = { own };
        return exchange(one, none);
    }
};

/* The entries <op>_parts[_ragged]_<T>_<HELD>: body<T, part>(p). */
#define ROW_PART_SHAPE(op, params, body, T, G, HELD) \
    ENTRY_ASKING(op##_parts_##T##_##HELD, G, HELD, params) { body<T, row_part<T, G, HELD, true>, G>(p); } \
    ENTRY_HELD(op##_parts_ragged_##T##_##HELD, G, HELD, params) { body<T, row_part<T, G, HELD, false>, G>(p); }

#endif
