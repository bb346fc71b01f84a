/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on devices. */
#include "dropout.h"
#include "philox.h"
#include "walk.h"

template <class T> struct dropout_op {
    template <int N> static DEVICE void step(const dropout_params &p, const unit &u) {
        if (N > 1 && u.index % 4 != 0) { /* rows with room between them: a vector has parts of three blocks of words */
#pragma unroll 1
            for (unit one = u; one.at < u.at + N; one.at++, one.index++) step<1>(p, one);
            return;
        }
        float x[N];
        bool keep[N];
        unit_load<T>(x, p.walk, 0, u);
        if constexpr (N == 1) {
            keep[0] = kept<1>(p.dropout, (uint64_t)u.index) & 1;
        } else {
#pragma unroll
            for (int block = 0; block < N / 4; block++) {
                const four w = philox(p.dropout, (uint64_t)u.index / 4 + block);
#pragma unroll
                for (int j = 0; j < 4; j++) keep[4 * block + j] = w.word[j] <= p.dropout.last;
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = keep[k] ? x[k] * p.dropout.scale : 0.0f;
        unit_store<T>(x, p.walk, 1, u);
        if (!p.walk.data[2]) return;
        uint8_t mask[N];
#pragma unroll
        for (int k = 0; k < N; k++) mask[k] = keep[k];
        unit_store_bits(mask, p.walk, 2, u);
    }
};

/* As many threads as a processor can hold: the words take longer than memory does. */
#define DROPOUT(T) \
    ENTRY_HELD(dropout_##T, SIMT_THREADS, 2048 / SIMT_THREADS, dropout_params) { walk<dropout_op<T>, walk_length<T>>(p); }
DROPOUT(f32)
DROPOUT(bf16)
DROPOUT(f16)
