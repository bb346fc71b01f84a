/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d_backward: the table and the reference. */
#include <stdlib.h>

#include <trine/conv.h>

#include "pool.h"

#define ARGS trine_pool2d_backward_args

/* Bound, with u the accumulator's unit roundoff: of a mean's gradient each term is a quotient, off by two roundings at
 * most; a sum of count terms adds count - 1, one is for second order and one for the rounding to T: (count + 3) u of
 * the sum of |terms|. */
typedef struct sums {
    double *value, *size, *count; /* of each element of x: of the terms, of their absolute values, and their number */
} sums;

static void add(const sums *to, int64_t at, double term) {
    to->value[at] += term, to->size[at] += trine_finite_abs(term), to->count[at]++;
}

static void add_window(const pool *a, const ARGS *args, const sums *to, int64_t at, double dy) {
    const int64_t c = at % a->c, q = at / a->c % a->w.out, p = at / (a->c * a->w.out) % a->h.out,
                  n = at / (a->c * a->w.out * a->h.out), image = n * a->h.in * a->w.in;
    int64_t count;
    const int64_t best = pool_largest(a, n, p, q, c, &count);
    if (args->kind == TRINE_POOL2D_MAX) {
        if (best >= 0) add(to, (image + best) * a->c + c, dy);
        return;
    }
    const double over = args->kind == TRINE_POOL2D_MEAN ? (double)count : (double)a->h.kernel * (double)a->w.kernel;
    for (int64_t i = 0; i < a->h.kernel; i++)
        for (int64_t j = 0; j < a->w.kernel; j++) {
            const int64_t place = pool_place(a, p, q, i, j);
            if (place >= 0) add(to, (image + place) * a->c + c, dy / over);
        }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const pool a = POOL_OF(ref, args);
    const trine_dtype type = trine_ref_type(ref, "T");
    const double *dy = trine_ref_value(ref, "dy"), largest = trine_largest(type == TRINE_F64 ? TRINE_F64 : TRINE_F32);
    double *magnitude = trine_ref_magnitude(ref, "dx"), *slack = trine_ref_slack(ref, "dx");
    const int64_t elements = a.n * a.h.in * a.w.in * a.c;
    const sums to = { trine_ref_value(ref, "dx"), magnitude, calloc((size_t)elements + 1, sizeof(double)) };
    for (int64_t i = 0; i < elements; i++) to.value[i] = 0;
    for (int64_t i = 0; i < a.n * a.h.out * a.w.out * a.c; i++) add_window(&a, args, &to, i, dy[i]);
    for (int64_t i = 0; i < elements; i++) {
        slack[i] = 2 * trine_smallest_normal(type) * trine_unit_roundoff(type) + to.count[i] * 0x1p-149;
        if (type == TRINE_F64) slack[i] = (to.count[i] + 2) * 0x1p-1074;
        if (args->kind == TRINE_POOL2D_MAX && to.count[i] <= 1) slack[i] = 0;
        magnitude[i] = magnitude[i] < largest ? magnitude[i] * (to.count[i] + 3) : INFINITY;
        if (args->kind == TRINE_POOL2D_MAX && to.count[i] <= 1) magnitude[i] = 0;
    }
    free(to.count);
}

const trine_spec trine_spec_pool2d_backward = {
    SPEC(pool2d_backward),
    .summary = "Gradient of pool2d",
    .formula = "dx[n,h,w,c] = sum of dy[n,p,q,c] over the windows (p,q) whose largest is x[n,h,w,c], of equal ones the "
               "first, of several NaN the last; or, for means, over those that hold it, of dy[n,p,q,c] over the number "
               "that the mean is over",
    .source = "the derivative of pool2d's formula; PyTorch's max_pool2d",
    .tensors = { TENSOR(dy, IN | ANY_STRIDE, "T", "n p q c"), TENSOR(x, IN | ANY_STRIDE, "T", "n h w c"),
                 TENSOR(dx, OUT | ANY_STRIDE, "T", "n h w c", .terms = "1") },
    .params = { PARAM(kind, ENUM, .values = "max mean mean_padded", .doc = "TRINE_POOL2D_*: the forward's"),
                POOL_KERNEL(kernel_h, "the forward's"), POOL_KERNEL(kernel_w, "the forward's"),
                POOL_STRIDE(stride_h, "kernel_h", "the forward's"), POOL_STRIDE(stride_w, "kernel_w", "the forward's"),
                POOL_PAD(pad_top, "the forward's"), POOL_PAD(pad_left, "the forward's"),
                POOL_DILATION(dilation_h, "the forward's"), POOL_DILATION(dilation_w, "the forward's") },
    .types = { "T=f32|f16|bf16|f64" },
    .flops = "9*n*p*q*c",
    .independent = "n",
    .sizes = { "n: 1 0 2 3", "h: 7 0 1 2 5 14 30", "w: 7 0 1 2 5 14 33 1000", "c: 8 0 1 3 16 31 64 130 1000",
               "p: 4 0 1 3 7 15", "q: 4 0 1 2 7 17 500" },
    .cases = { "resnet50 max: T=f32 n=8 h=112 w=112 c=64 p=56 q=56 kernel_h=3 kernel_w=3 stride_h=2 stride_w=2 "
               "pad_top=1 pad_left=1",
               "resnet50 max bf16: T=bf16 n=32 h=112 w=112 c=64 p=56 q=56 kernel_h=3 kernel_w=3 stride_h=2 stride_w=2 "
               "pad_top=1 pad_left=1",
               "resnet50 global mean: T=f32 n=32 h=7 w=7 c=2048 p=1 q=1 kind=mean kernel_h=7 kernel_w=7",
               "inception mean: T=f32 n=8 h=35 w=35 c=288 p=35 q=35 kind=mean_padded kernel_h=3 kernel_w=3 stride_h=1 "
               "stride_w=1 pad_top=1 pad_left=1" },
    .reference = reference,
};
