/* SPDX-License-Identifier: Apache-2.0 */
/* Neural fields: a grid of trained features in hash tables, and small networks all of whose layers are one kernel. */
#ifndef TRINE_FIELD_H
#define TRINE_FIELD_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How features are interpolated along each axis, t being a place between two corners, 0 .. 1. */
typedef enum trine_interpolation {
    TRINE_INTERPOLATION_LINEAR = 0,    /* t */
    TRINE_INTERPOLATION_SMOOTHSTEP = 1 /* t^2 (3 - 2t) */
} trine_interpolation;

typedef struct trine_hash_encode_args {
    size_t struct_size;          /* sizeof(trine_hash_encode_args) */
    const trine_tensor *x;       /* in n d, f32: places in the unit square, cube or hypercube */
    const trine_tensor *table;   /* in e f: rows of features of all levels, one level behind the other */
    const trine_tensor *offsets; /* in l+1: where the rows of each level begin, and the last one's end */
    const trine_tensor *y;       /* out n l f */
    float per_level_scale;       /* 1 .. 16; 0: 2 */
    int32_t base_resolution;     /* 1 .. 2^24; 0: 16 */
    int32_t interpolation;       /* TRINE_INTERPOLATION_* */
} trine_hash_encode_args;

/* Multiresolution hash encoding: features of places, interpolated in a grid of each level.
 *
 *     s[l]     = min(base_resolution per_level_scale^l, 2^24) - 1,  r[l] = ceil(s[l]) + 1
 *     p        = s[l] x + 0.5,  c = floor(p),  t = p - c, along each axis
 *     y[.,l]   = sum over corners q in {0,1}^d of prod_k (q[k] ? u(t[k]) : u(1 - t[k])) table[row(c + q)]
 *     row(c)   = offsets[l] + i mod m,  m = offsets[l+1] - offsets[l]
 *     i        = sum_k c[k] r^k if r^d <= m, else the exclusive or of c[k] prime[k] mod 2^32
 *
 * prime is 1, 2654435761, 805459861, 3674653429; u(t) is t, or t^2 (3 - 2t) with smoothstep. So a level has a row for
 * each corner where there is room, and a hash table otherwise; in the first case r corners an axis are told apart, and
 * the one beyond the last is the first of the next line. This is tiny-cuda-nn's grid, whose level has
 * m = min(2^log2_hashmap_size, r^d rounded up to a multiple of 8) rows, and torch-ngp's table is like it. s is computed
 * in f64 by repeated products and rounded to f32; p has one rounding of its product and one of its sum, so that all
 * devices find the same corners.
 *
 * x outside of 0 .. 1 is taken to be the nearest of these; where a coordinate is NaN, so is y. A level of no rows gives
 * 0.
 *
 * Source: Muller et al. 2022 (instant neural graphics primitives), section 3; Mubarik et al. 2023 (NGPC).
 *
 * Shapes: x is n d, 2 <= d <= 4; table e f, 1 <= f <= 8, e < 2^31; offsets l+1, l <= 32; y n l f. The last dimension is
 * contiguous, leading strides are free: y without gaps, taken for n rows of l f features, is what mlp_fused reads.
 * Types: table and y are f32, bf16 or f16, the same; x f32; offsets i32 or i64. Accumulation is f32.
 * Parameters: per_level_scale is the growth of the resolution from each level to the next, base_resolution that of the
 * first.
 * Aliasing: y may overlap no other tensor.
 *
 * Error bound: |y - y64| <= u(y) |y64| + (d^2 + 8 d + 2) u(f32) sum over corners of the weights' products with |table|.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides, element types or parameters that the
 * above does not admit; offsets that do not ascend within 0 .. e, on devices: the level's y is NaN; y overlaps another
 * tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_hash_encode(trine_queue *queue, const trine_hash_encode_args *args);

typedef struct trine_hash_encode_backward_args {
    size_t struct_size;          /* sizeof(trine_hash_encode_backward_args) */
    const trine_tensor *dy;      /* in n l f */
    const trine_tensor *x;       /* in n d, f32 */
    const trine_tensor *table;   /* in e f */
    const trine_tensor *offsets; /* in l+1 */
    const trine_tensor *dx;      /* out, optional n d, f32 */
    const trine_tensor *dtable;  /* out, optional e f */
    float per_level_scale;       /* 1 .. 16; 0: 2 */
    int32_t base_resolution;     /* 1 .. 2^24; 0: 16 */
    int32_t interpolation;       /* TRINE_INTERPOLATION_* */
} trine_hash_encode_backward_args;

/* Gradient of trine_hash_encode().
 *
 *     dtable[row] = sum over places, levels and corners of that row of weight dy[.,l]
 *     dx[k]       = sum over levels, corners and features of s[l] dweight/dt[k] table[row] dy[.,l]
 *
 * Weights, corners and rows are those of the forward. Each row of dtable is a sum in an order that sizes alone decide;
 * of rows that no place has it is 0. dx is the slope within the grid's cell that the forward took, and 0 along an axis
 * where x is outside of 0 .. 1. Of a place with a NaN coordinate dx is NaN, and dtable gets nothing.
 *
 * Source: the derivative of trine_hash_encode()'s formula.
 *
 * Shapes: dy is n l f, x and dx n d, table and dtable e f, offsets l+1, in the ranges of trine_hash_encode(). One of dx
 * and dtable, or both.
 * Types: dy, table and dtable are f32, bf16 or f16, the same; x and dx f32; offsets i32 or i64. Accumulation is f32.
 * Parameters: as of trine_hash_encode().
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of dtable (n d^2 + 8 d + 2) u(f32), of dx (l + f + d^2 + 8 d + 8) u(f32) of the sum of the terms'
 * absolute values, besides the rounding of the output.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; neither dx nor dtable; rank, sizes, strides, element types or
 * parameters that the above does not admit; offsets that do not ascend within 0 .. e, on devices: dx is NaN and the
 * level's rows get nothing; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel;
 * on GPUs: 2^32 corners of places or more), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_hash_encode_backward(trine_queue *queue, const trine_hash_encode_backward_args *args);

/* What a layer makes of its sums. */
typedef enum trine_mlp_activation {
    TRINE_MLP_NONE = 0,
    TRINE_MLP_RELU = 1,       /* x > 0 ? x : 0; NaN stays */
    TRINE_MLP_LEAKY_RELU = 2, /* x > 0 ? x : 0.01 x */
    TRINE_MLP_SIGMOID = 3,    /* 1/(1 + exp(-x)) */
    TRINE_MLP_TANH = 4,
    TRINE_MLP_EXPONENTIAL = 5 /* exp(x) */
} trine_mlp_activation;

typedef struct trine_mlp_fused_args {
    size_t struct_size;         /* sizeof(trine_mlp_fused_args) */
    const trine_tensor *x;      /* in r k */
    const trine_tensor *w_in;   /* in h k: weights of the first hidden layer */
    const trine_tensor *w;      /* in, optional m h h: of those behind it; left out: there are none */
    const trine_tensor *w_out;  /* in o h: of the output */
    const trine_tensor *b_in;   /* in, optional h: biases */
    const trine_tensor *b;      /* in, optional m h */
    const trine_tensor *b_out;  /* in, optional o */
    const trine_tensor *y;      /* out r o */
    const trine_tensor *hidden; /* out, optional m+1 r h: what the gradient needs */
    int32_t activation;         /* TRINE_MLP_*: of hidden layers */
    int32_t output_activation;  /* TRINE_MLP_* */
} trine_mlp_fused_args;

/* A small fully connected network, all of whose layers are computed for a few rows before the next ones.
 *
 *     hidden[0] = activation(x w_in' + b_in)
 *     hidden[i] = activation(hidden[i-1] w[i-1]' + b[i-1]),  0 < i <= m
 *     y         = output_activation(hidden[m] w_out' + b_out)
 *
 * Weights are those of torch.nn.Linear, a row for each output. Between layers nothing goes to memory, unless hidden is
 * asked for; what goes from a layer to the next is rounded to the type of x, as hidden is.
 *
 * Source: Muller et al. 2021 (fully fused networks), section 4; Muller et al. 2022, section 5.4.
 *
 * Shapes: x is r k, y r o, w_in h k, w m h h, w_out o h, b_in h, b m h, b_out o, hidden m+1 r h; k, h and o are 1 ..
 * 128, m at most 7: hidden layers are 1 .. 8. The last dimension is contiguous, leading strides are free.
 * Types: all are f32, bf16 or f16, the same. Accumulation is f32.
 * Parameters: activation of all hidden layers, output_activation of the last sums; zero is none.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: what roundings of f32 make of each sum, of k or h terms and 4 more, and the one to the type between
 * layers, carried through those that follow; sigmoid and tanh to 12, exp to 8 roundings; spec/field/mlp.h.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; b without w; rank, sizes, strides, element types or parameters
 * that the above does not admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_mlp_fused(trine_queue *queue, const trine_mlp_fused_args *args);

typedef struct trine_mlp_fused_backward_args {
    size_t struct_size;         /* sizeof(trine_mlp_fused_backward_args) */
    const trine_tensor *dy;     /* in r o */
    const trine_tensor *x;      /* in r k */
    const trine_tensor *w_in;   /* in h k */
    const trine_tensor *w;      /* in, optional m h h */
    const trine_tensor *w_out;  /* in o h */
    const trine_tensor *hidden; /* in m+1 r h: as the forward wrote it */
    const trine_tensor *y;      /* in r o */
    const trine_tensor *dx;     /* out, optional r k */
    const trine_tensor *dw_in;  /* out h k */
    const trine_tensor *dw;     /* out, optional m h h */
    const trine_tensor *dw_out; /* out o h */
    const trine_tensor *db_in;  /* out, optional h */
    const trine_tensor *db;     /* out, optional m h */
    const trine_tensor *db_out; /* out, optional o */
    int32_t activation;         /* TRINE_MLP_* */
    int32_t output_activation;  /* TRINE_MLP_* */
} trine_mlp_fused_backward_args;

/* Gradient of trine_mlp_fused(), from what that saved.
 *
 *     g        = dy output_activation'(y),  dw_out = g' hidden[m],  db_out = sum over rows of g
 *     g[m]     = (g w_out) activation'(hidden[m]),  g[i-1] = (g[i] w[i-1]) activation'(hidden[i-1])
 *     dw[i-1]  = g[i]' hidden[i-1],  db[i-1] = sum over rows of g[i]
 *     dw_in    = g[0]' x,  db_in = sum over rows of g[0],  dx = g[0] w_in
 *
 * The slopes follow from what an activation gave: of relu 1 where that is more than 0 and else 0, of leaky_relu 1 or
 * 0.01, of sigmoid a (1 - a), of tanh 1 - a^2, of exponential a. All g are f32. Rows are summed in an order that sizes
 * alone decide.
 *
 * Source: the derivative of trine_mlp_fused()'s formula.
 *
 * Shapes: dy and y are r o, x and dx r k, hidden m+1 r h; weights, biases and their gradients as in trine_mlp_fused().
 * Types: all are f32, bf16 or f16, the same. Accumulation is f32.
 * Parameters: as of trine_mlp_fused().
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of the forward, without roundings to the type; of weights and biases as many roundings of their terms
 * as there are rows, and 8 more; spec/field/mlp.h.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; dw or db without w; rank, sizes, strides, element types or
 * parameters that the above does not admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device
 * has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_mlp_fused_backward(trine_queue *queue, const trine_mlp_fused_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
