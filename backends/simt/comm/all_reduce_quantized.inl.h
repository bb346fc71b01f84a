/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_quantized on devices: all ranks get all codes, and add up what they stand for. quantize makes them. */
#include "all_reduce_quantized.h"
#include "backends/simt/core/float8.h"
#include "exchange.inl.h"

/* No product is fused to a sum. */
DEVICE float decoded(const decoded_params &p, int rank, int64_t i, int64_t g) {
    const uint8_t code = p.codes[rank * p.n + i];
    const float number = p.float8 ? e4m3::get(code) : (float)(int8_t)code;
    return product(number, p.scales[rank * p.blocks + g]);
}

template <class T> DEVICE void add_decoded(const decoded_params &p) {
    const int64_t i = block_index() * SIMT_THREADS + thread_index();
    if (i >= p.n) return;
    const int64_t g = (int64_t)quotient((uint64_t)i, p.block);
    float sum = decoded(p, 0, i, g);
    for (int r = 1; r < p.ranks; r++) sum += decoded(p, r, i, g);
    store_one<T>(p.y, i, sum);
}

EXCHANGE_ENTRY(all_reduce_quantized_1, copy_rows<uint8_t>)
EXCHANGE_ENTRY(all_reduce_quantized_4, copy_rows<uint32_t>)
ENTRY(all_reduce_quantized_decoded_f32, SIMT_THREADS, decoded_params) { add_decoded<f32>(p); }
ENTRY(all_reduce_quantized_decoded_bf16, SIMT_THREADS, decoded_params) { add_decoded<bf16>(p); }
ENTRY(all_reduce_quantized_decoded_f16, SIMT_THREADS, decoded_params) { add_decoded<f16>(p); }
