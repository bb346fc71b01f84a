/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of what is made of images. */
#include "mutant.h"

#include <math.h>

/* Right and bottom are pixels of the box. */
static void edge_within(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("boxes") && i < D("b"); i++) V("boxes")[4 * i + 2]++, V("boxes")[4 * i + 3]++;
}

/* Rows before columns. */
static void rows_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("boxes") && i < 4 * D("b"); i += 2) {
        const double x = V("boxes")[i];
        V("boxes")[i] = V("boxes")[i + 1], V("boxes")[i + 1] = x;
    }
}

/* A wrong image is taken for the first. */
static void clamped(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("images") && i < D("b"); i++)
        if (!(V("images")[i] >= 0 && V("images")[i] < (double)D("n"))) V("images")[i] = 0;
}

static void empty_is_black(trine_ref *ref) {
    for (int64_t i = 0; i < D("b") * D("p") * D("q") * D("c"); i++)
        if (isnan(V("y")[i])) V("y")[i] = 0;
}

const mutant mutants_image[] = {
    { "crop_resize_normalize", "edge_within", "the last row and column are those named", .before = edge_within },
    { "crop_resize_normalize", "rows_first", "boxes are top, left, bottom, right", .before = rows_first },
    { "crop_resize_normalize", "clamped", "a box of no image is of the first", .before = clamped },
    { "crop_resize_normalize", "empty_is_black", "an empty box gives 0", .after = empty_is_black },
    { "crop_resize_normalize", "ignores_mean", "the mean is 0", .without = "mean" },
    { "crop_resize_normalize", "ignores_deviation", "the deviation is 1", .without = "deviation" },
    { "crop_resize_normalize", "ignores_reverse", "channels are in their order", .param = "reverse", .value = 0 },
    { "crop_resize_normalize", "ignores_coordinates", "edges meet edges", .param = "coordinates", .value = 0 },
    { "crop_resize_normalize", "ignores_antialias", "pixels between are not seen", .param = "antialias", .value = 0 },
    { "crop_resize_normalize", "ignores_cubic", "the slope is -3/4", .param = "cubic", .value = -0.75 },
    { "crop_resize_normalize", "ignores_scale", "the scale is 1", .param = "scale", .value = 1 },
    { 0 },
};
