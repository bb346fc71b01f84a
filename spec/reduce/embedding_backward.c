/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward: the table and the reference. */
#include <math.h>
#include <stdlib.h>

#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_embedding_backward_args

/* Bound, with u = 2^-24: a row of the table is the sum of the k gradients whose ids name it, and of itself if
 * `accumulate`: at most k additions in f32, in the order of t, each of at most u of the terms' absolute values so far
 * (Higham 2002, section 4.2). The magnitude is k times their sum, which the output's rounding and the second order (k u
 * < 1/4) leave within 2u; additions of f32 do not underflow. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t t = trine_ref_dim(ref, "t"), v = trine_ref_dim(ref, "v"), n = trine_ref_dim(ref, "n");
    const double *dy = trine_ref_value(ref, "dy"), *ids = trine_ref_value(ref, "ids");
    double *dtable = trine_ref_value(ref, "dtable"), *magnitude = trine_ref_magnitude(ref, "dtable");

    for (int64_t k = 0; k < v * n; k++) {
        if (!args->accumulate) dtable[k] = 0;
        magnitude[k] = trine_finite_abs(dtable[k]);
    }
    int64_t *times = calloc((size_t)v + 1, sizeof *times);
    if (times == NULL) abort();
    for (int64_t i = 0; i < t; i++) {
        const int64_t row = (int64_t)ids[i];
        if (args->padding_index_set && row == args->padding_index) continue;
        times[row]++;
        for (int64_t j = 0; j < n; j++) {
            dtable[row * n + j] += dy[i * n + j];
            magnitude[row * n + j] += trine_finite_abs(dy[i * n + j]);
        }
    }
    for (int64_t k = 0; k < v * n; k++) {
        if (magnitude[k] > trine_largest(TRINE_F32))
            magnitude[k] = INFINITY;
        else
            magnitude[k] *= isfinite(dtable[k]) ? (double)times[k / n] : 0;
    }
    free(times);
}

const trine_spec trine_spec_embedding_backward = {
    SPEC(embedding_backward),
    .summary = "Gradient of embedding, deterministic",
    .formula =
        "dtable[k,j] = sum over i with ids[i] = k, ascending, of dy[i,j], 0 if k is padding_index; plus what dtable "
        "held, if accumulate",
    .source = "by definition",
    .tensors = { TENSOR(dy, IN, "T", "t n"), TENSOR(ids, IN, "I", "t", .fill = "ids v"),
                 TENSOR(dtable, IN | OUT, "W", "v n", .terms = "2") },
    .params = { PARAM(accumulate, BOOL, .values = "0 1", .doc = "1: add to what dtable holds; 0: overwrite it"),
                PARAM(padding_index_set, BOOL, .values = "0 1", .doc = "1: padding_index is read; 0: there is none"),
                PARAM(padding_index, I64, .values = "0 1 16", .doc = "row to which nothing is added") },
    .types = { "T=f32|bf16|f16 W=f32 I=i32|i64", "T=bf16 W=bf16 I=i32|i64", "T=f16 W=f16 I=i32|i64" },
    .flops = "t*n",
    .independent = "n",
    .sizes = { "t: 0 1 2 31 500 3000", "v: 1 2 17 1000", "n: 0 1 7 64 255 600" },
    .integers_exact = true,
    .cases = { "llama3-8b: T=bf16 W=f32 I=i32 t=8192 v=16384 n=4096 accumulate=1",
               "gpt2 f32: T=f32 W=f32 I=i64 t=16384 v=50257 n=768",
               "bytes: T=f32 W=f32 I=i32 t=16384 v=256 n=512 accumulate=1" },
    .reference = reference,
};
