/* SPDX-License-Identifier: Apache-2.0 */
/* pack24 on devices.
 *
 * NOTES. Floor: x once, values and indices once. */
#include "pairs24.inl.h"

template <class T> DEVICE void pack24_vector(const pairs24_params &p) {
    const place24 place(p);
    if (!place.there) return;
    typename T::bits v[VECTOR], packed[VECTOR / 2];
    load_bits(v, row24<typename T::bits>(p.from, place.row), { place.at, p.n, p.aligned });
    int indices = 0;
#pragma unroll
    for (int g = 0; g < 2; g++) {
        const kept24 kept = kept24_of<T>(v + 4 * g);
        const int first = first24(kept.set), second = second24(kept.set);
        const bool wrong = p.checked && kept.filled > 2;
        packed[2 * g] = packed[2 * g + 1] = (typename T::bits)T::NAN_OF;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i == first && !wrong) packed[2 * g] = v[4 * g + i];
            if (i == second && !wrong) packed[2 * g + 1] = v[4 * g + i];
        }
        indices |= (first | second << 2) << 4 * g;
    }
    store_bits(packed, row24<typename T::bits>(p.values, place.row), { place.at / 2, p.n / 2, p.aligned });
    row24<uint8_t>(p.indices, place.row)[place.at / 8] = (uint8_t)indices;
}

ENTRIES24(pack24)
