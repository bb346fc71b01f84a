/* SPDX-License-Identifier: Apache-2.0 */
/* The body of chains that are compiled at run time. chain_source.c writes behind it what is the program's own:
 *
 *     CHAIN_REAL                           what it computes in, float or double, in front; CHAIN_NUMBERS: f32 or f64
 *     template <> struct chain_tensor<I>   of each tensor that is there: its type
 *     struct shape                         how tensors lie, threads, vectors
 *     template <> struct chain_code<P>     the steps of each phase, in straight lines
 *
 * A chain without reductions is a walk: a thread takes units of N elements. With them, a group of G threads takes a
 * row, of which each thread holds up to V vectors of N elements in registers, so that memory is read once, and what
 * costs much is computed once; a longer row is read again in each phase. Which thread has which element follows from
 * sizes alone, and so does the order of sums. */
#ifndef TRINE_SIMT_CHAIN_BODY_H
#define TRINE_SIMT_CHAIN_BODY_H

#include "backends/simt/core/simt.h"
#include "chain_job.h"
#include "chain_do.h"
#include "chain_item.h"

typedef CHAIN_REAL real;

template <int I> struct chain_tensor {
    using type = f32;
};
template <int P> struct chain_code;

/* What is known of a row: its values; then of all that elements may be divided by, values of the row and constants, a
 * power of two that takes it far from where inverses are subnormal, and the inverse of both. */
enum { CHAIN_SCALES = CHAIN_ROW_VALUES, CHAIN_INVERSES = CHAIN_SCALES + CHAIN_UNIFORM };
enum { CHAIN_KNOWN = CHAIN_INVERSES + CHAIN_UNIFORM };

DEVICE float chain_scale(float b) {
    const float size = magnitude(b);
    return size < 0x1p-126f ? 0x1p64f : size > 0x1p126f ? 0x1p-64f : 1.0f;
}
/* a/b within 2^-23: the inverse is rounded, and the product with it. */
DEVICE float chain_quotient(float a, float scale, float inverse) { return a * inverse * scale; }
/* The same in f64, within 2^-52. */
DEVICE double chain_scale(double b) {
    const double size = wide_size(b);
    return size < 0x1p-1022 ? 0x1p64 : size > 0x1p1022 ? 0x1p-64 : 1.0;
}
DEVICE double chain_quotient(double a, double scale, double inverse) { return a * inverse * scale; }

/* Where each tensor's row begins, and an element in it. */
struct chain_place {
    int64_t row[CHAIN_VIEWS], at;
};

/* Divisors of a list's items come without what makes division fast. */
template <class Shape> DEVICE uint32_t chain_times(uint32_t number, const simt_divisor &by) {
    return Shape::MANY ? number / (uint32_t)by.by : quotient(number, by);
}
template <class Shape> DEVICE uint64_t chain_times(uint64_t number, const simt_divisor &by) {
    return quotient(number, by);
}
template <class Shape> DEVICE bool chain_is_short(int64_t count) { return Shape::MANY || divides_fast(count); }

template <class Shape, class Integer>
DEVICE void chain_find_row(const chain_job &p, Integer row, int64_t (&row_out)[CHAIN_VIEWS]) {
    constexpr int OUTER = Shape::OUTER;
#pragma unroll
    for (int64_t &from : row_out) from = 0;
#pragma unroll
    for (int d = CHAIN_AROUND - 1; d >= CHAIN_AROUND - OUTER; d--) {
        const Integer rest = d > CHAIN_AROUND - OUTER ? chain_times<Shape>(row, p.shape[d]) : 0;
        const int64_t i = (int64_t)(row - rest * (Integer)p.shape[d].by);
#pragma unroll
        for (int t = 0; t < CHAIN_VIEWS; t++) row_out[t] += i * p.stride[t][d];
        row = rest;
    }
}

/* ------------------------------------------------------------------------------------------- elements in registers */

/* Integers, which inputs may be. */
struct i8 {
    using bits = int8_t;
    static DEVICE real get(bits b) { return (real)b; }
};
struct u8 {
    using bits = uint8_t;
    static DEVICE real get(bits b) { return (real)b; }
};
struct i32 {
    using bits = int32_t;
    static DEVICE real get(bits b) { return (real)b; }
};

/* N elements as they are in memory. */
template <class T, int N>
struct alignas(N * sizeof(typename T::bits) < 16 ? N * sizeof(typename T::bits) : 16) chain_kept {
    static constexpr int SIZE = sizeof(typename T::bits), PER_WORD = 4 / SIZE;
    uint32_t word[N / PER_WORD];

    DEVICE real get(int k) const { return T::get((typename T::bits)(word[k / PER_WORD] >> k % PER_WORD * (8 * SIZE))); }
    DEVICE void set(const typename T::bits (&raw)[N]) { __builtin_memcpy(word, raw, sizeof raw); }
};
template <class T> struct chain_kept<T, 1> {
    typename T::bits raw;
    DEVICE real get(int) const { return T::get(raw); }
    DEVICE void set(const typename T::bits (&from)[1]) { raw = from[0]; }
};
template <int N> struct alignas(16) chain_kept<f64, N> {
    double raw[N];
    DEVICE real get(int k) const { return (real)raw[k]; }
    DEVICE void set(const double (&from)[N]) { __builtin_memcpy(raw, from, sizeof raw); }
};
template <> struct chain_kept<f64, 1> {
    double raw;
    DEVICE real get(int) const { return (real)raw; }
    DEVICE void set(const double (&from)[1]) { raw = from[0]; }
};

/* Those that inputs I, I + 1, ... have element by element; what lies beyond the row is 0. `INSIDE`: the lane is aligned
 * and in the row from end to end. */
template <class Shape, int I, int N, int PLACE = I < CHAIN_INPUTS ? Shape::place(I) : -1> struct chain_taken {
    using T = typename chain_tensor<I>::type;
    chain_kept<T, N> kept;
    chain_taken<Shape, I + 1, N> rest;

    template <bool INSIDE> DEVICE void load(const chain_job &p, const chain_place &u, int64_t n) {
        using Bits = typename T::bits;
        const Bits *row = (const Bits *)p.data[I] + u.row[I];
        if constexpr (INSIDE && PLACE == CHAIN_ALONG) {
            kept = *(const chain_kept<T, N> *)(row + u.at);
        } else {
            Bits raw[N];
#pragma unroll
            for (int k = 0; k < N; k++) raw[k] = u.at + k < n ? row[u.at + k] : Bits(0);
            kept.set(raw);
        }
        rest.template load<INSIDE>(p, u, n);
    }
    DEVICE void get(int k, real (&x)[CHAIN_INPUTS]) const {
        x[I] = kept.get(k);
        rest.get(k, x);
    }
};
template <class Shape, int I, int N> struct chain_taken<Shape, I, N, CHAIN_ABSENT> : chain_taken<Shape, I + 1, N> {};
template <class Shape, int I, int N> struct chain_taken<Shape, I, N, CHAIN_STILL> : chain_taken<Shape, I + 1, N> {};
template <class Shape, int I, int N> struct chain_taken<Shape, I, N, -1> {
    template <bool> DEVICE void load(const chain_job &, const chain_place &, int64_t) {}
    DEVICE void get(int, real (&)[CHAIN_INPUTS]) const {}
};

template <class T> DEVICE real chain_one(const void *data, int64_t i) {
    return T::get(((const typename T::bits *)data)[i]);
}

/* The inputs that are broadcast along the last dimension: one value of each. */
template <class Shape, int I = 0>
DEVICE void chain_load_ones(const chain_job &p, const chain_place &u, real (&x)[CHAIN_INPUTS]) {
    if constexpr (I < CHAIN_INPUTS) {
        if constexpr (Shape::place(I) == CHAIN_STILL)
            x[I] = chain_one<typename chain_tensor<I>::type>(p.data[I], u.row[I]);
        chain_load_ones<Shape, I + 1>(p, u, x);
    }
}

/* x as it is in memory, rounded once. */
template <class T> DEVICE typename T::bits chain_bits(real x) { return T::put(x); }

template <class T, int N> DEVICE void chain_put(const float (&v)[N], typename T::bits *to) { store_vector<T>(v, to); }
template <class T, int N> DEVICE void chain_put(const double (&v)[N], typename T::bits *to) {
    typename T::bits raw[N];
#pragma unroll
    for (int k = 0; k < N; k++) raw[k] = chain_bits<T>(v[k]);
    store_whole(raw, to);
}

template <class Shape, int O, bool INSIDE, int N>
DEVICE void chain_store(const chain_job &p, const chain_place &u, int64_t n, const real (&y)[CHAIN_OUTPUTS][N]) {
    if constexpr (O < CHAIN_OUTPUTS) {
        constexpr int I = CHAIN_INPUTS + O, PLACE = Shape::place(I);
        using T = typename chain_tensor<I>::type;
        using Bits = typename T::bits;
        if constexpr (PLACE != CHAIN_ABSENT) {
            Bits *row = (Bits *)p.data[I] + u.row[I];
            if constexpr (N > 1 && INSIDE && PLACE == CHAIN_ALONG) {
                chain_put<T>(y[O], row + u.at);
            } else {
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (u.at + k < n) row[u.at + k] = chain_bits<T>(y[O][k]);
            }
        }
        chain_store<Shape, O + 1, INSIDE>(p, u, n, y);
    }
}

/* To an output of the row. */
template <int I> DEVICE void chain_store_row(const chain_job &p, const chain_place &u, real x) {
    using T = typename chain_tensor<I>::type;
    ((typename T::bits *)p.data[I])[u.row[I]] = chain_bits<T>(x);
}

/* What is kept of each of N elements from phase to phase. */
template <class Shape, int N> struct chain_kept_values {
    real v[N][Shape::KEPT];
};

/* The last phase of N elements. */
template <class Shape, bool INSIDE, int N>
DEVICE void chain_finish(const chain_job &p, const chain_place &u, int64_t n, const chain_taken<Shape, 0, N> &taken,
                         const real (&ones)[CHAIN_INPUTS], const real (&row)[CHAIN_KNOWN],
                         chain_kept_values<Shape, N> &kept) {
    real y[CHAIN_OUTPUTS][N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        real x[CHAIN_INPUTS], out[CHAIN_OUTPUTS];
#pragma unroll
        for (int i = 0; i < CHAIN_INPUTS; i++) x[i] = ones[i];
        taken.get(k, x);
        chain_code<Shape::PHASES - 1>::element(p, row, x, out, kept.v[k]);
#pragma unroll
        for (int o = 0; o < CHAIN_OUTPUTS; o++) y[o][k] = out[o];
    }
    chain_store<Shape, 0, INSIDE>(p, u, n, y);
}

/* --------------------------------------------------------------------------------------------------------- walks */

template <class Shape, int N> DEVICE chain_place chain_unit(const chain_job &p, int64_t number) {
    if (Shape::OUTER == 0) return { {}, number * N };
    chain_place u;
    if (chain_is_short<Shape>(p.units)) {
        const uint32_t row = chain_times<Shape>((uint32_t)number, p.row_units);
        u.at = (int64_t)((uint32_t)number - row * (uint32_t)p.row_units.by) * p.length;
        chain_find_row<Shape>(p, row, u.row);
    } else {
        const uint64_t row = chain_times<Shape>((uint64_t)number, p.row_units);
        u.at = (int64_t)((uint64_t)number - row * (uint64_t)p.row_units.by) * p.length;
        chain_find_row<Shape>(p, row, u.row);
    }
    return u;
}

/* U units of N elements, all asked for before any is looked at. */
template <class Shape, int U, int N>
DEVICE void chain_units(const chain_job &p, int64_t number, const real (&row)[CHAIN_KNOWN]) {
    chain_place u[U];
    chain_taken<Shape, 0, N> taken[U];
    real ones[U][CHAIN_INPUTS] = {};
#pragma unroll
    for (int i = 0; i < U; i++) {
        u[i] = chain_unit<Shape, N>(p, number + i * Shape::THREADS);
        taken[i].template load<true>(p, u[i], p.n);
        chain_load_ones<Shape>(p, u[i], ones[i]);
    }
#pragma unroll
    for (int i = 0; i < U; i++) {
        chain_kept_values<Shape, N> kept;
        chain_finish<Shape, true>(p, u[i], p.n, taken[i], ones[i], row, kept);
    }
}

/* Block number `block` of the call's. */
template <class Shape> DEVICE void chain_walk(const chain_job &p, int64_t block) {
    constexpr int N = Shape::LENGTH, U = Shape::UNITS;
    const int64_t first = block * (Shape::THREADS * U), number = first + thread_index();
    real row[CHAIN_KNOWN] = {};
    chain_code<Shape::FIRST>::row_steps(p, row);
    if (first + Shape::THREADS * U <= p.whole_units) {
        chain_units<Shape, U, N>(p, number, row);
        return;
    }
#pragma unroll 1
    for (int64_t i = number; i < p.units && i < first + Shape::THREADS * U; i += Shape::THREADS) {
        chain_place u = chain_unit<Shape, N>(p, i);
        if (u.at + N <= p.n) {
            chain_units<Shape, 1, N>(p, i, row);
            continue;
        }
#pragma unroll 1
        for (; u.at < p.n; u.at++) {
            chain_taken<Shape, 0, 1> taken;
            real ones[CHAIN_INPUTS] = {};
            taken.template load<true>(p, u, p.n);
            chain_load_ones<Shape>(p, u, ones);
            chain_kept_values<Shape, 1> kept;
            chain_finish<Shape, true>(p, u, p.n, taken, ones, row, kept);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- rows */

/* What the reductions of a phase have so far. */
template <int P> struct chain_sums {
    real v[chain_code<P>::REDUCTIONS];
};
template <int P> struct chain_combine {
    DEVICE chain_sums<P> operator()(const chain_sums<P> &a, const chain_sums<P> &b) const {
        chain_sums<P> x;
#pragma unroll
        for (int j = 0; j < chain_code<P>::REDUCTIONS; j++) x.v[j] = chain_code<P>::combine(j, a.v[j], b.v[j]);
        return x;
    }
};

template <class Shape> struct chain_rows {
    static constexpr int G = Shape::GROUP, V = Shape::VECTORS, N = Shape::LENGTH, PIECE = G * V * N;
    static constexpr int ROWS = Shape::THREADS / G; /* of a block */

    const chain_job &p;
    chain_place u;
    int64_t n; /* 0: the group has no row, but comes along */
    bool there;
    real ones[CHAIN_INPUTS];
    chain_taken<Shape, 0, N> taken[V];
    chain_kept_values<Shape, N> kept[V];
    real row[CHAIN_KNOWN];

    DEVICE chain_place place(int64_t piece, int v) const {
        chain_place x = u;
        x.at = piece + (v * G + thread_index() % G) * N;
        return x;
    }
    DEVICE void load(int64_t piece) {
#pragma unroll
        for (int v = 0; v < V; v++) {
            const chain_place x = place(piece, v);
            if (Shape::WHOLE && x.at < n)
                taken[v].template load<true>(p, x, n);
            else
                taken[v].template load<false>(p, x, Shape::WHOLE ? 0 : n);
        }
    }

    /* The reductions of a vector, by pairs; elements beyond the row do not count. */
    template <int P>
    DEVICE void reduce(const chain_place &x, const chain_taken<Shape, 0, N> &from, chain_kept_values<Shape, N> &keep,
                       chain_sums<P> &sums) {
        constexpr int R = chain_code<P>::REDUCTIONS;
        chain_sums<P> of[N];
        chain_sums<P> none;
        chain_code<P>::start(none.v);
#pragma unroll
        for (int k = 0; k < N; k++) {
            real in[CHAIN_INPUTS];
#pragma unroll
            for (int i = 0; i < CHAIN_INPUTS; i++) in[i] = ones[i];
            from.get(k, in);
            chain_code<P>::element(p, row, in, of[k].v, keep.v[k]);
#pragma unroll
            for (int j = 0; j < R; j++) of[k].v[j] = x.at + (Shape::WHOLE ? 0 : k) < n ? of[k].v[j] : none.v[j];
        }
#pragma unroll
        for (int half = N / 2; half > 0; half /= 2)
#pragma unroll
            for (int k = 0; k < half; k++) of[k] = chain_combine<P>()(of[k], of[k + half]);
        sums = chain_combine<P>()(sums, of[0]);
    }

    template <int P> DEVICE void phase() {
        chain_code<P>::row_steps(p, row);
        chain_sums<P> sums;
        chain_code<P>::start(sums.v);
        for (int64_t piece = 0; piece == 0 || (Shape::PIECES && piece < p.n); piece += PIECE) {
            if (Shape::PIECES) load(piece);
#pragma unroll
            for (int v = 0; v < V; v++) reduce<P>(place(piece, v), taken[v], kept[v], sums);
        }
        sums = group_combine<G>(sums, chain_combine<P>());
        chain_code<P>::keep(sums.v, row);
        if constexpr (P + 2 < Shape::PHASES) phase<P + 1>();
    }

    DEVICE void finish() {
        chain_code<Shape::PHASES - 1>::row_steps(p, row);
        if (there && thread_index() % G == 0) chain_code<Shape::PHASES - 1>::store_row(p, u, row);
        for (int64_t piece = 0; piece == 0 || (Shape::PIECES && piece < p.n); piece += PIECE) {
            if (Shape::PIECES) load(piece);
#pragma unroll
            for (int v = 0; v < V; v++) {
                const chain_place x = place(piece, v);
                if (x.at < n) chain_finish<Shape, Shape::WHOLE>(p, x, n, taken[v], ones, row, kept[v]);
            }
        }
    }
};

template <class Shape> DEVICE void chain_over_rows(const chain_job &p, int64_t block) {
    using rows = chain_rows<Shape>;
    const int64_t i = block * rows::ROWS + (rows::ROWS > 1 ? thread_index() / Shape::GROUP : 0);
    rows r{ p, {}, i < p.rows ? p.n : 0, i < p.rows, {}, {}, {}, {} };
    if (chain_is_short<Shape>(p.rows))
        chain_find_row<Shape>(p, (uint32_t)(i < p.rows ? i : 0), r.u.row);
    else
        chain_find_row<Shape>(p, (uint64_t)(i < p.rows ? i : 0), r.u.row);
    if (r.n > 0) chain_load_ones<Shape>(p, r.u, r.ones);
    if (!Shape::PIECES) r.load(0);
    if constexpr (Shape::PHASES > 1) r.template phase<0>();
    r.finish();
}

/* ---------------------------------------------------------------------------------------------------------- lists */

/* The call of an item, as it would be launched alone. */
template <class Shape> DEVICE chain_job chain_job_of(const chain_list_job &list, const uint32_t *item) {
    constexpr int OUTER = Shape::OUTER, FROM = CHAIN_AROUND - OUTER, N = Shape::LENGTH;
    chain_job p;
    p.n = item[1];
    p.rows = 1;
#pragma unroll
    for (int d = 0; d < OUTER; d++) {
        p.shape[FROM + d].by = item[2 + d];
        p.rows *= item[2 + d];
    }
    const uint32_t *tensor = item + 2 + OUTER;
#pragma unroll
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        p.data[t] = nullptr;
        if (Shape::place(t) == CHAIN_ABSENT) continue;
        p.data[t] = chain_address(tensor);
#pragma unroll
        for (int d = 0; d < OUTER; d++) p.stride[t][FROM + d] = (int32_t)tensor[2 + d];
        tensor += 2 + OUTER;
    }
#pragma unroll
    for (int i = 0; i < CHAIN_CONSTANTS; i++) p.numbers.CHAIN_NUMBERS[i] = list.numbers.CHAIN_NUMBERS[i];
    p.length = N;
    p.row_units.by = (p.n + N - 1) / N;
    p.units = p.row_units.by * p.rows;
    p.whole_units = p.n % N == 0 ? p.units : OUTER == 0 ? p.n / N : 0;
    return p;
}

template <class Shape> DEVICE void chain_many(const chain_list_job &list) {
    const uint32_t *item = chain_item_of(list.list, block_index());
    const chain_job p = chain_job_of<Shape>(list, item);
    if constexpr (Shape::GROUP == 0)
        chain_walk<Shape>(p, block_index() - item[0]);
    else
        chain_over_rows<Shape>(p, block_index() - item[0]);
}

#endif
