/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of products with scales of blocks. */
#include "mutant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The halves of bytes of one matrix are taken in the other order. */
static void halves_turned(trine_ref *ref, void *args) {
    double *b = V("b");
    (void)args;
    const bool sign = trine_ref_type(ref, "B") == TRINE_I8;
    for (int64_t i = 0; D("p") == 2 * D("q") && i < D("n") * D("q"); i++) {
        const int byte = (int)b[i] & 255, turned = byte >> 4 | (byte & 15) << 4;
        b[i] = sign && turned > 127 ? turned - 256 : turned;
    }
}

/* A row has the scale of its first block for all; or the blocks' scales are those of the row's neighbour. */
static void first_of_row(double *scale, int64_t rows, int64_t columns) {
    for (int64_t i = 0; scale && i < rows * columns; i++) scale[i] = scale[i / columns * columns];
}
static void a_one_scale(trine_ref *ref, void *args) {
    (void)args;
    first_of_row(V("a_scale"), D("ma"), D("ka"));
}
static void b_one_scale(trine_ref *ref, void *args) {
    (void)args;
    first_of_row(V("b_scale"), D("nb"), D("kb"));
}

/* All rows of b have the scales of the first. */
static void b_one_row(trine_ref *ref, void *args) {
    double *scale = V("b_scale");
    (void)args;
    for (int64_t i = 0; scale && i < D("nb") * D("kb"); i++) scale[i] = scale[i % D("kb")];
}

static void nan_lost(trine_ref *ref, void *args) {
    double *scale = V("a_scale");
    (void)args;
    for (int64_t i = 0; scale && i < D("ma") * D("ka"); i++)
        if (isnan(scale[i])) scale[i] = 1;
}

/* All groups have the scales of the first; or a row of w those of its first block. */
static void w_scales_of_first(trine_ref *ref, void *args) {
    const int64_t each = D("nb") * D("kb");
    (void)args;
    for (int64_t i = each; V("w_scale") && i < D("e") * each; i++) V("w_scale")[i] = V("w_scale")[i - each];
}
static void w_one_scale(trine_ref *ref, void *args) {
    (void)args;
    first_of_row(V("w_scale"), D("e") * D("nb"), D("kb"));
}

/* The scales of x are those of y's rows. */
static void x_scales_in_order(trine_ref *ref, void *args) {
    const trine_grouped_matmul_scaled_args *a = args;
    const int64_t r = D("r"), ka = D("ka");
    if (!V("x_scale") || !V("gather") || D("ra") != r) return;
    double *old = malloc(sizeof *old * (size_t)(r * ka + 1));
    if (old == NULL) abort();
    memcpy(old, V("x_scale"), sizeof *old * (size_t)(r * ka));
    for (int64_t i = 0; i < D("p") && i < r; i++) {
        const int64_t from = V("gather")[i] < 0 ? -1 : (int64_t)V("gather")[i] / a->divide;
        for (int64_t j = 0; from >= 0 && from < r && j < ka; j++) V("x_scale")[from * ka + j] = old[i * ka + j];
    }
    free(old);
}

/* The last group has no rows. */
static void last_group_lost(trine_ref *ref, void *args) {
    (void)args;
    if (D("e") > 0) V("offsets")[D("e")] = V("offsets")[D("e") - 1];
}

/* The factor of a group is applied to its biases too. */
static void group_scales_bias(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("bias") && V("group_scale") && i < D("e") * D("n"); i++)
        V("bias")[i] *= V("group_scale")[i / D("n")];
}

const mutant mutants_scaled[] = {
    { "matmul_scaled", "ignores_a_scale", "a is not scaled", .without = "a_scale" },
    { "matmul_scaled", "ignores_b_scale", "b is not scaled", .without = "b_scale" },
    { "matmul_scaled", "ignores_bias", "the bias is not added", .without = "bias" },
    { "matmul_scaled", "ignores_alpha", "sums are not multiplied", .param = "alpha", .value = 1 },
    { "matmul_scaled", "ignores_activation", "no activation", .param = "activation" },
    { "matmul_scaled", "ignores_offset", "0 is code 0", .param = "offset", .types = "A=i8 B=u8" },
    { "matmul_scaled", "halves_turned", "the first code is the upper half", .before = halves_turned,
      .types = "A=i8 B=u8", .dims = "p=64 q=32" },
    { "matmul_scaled", "a_one_scale", "a row of a has one scale", .before = a_one_scale },
    { "matmul_scaled", "b_one_scale", "a row of b has one scale", .before = b_one_scale },
    { "matmul_scaled", "b_one_row", "rows of b have the same scales", .before = b_one_row },
    { "matmul_scaled", "nan_lost", "a scale of NaN counts as 1", .before = nan_lost },
    { "grouped_matmul_scaled", "ignores_x_scale", "x is not scaled", .without = "x_scale" },
    { "grouped_matmul_scaled", "ignores_w_scale", "w is not scaled", .without = "w_scale" },
    { "grouped_matmul_scaled", "ignores_group_scale", "groups have no factor", .without = "group_scale" },
    { "grouped_matmul_scaled", "ignores_row_scale", "rows of y have no factor", .without = "row_scale" },
    { "grouped_matmul_scaled", "ignores_bias", "the bias is not added", .without = "bias" },
    { "grouped_matmul_scaled", "ignores_counts", "all rows of a group are computed", .without = "counts" },
    { "grouped_matmul_scaled", "ignores_divide", "gather counts rows", .param = "divide", .value = 1 },
    { "grouped_matmul_scaled", "ignores_activation", "no activation", .param = "activation" },
    { "grouped_matmul_scaled", "ignores_code_offset", "0 is code 0", .param = "code_offset", .types = "A=i8 B=u8" },
    { "grouped_matmul_scaled", "w_scales_of_first", "all groups have the first one's scales",
      .before = w_scales_of_first },
    { "grouped_matmul_scaled", "w_one_scale", "a row of w has one scale", .before = w_one_scale },
    { "grouped_matmul_scaled", "x_scales_in_order", "x's scales are not gathered", .before = x_scales_in_order },
    { "grouped_matmul_scaled", "group_scales_bias", "a group's factor is its bias's too", .before = group_scales_bias },
    { "grouped_matmul_scaled", "last_group_lost", "the last group has no rows", .before = last_group_lost },
    { 0 },
};
