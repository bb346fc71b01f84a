/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward: the table, the reference, and how tests come by o and lse. */
#include <stdlib.h>

#include <trine/attention.h>

#include "attention_gradient.h"

#define ARGS trine_attention_backward_args

/* Where the gradients go; dbias and dsinks may be absent. */
typedef struct gradients {
    gradient dq, dk, dv, dbias, dsinks;
    double largest, lost; /* of T; of ds, whose product with a small scale comes later */
} gradients;

static void add_key(const attention *a, gradients *g, const query *x, int64_t n, int64_t i, int64_t head, int64_t j,
                    int64_t aligned) {
    const int64_t at = query_row(a, n, i, head) * a->d, key = key_row(a, n, j, head) * a->d;
    const double keep = kept(a, n, i, head, j);
    const score s = score_of(a, n, i, head, j, aligned);
    const weights w = weights_of(a, x, &s, a->v + key, keep, g->largest);
    const double weight = keep > 0 ? w.p * keep : 0, weight_error = keep > 0 ? (w.p_error + 2 * U * w.p) * keep : 0;
    if (w.uncertain) mark(&g->dq, at, a->d), mark(&g->dk, key, a->d), mark(&g->dv, key, a->d);
    for (int64_t c = 0; c < a->d && !w.uncertain; c++) {
        add(&g->dv, key + c, weight, weight_error, a->lost * fmax(1, keep), x->dout[c]);
        add(&g->dq, at + c, w.ds, w.ds_error, g->lost, a->k[key + c]);
        add(&g->dk, key + c, w.ds, w.ds_error, g->lost, a->q[at + c]);
    }
    if (g->dbias.value == NULL) return;
    const int64_t pair = ((n * a->h + head) * a->sq + i) * a->sk + j;
    if (w.uncertain) mark(&g->dbias, pair, 1);
    if (!w.uncertain) add(&g->dbias, pair, w.dz, w.dz_error, 0, 1);
}

static void add_sink(const attention *a, gradients *g, const query *x, int64_t head) {
    const score s = sink_of(a, head);
    const weights w = weights_of(a, x, &s, NULL, 1, g->largest);
    if (w.uncertain) mark(&g->dsinks, head, 1);
    if (!w.uncertain) add(&g->dsinks, head, w.ds, w.ds_error, 0, 1);
}

static void add_query(const attention *a, gradients *g, const trine_ref *ref, int64_t n, int64_t i, int64_t head) {
    const double *o = trine_ref_value(ref, "o") + query_row(a, n, i, head) * a->d;
    query x = { .dout = trine_ref_value(ref, "dout") + query_row(a, n, i, head) * a->d,
                .lse = trine_ref_value(ref, "lse")[(n * a->h + head) * a->sq + i] };
    const sight seen = sight_of(a, n, i);
    if (x.lse == -INFINITY) return;
    for (int64_t c = 0; c < a->d; c++) {
        const double term = x.dout[c] * o[c];
        x.D += term;
        if (isfinite(term)) x.size += fabs(term), x.inputs += fabs(x.dout[c]) + fabs(o[c]);
    }
    for (int64_t j = seen.first; j < seen.last; j++) add_key(a, g, &x, n, i, head, j, seen.aligned);
    if (g->dsinks.value && seen.counts) add_sink(a, g, &x, head);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const attention a = ATTENTION_OF(ref, args);
    gradients g = { gradient_of(ref, "dq"),
                    gradient_of(ref, "dk"),
                    gradient_of(ref, "dv"),
                    gradient_of(ref, "dbias"),
                    gradient_of(ref, "dsinks"),
                    .largest = trine_largest(trine_ref_type(ref, "T")),
                    .lost = a.lost / fmin(1, fabs(a.scale)) };
    const struct {
        gradient *of;
        int64_t count;
        double scale;
    } all[] = { { &g.dq, a.b * a.sq * a.h * a.d, a.scale },
                { &g.dk, a.b * a.sk * a.hk * a.d, a.scale },
                { &g.dv, a.b * a.sk * a.hk * a.d, 1 },
                { &g.dbias, a.b * a.h * a.sq * a.sk, 1 },
                { &g.dsinks, a.h, 1 } };
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        for (int64_t i = 0; all[k].of->value && i < all[k].count; i++) all[k].of->value[i] = 0;
    for (int64_t row = 0; row < a.b * a.sq * a.h; row++)
        add_query(&a, &g, ref, row / a.h / a.sq, row / a.h % a.sq, row % a.h);
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        if (all[k].of->value) finish(all[k].of, all[k].count, all[k].scale);
}

/* o and lse as attention gives them. */
static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    const attention a = ATTENTION_OF(ref, args);
    double *o = trine_ref_value(ref, "o"), *lse = trine_ref_value(ref, "lse");
    score *scores = malloc(sizeof *scores * (size_t)(a.sk + 1));
    for (int64_t row = 0; row < a.b * a.sq * a.h; row++) {
        const int64_t head = row % a.h, i = row / a.h % a.sq, n = row / a.h / a.sq, at = row * a.d;
        sight seen;
        double sum;
        score_row(&a, n, i, head, scores, &seen, &sum);
        for (int64_t c = 0; c < a.d; c++) o[at + c] = 0;
        for (int64_t j = seen.first; j < seen.last && sum != -INFINITY; j++)
            for (int64_t c = 0; c < a.d; c++)
                o[at + c] += exp(scores[j - seen.first].z - sum) *
                             (kept(&a, n, i, head, j) * a.v[key_row(&a, n, j, head) * a.d + c]);
        lse[(n * a.h + head) * a.sq + i] = sum;
    }
    free(scores);
}

const trine_spec trine_spec_attention_backward = {
    SPEC(attention_backward),
    .summary = "Gradient of attention",
    .formula = "with p_ij = exp(z_ij - lse_i) over the visible pairs as in attention, at most 1 where |lse_i| >= 2^17, "
               "r_ij 0 or 1/(1-dropout) as there, D_i = dout_i.o_i, ds_ij = p_ij "
               "(r_ij dout_i.v_j - D_i) (1 - tanh(s_ij/c)^2): "
               "dq_i = scale sum_j ds_ij k_j; dk_j = scale sum_i ds_ij q_i; dv_j = sum_i p_ij r_ij dout_i, sums over i "
               "over the query heads of a group too; dbias_ij = ds_ij without that factor, 0 where not visible; "
               "dsinks_h = -sum_i "
               "exp(sinks_h - lse_i) D_i. The last factor of ds only with a softcap c; a row with lse = -Inf gives "
               "nothing",
    .source = "Dao 2023 (FlashAttention-2), algorithm 2",
    .tensors = { TENSOR(dout, IN, "T", "[b] sq h d"), TENSOR(q, IN, "T", "[b] sq h d"),
                 TENSOR(k, IN, "T", "[b] sk hk d"), TENSOR(v, IN, "T", "[b] sk hk d"),
                 TENSOR(o, IN, "T", "[b] sq h d", .fill = "derived"),
                 TENSOR(lse, IN, "f32", "[b] h sq", .fill = "derived"),
                 TENSOR(cu_seqlens_q, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sq"),
                 TENSOR(cu_seqlens_k, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sk"),
                 TENSOR(seqused_q, IN | OPTIONAL, "i32", "nused", .fill = "lengths sq cu_seqlens_q"),
                 TENSOR(seqused_k, IN | OPTIONAL, "i32", "nused", .fill = "lengths sk cu_seqlens_k"),
                 TENSOR(bias, IN | OPTIONAL | BROADCAST, "B", "[b] [h] [sq] sk"),
                 TENSOR(alibi_slopes, IN | OPTIONAL | BROADCAST, "f32", "[b] h"),
                 TENSOR(sinks, IN | OPTIONAL, "B", "h"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(dq, OUT, "T", "[b] sq h d", .terms = "sk + 16", .rounds = "1"),
                 TENSOR(dk, OUT, "T", "[b] sk hk d", .terms = "sq*h/hk + 16", .rounds = "1"),
                 TENSOR(dv, OUT, "T", "[b] sk hk d", .terms = "sq*h/hk + 16", .rounds = "1"),
                 TENSOR(dbias, OUT | OPTIONAL, "B", "[b] h sq sk", .terms = "1"),
                 TENSOR(dsinks, OUT | OPTIONAL, "B", "h", .terms = "b*sq + 16") },
    .params = { ATTENTION_PARAMS },
    .types = { "T=f32 B=f32", "T=bf16 B=bf16|f32", "T=f16 B=f16|f32" },
    .require = { "hk > 0", "h % hk == 0", "d > 0", "cu_seqlens_q <-> cu_seqlens_k", "with cu_seqlens_q: b == 1",
                 "with seqused_q: nused == max(b, nseq)", "with seqused_k: nused == max(b, nseq)",
                 "philox instead of seed", "dsinks -> sinks", "dbias -> bias" },
    .gradient = { "dout = d o" },
    .flops = "10*b*sq*sk*h*d",
    .masked = "sq sk",
    .independent = "b",
    .sizes = { "b: 1 0 2", "sq: 1 0 2 7 64 113 203 300", "sk: 1 0 3 16 97 128 203 1100", "h: 1 2 4 8", "hk: 1 2 4",
               "d: 1 3 16 40 64 80 128 256", "nseq: 1 2 5", "nused: 1 2 5" },
    .cases = { "llama3-8b: T=bf16 sq=1024 sk=1024 h=32 hk=8 d=128 causal=1",
               "gpt2: T=f32 b=2 sq=1024 sk=1024 h=12 hk=12 d=64 causal=1",
               "square f32: T=f32 sq=1024 sk=1024 h=8 hk=8 d=128",
               "square f32 d64: T=f32 sq=1024 sk=1024 h=8 hk=8 d=64",
               "packed: T=bf16 sq=2048 sk=2048 h=16 hk=4 d=64 nseq=8 causal=1 +cu_seqlens_q +cu_seqlens_k" },
    .reference = reference,
    .prepare = prepare,
};
