/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout's keep-masks on the CPU: Philox4x32-10 in vectors, the words that trine_philox() of spec.h gives. */
#ifndef TRINE_CPU_PHILOX_H
#define TRINE_CPU_PHILOX_H

#include "backends/backend.h"
#include "vec.h"

typedef struct dropout {
    uint32_t key[2], offset[2];
    uint32_t last; /* an element is kept iff its word is at most this */
    float scale;
} dropout;

INLINE dropout dropout_of(float p, uint64_t seed, uint64_t offset) {
    return (dropout){
        .key = { (uint32_t)seed, (uint32_t)(seed >> 32) },
        .offset = { (uint32_t)offset, (uint32_t)(offset >> 32) },
        .last = (uint32_t)(trine_dropout_threshold(p) - 1), /* of p < 1, so that the threshold is in [2^8, 2^32] */
        .scale = trine_dropout_scale(p),
    };
}

/* With the key that a tensor has, and its stream beside that of d. */
static inline void dropout_tell(dropout *d, const trine_tensor *philox) {
    const uint64_t *words = philox->data;
    const uint64_t key = words[0], offset = words[1] + ((uint64_t)d->offset[1] << 32 | d->offset[0]);
    d->key[0] = (uint32_t)key;
    d->key[1] = (uint32_t)(key >> 32);
    d->offset[0] = (uint32_t)offset;
    d->offset[1] = (uint32_t)(offset >> 32);
}

/* The two halves of the 64-bit products a m. */
INLINE void philox_multiply(vu a, uint32_t m, vu *high, vu *low) {
#if defined(__AVX512F__)
    const __m512i factor = _mm512_set1_epi32((int)m);
    const __m512i even = _mm512_mul_epu32((__m512i)a, factor),
                  odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), factor);
    *high = (vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *low = (vu)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
#elif defined(__AVX2__)
    const __m256i factor = _mm256_set1_epi32((int)m);
    const __m256i even = _mm256_mul_epu32((__m256i)a, factor),
                  odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
    *high = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *low = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
#else
    vu h = { 0 }, l = { 0 };
    for (int i = 0; i < VL; i++) {
        const uint64_t product = (uint64_t)a[i] * m;
        h[i] = (uint32_t)(product >> 32);
        l[i] = (uint32_t)product;
    }
    *high = h;
    *low = l;
#endif
}

#if defined(__AVX512F__) || defined(__AVX2__)
#if defined(__AVX512F__)
typedef __m512i philox_lanes;
#define PHILOX_UNPACK(which, x, y) _mm512_unpack##which((philox_lanes)(x), (philox_lanes)(y))
#else
typedef __m256i philox_lanes;
#define PHILOX_UNPACK(which, x, y) _mm256_unpack##which((philox_lanes)(x), (philox_lanes)(y))
#endif
/* The transposition of 4 x 4 within each 128 bits. */
INLINE void philox_transpose(const vu c[4], philox_lanes r[4]) {
    const philox_lanes a = PHILOX_UNPACK(lo_epi32, c[0], c[1]), b = PHILOX_UNPACK(hi_epi32, c[0], c[1]);
    const philox_lanes d = PHILOX_UNPACK(lo_epi32, c[2], c[3]), e = PHILOX_UNPACK(hi_epi32, c[2], c[3]);
    r[0] = PHILOX_UNPACK(lo_epi64, a, d);
    r[1] = PHILOX_UNPACK(hi_epi64, a, d);
    r[2] = PHILOX_UNPACK(lo_epi64, b, e);
    r[3] = PHILOX_UNPACK(hi_epi64, b, e);
}
#undef PHILOX_UNPACK
#endif

/* What c[0..7] have for a lane's block one behind the other, for lanes 0, VL/4, 2 VL/4, ... then 1, ...: of c[0..3] and
 * of c[4..7] transposed, 128 bits by turns. */
INLINE void philox_interleave(const vu c[8], int32_t *out) {
#if defined(__AVX512F__) || defined(__AVX2__)
    philox_lanes x[4], y[4];
    philox_transpose(c, x);
    philox_transpose(c + 4, y);
    for (int i = 0; i < 4; i++) {
#if defined(__AVX512F__)
        const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                      last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        *(vi_any *)(out + 2 * i * VL) = (vi)_mm512_permutex2var_epi64(x[i], first, y[i]);
        *(vi_any *)(out + (2 * i + 1) * VL) = (vi)_mm512_permutex2var_epi64(x[i], last, y[i]);
#else
        *(vi_any *)(out + 2 * i * VL) = (vi)_mm256_permute2x128_si256(x[i], y[i], 0x20);
        *(vi_any *)(out + (2 * i + 1) * VL) = (vi)_mm256_permute2x128_si256(x[i], y[i], 0x31);
#endif
    }
#else
    for (int k = 0; k < 4; k++)
        for (int q = 0; q < VL / 4; q++)
            for (int i = 0; i < 8; i++) out[2 * k * VL + q * 8 + i] = (int32_t)c[i][q * 4 + k];
#endif
}

/* The VL blocks from `block` on: lane l has block (VL/4) (l%4) + l/4, so that transposing by 128 bits gives the order
 * of the words. */
INLINE void philox_blocks(const dropout *d, uint64_t block, vu c[4]) {
    const vi lane = viota();
    const vu step = (vu)((lane & 3) * (VL / 4) + (lane >> 2));
    vu high[2], low[2];
    c[0] = step + (uint32_t)block;
    c[1] = (uint32_t)(block >> 32) - (vu)(c[0] < step);
    c[2] = (vu)viset((int32_t)d->offset[0]);
    c[3] = (vu)viset((int32_t)d->offset[1]);
    uint32_t k0 = d->key[0], k1 = d->key[1];
    for (int round = 0; round < 10; round++) {
        philox_multiply(c[0], 0xD2511F53u, &high[0], &low[0]);
        philox_multiply(c[2], 0xCD9E8D57u, &high[1], &low[1]);
        c[0] = high[1] ^ c[1] ^ k0;
        c[1] = low[1];
        c[2] = high[0] ^ c[3] ^ k1;
        c[3] = low[0];
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* What c[0..3] have for a lane's block one behind the other, block by block. */
INLINE void philox_order(const vu c[4], float *out) {
#if defined(__AVX512F__) || defined(__AVX2__)
    philox_lanes r[4];
    philox_transpose(c, r);
    for (int k = 0; k < 4; k++) *(vi_any *)(out + k * VL) = (vi)r[k];
#else
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 4; i++) out[k * VL + i] = ((vf)c[i])[k];
#endif
}

/* The words of the 8 VL elements of the VL blocks from `block` on: of element i of lane l's block word_out[i][l], which
 * philox_interleave() puts in order. */
INLINE void philox_words(const dropout *d, uint64_t block, vu word_out[8]) {
    vu c[4];
    philox_blocks(d, block, c);
    for (int i = 0; i < 4; i++) {
        word_out[2 * i] = c[i];
        word_out[2 * i + 1] = c[i] << 16 | c[i] >> 16;
    }
}

/* The masks of the 8 VL elements of the VL blocks from `block` on. */
INLINE void philox_keep(const dropout *d, uint64_t block, int32_t *keep_out) {
    vu keep[8];
    philox_words(d, block, keep);
    for (int i = 0; i < 8; i++) keep[i] = (vu)(keep[i] <= d->last);
    philox_interleave(keep, keep_out);
}

enum { DROPOUT_RUN = 512, DROPOUT_BUFFER = DROPOUT_RUN + 8 * VL };

/* Along a dimension whose elements are numbered one after the other. */
static inline void dropout_edges(trine_kernel_edges *edges, int symbol) {
    trine_kernel_edge(edges, symbol, 8 * VL);
    trine_kernel_edge(edges, symbol, DROPOUT_RUN);
}

/* Masks (-1 kept, 0 dropped) of the elements first .. first+count-1, count <= DROPOUT_RUN: a pointer into `buffer`,
 * readable to the next whole vector. */
INLINE const int32_t *dropout_run(const dropout *d, uint64_t first, int count, int32_t buffer[DROPOUT_BUFFER]) {
    const int skip = (int)(first % 8);
    for (int i = 0; i < skip + count; i += 8 * VL) philox_keep(d, first / 8 + (uint64_t)(i / 8), buffer + i);
    return buffer + skip;
}

/* The VL masks at `keep` applied: kept values times the scale, 0 for the others, whatever they are. */
INLINE vf dropout_apply(const dropout *d, vf x, const int32_t *keep) {
    return (vf)((vi)(x * d->scale) & *(const vi_any *)keep);
}

#endif
