/* SPDX-License-Identifier: Apache-2.0 */
/* embedding: the table and the reference. */
#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_embedding_args

/* A copy: exact. */
static void reference(trine_ref *ref) {
    const int64_t t = trine_ref_dim(ref, "t"), n = trine_ref_dim(ref, "n");
    const double *table = trine_ref_value(ref, "table"), *ids = trine_ref_value(ref, "ids");
    double *y = trine_ref_value(ref, "y");

    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < n; j++) y[i * n + j] = table[(int64_t)ids[i] * n + j];
}

const trine_spec trine_spec_embedding = {
    SPEC(embedding),
    .summary = "Embedding lookup",
    .formula = "y[i,j] = table[ids[i],j]",
    .source = "by definition",
    .tensors = { TENSOR(table, IN, "T", "v n"), TENSOR(ids, IN, "I", "t", .fill = "ids v"),
                 TENSOR(y, OUT | EXACT, "T", "t n") },
    .types = { "T=f32|bf16|f16|f64 I=i32|i64" },
    .flops = "0",
    .independent = "t",
    .sizes = { "t: 0 1 2 31 500", "v: 1 2 17 1000", "n: 0 1 7 64 255 4099" },
    .cases = { "llama3-8b: T=bf16 I=i32 t=8192 v=128256 n=4096", "gpt2 f32: T=f32 I=i64 t=16384 v=50257 n=768",
               "one token: T=bf16 I=i32 t=1 v=128256 n=4096" },
    .exact = true,
    .reference = reference,
};
