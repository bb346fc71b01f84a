/* SPDX-License-Identifier: Apache-2.0 */
/* pack_codes on the CPU: whole eights of bytes that lie side by side at once, else word by word. */
#include "packing.h"
#include "spec/places/pack_codes.h"

static uint32_t pack_word(const packing *p, const char *codes, int64_t stride, int64_t word) {
    const uint32_t mask = (1u << p->bits) - 1;
    uint32_t bits = 0;
    if (p->order == TRINE_ORDER_DESCENDING) {
        for (int j = 0; j < p->each; j++)
            bits = bits << p->bits | ((uint8_t)codes[(word * p->each + j) * stride] & mask);
        return bits;
    }
    for (int64_t place = word * p->width / p->bits; place < p->k; place++) {
        const int64_t begin = place * p->bits - word * p->width;
        if (begin >= p->width) break;
        const int64_t code = p->order == TRINE_ORDER_AWQ ? place / 8 * 8 + packing_awq_code[place % 8] : place;
        const uint32_t value = (uint8_t)codes[code * stride] & mask;
        bits |= begin < 0 ? value >> -begin : value << begin;
    }
    return bits;
}

INLINE void pack_eights(const char *codes, int64_t n, char *to, int bits) {
    code_bytes mask;
    memset(&mask, (1 << bits) - 1, sizeof mask);
    for (; n > 0; n -= CODES_UNIT, codes += CODES_UNIT, to += CODES_UNIT / 8 * bits) {
        const int count = n < CODES_UNIT ? (int)n : CODES_UNIT;
        code_bytes unit = { 0 };
        memcpy(&unit, codes, (size_t)count);
        codes_store((uint8_t *)to, count, bits, unit & mask);
    }
}

static void pack_row(const packing *p, int64_t row) {
    int64_t from, stride;
    const char *codes = packing_row(p, p->codes, row, &from);
    char *packed = packing_row(p, p->packed, row, &stride);
    const int64_t plain = packing_plain(p, from, stride);
    CODES_FOR_BITS(p->bits, pack_eights, codes, plain, packed);
    for (int64_t word = plain * p->bits / p->width; word < p->words; word++)
        packing_store(p, packed, word * stride, pack_word(p, codes, from, word));
}

static void pack_rows(const void *context, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t row = first; row < last; row++) pack_row(context, row);
}

static trine_status launch(const trine_call *call) {
    const trine_pack_codes_args *args = call->args;
    const packing p = packing_of(&call->tensor[PACK_CODES_CODES], &call->tensor[PACK_CODES_PACKED], args->order);
    return packing_run(call, &p, pack_rows);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    packing_edges(edges, PACK_CODES_DIM_K, PACK_CODES_DIM_Q, call->dim[PACK_CODES_DIM_K]);
}

CPU_KERNELS(pack_codes) = { { CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
