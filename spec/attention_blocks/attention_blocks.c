/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks: the table and the reference. */
#include <trine/attention_blocks.h>

#include "lists.h"
#include "spec/attention/attention_rows.h"

#define ARGS trine_attention_blocks_args

/* The bound is attention's (attention_rows.h), for the keys that a query sees: 2 n units of their number n, which may
 * be more than sk, are slack. Kernels gather keys of several entries, so that what is rescaled is for 16 keys or
 * more. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    lists l = LISTS_OF(ref, args);
    double *o = trine_ref_value(ref, "o"), *o_magnitude = trine_ref_magnitude(ref, "o"),
           *o_slack = trine_ref_slack(ref, "o"), *lse = trine_ref_value(ref, "lse"),
           *lse_magnitude = trine_ref_magnitude(ref, "lse"), *lse_slack = trine_ref_slack(ref, "lse");
    score *scores = NULL;
    row r = row_of(0);
    int64_t room = 0;
    for (int64_t at = 0; at < l.b * l.sq * l.h; at++) {
        const int64_t head = at % l.h, i = at / l.h % l.sq, n = at / l.h / l.sq, lse_at = (n * l.h + head) * l.sq + i;
        lists_see(&l, n, i, head);
        const int64_t keys = l.row.sk;
        if (scores == NULL || keys > room) {
            room = 2 * keys;
            free(scores);
            scores = malloc(sizeof *scores * (size_t)(room + 1));
            row_free(&r), r = row_of(room);
        }
        for (int64_t j = 0; j < keys; j++) r.kept[j] = 1;
        r.count = score_row(&l.row, 0, 0, 0, scores, &r.sees, &r.lse);
        measure(scores, &r);
        const bool masked = r.lse == -INFINITY && !r.uncertain;
        for (int64_t c = at * l.d; c < (at + 1) * l.d; c++) {
            if (masked)
                o[c] = 0;
            else
                output(&l.row, &r, l.values + c - at * l.d, l.d, o + c, o_magnitude + c, o_slack + c);
            if (isfinite(o_magnitude[c])) o_slack[c] += 2 * (double)keys * U * o_magnitude[c];
        }
        if (lse == NULL) continue;
        row_lse(&r, lse + lse_at, lse_magnitude + lse_at, lse_slack + lse_at);
        lse_slack[lse_at] += 2 * (double)keys * U;
    }
    free(scores);
    row_free(&r);
    lists_free(&l);
}

const trine_spec trine_spec_attention_blocks = {
    SPEC(attention_blocks),
    .summary = "Attention of blocks of queries to the blocks of keys on their lists",
    .formula =
        "o[b,i,h] = sum p_ej v[b,j,g], g = h/(H/Hk); p_ej = exp(z_ej - lse), lse = log(sum exp(z_ej)), sums over "
        "the entries e of list r = i/query_block, starts[b,l,r] <= e < starts[b,l,r+1], l = h/(H/Hl), and the "
        "keys j of block indices[b,l,e], c key_block <= j < min((c+1) key_block, sk) for block c, and (causal) j "
        "<= i + sk - sq; z_ej = softcap tanh(s_j/softcap), or s_j if softcap is 0, + bias[b,l,e]; s_j = scale "
        "q[b,i,h].k[b,j,g]. An entry that is no block is passed over. o = 0, lse = -Inf where there is no pair "
        "or every score is -Inf",
    .source = "Dao 2023 (FlashAttention-2), algorithm 1; lists: Lu et al. 2025 (MoBA), section 2.2; softcap: Gemma 2",
    .tensors = { TENSOR(q, IN, "T", "[b] sq h d"), TENSOR(k, IN, "T", "[b] sk hk d"), TENSOR(v, IN, "T", "[b] sk hk d"),
                 TENSOR(starts, IN, "i32", "[b] hl blocks+1", .fill = "lists entries"),
                 TENSOR(indices, IN, "i32", "[b] hl entries", .fill = "blocks sk key_block"),
                 TENSOR(bias, IN | OPTIONAL, "f32", "[b] hl entries"),
                 TENSOR(o, OUT, "T", "[b] sq h d", .terms = "32", .rounds = "1"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "[b] h sq", .terms = "32") },
    .params = { LISTS_PARAMS },
    .types = { "T=f32", "T=bf16", "T=f16" },
    .require = { "hk > 0", "h % hk == 0", "hl > 0", "h % hl == 0", "d > 0" },
    /* of full blocks of 64 keys, and queries that are divided among the lists */
    .flops = "4*b*sq*h*d*64*entries/max(blocks,1)",
    .independent = "b",
    .sizes = { "b: 1 0 2", "sq: 1 0 2 7 64 113 203 300", "sk: 1 0 3 16 97 128 203 1100", "h: 1 2 4 8", "hk: 1 2 4",
               "hl: 1 2 4 8", "d: 1 3 16 40 64 80 128 256", "blocks: 1 0 2 3 5 7 113", "entries: 1 0 2 7 20 64 300" },
    .cases = { "a quarter of 1024: T=bf16 sq=1024 sk=1024 h=4 hk=4 hl=4 d=64 blocks=16 entries=64 query_block=64 "
               "key_block=64",
               "an eighth of 32768: T=bf16 sq=32768 sk=32768 h=8 hk=8 hl=8 d=128 blocks=512 entries=32768 "
               "query_block=64 key_block=64",
               "an eighth of 8192: T=bf16 sq=8192 sk=8192 h=8 hk=8 hl=8 d=128 blocks=128 entries=2048 "
               "query_block=64 key_block=64",
               "shared lists: T=bf16 sq=8192 sk=8192 h=32 hk=8 hl=1 d=128 blocks=128 entries=2048 query_block=64 "
               "key_block=64",
               "f32: T=f32 sq=8192 sk=8192 h=8 hk=8 hl=8 d=64 blocks=128 entries=2048 query_block=64 key_block=64",
               "routed: T=bf16 sq=4096 sk=4096 h=16 hk=4 hl=4 d=128 blocks=4096 entries=65536 query_block=1 "
               "key_block=64" },
    .reference = reference,
};
