/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of products of largest sums, and of alignments. */
#include <trine/dynamic.h>

#include "mutant.h"

/* Of equals the last one is named. */
static void last_of_equals(trine_ref *ref) {
    const int64_t m = D("m"), n = D("n"), k = D("k");
    for (int64_t at = 0; V("indices") && at < D("g") * m * n; at++) {
        const double *row = V("a") + at / n * k, *column = V("b") + at / (m * n) * k * n + at % n;
        for (int64_t p = k - 1; V("indices")[at] >= 0 && p > V("indices")[at]; p--)
            if (row[p] + column[p * n] == V("d")[at]) V("indices")[at] = (double)p;
    }
}

static void last_step_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t k = D("k");
    for (int64_t i = 0; k > 0 && i < D("g") * D("m"); i++) V("a")[(i + 1) * k - 1] = V("a")[i * k];
}

/* The cost of a gap is the same for each letter. */
static void linear_gaps(trine_ref *ref, void *args) {
    trine_smith_waterman_args *a = args;
    (void)ref;
    a->gap_extend = a->gap_open;
}

static void ends_exchanged(trine_ref *ref) {
    for (int64_t i = 0; V("ends") && i < D("b"); i++) {
        const double end = V("ends")[2 * i];
        V("ends")[2 * i] = V("ends")[2 * i + 1], V("ends")[2 * i + 1] = end;
    }
}

/* The table is read the other way round. */
static void table_transposed(trine_ref *ref, void *args) {
    (void)args;
    const int64_t s = D("s");
    for (int64_t i = 0; i < s; i++)
        for (int64_t j = 0; j < i; j++) {
            const double x = V("scores")[i * s + j];
            V("scores")[i * s + j] = V("scores")[j * s + i], V("scores")[j * s + i] = x;
        }
}

const mutant mutants_dynamic[] = {
    { "max_plus_matmul", "ignores_minimum", "the largest in any case", .param = "minimum" },
    { "max_plus_matmul", "ignores_c", "nothing is there before", .without = "c" },
    { "max_plus_matmul", "last_of_equals", "of equals the last one is named", .after = last_of_equals },
    { "max_plus_matmul", "last_step_lost", "the last element of a row is the first", .before = last_step_lost },
    { "smith_waterman", "ignores_alignment", "every alignment is local", .param = "alignment" },
    { "smith_waterman", "ignores_lengths", "sequences are as long as their room", .without = "targets" },
    { "smith_waterman", "linear_gaps", "each letter of a gap costs the same", .before = linear_gaps },
    { "smith_waterman", "ends_exchanged", "the target's end is first", .after = ends_exchanged },
    { "smith_waterman", "table_transposed", "lines of the table are the target's", .before = table_transposed },
    { 0 },
};
