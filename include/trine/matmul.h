/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products. */
#ifndef TRINE_MATMUL_H
#define TRINE_MATMUL_H

#include <trine/base.h>

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

/* How far operands may be rounded before they are multiplied. */
enum {
    TRINE_PRECISION_FULL = 0, /* not at all */
    TRINE_PRECISION_TF32 = 1  /* f32 to 10 bits of fraction: tensor cores then take them; no other type is changed */
};

typedef struct trine_matmul_args {
    size_t struct_size;          /* sizeof(trine_matmul_args) */
    const trine_tensor *a;       /* in [g] m k */
    const trine_tensor *b;       /* in [g] k n */
    const trine_tensor *c;       /* in, optional [g] m n */
    const trine_tensor *bias;    /* in, optional n */
    const trine_tensor *d;       /* out [g] m n; may be c */
    float alpha;                 /* 0: 1 */
    float beta;                  /* factor of c, which asks for it: not 0 then, but -0.0f where a zero is meant */
    int32_t activation;          /* TRINE_ACTIVATION_* */
    const trine_tensor *a_scale; /* in, optional [g] m, f32: of a's rows; one element: of all */
    const trine_tensor *b_scale; /* in, optional [g] n, f32: of b's columns; one element: of all */
    int32_t precision;           /* TRINE_PRECISION_* */
} trine_matmul_args;

/* Matrix product, batched, with scales, addition, bias and activation.
 *
 *     d[g,i,j] = act(alpha a_scale[g,i] b_scale[g,j] sum_p a[g,i,p] b[g,p,j] + beta c[g,i,j] + bias[j])
 *
 * Source: level 3 BLAS, Dongarra et al. 1990, with the activations above (Hendrycks and Gimpel 2016).
 *
 * Shapes: a [g] m k, b [g] k n, d [g] m n. The batch dimension may be missing in front of each, and may be 1 in a or b:
 * the same matrix then serves the whole batch. c is broadcast: each of its dimensions may be 1, or missing in front. So
 * are a_scale, [g] m, and b_scale, [g] n, of which one element is a scale of the whole operand. Scales that are absent
 * are 1. bias is n. Any size may be 0; k = 0 gives act(beta c + bias).
 * Strides: in a and b either of the last two dimensions is contiguous. A transposed operand is trine_tensor_transpose()
 * of the tensor as it lies in memory. In the others the last dimension is contiguous. All other strides are free.
 * Types: a and b are of one type, or one is e4m3 and the other e5m2; c has d's. f32 gives f32, f64 gives f64, f16 gives
 * f16 or f32, bf16 gives bf16 or f32. bias has d's type, or is f32 where a is f16 or bf16. e4m3 by e4m3, and e4m3 by
 * e5m2 either way round, give bf16, f16 or f32, with a bias of f32. The sum is formed in f32 (f64 for f64; of float8,
 * see the bound) and rounded once, at the end. i8 gives i32, exact modulo 2^32, with an i32 bias and no scales.
 * Parameters: alpha and beta are finite. As 0 stands for 1, write -0.0f for a zero alpha. With c, beta must be set: a
 * call with c and a beta left 0 is refused, since in BLAS it would not add c. Write 1.0f to add c, or -0.0f for a true
 * zero. A factor of zero does not hide NaN or Inf: 0 NaN is NaN. With i8 both are integers up to 2^24, and the
 * activation is none or relu. precision tf32 lets f32 operands be cut to 10 bits of fraction; a NaN whose upper 10 bits
 * of fraction are 0 may then be taken for Inf.
 * Aliasing: d may be the very view c. It may overlap no other tensor.
 *
 * Error bound: |d - d64| <= u(d) |d64| + (k + 4) u(sum) 1.13 (|alpha| sum_p |a b| + |beta c| + |bias|), 1.13 being 1
 * for none and relu, and 12 u(sum) |t| where an activation is applied to t; with scales u(sum) more for each, and their
 * factors before the sum. Products with a subnormal bf16 may be taken for zero. Of float8, sums of 128 products may
 * have 13 bits of fraction below the largest of them: 139 2^-13 |alpha| sum_p |a b| more, a subnormal counting as the
 * smallest normal. With precision tf32 2^-9 |alpha| sum_p |a b| more, and products with a subnormal may be taken for
 * zero.
 * Deterministic: the same bits on the same device for any number of threads. The order of an element's sum depends on
 * sizes and strides alone.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or d overlaps), TRINE_ERR_UNSUPPORTED (no
 * kernel of the device takes the call, as with i8 and scales, or a factor that is no integer), TRINE_ERR_WORKSPACE
 * (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul(trine_queue *queue, const trine_matmul_args *args);

typedef struct trine_matmul_pack_args {
    size_t struct_size;         /* sizeof(trine_matmul_pack_args) */
    const trine_tensor *b;      /* in [g] k n */
    const trine_tensor *packed; /* out [g] (n+15)/16 (k+3)/4 64 */
} trine_matmul_pack_args;

/* Packs matrices once for many products with trine_matmul_packed(): the weights of a model that answers.
 *
 *     packed[g,J,P,16 e s + e t + i] = b[g, 4 P + e s + i, 16 J + t],  t < 16, i < e, s < 4/e;  0 where b has none
 *
 * e is the number of elements in 4 bytes: 1 of f32, 2 of bf16 and f16, 4 of i8, e4m3 and e5m2; of f64 it is 1. In
 * words: 16 columns side by side, of each the e elements of k that units of matrices multiply together; such lines one
 * after the other in k, and then the next 16 columns. It is the same on every device and at every level of a CPU, so
 * that what was packed on one serves on all, and may be written to a file. A weight that lies in memory as n k is
 * passed transposed.
 *
 * Source: Goto and van de Geijn 2008 (packing into panels); the layout by definition.
 *
 * Shapes: b is [g] k n; packed [g] (n+15)/16 (k+3)/4 64, quotients rounded down. Any size may be 0.
 * Strides: in b either of the last two dimensions is contiguous; in packed the last one. All other strides are free.
 * Types: b and packed are f32, bf16, f16, i8, f64, e4m3 or e5m2, the same.
 * Aliasing: packed may not overlap b.
 *
 * Error bound: exact: bits are copied.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit;
 * packed overlaps b), TRINE_ERR_UNSUPPORTED (no kernel of the device takes the call), TRINE_ERR_WORKSPACE (strict
 * queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_pack(trine_queue *queue, const trine_matmul_pack_args *args);

typedef struct trine_matmul_packed_args {
    size_t struct_size;          /* sizeof(trine_matmul_packed_args) */
    const trine_tensor *a;       /* in [g] m k */
    const trine_tensor *d;       /* out [g] m n; may be c */
    const trine_tensor *packed;  /* in [g] (n+15)/16 (k+3)/4 64: of trine_matmul_pack() */
    const trine_tensor *c;       /* in, optional [g] m n */
    const trine_tensor *bias;    /* in, optional n */
    const trine_tensor *a_scale; /* in, optional [g] m, f32: of a's rows; one element: of all */
    const trine_tensor *b_scale; /* in, optional [g] n, f32: of b's columns; one element: of all */
    float alpha;                 /* 0: 1 */
    float beta;                  /* factor of c, which asks for it: not 0 then, but -0.0f where a zero is meant */
    int32_t activation;          /* TRINE_ACTIVATION_* */
    int32_t precision;           /* TRINE_PRECISION_* */
} trine_matmul_packed_args;

/* Matrix product as trine_matmul() has it, of a matrix b that trine_matmul_pack() packed before.
 *
 *     d[g,i,j] = act(alpha a_scale[g,i] b_scale[g,j] sum_p a[g,i,p] b[g,p,j] + beta c[g,i,j] + bias[j])
 *
 * It saves what packing b takes in each product: the most where a has few rows, but more than a handful. On devices
 * without a kernel of its own b is unpacked, some columns at a time, and multiplied: correct, and slower than
 * trine_matmul() with b.
 *
 * Source: level 3 BLAS, Dongarra et al. 1990, with the activations of trine_matmul(); Goto and van de Geijn 2008
 * (packing).
 *
 * Shapes: a [g] m k, packed [g] (n+15)/16 (k+3)/4 64, quotients rounded down, d [g] m n. The batch dimension may be
 * missing in front of each, and may be 1 in a or packed: the same matrix then serves the whole batch. n and k follow
 * from d and a. What packed holds beyond them counts nothing, whatever it is. c, a_scale and b_scale are broadcast as
 * in trine_matmul(); scales that are absent are 1. bias is n. Any size may be 0; k = 0 gives act(beta c + bias).
 * Strides: in a either of the last two dimensions is contiguous; in the others the last one. All other strides are
 * free.
 * Types: those of trine_matmul(), b's type being packed's. The sum is formed and rounded as there.
 * Parameters: as in trine_matmul().
 * Aliasing: d may be the very view c. It may overlap no other tensor.
 *
 * Error bound: that of trine_matmul().
 * Deterministic: the same bits on the same device for any number of threads. The order of an element's sum depends on
 * sizes and strides alone.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or d overlaps), TRINE_ERR_UNSUPPORTED (no
 * kernel of the device takes the call, as with i8 and scales, or a factor that is no integer), TRINE_ERR_WORKSPACE
 * (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_packed(trine_queue *queue, const trine_matmul_packed_args *args);

typedef struct trine_grouped_matmul_args {
    size_t struct_size;            /* sizeof(trine_grouped_matmul_args) */
    const trine_tensor *x;         /* in r k */
    const trine_tensor *w;         /* in e n k */
    const trine_tensor *offsets;   /* in e+1, i32 */
    const trine_tensor *gather;    /* in, optional p, i32: the row of x that each row of y is made of */
    const trine_tensor *bias;      /* in, optional e n */
    const trine_tensor *row_scale; /* in, optional p, f32: factors of y's rows */
    const trine_tensor *y;         /* out p n */
    int32_t activation;            /* TRINE_ACTIVATION_* */
    int64_t divide;                /* gather counts rows of x so many times each; 0: 1 */
    const trine_tensor *counts;    /* in, optional e, i32: rows of each group that are computed */
} trine_grouped_matmul_args;

/* Products of groups of rows, each group with a matrix of its own: the experts of a mixture.
 *
 *     y[i,j] = row_scale[i] act(sum_q x[s,q] w[g,j,q] + bias[g,j]),  g with offsets[g] <= i < offsets[g+1]
 *
 * s is i, or with gather the whole part of gather[i]/divide: where gather has the numbers of slots, k of each token,
 * divide = k finds the tokens. Rows of y that no group has are 0, and so are those whose gather is below 0, or r divide
 * and more. moe_align makes offsets and gather of the experts that tokens go to; a group may have no rows.
 *
 * With counts only the first counts[g] rows of group g are computed, none for one below 0, and the others are 0: groups
 * may then begin at multiples of a capacity, and how full they are may be known on the device alone.
 *
 * Source: Gale et al. 2023 (grouped products for mixtures of experts), with the activations of trine_matmul().
 *
 * Shapes: x is r k, w e n k, offsets e+1, counts e, gather and row_scale are p, bias is e n, y p n. Without gather r =
 * p. Any size may be 0; k = 0 gives act(bias).
 * Strides: in w either of the last two dimensions is contiguous: a weight that lies in memory as e k n is passed
 * transposed. In the others the last dimension is contiguous. All other strides are free.
 * Types: x and w are f32, f16 or bf16, the same; y is of their type, or f32; bias f32, or of y's type where that is
 * x's; offsets, counts and gather i32, row_scale f32. The sum is formed in f32 and rounded once, at the end.
 * Ranges: offsets ascend from at least 0 to p at most.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: |y - y64| <= u(y) |y64| + (k + 4) 2^-24 1.13 |row_scale| (sum_q |x w| + |bias|), 1.13 being 1 for none
 * and relu, the sum counting 2.25 times for f16 and bf16, and 12 2^-24 |t| more where an activation is applied to t;
 * spec/matmul/grouped_matmul.c. Products with a subnormal bf16 may be taken for zero.
 * Deterministic: the same bits on the same device for any number of threads. A row of y depends on its row of x and its
 * expert alone, not on the rows beside it.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or y overlaps; on the CPU, offsets that
 * descend, or leave 0 to p), TRINE_ERR_UNSUPPORTED (p, r divide or e is more than 2^31 - 1), TRINE_ERR_WORKSPACE
 * (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_grouped_matmul(trine_queue *queue, const trine_grouped_matmul_args *args);

typedef struct trine_grouped_matmul_weights_args {
    size_t struct_size;          /* sizeof(trine_grouped_matmul_weights_args) */
    const trine_tensor *dy;      /* in p n */
    const trine_tensor *x;       /* in r k */
    const trine_tensor *offsets; /* in e+1, i32 */
    const trine_tensor *gather;  /* in, optional p, i32: the row of x that belongs to each row of dy */
    const trine_tensor *dw;      /* out e n k */
    const trine_tensor *dbias;   /* out, optional e n */
    int64_t divide;              /* gather counts rows of x so many times each; 0: 1 */
} trine_grouped_matmul_weights_args;

/* Gradients of grouped_matmul's matrices and biases: for each group the product of its rows of dy, transposed, with
 * theirs of x.
 *
 *     dw[g,j,q]  = sum over i with offsets[g] <= i < offsets[g+1] of dy[i,j] x[s,q]
 *     dbias[g,j] = sum over the same i of dy[i,j]
 *
 * s is i, or with gather the whole part of gather[i]/divide, as in grouped_matmul; rows of dy whose gather is below 0,
 * or r divide and more, count nothing, whatever they hold. A group without rows gives 0.
 *
 * dy is the gradient of what grouped_matmul gives without activation and row_scale: with these it is multiplied by
 * row_scale and by the activation's derivative first. The other gradient is grouped_matmul's own work, with w
 * transposed and without gather: sum_j dy[i,j] w[g,j,q] in row i, one for each place of y. moe_combine adds these up
 * for each token by the places of moe_align, scatter_add_rows by gather[i]/divide.
 *
 * Source: the derivative of grouped_matmul's formula (Gale et al. 2023).
 *
 * Shapes: dy is p n, x r k, offsets e+1, gather p, dw e n k, dbias e n. Without gather r = p. Any size may be 0. The
 * last dimension is contiguous, all other strides are free.
 * Types: dy and x are f32, f16 or bf16, the same; dw is of their type, or f32; dbias is of dw's type, or f32; offsets
 * and gather i32. Sums are in f32 and rounded once.
 * Ranges: offsets ascend from at least 0 to p at most.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound, with c rows in the group: |dw - dw64| <= u(dw) |dw64| + (c + 4) 2^-24 sum |dy x|, the sum counting 2.25
 * times for f16 and bf16, and |dbias - dbias64| <= u(dbias) |dbias64| + c 2^-24 sum |dy|. Products with a subnormal
 * bf16 may be taken for zero.
 * Deterministic: the same bits on the same device for any number of threads. A group's results depend on its own rows
 * alone.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or an output overlaps; on the CPU, offsets
 * that descend, or leave 0 to p), TRINE_ERR_UNSUPPORTED (p, r divide or e is more than 2^31 - 1), TRINE_ERR_WORKSPACE
 * (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_grouped_matmul_weights(trine_queue *queue, const trine_grouped_matmul_weights_args *args);

typedef struct trine_matmul_quantized_args {
    size_t struct_size;         /* sizeof(trine_matmul_quantized_args) */
    const trine_tensor *x;      /* in m k */
    const trine_tensor *codes;  /* in n groups bytes */
    const trine_tensor *scales; /* in n groups */
    const trine_tensor *zeros;  /* in, optional n groups */
    const trine_tensor *mins;   /* in, optional n groups */
    const trine_tensor *bias;   /* in, optional n */
    const trine_tensor *y;      /* out m n */
    int32_t offset;             /* taken from every code, -255 .. 255 */
    int32_t format;             /* TRINE_CODES_* of <trine/quantize.h> */
    int32_t activation;         /* TRINE_ACTIVATION_* */
} trine_matmul_quantized_args;

/* Product with a quantized matrix of weights, with bias and activation.
 *
 *     y[i,j] = act(sum_l x[i,l] w[j,l] + bias[j])
 *     w[j,l] = (code[j,l] - offset - zeros[j,g]) scales[j,g] + mins[j,g],    g = floor(l groups / k)
 *
 * Source: Frantar et al. 2022 (GPTQ), with real zeros as Badri and Shaji 2023 (HQQ) have them, and minima as GGUF has.
 *
 * Shapes: x m k, y m n, bias n; codes n groups bytes, scales, zeros and mins n groups: row j has the weights of output
 * j, in groups of k/groups, as trine_quantize() packs them and trine_dequantize() reads them. m, n and k may be 0; k =
 * 0 gives act(bias).
 * Strides: in each tensor the last dimension is contiguous. All other strides are free.
 * Types: x f32, bf16 or f16; y has x's type, or is f32; bias has y's type, or is f32. codes u8: without a sign; i8:
 * two's complement of their bits. scales, zeros and mins f32, bf16 or f16, all of one type.
 * Parameters: offset 8 for the codes of 4 bits that stand for -8 .. 7. format TRINE_CODES_E2M1: codes are u8 of 4 bits.
 * activation as in trine_matmul().
 * Other formats: codes of GPTQ, which are packed along k, and of HQQ serve as they are once a row's are consecutive,
 * those of AWQ once the order of a word's codes is undone. GGUF's Q4_0 has offset 8, Q4_1 mins, Q8_0 codes in i8,
 * groups of 32 each; in blocks of 4 bits code i is beside code i + 16, and here beside i + 1.
 * Aliasing: y may overlap no other tensor.
 *
 * Error bound: |y - y64| <= u(y) |y64| + ((2.25 k + groups + 16) 2^-24 + 33/32 u(x)) 1.13 (sum_l |x_l| W_l + |bias|), W
 * = (|code - offset| + |zero|) |scale| + |min|, 1.13 being 1 for none and relu, and 12 2^-24 |t| where an activation is
 * applied to t: weights may be rounded to x's type. Products with a subnormal bf16 may be taken for zero. An Inf
 * among the factors gives Inf or NaN.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or y overlaps), TRINE_ERR_UNSUPPORTED (no
 * kernel of the device takes the call), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_quantized(trine_queue *queue, const trine_matmul_quantized_args *args);

typedef struct trine_grouped_matmul_quantized_args {
    size_t struct_size;            /* sizeof(trine_grouped_matmul_quantized_args) */
    const trine_tensor *x;         /* in r k */
    const trine_tensor *codes;     /* in e n groups bytes */
    const trine_tensor *scales;    /* in e n groups */
    const trine_tensor *zeros;     /* in, optional e n groups */
    const trine_tensor *mins;      /* in, optional e n groups */
    const trine_tensor *offsets;   /* in e+1, i32: where the rows of each expert begin in y */
    const trine_tensor *gather;    /* in, optional p, i32: the row of x that each row of y is made of */
    const trine_tensor *bias;      /* in, optional e n */
    const trine_tensor *row_scale; /* in, optional p, f32: factors of y's rows */
    const trine_tensor *counts;    /* in, optional e, i32: rows of each expert that are computed */
    const trine_tensor *y;         /* out p n */
    int64_t divide;                /* gather counts rows of x so many times each; 0: 1 */
    int32_t code_offset;           /* taken from every code, -255 .. 255 */
    int32_t format;                /* TRINE_CODES_* of <trine/quantize.h> */
    int32_t activation;            /* TRINE_ACTIVATION_* */
} trine_grouped_matmul_quantized_args;

/* Products of groups of rows, each with a quantized matrix of its own: the experts of a mixture, their weights in codes
 * of few bits.
 *
 *     y[i,j]   = row_scale[i] act(sum_l x[s,l] w[g,j,l] + bias[g,j]),  g with offsets[g] <= i < offsets[g+1]
 *     w[g,j,l] = (code[g,j,l] - code_offset - zeros[g,j,h]) scales[g,j,h] + mins[g,j,h],    h = floor(l groups / k)
 *
 * It is trine_grouped_matmul() with the weights of trine_matmul_quantized(). The groups of rows are g, the experts; the
 * groups of weights that have a scale are h. s is i, or with gather the whole part of gather[i]/divide. Rows of y that
 * no expert has are 0, and so are those whose gather is below 0, or r divide and more, and with counts those of an
 * expert beyond its first counts[g].
 *
 * Source: Gale et al. 2023 (grouped products for mixtures of experts); Frantar et al. 2022 (GPTQ), with real zeros as
 * Badri and Shaji 2023 (HQQ) have them, and minima as GGUF has.
 *
 * Shapes: x is r k, y p n, codes e n groups bytes, scales, zeros and mins e n groups, bias e n, offsets e+1, counts e,
 * gather and row_scale p. Row j of expert g has the weights of output j, in groups of k/groups, as trine_quantize()
 * packs them and trine_dequantize() reads them. Without gather r = p. r, e, p, n and k may be 0; k = 0 gives act(bias).
 * Strides: in each tensor the last dimension is contiguous. All other strides are free.
 * Types: x f32, bf16 or f16; y has x's type, or is f32; bias f32, or of y's type where that is x's. codes u8: without
 * a sign; i8: two's complement of their bits. scales, zeros and mins f32, bf16 or f16, all of one type. offsets, counts
 * and gather i32, row_scale f32. Sums are in f32 and rounded once, at the end.
 * Ranges: offsets ascend from at least 0 to p at most.
 * Parameters: code_offset 8 for the codes of 4 bits that stand for -8 .. 7. format TRINE_CODES_E2M1: codes are u8 of 4
 * bits, as MXFP4 has them in groups of 32, whose scales a cast to bf16 leaves as they are. activation as in
 * trine_matmul(), before row_scale.
 * Aliasing: y may overlap no other tensor.
 *
 * Error bound: |y - y64| <= u(y) |y64| + ((2.25 k + groups + 17) 2^-24 + 33/32 u(x)) 1.13 |row_scale| (sum_l |x_l| W_l
 * + |bias|), W = (|code - code_offset| + |zero|) |scale| + |min|, 1.13 being 1 for none and relu, and 12 2^-24
 * |row_scale t| more where an activation is applied to t: weights may be rounded to x's type. Products with a subnormal
 * bf16 may be taken for zero. An Inf among the factors gives Inf or NaN.
 * Deterministic: the same bits on the same device for any number of threads. Sums of an expert that has few rows may be
 * in another order than of one that has many.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or y overlaps; on the CPU, offsets that
 * descend, or leave 0 to p), TRINE_ERR_UNSUPPORTED (p, r divide or e is more than 2^31 - 1, or a row has more weights
 * than the device's kernel takes), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_grouped_matmul_quantized(trine_queue *queue,
                                                      const trine_grouped_matmul_quantized_args *args);

#ifdef __cplusplus
}
#endif

#endif
