/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in shared memory, each read once, by blocks that have one row: the whole of it, or a part in each block of a
 * cluster. A thread copies into places of its own, which no other looks at, so that it alone waits for them, and for
 * one after the other.
 *
 * NOTES. Floor: what the op reads and writes, once.
 * Predicted: an SM holds three blocks and more, at different steps, and takes the next when one ends: nobody waits for
 * the slowest SM. Measured, H200: softmax 3.95 to 4.08 TB/s for rows of 4 to 256 KB, rms_norm 3.94 to 3.99, where
 * copying moves 4.19. Blocks that stay, each with a ring of rows to come, took 3.5 to 3.7: they ended after 94 to 144
 * us. With rows handed out as blocks asked for them 3.7 to 3.9. Rows by TMA lost 1 to 7 %. What a block does once for
 * its rows is as many instructions as what it does for their elements, and binds where those are many (layer_norm,
 * dropout). */
#ifndef TRINE_CUDA_ROW_PART_H
#define TRINE_CUDA_ROW_PART_H

#include <tile/access.h>
#include <tile/cluster.h>
#include <tile/mma.h>

#include "backends/simt/core/row.h"
#include "elements.h"

/* The elements of a row that a block has, in pieces of N; in shared memory there is room for them as S.
 * An SM holds HELD such blocks. */
template <class T, int G, int HELD, bool WHOLE, class S = T, int N = 16 / (int)sizeof(typename T::bits)>
struct row_part {
    using bits = typename T::bits;
    static constexpr int ITEMS = N, STEP = G * ITEMS;
    static constexpr bool whole = WHOLE;
    using piece = held<T, ITEMS>;
    using own = held<S, ITEMS>;
    using type = S; /* in shared memory */

    /* A thread's pieces of each of so many rows, at most. */
    template <int ROWS>
    static constexpr int TURNS =
        (SIMT_PART_BYTES / HELD + ROWS * G * (int)sizeof(own) - 1) / (ROWS * G * (int)sizeof(own));

    const int first, n, room;

    DEVICE row_part(const simt_part &p, int64_t row)
        : first(p.blocks > 1 ? cluster_rank() * p.length : 0),
          n((int)row - first < p.length ? (int)row - first : p.length), room((p.length + ITEMS - 1) / ITEMS * ITEMS) {}

    static DEVICE typename S::bits *memory() { return (typename S::bits *)launch_memory(); }
    /* Of several rows, where row k's part begins. */
    DEVICE typename S::bits *memory(int k) const { return memory() + k * room; }
    DEVICE bool in(int i) const { return i < n; }
    /* of the row; so that an address is one instruction */
    DEVICE uint32_t column(int i) const { return (uint32_t)(first + i); }

    /* Does this thread have element i? */
    static DEVICE bool mine(int i) { return i >= 0 && i / ITEMS % G == thread_index(); }

    /* How many elements the thread has. */
    DEVICE int count() const {
        const int start = thread_index() * ITEMS, before = start < n ? (n - 1 - start) / STEP : 0,
                  rest = n - start - before * STEP;
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
    template <class X> DEVICE shifted<X, ITEMS> begun(const void *row, int i) const {
        return { row, (int)column(i), first + n };
    }

    /* The same of a row of f32 that is read once, or words that are all `none`;
     * asked for at once, whatever is waited for next. */
    template <class X> DEVICE held<X, ITEMS> read_if(bool yes, const void *row, int i, uint32_t none) const {
        static_assert(sizeof(held<X, ITEMS>) == 16 && sizeof(typename X::bits) == 4, "what is loaded at a time");
        held<X, ITEMS> x = { { none, none, none, none } };
        if constexpr (WHOLE) {
            const packed<uint32_t, 4> words = load_once_if(yes, (const typename X::bits *)row + column(i), none);
#pragma unroll
            for (int k = 0; k < 4; k++) x.word[k] = words.v[k];
        } else if (yes) {
            x = read<X>(row, i);
        }
        return x;
    }

    /* Where piece i is. Of 32 bytes the first halves of all pieces come first: copies with gaps between them are
     * slow. */
    DEVICE packed<uint32_t, 4> &half(int i, int k, int which) const {
        constexpr int HALVES = (int)sizeof(own) / 16;
        return *(packed<uint32_t, 4> *)(memory(k) + (which * room + i) / HALVES);
    }

    /* The thread's pieces of a row of type X, which come to one half of their places. */
    template <class X> struct coming {
        packed<uint32_t, 4> *to;
        const typename X::bits *from;
        /* Asks for the one of a turn, if the thread has elements of the row, `rest`, left there. */
        DEVICE void ask(int turn, int rest) const {
            if constexpr (WHOLE)
                copy_if<(int)sizeof(held<X, ITEMS>)>(rest > 0, to + turn * G, from + turn * STEP);
            else if (rest > 0)
                copy_elements<ITEMS>((uint32_t *)(to + turn * G), (const uint32_t *)from + turn * STEP, rest);
        }
    };
    template <class X, int HALF> DEVICE coming<X> coming_of(const void *row, int k) const {
        const int start = thread_index() * ITEMS;
        coming<X> c = { &half(start, k, HALF), (const typename X::bits *)row + column(start) };
        keep_address(c.from);
        return c;
    }

    /* Asks for them, Ask(turn, rest): in TURNS groups of copies, of which the last may be empty. Either all at once,
     * which is a quarter of a loop's instructions, or in a loop, which paces what two rows ask for at a time: memory is
     * 1 to 3 % slower otherwise. */
    template <int TURNS, bool AT_ONCE, class Ask> DEVICE void ask_each(const Ask &ask) const {
        const int rest = n - thread_index() * ITEMS;
#pragma unroll(AT_ONCE ? TURNS : 1)
        for (int t = 0; t < TURNS; t++) {
            ask(t, rest - t * STEP);
            copy_commit();
        }
    }
    /* Body(i) for each, once it is there. */
    template <int TURNS, class Body> DEVICE void each_come(const Body &body) const {
        each([&](int i) {
            copy_wait<TURNS - 1>();
            body(i);
            copy_commit();
        });
    }
    template <class X> static constexpr bool COPIED = WHOLE || sizeof(typename X::bits) == 4;

    /* Asks for rows. */
    template <int ROWS> DEVICE void ask(const void *const (&row)[ROWS]) const {
        if constexpr (COPIED<T>) {
            coming<T> c[ROWS];
#pragma unroll
            for (int k = 0; k < ROWS; k++) c[k] = coming_of<T, 0>(row[k], k);
            ask_each<TURNS<ROWS>, WHOLE>([&](int turn, int rest) {
#pragma unroll
                for (int k = 0; k < ROWS; k++) c[k].ask(turn, rest);
            });
        } else {
#pragma unroll
            for (int k = 0; k < ROWS; k++) copy_begun<T, 0>(row[k], k);
        }
    }
    DEVICE void ask(const void *row) const {
        const void *const one[] = { row };
        ask(one);
    }
    /* Asks for a row, and for one of type X in the second halves of its pieces, both of 16 bits;
     * if that is not given, it is `none`. */
    template <class X> DEVICE void ask_both(const void *row, const void *other, uint32_t none) const {
        static_assert(sizeof(bits) == 2 && sizeof(typename X::bits) == 2, "half of a piece");
        if constexpr (WHOLE) {
            const coming<T> first = coming_of<T, 0>(row, 0);
            const coming<X> second = coming_of<X, 1>(other, 0);
            ask_each<TURNS<1>, false>([&](int turn, int rest) {
                first.ask(turn, rest);
                second.ask(turn, other ? rest : 0);
            });
        } else {
            copy_begun<T, 0>(row, 0);
            if (other) copy_begun<X, 1>(other, 0);
        }
        if (!other) each([&](int i) { half(i, 0, 1) = { none, none, none, none }; });
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
    template <class X, int HALF = 0> DEVICE held<X, ITEMS> come(int i) const {
        return *(const held<X, ITEMS> *)&half(i, 0, HALF);
    }
    DEVICE void keep(int i, const own &x, int k = 0) const {
#pragma unroll
        for (int h = 0; h < (int)sizeof x / 16; h++)
            half(i, k, h) = { x.word[4 * h], x.word[4 * h + 1], x.word[4 * h + 2], x.word[4 * h + 3] };
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

/* The blocks that share a row tell each other what they have summed; one alone has nobody to tell. */
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

    /* Nobody reads any more what was told before. */
    DEVICE void again() const {
        if (size > 1) cluster_arrive();
    }

    /* Each block gives something of each of ROWS rows, the first time, in turn 0, or after again(). What block thread
     * % MOST gave of row thread / MOST % ROWS; of a number that no block has `none`. */
    template <class Value, int ROWS>
    DEVICE Value exchange(const Value (&own)[ROWS], const Value &none, uint32_t turn = 0) const {
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
        barrier_wait(come, turn);
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
