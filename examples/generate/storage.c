/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding: a function for each type, and the table of types.
 *
 * Formats: the GGUF specification and the layouts of ggml-common.h, both in github.com/ggml-org/ggml. A block of the
 * types Q4_0, Q4_1 and Q8_0 is 32 elements with a scale, and with an offset in Q4_1. Those that end in K are
 * super-blocks of 256, whose parts of 16 or 32 elements have small integer scales to a common one. */
#include <string.h>

#include "storage.h"

static float f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every f16 is an f32: the fraction of a subnormal one becomes a whole number times 2^-24. */
float storage_half(const uint8_t *at) {
    const uint32_t bits = (uint32_t)little_endian(at, 2), sign = bits >> 15 << 31, exponent = bits >> 10 & 31,
                   fraction = bits & 1023;
    if (exponent == 0) return sign ? -(float)fraction * 0x1p-24f : (float)fraction * 0x1p-24f;
    return f32_of(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

static void decode_f32(const uint8_t *b, int64_t blocks, float *out) {
    for (int64_t i = 0; i < blocks; i++) out[i] = f32_of((uint32_t)little_endian(b + 4 * i, 4));
}

static void decode_f16(const uint8_t *b, int64_t blocks, float *out) {
    for (int64_t i = 0; i < blocks; i++) out[i] = storage_half(b + 2 * i);
}

static void decode_bf16(const uint8_t *b, int64_t blocks, float *out) {
    for (int64_t i = 0; i < blocks; i++) out[i] = f32_of((uint32_t)little_endian(b + 2 * i, 2) << 16);
}

/* The nibbles of 16 bytes: the low ones are the first half of the block, the high ones the second. */
static void decode_q4_0(const uint8_t *b, int64_t blocks, float *out) {
    for (; blocks > 0; blocks--, b += 18, out += 32) {
        const float scale = storage_half(b);
        for (int i = 0; i < 16; i++) {
            out[i] = scale * (float)((b[2 + i] & 15) - 8);
            out[i + 16] = scale * (float)((b[2 + i] >> 4) - 8);
        }
    }
}

static void decode_q4_1(const uint8_t *b, int64_t blocks, float *out) {
    for (; blocks > 0; blocks--, b += 20, out += 32) {
        const float scale = storage_half(b), least = storage_half(b + 2);
        for (int i = 0; i < 16; i++) {
            out[i] = scale * (float)(b[4 + i] & 15) + least;
            out[i + 16] = scale * (float)(b[4 + i] >> 4) + least;
        }
    }
}

static void decode_q8_0(const uint8_t *b, int64_t blocks, float *out) {
    for (; blocks > 0; blocks--, b += 34, out += 32) {
        const float scale = storage_half(b);
        for (int i = 0; i < 32; i++) out[i] = scale * (float)(int8_t)b[2 + i];
    }
}

/* Eight parts of 32 elements. Their scales and offsets have 6 bits, 12 bytes for all: those of the first four parts
 * are the lower bits of a byte each; of the others the lower 4 bits share a byte, the upper 2 are the top of the
 * former. */
storage_part storage_q4_k_part(const uint8_t *block, int part) {
    const uint8_t *s = block + 4;
    const int i = part & 3;
    const int factor = part < 4 ? s[i] & 63 : (s[i + 8] & 15) | s[i] >> 6 << 4,
              shift = part < 4 ? s[i + 4] & 63 : s[i + 8] >> 4 | s[i + 4] >> 6 << 4;
    return (storage_part){ storage_half(block) * (float)factor, storage_half(block + 2) * (float)shift };
}

static void decode_q4_k(const uint8_t *b, int64_t blocks, float *out) {
    for (; blocks > 0; blocks--, b += 144, out += 256)
        for (int part = 0; part < 8; part++) {
            const storage_part p = storage_q4_k_part(b, part);
            for (int k = 0; k < 32; k++)
                out[32 * part + k] = p.scale * (float)(b[16 + part / 2 * 32 + k] >> (part & 1) * 4 & 15) - p.less;
        }
}

/* Two halves of 128 elements, of 4 rows of 32: the lower 4 bits of rows 0 and 2, and of 1 and 3, share bytes, and so
 * do the upper 2 of all four. Each 16 elements have a scale. */
int storage_q6_k_code(const uint8_t *block, int i) {
    const int part = i / 128, row = i / 32 % 4, k = i % 32;
    const int low = block[64 * part + row % 2 * 32 + k] >> row / 2 * 4 & 15,
              high = block[128 + 32 * part + k] >> 2 * row & 3;
    return (low | high << 4) - 32;
}

static void decode_q6_k(const uint8_t *b, int64_t blocks, float *out) {
    for (; blocks > 0; blocks--, b += 210, out += 256) {
        const float scale = storage_half(b + 208);
        for (int i = 0; i < 256; i++) out[i] = scale * (float)(int8_t)b[192 + i / 16] * (float)storage_q6_k_code(b, i);
    }
}

static const storage types[] = {
    { "F32", 0, 1, 4, decode_f32, NULL },
    { "F16", 1, 1, 2, decode_f16, NULL },
    { "BF16", 30, 1, 2, decode_bf16, NULL },
    { "Q4_0", 2, 32, 18, decode_q4_0, &packing_q4_0 },
    { "Q4_1", 3, 32, 20, decode_q4_1, &packing_q4_1 },
    { "Q8_0", 8, 32, 34, decode_q8_0, &packing_q8_0 },
    { "Q4_K", 12, 256, 144, decode_q4_k, &packing_q4_k },
    { "Q6_K", 14, 256, 210, decode_q6_k, &packing_q6_k },
};
enum { TYPES = sizeof types / sizeof types[0] };

const storage *storage_row(int row) { return row < TYPES ? &types[row] : NULL; }

const storage *storage_numbered(uint32_t gguf) {
    for (int i = 0; i < TYPES; i++)
        if (types[i].gguf == gguf) return &types[i];
    return NULL;
}

const storage *storage_named(slice name) {
    for (int i = 0; i < TYPES; i++)
        if (slice_is(name, types[i].name)) return &types[i];
    return NULL;
}

bool stored_size(const stored *s, int64_t *count_out, uint64_t *bytes_out) {
    int64_t count = 1;
    uint64_t bytes;
    for (int i = 0; i < s->rank; i++)
        if (s->shape[i] < 0 || __builtin_mul_overflow(count, s->shape[i], &count)) return false;
    if (count % s->type->block || (s->rank > 0 && s->shape[s->rank - 1] % s->type->block)) return false;
    if (__builtin_mul_overflow((uint64_t)(count / s->type->block), (uint64_t)s->type->bytes, &bytes)) return false;
    *count_out = count;
    if (bytes_out) *bytes_out = bytes;
    return true;
}

uint16_t storage_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
