/* SPDX-License-Identifier: Apache-2.0 */
/* The first lanes of a vector, loaded and stored under a mask; lanes are of 32 or 64 bits. */
#ifndef TRINE_VEC_PART_H
#define TRINE_VEC_PART_H

#include "vec.h"

#if VB == 64
/* Whether a mask costs nothing. */
enum { VEC_PARTS = 1 };
typedef __mmask16 vec_part;
INLINE vec_part part_of(int64_t bytes) { return (vec_part)((1u << (bytes / 4)) - 1); }
INLINE vi part_load(const void *from, vec_part part) { return (vi)_mm512_maskz_loadu_epi32(part, from); }
INLINE void part_store(void *to, vi x, vec_part part) { _mm512_mask_storeu_epi32(to, part, (__m512i)x); }
#elif defined(__AVX2__)
enum { VEC_PARTS = 0 };
typedef __m256i vec_part;
INLINE vec_part part_of(int64_t bytes) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(bytes / 4)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vi part_load(const void *from, vec_part part) { return (vi)_mm256_maskload_epi32((const int *)from, part); }
INLINE void part_store(void *to, vi x, vec_part part) { _mm256_maskstore_epi32((int *)to, part, (__m256i)x); }
#else
enum { VEC_PARTS = 0 };
typedef size_t vec_part;
INLINE vec_part part_of(int64_t bytes) { return (size_t)bytes; }
INLINE vi part_load(const void *from, vec_part part) {
    vi x = { 0 };
    memcpy(&x, from, part);
    return x;
}
INLINE void part_store(void *to, vi x, vec_part part) { memcpy(to, &x, part); }
#endif

#endif
