/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize on devices: a thread has a unit of a group's codes.
 *
 * NOTES. Floor: codes once, y once. A group's scale is the same access for all its threads. */
#include "dequantize.h"
#include "codes.inl.h"

template <class T> DEVICE void dequantize_unit(const dequantize_params &d) {
    const simt_codes &p = d.codes;
    const int64_t unit = block_index() * SIMT_THREADS + thread_index();
    if (unit >= d.units) return;
    const int64_t item =
        divides_fast(d.units) ? (int64_t)quotient((uint32_t)unit, d.group_units) : unit / d.group_units.by;
    const code_group group(p, item);
    const int64_t at = (unit - item * d.group_units.by) * CODES_UNIT;
    const uint64_t word = codes_load(p, group.bytes(p), at, codes_count(p.n, at));
    const float scale = group.load(p.scales, p.type), zero = p.zeros.data ? group.load(p.zeros, p.others) : 0.0f,
                min = p.mins.data ? group.load(p.mins, p.others) : -0.0f;
    const uint32_t mask = (1u << p.bits) - 1, half = p.sign ? 1u << (p.bits - 1) : 0;
    float y[CODES_UNIT];
#pragma unroll
    for (int j = 0; j < CODES_UNIT; j++) {
        const uint32_t code = (uint32_t)(word >> j * p.bits) & mask;
        const float x = p.e2m1                   ? code_e2m1(code)
                        : p.float8 == CODES_E4M3 ? e4m3::get((uint8_t)code)
                        : p.float8 == CODES_E5M2 ? e5m2::get((uint8_t)code)
                                                 : (float)(int32_t)((code ^ half) - half);
        y[j] = fused(x - p.offset - zero, scale, min);
    }
    store<T>(y, group.template numbers<T>(p), lane{ at, p.n, p.vectors });
}

#define DEQUANTIZE(T) \
    ENTRY(dequantize_##T, SIMT_THREADS, dequantize_params) { dequantize_unit<T>(p); }
DEQUANTIZE(f32)
DEQUANTIZE(bf16)
DEQUANTIZE(f16)
