/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of bf16 that are rounded by chance, on devices. */
#ifndef TRINE_SIMT_BY_CHANCE_INL_H
#define TRINE_SIMT_BY_CHANCE_INL_H

#include "by_chance.h"
#include "backends/simt/core/philox_words.h"

template <class T> constexpr bool by_chance_type = false;
template <> constexpr bool by_chance_type<bf16> = true;

/* The numbers of elements from number `index` on as numbers of bf16: up where the upper half of an element's word is
 * less than what bf16 has not. */
template <int N> DEVICE void by_chance_round(float (&x)[N], const by_chance &p, uint64_t index) {
    uint32_t word[N] = {};
    philox_words(word, p.philox ? dropout_told(p.words, p.philox) : p.words, index);
#pragma unroll
    for (int k = 0; k < N; k++) {
        const uint32_t bits = bits_of_float(x[k]) + (0xffffu - (word[k] >> 16));
        x[k] = x[k] == x[k] ? float_of_bits(bits & 0xffff0000u) : x[k];
    }
}
template <class T, int N> DEVICE void by_chance_param(float (&x)[N], const by_chance &p, uint64_t index) {
    if constexpr (by_chance_type<T>)
        if (p.on) by_chance_round(x, p, index);
}

#endif
