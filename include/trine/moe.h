/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts: which experts a token goes to, and in which order they find their tokens. */
#ifndef TRINE_MOE_H
#define TRINE_MOE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What makes scores of logits. */
enum {
    TRINE_GATE_SOFTMAX = 0, /* over all experts */
    TRINE_GATE_SIGMOID = 1  /* of each by itself */
};

typedef struct trine_moe_route_args {
    size_t struct_size;          /* sizeof(trine_moe_route_args) */
    const trine_tensor *logits;  /* in t e */
    const trine_tensor *bias;    /* in, optional e, f32: added to the scores for the choice alone */
    const trine_tensor *weights; /* out t k, f32 */
    const trine_tensor *experts; /* out t k, i32 */
    const trine_tensor *scores;  /* out, optional t e, f32 */
    int32_t gate;                /* TRINE_GATE_* */
    int32_t renormalise;         /* 1: the chosen scores are divided by their sum */
    float scale;                 /* factor of the weights; 0: 1 */
    int32_t groups;              /* of neighbours among the experts; 0 or 1: none */
    int32_t groups_kept;         /* groups that experts are chosen from; 0: all */
} trine_moe_route_args;

/* The experts of each token, and their weights: the router of a mixture of experts, behind its product.
 *
 *     s[i,j]       = exp(logits[i,j]) / sum_m exp(logits[i,m])        gate softmax
 *                    1 / (1 + exp(-logits[i,j]))                      gate sigmoid
 *     experts[i]   = the places of the k largest s[i,j] + bias[j], from the largest on
 *     weights[i,a] = scale s[i,experts[i,a]]
 *
 * renormalise divides the weights of a token by the sum of its k scores, before scale: with softmax that is a softmax
 * over the chosen logits. Where the sum is 0, all sigmoids having vanished, the weights are 0. The bias steers the
 * choice only and is in no weight. `scores` has all s, for a loss that balances experts.
 *
 * With groups > 1 and groups_kept > 0 experts are chosen from some groups only: those of ceil(e/groups) neighbours, the
 * last perhaps of fewer, whose two largest s + bias, or whose one, add up to the most. Where these have fewer than k
 * experts the slots that are left over have expert -1 and weight 0, and are in no sum.
 *
 * The choice is the same on every device. Without bias experts are compared by their logits, which have the order of
 * the exact scores; with a bias, and groups in any case, by f32 scores whose operations spec/moe/moe_route.c says one
 * by one. Of equals the one with the smaller index comes first, -0 equals 0, and NaN is larger than any number, so that
 * a NaN is chosen and seen in the weights. A softmax with a NaN, or whose largest logit is infinite, is NaN. An
 * exponential below e^-80, of the difference to the largest logit or of -|logit|, is 0.
 *
 * Source: Shazeer et al. 2017; bias and groups are those of DeepSeek-V3 (DeepSeek-AI 2024).
 *
 * Shapes: logits is t e, bias e, weights and experts are t k with k <= e, scores t e. The last dimension is contiguous,
 * leading strides are free.
 * Types: logits are f32, bf16 or f16; bias, weights and scores f32, experts i32. Computation is in f32.
 * Parameters: scale is finite. As 0 stands for 1, write -0.0f for a zero.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of weights max(e/32, k) + 24, of scores e/32 + 24 in units of 2^-24 of the value, and 1.01 2^-24 of it
 * times the distance to the largest logit and the mean of that for softmax; spec/moe/moe_route.c. experts are exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides, element types or parameters that the
 * above does not admit; k > e; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (more than 2^31 - 1
 * experts; on devices, more than 1024), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_route(trine_queue *queue, const trine_moe_route_args *args);

typedef struct trine_moe_route_backward_args {
    size_t struct_size;           /* sizeof(trine_moe_route_backward_args) */
    const trine_tensor *dweights; /* in t k, f32 */
    const trine_tensor *logits;   /* in t e */
    const trine_tensor *experts;  /* in t k, i32: the forward's */
    const trine_tensor *dscores;  /* in, optional t e, f32 */
    const trine_tensor *dlogits;  /* out t e */
    int32_t gate;                 /* TRINE_GATE_*: the forward's, as are: */
    int32_t renormalise;
    float scale; /* 0: 1 */
} trine_moe_route_backward_args;

/* Gradient of moe_route: of its weights, and of its scores where a loss that balances experts has them, with respect to
 * the logits. The choice of experts is constant.
 *
 *     c[i,j] = dscores[i,j] + scale sum over a with experts[i,a] = j of dweights[i,a]
 *     dlogits[i,j] = s[i,j] (c[i,j] - sum_m s[i,m] c[i,m])        gate softmax
 *                    s[i,j] (1 - s[i,j]) c[i,j]                   gate sigmoid
 *
 * with the scores s of moe_route. With renormalise c is dscores alone, and with v[a] = s[i,experts[i,a]] / sum_b
 * s[i,experts[i,b]] and r = 1 for softmax, 1 - s[i,experts[i,a]] for sigmoid, each slot a adds:
 *
 *     dlogits[i,experts[i,a]] += v[a] r (scale dweights[i,a] - sum_b v[b] scale dweights[i,b])
 *
 * A slot whose expert is below 0, or e and more, gives nothing and is in no sum; where the sum of a token's chosen
 * scores is 0, its slots give nothing. Without dscores they count as 0. Biases and groups steer the choice alone and
 * have no part in it. Exponentials are those of moe_route: one below e^-80 is 0.
 *
 * Source: the derivative of moe_route's formula.
 *
 * Shapes: logits, dscores and dlogits are t e, dweights and experts are t k with k <= e. The last dimension is
 * contiguous, leading strides are free.
 * Types: logits are f32, bf16 or f16, dlogits of the same type; dweights and dscores f32, experts i32. Computation is
 * in f32, rounded once.
 * Parameters: scale is finite. As 0 stands for 1, write -0.0f for a zero.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound, besides the output's own rounding: (3 e/32 + 4 k + 64) 2^-24 s (|c| + sum s |c|), with v r (|g| + sum v
 * |g|) more for each slot, g = scale dweights, and 1.01 2^-24 of these times distances to the largest logit for
 * softmax; spec/moe/moe_route_backward.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides, element types or parameters that the
 * above does not admit; k > e; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (more than 2^31 - 1
 * experts), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_route_backward(trine_queue *queue, const trine_moe_route_backward_args *args);

typedef struct trine_moe_align_args {
    size_t struct_size;                /* sizeof(trine_moe_align_args) */
    const trine_tensor *experts;       /* in t k, i32 or i64 */
    const trine_tensor *counts;        /* out e, i32 */
    const trine_tensor *offsets;       /* out e+1, i32 */
    const trine_tensor *rows;          /* out m b, i32 */
    const trine_tensor *places;        /* out t k, i32 */
    const trine_tensor *block_experts; /* out, optional m, i32 */
    int64_t capacity;                  /* of an expert, which takes no more; 0: there is none */
} trine_moe_align_args;

/* Sorts the slots of tokens by their experts, each expert's padded to whole blocks: what grouped_matmul works on, and
 * how its rows find back.
 *
 * Slot a of token i has number k i + a. The slots of an expert are numbered in this order, and those up to its capacity
 * are kept, the others dropped. The kept slots of expert j stand from place offsets[j] on, one after the other, and
 * offsets[j+1] is the next multiple of b behind them. In numbers, with n_j = min(counts[j], capacity):
 *
 *     counts[j]          = how many slots name expert j, those that are dropped included
 *     offsets[0]         = 0,  offsets[j+1] = offsets[j] + b ceil(n_j/b)
 *     rows[place]        = the slot that stands there, -1 where none does
 *     places[i,a]        = where slot a of token i stands, -1 if it is dropped
 *     block_experts[q]   = the expert whose slots stand in row q of `rows`, -1 from place offsets[e] on
 *
 * rows is seen as one line of m b places; its rows are the blocks. With b = 1 nothing is padded. A slot whose expert is
 * below 0, or e and more, is one that nobody takes: its place is -1.
 *
 * Source: a stable counting sort (Knuth 1998, section 5.2); the padding is that of vLLM's moe_align_block_size, and
 * tokens beyond the capacity are dropped in their order (Fedus et al. 2022).
 *
 * Shapes: experts and places are t k, counts e, offsets e+1, rows m b with b > 0, block_experts m. There must be room
 * whatever experts say: m b >= t k + min(e, t k) (b - 1). The last dimension is contiguous, leading strides are free.
 * Types: experts are i32 or i64, all others i32.
 * Parameters: capacity >= 0.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads, and on every device.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides, element types or parameters that the
 * above does not admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (t k, e or m b is more than
 * 2^31 - 1), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_align(trine_queue *queue, const trine_moe_align_args *args);

typedef struct trine_moe_combine_args {
    size_t struct_size;          /* sizeof(trine_moe_combine_args) */
    const trine_tensor *x;       /* in p n */
    const trine_tensor *places;  /* in t k, i32 */
    const trine_tensor *weights; /* in, optional t k, f32 */
    const trine_tensor *y;       /* out t n */
} trine_moe_combine_args;

/* Adds up what the experts of each token made of it.
 *
 *     y[i,j] = sum over a of weights[i,a] x[places[i,a],j]
 *
 * A slot whose place is below 0, or p and more, adds nothing: its expert dropped it. Weights that are absent are 1. A
 * token without a slot is 0.
 *
 * Source: by definition (Shazeer et al. 2017).
 *
 * Shapes: x is p n, places and weights are t k, y is t n. The last dimension is contiguous, leading strides are free.
 * Types: x is f32, bf16 or f16; y of the same type, or f32; places i32, weights f32. Sums are in f32, in the order of
 * slots, and rounded once.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound, besides the output's own rounding: k + 1 in units of 2^-24, of the sum of absolute values.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE
 * (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_combine(trine_queue *queue, const trine_moe_combine_args *args);

typedef struct trine_moe_combine_backward_args {
    size_t struct_size;           /* sizeof(trine_moe_combine_backward_args) */
    const trine_tensor *dy;       /* in t n */
    const trine_tensor *x;        /* in p n */
    const trine_tensor *places;   /* in t k, i32 */
    const trine_tensor *weights;  /* in, optional t k, f32 */
    const trine_tensor *dx;       /* out p n */
    const trine_tensor *dweights; /* out, optional t k, f32 */
} trine_moe_combine_backward_args;

/* Gradient of moe_combine.
 *
 *     dx[q,j]       = sum over i and a with places[i,a] = q of weights[i,a] dy[i,j]
 *     dweights[i,a] = sum_j dy[i,j] x[places[i,a],j]
 *
 * A place that no slot names is 0, and so is the weight's gradient of a slot whose place is below 0, or p and more.
 * Weights that are absent are 1. moe_align names a place once at most; where several slots name one they are added up
 * in their order.
 *
 * Source: the derivative of moe_combine's formula.
 *
 * Shapes: dy is t n, x and dx are p n, places, weights and dweights are t k. The last dimension is contiguous, leading
 * strides are free.
 * Types: x is f32, bf16 or f16, dx of the same type; dy of the same type, or f32; places i32, weights and dweights f32.
 * Sums are in f32 and rounded once.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound, besides the output's own rounding, in units of 2^-24 of the sum of absolute values: of dx one more than
 * slots name the place, of dweights n/8 + 12.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (t k or p is more than 2^31 - 1),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_combine_backward(trine_queue *queue, const trine_moe_combine_backward_args *args);

/* What a layer of experts makes of its halves: y = act(gate) up. */
enum {
    TRINE_GATED_SILU = 0,      /* SwiGLU */
    TRINE_GATED_GELU_TANH = 1, /* GeGLU */
    TRINE_GATED_GELU_ERF = 2
};

typedef struct trine_moe_mlp_args {
    size_t struct_size;               /* sizeof(trine_moe_mlp_args) */
    const trine_tensor *x;            /* in t h */
    const trine_tensor *weights;      /* in t k, f32 */
    const trine_tensor *experts;      /* in t k, i32 */
    const trine_tensor *w_gate_up;    /* in e g h, g = 2 f: the rows of gate, then those of up */
    const trine_tensor *w_down;       /* in e h f */
    const trine_tensor *bias_gate_up; /* in, optional e g */
    const trine_tensor *bias_down;    /* in, optional e h */
    const trine_tensor *shared;       /* in, optional t h: added, as of experts that all tokens go to */
    const trine_tensor *y;            /* out t h */
    int32_t gated;                    /* TRINE_GATED_* */
} trine_moe_mlp_args;

/* The experts of a mixture: each token through those that a router gave it, and their weighted sum.
 *
 *     y[i]    = shared[i] + sum over a of weights[i,a] d(experts[i,a], x[i])
 *     d(j, x) = w_down[j] z + bias_down[j],  z = act(gate) up,  (gate, up) = w_gate_up[j] x + bias_gate_up[j]
 *
 * The first f rows of w_gate_up[j] give gate, the others up. A slot whose expert is below 0, or e and more, adds
 * nothing. What the router is does not matter: moe_route gives weights and experts. An experts' layer of two separate
 * matrices has them stacked once.
 *
 * It is made of moe_align, grouped_matmul, which gathers tokens as it reads them, swiglu or geglu, grouped_matmul and
 * moe_combine; the gradient is that of these parts. No slot is dropped, and nothing is padded.
 *
 * Source: Shazeer et al. 2017, with gated experts as Jiang et al. 2024 (Mixtral) have them.
 *
 * Shapes: x, shared and y are t h, weights and experts t k, w_gate_up e g h, w_down e h f, bias_gate_up e g, bias_down
 * e h. Any size may be 0.
 * Strides: in w_gate_up and w_down either of the last two dimensions is contiguous, in the others the last is. All
 * other strides are free.
 * Types: x, the matrices, shared and y are f32, bf16 or f16, the same; biases f32, or of that type; weights f32,
 * experts i32. Gate and up, z, and each slot's d are rounded to that type, sums are in f32.
 * Workspace: t k (2 f + h) elements of the type, t k + e + 1 and t k + e numbers of 4 bytes, each rounded up to 256
 * bytes, and what its parts need.
 * Aliasing: y may overlap no other tensor.
 *
 * Error bound: that of the parts, each passed on by the next; spec/moe/moe_mlp.c.
 * Deterministic: the same bits on the same device for any number of threads. A row of y depends on its token, weights
 * and experts alone.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or y overlaps), TRINE_ERR_UNSUPPORTED (a
 * part has no kernel for it, as where t k is more than 2^31 - 1), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_mlp(trine_queue *queue, const trine_moe_mlp_args *args);

#ifdef __cplusplus
}
#endif

#endif
