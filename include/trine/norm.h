/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and normalizations. */
#ifndef TRINE_NORM_H
#define TRINE_NORM_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_softmax_args {
    size_t struct_size; /* TRINE_ARGS(softmax) */
    const trine_tensor *x; /* in [g] s n */
    const trine_tensor *y; /* out [g] s n; may be x */
    float scale; /* 0: 1 */
    int32_t causal; /* 1: element j of row i is visible iff j <= i + n - s */
} trine_softmax_args;

/* Softmax over the last dimension */
TRINE_API trine_status trine_softmax(trine_queue *queue, const trine_softmax_args *args);

typedef struct trine_softmax_backward_args {
    size_t struct_size; /* TRINE_ARGS(softmax_backward) */
    const trine_tensor *y; /* in [g] s n; the forward's output */
    const trine_tensor *dy; /* in [g] s n */
    const trine_tensor *dx; /* out [g] s n; may be y or dy */
    float scale; /* 0: 1 */
    int32_t causal;
} trine_softmax_backward_args;

/* Gradient of softmax */
TRINE_API trine_status trine_softmax_backward(trine_queue *queue, const trine_softmax_backward_args *args);

/* Where the norms round to the element type of y. */
enum {
    TRINE_ROUND_ONCE = 0,         /* once, at the end */
    TRINE_ROUND_BEFORE_WEIGHT = 1 /* the normalized value too, before it is multiplied by weight: as Llama's reference does */
};

typedef struct trine_rms_norm_args {
    size_t struct_size; /* TRINE_ARGS(rms_norm) */
    const trine_tensor *x; /* in r n */
    const trine_tensor *residual; /* in, optional r n */
    const trine_tensor *weight; /* in, optional n */
    const trine_tensor *y; /* out r n; may be x */
    const trine_tensor *residual_out; /* out, optional r n: h; may be residual */
    const trine_tensor *rstd; /* out, optional r */
    float eps; /* 0: 1e-6 */
    float weight_offset; /* added to weight; Gemma has 1 */
    int32_t rounding; /* TRINE_ROUND_* */
    float dropout; /* probability of dropping an element of x, 0 <= dropout < 1 */
    uint64_t seed;
    uint64_t offset;
} trine_rms_norm_args;

/* Root-mean-square normalization */
TRINE_API trine_status trine_rms_norm(trine_queue *queue, const trine_rms_norm_args *args);

typedef struct trine_rms_norm_backward_args {
    size_t struct_size; /* TRINE_ARGS(rms_norm_backward) */
    const trine_tensor *dy; /* in r n */
    const trine_tensor *h; /* in r n: what was normalized (residual_out, or x) */
    const trine_tensor *weight; /* in, optional n */
    const trine_tensor *rstd; /* in r */
    const trine_tensor *dresidual; /* in, optional r n: gradient that arrives at h by the residual stream */
    const trine_tensor *dx; /* out r n: gradient at x; may be dy */
    const trine_tensor *dh; /* out, optional r n: gradient at h, thus at residual; may be dresidual */
    const trine_tensor *dweight; /* out, optional n */
    float weight_offset;
    float dropout;
    uint64_t seed;
    uint64_t offset;
} trine_rms_norm_backward_args;

/* Gradient of rms_norm */
TRINE_API trine_status trine_rms_norm_backward(trine_queue *queue, const trine_rms_norm_backward_args *args);

typedef struct trine_layer_norm_args {
    size_t struct_size; /* TRINE_ARGS(layer_norm) */
    const trine_tensor *x; /* in r n */
    const trine_tensor *residual; /* in, optional r n */
    const trine_tensor *weight; /* in, optional n */
    const trine_tensor *bias; /* in, optional n */
    const trine_tensor *y; /* out r n; may be x */
    const trine_tensor *residual_out; /* out, optional r n: h; may be residual */
    const trine_tensor *mean; /* out, optional r */
    const trine_tensor *rstd; /* out, optional r */
    float eps; /* 0: 1e-5 */
    float weight_offset;
    int32_t rounding; /* TRINE_ROUND_* */
    float dropout;
    uint64_t seed;
    uint64_t offset;
} trine_layer_norm_args;

/* Layer normalization */
TRINE_API trine_status trine_layer_norm(trine_queue *queue, const trine_layer_norm_args *args);

typedef struct trine_layer_norm_backward_args {
    size_t struct_size; /* TRINE_ARGS(layer_norm_backward) */
    const trine_tensor *dy; /* in r n */
    const trine_tensor *h; /* in r n */
    const trine_tensor *weight; /* in, optional n */
    const trine_tensor *mean; /* in r */
    const trine_tensor *rstd; /* in r */
    const trine_tensor *dresidual; /* in, optional r n */
    const trine_tensor *dx; /* out r n; may be dy */
    const trine_tensor *dh; /* out, optional r n; may be dresidual */
    const trine_tensor *dweight; /* out, optional n */
    const trine_tensor *dbias; /* out, optional n */
    float weight_offset;
    float dropout;
    uint64_t seed;
    uint64_t offset;
} trine_layer_norm_backward_args;

/* Gradient of layer_norm */
TRINE_API trine_status trine_layer_norm_backward(trine_queue *queue, const trine_layer_norm_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
