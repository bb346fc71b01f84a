/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of attention by lists of blocks, and of its gradient. */
#include "mutant.h"

#include <math.h>

typedef trine_attention_blocks_args forward;
typedef trine_attention_blocks_backward_args backward;

static void no_root(trine_ref *ref, void *args) {
    forward *a = args;
    if (a->scale == 0) a->scale = (float)(1 / (double)D("d"));
}
static void backward_no_root(trine_ref *ref, void *args) {
    backward *a = args;
    if (a->scale == 0) a->scale = (float)(1 / (double)D("d"));
}

/* What is no block is the first one. */
static void first_block(trine_ref *ref, void *args) {
    const forward *a = args;
    for (int64_t e = 0; e < D("b") * D("hl") * D("entries"); e++)
        if (V("indices")[e] < 0 || V("indices")[e] * (double)a->key_block >= (double)D("sk")) V("indices")[e] = 0;
}

/* An entry that was on the list before does not count. */
static void once(trine_ref *ref, void *args) {
    (void)args;
    const int64_t entries = D("entries"), blocks = D("blocks");
    for (int64_t list = 0; list < D("b") * D("hl"); list++)
        for (int64_t r = 0; r < blocks; r++) {
            const double *starts = V("starts") + list * (blocks + 1) + r;
            double *at = V("indices") + list * entries;
            for (int64_t e = (int64_t)starts[0]; e < (int64_t)starts[1]; e++)
                for (int64_t f = (int64_t)starts[0]; f < e; f++)
                    if (at[f] == at[e]) at[e] = -1;
        }
}

/* The last entry of each head's lists is not seen. */
static void entry_less(trine_ref *ref, void *args) {
    (void)args;
    const int64_t entries = D("entries"), blocks = D("blocks");
    for (int64_t list = 0; list < D("b") * D("hl"); list++) {
        const int64_t last = (int64_t)V("starts")[list * (blocks + 1) + blocks];
        if (last > 0) V("indices")[list * entries + last - 1] = -1;
    }
}

/* Every head of lists has the lists of the first. */
static void first_head(trine_ref *ref, void *args) {
    (void)args;
    const int64_t hl = D("hl"), n = D("blocks") + 1;
    for (int64_t list = 0; list < D("b") * hl; list++)
        for (int64_t r = 0; r < n; r++) V("starts")[list * n + r] = V("starts")[list / hl * hl * n + r];
}

static void wider_queries(trine_ref *ref, void *args) {
    (void)ref;
    ((forward *)args)->query_block++;
}
static void backward_wider_keys(trine_ref *ref, void *args) {
    (void)ref;
    ((backward *)args)->key_block++;
}

/* Rows without keys have o as the others do, of weights that are all the same. */
static void nan_if_none(trine_ref *ref) {
    for (int64_t at = 0; V("lse") && at < D("b") * D("h") * D("sq"); at++)
        if (V("lse")[at] == -INFINITY) V("lse")[at] = NAN;
}

static void no_delta(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("b") * D("sq") * D("h") * D("d"); i++) V("o")[i] = 0;
}

static void dk_unscaled(trine_ref *ref) {
    const int64_t d = D("d");
    for (int64_t i = 0; i < D("b") * D("sk") * D("hk") * d; i++) V("dk")[i] *= sqrt((double)d);
}

const mutant mutants_attention_blocks[] = {
    { "attention_blocks", "ignores_bias", "no weights of blocks", .without = "bias" },
    { "attention_blocks", "ignores_causal", "keys of the future are seen", .param = "causal" },
    { "attention_blocks", "ignores_softcap", "no softcap", .param = "softcap" },
    { "attention_blocks", "no_root", "scores are scaled by 1/d", .before = no_root },
    { "attention_blocks", "first_block", "what is no block is the first one", .before = first_block },
    { "attention_blocks", "once", "a block that stands twice counts once", .before = once },
    { "attention_blocks", "entry_less", "the last entry is not seen", .before = entry_less },
    { "attention_blocks", "first_head", "all heads have the first one's lists", .before = first_head },
    { "attention_blocks", "wider_queries", "a query more has each list", .before = wider_queries },
    { "attention_blocks", "nan_if_none", "lse is NaN where there are no keys", .after = nan_if_none },
    { "attention_blocks", "lse_base_2", "lse in units of log 2", .output = "lse", .factor = 1.44269504088896340736 },
    { "attention_blocks_backward", "ignores_bias", "no weights of blocks", .without = "bias" },
    { "attention_blocks_backward", "ignores_causal", "keys of the future are seen", .param = "causal" },
    { "attention_blocks_backward", "ignores_softcap", "no softcap", .param = "softcap" },
    { "attention_blocks_backward", "no_root", "scores are scaled by 1/d", .before = backward_no_root },
    { "attention_blocks_backward", "entry_less", "the last entry is not seen", .before = entry_less },
    { "attention_blocks_backward", "first_head", "all heads have the first one's lists", .before = first_head },
    { "attention_blocks_backward", "wider_keys", "a key more is in each block", .before = backward_wider_keys },
    { "attention_blocks_backward", "no_delta", "the sum of o dout is left out", .before = no_delta },
    { "attention_blocks_backward", "dk_unscaled", "dk lacks a factor", .after = dk_unscaled },
    { "attention_blocks_backward", "dbias_scaled", "dbias has a factor of 2", .output = "dbias", .factor = 2 },
    { 0 }
};
