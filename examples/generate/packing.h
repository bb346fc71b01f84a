/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of files as codes in groups, which trine_matmul_quantized() multiplies without decoding them. */
#ifndef GENERATE_PACKING_H
#define GENERATE_PACKING_H

#include <stdbool.h>
#include <stdint.h>

/* (code - offset) scale + min is what each code of a group stands for. */
typedef struct packing {
    int32_t group, bits, offset;
    bool is_signed; /* codes of i8, otherwise of u8 */
    bool wide;      /* scales and mins of f32, otherwise of f16 */
    bool mins;      /* is there a min? */
    void (*pack)(const uint8_t *data, int64_t blocks, uint8_t *codes, void *scales, void *mins);
} packing;

extern const packing packing_q4_0, packing_q4_1, packing_q8_0, packing_q4_k, packing_q6_k;

#endif
