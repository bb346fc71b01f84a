/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the tables of vector instructions name. */
#ifndef CDNA_VECTOR_MATH_H
#define CDNA_VECTOR_MATH_H

#include "number.h"

#define least(a, b, c) ((a) < (b) ? ((a) < (c) ? (a) : (c)) : ((b) < (c) ? (b) : (c)))
#define most(a, b, c) ((a) > (b) ? ((a) > (c) ? (a) : (c)) : ((b) > (c) ? (b) : (c)))
#define middle(a, b, c) \
    ((a) < (b) ? ((b) < (c) ? (b) : (a) < (c) ? (c) : (a)) : ((a) < (c) ? (a) : (b) < (c) ? (c) : (b)))
#define unordered(a, b) __builtin_isunordered(a, b)

INLINE uint32_t reverse(uint32_t x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}
INLINE int64_t low24(uint32_t x) { return (int32_t)(x << 8) >> 8; }
INLINE uint32_t field(uint32_t x, uint32_t first, uint32_t width) { return x >> first & ((1u << width) - 1); }
INLINE int32_t signed_field(uint32_t x, uint32_t first, uint32_t width) {
    if (width == 0) return 0;
    return (int32_t)(field(x, first, width) << (32 - width)) >> (32 - width);
}

INLINE uint32_t permute_bytes(uint64_t data, uint32_t selector) {
    uint32_t result = 0;
    for (int byte = 0; byte < 4; byte++) {
        const uint32_t select = selector >> 8 * byte & 255;
        uint32_t value;
        if (select < 8)
            value = data >> 8 * select & 255;
        else if (select < 12)
            value = data >> (16 * (select - 8) + 15) & 1 ? 255 : 0;
        else
            value = select == 12 ? 0 : 255;
        result |= value << 8 * byte;
    }
    return result;
}

/* Bit i of the result is bit 4 a_i + 2 b_i + c_i of the table. */
INLINE uint32_t truth_table(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (int row = 0; row < 8; row++)
        if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    return result;
}

#define DOT(name, type, element, bits) \
    INLINE type name(uint32_t a, uint32_t b) { \
        type sum = 0; \
        for (int i = 0; i < 32 / bits; i++) \
            sum += (type)element(a, i * bits, bits) * (type)element(b, i * bits, bits); \
        return sum; \
    }
DOT(dot_i8, int32_t, signed_field, 8)
DOT(dot_u8, uint32_t, field, 8)
DOT(dot_i4, int32_t, signed_field, 4)
DOT(dot_u4, uint32_t, field, 4)
#undef DOT

INLINE float dot_f16(uint32_t a, uint32_t b, float c) {
    return half_float((uint16_t)a) * half_float((uint16_t)b) +
           half_float((uint16_t)(a >> 16)) * half_float((uint16_t)(b >> 16)) + c;
}
INLINE float dot_bf16(uint32_t a, uint32_t b, float c) {
    return bfloat_float((uint16_t)a) * bfloat_float((uint16_t)b) +
           bfloat_float((uint16_t)(a >> 16)) * bfloat_float((uint16_t)(b >> 16)) + c;
}

INLINE float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
/* The gfx90a instructions that round twice, and know no subnormals. */
INLINE float multiply_add(float a, float b, float c) { return flush(flush(flush(a) * flush(b)) + flush(c)); }
INLINE bool signals(float x) { return isnan(x) & ((float_bits(x) & 0x400000) == 0); }
/* In IEEE mode: the number if the other is a quiet NaN, NaN if one signals; -0 below +0. */
INLINE float minimum_number(float a, float b) {
    return signals(a) | signals(b) ? NAN : isnan(b) | (a < b) | ((a == b) & (signbit(a) != 0)) ? a : b;
}
INLINE float maximum_number(float a, float b) {
    return signals(a) | signals(b) ? NAN : isnan(b) | (a > b) | ((a == b) & (signbit(a) == 0)) ? a : b;
}
INLINE float minimum(float a, float b) { return isnan(a) || isnan(b) ? NAN : minimum_number(a, b); }
INLINE float maximum(float a, float b) { return isnan(a) || isnan(b) ? NAN : maximum_number(a, b); }
INLINE float median(float a, float b, float c) {
    if (isnan(a) || isnan(b) || isnan(c)) return minimum_number(minimum_number(a, b), c);
    return middle(a, b, c);
}
INLINE float fma_half(float a, float b, float c) { return round_odd((double)a * b + c); }

INLINE int32_t to_i32(double x) {
    return isnan(x) ? 0 : x <= INT32_MIN ? INT32_MIN : x >= INT32_MAX ? INT32_MAX : (int32_t)x;
}
INLINE uint32_t to_u32(double x) { return !(x > 0) ? 0 : x >= UINT32_MAX ? UINT32_MAX : (uint32_t)x; }
INLINE uint32_t to_u16(float x) { return !(x > 0) ? 0 : x >= 65535 ? 65535 : (uint32_t)x; }
INLINE int32_t clamp_i16(int32_t x) { return x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x; }
INLINE int32_t to_i16(float x) { return clamp_i16(to_i32((double)x)); }

INLINE float fraction(float x) { return fminf(x - floorf(x), 0x1.fffffep-1f); }
INLINE double fraction_f64(double x) { return fmin(x - floor(x), 0x1.fffffffffffffp-1); }
INLINE float significand_of(float x) {
    int exponent;
    return isfinite(x) ? frexpf(x, &exponent) : x;
}
INLINE double significand_of_f64(double x) {
    int exponent;
    return isfinite(x) ? frexp(x, &exponent) : x;
}
INLINE int32_t exponent_of_f64(double x) {
    int exponent = 0;
    if (isfinite(x)) frexp(x, &exponent);
    return exponent;
}
INLINE int32_t exponent_of(float x) { return exponent_of_f64((double)x); }

/* 2^shift (a b + c), rounded once (for doubles: once to a normal number, again if it then gets subnormal). */
INLINE float fma_shifted(float a, float b, float c, int shift) {
    if (shift == 0) return fmaf(a, b, c);
    /* A double of which an inexact sum's last bit is 1 is no middle of two floats, whatever rounding made it. */
    const double product = (double)a * b, sum = product + c, of_c = sum - product,
                 rest = (product - (sum - of_c)) + (c - of_c);
    uint64_t bits = double_bits(sum);
    if (isfinite(sum) && rest != 0 && bits % 2 == 0) bits += (rest > 0) == (sum > 0) ? 1 : UINT64_MAX;
    return (float)ldexp(bits_double(bits), shift);
}
INLINE double fma_shifted_f64(double a, double b, double c, int shift) { return ldexp(fma(a, b, c), shift); }

/* Division as the ISA's three instructions share it (CDNA3 ISA, V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP). `shift`: by how
 * much operands are scaled; `far`: the distance of exponents from which the quotient may overflow; `tiny`: the biased
 * exponent up to which a numerator is. Where 1/d and n/d are subnormal the document scales d up, which would overflow;
 * it must mean down. A NaN quotient of finite operands comes from an overflow on the way. */
#define DIVISION(suffix, type, BITS, bits_of, mantissa, maximum_exponent, copy, load, fused, shift, far, tiny, lost) \
    INLINE int biased##suffix(type x) { return (int)(bits_of(x) >> (mantissa) & (maximum_exponent)); } \
    INLINE bool subnormal##suffix(type x) { return x != 0 && biased##suffix(x) == 0; } \
    INLINE bool divide_scales##suffix(type denominator, type numerator) { \
        if (numerator == 0 || denominator == 0) return false; \
        if (biased##suffix(numerator) - biased##suffix(denominator) >= (far)) return true; \
        return !subnormal##suffix(denominator) && subnormal##suffix(numerator / denominator); \
    } \
    INLINE type divide_scale##suffix(type x, type denominator, type numerator) { \
        if (numerator == 0 || denominator == 0) return NAN; \
        const bool of_denominator = x == denominator, of_numerator = x == numerator; \
        if (biased##suffix(numerator) - biased##suffix(denominator) >= (far)) \
            return of_denominator ? load(x, shift) : x; \
        if (subnormal##suffix(denominator)) return load(x, shift); \
        const bool low = subnormal##suffix(1 / denominator), \
                   quotient_low = subnormal##suffix(numerator / denominator); \
        if (low && quotient_low) return of_denominator ? load(x, -(shift)) : x; \
        if (low) return load(x, -(shift)); \
        if (quotient_low) return of_numerator ? load(x, shift) : x; \
        return biased##suffix(numerator) <= (tiny) ? load(x, shift) : x; \
    } \
    INLINE type divide_fma##suffix(type a, type b, type c, uint32_t scaled) { \
        return fused(a, b, c, !scaled ? 0 : biased##suffix(c) > (maximum_exponent) / 2 ? shift : -(shift)); \
    } \
    INLINE type divide_fixup##suffix(type quotient, type denominator, type numerator) { \
        const type sign = (signbit(denominator) != 0) != (signbit(numerator) != 0) ? -1 : 1; \
        if (isnan(numerator)) return numerator; \
        if (isnan(denominator)) return denominator; \
        if ((denominator == 0 && numerator == 0) || (isinf(denominator) && isinf(numerator))) return NAN; \
        if (denominator == 0 || isinf(numerator)) return sign * (type)INFINITY; \
        if (isinf(denominator) || numerator == 0) return copy((type)0, sign); \
        if (biased##suffix(numerator) - biased##suffix(denominator) < (lost)) return copy((type)0, sign); \
        return copy(isnan(quotient) ? (type)INFINITY : quotient, sign); \
    }
DIVISION(, float, uint32_t, float_bits, 23, 255, copysignf, ldexpf, fma_shifted, 64, 96, 23, -150)
DIVISION(_f64, double, uint64_t, double_bits, 52, 2047, copysign, ldexp, fma_shifted_f64, 128, 768, 53, -1075)
#undef DIVISION

/* Does x belong to one of the classes of V_CMP_CLASS (sNaN 1, qNaN 2, -inf 4, -normal 8, -subnormal 16, -0 32, then
 * their positive mirrors)? */
INLINE bool of_class(double x, bool small, bool quiet, uint32_t classes) {
    if (isnan(x)) return classes >> quiet & 1;
    const int size = isinf(x) ? 0 : x == 0 ? 3 : small ? 2 : 1;
    return classes >> (signbit(x) ? 2 + size : 9 - size) & 1;
}

#endif
