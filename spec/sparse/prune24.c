/* SPDX-License-Identifier: Apache-2.0 */
/* prune24: the table and the reference. */
#include <trine/sparse.h>

#include "pairs24.h"

#define ARGS trine_prune24_args

/* Exact: elements are copied or left out. */
static void reference(trine_ref *ref) {
    const int64_t count = trine_ref_dim(ref, "r") * trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *mask = trine_ref_value(ref, "mask");
    for (int64_t at = 0; at < count; at += 4) {
        const pair24 p = pair24_of(x + at);
        for (int i = 0; i < 4; i++) {
            const bool kept = i == p.first || i == p.second;
            if (y) y[at + i] = kept ? x[at + i] : 0;
            if (mask) mask[at + i] = kept;
        }
    }
}

const trine_spec trine_spec_prune24 = {
    SPEC(prune24),
    .summary = "Of each four elements of a row the two largest in size, and 0 for the others",
    .formula = "y[i,j] = x[i,j] where it is kept, else 0; kept are the two largest |x| of x[i,4g..4g+3], of equals the "
               "first, NaN before all; mask[i,j] is 1 where kept",
    .source = "Mishra et al. 2021",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(y, OUT | OPTIONAL | EXACT, "T", "r n"),
                 TENSOR(mask, OUT | OPTIONAL | EXACT, "u8", "r n") },
    .types = { "T=f32|bf16|f16|i8" },
    .require = { "n % 4 == 0", "y | mask" },
    .alias = { "y=x" },
    .flops = "r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 3 7 64", "n: 4 0 8 12 16 36 64 120 264 1000 4100" },
    .cases = { "llama3-8b gate: T=bf16 r=14336 n=4096 +y", "llama3-8b gate mask: T=bf16 r=14336 n=4096 +mask",
               "square f32: T=f32 r=4096 n=4096 +y +mask", "square i8: T=i8 r=4096 n=4096 +y" },
    .reference = reference,
};
