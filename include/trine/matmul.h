/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products. */
#ifndef TRINE_MATMUL_H
#define TRINE_MATMUL_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* act(x). */
enum {
    TRINE_ACTIVATION_NONE = 0,
    TRINE_ACTIVATION_RELU = 1,      /* max(x, 0); NaN stays */
    TRINE_ACTIVATION_GELU_TANH = 2, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    TRINE_ACTIVATION_GELU_ERF = 3,  /* x/2 (1 + erf(x/sqrt 2)) */
    TRINE_ACTIVATION_SILU = 4       /* x / (1 + exp(-x)) */
};

typedef struct trine_matmul_args {
    size_t struct_size; /* TRINE_ARGS(matmul) */
    const trine_tensor *a; /* in [g] m k; last or second-to-last dimension contiguous */
    const trine_tensor *b; /* in [g] k n; likewise */
    const trine_tensor *c; /* in, optional [g] m n */
    const trine_tensor *bias; /* in, optional n */
    const trine_tensor *d; /* out [g] m n; may be c */
    float alpha; /* 0: 1 */
    float beta; /* 0: 1 where c is given */
    int32_t activation; /* TRINE_ACTIVATION_* */
} trine_matmul_args;

/* D = act(alpha * A B + beta * C + bias) */
TRINE_API trine_status trine_matmul(trine_queue *queue, const trine_matmul_args *args);

#ifdef __cplusplus
}
#endif

#endif
