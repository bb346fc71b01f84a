/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_counts: the table and the reference. */
#include <trine/text.h>

#include "spec/spec.h"

#define ARGS trine_ngram_counts_args

typedef struct sentence {
    const double *token;
    int64_t length;
} sentence;

static sentence sentence_of(const double *tokens, const double *lengths, int64_t i, int64_t room) {
    return (sentence){ tokens + i * room, lengths ? (int64_t)fmax(0, fmin(lengths[i], (double)room)) : room };
}

static bool same(const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

/* How often the n-gram at `gram` is in a sentence, from place `first` on. */
static int64_t count_of(const double *gram, int64_t n, const sentence *s, int64_t first) {
    int64_t count = 0;
    for (int64_t i = first; i + n <= s->length; i++) count += same(gram, s->token + i, n);
    return count;
}

/* Of each distinct n-gram, at the first place where it is. */
static int64_t matches_of(const trine_ref *ref, const sentence *candidate, int64_t s, int64_t n) {
    const int64_t r = trine_ref_dim(ref, "r");
    int64_t sum = 0;
    for (int64_t i = 0; i + n <= candidate->length; i++) {
        const double *gram = candidate->token + i;
        const int64_t own = count_of(gram, n, candidate, i);
        if (own < count_of(gram, n, candidate, 0)) continue;
        int64_t most = 0;
        for (int64_t k = 0; k < r; k++) {
            const sentence other =
                sentence_of(trine_ref_value(ref, "references"), trine_ref_value(ref, "reference_lengths"), s * r + k,
                            trine_ref_dim(ref, "m"));
            const int64_t count = count_of(gram, n, &other, 0);
            most = count > most ? count : most;
        }
        sum += own < most ? own : most;
    }
    return sum;
}

static double closest_to(const trine_ref *ref, int64_t s, double length) {
    const int64_t r = trine_ref_dim(ref, "r"), m = trine_ref_dim(ref, "m");
    double best = 0, off = INFINITY;
    for (int64_t k = 0; k < r; k++) {
        const sentence other =
            sentence_of(trine_ref_value(ref, "references"), trine_ref_value(ref, "reference_lengths"), s * r + k, m);
        const double size = (double)other.length, away = fabs(size - length);
        if (away < off || (away == off && size < best)) best = size, off = away;
    }
    return best;
}

/* Whole numbers: exact. */
static void reference(trine_ref *ref) {
    const int64_t k = trine_ref_dim(ref, "k"), l = trine_ref_dim(ref, "l");
    for (int64_t s = 0; s < trine_ref_dim(ref, "s"); s++) {
        const sentence candidate =
            sentence_of(trine_ref_value(ref, "candidates"), trine_ref_value(ref, "lengths"), s, l);
        for (int64_t n = 1; n <= k; n++) {
            trine_ref_value(ref, "matches")[s * k + n - 1] = (double)matches_of(ref, &candidate, s, n);
            trine_ref_value(ref, "totals")[s * k + n - 1] = fmax(0, (double)(candidate.length - n + 1));
        }
        trine_ref_value(ref, "sizes")[s] = (double)candidate.length;
        trine_ref_value(ref, "closest")[s] = closest_to(ref, s, (double)candidate.length);
    }
}

const trine_spec trine_spec_ngram_counts = {
    SPEC(ngram_counts),
    .summary = "The n-grams of sentences, and how many of them references have",
    .formula =
        "matches[s,n-1] = sum over distinct g of n tokens of min(count of g in candidates[s], max_r count of g in "
        "references[s,r]); totals[s,n-1] = max(0, L - n + 1), sizes[s] = L = lengths[s]; closest[s] is the "
        "reference_lengths[s,r] closest to L, of equals the smaller",
    .source = "Papineni et al. 2002, section 2",
    .tensors = { TENSOR(candidates, IN, "I", "s l", .fill = "slots 6"),
                 TENSOR(lengths, IN | OPTIONAL, "L", "s", .fill = "lengths l"),
                 TENSOR(references, IN, "I", "s r m", .fill = "slots 6"),
                 TENSOR(reference_lengths, IN | OPTIONAL, "L", "s r", .fill = "lengths m"),
                 TENSOR(matches, OUT | EXACT, "i32", "s k"), TENSOR(totals, OUT | EXACT, "i32", "s k"),
                 TENSOR(sizes, OUT | EXACT, "i32", "s"), TENSOR(closest, OUT | EXACT, "i32", "s") },
    .types = { "I=i32|i64 L=i32|i64" },
    .require = { "k <= 4", "l <= 2147483647", "m <= 2147483647" },
    .flops = "s*l*(l/2 + r*m)",
    .independent = "s",
    .sizes = { "s: 3 0 1 2 33", "l: 20 0 1 2 3 7 64 150", "r: 1 0 2 4", "m: 20 0 1 3 8 40 130", "k: 4 4 0 1 2 3" },
    .cases = { "wmt: I=i32 L=i32 s=2048 l=40 r=1 m=40 k=4 +lengths +reference_lengths",
               "captions: I=i64 L=i64 s=1024 l=20 r=5 m=20 k=4 +lengths +reference_lengths",
               "documents: I=i32 L=i32 s=64 l=1024 r=1 m=1024 k=4" },
    .exact = true,
    .reference = reference,
};
