/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of products with scales of blocks. */
#include "mutant.h"

#include <math.h>

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
    { 0 },
};
