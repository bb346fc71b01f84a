/* SPDX-License-Identifier: Apache-2.0 */
/* conv3d: the table and the reference. */
#include <trine/conv.h>

#include "conv.h"

#define ARGS trine_conv3d_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    conv_shape s = conv_shape_of(ref);
    s.axis[0] = (conv_axis){ trine_ref_dim(ref, "d"), trine_ref_dim(ref, "t"), trine_ref_dim(ref, "o"),
                             args->stride_d,          args->pad_front,         args->dilation_d };
    s.axis[1] = (conv_axis){ trine_ref_dim(ref, "h"), trine_ref_dim(ref, "r"), trine_ref_dim(ref, "p"),
                             args->stride_h,          args->pad_top,           args->dilation_h };
    s.axis[2] = (conv_axis){ trine_ref_dim(ref, "w"), trine_ref_dim(ref, "s"), trine_ref_dim(ref, "q"),
                             args->stride_w,          args->pad_left,          args->dilation_w };
    conv_reference(ref, &s);
}

const trine_spec trine_spec_conv3d = {
    SPEC(conv3d),
    .summary = "A convolution of volumes, in groups of channels",
    .formula = "y[n,o,p,q,k] = bias[k] + sum over m < t, i < r, j < s, l < cg of weight[k,m,i,j,l] x[n, o stride_d - "
               "pad_front + m dilation_d, p stride_h - pad_top + i dilation_h, q stride_w - pad_left + j dilation_w, g "
               "cg + l], g = k/(K/G), G = c/cg; x is 0 beyond its edges",
    .source = "Tran et al. 2015, section 3; Krizhevsky et al. 2012, section 3.5",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "T", "n d h w c"), TENSOR(weight, IN | ANY_STRIDE, "T", "k t r s cg"),
                 TENSOR(bias, IN | OPTIONAL | ANY_STRIDE, "B", "k"),
                 TENSOR(y, OUT | ANY_STRIDE, "T", "n o p q k", .terms = "t*r*s*cg + 4") },
    .params = { CONV_STEP(stride_d, "planes of x from one plane of y to the next"),
                CONV_STEP(stride_h, "rows of x from one row of y to the next"),
                CONV_STEP(stride_w, "columns of x from one column of y to the next"),
                CONV_PAD(pad_front, "planes of zeros before the first of x"),
                CONV_PAD(pad_top, "rows of zeros before the first of x"),
                CONV_PAD(pad_left, "columns of zeros before the first of x"),
                CONV_STEP(dilation_d, "planes of x from one plane of weight to the next"),
                CONV_STEP(dilation_h, "rows of x from one row of weight to the next"),
                CONV_STEP(dilation_w, "columns of x from one column of weight to the next") },
    .types = { "T=f32 B=f32", "T=f16 B=f16|f32", "T=bf16 B=bf16|f32", "T=f64 B=f64" },
    .require = { CONV_GROUPS },
    .flops = "2*n*o*p*q*k*t*r*s*cg",
    .independent = "n",
    .integers_exact = true,
    .sizes = { "n: 1 0 2", "d: 5 0 1 2 8", "h: 5 0 1 2 9", "w: 7 0 1 2 5 14 33 1000", "c: 8 0 1 2 3 4 6 12 16 32 64",
               "cg: 1 1 0 2 3 4 8 16 32", "k: 8 0 1 2 4 6 12 16 32 64", "t: 3 0 1 2", "r: 3 0 1 2", "s: 3 0 1 2 5",
               "o: 5 0 1 3 8", "p: 5 0 1 3 9", "q: 7 0 1 2 5 14 33 1000" },
    .cases = { "c3d conv2: T=f32 n=1 d=16 h=56 w=56 c=64 cg=64 k=128 t=3 r=3 s=3 o=16 p=56 q=56 pad_front=1 pad_top=1 "
               "pad_left=1",
               "bf16 32: T=bf16 B=f32 n=1 d=32 h=32 w=64 c=64 cg=64 k=64 t=3 r=3 s=3 o=32 p=32 q=64 pad_front=1 "
               "pad_top=1 pad_left=1 +bias",
               "patches of video: T=bf16 B=bf16 n=1 d=16 h=224 w=224 c=3 cg=3 k=768 t=2 r=16 s=16 o=8 p=14 q=14 "
               "stride_d=2 stride_h=16 stride_w=16 +bias",
               "depthwise: T=f32 n=1 d=8 h=28 w=28 c=144 cg=1 k=144 t=3 r=3 s=3 o=8 p=28 q=28 pad_front=1 pad_top=1 "
               "pad_left=1" },
    .reference = reference,
};
