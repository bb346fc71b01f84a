/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks that storage.c decodes, taken apart: codes in the order of their elements, scales and mins by themselves.
 * */
#include <string.h>

#include "packing.h"
#include "storage.h"

/* A number of f16, from a file's bytes to this machine's. */
static void put_f16(void *to, int64_t i, const uint8_t *b) {
    const uint16_t bits = (uint16_t)little_endian(b, 2);
    memcpy((uint8_t *)to + 2 * i, &bits, sizeof bits);
}

/* 16 bytes whose low halves are codes 0 to 15, and whose high halves 16 to 31, to bytes of two neighbours each. */
static void interleave(const uint8_t *b, uint8_t *codes) {
    for (int i = 0; i < 8; i++) {
        codes[i] = (uint8_t)((b[2 * i] & 15) | (b[2 * i + 1] & 15) << 4);
        codes[i + 8] = (uint8_t)(b[2 * i] >> 4 | (b[2 * i + 1] >> 4) << 4);
    }
}

static void pack_q4_0(const uint8_t *b, int64_t blocks, uint8_t *codes, void *scales, void *mins) {
    (void)mins;
    for (int64_t i = 0; i < blocks; i++, b += 18) {
        put_f16(scales, i, b);
        interleave(b + 2, codes + 16 * i);
    }
}

static void pack_q4_1(const uint8_t *b, int64_t blocks, uint8_t *codes, void *scales, void *mins) {
    for (int64_t i = 0; i < blocks; i++, b += 20) {
        put_f16(scales, i, b);
        put_f16(mins, i, b + 2);
        interleave(b + 4, codes + 16 * i);
    }
}

static void pack_q8_0(const uint8_t *b, int64_t blocks, uint8_t *codes, void *scales, void *mins) {
    (void)mins;
    for (int64_t i = 0; i < blocks; i++, b += 34) {
        put_f16(scales, i, b);
        memcpy(codes + 32 * i, b + 2, 32);
    }
}

/* The products of scales are exact in f32: 11 bits by 6. */
static void pack_q4_k(const uint8_t *b, int64_t blocks, uint8_t *codes, void *scales, void *mins) {
    float *scale = scales, *min = mins;
    for (; blocks > 0; blocks--, b += 144)
        for (int part = 0; part < 8; part++, codes += 16) {
            const storage_part p = storage_q4_k_part(b, part);
            const uint8_t *from = b + 16 + part / 2 * 32;
            for (int i = 0; i < 16; i++)
                codes[i] = (uint8_t)((from[2 * i] >> part % 2 * 4 & 15) | (from[2 * i + 1] >> part % 2 * 4 & 15) << 4);
            *scale++ = p.scale;
            *min++ = -p.less;
        }
}

/* Codes of 6 bits in bytes, which are read faster. */
static void pack_q6_k(const uint8_t *b, int64_t blocks, uint8_t *codes, void *scales, void *mins) {
    float *scale = scales;
    (void)mins;
    for (; blocks > 0; blocks--, b += 210, codes += 256) {
        for (int i = 0; i < 256; i++) codes[i] = (uint8_t)storage_q6_k_code(b, i);
        for (int part = 0; part < 16; part++) *scale++ = storage_half(b + 208) * (float)(int8_t)b[192 + part];
    }
}

const packing packing_q4_0 = { 32, 4, 8, false, false, false, pack_q4_0 },
              packing_q4_1 = { 32, 4, 0, false, false, true, pack_q4_1 },
              packing_q8_0 = { 32, 8, 0, true, false, false, pack_q8_0 },
              packing_q4_k = { 32, 4, 0, false, true, true, pack_q4_k },
              packing_q6_k = { 16, 8, 0, true, true, false, pack_q6_k };
