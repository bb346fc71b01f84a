/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys and values of a cache are worth keeping. */
#ifndef TRINE_SELECT_H
#define TRINE_SELECT_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a score is made of its neighbours' and its own. */
enum {
    TRINE_POOL_AVG = 0, /* their mean; what lies beyond either end counts as 0 */
    TRINE_POOL_MAX = 1  /* the largest of those that are there */
};

typedef struct trine_window_score_args {
    size_t struct_size;         /* sizeof(trine_window_score_args) */
    const trine_tensor *q;      /* in b w h d: the last w queries */
    const trine_tensor *k;      /* in b s hk d */
    const trine_tensor *scores; /* out b o n, f32 */
    float scale;                /* of the products; 0: 1/sqrt(d) */
    int32_t pooling;            /* TRINE_POOL_* */
    int32_t radius;             /* neighbours on each side that are pooled; 0: none */
} trine_window_score_args;

/* How much the last queries of a prompt attend to each of its keys: by what SnapKV chooses the keys that a cache keeps.
 *
 *     P[b,h,i,j]    = exp(scale q[b,i,h].k[b,j,g]) / sum over l <= s - w + i of exp(scale q[b,i,h].k[b,l,g])
 *     a[b,u,j]      = sum over i < w and over the heads h in [u h/o, (u+1) h/o) of P[b,h,i,j]
 *     scores[b,u,j] = mean, or largest, of a[b,u,j-radius .. j+radius]
 *
 * g = h/(H/Hk). Query i stands at key s - w + i: it sees all keys before the window, and of the window's own those up
 * to itself, which are in the sum but are not scored: n <= s - w keys are, n = s - w being those of the paper. Only
 * they are neighbours of each other. The mean divides by 2 radius + 1 in any case; radius 0 leaves a as it is.
 *
 * o = h gives each query head scores of its own, as the paper's code does, whose keys are repeated for each; o = hk
 * adds up the heads that share a key, for a cache that holds each key once. The paper adds up over the window and then
 * pools, and so does this; a mean over the window or the heads, as in other programs, has the same order.
 *
 * A query whose products are all -Inf adds 0; a product of NaN or +Inf makes NaN of all that the query adds to. topk of
 * scores gives the keys to keep, and gather_rows gathers them.
 *
 * Source: Li et al. 2024 (SnapKV), section 4.2 and its code.
 *
 * Shapes: q is b w h d, k b s hk d with h a multiple of hk and d > 0, scores b o n with h a multiple of o, o a multiple
 * of hk, and n + w <= s. The last dimension is contiguous, leading strides are free.
 * Types: q and k are f32, bf16 or f16, the same; scores f32. Accumulation is f32, and probabilities are not rounded to
 * the type of q, as they are in the paper's code.
 * Parameters: scale is any finite number; 0 means 1/sqrt(d). 0 <= radius <= 4096; the paper's kernel of 5 is radius 2.
 * Aliasing: scores may not overlap another tensor.
 *
 * Error bound: (2 s + w h/o + 40) 2^-24 times what is added up, besides what the errors of the products make of the
 * probabilities; spec/select/window_score.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; a
 * parameter out of range; scores overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_window_score(trine_queue *queue, const trine_window_score_args *args);

#ifdef __cplusplus
}
#endif

#endif
