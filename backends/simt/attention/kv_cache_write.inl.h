/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_write on devices. A block has up to 8 tokens, one after the other: first it looks through the slots of all
 * later tokens for those of its own, which are then not its to write; without that, which of two tokens is written last
 * would be the device's to decide.
 *
 * NOTES. Floor: keys and values are read and written once. Slots are read by every block, from the second-level cache:
 * of one token each where they are few, since a block then reads them all in a few steps, and of 8 where they are
 * many. */
#include "cache_types.h"
#include "kv_cache_write.h"

template <class T, class U> constexpr bool same_type = false;
template <class T> constexpr bool same_type<T, T> = true;

/* N elements. Those that keep their type and are not scaled are not looked at. */
template <class T, class C, int N>
DEVICE void write_unit(const typename T::bits *from, typename C::bits *to, bool scaled, float scale) {
    const packed<typename T::bits, N> raw = *(const packed<typename T::bits, N> *)from;
    typename C::bits code[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        if constexpr (same_type<T, C>)
            code[k] = scaled ? C::put(T::get(raw.v[k]) / scale) : raw.v[k];
        else
            code[k] = cache_put(scaled ? T::get(raw.v[k]) / scale : T::get(raw.v[k]), C());
    }
    if constexpr (N == 1)
        *to = code[0];
    else
        store_whole(code, to);
}

template <class T, class C, int N, class Integer>
DEVICE void write_units(const kv_cache_write_part &p, int64_t token, int64_t page, int64_t place, Integer all) {
    const typename T::bits *const from = (const typename T::bits *)p.x + token * p.token;
    typename C::bits *const to = (typename C::bits *)p.cache + page * p.page + place * p.place;
    for (Integer u = (Integer)thread_index(); u < all; u += SIMT_THREADS) {
        const Integer head = quotient(u, p.units);
        const int64_t at = (int64_t)(u - head * (Integer)p.units.by) * N;
        const float scale = p.scale ? p.scale[(int64_t)head * p.scale_step] : 1.0f;
        write_unit<T, C, N>(from + (int64_t)head * p.head + at, to + (int64_t)head * p.row + at, p.scale != nullptr,
                            scale);
    }
}

template <class T, class C, int N>
DEVICE void write_part(const kv_cache_write_part &p, int64_t token, int64_t page, int64_t place) {
    if (p.x == nullptr) return;
    if (divides_fast(p.all + SIMT_THREADS))
        write_units<T, C, N>(p, token, page, place, (uint32_t)p.all);
    else
        write_units<T, C, N>(p, token, page, place, (uint64_t)p.all);
}

struct either {
    DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};

/* Bit i: a later token has the slot of token first + i. */
DEVICE uint32_t later_tokens(const kv_cache_write_params &p, int64_t first,
                             const int64_t (&slot)[KV_CACHE_WRITE_TOKENS]) {
    uint32_t lost = 0;
#pragma unroll 4
    for (int64_t j = first + 1 + thread_index(); j < p.t; j += SIMT_THREADS) {
        const int64_t other = load_integer(p.slots, p.long_slots, j);
#pragma unroll
        for (int i = 0; i < KV_CACHE_WRITE_TOKENS; i++)
            if (other == slot[i] && j > first + i) lost |= 1u << i;
    }
    return group_combine<SIMT_THREADS>(lost, either());
}

template <class T, class C, int N> DEVICE void kv_cache_write(const kv_cache_write_params &p) {
    const int64_t first = block_index() * p.tokens;
    int64_t slot[KV_CACHE_WRITE_TOKENS];
#pragma unroll
    for (int i = 0; i < KV_CACHE_WRITE_TOKENS; i++)
        slot[i] = i < p.tokens && first + i < p.t ? load_integer(p.slots, p.long_slots, first + i) : -1;
    const uint32_t lost = later_tokens(p, first, slot);
#pragma unroll 1
    for (int i = 0; i < p.tokens && first + i < p.t; i++) {
        const int64_t at = load_integer(p.slots, p.long_slots, first + i);
        if (at < 0 || at >= p.all || (lost >> i & 1)) continue;
        const int64_t page = at / p.page;
        write_part<T, C, N>(p.k, first + i, page, at - page * p.page);
        write_part<T, C, N>(p.v, first + i, page, at - page * p.page);
    }
}

#define CACHE_TYPES(T, C) \
    ENTRY(kv_cache_write_##T##_##C##_1, SIMT_THREADS, kv_cache_write_params) { kv_cache_write<T, C, 1>(p); } \
    ENTRY(kv_cache_write_##T##_##C##_8, SIMT_THREADS, kv_cache_write_params) { kv_cache_write<T, C, 8>(p); }
CACHE_TYPES(f32, f32)
CACHE_TYPES(f32, e4m3)
CACHE_TYPES(f32, i8)
CACHE_TYPES(bf16, bf16)
CACHE_TYPES(bf16, e4m3)
CACHE_TYPES(bf16, i8)
CACHE_TYPES(f16, f16)
CACHE_TYPES(f16, e4m3)
CACHE_TYPES(f16, i8)
