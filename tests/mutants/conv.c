/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of convolutions and pooling. */
#include "mutant.h"

static void put_param(trine_ref *ref, void *args, const char *name, double value) {
    trine_param_set(ref->plan, trine_plan_find_param(ref->plan, name), args, value);
}
static double param_of(trine_ref *ref, const void *args, const char *name) {
    return trine_param_get(ref->plan, trine_plan_find_param(ref->plan, name), args);
}

static void exchange(trine_ref *ref, void *args, const char *a, const char *b) {
    const double first = param_of(ref, args, a);
    put_param(ref, args, a, param_of(ref, args, b));
    put_param(ref, args, b, first);
}

/* Height and width are exchanged. */
static void strides_exchanged(trine_ref *ref, void *args) { exchange(ref, args, "stride_h", "stride_w"); }
static void pads_exchanged(trine_ref *ref, void *args) { exchange(ref, args, "pad_top", "pad_left"); }
static void dilations_exchanged(trine_ref *ref, void *args) { exchange(ref, args, "dilation_h", "dilation_w"); }
static void kernels_exchanged(trine_ref *ref, void *args) { exchange(ref, args, "kernel_h", "kernel_w"); }

/* Weights are turned along the width, as of a convolution in the sense of signal processing. */
static void weights_turned(trine_ref *ref, void *args) {
    (void)args;
    const int64_t s = D("s"), cg = D("cg"), lines = s * cg > 0 ? D("k") * D("r") : 0;
    for (int64_t i = 0; i < lines * s / 2; i++)
        for (int64_t l = 0; l < cg; l++) {
            if (s < 2) return;
            const int64_t line = i / (s / 2), j = i % (s / 2);
            if (line >= lines) return;
            double *a = V("weight") + (line * s + j) * cg + l, *b = V("weight") + (line * s + s - 1 - j) * cg + l;
            const double first = *a;
            *a = *b, *b = first;
        }
}

/* All groups have the channels of the first one. */
static void first_group(trine_ref *ref, void *args) {
    (void)args;
    const int64_t c = D("c"), cg = D("cg"), pixels = D("n") * D("h") * D("w") * (c > 0 ? 1 : 0);
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t l = cg; l < c; l++) V("x")[i * c + l] = V("x")[i * c + l % cg];
}

/* The last column of images is taken to be beyond their edge. */
static void lose_column(trine_ref *ref, int64_t lines) {
    const int64_t c = D("c"), w = D("w");
    for (int64_t i = 0; i < (w > 0 ? lines : 0); i++)
        for (int64_t l = 0; l < c; l++) V("x")[(i * w + w - 1) * c + l] = 0;
}
static void last_column_lost(trine_ref *ref, void *args) {
    (void)args;
    lose_column(ref, D("n") * D("h"));
}
static void last_column_of_planes_lost(trine_ref *ref, void *args) {
    (void)args;
    lose_column(ref, D("n") * D("d") * D("h"));
}

/* The last image's gradient is lost. */
static void last_image_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t image = D("p") * D("q") * D("k");
    for (int64_t i = 0; D("n") > 0 && i < image; i++) V("dy")[(D("n") - 1) * image + i] = 0;
}

/* The largest is told by size, whatever the sign. */
static void by_size(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = D("n") * D("h") * D("w") * D("c");
    for (int64_t i = 0; i < count; i++) V("x")[i] = fabs(V("x")[i]);
}

/* NaN is no larger than others. */
static void without_nan(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = D("n") * D("h") * D("w") * D("c");
    for (int64_t i = 0; i < count; i++)
        if (isnan(V("x")[i])) V("x")[i] = -INFINITY;
}

/* Indices count from the channel's own pixel on, in rows of y. */
static void indices_of_y(trine_ref *ref) {
    const int64_t count = D("n") * D("p") * D("q") * D("c"), w = D("w"), q = D("q");
    for (int64_t i = 0; V("indices") && w > 0 && i < count; i++) {
        const int64_t at = (int64_t)V("indices")[i];
        if (at >= 0) V("indices")[i] = (double)(at / w * q + at % w);
    }
}

const mutant mutants_conv[] = {
    { "conv2d", "last_column_lost", "images end a column early", .before = last_column_lost },
    { "conv2d", "ignores_bias", "the bias is not read", .without = "bias" },
    { "conv2d", "ignores_pad", "rows begin at the first", .param = "pad_top" },
    { "conv2d", "ignores_dilation", "taps are neighbours", .param = "dilation_w", .value = 1 },
    { "conv2d", "strides_exchanged", "height and width are exchanged", .before = strides_exchanged },
    { "conv2d", "weights_turned", "weights are turned along the width", .before = weights_turned },
    { "conv2d", "first_group", "all groups read the first one's channels", .before = first_group },
    { "conv2d_backward", "last_column_lost", "images end a column early", .before = last_column_lost },
    { "conv2d_backward", "ignores_stride", "dy has no gaps", .param = "stride_h", .value = 1 },
    { "conv2d_backward", "pads_exchanged", "height and width are exchanged", .before = pads_exchanged },
    { "conv2d_backward", "dilations_exchanged", "height and width are exchanged", .before = dilations_exchanged },
    { "conv2d_backward", "weights_turned", "weights are turned along the width", .before = weights_turned },
    { "conv2d_backward", "last_lost", "the last image has no gradient", .before = last_image_lost },
    { "conv2d_backward", "doubled", "dbias is doubled", .output = "dbias", .factor = 2 },
    { "conv3d", "last_column_lost", "images end a column early", .before = last_column_of_planes_lost },
    { "conv3d", "ignores_bias", "the bias is not read", .without = "bias" },
    { "conv3d", "ignores_pad", "planes begin at the first", .param = "pad_front" },
    { "conv3d", "ignores_dilation", "taps are neighbours", .param = "dilation_d", .value = 1 },
    { "conv3d", "ignores_stride", "planes are neighbours", .param = "stride_d", .value = 1 },
    { "conv3d", "strides_exchanged", "height and width are exchanged", .before = strides_exchanged },
    { "pool2d", "kernels_exchanged", "height and width are exchanged", .before = kernels_exchanged },
    { "pool2d", "by_size", "signs do not count", .before = by_size },
    { "pool2d", "without_nan", "NaN is smaller than all", .before = without_nan },
    { "pool2d", "padding_counts", "means are over whole windows", .param = "kind", .value = TRINE_POOL2D_MEAN_PADDED },
    { "pool2d", "indices_of_y", "indices are counted by the columns of y", .after = indices_of_y },
    { "pool2d_backward", "kernels_exchanged", "height and width are exchanged", .before = kernels_exchanged },
    { "pool2d_backward", "by_size", "signs do not count", .before = by_size },
    { "pool2d_backward", "ignores_dilation", "elements of windows are neighbours", .param = "dilation_h", .value = 1 },
    { "pool2d_backward", "always_max", "all goes to the largest", .param = "kind", .value = TRINE_POOL2D_MAX },
    { 0 },
};
