/* SPDX-License-Identifier: Apache-2.0 */
/* Bit patterns and the small floating-point formats. */
#ifndef CDNA_NUMBER_H
#define CDNA_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Loops are compiled for wide vectors too where the compiler can choose at run time. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

/* Into each version of a loop over lanes. */
#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
INLINE float bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
INLINE uint64_t double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
INLINE double bits_double(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE float half_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    const uint32_t scaled = float_bits(bits_float(rest << 13) * 0x1p112f);
    return bits_float(sign | scaled | (rest >= 0x7c00 ? 0x7f800000 : 0));
}
/* To nearest, ties to even. */
INLINE uint16_t float_half(float x) {
    const uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) return (uint16_t)(sign | (float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}
/* Toward zero. */
INLINE uint16_t float_half_truncate(float x) {
    const uint16_t nearest = float_half(x);
    const bool beyond = fabsf(half_float(nearest)) > fabsf(x);
    return beyond ? (uint16_t)(nearest - 1) : nearest;
}
/* The float on the far side of every rounding boundary of a shorter format that x is on: with it, rounding twice is
 * rounding once. */
INLINE float round_odd(double x) {
    float nearest = (float)x;
    if (nearest == x || isnan(x) || isinf(nearest) || (float_bits(nearest) & 1)) return nearest;
    return bits_float(float_bits(nearest) + (fabs((double)nearest) < fabs(x) ? 1 : UINT32_MAX));
}

INLINE float bfloat_float(uint16_t bits) { return bits_float((uint32_t)bits << 16); }
INLINE uint16_t float_bfloat(float x) {
    const uint32_t bits = float_bits(x);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A format of 8 bits or less. FNUZ (gfx942) has no -0, and NaN only there; OCP E4M3 has NaN at the largest code;
 * E5M2 is as IEEE. */
typedef struct minifloat {
    int exponent, mantissa, bias; /* bits, bits, value */
    enum { MINIFLOAT_FNUZ, MINIFLOAT_OCP, MINIFLOAT_IEEE, MINIFLOAT_FINITE } kind;
} minifloat;

static const minifloat minifloat_e4m3fnuz = { 4, 3, 8, MINIFLOAT_FNUZ },
                       minifloat_e5m2fnuz = { 5, 2, 16, MINIFLOAT_FNUZ };
static const minifloat minifloat_e4m3 = { 4, 3, 7, MINIFLOAT_OCP }, minifloat_e5m2 = { 5, 2, 15, MINIFLOAT_IEEE };
static const minifloat minifloat_e2m3 = { 2, 3, 1, MINIFLOAT_FINITE }, minifloat_e3m2 = { 3, 2, 3, MINIFLOAT_FINITE },
                       minifloat_e2m1 = { 2, 1, 1, MINIFLOAT_FINITE };

INLINE float minifloat_float(const minifloat *f, uint32_t bits) {
    const int width = 1 + f->exponent + f->mantissa;
    const uint32_t sign = bits >> (width - 1) & 1, exponent = bits >> f->mantissa & ((1u << f->exponent) - 1),
                   mantissa = bits & ((1u << f->mantissa) - 1);
    const uint32_t top = (1u << f->exponent) - 1, full = (1u << f->mantissa) - 1;
    if (f->kind == MINIFLOAT_FNUZ && (bits & ((1u << width) - 1)) == 1u << (width - 1)) return NAN;
    if (f->kind == MINIFLOAT_OCP && exponent == top && mantissa == full) return NAN;
    if (f->kind == MINIFLOAT_IEEE && exponent == top) return mantissa ? NAN : sign ? -INFINITY : INFINITY;
    const float magnitude = exponent
                                ? ldexpf((float)(mantissa | 1u << f->mantissa), (int)exponent - f->bias - f->mantissa)
                                : ldexpf((float)mantissa, 1 - f->bias - f->mantissa);
    return sign ? -magnitude : magnitude;
}

/* To nearest, ties to even; what is too large becomes the largest finite value if `saturate`, else NaN or infinity. */
INLINE uint32_t float_minifloat(const minifloat *f, float x, bool saturate) {
    const int width = 1 + f->exponent + f->mantissa;
    const uint32_t sign = (uint32_t)(signbit(x) != 0) << (width - 1), codes = 1u << (width - 1);
    const uint32_t largest = f->kind == MINIFLOAT_OCP    ? codes - 2
                             : f->kind == MINIFLOAT_IEEE ? codes - (1u << f->mantissa) - 1
                                                         : codes - 1;
    const uint32_t nan = f->kind == MINIFLOAT_FNUZ  ? codes
                         : f->kind == MINIFLOAT_OCP ? sign | (codes - 1)
                                                    : sign | (codes - 1);
    if (isnan(x)) return nan;
    int exponent;
    frexpf(x, &exponent);
    if (exponent < 2 - f->bias) exponent = 2 - f->bias;
    const float unit = ldexpf(1, exponent - 1 - f->mantissa), steps = rintf(fabsf(x) / unit);
    const float rounded = steps * unit;
    if (isinf(x) || rounded > minifloat_float(f, largest)) {
        if (saturate && !isinf(x)) return sign | largest;
        return f->kind == MINIFLOAT_IEEE                 ? sign | (largest + 1)
               : saturate && f->kind == MINIFLOAT_FINITE ? sign | largest
                                                         : nan;
    }
    if (rounded == 0) return f->kind == MINIFLOAT_FNUZ ? 0 : sign;
    frexpf(rounded, &exponent);
    if (exponent < 2 - f->bias) return sign | (uint32_t)ldexpf(rounded, f->bias - 1 + f->mantissa);
    const uint32_t significand = (uint32_t)ldexpf(rounded, 1 + f->mantissa - exponent);
    return sign | ((uint32_t)(exponent - 1 + f->bias) << f->mantissa) | (significand & ((1u << f->mantissa) - 1));
}

#endif
