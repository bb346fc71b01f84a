/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of pack_strided and unpack_strided share, and the walk of their references.
 *
 * Exact: elements are copied. */
#ifndef TRINE_SPEC_STRIDED_H
#define TRINE_SPEC_STRIDED_H

#include <trine/strided.h>

#include "spec/spec.h"

#define STRIDED_PARAM(field, tried, words) \
    PARAM(field, I64, .values = tried, .min = -0x1p50, .max = 0x1p50, .doc = words)
#define STRIDED_PARAMS \
    STRIDED_PARAM(start, "0 3 -5 16 70", "place of the first element in x"), \
        STRIDED_PARAM(stride_i, "4 8 33 1 0 -3", "elements of x from one block to the next"), \
        STRIDED_PARAM(stride_j, "32 100 12 7 -20 0", "elements of x from one row of blocks to the next"), \
        STRIDED_PARAM(stride_k, "500 128 36 -64 1", "elements of x from one plane of rows to the next"), \
        STRIDED_PARAM(extent, "2000 1 -300 140737488355328", "elements of x from one object to the next")
#define STRIDED_TYPES "T=u8|i8|i16|i32|i64|u32|f16|bf16|f32|f64"
#define STRIDED_SIZES \
    "n: 300 0 1 64 1000 5000", "o: 1 0 2 3", "k: 1 0 2 5", "j: 2 0 1 3 9", "i: 3 0 1 2 8 33", "m: 4 0 1 3 8 16 33 257"
/* All of x is touched by lines of the caches, as the bytes that are counted are. */
#define STRIDED_CASES \
    "vector of bytes: T=u8 n=67108864 o=1 k=1 j=1 i=524288 m=100 stride_i=128", \
        "pairs of f32: T=f32 n=16777216 o=1 k=1 j=1 i=2097152 m=2 stride_i=8", \
        "inside of a grid: T=f64 n=8388608 o=1 k=1 j=62 i=254 m=510 start=131585 stride_i=512 stride_j=131072", \
        "objects: T=f32 n=16777216 o=64 k=1 j=32 i=32 m=160 stride_i=256 stride_j=8192 extent=262144", \
        "large blocks: T=u8 n=134217728 o=1 k=1 j=1 i=512 m=196608 stride_i=262144"

/* The layout of either op's arguments. */
typedef struct strided {
    int64_t n, count[5], step[5]; /* of objects, planes, rows, blocks and elements */
    int64_t start;
} strided;

#define STRIDED_OF(ref, args) \
    { .n = trine_ref_dim(ref, "n"), \
      .count = { trine_ref_dim(ref, "o"), trine_ref_dim(ref, "k"), trine_ref_dim(ref, "j"), trine_ref_dim(ref, "i"), \
                 trine_ref_dim(ref, "m") }, \
      .step = { (args)->extent, (args)->stride_k, (args)->stride_j, (args)->stride_i, 1 }, \
      .start = (args)->start }

static inline int64_t strided_count(const strided *s) {
    int64_t count = 1;
    for (int d = 0; d < 5; d++) count *= s->count[d];
    return count;
}

/* Where element `at` of packed is in x; -1: nowhere. */
static inline int64_t strided_place(const strided *s, int64_t at) {
    int64_t place = s->start;
    for (int d = 4; d >= 0; d--) place += at % s->count[d] * s->step[d], at /= s->count[d];
    return place >= 0 && place < s->n ? place : -1;
}

#endif
