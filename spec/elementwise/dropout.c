/* SPDX-License-Identifier: Apache-2.0 */
/* dropout: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_dropout_args

/* Bound, with u = 2^-24: the scale is part of the definition, one product by u, with the output's rounding of it within
 * 2u of |y|. What is dropped is +0, whatever it was, and the mask is exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *x = trine_ref_value(ref, "x"), scale = trine_dropout_scale(args->p);
    double *y = trine_ref_value(ref, "y"), *mask = trine_ref_value(ref, "mask");
    double *magnitude = trine_ref_magnitude(ref, "y"), *slack = trine_ref_slack(ref, "y");
    uint64_t seed = args->seed, offset = args->offset;
    trine_ref_philox(ref, &seed, &offset);

    for (int64_t i = 0; i < count; i++) {
        const bool keep = trine_dropout_keep(seed, offset, ref->first + (uint64_t)i, args->p);
        if (mask) mask[i] = keep;
        y[i] = keep ? x[i] * scale : 0;
        if (!keep || !isfinite(y[i])) continue;
        magnitude[i] = fabs(y[i]);
        slack[i] = scale == 1 ? 0 : TINY;
    }
}

const trine_spec trine_spec_dropout = {
    SPEC(dropout),
    .summary = "Dropout, with a mask that is the same on every device",
    .formula = "y[i] = x[i] scale where word i/2%4 of Philox4x32-10(key = seed, counter = (lo32(i/8), hi32(i/8), "
               "lo32(offset), hi32(offset))), with its "
               "halves exchanged if i is odd, is below floor((1-p) 2^32), else 0; scale = 1/(1-p) rounded to f32; i "
               "counts the elements in row-major order; with philox its element 0 is the key, and its element 1 is "
               "added to offset",
    .source = "Srivastava et al. 2014, section 10; Salmon et al. 2011, section 3.3",
    .tensors = { TENSOR(x, IN, "T", "[s] [q] [r] n"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(y, OUT, "T", "[s] [q] [r] n", .terms = "2"),
                 TENSOR(mask, OUT | OPTIONAL | EXACT, "u8", "[s] [q] [r] n") },
    .params = { PARAM(p, F32, .values = "0 0.1 0.5 0.9 1", .min = 0, .max = 1, .doc = "probability of dropping"),
                PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"),
                PARAM(offset, U64, .values = "0 7 4294967296",
                      .doc = "high half of its counter: another for every call") },
    .types = { "T=f32|bf16|f16" },
    .require = { "philox instead of seed" },
    .alias = { "y=x" },
    .flops = "15*s*q*r*n",
    .independent = "s",
    .sizes = { "s: 1 2", "q: 1 3", "r: 1 0 2 5 67", "n: 0 1 3 8 17 64 251 1000" },
    .cases = { "f32: T=f32 r=4096 n=4096 p=0.1 seed=1", "bf16: T=bf16 r=8192 n=4096 p=0.1 seed=1",
               "bf16 with mask: T=bf16 r=8192 n=4096 p=0.1 seed=1 +mask", "in cache: T=f32 r=64 n=1024 p=0.1 seed=1" },
    .reference = reference,
};
