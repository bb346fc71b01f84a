/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_sharded on devices: the sums of a rank's part, in f32, and the parts of all; the rest is that of the ops
 * within. */
#include "adamw_sharded.h"
#include "exchange.inl.h"

/* The exchange is of parameters that begin with it. */
DEVICE const sharded_params &sharded(const exchange_params &p) { return *(const sharded_params *)(const void *)&p; }

/* Packet i of a rank's part. */
DEVICE lane lane_of(const exchange_params &p, int64_t rank, int64_t at) {
    const sharded_params &s = sharded(p);
    const int64_t rest = s.all - rank * s.part;
    return { at, rest < s.part ? rest : s.part, p.aligned };
}

template <class T> struct summed_parts : summed<T> {
    using bits = typename T::bits;
    enum { N = summed<T>::N };
    static DEVICE packet load(const exchange_params &p, int64_t row, int64_t i) {
        bits raw[N];
        packet words;
        load_bits(raw, (const char *)p.x + row * p.x_row, lane_of(p, row, i * N));
        __builtin_memcpy(&words, raw, sizeof words);
        return never_absent(words);
    }
    DEVICE const summed_parts &rounded_off() const { return *this; }
    static DEVICE void store(const exchange_params &p, int64_t i, const summed_parts &all) {
        const float *const by = sharded(p).scale;
        const float scale = by ? *by : 1.0f;
        constexpr int FEW = 4;
#pragma unroll
        for (int first = 0; first < N; first += FEW) {
            uint32_t raw[FEW];
#pragma unroll
            for (int k = 0; k < FEW; k++) raw[k] = bits_of_float(all.v[first + k] * scale);
            lane to = lane_of(p, p.rank, i * N + first);
            to.aligned = true; /* it is the workspace */
            store_bits(raw, p.y, to);
        }
    }
};

template <class Bits> struct copied_parts : copied<Bits> {
    enum { N = copied<Bits>::N };
    static DEVICE packet load(const exchange_params &p, int64_t, int64_t i) {
        Bits raw[N];
        packet x;
        load_bits(raw, p.x, lane_of(p, p.rank, i * N));
        __builtin_memcpy(&x, raw, sizeof x);
        return x;
    }
    static DEVICE void store(const exchange_params &p, int64_t row, int64_t i, const packet &x) {
        Bits raw[N];
        __builtin_memcpy(raw, &x, sizeof x);
        store_bits(raw, (char *)p.y + row * p.y_row, lane_of(p, row, i * N));
    }
};

/* One number of each rank: 1 if any is not 0. */
struct any_found : summed<f32> {
    static DEVICE packet load(const exchange_params &p, int64_t, int64_t) {
        const float found = p.x ? *(const float *)p.x : 0.0f;
        return packet{ { found != 0 ? bits_of_float(1.0f) : 0u, 0, 0, 0 } };
    }
    static DEVICE void store(const exchange_params &p, int64_t, const packet &all) {
        *(float *)p.y = float_of_bits(all.word[0]);
    }
};

#define SHARDED_ENTRY(name, run, T, what) \
    ENTRY_ALONE(adamw_sharded_##name, EXCHANGE_THREADS, EXCHANGE_HELD, sharded_params) { run<T, what<T>>(p.exchange); }
SHARDED_ENTRY(f32, sum_directly, f32, summed_parts)
SHARDED_ENTRY(bf16, sum_directly, bf16, summed_parts)
SHARDED_ENTRY(f16, sum_directly, f16, summed_parts)
SHARDED_ENTRY(2, copy_rows, uint16_t, copied_parts)
SHARDED_ENTRY(4, copy_rows, uint32_t, copied_parts)

EXCHANGE_ENTRY(adamw_sharded_squares, copy_rows<uint64_t>)
#define FIND(p) sum_directly<f32, any_found>(p)
EXCHANGE_ENTRY(adamw_sharded_found, FIND)
