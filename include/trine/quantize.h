/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of few bits, and the rotation that makes values fit for them. */
#ifndef TRINE_QUANTIZE_H
#define TRINE_QUANTIZE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a code stands for. */
enum {
    TRINE_CODES_INTEGER = 0, /* a whole number: without a sign in u8, two's complement in i8 */
    TRINE_CODES_E2M1 = 1     /* OCP FP4: 0, 0.5, 1, 1.5, 2, 3, 4 or 6 by the lower 3 bits, the sign by the highest */
};

/* Which scales are powers of two. */
enum {
    TRINE_POWERS_E8M0 = 0,  /* those of e8m0 */
    TRINE_POWERS_ALL = 1,   /* those of every type */
    TRINE_POWERS_FITTED = 2 /* those of every type, by the standard deviation of a group */
};

/* Where a number goes that is in the middle between two codes. */
enum {
    TRINE_TIES_EVEN = 0, /* to the even code, as the OCP's formats */
    TRINE_TIES_AWAY = 1, /* away from 0 */
    TRINE_TIES_ZERO = 2  /* toward 0 */
};

typedef struct trine_quantize_args {
    size_t struct_size;         /* sizeof(trine_quantize_args) */
    const trine_tensor *x;      /* in r k */
    const trine_tensor *philox; /* in, optional [2], i64: in place of seed, and added to stream */
    const trine_tensor *codes;  /* out r groups bytes */
    const trine_tensor *scales; /* out r groups */
    const trine_tensor *zeros;  /* out, optional r groups: with it the range of codes is a group's own */
    uint64_t seed;              /* key of the generator; 0 where philox is given */
    uint64_t stream;            /* high half of its counter: another for every call */
    int32_t offset;             /* the code that stands for 0, -255 .. 255 */
    int32_t format;             /* TRINE_CODES_* */
    int32_t stochastic;         /* 1: up or down by chance, so that codes are right on average */
    int32_t upward;             /* 1: powers of two are rounded up, so that no number is clamped */
    int32_t powers;             /* TRINE_POWERS_* */
    int32_t ties;               /* TRINE_TIES_*, unless stochastic */
    float deviations;           /* of a fitted scale: the largest code, in standard deviations; 0: 2.92247856 */
} trine_quantize_args;

/* Quantization of rows by groups.
 *
 * A row of k numbers is cut into groups of k/groups. A group is `bytes` bytes of codes, a scale and perhaps a zero.
 *
 *     bits   = 8 bytes groups / k, a whole number from 1 to 8
 *     q      = x / scale
 *     code   = round(clamp(q, low - base, high - base)) + base,  base = offset + zero
 *     x     ~= (code - base) scale
 *
 * low .. high are the codes that there are: 0 .. 2^bits - 1 in u8, -2^(bits-1) .. 2^(bits-1) - 1 in i8, -6 .. 6 of
 * e2m1, -448 .. 448 in e4m3, -57344 .. 57344 in e5m2. Without zeros (symmetric) and with them (over the range of a
 * group, which always has 0):
 *
 *     scale  = max |x| / max(1, high - offset),                                    zero = 0
 *     scale  = max(x, 0) / (high - low) - min(x, 0) / (high - low),
 *     zero   = clamp(low - offset - round(min(x, 0) / scale), low - offset, high - offset)
 *
 * round goes to the nearest, from the middle to even or where ties says. With stochastic set a code is rounded up
 * instead where (w + 1/2) 2^-23 is below what is above the whole number beneath: w are the upper 23 bits of the word of
 * Philox4x32-10 that trine_dropout() would hold against its threshold, i being the element's number in x, in row-major
 * order. scale and zero are rounded to their type before they are used, a scale to at most the largest finite value.
 * Where the scale is 0, of a group of zeros or of values too small, q is 0. Of a group that has NaN or Inf the scale is
 * NaN and q is 0.
 *
 * A scale of e8m0 is a power of two, and with TRINE_POWERS_ALL so is one of any type. Without zeros it is that of the
 * OCP's formats, whose largest numbers may be clamped; with upward set, or with zeros, it is the smallest that is not
 * less than the scale above, so that none is. With TRINE_POWERS_FITTED, without zeros, it is QuEST's, which is fitted
 * to the standard deviation of a group:
 *
 *     2^(floor(log2(max |x|)) - floor(log2(max(1, high - offset))))  or  2^ceil(log2(scale))
 *     2^floor(log2(deviations/max(1, high - offset) std + 1e-8))
 *
 * It is from 2^-127 to 2^127, in f16 from 2^-24 to 2^15, also of a group of zeros. std = sqrt(mean x^2 - (mean x)^2), 0
 * where that is less, is f64, each operation rounded, but mean x, std and what std is multiplied by are rounded to f32.
 * Of both sums of a group element j is added to part j mod 32, by ascending j; then parts that are neighbours, 0 and 1,
 * 2 and 3 and so on, are added, and the sums of these, until one is left.
 *
 * e2m1 and float8: clamp(q, ...) + base is rounded to the nearest value, from the middle to the even code or where ties
 * says, or to one of its neighbours likewise; of e2m1 0 has no sign.
 *
 * MXFP4 is e2m1 with scales of e8m0 for groups of 32; Castro et al. take TRINE_TIES_ZERO and TRINE_POWERS_FITTED. Of
 * normal numbers least is lost with 4.25 deviations. Powers of two make scales shifts of whole numbers.
 *
 * Code j of a group is bits j bits .. (j+1) bits - 1 of its bytes, which are one number, the lowest byte first: of 4
 * bits the even ones are the lower halves of bytes. GPTQ's unsigned codes with offset 8 are u8 and offset 8; AWQ's are
 * u8 with zeros.
 *
 * Source: Jacob et al. 2018, section 2.1; Frantar et al. 2023 (GPTQ), the grid of its code; OCP Microscaling Formats
 * 1.0, sections 5.3.3 (e2m1), 5.3.1 (float8) and 6.3 (e8m0). Stochastic rounding: Gupta et al. 2015, section 3.1.
 * Fitted scales: Panferov et al. 2025 (QuEST); Castro et al. 2025 (Quartet), its code.
 *
 * Shapes: x is r k, codes r groups bytes, scales and zeros r groups. The last dimension is contiguous, leading strides
 * are free. k % groups = 0; the bits of a code are a whole number, and those of a group whole bytes.
 * Types: x is f32, bf16 or f16; codes u8, i8, or e4m3 or e5m2 of 8 bits; scales f32, f16, bf16 or e8m0; zeros the
 * same, but f32 beside e8m0. Arithmetic is f32, each operation rounded.
 * Parameters: offset moves codes, not values. format e2m1 takes codes of 4 bits in u8. deviations is from 2^-10 to
 * 2^10.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, codes, scales and zeros are those of the formula in f32, bit for bit, on every device.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; seed set beside philox; an output that overlaps another tensor),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_quantize(trine_queue *queue, const trine_quantize_args *args);

typedef struct trine_dequantize_args {
    size_t struct_size;         /* sizeof(trine_dequantize_args) */
    const trine_tensor *codes;  /* in r groups bytes */
    const trine_tensor *scales; /* in r groups */
    const trine_tensor *zeros;  /* in, optional r groups, in units of codes */
    const trine_tensor *mins;   /* in, optional r groups, in units of y */
    const trine_tensor *y;      /* out r k */
    int32_t offset;             /* the code that stands for 0, -255 .. 255 */
    int32_t format;             /* TRINE_CODES_* */
} trine_dequantize_args;

/* What codes stand for: trine_quantize() undone.
 *
 *     y = (code - offset - zero) scale + min
 *
 * with the scale, zero and min of the code's group; zero and min are 0 where their tensors are not given. How codes lie
 * in bytes, and what a code of e2m1 is, trine_quantize() says. zeros may be any numbers. GGUF's Q4_0 is offset 8, Q4_1
 * is mins, GPTQ and AWQ are zeros or offset 8. MX formats have scales of e8m0 for groups of 32.
 *
 * Source: Jacob et al. 2018, section 2.1, equation 1; OCP Microscaling Formats 1.0, section 5.3.3 (e2m1).
 *
 * Shapes: codes is r groups bytes, scales, zeros and mins r groups, y r k. The last dimension is contiguous, leading
 * strides are free. k % groups = 0; the bits of a code, 8 bytes groups / k, are a whole number from 1 to 8, and those
 * of a group whole bytes.
 * Types: codes u8, i8, or e4m3 or e5m2 of 8 bits; scales f32, f16, bf16 or e8m0; zeros and mins the same, but f32
 * beside e8m0; y f32, bf16 or f16. Arithmetic is f32, with one rounding at the end.
 * Parameters: format e2m1 takes codes of 4 bits in u8.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound: 3*2^-24 (|(code - offset - zero) scale| + |min|) and one rounding. Without zeros and mins the product is
 * rounded once to f32, and once to the type of y.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_dequantize(trine_queue *queue, const trine_dequantize_args *args);

typedef struct trine_quantize_blocks_args {
    size_t struct_size;         /* sizeof(trine_quantize_blocks_args) */
    const trine_tensor *x;      /* in r k */
    const trine_tensor *codes;  /* out r k */
    const trine_tensor *scales; /* out rows columns */
    int32_t upward;             /* 1: powers of two are rounded up, so that no number is clamped */
    int32_t powers;             /* TRINE_POWERS_E8M0 or TRINE_POWERS_ALL */
} trine_quantize_blocks_args;

/* Quantization of a matrix by blocks, to codes of a byte.
 *
 *     scale = max |x| / most,  over a block
 *     codes = round(clamp(x/scale))
 *
 * The matrix is cut into rows by columns blocks, each with a scale: one for all of it, one for each row, or as
 * DeepSeek-V3 has weights, one for each 128 by 128. Of a dimension with n elements and c scales a block is the power of
 * two of which n has c blocks, whole or not; if there is none, n/c rounded up, and the last blocks may have nothing.
 * trine_matmul_scaled() has the same rule.
 *
 * most is 127 of i8, 448 of e4m3 and 57344 of e5m2. Codes and scales are those that trine_quantize() has for a group
 * without zeros and offset 0: round goes to the nearest, to even from the middle, scale is rounded to its type before
 * it is used, to at most the largest finite value, or is a power of two as powers and upward say. Where it is 0,
 * x/scale is taken for 0. Of a block that has NaN or Inf the scale is NaN and codes are 0.
 *
 * Source: DeepSeek-AI 2024, section 3.3; Jacob et al. 2018, section 2.1; Micikevicius et al. 2022 (float8).
 *
 * Shapes: x and codes are r k, scales rows columns. The last dimension is contiguous, leading strides are free. There
 * is at least one scale along each dimension, and no more than elements.
 * Types: x is f32, bf16 or f16; codes i8, e4m3 or e5m2; scales f32, bf16, f16 or e8m0. Arithmetic is f32, each
 * operation rounded.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, codes and scales are those of the formula in f32, bit for bit, on every device.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; a
 * parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_quantize_blocks(trine_queue *queue, const trine_quantize_blocks_args *args);

typedef struct trine_dequantize_blocks_args {
    size_t struct_size;         /* sizeof(trine_dequantize_blocks_args) */
    const trine_tensor *codes;  /* in r k */
    const trine_tensor *scales; /* in rows columns */
    const trine_tensor *y;      /* out r k */
} trine_dequantize_blocks_args;

/* What codes of a byte stand for that have a scale for each block: trine_quantize_blocks() undone.
 *
 *     y = code scale
 *
 * with the scale of the code's block. What a block is trine_quantize_blocks() says.
 *
 * Source: DeepSeek-AI 2024, section 3.3.
 *
 * Shapes: codes and y are r k, scales rows columns, as of trine_quantize_blocks(). The last dimension is contiguous,
 * leading strides are free.
 * Types: codes are i8, e4m3 or e5m2; scales f32, bf16, f16 or e8m0; y f32, bf16 or f16. The product is rounded to f32,
 * and then to the type of y.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound: none, y is that product, bit for bit, on every device.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; y
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_dequantize_blocks(trine_queue *queue, const trine_dequantize_blocks_args *args);

typedef struct trine_hadamard_args {
    size_t struct_size;    /* sizeof(trine_hadamard_args) */
    const trine_tensor *x; /* in r n */
    const trine_tensor *y; /* out r n; may be x */
    float scale;           /* 0: 1 */
    int32_t transposed;    /* 1: by the transposed matrix, which undoes it but for a factor n */
} trine_hadamard_args;

/* Hadamard transform of rows.
 *
 *     y[i,:] = scale H x[i,:],  H = B (x) S
 *
 * S is Sylvester's matrix of order 2^p, S[a,b] = (-1)^(number of ones that a and b have in common as bits), and B one
 * of order 1, 12, 20 or 28: element b 2^p + s of a row belongs to row or column b of B and s of S. H has n rows of +1
 * and -1 that are orthogonal: H H^T = n, so that scale = 1/sqrt(n) makes it a rotation.
 *
 * B of order 12 is Paley's second for q = 5: C[0,0] = 0, other C[0,j] and C[i,0] are 1, C[i,j] = chi(i - j) with chi =
 * 0, 1, -1, -1, 1 of the difference modulo 5; then 0 is [[1, -1], [-1, -1]], and 1 is [[1, 1], [1, -1]]. Those of order
 * 20 and 28 are Williamson's:
 *
 *     [[P, Q, R, T], [-Q, P, -T, R], [-R, T, P, -Q], [-T, -R, Q, P]]
 *
 * of circulant matrices, each row being the one before moved to the right. Their first rows:
 *
 *     P = Q = +----, R = ++--+, T = +-++-                          of order 5
 *     P = +------, Q = ++----+, R = +-+--+-, T = +--++--           of order 7
 *
 * These are the matrices of the package fast-hadamard-transform.
 *
 * Source: Sylvester 1867; Paley 1933, lemma 3; Williamson 1944, section 4.
 *
 * Shapes: x and y are r n, n = 2^p, 12 2^p, 20 2^p or 28 2^p, at most 32768. The last dimension is contiguous, leading
 * strides are free.
 * Types: f32, bf16 or f16, the same for both. Accumulation is f32, with one rounding at the end.
 * Parameters: for a true zero in scale pass -0.0.
 * Aliasing: y may be x.
 *
 * Error bound: (log2(n) + 4) 2^-24 |scale| times the sum of |x| over the row, log2(n) rounded up, and one rounding;
 * spec/quantize/hadamard.c. Sums beyond f32 may overflow.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; n
 * that is none of these; scale not finite; y overlaps x otherwise than said), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_hadamard(trine_queue *queue, const trine_hadamard_args *args);

typedef struct trine_rms_norm_quantize_args {
    size_t struct_size;               /* sizeof(trine_rms_norm_quantize_args) */
    const trine_tensor *x;            /* in r k */
    const trine_tensor *weight;       /* in, optional k */
    const trine_tensor *residual;     /* in, optional r k */
    const trine_tensor *codes;        /* out r k */
    const trine_tensor *scales;       /* out r groups */
    const trine_tensor *y;            /* out, optional r k: what the codes stand for */
    const trine_tensor *residual_out; /* out, optional r k: h; may be residual */
    float eps;                        /* 0: 1e-6 */
    float weight_offset;              /* added to weight; Gemma has 1 */
    int32_t upward;                   /* 1: powers of two are rounded up, so that no number is clamped */
    int32_t powers;                   /* TRINE_POWERS_E8M0 or TRINE_POWERS_ALL */
} trine_rms_norm_quantize_args;

/* Root-mean-square normalization of x + residual, as codes of 8 bits.
 *
 *     h            = x + residual
 *     y[i,j]       = h[i,j] (weight[j] + weight_offset) / sqrt(mean_j h[i,j]^2 + eps)
 *     scale        = max |y| / most,  over a group of k/groups of a row
 *     codes        = round(clamp(y/scale))
 *     residual_out = h
 *
 * That is trine_rms_norm() and then trine_quantize() without zeros, but that y is not rounded to a type between them.
 * most is 127 of i8, whose codes are clamped to -128 .. 127; 448 of e4m3 and 57344 of e5m2, of which codes beyond the
 * largest are that. round goes to the nearest, to even from the middle. scale is rounded to its type before it is used,
 * to at most the largest finite value. Where it is 0, y/scale is taken for 0. Of a group that has NaN or Inf the scale
 * is NaN and codes are 0. The optional y is rounded to its type. No code is -0 of a y that is -0. A scale of e8m0,
 * or with TRINE_POWERS_ALL of any type, is the power of two that trine_quantize() has.
 *
 * Bits are the same on every device, since all operations are told. h is a sum of f32. Squares are f64, in which they
 * are exact. That of element j is added to sum j mod 2048, by ascending j; then sums that are neighbours, 0 and 1, 2
 * and 3 and so on, are added, and the sums of these, until one is left. v = sum/k + eps and 1/sqrt(v) are f64, each
 * operation rounded. 1/sqrt(v) = m 2^e with m rounded to f32 from 1 to 2, and y = (((h 2^(e div 2)) 2^(e - e div 2)) m)
 * (weight + weight_offset), div rounding down, each operation rounded to f32. So squares and y are finite for any
 * finite h. Where 1/sqrt(v) is 0, Inf or NaN it is m, and e is 0.
 *
 * Source: Zhang and Sennrich 2019, eq. 4; Jacob et al. 2018, section 2.1; Micikevicius et al. 2022 (float8).
 *
 * Shapes: matrices are r k, scales r groups, weight k. The last dimension is contiguous, leading strides are free.
 * k % groups = 0.
 * Types: x and y are f32, bf16 or f16. residual and residual_out are of the same type or f32; so is weight, on its own.
 * codes are i8, e4m3 or e5m2; scales f32, bf16, f16 or e8m0.
 * Parameters: eps >= 0; 0 means 1e-6, -0.0 zero.
 * Aliasing: residual_out may be residual.
 *
 * Error bound: none, all outputs are those of the formula as told above, bit for bit, on every device.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite or outside its range; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_rms_norm_quantize(trine_queue *queue, const trine_rms_norm_quantize_args *args);

/* What a gate becomes. */
enum {
    TRINE_GATE_SILU = 0, /* x sigmoid(x): SwiGLU */
    TRINE_GATE_GELU = 1  /* gelu by tanh: GeGLU */
};

typedef struct trine_swiglu_quantize_args {
    size_t struct_size;         /* sizeof(trine_swiglu_quantize_args) */
    const trine_tensor *gate;   /* in r k */
    const trine_tensor *up;     /* in r k */
    const trine_tensor *factor; /* in, optional k, f32 */
    const trine_tensor *codes;  /* out r k */
    const trine_tensor *scales; /* out r groups */
    const trine_tensor *y;      /* out, optional r k: what the codes stand for */
    int32_t activation;         /* TRINE_GATE_* */
    int32_t upward;             /* 1: powers of two are rounded up, so that no number is clamped */
    int32_t powers;             /* TRINE_POWERS_E8M0 or TRINE_POWERS_ALL */
} trine_swiglu_quantize_args;

/* SwiGLU or GeGLU, as codes of 8 bits.
 *
 *     y     = a(gate) up factor,  a(x) = x sigmoid(v),  sigmoid(v) = 1/(1 + exp(-v))
 *     scale = max |y| / most,  over a group of k/groups of a row
 *     codes = round(clamp(y/scale))
 *
 * v = x of TRINE_GATE_SILU, and 2 sqrt(2/pi) (x + 0.044715 x^3) of TRINE_GATE_GELU. That is trine_swiglu(), or
 * trine_geglu() in its form by tanh, and then trine_quantize() without zeros, but that y is not rounded to a type
 * between them. Without factor it is 1. most, codes and scales are those of trine_rms_norm_quantize(). The optional y
 * is rounded to its type.
 *
 * Bits are the same on every device, since all operations are told: each is f32's and rounded, none is fused to
 * another. v = x (x^2 c + d) with c = 7.13548139e-2 and d = 1.59576917. e = exp(-|v|) is taken from z = -|v|, or -105
 * if that is larger: n = round(1.44269504 z), s = (z - n 0.693359375) - n (-2.12194440e-4), e = (((s s) p + s) + 1)
 * 2^(n div 2) 2^(n - n div 2), where p is 1.38186966e-3, 8.36871564e-3, 4.16682921e-2, 1.66665211e-1, 4.9999994e-1 by
 * Horner's rule. sigmoid(v) is 1/(1 + e), or e/(1 + e) below 0, and y = ((x sigmoid(v)) up) factor. It is off by 8
 * units of 2^-24 of itself at most for SiLU, if no factor is subnormal, and for GELU by 3 |v| more.
 *
 * Source: Shazeer 2020, eq. 6; Jacob et al. 2018, section 2.1; Micikevicius et al. 2022 (float8); factor: Xiao et al.
 * 2023 (SmoothQuant), eq. 3.
 *
 * Shapes: matrices are r k, scales r groups, factor k. The last dimension is contiguous, leading strides are free.
 * k % groups = 0.
 * Types: gate, up and y are f32, bf16 or f16, the same for all; factor f32; codes i8, e4m3 or e5m2; scales f32, bf16,
 * f16 or e8m0.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, all outputs are those of the formula as told above, bit for bit, on every device.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_swiglu_quantize(trine_queue *queue, const trine_swiglu_quantize_args *args);

/* Where a word has its first code, and how the codes of eights lie. */
enum {
    TRINE_ORDER_ASCENDING = 0,  /* in its lowest bits; codes may lie across the words' ends */
    TRINE_ORDER_DESCENDING = 1, /* in its highest bits that have any: HQQ, and bytes whose upper half comes first */
    TRINE_ORDER_AWQ = 2         /* ascending, but 0, 2, 4, 6, 1, 3, 5, 7 of each eight */
};

typedef struct trine_pack_codes_args {
    size_t struct_size;         /* sizeof(trine_pack_codes_args) */
    const trine_tensor *codes;  /* in [p] q k */
    const trine_tensor *packed; /* out [p] q words */
    int32_t order;              /* TRINE_ORDER_* */
} trine_pack_codes_args;

/* Codes of a byte each, packed into words.
 *
 * A row of k codes becomes a row of words of 8 bits, in u8, or 32, in i32:
 *
 *     bits = floor(words width / k),  from 1 to 8,  width = 8 or 32
 *
 * are what a code has, and higher ones of its byte are passed over. Code j is bits j bits .. (j+1) bits - 1 of a row,
 * bit i of a row being bit i mod width of word floor(i / width). In TRINE_ORDER_AWQ code 8 b + c is where code 8 b +
 * s(c) would be, s = 0, 4, 1, 5, 2, 6, 3, 7. In TRINE_ORDER_DESCENDING a word has c = k/words codes, and the one at
 * place j of them is bits (c-1-j) bits .. (c-j) bits - 1. Other bits are 0.
 *
 * Strides are free, so that views of a tensor are what is packed along any of its dimensions. What others have of a
 * matrix of n rows and k columns, `codes` having n rows of k bytes, and what trine_matmul_quantized() takes:
 *
 *     what                             codes, strides                  packed, strides           order
 *     here, u8 [n,groups,bytes]        n groups k/groups, contiguous   contiguous                ascending
 *     GPTQ's weights, i32 [k bits/32,n]      n k, k 1                  n k bits/32, 1 n          ascending
 *     GPTQ's zeros, i32 [groups,n bits/32]   groups n, 1 groups        contiguous                ascending
 *     AWQ's weights, i32 [k,n/8]             k n, 1 k                  contiguous                AWQ
 *     AWQ's zeros, i32 [groups,n/8]          groups n, 1 groups        contiguous                AWQ
 *     HQQ's, u8 [n/c,k], c = 8/bits          n/c k c, k 1 k n/c        n/c k 1, contiguous       descending
 *     HQQ's of 3 bits, i32 [n/10,k]          n/10 k 10, k 1 k n/10     n/10 k 1, contiguous      descending
 *
 * HQQ's rows are those of groups, n being the rows times the groups; those of 3 bits it fills up to a multiple of 10.
 *
 * Source: by definition; Frantar et al. 2022 (GPTQ), Lin et al. 2024 (AWQ) and Badri and Shaji 2023 (HQQ), the formats
 * of their code.
 *
 * Shapes: codes is [p] q k, packed [p] q words. words width from k to 8 k, words = 0 where k = 0, or less than width
 * more. In TRINE_ORDER_AWQ k % 8 = 0, in TRINE_ORDER_DESCENDING k % words = 0.
 * Types: codes is u8, or i8 of numbers in two's complement; packed u8 or i32.
 * Parameters: order says which code is where.
 * Aliasing: packed may not overlap codes.
 *
 * Error bound: none, bits are bits.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; a
 * parameter out of range; packed overlaps itself or codes), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_pack_codes(trine_queue *queue, const trine_pack_codes_args *args);

typedef struct trine_unpack_codes_args {
    size_t struct_size;         /* sizeof(trine_unpack_codes_args) */
    const trine_tensor *packed; /* in [p] q words */
    const trine_tensor *codes;  /* out [p] q k */
    int32_t order;              /* TRINE_ORDER_* */
} trine_unpack_codes_args;

/* Codes in words, a byte each: trine_pack_codes() undone.
 *
 * Where codes lie trine_pack_codes() says, and what others call these layouts. A code becomes a number from 0 to
 * 2^bits - 1 in u8, and one in two's complement, from -2^(bits-1), in i8. Weights of GPTQ that are not in the order of
 * their groups (act-order) are put in order between this and trine_pack_codes(), by trine_gather_rows() on codes of
 * shape k n.
 *
 * Source: as of trine_pack_codes().
 *
 * Shapes: packed is [p] q words, codes [p] q k, as of trine_pack_codes(). Strides are free.
 * Types: packed is u8 or i32; codes u8 or i8.
 * Parameters: order says which code is where.
 * Aliasing: codes may not overlap packed.
 *
 * Error bound: none, bits are bits.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; a
 * parameter out of range; codes overlaps itself or packed), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_unpack_codes(trine_queue *queue, const trine_unpack_codes_args *args);

#ifdef __cplusplus
}
#endif

#endif
