/* SPDX-License-Identifier: Apache-2.0 */
/* smith_waterman: the table and the reference. */
#include "smith_waterman.h"

#include <stdlib.h>

#include <trine/dynamic.h>

#include "spec/plan.h"

#define ARGS trine_smith_waterman_args

/* Sums wrap around, as integers of 32 bits do. */
static int32_t plus(int32_t a, int64_t b) { return (int32_t)(uint32_t)((int64_t)a + b); }
static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

static int64_t length_of(const double *lengths, int64_t i, int64_t most) {
    if (lengths == NULL) return most;
    return lengths[i]<0 ? 0 : lengths[i]>(double) most ? most : (int64_t)lengths[i];
}

/* The cost of a gap of so many letters, in 32 bits. */
static int32_t gap_of(const ARGS *args, int64_t letters) {
    return letters == 0
               ? 0
               : (int32_t)(uint32_t)(-(uint64_t)args->gap_open - (uint64_t)(letters - 1) * (uint64_t)args->gap_extend);
}

typedef struct found {
    int32_t best;
    int64_t i, j;
} found;

/* Column by column: h and e have the column before, row by row. */
static found align(const ARGS *args, const double *query, int64_t m, const double *target, int64_t n,
                   const double *scores, int64_t letters, int32_t *h, int32_t *e) {
    const bool local = args->alignment == TRINE_ALIGN_LOCAL, global = args->alignment == TRINE_ALIGN_GLOBAL;
    for (int64_t i = 0; i <= m; i++) h[i] = local ? 0 : gap_of(args, i), e[i] = SMITH_WATERMAN_NONE;
    found y = { local ? 0 : h[m], local ? 0 : m, 0 };
    for (int64_t j = 1; j <= n; j++) {
        int32_t diagonal = h[0], f = SMITH_WATERMAN_NONE;
        h[0] = global ? gap_of(args, j) : 0;
        for (int64_t i = 1; i <= m; i++) {
            const bool known = query[i - 1] < (double)letters && target[j - 1] < (double)letters;
            const int32_t score = known ? (int32_t)scores[(int64_t)query[i - 1] * letters + (int64_t)target[j - 1]]
                                        : SMITH_WATERMAN_WORST;
            e[i] = larger(plus(h[i], -args->gap_open), plus(e[i], -args->gap_extend));
            f = larger(plus(h[i - 1], -args->gap_open), plus(f, -args->gap_extend));
            const int32_t next = larger(larger(plus(diagonal, score), e[i]), f);
            diagonal = h[i];
            h[i] = local ? larger(next, 0) : next;
            if (local && h[i] > y.best) y = (found){ h[i], i, j };
        }
        if (global || (!local && h[m] > y.best)) y = (found){ h[m], m, j };
    }
    return y;
}

/* Exact: integers. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), s = trine_ref_dim(ref, "s");
    const double *query = trine_ref_value(ref, "query"), *target = trine_ref_value(ref, "target");
    double *best = trine_ref_value(ref, "best"), *ends = trine_ref_value(ref, "ends");
    int32_t *const work = malloc(2 * sizeof *work * (size_t)(m + 1));
    for (int64_t b = 0; b < trine_ref_dim(ref, "b"); b++) {
        const found y = align(args, query + b * m, length_of(trine_ref_value(ref, "queries"), b, m), target + b * n,
                              length_of(trine_ref_value(ref, "targets"), b, n), trine_ref_value(ref, "scores"), s, work,
                              work + m + 1);
        best[b] = y.best;
        if (ends) ends[2 * b] = (double)y.i, ends[2 * b + 1] = (double)y.j;
    }
    free(work);
}

const trine_spec trine_spec_smith_waterman = {
    SPEC(smith_waterman),
    .summary = "Score of the best alignment of two sequences, with affine gaps",
    .formula =
        "h[i,j] = max(h[i-1,j-1] + scores[query[i], target[j]], e[i,j], f[i,j]), local at least 0; e[i,j] = "
        "max(h[i,j-1] - gap_open, e[i,j-1] - gap_extend); f likewise along i; best is the largest h, or the last",
    .source = "Smith and Waterman 1981; Gotoh 1982; Needleman and Wunsch 1970",
    .tensors = { TENSOR(query, IN, "T", "b m", .fill = "places s"), TENSOR(target, IN, "T", "b n", .fill = "places s"),
                 TENSOR(queries, IN | OPTIONAL, "i64", "b", .fill = "lengths m"),
                 TENSOR(targets, IN | OPTIONAL, "i64", "b", .fill = "lengths n"), TENSOR(scores, IN, "i32", "s s"),
                 TENSOR(best, OUT | EXACT, "i32", "b"), TENSOR(ends, OUT | OPTIONAL | EXACT, "i64", "b 2") },
    .params = { PARAM(gap_open, I64, .values = "0 11 3 1000000", .min = 0, .max = SMITH_WATERMAN_MOST,
                      .doc = "cost of a gap's first letter"),
                PARAM(gap_extend, I64, .values = "0 1 3 16777216", .min = 0, .max = SMITH_WATERMAN_MOST,
                      .doc = "cost of each further one"),
                PARAM(alignment, ENUM, .values = "local global within", .doc = "what an alignment covers") },
    .types = { "T=u8" },
    .require = { "s >= 1" },
    .flops = "5*b*m*n",
    .independent = "b",
    .sizes = { "b: 1 0 2 5 17", "m: 1 0 2 7 8 31 64 130 300 400 600", "n: 1 0 3 9 40 65 257", "s: 4 1 5 24 40" },
    .exact = true,
    .cases = { "proteins: T=u8 b=512 m=350 n=350 s=24 gap_open=11 gap_extend=1",
               "reads: T=u8 b=4096 m=150 n=200 s=5 gap_open=6 gap_extend=1 alignment=within",
               "long: T=u8 b=16 m=4096 n=4096 s=5 gap_open=5 gap_extend=2" },
    .reference = reference,
};
