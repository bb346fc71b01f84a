/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic programming: products over the semirings of the largest and the smallest sum, and alignments of sequences. */
#ifndef TRINE_DYNAMIC_H
#define TRINE_DYNAMIC_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_max_plus_matmul_args {
    size_t struct_size;          /* sizeof(trine_max_plus_matmul_args) */
    const trine_tensor *a;       /* in [g] m k */
    const trine_tensor *b;       /* in [g] k n */
    const trine_tensor *c;       /* in, optional [g] m n */
    const trine_tensor *d;       /* out [g] m n; may be c */
    const trine_tensor *indices; /* out, optional [g] m n, i64: the p of the sum that d is */
    int32_t minimum;             /* 1: of the smallest sum */
} trine_max_plus_matmul_args;

/* The matrix product whose sum is the largest and whose product is a sum: the tropical one.
 *
 *     d[g,i,j]       = max(c[g,i,j], max_p a[g,i,p] + b[g,p,j])
 *     indices[g,i,j] = the first p of that sum, -1 where it is c or nothing
 *
 * With minimum all is the other way round: d is the least, and a graph's matrix of lengths multiplied by itself has the
 * shortest ways of two edges; with c = a, d is the least of one or two, and after log2(n) of them of all. indices lead
 * back along the way, and the gradient of d goes to a[g,i,p] and b[g,p,j] of its p alone.
 *
 * What is compared starts at c, or at -Inf (of i32 the least integer), with minimum at Inf (the largest one): that is d
 * where k is 0. A sum takes its place if it is larger, with minimum smaller: of equals the first stays, c before all.
 * NaN is larger and smaller than any number, and the first one stays.
 *
 * Source: Butkovic 2010, Max-linear Systems; shortest ways as Floyd 1962 and Warshall 1962 have them.
 *
 * Shapes: a is [g] m k, b [g] k n, c, d and indices [g] m n. The batch dimension may be missing in front of each. Any
 * size may be 0.
 * Strides: in a and b either of the last two dimensions is contiguous, in the others the last. All others are free.
 * Types: a, b, c and d are f32, f64 or i32; indices is i64. Sums of floats are rounded once, those of i32 wrap around:
 * let what stands for no way be far from the ends, as -2^30.
 * Parameters: minimum is 0 or 1.
 * Aliasing: d may be the very view c. An output may overlap no other tensor.
 *
 * Error bound: none. d and indices are the reference's to the bit, NaN's own bits aside.
 * Deterministic: the same bits on every device and for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or an output overlaps),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_max_plus_matmul(trine_queue *queue, const trine_max_plus_matmul_args *args);

/* What of two sequences an alignment covers. */
enum {
    TRINE_ALIGN_LOCAL = 0,  /* any part of each: Smith and Waterman's */
    TRINE_ALIGN_GLOBAL = 1, /* both from end to end: Needleman and Wunsch's */
    TRINE_ALIGN_WITHIN = 2  /* the query from end to end, any part of the target: semi-global */
};

typedef struct trine_smith_waterman_args {
    size_t struct_size;          /* sizeof(trine_smith_waterman_args) */
    const trine_tensor *query;   /* in b m, u8 */
    const trine_tensor *target;  /* in b n, u8 */
    const trine_tensor *queries; /* in, optional b, i64: lengths of the queries; without it m */
    const trine_tensor *targets; /* in, optional b, i64: lengths of the targets; without it n */
    const trine_tensor *scores;  /* in s s, i32: of a letter of the query, and one of the target */
    const trine_tensor *best;    /* out b, i32 */
    const trine_tensor *ends;    /* out, optional b 2, i64: letters up to the alignment's end, of query and target */
    int64_t gap_open;            /* what the first letter of a gap costs */
    int64_t gap_extend;          /* what each further one costs */
    int32_t alignment;           /* TRINE_ALIGN_* */
} trine_smith_waterman_args;

/* The score of the best alignment of two sequences of letters, gaps having affine costs, for each pair of a batch.
 *
 *     e[i,j] = max(h[i,j-1] - gap_open, e[i,j-1] - gap_extend)
 *     f[i,j] = max(h[i-1,j] - gap_open, f[i-1,j] - gap_extend)
 *     h[i,j] = max(h[i-1,j-1] + scores[query[i], target[j]], e[i,j], f[i,j])
 *
 * i and j count letters from 1, and e[i,0] and f[0,j] are -2^30. By alignment:
 *
 *     local:   h[i,j] is at least 0, h[i,0] = h[0,j] = 0, and best is the largest h
 *     global:  h[0,0] = 0, h[i,0] and h[0,j] are the cost of a gap of i or j letters, and best is h[query, target]
 *     within:  h[0,j] = 0, h[i,0] is the cost of a gap, and best is the largest h[query, j]
 *
 * ends has the i and j of best; of equals that with the smallest j, and of those with the smallest i. Where the local
 * best is 0 they are 0 and 0.
 *
 * A gap of l letters costs gap_open + (l - 1) gap_extend: in programs whose first letter costs both, gap_open is the
 * sum of theirs.
 *
 * Source: Smith and Waterman 1981; affine gaps by Gotoh 1982; Needleman and Wunsch 1970.
 *
 * Shapes: query is b m, target b n, queries, targets and best b, scores s s, ends b 2. m, n and b may be 0, s is at
 * least 1.
 * Strides: the last dimension of each is contiguous, that of queries, targets and best too. Others are free.
 * Types: query and target are u8, scores and best i32, queries, targets and ends i64.
 * Parameters: gap_open and gap_extend are from 0 to 2^24. A score is best from -2^24 to 2^24: sums wrap around where
 * 2^31 does not hold them.
 * Data: a length outside 0 to m, or n, counts as the nearer of these. A letter that is s or more has the score of -2^24
 * with every other.
 * Aliasing: an output may overlap no other tensor.
 *
 * Error bound: none. best and ends are integers, the same on every device.
 * Deterministic: the same bits on every device and for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or an output overlaps),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_smith_waterman(trine_queue *queue, const trine_smith_waterman_args *args);

#ifdef __cplusplus
}
#endif

#endif
