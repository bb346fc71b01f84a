/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit: unit<T>::multiply() adds the product of EDGE lanes of a and EDGE of b, a chunk of each lane, to EDGE
 * x EDGE sums in a wave; EDGE is 16, or in float32 and of 16 bits also 32. The folders beside this file choose the
 * instructions of each architecture; those that all have are here.
 * (On CDNA4 two chunks of float8.) Layouts: AMD matrix instruction calculator, cdna2 and cdna3. */
#ifndef TRINE_HIP_TILE_UNIT_H
#define TRINE_HIP_TILE_UNIT_H

#include "chunk.h"

typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef int32_t i32x4 __attribute__((ext_vector_type(4)));
typedef double f64x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef short i16x4 __attribute__((ext_vector_type(4)));

/* Four sums of a lane i are in column i % 16, in rows 4 (i / 16) + r; those in float64 in rows 4 r + i / 16. */
template <class Sums> DEVICE int sum_row(int lane, int r) {
    return sizeof(Sums) == sizeof(f64x4) ? 4 * r + lane / 16 : lane / 16 * 4 + r;
}

/* Sums of 16 x 16 or of 32 x 32 in a wave: lane i has column i % EDGE, of every 4 GROUPS rows the four from 4 (i /
 * EDGE) on. */
template <int EDGE_> struct square {
    static constexpr int EDGE = EDGE_, GROUPS = WARP / EDGE, COUNT = EDGE / GROUPS;
    typedef float sums __attribute__((ext_vector_type(COUNT)));
    static DEVICE int lane() { return thread_index() % WARP % EDGE; }
    static DEVICE int group() { return thread_index() % WARP / EDGE; }
    /* The row of sum r in group 0. */
    static constexpr DEVICE int row(int r) { return r / 4 * 4 * GROUPS + r % 4; }
};

/* Where a chunk lies of which a wave reads EDGE lanes at a time. */
template <int EDGE> DEVICE int chunk_place_by(unsigned lane, unsigned c) { return chunk_place(lane, c); }

/* One instruction, by the type of its elements. */
DEVICE f32x4 matrix_multiply(f32, float a, float b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, s, 0, 0, 0);
}
DEVICE f32x16 matrix_multiply(f32, float a, float b, f32x16 s) {
    return __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, s, 0, 0, 0);
}
DEVICE f64x4 matrix_multiply(f64, double a, double b, f64x4 s) {
    return __builtin_amdgcn_mfma_f64_16x16x4f64(a, b, s, 0, 0, 0);
}

/* Of elements of T by those of U. */
template <class T, class U = T> struct unit;
template <class T, class U> struct by {};

/* By what the unit takes an element of T for less than it is, whether it takes Inf for NaN, and how many chunks of a
 * lane it takes at a time. */
template <class T> constexpr float UNIT_FACTOR = 1;
template <class T> constexpr bool UNIT_LACKS_INF = false;
template <class T> constexpr int UNIT_CHUNKS = 1;

/* Each architecture has besides, as UNIT_FLOAT8(ENTRIES), the pairs of float8 types that its unit multiplies; and as
 * UNIT_WIDENED(WIDEN, PRODUCTS) the types that are to be widened for it, and the types of products that only those
 * need. */

/* The unit of T whose instructions take a Part of a chunk. */
template <class T, class Part, class Sum = float> struct unit_of_parts {
    static constexpr int PARTS = CHUNK / sizeof(Part);
    using sum = Sum;
    typedef Sum sums __attribute__((ext_vector_type(4)));
    template <class Sums> static DEVICE void multiply(Sums &s, chunk a, chunk b) {
        const auto x = __builtin_bit_cast(packed<Part, PARTS>, a), y = __builtin_bit_cast(packed<Part, PARTS>, b);
#pragma unroll
        for (int k = 0; k < PARTS; k++) s = matrix_multiply(T{}, x.v[k], y.v[k], s);
    }
};
template <> struct unit<f32> : unit_of_parts<f32, float> {};
template <> struct unit<f64> : unit_of_parts<f64, double, double> {};

/* Two numbers rounded to T, of 16 bits. */
template <class T> DEVICE uint32_t rounded_pair(float low, float high) { return T::pair(low, high); }

/* Two weights rounded to T; what is NaN stays so if the low half of its bits is 0, as it is in what comes of 16
 * bits. */
template <class T> DEVICE uint32_t pair_of_weights(float low, float high) { return T::pair(low, high); }

#endif
