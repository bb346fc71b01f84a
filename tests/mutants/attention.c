/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of attention, also over paged caches, rope and their gradients. */
#include "mutant.h"

#include <stdlib.h>
#include <string.h>

#include "spec/attention/attention.h"

typedef trine_attention_args forward;
typedef trine_attention_backward_args backward;

/* -------------------------------------------------------------------------------------------------------- attention */

static void forward_wide(trine_ref *ref, void *args) {
    (void)ref;
    if (((forward *)args)->window > 0) ((forward *)args)->window++;
}

static void backward_wide(trine_ref *ref, void *args) {
    (void)ref;
    if (((backward *)args)->window > 0) ((backward *)args)->window++;
}

/* The windows to the left and to the right change places. */
static void forward_turned(trine_ref *ref, void *args) {
    forward *a = args;
    const int64_t left = a->window_left;
    (void)ref;
    a->window_left = a->window_right, a->window_right = left;
}

/* A bias is read as if its rows were those of the query before. */
static void bias_late(trine_ref *ref, void *args) {
    const int64_t sk = D("sk");
    (void)args;
    for (int64_t row = D("b") * D("h") * D("sq") - 1; V("bias") && row > 0; row--)
        memcpy(&V("bias")[row * sk], &V("bias")[(row - 1) * sk], (size_t)sk * sizeof(double));
}

/* Slopes raise scores. */
static void slopes_turned(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("alibi_slopes") && i < D("b") * D("h"); i++) V("alibi_slopes")[i] = -V("alibi_slopes")[i];
}

/* All of a sequence's keys, or queries, count. */
static void all_used(const trine_ref *ref, double *used, const double *offsets, int64_t all) {
    for (int64_t n = 0; used && n < D("nused"); n++) {
        if (!offsets)
            used[n] = (double)all;
        else if (n < D("nseq"))
            used[n] = offsets[n + 1] - offsets[n];
    }
}
static void all_keys(trine_ref *ref, void *args) {
    (void)args;
    all_used(ref, V("seqused_k"), V("cu_seqlens_k"), D("sk"));
}
static void all_queries(trine_ref *ref, void *args) {
    (void)args;
    all_used(ref, V("seqused_q"), V("cu_seqlens_q"), D("sq"));
}

/* What is kept is not scaled. */
static void forward_unscaled(trine_ref *ref) {
    const float p = ((const forward *)ref->args)->dropout;
    for (int64_t i = 0; p > 0 && i < D("b") * D("sq") * D("h") * D("d"); i++) V("o")[i] *= 1 - (double)p;
}

/* The scale left out is 1/d instead of its root. */
static void forward_no_root(trine_ref *ref, void *args) {
    if (((forward *)args)->scale == 0) ((forward *)args)->scale = 1 / (float)D("d");
}

static void backward_no_root(trine_ref *ref, void *args) {
    if (((backward *)args)->scale == 0) ((backward *)args)->scale = 1 / (float)D("d");
}

/* The heads of queries in another order: to[i] = from[order of i]; of q and o each token's, of lse each sequence's. */
static void reorder(double *x, int64_t outer, int64_t heads, int64_t shared, int64_t inner, bool back) {
    double *kept = malloc((size_t)(heads * inner) * sizeof *kept + 1);
    for (int64_t i = 0; kept && x && i < outer; i++, x += heads * inner) {
        memcpy(kept, x, (size_t)(heads * inner) * sizeof *kept);
        for (int64_t h = 0; h < heads; h++) {
            const int64_t other = h % shared * (heads / shared) + h / shared;
            memcpy(&x[(back ? h : other) * inner], &kept[(back ? other : h) * inner], (size_t)inner * sizeof *kept);
        }
    }
    free(kept);
}

static void heads_interleaved(trine_ref *ref, void *args) {
    (void)args;
    reorder(V("q"), D("b") * D("sq"), D("h"), D("hk"), D("d"), false);
}

static void heads_restored(trine_ref *ref) {
    reorder(V("o"), D("b") * D("sq"), D("h"), D("hk"), D("d"), true);
    reorder(V("lse"), D("b"), D("h"), D("hk"), D("sq"), true);
}

static void last_key_twin(trine_ref *ref, void *args) {
    (void)args;
    const int64_t row = D("hk") * D("d"), sk = D("sk");
    if (D("b") > 0 && sk > 1) memcpy(&V("v")[(sk - 1) * row], &V("v")[(sk - 2) * row], (size_t)row * sizeof(double));
}

/* delta, the rows' sum of o dout, is left out. */
static void no_delta(trine_ref *ref, void *args) {
    (void)args;
    memset(V("o"), 0, (size_t)(D("b") * D("sq") * D("h") * D("d")) * sizeof(double));
}

/* dk lacks the factor scale, where that is given. */
static void dk_unscaled(trine_ref *ref) {
    const double scale = (double)((const backward *)ref->args)->scale;
    for (int64_t k = 0; scale != 0 && k < D("b") * D("sk") * D("hk") * D("d"); k++) V("dk")[k] /= scale;
}

/* Row i of a head, of batch n, and its keys with their scores. */
typedef struct row {
    int64_t n, i, head;
    sight sees;
    double lse;
    score *scores;
} row;

static void each_row(const attention *a, void (*body)(trine_ref *ref, const attention *a, const row *r),
                     trine_ref *ref) {
    row r = { .scores = malloc(sizeof *r.scores * (size_t)(a->sk + 1)) };
    for (r.n = 0; r.scores && r.n < a->b; r.n++)
        for (r.i = 0; r.i < a->sq; r.i++)
            for (r.head = 0; r.head < a->h; r.head++) {
                score_row(a, r.n, r.i, r.head, r.scores, &r.sees, &r.lse);
                body(ref, a, &r);
            }
    free(r.scores);
}

/* A row of large scores has weights that overflow, or vanish. */
static void row_lost(trine_ref *ref, const attention *a, const row *r) {
    const int64_t at = query_row(a, r->n, r->i, r->head) * a->d;
    for (int64_t c = 0; fabs(r->lse) > 0x1p31 && c < a->d; c++) V("o")[at + c] = 0;
}
static void large_scores_lost(trine_ref *ref) {
    const forward *args = ref->args;
    const attention a = ATTENTION_OF(ref, args);
    each_row(&a, row_lost, ref);
}

/* The scores are off by their roundings, and p is what that gives. */
static void row_unbounded(trine_ref *ref, const attention *a, const row *r) {
    const double lse = V("lse")[(r->n * a->h + r->head) * a->sq + r->i];
    const int64_t at = query_row(a, r->n, r->i, r->head) * a->d;
    for (int64_t j = r->sees.first; isfinite(lse) && j < r->sees.last; j++) {
        const double p = exp(r->scores[j - r->sees.first].z * (1 + 0x1p-22) - lse);
        const int64_t key = key_row(a, r->n, j, r->head) * a->d;
        for (int64_t c = 0; p > 1 && c < a->d; c++) V("dv")[key + c] += (p - 1) * V("dout")[at + c];
    }
}
static void p_unbounded(trine_ref *ref) {
    const backward *args = ref->args;
    const attention a = ATTENTION_OF(ref, args);
    each_row(&a, row_unbounded, ref);
}

/* ------------------------------------------------------------------------------------------------------------- rope */

static void other_way(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("p") * D("c"); k++) V("sin")[k] = -V("sin")[k];
}

static void late_position(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("positions") && k < D("b") * D("s"); k++)
        if (V("positions")[k] + 1 < (double)D("p")) V("positions")[k]++;
}

static void last_pair(trine_ref *ref, void *args) {
    (void)args;
    const int64_t c = D("c");
    for (int64_t i = 0; c > 0 && i < D("p"); i++) V("cos")[i * c + c - 1] = 1, V("sin")[i * c + c - 1] = 0;
}

/* What is not turned is 0. */
static void tail_cleared(trine_ref *ref, const char *output) {
    const int64_t d = D("d"), heads = D("b") * D("s") * D("h");
    for (int64_t i = 0; i < heads; i++)
        for (int64_t j = 2 * D("c"); j < d; j++) V(output)[i * d + j] = 0;
}

static void forward_cleared(trine_ref *ref) { tail_cleared(ref, "y"); }

static void backward_cleared(trine_ref *ref) { tail_cleared(ref, "dx"); }

/* ----------------------------------------------------------------------------------------------------- paged caches */

/* Of tokens with the same slot the first one is written. */
static void first_token(trine_ref *ref, void *args) {
    double *slots = V("slots");
    (void)args;
    for (int64_t i = 0; i < D("t"); i++)
        for (int64_t j = 0; j < i; j++)
            if (slots[i] == slots[j]) slots[i] = -1;
}

/* Only the low 32 bits of a slot are read. */
static void narrow_slots(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("t"); i++) V("slots")[i] = (int32_t)(uint32_t)(int64_t)V("slots")[i];
}

/* Slots beyond the cache are those at its end. */
static void last_slot(trine_ref *ref, void *args) {
    const double all = (double)(D("pages") * D("page"));
    (void)args;
    for (int64_t i = 0; i < D("t"); i++)
        if (V("slots")[i] >= all) V("slots")[i] = all - 1;
}

/* Pages that are not there are the first page. */
static void first_page(trine_ref *ref, void *args) {
    double *table = V("block_table");
    (void)args;
    for (int64_t i = 0; i < D("b") * D("maxpages"); i++)
        if (D("pages") > 0 && !(table[i] >= 0 && table[i] < (double)D("pages"))) table[i] = 0;
}

/* A sequence's second page is its first once more. */
static void second_page(trine_ref *ref, void *args) {
    double *table = V("block_table");
    (void)args;
    for (int64_t n = 0; D("maxpages") > 1 && n < D("b"); n++) table[n * D("maxpages") + 1] = table[n * D("maxpages")];
}

/* The last key is not seen. */
static void key_less(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t n = 0; n < D("b"); n++) V("lengths")[n]--;
}

static void decode_no_root(trine_ref *ref, void *args) {
    trine_attention_decode_args *a = args;
    if (a->scale == 0) a->scale = 1 / (float)D("d");
}

/* Both states have the same weight. */
static void same_weight(trine_ref *ref, void *args) {
    (void)args;
    memcpy(V("lse_a"), V("lse_b"), (size_t)(D("b") * D("h") * D("sq")) * sizeof(double));
}

/* What has no weight counts if it is NaN. */
static void nan_counts(trine_ref *ref, void *args) {
    const int64_t h = D("h"), sq = D("sq"), d = D("d");
    (void)args;
    for (int64_t row = 0; row < D("b") * sq * h; row++) {
        double *lse = &V("lse_b")[(row / h / sq * h + row % h) * sq + row / h % sq];
        if (d > 0 && isnan(V("out_b")[row * d]) && *lse == -INFINITY) *lse = NAN;
    }
}

/* lse has tokens before heads, as out has them. */
static void lse_turned(trine_ref *ref, void *args) {
    const int64_t h = D("h"), sq = D("sq"), all = D("b") * h * sq;
    double *lse = V("lse_a"), *kept = malloc((size_t)all * sizeof *kept + 1);
    (void)args;
    if (kept) memcpy(kept, lse, (size_t)all * sizeof *kept);
    for (int64_t i = 0; kept && i < all; i++) lse[(i / h / sq * h + i % h) * sq + i / h % sq] = kept[i];
    free(kept);
}

const mutant mutants_attention[] = {
    { "attention", "wide_window", "the window is one key wider", .before = forward_wide },
    { "attention", "ignores_softcap", "no softcap", .param = "softcap" },
    { "attention", "no_root", "scores are scaled by 1/d", .before = forward_no_root },
    { "attention", "heads_interleaved", "head h reads the keys of head h % hk", .before = heads_interleaved,
      .after = heads_restored },
    { "attention", "last_key", "the last key of the first sequence has the value of the one before",
      .before = last_key_twin },
    { "attention", "lse_base_2", "lse in units of log 2", .output = "lse", .factor = 1.44269504088896340736 },
    { "attention", "large_scores_lost", "o is 0 where lse is beyond 2^31", .after = large_scores_lost },
    { "attention", "windows_turned", "the windows to the left and to the right change places",
      .before = forward_turned },
    { "attention", "ignores_window_left", "nothing is hidden to the left", .param = "window_left" },
    { "attention", "ignores_window_right", "nothing is hidden to the right", .param = "window_right" },
    { "attention", "ignores_bias", "no bias", .without = "bias" },
    { "attention", "bias_late", "a query has the bias of the one before", .before = bias_late },
    { "attention", "ignores_slopes", "no slopes", .without = "alibi_slopes" },
    { "attention", "slopes_turned", "what is far away scores more", .before = slopes_turned },
    { "attention", "ignores_sinks", "no sinks", .without = "sinks" },
    { "attention", "all_keys", "all keys of a sequence count", .before = all_keys },
    { "attention", "all_queries", "all queries of a sequence count", .before = all_queries },
    { "attention", "ignores_dropout", "nothing is dropped", .param = "dropout" },
    { "attention", "ignores_philox", "the key is seed, whatever philox has", .without = "philox" },
    { "attention", "kept_unscaled", "what dropout keeps is not scaled", .after = forward_unscaled },
    { "attention_backward", "ignores_bias", "no bias", .without = "bias" },
    { "attention_backward", "ignores_slopes", "no slopes", .without = "alibi_slopes" },
    { "attention_backward", "ignores_window_left", "nothing is hidden to the left", .param = "window_left" },
    { "attention_backward", "all_keys", "all keys of a sequence count", .before = all_keys },
    { "attention_backward", "ignores_dropout", "nothing is dropped", .param = "dropout" },
    { "attention_backward", "dsinks_positive", "a sink takes from its own gradient", .output = "dsinks", .factor = -1 },
    { "attention_backward", "dbias_scaled", "dbias has a factor of 2", .output = "dbias", .factor = 2 },
    { "attention_backward", "wide_window", "the window is one key wider", .before = backward_wide },
    { "attention_backward", "ignores_causal", "keys of the future are seen", .param = "causal" },
    { "attention_backward", "ignores_softcap", "no softcap", .param = "softcap" },
    { "attention_backward", "no_root", "scores are scaled by 1/d", .before = backward_no_root },
    { "attention_backward", "no_delta", "the sum of o dout is left out", .before = no_delta },
    { "attention_backward", "p_unbounded", "p is exp(z - lse), z off by four roundings, and may be large",
      .after = p_unbounded },
    { "attention_backward", "dk_unscaled", "dk lacks the factor scale", .after = dk_unscaled },
    { "rope", "other_way", "pairs turn the other way", .before = other_way },
    { "rope", "ignores_interleaved", "pairs lie apart in any case", .param = "interleaved" },
    { "rope", "late_position", "tokens turn as far as the next position", .before = late_position },
    { "rope", "last_pair", "the last pair does not turn", .before = last_pair },
    { "rope", "tail_cleared", "the part of a head that does not turn is 0", .after = forward_cleared },
    { "rope", "narrow_positions", "only the low 32 bits of a position are read", .ids = "positions" },
    { "rope_backward", "other_way", "pairs turn as in the forward", .before = other_way },
    { "rope_backward", "ignores_interleaved", "pairs lie apart in any case", .param = "interleaved" },
    { "rope_backward", "late_position", "tokens turn as far as the next position", .before = late_position },
    { "rope_backward", "last_pair", "the last pair does not turn", .before = last_pair },
    { "rope_backward", "tail_cleared", "the part of a head that does not turn is 0", .after = backward_cleared },
    { "rope_backward", "narrow_positions", "only the low 32 bits of a position are read", .ids = "positions" },
    { "kv_cache_write", "first_token", "of tokens with the same slot the first one is written", .before = first_token },
    { "kv_cache_write", "narrow_slots", "only the low 32 bits of a slot are read", .before = narrow_slots },
    { "kv_cache_write", "last_slot", "slots beyond the cache are those at its end", .before = last_slot },
    { "kv_cache_write", "ignores_scale", "values are not scaled", .without = "v_scale" },
    { "attention_decode", "first_page", "pages that are not there are the first one", .before = first_page },
    { "attention_decode", "second_page", "the second page is the first once more", .before = second_page },
    { "attention_decode", "key_less", "the last key is not seen", .before = key_less },
    { "attention_decode", "no_root", "scores are scaled by 1/d", .before = decode_no_root },
    { "attention_decode", "ignores_softcap", "no softcap", .param = "softcap" },
    { "attention_decode", "ignores_window_left", "nothing is hidden", .param = "window_left" },
    { "attention_decode", "ignores_sinks", "no sinks", .without = "sinks" },
    { "attention_decode", "ignores_k_scale", "keys are not scaled", .without = "k_scale" },
    { "attention_decode", "ignores_v_scale", "values are not scaled", .without = "v_scale" },
    { "attention_decode", "lse_base_2", "lse in units of log 2", .output = "lse", .factor = 1.44269504088896340736 },
    { "attention_merge", "same_weight", "both states weigh the same", .before = same_weight },
    { "attention_merge", "nan_counts", "what has no weight counts if it is NaN", .before = nan_counts },
    { "attention_merge", "lse_turned", "lse has tokens before heads", .before = lse_turned },
    { "attention_merge", "lse_base_2", "lse in units of log 2", .output = "lse", .factor = 1.44269504088896340736 },
    { "attention", "narrow_places", "places in memory are counted in 32 bits", .narrow = true },
    { 0 },
};
