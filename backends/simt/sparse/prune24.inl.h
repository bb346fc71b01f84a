/* SPDX-License-Identifier: Apache-2.0 */
/* prune24 on devices.
 *
 * NOTES. Floor: x once, y once. */
#include "pairs24.inl.h"

template <class T> DEVICE void prune24_vector(const pairs24_params &p) {
    const place24 place(p);
    if (!place.there) return;
    const lane l = { place.at, p.n, p.aligned };
    typename T::bits v[VECTOR];
    load_bits(v, row24<typename T::bits>(p.from, place.row), l);
    const int set = kept24_of<T>(v).set | kept24_of<T>(v + 4).set << 4;
    uint8_t mask[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        mask[i] = (uint8_t)(set >> i & 1);
        if (!mask[i]) v[i] = 0;
    }
    if (p.to.data) store_bits(v, row24<typename T::bits>(p.to, place.row), l);
    if (p.mask.data) store_bits(mask, row24<uint8_t>(p.mask, place.row), l);
}

ENTRIES24(prune24)
