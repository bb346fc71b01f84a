/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops, casts and dropout. */
#ifndef TRINE_ELEMENTWISE_H
#define TRINE_ELEMENTWISE_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_swiglu_args {
    size_t struct_size; /* TRINE_ARGS(swiglu) */
    const trine_tensor *gate; /* in [p] [q] [r] n */
    const trine_tensor *up; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n; may be gate or up */
} trine_swiglu_args;

/* SwiGLU */
TRINE_API trine_status trine_swiglu(trine_queue *queue, const trine_swiglu_args *args);

typedef struct trine_swiglu_backward_args {
    size_t struct_size; /* TRINE_ARGS(swiglu_backward) */
    const trine_tensor *dy; /* in [p] [q] [r] n */
    const trine_tensor *gate; /* in [p] [q] [r] n */
    const trine_tensor *up; /* in [p] [q] [r] n */
    const trine_tensor *dgate; /* out [p] [q] [r] n; may be dy, gate or up */
    const trine_tensor *dup; /* out [p] [q] [r] n; may be dy, gate or up, not dgate */
} trine_swiglu_backward_args;

/* Gradient of swiglu */
TRINE_API trine_status trine_swiglu_backward(trine_queue *queue, const trine_swiglu_backward_args *args);

/* The form of gelu. */
enum {
    TRINE_GELU_TANH = 0, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    TRINE_GELU_ERF = 1   /* x/2 (1 + erf(x/sqrt 2)) */
};

typedef struct trine_gelu_args {
    size_t struct_size; /* TRINE_ARGS(gelu) */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
    int32_t form; /* TRINE_GELU_* */
} trine_gelu_args;

/* Gaussian error linear unit */
TRINE_API trine_status trine_gelu(trine_queue *queue, const trine_gelu_args *args);

typedef struct trine_gelu_backward_args {
    size_t struct_size; /* TRINE_ARGS(gelu_backward) */
    const trine_tensor *dy; /* in [p] [q] [r] n */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *dx; /* out [p] [q] [r] n; may be dy or x */
    int32_t form; /* TRINE_GELU_* */
} trine_gelu_backward_args;

/* Gradient of gelu */
TRINE_API trine_status trine_gelu_backward(trine_queue *queue, const trine_gelu_backward_args *args);

typedef struct trine_add_args {
    size_t struct_size; /* TRINE_ARGS(add) */
    const trine_tensor *a; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *b; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *y; /* out [p] [q] [r] n; may be a or b */
    float alpha; /* 0: 1 */
    float beta; /* 0: 1 */
} trine_add_args;

/* y = alpha a + beta b */
TRINE_API trine_status trine_add(trine_queue *queue, const trine_add_args *args);

typedef struct trine_mul_args {
    size_t struct_size; /* TRINE_ARGS(mul) */
    const trine_tensor *a; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *b; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *y; /* out [p] [q] [r] n; may be a or b */
    float alpha; /* 0: 1 */
} trine_mul_args;

/* y = alpha a b */
TRINE_API trine_status trine_mul(trine_queue *queue, const trine_mul_args *args);

typedef struct trine_scale_args {
    size_t struct_size; /* TRINE_ARGS(scale) */
    const trine_tensor *x; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
    float alpha; /* 0: 1 */
    float shift;
} trine_scale_args;

/* y = alpha x + shift */
TRINE_API trine_status trine_scale(trine_queue *queue, const trine_scale_args *args);

typedef struct trine_dropout_args {
    size_t struct_size; /* TRINE_ARGS(dropout) */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
    const trine_tensor *mask; /* out, optional [p] [q] [r] n u8: 1 where kept */
    float p; /* probability of dropping, 0 <= p < 1 */
    uint64_t seed;
    uint64_t offset;
} trine_dropout_args;

/* Dropout */
TRINE_API trine_status trine_dropout(trine_queue *queue, const trine_dropout_args *args);

typedef struct trine_cast_args {
    size_t struct_size; /* TRINE_ARGS(cast) */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n */
    int32_t saturate; /* 1: values beyond the largest finite become it; 0: Inf, or NaN where the type has none */
} trine_cast_args;

/* Conversion of element types */
TRINE_API trine_status trine_cast(trine_queue *queue, const trine_cast_args *args);

#ifdef __cplusplus
}
#endif

#endif
