/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_codes on the CPU: whole eights of bytes that lie side by side at once, else code by code. */
#include "packing.h"
#include "spec/places/unpack_codes.h"

static int64_t begin_of(const packing *p, int64_t code) {
    if (p->order == TRINE_ORDER_DESCENDING)
        return code / p->each * p->width + (p->each - 1 - code % p->each) * (int64_t)p->bits;
    return (p->order == TRINE_ORDER_AWQ ? code / 8 * 8 + packing_awq_place[code % 8] : code) * p->bits;
}

static uint8_t unpack_code(const packing *p, const char *packed, int64_t stride, int64_t code) {
    const int64_t begin = begin_of(p, code), word = begin / p->width;
    const int shift = (int)(begin % p->width), here = p->width - shift;
    uint32_t value = packing_load(p, packed, word * stride) >> shift;
    if (here < p->bits) value |= packing_load(p, packed, (word + 1) * stride) << here;
    value &= (1u << p->bits) - 1;
    const uint32_t half = p->sign ? 1u << (p->bits - 1) : 0;
    return (uint8_t)((value ^ half) - half);
}

typedef uint8_t bytes __attribute__((vector_size(CODES_UNIT)));

INLINE void unpack_eights(const char *from, int64_t n, char *codes, bool sign, int bits) {
    const bytes half = (bytes){ 0 } + (uint8_t)(sign ? 1 << (bits - 1) : 0);
    for (; n > 0; n -= CODES_UNIT, codes += CODES_UNIT, from += CODES_UNIT / 8 * bits) {
        const int count = n < CODES_UNIT ? (int)n : CODES_UNIT;
        const bytes unit = ((bytes)codes_load((const uint8_t *)from, count, bits) ^ half) - half;
        memcpy(codes, &unit, (size_t)count);
    }
}

static void unpack_row(const packing *p, int64_t row) {
    int64_t from, stride;
    const char *packed = packing_row(p, p->packed, row, &from);
    char *codes = packing_row(p, p->codes, row, &stride);
    const int64_t plain = packing_plain(p, stride, from);
    CODES_FOR_BITS(p->bits, unpack_eights, packed, plain, codes, p->sign);
    for (int64_t code = plain; code < p->k; code++)
        ((uint8_t *)codes)[code * stride] = unpack_code(p, packed, from, code);
}

static void unpack_rows(const void *context, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t row = first; row < last; row++) unpack_row(context, row);
}

static trine_status launch(const trine_call *call) {
    const trine_unpack_codes_args *args = call->args;
    const packing p = packing_of(&call->tensor[UNPACK_CODES_CODES], &call->tensor[UNPACK_CODES_PACKED], args->order);
    return packing_run(call, &p, unpack_rows);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    packing_edges(edges, UNPACK_CODES_DIM_K, UNPACK_CODES_DIM_Q, call->dim[UNPACK_CODES_DIM_K]);
}

CPU_KERNELS(unpack_codes) = { { CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
