/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on devices. */
#include "dropout.h"
#include "backends/simt/core/philox.h"
#include "backends/simt/core/walk.h"
#include "spec/places/dropout.h"

/* Of N elements those that `bits` has. */
template <class T, int N> DEVICE void dropout_unit(const dropout_params &p, const unit &u, uint32_t bits) {
    float x[N];
    unit_load<T>(x, p.walk, DROPOUT_X, u);
#pragma unroll
    for (int k = 0; k < N; k++) x[k] = bits >> k & 1 ? x[k] * p.dropout.scale : 0.0f;
    unit_store<T>(x, p.walk, DROPOUT_Y, u);
    if (!p.walk.data[DROPOUT_MASK]) return;
    uint8_t mask[N];
#pragma unroll
    for (int k = 0; k < N; k++) mask[k] = bits >> k & 1;
    unit_store_bits(mask, p.walk, DROPOUT_MASK, u);
}

template <class T> struct dropout_op {
    template <int N> static DEVICE void step(const dropout_params &p, const unit &u) {
        dropout_unit<T, N>(p, u, kept<N, false, false>(p.dropout, (uint64_t)u.index));
    }
};

/* With a key that only the device has, or where nothing is kept: p = 1. */
template <class T> struct dropout_told_op {
    template <int N> static DEVICE void step(const dropout_params &p, const unit &u) {
        uint32_t bits = 0;
        if (p.philox) bits = kept<N, false, false>(dropout_told(p.dropout, p.philox), (uint64_t)u.index);
        dropout_unit<T, N>(p, u, bits);
    }
};

/* A vector, of tensors that are nothing but vectors one behind the other. The blocks of words of a thread block have
 * the same upper half of their number. */
template <class T, bool MASK> DEVICE void dropout_vector(const dropout_params &p) {
    constexpr int N = walk_length<T>;
    const int64_t first = block_index() * (SIMT_THREADS * N), number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.walk.units) return;
    float x[N];
    uint8_t mask[N];
    load_vector<T>(x, (const typename T::bits *)p.walk.data[DROPOUT_X] + number * N);
    dropout_each<N>(p.dropout, dropout_words(first, 0), thread_index() * N, [&](int k, uint32_t word) {
        mask[k] = word <= p.dropout.last;
        x[k] = mask[k] ? x[k] * p.dropout.scale : 0.0f;
    });
    store_vector<T>(x, (typename T::bits *)p.walk.data[DROPOUT_Y] + number * N);
    if constexpr (MASK) store_whole(mask, (uint8_t *)p.walk.data[DROPOUT_MASK] + number * N);
}

/* As many threads as an SM can hold: the words take longer than memory does. Functions of their own, since a compiler
 * that finds both in one does what they have in common before it asks whether there is a mask, and waits for memory in
 * front of the words. */
#define DROPOUT(T) \
    ENTRY_HELD(dropout_##T, SIMT_THREADS, 2048 / SIMT_THREADS, dropout_params) { \
        walk<dropout_op<T>, walk_length<T>>(p); \
    } \
    ENTRY_HELD(dropout_told_##T, SIMT_THREADS, 2048 / SIMT_THREADS, dropout_params) { \
        walk<dropout_told_op<T>, walk_length<T>>(p); \
    } \
    ENTRY_HELD(dropout_whole_##T, SIMT_THREADS, 2048 / SIMT_THREADS, dropout_params) { dropout_vector<T, false>(p); } \
    ENTRY_HELD(dropout_whole_mask_##T, SIMT_THREADS, 2048 / SIMT_THREADS, dropout_params) { \
        dropout_vector<T, true>(p); \
    }
DROPOUT(f32)
DROPOUT(bf16)
DROPOUT(f16)
