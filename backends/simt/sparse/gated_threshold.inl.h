/* SPDX-License-Identifier: Apache-2.0 */
/* gated_threshold on devices: a thread has 8 elements; where lists are asked for a block has a row, piece by piece.
 * Values are computed by the operations that spec/sparse/gated_threshold.c prescribes, so that the choice is the CPU's.
 *
 * NOTES. Floor: x once, y once. */
#include <trine/matmul.h>

#include "gated_threshold.h"
#include "backends/simt/core/before.h"
#include "backends/simt/core/power.h"

DEVICE float gate_logistic(float v) {
    const float p = pinned_power(-magnitude(v));
    return (v < 0 ? p : 1.0f) / (1.0f + p);
}

DEVICE float gate_gelu_erf(float x) {
    const float a = magnitude(x) > 14.6f ? 14.6f : magnitude(x);
    float p = 0.0139801381f;
    p = product(p, a) + 0.106339224f;
    p = product(p, a) + 0.338643521f;
    p = product(p, a) + 0.49999997f;
    float q = 0.0350565426f;
    q = product(q, a) + 0.266118973f;
    q = product(q, a) + 0.889719844f;
    q = product(q, a) + 1.47516918f;
    q = product(q, a) + 1.0f;
    const float tail = product(pinned_power(product(product(a, a), -0.5f)), p / q);
    return product(x, x < 0 ? tail : 1.0f - tail);
}

DEVICE float gate_of(int32_t activation, float x) {
    switch (activation) {
    case TRINE_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case TRINE_ACTIVATION_GELU_TANH:
        return product(x, gate_logistic(product(x, product(product(x, x), 0.0713548139f) + 1.59576917f)));
    case TRINE_ACTIVATION_GELU_ERF: return gate_gelu_erf(x);
    case TRINE_ACTIVATION_SILU: return product(x, gate_logistic(x));
    default: return x;
    }
}

/* A vector of a row: y and the mask are stored, and which elements are kept is the result, a bit for each. */
template <class T> DEVICE uint32_t gated_vector(const gated_params &p, int64_t row, const lane &l) {
    float v[VECTOR];
    uint32_t kept = 0;
    load<T>(v, (const typename T::bits *)p.x.data + row * p.x.row, l);
#pragma unroll
    for (int k = 0; k < VECTOR; k++) {
        const float threshold = p.thresholds && within(l, k) ? p.thresholds[(l.at + k) * p.step] : p.threshold;
        v[k] = gate_of(p.activation, v[k]);
        if (magnitude(v[k]) <= threshold)
            v[k] = 0;
        else
            kept |= within(l, k) ? 1u << k : 0;
    }
    store<T>(v, (typename T::bits *)p.y.data + row * p.y.row, l);
    uint8_t *const mask = (uint8_t *)p.mask.data + row * p.mask.row + l.at;
#pragma unroll
    for (int k = 0; k < VECTOR; k++)
        if (p.mask.data && within(l, k)) mask[k] = (uint8_t)(kept >> k & 1);
    return kept;
}

template <class T> DEVICE void gated(const gated_params &p) {
    const int64_t unit = block_index() * SIMT_THREADS + thread_index();
    if (unit >= p.units) return;
    const int64_t row = divides_fast(p.units) ? (int64_t)quotient((uint32_t)unit, p.row_units)
                                              : (int64_t)quotient((uint64_t)unit, p.row_units);
    gated_vector<T>(p, row, { (unit - row * p.row_units.by) * VECTOR, p.n, p.aligned });
}

template <class T> DEVICE void gated_listed(const gated_params &p) {
    const int64_t row = block_index();
    int32_t *const columns = (int32_t *)p.columns.data + row * p.columns.row;
    uint32_t listed = 0;
    for (int64_t at = 0; at < p.n; at += SIMT_THREADS * VECTOR) {
        const lane l = { at + thread_index() * VECTOR, p.n, p.aligned };
        const uint32_t kept = within(l, 0) ? gated_vector<T>(p, row, l) : 0;
        uint32_t count = 0, all;
#pragma unroll
        for (int k = 0; k < VECTOR; k++) count += kept >> k & 1;
        uint32_t place = listed + before_thread(count, 0u, of_all(), &all);
#pragma unroll
        for (int k = 0; k < VECTOR; k++)
            if (p.columns.data && kept >> k & 1) columns[place++] = (int32_t)(l.at + k);
        listed += all;
    }
    for (int64_t at = listed + thread_index(); p.columns.data && at < p.n; at += SIMT_THREADS) columns[at] = -1;
    if (p.counts && thread_index() == 0) p.counts[row] = (int32_t)listed;
}

#define GATED_ENTRIES(T) \
    ENTRY(gated_threshold_##T, SIMT_THREADS, gated_params) { gated<T>(p); } \
    ENTRY(gated_threshold_listed_##T, SIMT_THREADS, gated_params) { gated_listed<T>(p); }
GATED_ENTRIES(f32)
GATED_ENTRIES(bf16)
GATED_ENTRIES(f16)
