/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_match: the table and the reference. */
#include <string.h>

#include <trine/sample.h>

#include "spec/spec.h"

#define ARGS trine_ngram_match_args

/* Where what stood before ends: n tokens that are the last n of `count`; -1: nowhere. */
static int64_t found(const double *t, int64_t count, int64_t n, bool first) {
    const double *last = t + count - n;
    for (int64_t k = n; k < count; k++) {
        const int64_t e = first ? k : n + count - 1 - k;
        if (memcmp(t + e - n, last, (size_t)n * sizeof *t) == 0) return e;
    }
    return -1;
}

/* Tokens are whole numbers: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t b = trine_ref_dim(ref, "b"), s = trine_ref_dim(ref, "s"), m = trine_ref_dim(ref, "m");
    const double *tokens = trine_ref_value(ref, "tokens"), *lengths = trine_ref_value(ref, "lengths");
    double *draft = trine_ref_value(ref, "draft"), *counts = trine_ref_value(ref, "counts");
    for (int64_t i = 0; i < b; i++) {
        const double *t = tokens + i * s;
        const int64_t length = lengths ? (int64_t)fmax(0, fmin(lengths[i], (double)s)) : s;
        int64_t e = -1;
        for (int64_t n = args->n_max < length ? args->n_max : length - 1; e < 0 && n >= args->n_min; n--)
            e = found(t, length, n, args->first);
        counts[i] = e < 0 ? 0 : fmin((double)m, (double)(length - e));
        for (int64_t j = 0; j < m; j++) draft[i * m + j] = (double)j < counts[i] ? t[e + j] : -1;
    }
}

const trine_spec trine_spec_ngram_match = {
    SPEC(ngram_match),
    .summary = "What followed a sequence's last tokens where they stood before",
    .formula = "counts[i] = min(m, L - e) and draft[i,j] = t[e+j] for j < counts[i], else -1; t = tokens[i], L = "
               "lengths[i], e the largest (first: the smallest) in [n, L) with t[e-n .. e-1] = t[L-n .. L-1], for the "
               "largest n in [n_min, n_max] that has one; counts[i] = 0 if none has",
    .source = "Saxena 2023 (prompt lookup decoding)",
    .tensors = { TENSOR(tokens, IN, "I", "b s", .fill = "places m"),
                 TENSOR(lengths, IN | OPTIONAL, "L", "b", .fill = "lengths s"), TENSOR(draft, OUT | EXACT, "I", "b m"),
                 TENSOR(counts, OUT | EXACT, "i32", "b") },
    .params = { PARAM(n_max, I32, .values = "0 1 2 5 40", .fallback = 3, .min = 0,
                      .doc = "tokens of the longest n-gram"),
                PARAM(n_min, I32, .values = "0 2 4", .fallback = 1, .min = 0, .doc = "tokens of the shortest n-gram"),
                PARAM(first, BOOL, .values = "0 1", .doc = "1: the first occurrence; 0: the latest") },
    .types = { "I=i32|i64 L=i32|i64" },
    .require = { "m <= 2147483647" },
    .flops = "b*s",
    .independent = "b",
    .sizes = { "b: 3 0 1 2 33", "s: 40 0 1 2 3 7 64 257 1000 4099", "m: 4 0 1 2 10 300" },
    .cases = { "batch: I=i32 L=i32 b=64 s=8192 m=8 n_max=12 +lengths",
               "long: I=i32 L=i32 b=8 s=131072 m=8 n_max=12 +lengths",
               "one sequence: I=i64 L=i32 b=1 s=32768 m=10 n_max=12" },
    .exact = true,
    .reference = reference,
};
