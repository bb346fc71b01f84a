/* SPDX-License-Identifier: Apache-2.0 */
/* tm_clauses: the table and the reference. */
#include <trine/tsetlin.h>

#include "mixed.h"

#define ARGS trine_tm_clauses_args

/* Exact: bits, and sums of integers modulo 2^32. */
static bool holds(const double *literals, const double *include, int64_t w, bool empty) {
    int any = 0, missing = 0;
    for (int64_t k = 0; k < w; k++) {
        any |= (int)include[k];
        missing |= (int)include[k] & ~(int)literals[k];
    }
    return any ? !missing : empty;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t e = trine_ref_dim(ref, "e"), w = trine_ref_dim(ref, "w"), c = trine_ref_dim(ref, "c"),
                  j = trine_ref_dim(ref, "j");
    const double *literals = trine_ref_value(ref, "literals"), *include = trine_ref_value(ref, "include"),
                 *weights = trine_ref_value(ref, "weights");
    double *votes = trine_ref_value(ref, "votes"), *clauses = trine_ref_value(ref, "clauses");
    for (int64_t i = 0; i < e; i++)
        for (int64_t p = 0; p < c; p++) {
            uint32_t sum = 0;
            for (int64_t q = 0; q < j; q++) {
                const int64_t clause = p * j + q;
                const bool yes = holds(literals + i * w, include + clause * w, w, args->empty);
                if (yes) sum += (uint32_t)(int32_t)(weights ? weights[clause] : q % 2 ? -1 : 1);
                if (clauses) clauses[i * c * j + clause] = yes;
            }
            const double vote = (int32_t)sum, most = args->threshold > 0 ? args->threshold : INFINITY;
            votes[i * c + p] = fmax(-most, fmin(most, vote));
        }
}

/* Clauses that some example fulfils, or that have one literal, or none, or any. */
static void prepare(trine_ref *ref) {
    const int64_t e = trine_ref_dim(ref, "e"), w = trine_ref_dim(ref, "w"),
                  count = trine_ref_dim(ref, "c") * trine_ref_dim(ref, "j");
    const double *literals = trine_ref_value(ref, "literals");
    double *include = trine_ref_value(ref, "include");
    const uint32_t seed = mixed_values(literals, e * w);
    for (int64_t q = 0; q < count; q++) {
        const uint32_t word = mixed(seed + 2 * (uint32_t)q + 1);
        const int64_t from = e > 0 ? mixed(word) % e : 0;
        for (int64_t k = 0; k < w; k++) {
            const uint32_t bits = mixed(word + 2 * (uint32_t)k), own = e > 0 ? (uint32_t)literals[from * w + k] : 0;
            uint32_t byte = bits & bits >> 8 & own;
            if (word % 16 == 0) byte = 0;
            if (word % 16 == 1) byte = bits;
            if (word % 4 == 2) byte = k == word / 256 % w ? 1u << word % 256 / 32 : 0;
            include[q * w + k] = byte & 255;
        }
    }
}

const trine_spec trine_spec_tm_clauses = {
    SPEC(tm_clauses),
    .summary = "What the clauses of a Tsetlin machine say of examples, and how they vote",
    .formula = "clause[i,p,q] = all bits of include[p,q] are in literals[i], of none: empty; votes[i,p] = sum_q "
               "weights[p,q] clause[i,p,q] modulo 2^32, weights 1, -1, 1, ... if not given, held within -threshold .. "
               "threshold if that is not 0",
    .source = "Granmo 2018, \"The Tsetlin Machine\", section 3; Berge et al. 2019; Phoulady et al. 2020",
    .tensors = { TENSOR(literals, IN, "T", "e w"), TENSOR(include, IN, "T", "c j w", .fill = "derived"),
                 TENSOR(weights, IN | OPTIONAL, "i32", "c j"), TENSOR(votes, OUT | EXACT, "i32", "e c"),
                 TENSOR(clauses, OUT | OPTIONAL | EXACT, "T", "e c j") },
    .params = { PARAM(threshold, I32, .values = "0 1 7 100", .min = 0, .max = 0x1p31 - 1,
                      .doc = "votes are held within it; 0: they are not"),
                PARAM(empty, BOOL, .values = "0 1", .doc = "what a clause that includes nothing is") },
    .types = { "T=u8" },
    .flops = "2*e*c*j*w",
    .independent = "e",
    .exact = true,
    .sizes = { "e: 5 0 1 2 33 200", "c: 2 0 1 3 10", "j: 10 0 1 2 7 300", "w: 3 0 1 8 9 40 100" },
    .cases = { "mnist, 10 classes of 2000 clauses: T=u8 e=1000 w=196 c=10 j=2000",
               "imdb, 10000 words: T=u8 e=200 w=2500 c=2 j=1000 +clauses",
               "noisy xor: T=u8 e=10000 w=3 c=2 j=10 threshold=15" },
    .reference = reference,
    .prepare = prepare,
};
