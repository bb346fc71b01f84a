/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of draws. */
#include "mutant.h"

#include <math.h>

/* The next row's words. */
static void next_words(trine_ref *ref, void *args) {
    (void)args;
    ref->first++;
}

/* A token that was never there is penalized too. */
static void counts_of_none(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("counts") && k < D("r") * D("v"); k++)
        if (V("counts")[k] <= 0) V("counts")[k] = 1;
}

/* How often does not matter. */
static void once(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("counts") && k < D("r") * D("v"); k++) V("counts")[k] = V("counts")[k] > 0;
}

static void nan_passed(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("r") * D("v"); k++)
        if (isnan(V("logits")[k])) V("logits")[k] = -INFINITY;
}

static void one_more(trine_ref *ref, void *args) {
    (void)ref;
    trine_sample_args *a = args;
    if (a->top_k > 0) a->top_k++;
}

static void last_token_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t v = D("v");
    for (int64_t i = 0; v > 1 && i < D("r"); i++) V("logits")[i * v + v - 1] = -INFINITY;
}

/* What is drawn in place of a token that does not stand is of the target alone. */
static void all_of_target(trine_ref *ref) {
    const int64_t g = D("g");
    for (int64_t i = 0; i < D("b"); i++) {
        const int64_t k = (int64_t)V("accepted")[i];
        if (k < g && V("draft_probs")) V("tokens")[i * (g + 1) + k] = V("draft_tokens")[i * g + k];
    }
}

static void rest_stands(trine_ref *ref) {
    const int64_t g = D("g");
    for (int64_t i = 0; i < D("b"); i++)
        for (int64_t k = (int64_t)V("accepted")[i] + 1; k < g; k++)
            V("tokens")[i * (g + 1) + k] = V("draft_tokens")[i * g + k];
}

static void none_follows(trine_ref *ref) {
    const int64_t g = D("g");
    for (int64_t i = 0; i < D("b"); i++)
        if (V("accepted")[i] == (double)g) V("tokens")[i * (g + 1) + g] = -1;
}

/* A draft token beyond the last is taken for the last. */
static void token_bounded(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("b") * D("g"); k++)
        if (V("draft_tokens")[k] >= (double)D("v")) V("draft_tokens")[k] = (double)(D("v") - 1);
}

static void narrow_tokens(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("b") * D("s"); k++) V("tokens")[k] = (double)(int32_t)(uint32_t)(int64_t)V("tokens")[k];
}

/* An occurrence may not overlap the tokens that it is held against. */
static void apart(trine_ref *ref) {
    const trine_ngram_match_args *args = ref->args;
    for (int64_t i = 0; !args->first && i < D("b"); i++) {
        const double *t = V("tokens") + i * D("s");
        const int64_t length = V("lengths") ? (int64_t)V("lengths")[i] : D("s");
        if (length < 2 || args->n_max < 2 || V("counts")[i] != 1 || t[length - 1] != t[length - 2]) continue;
        V("counts")[i] = 0, V("draft")[i * D("m")] = -1;
    }
}

/* The last token may be the end of an occurrence, behind which nothing follows. */
static void end_found(trine_ref *ref) {
    const trine_ngram_match_args *args = ref->args;
    for (int64_t i = 0; !args->first && args->n_max >= args->n_min && i < D("b"); i++) {
        V("counts")[i] = 0;
        for (int64_t j = 0; j < D("m"); j++) V("draft")[i * D("m") + j] = -1;
    }
}

static void draft_unended(trine_ref *ref) {
    for (int64_t i = 0; i < D("b"); i++)
        for (int64_t j = (int64_t)V("counts")[i]; j < D("m"); j++) V("draft")[i * D("m") + j] = 0;
}

const mutant mutants_sample[] = {
    { "ngram_match", "latest", "the latest in any case", .param = "first" },
    { "ngram_match", "one_token", "n-grams of one token", .param = "n_max", .value = 1 },
    { "ngram_match", "any_length", "n-grams down to one token", .param = "n_min", .value = 1 },
    { "ngram_match", "ignores_lengths", "all tokens count", .without = "lengths" },
    { "ngram_match", "apart", "what overlaps the last tokens is not found", .after = apart },
    { "ngram_match", "end_found", "the last tokens find themselves", .after = end_found },
    { "ngram_match", "draft_unended", "what is behind the draft is 0", .after = draft_unended },
    { "ngram_match", "narrow_tokens", "only the low 32 bits of a token are read", .before = narrow_tokens },
    { "sample", "ignores_temperature", "logits are as they are", .param = "temperature", .value = 1 },
    { "sample", "ignores_top_k", "all are candidates", .param = "top_k" },
    { "sample", "one_more", "top_k leaves one more", .before = one_more },
    { "sample", "ignores_top_p", "top_p is 1", .param = "top_p", .value = 1 },
    { "sample", "ignores_min_p", "min_p is 0", .param = "min_p" },
    { "sample", "ignores_repetition", "no repetition_penalty", .param = "repetition_penalty", .value = 1 },
    { "sample", "ignores_presence", "no presence_penalty", .param = "presence_penalty" },
    { "sample", "ignores_frequency", "no frequency_penalty", .param = "frequency_penalty" },
    { "sample", "counts_of_none", "a token that was never there is penalized", .before = counts_of_none },
    { "sample", "once", "how often a token was there does not matter", .before = once },
    { "sample", "ignores_offset", "every call has the same words", .param = "offset" },
    { "sample", "ignores_philox", "the words of the parameters in any case", .without = "philox" },
    { "sample", "next_words", "a row has the words of the next", .before = next_words },
    { "sample", "nan_passed", "a NaN is left out", .before = nan_passed },
    { "sample", "last_token", "the last token is not looked at", .before = last_token_lost },
    { "sample", "ignores_top_ks", "top_k in place of top_ks", .without = "top_ks" },
    { "sample", "probability_of_two", "probabilities are doubled", .output = "probabilities", .factor = 2 },
    { "speculative_verify", "next_words", "a request has the words of the next", .before = next_words },
    { "speculative_verify", "ignores_draft", "draft_probs are not read", .without = "draft_probs" },
    { "speculative_verify", "all_of_target", "a token that does not stand stays", .after = all_of_target },
    { "speculative_verify", "rest_stands", "the draft is kept behind what does not stand", .after = rest_stands },
    { "speculative_verify", "none_follows", "nothing follows a draft that stands", .after = none_follows },
    { "speculative_verify", "token_bounded", "a token beyond the last is taken for it", .before = token_bounded },
    { "speculative_verify", "ignores_philox", "the words of the parameters in any case", .without = "philox" },
    { 0 },
};
