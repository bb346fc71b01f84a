/* SPDX-License-Identifier: Apache-2.0 */
/* The four 8-bit floating-point types: read exactly, and written with one rounding to nearest even; and scales. */
#ifndef TRINE_SIMT_FLOAT8_H
#define TRINE_SIMT_FLOAT8_H

#include "simt.h"

/* Sign, exponent, FRACTION bits. Codes above MOST, the largest finite value's, are Inf (e5m2) and NaN;
 * the FNUZ types have only 0x80 for NaN. */
template <int FRACTION, int BIAS, int MOST, bool INF, bool FNUZ> struct float8 {
    using bits = uint8_t;

    /* Sign and body, where those of a float are, are the value times 2^(BIAS - 127), subnormals too. */
    static DEVICE float get(bits code) {
        const uint32_t body = code & 0x7f, top = (uint32_t)code << 24;
        const uint32_t small = (uint32_t)((int32_t)top >> (FRACTION + 1)) & (0x80000000u | 0x7fu << (23 - FRACTION));
        const float x = float_of_bits(small) * float_of_bits((254u - BIAS) << 23);
        if (FNUZ) return code == 0x80 ? not_a_number() : x;
        return body <= MOST ? x : INF && body == 0x7c ? float_of_bits(INF_BITS | (top & 0x80000000u)) : not_a_number();
    }

    /* Beyond the largest finite value, Inf included: that value if `saturate`, else Inf, or NaN where there is none. */
    static DEVICE bits put(float x, bool saturate) {
        constexpr int drop = 23 - FRACTION;
        constexpr uint32_t nan = FNUZ ? 0x80 : 0x7f;
        const uint32_t a = bits_of_float(magnitude(x));
        const uint32_t normal =
            ((a + ((1u << (drop - 1)) - 1) + (a >> drop & 1)) >> drop) - ((127u - BIAS) << FRACTION);
        /* Below the smallest normal, 2^(1-BIAS): added to 2^(24-BIAS-FRACTION), whose ulp is that of the subnormals,
         * the sum rounds by itself. */
        constexpr uint32_t anchor = (uint32_t)(127 + 24 - BIAS - FRACTION) << 23;
        const uint32_t subnormal = bits_of_float(float_of_bits(a) + float_of_bits(anchor)) - anchor;
        uint32_t r = a < (128u - BIAS) << 23 ? subnormal : normal;
        if (a > INF_BITS) return (bits)nan;
        if (r > MOST) {
            if (!saturate && !INF) return (bits)(FNUZ ? nan : nan | (bits_of_float(x) >> 24 & 0x80));
            r = saturate ? MOST : 0x7c;
        }
        return (bits)(r | (FNUZ && r == 0 ? 0 : bits_of_float(x) >> 24 & 0x80));
    }

    /* Two of them, the first in the low byte. */
    static DEVICE void get_pair(float &first, float &second, uint16_t codes) {
        if constexpr (units::THERE && !FNUZ) {
            const uint32_t pair = units::f16_pair(codes);
            first = float_from_f16((uint16_t)pair);
            second = float_from_f16((uint16_t)(pair >> 16));
        } else {
            first = get((bits)codes);
            second = get((bits)(codes >> 8));
        }
    }
    static DEVICE uint16_t put_pair(float first, float second, bool saturate) {
        if constexpr (units::THERE && !FNUZ) {
            const uint16_t codes = units::pair(first, second);
            constexpr uint16_t none = INF ? 0x7c : 0x7f;
            if (saturate || ((codes & 0x7f) != MOST && (codes >> 8 & 0x7f) != MOST)) return codes;
            return (uint16_t)((codes & 0x8080) | (beyond(first) ? none : codes & 0x7f) |
                              (beyond(second) ? none << 8 : codes & 0x7f00));
        } else {
            return (uint16_t)(put(first, saturate) | put(second, saturate) << 8);
        }
    }

  private:
    using units = float8_units<FRACTION>;

    /* Does x round to more than the largest finite value, if it is a number? Half a step above that, to the code that
     * is even. */
    static DEVICE bool beyond(float x) {
        constexpr uint32_t half = ((uint32_t)MOST << (23 - FRACTION)) + ((127u - BIAS) << 23) + (1u << (22 - FRACTION));
        const uint32_t a = bits_of_float(magnitude(x));
        return a >= half + (MOST % 2 == 0) && a <= INF_BITS;
    }
};

using e4m3 = float8<3, 7, 0x7e, false, false>;
using e4m3fnuz = float8<3, 8, 0x7f, false, true>;
using e5m2 = float8<2, 15, 0x7b, true, false>;
using e5m2fnuz = float8<2, 16, 0x7f, false, true>;

/* Scales: the exponents of floats, but for the smallest, which is subnormal there. */
struct e8m0 {
    using bits = uint8_t;

    static DEVICE float get(bits code) {
        return float_of_bits(code == 0 ? 0x00400000u : code == 0xff ? 0x7fc00000u : (uint32_t)code << 23);
    }

    /* To the nearest power of two, up from the middle; NaN of what is negative or beyond the largest. */
    static DEVICE bits put(float x) {
        if (!(x >= 0)) return 0xff;
        const uint32_t a = bits_of_float(x) & 0x7fffffffu; /* of -0 */
        if (a < 0x00800000u) return a >= 0x00600000u;
        return (bits)(a < INF_BITS ? (a + 0x00400000u) >> 23 : 0xff);
    }
};

#endif
