/* SPDX-License-Identifier: Apache-2.0 */
/* unpack24 on devices.
 *
 * NOTES. Floor: values and indices once, y once. */
#include "pairs24.inl.h"

template <class T> DEVICE void unpack24_vector(const pairs24_params &p) {
    const place24 place(p);
    if (!place.there) return;
    typename T::bits v[VECTOR], packed[VECTOR / 2];
    load_bits(packed, row24<typename T::bits>(p.values, place.row), { place.at / 2, p.n / 2, p.aligned });
    const int indices = row24<uint8_t>(p.indices, place.row)[place.at / 8];
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        const int places = indices >> i / 4 * 4;
        v[i] = (places >> 2 & 3) == i % 4 ? packed[i / 4 * 2 + 1]
               : (places & 3) == i % 4    ? packed[i / 4 * 2]
                                          : (typename T::bits)0;
    }
    store_bits(v, row24<typename T::bits>(p.to, place.row), { place.at, p.n, p.aligned });
}

ENTRIES24(unpack24)
