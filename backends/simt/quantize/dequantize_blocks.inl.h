/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize_blocks on devices: a thread has a unit of codes, which is of one block.
 *
 * NOTES. Floor: codes once, y once. */
#include "blocks.h"
#include "rows.inl.h"

template <class T> DEVICE void dequantize_unit(const blocks_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index(), row = number / p.units,
                  in_row = number - row * p.units, side = in_row / (p.units / p.columns), left = side * p.wide,
                  at = left + (in_row - side * (p.units / p.columns)) * CODES_UNIT,
                  end = left + p.wide < p.out.k ? left + p.wide : p.out.k;
    if (row >= p.out.r || at >= end) return;
    const lane l = { at, end, p.out.vectors };
    const float scale = code_load(p.out.scales_type, p.out.scales.data, row / p.high * p.out.scales.row + side);
    uint8_t code[CODES_UNIT];
    float y[CODES_UNIT];
    load_bits(code, (const uint8_t *)p.out.codes.data + row * p.out.codes.row, l);
#pragma unroll
    for (int j = 0; j < CODES_UNIT; j++) {
        const float x = p.out.codes_type == ROW_E4M3   ? e4m3::get(code[j])
                        : p.out.codes_type == ROW_E5M2 ? e5m2::get(code[j])
                                                       : (float)(int8_t)code[j];
        y[j] = product(x, scale);
    }
    store<T>(y, (typename T::bits *)p.x.data + row * p.x.row, l);
}

#define DEQUANTIZE_BLOCKS(T) \
    ENTRY(dequantize_blocks_##T, SIMT_THREADS, blocks_params) { dequantize_unit<T>(p); }
DEQUANTIZE_BLOCKS(f32)
DEQUANTIZE_BLOCKS(bf16)
DEQUANTIZE_BLOCKS(f16)
