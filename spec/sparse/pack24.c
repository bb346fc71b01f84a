/* SPDX-License-Identifier: Apache-2.0 */
/* pack24: the table and the reference. */
#include <trine/sparse.h>

#include "pairs24.h"

#define ARGS trine_pack24_args

/* Exact: elements are copied. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t groups = trine_ref_dim(ref, "r") * trine_ref_dim(ref, "n") / 4;
    const bool marked = trine_ref_type(ref, "T") != TRINE_I8 && !args->prune;
    const double *x = trine_ref_value(ref, "x");
    double *values = trine_ref_value(ref, "values"), *indices = trine_ref_value(ref, "indices");
    for (int64_t g = 0; g < groups; g++) {
        const double *group = x + 4 * g;
        const pair24 p = pair24_of(group);
        int filled = 0;
        for (int i = 0; i < 4; i++) filled += group[i] != 0;
        const bool wrong = marked && filled > 2;
        values[2 * g] = wrong ? NAN : group[p.first];
        values[2 * g + 1] = wrong ? NAN : group[p.second];
        if (g % 2 == 0) indices[g / 2] = 0;
        indices[g / 2] += (p.first | p.second << 2) << (g % 2 ? 4 : 0);
    }
}

const trine_spec trine_spec_pack24 = {
    SPEC(pack24),
    .summary = "A matrix of which two of four elements are 0, packed into the others and their places",
    .formula = "values[i,2g], values[i,2g+1] = x[i,4g+a], x[i,4g+b], a < b the places that prune24 keeps; bits "
               "4(g%2) .. 4(g%2)+3 of indices[i,g/2] are a + 4 b; more than two that are not 0: both values NaN, "
               "unless prune",
    .source = "Mishra et al. 2021; the layout by definition",
    .tensors = { TENSOR(x, IN, "T", "r n", .fill = "sparse"), TENSOR(values, OUT | EXACT, "T", "r h"),
                 TENSOR(indices, OUT | EXACT, "u8", "r q") },
    .params = { PARAM(prune, BOOL, .values = "0 1",
                      .doc = "1: what is too many is left out; 0: it makes the group's values NaN") },
    .types = { "T=f32|bf16|f16|i8" },
    .require = { "n == 2*h", "n == 8*q" },
    .flops = "r*n",
    .independent = "r",
    .sizes = { SIZES24 },
    .cases = { "llama3-8b gate: T=bf16 r=14336 n=4096 h=2048 q=512 prune=1",
               "square f32: T=f32 r=4096 n=4096 h=2048 q=512 prune=1", "square i8: T=i8 r=4096 n=4096 h=2048 q=512" },
    .reference = reference,
};
