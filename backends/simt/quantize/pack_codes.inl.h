/* SPDX-License-Identifier: Apache-2.0 */
/* pack_codes on devices: a thread has a word.
 *
 * NOTES. Floor: codes once, words once. Threads that are neighbours have words that are, in memory. */
#include "packing.inl.h"

DEVICE uint32_t pack_word(const packing_params &p, const uint8_t *row, int64_t word) {
    const uint32_t mask = (1u << p.bits) - 1;
    uint32_t bits = 0;
    if (p.order == PACKING_DESCENDING) {
        for (int j = 0; j < p.each; j++) bits = bits << p.bits | (row[(word * p.each + j) * p.codes.step] & mask);
        return bits;
    }
    const int64_t first = word * p.width / p.bits;
    int begin = (int)(first * p.bits - word * p.width);
    for (int64_t place = first; place < p.k && begin < p.width; place++, begin += p.bits) {
        const int64_t code = p.order == PACKING_AWQ ? packing_awq_code(place) : place;
        const uint32_t value = row[code * p.codes.step] & mask;
        bits |= begin < 0 ? value >> -begin : value << begin;
    }
    return bits;
}

ENTRY(pack_codes, SIMT_THREADS, packing_params) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.count) return;
    const packing_place place(p, number);
    const uint32_t word = pack_word(p, (const uint8_t *)p.codes.data + place.begin(p.codes), place.at);
    const int64_t at = place.begin(p.packed) + place.at * p.packed.step;
    if (p.width == 8)
        ((uint8_t *)p.packed.data)[at] = (uint8_t)word;
    else
        ((uint32_t *)p.packed.data)[at] = word;
}
