/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops, casts and dropout. */
#ifndef TRINE_ELEMENTWISE_H
#define TRINE_ELEMENTWISE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_swiglu_args {
    size_t struct_size;       /* sizeof(trine_swiglu_args) */
    const trine_tensor *gate; /* in [p] [q] [r] n */
    const trine_tensor *up;   /* in [p] [q] [r] n */
    const trine_tensor *y;    /* out [p] [q] [r] n; may be gate or up */
} trine_swiglu_args;

/* SwiGLU: one half of a projection times the SiLU of the other.
 *
 *     y = gate sigmoid(gate) up,  sigmoid(x) = 1/(1 + exp(-x))
 *
 * Source: Shazeer 2020, "GLU variants improve Transformer", eq. 6.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, rounded once.
 * Aliasing: y may be gate or up.
 *
 * Error bound, besides the output's own rounding: 14 2^-24 |y|, also where sigmoid is tiny.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_swiglu(trine_queue *queue, const trine_swiglu_args *args);

typedef struct trine_swiglu_backward_args {
    size_t struct_size;        /* sizeof(trine_swiglu_backward_args) */
    const trine_tensor *dy;    /* in [p] [q] [r] n */
    const trine_tensor *gate;  /* in [p] [q] [r] n */
    const trine_tensor *up;    /* in [p] [q] [r] n */
    const trine_tensor *dgate; /* out [p] [q] [r] n; may be dy, gate or up */
    const trine_tensor *dup;   /* out [p] [q] [r] n; may be dy, gate or up, not dgate */
} trine_swiglu_backward_args;

/* Gradient of swiglu.
 *
 *     dgate = dy up s (1 + gate (1 - s)),  dup = dy gate s,  s = sigmoid(gate)
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, rounded once.
 * Aliasing: dgate and dup may each be dy, gate or up, but not the same one.
 *
 * Error bound, besides the output's own rounding: 28 2^-24 |dy up| s (1 + |gate|) for dgate, 14 2^-24 |dup| for dup.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_swiglu_backward(trine_queue *queue, const trine_swiglu_backward_args *args);

/* The form of gelu. */
enum {
    TRINE_GELU_TANH = 0, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    TRINE_GELU_ERF = 1   /* x/2 (1 + erf(x/sqrt 2)) */
};

typedef struct trine_gelu_args {
    size_t struct_size;    /* sizeof(trine_gelu_args) */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
    int32_t form;          /* TRINE_GELU_* */
} trine_gelu_args;

/* Gaussian error linear unit, in either form.
 *
 *     TRINE_GELU_TANH: y = x/2 (1 + tanh(v/2)),  v = 2 sqrt(2/pi) (x + 0.044715 x^3)
 *     TRINE_GELU_ERF:  y = x/2 (1 + erf(x/sqrt 2))
 *
 * Source: Hendrycks and Gimpel 2016, "Gaussian error linear units", section 2.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, rounded once.
 * Aliasing: y may be x.
 *
 * Error bound, besides the output's own rounding: 14 2^-24 |y| (1 + |v| (1 - sigmoid(v))) for tanh; 14 2^-24 |y| (1 +
 * x^2) for erf and x < 0, 14 2^-24 |y| for x > 0. So the far negative tail is right too. At -Inf y is NaN, as the
 * formula says.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gelu(trine_queue *queue, const trine_gelu_args *args);

typedef struct trine_gelu_backward_args {
    size_t struct_size;     /* sizeof(trine_gelu_backward_args) */
    const trine_tensor *dy; /* in [p] [q] [r] n */
    const trine_tensor *x;  /* in [p] [q] [r] n */
    const trine_tensor *dx; /* out [p] [q] [r] n; may be dy or x */
    int32_t form;           /* TRINE_GELU_* */
} trine_gelu_backward_args;

/* Gradient of gelu.
 *
 *     TRINE_GELU_TANH: dx = dy (s + x s (1 - s) v'),  s = sigmoid(v),  v' = 2 sqrt(2/pi) (1 + 0.134145 x^2)
 *     TRINE_GELU_ERF:  dx = dy (F + x f),  F = (1 + erf(x/sqrt 2))/2,  f = exp(-x^2/2)/sqrt(2 pi)
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, rounded once.
 * Aliasing: dx may be dy or x.
 *
 * Error bound, besides the output's own rounding: 36 2^-24 |dy| times the absolute values of the terms, each times 1 +
 * |v| (tanh) or 1 + x^2 (erf, the first term for x < 0 only).
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gelu_backward(trine_queue *queue, const trine_gelu_backward_args *args);

typedef struct trine_geglu_args {
    size_t struct_size;       /* sizeof(trine_geglu_args) */
    const trine_tensor *gate; /* in [p] [q] [r] n */
    const trine_tensor *up;   /* in [p] [q] [r] n */
    const trine_tensor *y;    /* out [p] [q] [r] n; may be gate or up */
    int32_t form;             /* TRINE_GELU_* */
} trine_geglu_args;

/* GeGLU: one half of a projection times the GELU of the other, in either form.
 *
 *     y = gelu(gate) up
 *     TRINE_GELU_TANH: gelu(x) = x/2 (1 + tanh(v/2)),  v = 2 sqrt(2/pi) (x + 0.044715 x^3)
 *     TRINE_GELU_ERF:  gelu(x) = x/2 (1 + erf(x/sqrt 2))
 *
 * Source: Shazeer 2020, "GLU variants improve Transformer", eq. 6. The paper's GELU is that by erf; T5 v1.1 and Gemma
 * (gelu_new, gelu_pytorch_tanh) take tanh.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, gelu first, rounded once.
 * Aliasing: y may be gate or up.
 *
 * Error bound, besides the output's own rounding: 14 2^-24 |y| times, with x = gate, 1 + |v| (1 - sigmoid(v)) for tanh;
 * for erf 1 + x^2 where x < 0, else 1. So the far negative tail is right too. At gate = -Inf y is NaN, as the formula
 * says.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_geglu(trine_queue *queue, const trine_geglu_args *args);

typedef struct trine_geglu_backward_args {
    size_t struct_size;        /* sizeof(trine_geglu_backward_args) */
    const trine_tensor *dy;    /* in [p] [q] [r] n */
    const trine_tensor *gate;  /* in [p] [q] [r] n */
    const trine_tensor *up;    /* in [p] [q] [r] n */
    const trine_tensor *dgate; /* out [p] [q] [r] n; may be dy, gate or up */
    const trine_tensor *dup;   /* out [p] [q] [r] n; may be dy, gate or up, not dgate */
    int32_t form;              /* TRINE_GELU_* */
} trine_geglu_backward_args;

/* Gradient of geglu.
 *
 *     dgate = dy up gelu'(gate),  dup = dy gelu(gate)
 *     TRINE_GELU_TANH: gelu'(x) = s + x s (1 - s) v',  s = sigmoid(v),  v' = 2 sqrt(2/pi) (1 + 0.134145 x^2)
 *     TRINE_GELU_ERF:  gelu'(x) = F + x f,  F = (1 + erf(x/sqrt 2))/2,  f = exp(-x^2/2)/sqrt(2 pi)
 *
 * Source: Shazeer 2020, eq. 6, differentiated.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, rounded once.
 * Aliasing: dgate and dup may each be dy, gate or up, but not the same one.
 *
 * Error bound, besides the output's own rounding: 38 2^-24 |dy up| times the absolute values of the derivative's terms,
 * each times 1 + |v| (tanh) or 1 + x^2 (erf, the first term for x < 0 only), for dgate; for dup that of geglu with dy
 * in the place of up.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_geglu_backward(trine_queue *queue, const trine_geglu_backward_args *args);

typedef struct trine_relu2_args {
    size_t struct_size;    /* sizeof(trine_relu2_args) */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
} trine_relu2_args;

/* Square of the rectified linear unit.
 *
 *     y = max(x, 0)^2
 *
 * Source: So et al. 2021, "Primer: searching for efficient Transformers for language modeling", section 3.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, rounded once.
 * Ranges: NaN gives NaN. What is beyond the largest finite value of the type becomes Inf: in f32 and bf16 from x = 2^64
 * on, in f16 from x = 256 on.
 * Aliasing: y may be x.
 *
 * Error bound, besides the output's own rounding: 2 2^-24 |y|.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_relu2(trine_queue *queue, const trine_relu2_args *args);

typedef struct trine_relu2_backward_args {
    size_t struct_size;     /* sizeof(trine_relu2_backward_args) */
    const trine_tensor *dy; /* in [p] [q] [r] n */
    const trine_tensor *x;  /* in [p] [q] [r] n */
    const trine_tensor *dx; /* out [p] [q] [r] n; may be dy or x */
} trine_relu2_backward_args;

/* Gradient of relu2.
 *
 *     dx = 2 max(x, 0) dy
 *
 * Source: So et al. 2021, section 3, differentiated.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f32, bf16 or f16, the same for all; computed in f32, rounded once.
 * Ranges: NaN in x or dy gives NaN, and so does dy = +-Inf where x <= 0: 0 times Inf. What is beyond the largest finite
 * value of the type becomes +-Inf.
 * Aliasing: dx may be dy or x.
 *
 * Error bound, besides the output's own rounding: 2 2^-24 |dx|.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_relu2_backward(trine_queue *queue, const trine_relu2_backward_args *args);

typedef struct trine_add_args {
    size_t struct_size;    /* sizeof(trine_add_args) */
    const trine_tensor *a; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *b; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *y; /* out [p] [q] [r] n; may be a or b */
    float alpha;           /* 0: 1 */
    float beta;            /* 0: 1 */
} trine_add_args;

/* Weighted sum of two tensors, with broadcasting.
 *
 *     y = alpha a + beta b
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free. An input is broadcast along the dimensions where it is 1, or missing.
 * Types: each tensor f32, bf16 or f16, in any combination; computed in f32, rounded once.
 * Parameters: alpha and beta are 1 if left 0; -0.0 is zero.
 * Aliasing: y may be a or b, where that is not broadcast.
 *
 * Error bound, besides the output's own rounding: 3 2^-24 (|alpha a| + |beta b|).
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_add(trine_queue *queue, const trine_add_args *args);

typedef struct trine_mul_args {
    size_t struct_size;    /* sizeof(trine_mul_args) */
    const trine_tensor *a; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *b; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *y; /* out [p] [q] [r] n; may be a or b */
    float alpha;           /* 0: 1 */
} trine_mul_args;

/* Product of two tensors, with broadcasting.
 *
 *     y = alpha a b
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free. An input is broadcast along the dimensions where it is 1, or missing.
 * Types: each tensor f32, bf16 or f16, in any combination; computed in f32, rounded once.
 * Parameters: alpha is 1 if left 0; -0.0 is zero.
 * Aliasing: y may be a or b, where that is not broadcast.
 *
 * Error bound, besides the output's own rounding: 3 2^-24 |y|.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_mul(trine_queue *queue, const trine_mul_args *args);

typedef struct trine_scale_args {
    size_t struct_size;    /* sizeof(trine_scale_args) */
    const trine_tensor *x; /* in [p] [q] [r] n, broadcast */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
    float alpha;           /* 0: 1 */
    float shift;
} trine_scale_args;

/* Scaling, shifting and conversion, with broadcasting.
 *
 *     y = alpha x + shift
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free. An input is broadcast along the dimensions where it is 1, or missing.
 * Types: each tensor f32, bf16 or f16, in any combination; computed in f32, rounded once.
 * Parameters: alpha is 1 if left 0; -0.0 is zero.
 * Aliasing: y may be x, where that is not broadcast.
 *
 * Error bound, besides the output's own rounding: 3 2^-24 (|alpha x| + |shift|).
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_scale(trine_queue *queue, const trine_scale_args *args);

typedef struct trine_dropout_args {
    size_t struct_size;         /* sizeof(trine_dropout_args) */
    const trine_tensor *x;      /* in [s] [q] [r] n */
    const trine_tensor *philox; /* in, optional [2], i64: the key in place of seed, and what is added to offset */
    const trine_tensor *y;      /* out [s] [q] [r] n; may be x */
    const trine_tensor *mask;   /* out, optional [s] [q] [r] n u8: 1 where kept */
    float p;                    /* probability of dropping, 0 <= p <= 1 */
    uint64_t seed;              /* 0 where philox is given */
    uint64_t offset;
} trine_dropout_args;

/* Dropout, with a mask that depends on seed, offset and shape alone: it is the same on every device.
 *
 *     y[i] = x[i] scale if element i is kept, else 0;  scale = 1/(1-p) rounded to f32
 *
 * With philox, key and stream are read when the op runs: a graph that was recorded drops other elements each time it is
 * launched, if the tensor is changed between. Its elements count modulo 2^64. With p = 1 nothing is kept.
 *
 * Source: Srivastava et al. 2014, "Dropout", section 10; Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
 * 3" (Philox4x32-10).
 *
 * Shapes: all tensors but philox [s] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading
 * strides are free. i counts the elements in row-major order, whatever the strides. It is kept if word i/2%4 of
 * Philox4x32-10 with key seed and counter (lo32(i/8), hi32(i/8), lo32(offset), hi32(offset)), as it is for even i, with
 * its halves exchanged for odd i, is below floor((1-p) 2^32): with that probability, and nearly independently of the
 * word's other element (their correlation is at most 2^-14 for p in 2^-16 .. 1 - 2^-16).
 * Types: x and y f32, bf16 or f16, the same; mask u8, 1 where kept; philox i64. One product in f32, rounded once.
 * Parameters: 0 <= p <= 1. Use another offset for every call of a training step. The backward pass is dropout of dy
 * with the same seed, offset and philox. seed must be 0 where philox is given.
 * Aliasing: y may be x.
 *
 * Error bound, besides the output's own rounding: 2 2^-24 |y|; the mask is exact, and dropped elements are 0 even where
 * x is NaN.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_dropout(trine_queue *queue, const trine_dropout_args *args);

typedef struct trine_gaussian_axpy_args {
    size_t struct_size;               /* sizeof(trine_gaussian_axpy_args) */
    const trine_tensor *x;            /* in [s] [q] [r] n */
    const trine_tensor *philox;       /* in, optional [2], i64: the key in place of seed, and what is added to offset */
    const trine_tensor *alpha_tensor; /* in, optional [1], f32: in place of alpha */
    const trine_tensor *y;            /* out [s] [q] [r] n; may be x */
    float alpha;                      /* factor of the noise; 0 where alpha_tensor is given */
    uint64_t seed;                    /* 0 where philox is given */
    uint64_t offset;
} trine_gaussian_axpy_args;

/* Adds normal noise that is never stored: z depends on seed, offset and the element's number alone, to the last bit,
 * so that it may be added on one device and taken away on another, as training without gradients does with weights.
 *
 *     y[i] = x[i] + alpha z[i],  z standard normal
 *
 * z is made by the method of Box and Muller from words w[0..3] of Philox4x32-10 with key seed and counter (lo32(i/4),
 * hi32(i/4), lo32(offset), hi32(offset)). With a = w[i%4/2*2] and b = the word behind it:
 *
 *     z[i] = sqrt(-2 ln(u)) cos(2 pi b/2^32) for even i, and with sin in place of cos for odd i
 *
 * where u = (a/2 rounded down, or 1) / 2^31, rounded to f32. Each operation is rounded to f32 by itself, in an order
 * that spec/elementwise/gaussian_axpy.c writes down, so that all devices have the same bits of z and of y. z is at most
 * 6.56 in size, and within 10 2^-24 of itself of what the formula says.
 *
 * With philox and alpha_tensor, key, stream and factor are read when the op runs: a graph that was recorded adds other
 * noise each time it is launched, if the tensors are changed between. philox's elements count modulo 2^64.
 *
 * Source: Malladi et al. 2023, "Fine-tuning language models with just forward passes", algorithm 1; Box and Muller
 * 1958; Salmon et al. 2011.
 *
 * Shapes: x and y are [s] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free. i counts the elements in row-major order, whatever the strides. philox is 2, alpha_tensor 1.
 * Types: x and y f32, bf16 or f16, the same; philox i64, alpha_tensor f32. alpha z and the sum are rounded to f32, then
 * to y's type.
 * Parameters: use another offset for every tensor and every draw. seed must be 0 where philox is given, alpha where
 * alpha_tensor is.
 * Aliasing: y may be x.
 *
 * Error bound: none; y is exact.
 * Deterministic: the same bits for any number of threads, and on every device.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides, parameters or overlaps contradict the above; outputs are
 * untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gaussian_axpy(trine_queue *queue, const trine_gaussian_axpy_args *args);

typedef struct trine_cast_args {
    size_t struct_size;    /* sizeof(trine_cast_args) */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n */
    int32_t saturate;      /* 1: values beyond the largest finite become it; 0: Inf, or NaN where the type has none */
} trine_cast_args;

/* Conversion of floating-point types.
 *
 *     y = x rounded once, to nearest even
 *
 * Source: IEEE 754-2019, section 5.4; OCP 8-bit floating point specification 1.0, section 5.2.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: x and y each f64, f32, f16, bf16, e4m3, e4m3fnuz, e5m2 or e5m2fnuz. f64 to a narrow type is rounded once, not
 * by way of f32.
 * Ranges: what rounds beyond the largest finite value becomes Inf, or NaN where the type has none; with saturate it
 * becomes the largest finite value, Inf too. NaN stays NaN; its sign and payload are not specified. -0 is kept, but by
 * the fnuz types, which have none.
 * Aliasing: none.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_cast(trine_queue *queue, const trine_cast_args *args);

#ifdef __cplusplus
}
#endif

#endif
