/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of doubles, as functions in float64 ask for them that are written once for CPUs and devices
 * (spec/special/bessel.h, spec/chain/functions.h). */
#ifndef TRINE_CPU_DOUBLES_H
#define TRINE_CPU_DOUBLES_H

#include "vec.h"

#define FUNCTION INLINE
#define DOUBLES (VB / 8)

typedef double number __attribute__((vector_size(VB)));
typedef int64_t mask __attribute__((vector_size(VB)));
typedef uint64_t words __attribute__((vector_size(VB)));
typedef number number_any __attribute__((aligned(1), may_alias));

INLINE number constant(double x) { return x - (number){ 0 }; }
INLINE number pick(mask m, number a, number b) { return (number)(((mask)a & m) | ((mask)b & ~m)); }

INLINE number fused(number a, number b, number c) {
#if defined(__AVX512F__)
    return (number)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
    return (number)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}
INLINE number root(number a) {
#if defined(__AVX512F__)
    return (number)_mm512_sqrt_pd((__m512d)a);
#elif defined(__AVX2__)
    return (number)_mm256_sqrt_pd((__m256d)a);
#else
    for (int i = 0; i < DOUBLES; i++) a[i] = sqrt(a[i]);
    return a;
#endif
}

#define SIGN_BIT 0x8000000000000000u
#define SQRT_HALF 0x3fe6a09e667f3bcdu
#define ABOVE_SQRT_HALF (0x3ff0000000000000u - SQRT_HALF)
INLINE number exponent_of(number x) {
    return (number)((((words)x + ABOVE_SQRT_HALF) >> 52) | 0x4330000000000000u) - (0x1p52 + 1023);
}
INLINE number with_exponent(number x) {
    return (number)((((words)x + ABOVE_SQRT_HALF) & 0xfffffffffffffu) + SQRT_HALF);
}
INLINE number two_to_power(number x, number shifted) { return (number)((words)x + ((words)shifted << 52)); }
INLINE number power_below(number x) { return (number)((words)x & 0x7ff0000000000000u); }
INLINE number with_sign(number x, number of) { return (number)(((words)x & ~SIGN_BIT) | ((words)of & SIGN_BIT)); }

/* Stores an array, past the caches if asked for and if the address allows. */
static inline void store_doubles(double *to, const double *from, int count, bool stream) {
    int i = 0;
#if defined(__x86_64__)
    for (stream &= (uintptr_t)to % VB == 0; stream && i + DOUBLES <= count; i += DOUBLES) {
#if defined(__AVX512F__)
        _mm512_stream_pd(to + i, _mm512_loadu_pd(from + i));
#elif defined(__AVX2__)
        _mm256_stream_pd(to + i, _mm256_loadu_pd(from + i));
#else
        _mm_stream_pd(to + i, _mm_loadu_pd(from + i));
#endif
    }
#else
    (void)stream;
#endif
    memcpy(to + i, from + i, (size_t)(count - i) * sizeof *to);
}

#endif
