/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d: the table and the reference. */
#include <trine/conv.h>

#include "conv.h"

#define ARGS trine_conv2d_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    conv_shape s = conv_shape_of(ref);
    s.axis[0] = (conv_axis){ 1, 1, 1, 1, 0, 1 };
    s.axis[1] = (conv_axis){ trine_ref_dim(ref, "h"), trine_ref_dim(ref, "r"), trine_ref_dim(ref, "p"),
                             args->stride_h,          args->pad_top,           args->dilation_h };
    s.axis[2] = (conv_axis){ trine_ref_dim(ref, "w"), trine_ref_dim(ref, "s"), trine_ref_dim(ref, "q"),
                             args->stride_w,          args->pad_left,          args->dilation_w };
    conv_reference(ref, &s);
}

const trine_spec trine_spec_conv2d = {
    SPEC(conv2d),
    .summary = "A convolution of images, in groups of channels",
    .formula = "y[n,p,q,k] = bias[k] + sum over i < r, j < s, l < cg of weight[k,i,j,l] x[n, p stride_h - pad_top + i "
               "dilation_h, q stride_w - pad_left + j dilation_w, g cg + l], g = k/(K/G), G = c/cg; x is 0 beyond its "
               "edges",
    .source = "LeCun et al. 1998, section II; Krizhevsky et al. 2012, section 3.5; Yu and Koltun 2016, section 2; "
              "Howard et al. 2017, section 3.1",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "T", "n h w c"), TENSOR(weight, IN | ANY_STRIDE, "T", "k r s cg"),
                 TENSOR(bias, IN | OPTIONAL | ANY_STRIDE, "B", "k"),
                 TENSOR(y, OUT | ANY_STRIDE, "T", "n p q k", .terms = "r*s*cg + 4") },
    .params = { CONV_STEP(stride_h, "rows of x from one row of y to the next"),
                CONV_STEP(stride_w, "columns of x from one column of y to the next"),
                CONV_PAD(pad_top, "rows of zeros before the first of x"),
                CONV_PAD(pad_left, "columns of zeros before the first of x"),
                CONV_STEP(dilation_h, "rows of x from one row of weight to the next"),
                CONV_STEP(dilation_w, "columns of x from one column of weight to the next") },
    .types = { "T=f32 B=f32", "T=f16 B=f16|f32", "T=bf16 B=bf16|f32", "T=f64 B=f64" },
    .require = { CONV_GROUPS },
    .flops = "2*n*p*q*k*r*s*cg",
    .independent = "n",
    .integers_exact = true,
    .sizes = { "n: 1 0 2 3", "h: 7 0 1 2 5 14 30", "w: 7 0 1 2 5 14 33 1000",
               "c: 8 0 1 2 3 4 6 12 16 16 24 32 64 64 128 130", "cg: 1 1 0 2 3 4 8 8 12 16 16 32 64 64",
               "k: 8 0 1 2 4 6 12 16 24 32 64 100 130", "r: 3 0 1 2 5", "s: 3 0 1 2 5 7", "p: 7 0 1 3 5 14 30",
               "q: 7 0 1 2 5 14 33 1000" },
    .cases = { "resnet50 conv1: T=f32 n=1 h=224 w=224 c=3 cg=3 k=64 r=7 s=7 p=112 q=112 stride_h=2 stride_w=2 "
               "pad_top=3 pad_left=3",
               "resnet50 3x3 64: T=f32 n=1 h=56 w=56 c=64 cg=64 k=64 r=3 s=3 p=56 q=56 pad_top=1 pad_left=1",
               "resnet50 1x1 256: T=f32 n=1 h=56 w=56 c=64 cg=64 k=256 r=1 s=1 p=56 q=56 +bias",
               "resnet50 3x3 512: T=f32 n=1 h=7 w=7 c=512 cg=512 k=512 r=3 s=3 p=7 q=7 pad_top=1 pad_left=1",
               "resnet50 3x3 256 stride 2: T=f32 n=1 h=28 w=28 c=256 cg=256 k=256 r=3 s=3 p=14 q=14 stride_h=2 "
               "stride_w=2 pad_top=1 pad_left=1",
               "resnet50 3x3 128, 32 images: T=bf16 B=f32 n=32 h=28 w=28 c=128 cg=128 k=128 r=3 s=3 p=28 q=28 "
               "pad_top=1 pad_left=1 +bias",
               "resnext50 3x3, 32 groups: T=f32 n=1 h=56 w=56 c=128 cg=4 k=128 r=3 s=3 p=56 q=56 pad_top=1 pad_left=1",
               "convnext 7x7 depthwise: T=f32 n=1 h=56 w=56 c=96 cg=1 k=96 r=7 s=7 p=56 q=56 pad_top=3 pad_left=3 "
               "+bias",
               "convnext 7x7 depthwise bf16, 32 images: T=bf16 B=f32 n=32 h=28 w=28 c=192 cg=1 k=192 r=7 s=7 p=28 q=28 "
               "pad_top=3 pad_left=3 +bias",
               "aspp 3x3, dilation 12: T=f16 B=f16 n=1 h=65 w=65 c=256 cg=256 k=256 r=3 s=3 p=65 q=65 pad_top=12 "
               "pad_left=12 dilation_h=12 dilation_w=12" },
    .reference = reference,
};
