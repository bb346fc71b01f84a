/* SPDX-License-Identifier: Apache-2.0 */
/* unpack24: the table and the reference. */
#include <trine/sparse.h>

#include "pairs24.h"

#define ARGS trine_unpack24_args

/* Exact: elements are copied. */
static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *values = trine_ref_value(ref, "values"), *indices = trine_ref_value(ref, "indices");
    double *y = trine_ref_value(ref, "y");
    for (int64_t i = 0; i < r; i++) row24(y + i * n, values + i * n / 2, indices + i * n / 8, n);
}

const trine_spec trine_spec_unpack24 = {
    SPEC(unpack24),
    .summary = "A matrix of which two of four elements are 0, from what pack24 made of it",
    .formula = "y[i,4g+a] = values[i,2g]; y[i,4g+b] = values[i,2g+1], which stays where a = b; the others are 0; a + 4 "
               "b are bits 4(g%2) .. 4(g%2)+3 of indices[i,g/2]",
    .source = "Mishra et al. 2021; the layout by definition",
    .tensors = { TENSOR(values, IN, "T", "r h"), TENSOR(indices, IN, "u8", "r q"), TENSOR(y, OUT | EXACT, "T", "r n") },
    .types = { "T=f32|bf16|f16|i8" },
    .require = { "n == 2*h", "n == 8*q" },
    .flops = "r*n",
    .independent = "r",
    .sizes = { SIZES24 },
    .cases = { "llama3-8b gate: T=bf16 r=14336 h=2048 q=512 n=4096", "square f32: T=f32 r=4096 h=2048 q=512 n=4096",
               "square i8: T=i8 r=4096 h=2048 q=512 n=4096" },
    .reference = reference,
};
