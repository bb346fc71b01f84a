/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward: the table and the reference. */
#include <trine/conv.h>

#include "conv.h"

#define ARGS trine_conv2d_backward_args

typedef struct gradients {
    conv_shape s;
    const double *dy, *x, *weight;
    int64_t p, q;
} gradients;

/* The output position that tap `tap` leads to `at` from; -1: there is none; -2: beyond dy's edges. */
static int64_t position_of(const conv_axis *a, int64_t at, int64_t tap) {
    const int64_t scaled = at + a->pad - tap * a->dilation;
    if (scaled % a->stride != 0) return -1;
    return scaled < 0 || scaled / a->stride >= a->out ? -2 : scaled / a->stride;
}

static void put_dx(trine_ref *ref, const gradients *g) {
    const conv_shape *s = &g->s;
    const conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const double count = (double)h->taps * (double)w->taps * (double)s->kg;
    for (int64_t at = 0; at < s->n * h->in * w->in * s->c; at++) {
        const int64_t c = at % s->c, col = at / s->c % w->in, row = at / (s->c * w->in) % h->in,
                      n = at / (s->c * w->in * h->in), first = c / s->cg * s->kg;
        conv_sum sum = { 0 };
        for (int64_t r = 0; r < h->taps; r++)
            for (int64_t j = 0; j < w->taps; j++) {
                const int64_t p = position_of(h, row, r), q = position_of(w, col, j);
                for (int64_t k = first; p != -1 && q != -1 && k < first + s->kg; k++)
                    conv_add(s, &sum, p >= 0 && q >= 0 ? g->dy[((n * h->out + p) * w->out + q) * s->k + k] : 0,
                             g->weight[((k * h->taps + r) * w->taps + j) * s->cg + c % s->cg]);
            }
        conv_put(ref, "dx", at, s, &sum, count, 0, s->type);
    }
}

static void put_dweight(trine_ref *ref, const gradients *g) {
    const conv_shape *s = &g->s;
    const conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const double count = (double)s->n * (double)h->out * (double)w->out;
    for (int64_t at = 0; at < s->k * h->taps * w->taps * s->cg; at++) {
        const int64_t l = at % s->cg, j = at / s->cg % w->taps, r = at / (s->cg * w->taps) % h->taps,
                      k = at / (s->cg * w->taps * h->taps), c = k / s->kg * s->cg + l;
        conv_sum sum = { 0 };
        for (int64_t i = 0; i < s->n * h->out * w->out; i++) {
            const int64_t row = conv_source(h, i / w->out % h->out, r), col = conv_source(w, i % w->out, j),
                          n = i / (w->out * h->out);
            conv_add(s, &sum, g->dy[i * s->k + k],
                     row >= 0 && col >= 0 ? g->x[((n * h->in + row) * w->in + col) * s->c + c] : 0);
        }
        conv_put(ref, "dweight", at, s, &sum, count, 0, s->type);
    }
}

/* dbias is a sum of dy times 1. */
static void put_dbias(trine_ref *ref, const gradients *g) {
    const conv_shape *s = &g->s;
    const int64_t count = s->n * s->axis[1].out * s->axis[2].out;
    for (int64_t k = 0; k < s->k; k++) {
        conv_sum sum = { 0 };
        for (int64_t i = 0; i < count; i++) conv_add(s, &sum, g->dy[i * s->k + k], 1);
        conv_put(ref, "dbias", k, s, &sum, (double)count, 0, trine_ref_type(ref, "B"));
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    gradients g = { .s = conv_shape_of(ref),
                    .dy = trine_ref_value(ref, "dy"),
                    .x = trine_ref_value(ref, "x"),
                    .weight = trine_ref_value(ref, "weight") };
    g.s.axis[1] = (conv_axis){ trine_ref_dim(ref, "h"), trine_ref_dim(ref, "r"), trine_ref_dim(ref, "p"),
                               args->stride_h,          args->pad_top,           args->dilation_h };
    g.s.axis[2] = (conv_axis){ trine_ref_dim(ref, "w"), trine_ref_dim(ref, "s"), trine_ref_dim(ref, "q"),
                               args->stride_w,          args->pad_left,          args->dilation_w };
    if (trine_ref_value(ref, "dx")) put_dx(ref, &g);
    if (trine_ref_value(ref, "dweight")) put_dweight(ref, &g);
    if (trine_ref_value(ref, "dbias")) put_dbias(ref, &g);
}

const trine_spec trine_spec_conv2d_backward = {
    SPEC(conv2d_backward),
    .summary = "Gradient of conv2d",
    .formula =
        "dx[n,h,w,g cg+l] = sum over k of group g, i < r and j < s for which p and q are integers of weight[k,i,j,l] "
        "dy[n,p,q,k], p = (h + pad_top - i dilation_h)/stride_h, q = (w + pad_left - j dilation_w)/stride_w; "
        "dweight[k,i,j,l] = sum over n, p and q of dy[n,p,q,k] x[n, p stride_h - pad_top + i dilation_h, q stride_w - "
        "pad_left + j dilation_w, g cg + l]; dbias[k] = sum over n, p and q of dy[n,p,q,k]; dy and x are 0 beyond "
        "their edges",
    .source = "the derivative of conv2d's formula",
    .tensors = { TENSOR(dy, IN | ANY_STRIDE, "T", "n p q k"), TENSOR(x, IN | ANY_STRIDE, "T", "n h w c"),
                 TENSOR(weight, IN | ANY_STRIDE, "T", "k r s cg"),
                 TENSOR(dx, OUT | OPTIONAL | ANY_STRIDE, "T", "n h w c", .terms = "r*s*k*cg/max(c,1) + 4"),
                 TENSOR(dweight, OUT | OPTIONAL | ANY_STRIDE, "T", "k r s cg", .terms = "n*p*q + 4"),
                 TENSOR(dbias, OUT | OPTIONAL | ANY_STRIDE, "B", "k", .terms = "n*p*q + 4") },
    .params = { CONV_STEP(stride_h, "the forward's"), CONV_STEP(stride_w, "the forward's"),
                CONV_PAD(pad_top, "the forward's"), CONV_PAD(pad_left, "the forward's"),
                CONV_STEP(dilation_h, "the forward's"), CONV_STEP(dilation_w, "the forward's") },
    .types = { "T=f32 B=f32", "T=f16 B=f16|f32", "T=bf16 B=bf16|f32", "T=f64 B=f64" },
    .require = { CONV_GROUPS, "dx | dweight | dbias" },
    .flops = "4*n*p*q*k*r*s*cg",
    .independent = "n",
    .integers_exact = true,
    .sizes = { "n: 1 0 2 3", "h: 7 0 1 2 5 14 30", "w: 7 0 1 2 5 14 33 1000",
               "c: 8 0 1 2 3 4 6 12 16 16 24 32 64 64 128 130", "cg: 1 1 0 2 3 4 8 8 12 16 16 32 64 64",
               "k: 8 0 1 2 4 6 12 16 24 32 64 100 130", "r: 3 0 1 2 5", "s: 3 0 1 2 5 7", "p: 7 0 1 3 5 14 30",
               "q: 7 0 1 2 5 14 33 1000" },
    .cases = { "resnet50 3x3 64: T=f32 n=2 h=56 w=56 c=64 cg=64 k=64 r=3 s=3 p=56 q=56 pad_top=1 pad_left=1 +dx "
               "+dweight",
               "resnet50 1x1 256: T=f32 n=2 h=56 w=56 c=64 cg=64 k=256 r=1 s=1 p=56 q=56 +dx +dweight",
               "resnet50 3x3 256 stride 2: T=f32 n=2 h=28 w=28 c=256 cg=256 k=256 r=3 s=3 p=14 q=14 stride_h=2 "
               "stride_w=2 pad_top=1 pad_left=1 +dx +dweight",
               "resnet50 3x3 128, 32 images: T=bf16 B=f32 n=32 h=28 w=28 c=128 cg=128 k=128 r=3 s=3 p=28 q=28 "
               "pad_top=1 pad_left=1 +dx +dweight +dbias",
               "convnext 7x7 depthwise: T=f32 n=2 h=56 w=56 c=96 cg=1 k=96 r=7 s=7 p=56 q=56 pad_top=3 pad_left=3 +dx "
               "+dweight +dbias",
               "convnext 7x7 depthwise bf16, 32 images: T=bf16 B=f32 n=32 h=28 w=28 c=192 cg=1 k=192 r=7 s=7 p=28 q=28 "
               "pad_top=3 pad_left=3 +dx +dweight +dbias" },
    .reference = reference,
};
