/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of device code that is not bound to a vendor: element types, vectors of 8 elements in memory, sums
 * over groups of threads.
 *
 * A backend's target.h defines what differs: DEVICE, SHARED and ENTRY; WARP; thread_index(), block_index(),
 * sync_block(), shuffle_xor(), any_of_warp() and store_words(); shuffle_before(), of the thread before; keep_address(),
 * of a row that the compiler would look for anew at each access; product(), which is not fused to an addition, and
 * fused(); larger() and not_negative(); exp2_approx() and reciprocal() to 2 ulp, square_root() to 1; and the
 * conversions float_from_f16(), f16_from_float(), bf16_from_float(), f16_pair() and bf16_pair(), whose first element is
 * the low half of a word.
 *
 * Data that only a host could report, an id out of range, must not lead a kernel astray: such an id reads and writes
 * nothing, and gives NaN. */
#ifndef TRINE_SIMT_H
#define TRINE_SIMT_H

#include "params.h"
#include <target.h>

#define NAN_BITS 0x7fc00000u
#define INF_BITS 0x7f800000u

DEVICE float float_of_bits(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
DEVICE uint32_t bits_of_float(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
DEVICE float not_a_number() { return float_of_bits(NAN_BITS); }
DEVICE float infinity() { return float_of_bits(INF_BITS); }
DEVICE float magnitude(float x) { return __builtin_fabsf(x); }

DEVICE uint32_t quotient(uint32_t n, const simt_divisor &d) {
    return (uint32_t)((uint64_t)n * d.multiplier >> d.shift);
}
DEVICE uint64_t quotient(uint64_t n, const simt_divisor &d) { return n / (uint64_t)d.by; }
DEVICE bool divides_fast(int64_t count) { return count <= INT32_MAX; } /* numbers below `count` */

/* ---------------------------------------------------------------------------------------------------- element types */

struct f32 {
    using bits = uint32_t;
    static DEVICE float get(bits b) { return float_of_bits(b); }
    static DEVICE bits put(float x) { return bits_of_float(x); }
    static DEVICE float largest() { return float_of_bits(0x7f7fffffu); }
};
struct bf16 {
    using bits = uint16_t;
    static DEVICE float get(bits b) { return float_of_bits((uint32_t)b << 16); }
    static DEVICE bits put(float x) { return bf16_from_float(x); }
    static DEVICE uint32_t pair(float low, float high) { return bf16_pair(low, high); }
    static DEVICE float largest() { return float_of_bits(0x7f7f0000u); }
};
struct f16 {
    using bits = uint16_t;
    static DEVICE float get(bits b) { return float_from_f16(b); }
    static DEVICE bits put(float x) { return f16_from_float(x); }
    static DEVICE uint32_t pair(float low, float high) { return f16_pair(low, high); }
    static DEVICE float largest() { return 65504.0f; }
};

/* x rounded to T and back. */
template <class T> DEVICE float rounded(float x) { return T::get(T::put(x)); }

/* A floating-point scalar in memory, and an integer of either width. */
template <class T> DEVICE float load_one(const void *data, int64_t i) {
    return T::get(((const typename T::bits *)data)[i]);
}
template <class T> DEVICE void store_one(void *data, int64_t i, float x) { ((typename T::bits *)data)[i] = T::put(x); }
DEVICE int64_t load_integer(const void *data, bool wide, int64_t i) {
    return wide ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

/* --------------------------------------------------------------------------------------------- 8 elements at a time */

enum { VECTOR = 8 };

/* N elements as one access, or as two of 16 bytes. */
template <class Bits, int N> struct alignas(N * sizeof(Bits) < 16 ? N * sizeof(Bits) : 16) packed {
    Bits v[N];
};

/* The elements at, at + 1, ... of a row of n that a thread has; `aligned`: as vectors, so that they are one access if
 * the row reaches that far. Which thread has which element does not depend on it: results must not depend on
 * addresses. */
struct lane {
    int64_t at, n;
    bool aligned;
};

/* Is element k of a lane one of the row? */
DEVICE bool within(const lane &l, int k) { return l.at + k < l.n; }

template <int N, class Bits> DEVICE void load_bits(Bits (&v)[N], const void *data, const lane &l) {
    const Bits *from = (const Bits *)data + l.at;
    if (l.aligned && within(l, N - 1)) {
        const packed<Bits, N> whole = *(const packed<Bits, N> *)from;
#pragma unroll
        for (int k = 0; k < N; k++) v[k] = whole.v[k];
        return;
    }
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = within(l, k) ? from[k] : Bits(0);
}

/* Compilers gather loads of a packed structure by themselves, but not its stores. */
template <int N, class Bits> DEVICE void store_whole(const Bits (&v)[N], void *to) {
    constexpr int WORDS = N * sizeof(Bits) / 4;
    uint32_t word[WORDS];
    __builtin_memcpy(word, v, sizeof word);
#pragma unroll
    for (int i = 0; i + 4 <= WORDS; i += 4)
        store_words((uint32_t *)to + i, word[i], word[i + 1], word[i + 2], word[i + 3]);
    if constexpr (WORDS % 4 == 2) store_words((uint32_t *)to, word[0], word[1]);
    if constexpr (WORDS == 1) *(uint32_t *)to = word[0];
}

template <int N, class Bits> DEVICE void store_bits(const Bits (&v)[N], void *data, const lane &l) {
    Bits *to = (Bits *)data + l.at;
    if constexpr (N > 1) {
        if (l.aligned && within(l, N - 1)) {
            store_whole(v, to);
            return;
        }
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        if (within(l, k)) to[k] = v[k];
}

/* N elements as they are in memory. */
template <class T, int N> struct alignas(N * sizeof(typename T::bits) < 16 ? N * sizeof(typename T::bits) : 16) held {
    static constexpr int PER_WORD = 4 / sizeof(typename T::bits);
    uint32_t word[N / PER_WORD];

    DEVICE float get(int k) const {
        return T::get((typename T::bits)(PER_WORD == 1 ? word[k] : word[k / 2] >> k % 2 * 16));
    }
};

template <class T, int N> DEVICE held<T, N> held_of(const float (&v)[N]) {
    held<T, N> x;
#pragma unroll
    for (int i = 0; i < N / x.PER_WORD; i++)
        if constexpr (x.PER_WORD == 1)
            x.word[i] = T::put(v[i]);
        else
            x.word[i] = T::pair(v[2 * i], v[2 * i + 1]);
    return x;
}

template <class T, int N> DEVICE held<T, N> held_ones() {
    float one[N];
#pragma unroll
    for (float &x : one) x = 1;
    return held_of<T>(one);
}

/* A vector of N elements that is aligned and in memory from end to end, or one element. */
template <class T, int N> DEVICE void load_vector(float (&v)[N], const typename T::bits *from) {
    if constexpr (N == 1) {
        v[0] = T::get(*from);
    } else {
        const held<T, N> raw = *(const held<T, N> *)from;
#pragma unroll
        for (int k = 0; k < N; k++) v[k] = raw.get(k);
    }
}
template <class T, int N> DEVICE void store_vector(const float (&v)[N], typename T::bits *to) {
    if constexpr (N == 1)
        *to = T::put(v[0]);
    else
        store_whole(held_of<T>(v).word, to);
}

/* The elements of a lane as floats; what lies beyond the row is 0. */
template <class T, int N> DEVICE void load(float (&v)[N], const void *data, const lane &l) {
    typename T::bits raw[N];
    load_bits(raw, data, l);
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = T::get(raw[k]);
}
template <class T, int N> DEVICE void store(const float (&v)[N], void *data, const lane &l) {
    typename T::bits raw[N];
#pragma unroll
    for (int k = 0; k < N; k++) raw[k] = T::put(v[k]);
    store_bits(raw, data, l);
}

/* The same of a lane that is known to be aligned and in the row from end to end, or not. */
template <class T, bool WHOLE, int N> DEVICE void load_lane(float (&v)[N], const typename T::bits *row, const lane &l) {
    if constexpr (WHOLE)
        load_vector<T>(v, row + l.at);
    else
        load<T>(v, row, l);
}
DEVICE bool whole(const lane &l) { return l.aligned && within(l, VECTOR - 1); }

/* -------------------------------------------------------------------------------------------------- sums of a group */

/* G threads of consecutive numbers: a power of two that is part of a warp, or whole warps that are the block. Every
 * thread gets the result, the same bits. */
template <int G, class Value, class Combine> DEVICE Value group_combine(Value x, Combine combine) {
#pragma unroll
    for (int mask = (G < WARP ? G : WARP) / 2; mask > 0; mask /= 2) x = combine(x, shuffle_xor(x, mask));
    if (G <= WARP) return x;
    constexpr int warps = G <= WARP ? 1 : G / WARP;
    SHARED Value part[warps];
    const int thread = thread_index();
    if (thread % WARP == 0) part[thread / WARP] = x;
    sync_block();
    if constexpr ((warps & (warps - 1)) == 0) {
        x = part[thread % warps];
#pragma unroll
        for (int mask = warps / 2; mask > 0; mask /= 2) x = combine(x, shuffle_xor(x, mask));
    } else {
        x = part[0];
#pragma unroll
        for (int i = 1; i < warps; i++) x = combine(x, part[i]);
    }
    sync_block();
    return x;
}

/* Two sums at once. */
struct two {
    float a, b;
    DEVICE friend two operator+(two x, two y) { return { x.a + y.a, x.b + y.b }; }
};

struct plus {
    template <class Value> DEVICE Value operator()(Value a, Value b) const { return a + b; }
};
struct maximum {
    DEVICE float operator()(float a, float b) const { return larger(a, b); }
};

template <int G, class Value> DEVICE Value group_sum(Value x) { return group_combine<G>(x, plus()); }
template <int G> DEVICE float group_max(float x) { return group_combine<G>(x, maximum()); }

#endif
