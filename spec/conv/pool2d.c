/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d: the table and the reference. */
#include <trine/conv.h>

#include "pool.h"

#define ARGS trine_pool2d_args

static void put_mean(trine_ref *ref, const pool *a, int64_t at, int64_t n, int64_t p, int64_t q, bool padded) {
    double sum = 0, size = 0, count = 0;
    for (int64_t i = 0; i < a->h.kernel; i++)
        for (int64_t j = 0; j < a->w.kernel; j++) {
            const int64_t place = pool_place(a, p, q, i, j);
            if (place < 0) continue;
            const double x = a->x[(n * a->h.in * a->w.in + place) * a->c + at % a->c];
            sum += x, size += trine_finite_abs(x), count++;
        }
    const trine_dtype type = trine_ref_type(ref, "T");
    const double terms = count, over = padded ? (double)a->h.kernel * (double)a->w.kernel : fmax(count, 1);
    trine_ref_value(ref, "y")[at] = sum / over;
    trine_ref_slack(ref, "y")[at] = 2 * trine_smallest_normal(type) * trine_unit_roundoff(type) + 0x1p-1074;
    trine_ref_magnitude(ref, "y")[at] =
        size < trine_largest(type == TRINE_F64 ? TRINE_F64 : TRINE_F32) ? (terms + 3) * (size / over) : INFINITY;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const pool a = POOL_OF(ref, args);
    double *y = trine_ref_value(ref, "y"), *indices = trine_ref_value(ref, "indices");
    for (int64_t at = 0; at < a.n * a.h.out * a.w.out * a.c; at++) {
        const int64_t q = at / a.c % a.w.out, p = at / (a.c * a.w.out) % a.h.out, n = at / (a.c * a.w.out * a.h.out);
        if (indices) indices[at] = -1;
        if (args->kind != TRINE_POOL2D_MAX) {
            put_mean(ref, &a, at, n, p, q, args->kind == TRINE_POOL2D_MEAN_PADDED);
            continue;
        }
        int64_t count;
        const int64_t best = pool_largest(&a, n, p, q, at % a.c, &count);
        y[at] = best < 0 ? -INFINITY : a.x[(n * a.h.in * a.w.in + best) * a.c + at % a.c];
        if (indices) indices[at] = (double)best;
    }
}

const trine_spec trine_spec_pool2d = {
    SPEC(pool2d),
    .summary = "The largest, or the mean, of windows of images",
    .formula = "y[n,p,q,c] = max or mean over i < kernel_h, j < kernel_w of x[n, p stride_h - pad_top + i dilation_h, "
               "q stride_w - pad_left + j dilation_w, c], of those within x; NaN if one of them is; indices = h W + w "
               "of the largest, of equal ones the first, of several NaN the last, -1 if there is none",
    .source = "LeCun et al. 1998, section II; PyTorch's max_pool2d and avg_pool2d",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "T", "n h w c"), TENSOR(y, OUT | ANY_STRIDE, "T", "n p q c", .terms = "1"),
                 TENSOR(indices, OUT | OPTIONAL | EXACT | ANY_STRIDE, "i64", "n p q c") },
    .params = { PARAM(kind, ENUM, .values = "max mean mean_padded", .doc = "TRINE_POOL2D_*: what is made of a window"),
                POOL_KERNEL(kernel_h, "rows of a window"), POOL_KERNEL(kernel_w, "columns of a window"),
                POOL_STRIDE(stride_h, "kernel_h", "rows of x from one window to the next"),
                POOL_STRIDE(stride_w, "kernel_w", "columns of x from one window to the next"),
                POOL_PAD(pad_top, "rows of windows before the first of x"),
                POOL_PAD(pad_left, "columns of windows before the first of x"),
                POOL_DILATION(dilation_h, "rows of x from one row of a window to the next"),
                POOL_DILATION(dilation_w, "columns of x from one column of a window to the next") },
    .types = { "T=f32|f16|bf16|f64" },
    .flops = "9*n*p*q*c",
    .independent = "n",
    .sizes = { "n: 1 0 2 3", "h: 7 0 1 2 5 14 30", "w: 7 0 1 2 5 14 33 1000", "c: 8 0 1 3 16 31 64 130 1000",
               "p: 4 0 1 3 7 15", "q: 4 0 1 2 7 17 500" },
    .cases = { "resnet50 max: T=f32 n=8 h=112 w=112 c=64 p=56 q=56 kernel_h=3 kernel_w=3 stride_h=2 stride_w=2 "
               "pad_top=1 pad_left=1",
               "resnet50 max bf16, with indices: T=bf16 n=32 h=112 w=112 c=64 p=56 q=56 kernel_h=3 kernel_w=3 "
               "stride_h=2 stride_w=2 pad_top=1 pad_left=1 +indices",
               "resnet50 global mean: T=f32 n=32 h=7 w=7 c=2048 p=1 q=1 kind=mean kernel_h=7 kernel_w=7",
               "inception mean: T=f32 n=8 h=35 w=35 c=288 p=35 q=35 kind=mean_padded kernel_h=3 kernel_w=3 stride_h=1 "
               "stride_w=1 pad_top=1 pad_left=1" },
    .reference = reference,
};
