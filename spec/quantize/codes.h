/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of few bits in bytes: what the references of this family share. */
#ifndef TRINE_SPEC_CODES_H
#define TRINE_SPEC_CODES_H

#include <trine/quantize.h>

#include "spec/spec.h"

#define TINY 0x1p-150 /* the error of a rounding to a subnormal f32 */

/* What the shapes of codes must agree in. k = 0 has groups without bytes. */
#define CODES_REQUIRE \
    "k % max(groups, 1) == 0", "8*bytes*groups % max(k, 1) == 0", "bytes*groups <= k", "8*bytes*groups >= k", \
        "with format=e2m1: C is u8", "with format=e2m1: 2*bytes*groups == k"

/* Those that agree are some of these: codes of 1, 2, 3, 4, 6 and 8 bits. */
#define CODES_SIZES \
    "r: 1 0 2 5 33", "k: 0 2 8 12 16 24 32 48 64 72 96 120 128 136 144 192 248 256 264 384 512 1024 4096", \
        "groups: 1 0 2 3 4 8 16 32", "bytes: 1 0 2 3 4 6 8 9 12 16 17 24 32 48 64 128 256 512 1024"

#define CODES_FORMATS PARAM(format, ENUM, .values = "integer e2m1", .doc = "TRINE_CODES_INTEGER or TRINE_CODES_E2M1")

/* The element types of codes that are numbers by themselves, a byte each. */
#define CODES_FLOAT8_REQUIRE "with C=e4m3: bytes*groups == k", "with C=e5m2: bytes*groups == k"

typedef struct codes {
    int bits;
    bool sign, e2m1;
    trine_dtype float8; /* TRINE_NONE: they are not */
    int low, high;      /* the values there are */
} codes;

static inline codes codes_of(const trine_ref *ref, int32_t format) {
    const int64_t k = trine_ref_dim(ref, "k"), bytes = trine_ref_dim(ref, "bytes") * trine_ref_dim(ref, "groups");
    codes c = { .bits = k > 0 ? (int)(8 * bytes / k) : 8,
                .sign = trine_ref_type(ref, "C") == TRINE_I8,
                .e2m1 = format == TRINE_CODES_E2M1 };
    const trine_dtype C = trine_ref_type(ref, "C");
    if (C == TRINE_E4M3 || C == TRINE_E5M2) {
        c.float8 = C;
        c.high = (int)trine_largest(C);
        c.low = -c.high;
        return c;
    }
    c.low = c.e2m1 ? -6 : c.sign ? -(1 << (c.bits - 1)) : 0;
    c.high = c.e2m1 ? 6 : c.sign ? (1 << (c.bits - 1)) - 1 : (1 << c.bits) - 1;
    return c;
}

/* A power of two: the one of `size` less that of `most`, or upward the smallest that is not less than the scale. */
static inline float codes_power(float size, float most, float scale, bool upward) {
    if (isnan(scale)) return NAN;
    int exponent = -127;
    if (upward && scale > 0) exponent = ilogbf(scale) + (scale > ldexpf(1, ilogbf(scale)));
    if (!upward && size > 0) exponent = ilogbf(size) - ilogbf(most);
    return ldexpf(1, exponent < -127 ? -127 : exponent > 127 ? 127 : exponent);
}

/* Within what a type has of them, which are all of e8m0's but in f16. */
static inline float codes_power_within(float power, trine_dtype S) {
    return S != TRINE_F16 ? power : power < 0x1p-24f ? 0x1p-24f : power > 0x1p15f ? 0x1p15f : power;
}

/* The scale as its type has it. */
static inline float codes_scale(trine_dtype S, bool powers, float size, float most, float scale, bool upward) {
    return powers || S == TRINE_E8M0 ? codes_power_within(codes_power(size, most, scale, upward), S)
                                     : (float)trine_round(scale, S, true);
}

static inline double codes_e2m1(int code) {
    static const double size[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    return code & 8 ? -size[code & 7] : size[code & 7];
}

/* The value of code j of a group whose bytes, as numbers of their type, begin at `from`. */
static inline double codes_get(const codes *c, const double *from, int64_t j) {
    if (c->float8) return from[j];
    int code = 0;
    for (int b = 0; b < c->bits; b++) {
        const int64_t at = j * c->bits + b;
        code |= ((int)from[at / 8] >> at % 8 & 1) << b;
    }
    if (c->e2m1) return codes_e2m1(code);
    return c->sign && code >> (c->bits - 1) ? code - (1 << c->bits) : code;
}

/* Sets the bits of code j to those of `code`, all bytes having been 0. */
static inline void codes_put(const codes *c, double *to, int64_t j, int code) {
    for (int b = 0; b < c->bits; b++) {
        const int64_t at = j * c->bits + b;
        const int byte = ((int)to[at / 8] & 255) | (code >> b & 1) << at % 8;
        to[at / 8] = c->sign && byte > 127 ? byte - 256 : byte;
    }
}

#endif
