/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_codes on devices: a thread has a code.
 *
 * NOTES. Floor: words once, codes once. Threads that are neighbours have codes that are, in memory, and most of them
 * read the same word. */
#include "packing.inl.h"

DEVICE uint32_t packed_word(const packing_params &p, int64_t at) {
    return p.width == 8 ? ((const uint8_t *)p.packed.data)[at] : ((const uint32_t *)p.packed.data)[at];
}

DEVICE int64_t code_begin(const packing_params &p, int64_t code) {
    if (p.order == PACKING_DESCENDING) return code / p.each * p.width + (p.each - 1 - code % p.each) * (int64_t)p.bits;
    return (p.order == PACKING_AWQ ? packing_awq_place(code) : code) * p.bits;
}

ENTRY(unpack_codes, SIMT_THREADS, packing_params) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.count) return;
    const packing_place place(p, number);
    const int64_t begin = code_begin(p, place.at), word = begin / p.width,
                  at = place.begin(p.packed) + word * p.packed.step;
    const int shift = (int)(begin - word * p.width), here = p.width - shift;
    uint32_t value = packed_word(p, at) >> shift;
    if (here < p.bits) value |= packed_word(p, at + p.packed.step) << here;
    value &= (1u << p.bits) - 1;
    const uint32_t half = p.sign ? 1u << (p.bits - 1) : 0;
    ((uint8_t *)p.codes.data)[place.begin(p.codes) + place.at * p.codes.step] = (uint8_t)((value ^ half) - half);
}
