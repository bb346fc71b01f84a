/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks_backward: the table, the reference, and how tests come by o and lse. */
#include <trine/attention_blocks.h>

#include "lists.h"
#include "spec/attention/attention_gradient.h"

#define ARGS trine_attention_blocks_backward_args

/* The bound is that of attention's gradient (attention_gradient.h) for the pairs that there are. Each element's sum
 * passes a term through as many additions as it has terms, and as many roundings besides as there: its count is slack.
 * dbias has its own count of terms, which kernels may add up in any order. */
typedef struct sums {
    gradient of;
    int64_t count;
    double *terms; /* of each row of d, or element */
    int64_t width;
} sums;

static sums sums_of(const trine_ref *ref, const char *name, int64_t rows, int64_t width) {
    sums s = { gradient_of(ref, name), rows * width, calloc((size_t)rows + 1, sizeof(double)), width };
    for (int64_t i = 0; s.of.value && i < s.count; i++) s.of.value[i] = 0;
    return s;
}

static void sums_end(sums *s, double scale) {
    for (int64_t i = 0; s->of.value && i < s->count; i++)
        if (isfinite(s->of.magnitude[i])) s->of.slack[i] += s->terms[i / s->width] * U * s->of.magnitude[i];
    if (s->of.value) finish(&s->of, s->count, scale);
    free(s->terms);
}

typedef struct gradients {
    sums dq, dk, dv, dbias;
    double largest, lost; /* of T; of ds, whose product with a small scale comes later */
} gradients;

/* Pair j of query `at` of the rows b sq h. */
static void add_pair(const lists *l, gradients *g, const query *x, int64_t at, int64_t j) {
    const int64_t d = l->d, group = at % l->h / (l->h / l->hk), key = l->key[j] * l->hk + group;
    const score s = score_of(&l->row, 0, 0, 0, j, 0);
    const weights w = weights_of(&l->row, x, &s, l->values + j * d, 1, g->largest);
    g->dq.terms[at]++, g->dk.terms[key]++, g->dv.terms[key]++, g->dbias.terms[l->entry[j]]++;
    if (w.uncertain) mark(&g->dq.of, at * d, d), mark(&g->dk.of, key * d, d), mark(&g->dv.of, key * d, d);
    for (int64_t c = 0; c < d && !w.uncertain; c++) {
        add(&g->dv.of, key * d + c, w.p, w.p_error, l->row.lost, x->dout[c]);
        add(&g->dq.of, at * d + c, w.ds, w.ds_error, g->lost, l->keys[j * d + c]);
        add(&g->dk.of, key * d + c, w.ds, w.ds_error, g->lost, l->row.q[c]);
    }
    if (g->dbias.of.value == NULL) return;
    if (w.uncertain) mark(&g->dbias.of, l->entry[j], 1);
    if (!w.uncertain) add(&g->dbias.of, l->entry[j], w.dz, w.dz_error, 0, 1);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    lists l = LISTS_OF(ref, args);
    gradients g = { .dq = sums_of(ref, "dq", l.b * l.sq * l.h, l.d),
                    .dk = sums_of(ref, "dk", l.b * l.sk * l.hk, l.d),
                    .dv = sums_of(ref, "dv", l.b * l.sk * l.hk, l.d),
                    .dbias = sums_of(ref, "dbias", l.b * l.hl * l.entries, 1),
                    .largest = trine_largest(trine_ref_type(ref, "T")),
                    .lost = l.row.lost / fmin(1, fabs(l.row.scale)) };
    for (int64_t at = 0; at < l.b * l.sq * l.h; at++) {
        const int64_t head = at % l.h, i = at / l.h % l.sq, n = at / l.h / l.sq;
        const double *o = trine_ref_value(ref, "o") + at * l.d;
        query x = { .dout = trine_ref_value(ref, "dout") + at * l.d,
                    .lse = trine_ref_value(ref, "lse")[(n * l.h + head) * l.sq + i] };
        if (x.lse == -INFINITY) continue;
        lists_see(&l, n, i, head);
        for (int64_t c = 0; c < l.d; c++) {
            const double term = x.dout[c] * o[c];
            x.D += term;
            if (isfinite(term)) x.size += fabs(term), x.inputs += fabs(x.dout[c]) + fabs(o[c]);
        }
        for (int64_t j = 0; j < l.row.sk; j++) add_pair(&l, &g, &x, at, j);
    }
    sums_end(&g.dq, l.row.scale), sums_end(&g.dk, l.row.scale), sums_end(&g.dv, 1), sums_end(&g.dbias, 1);
    lists_free(&l);
}

/* o and lse as attention_blocks gives them. */
static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    lists l = LISTS_OF(ref, args);
    double *o = trine_ref_value(ref, "o"), *lse = trine_ref_value(ref, "lse");
    for (int64_t at = 0; at < l.b * l.sq * l.h; at++) {
        const int64_t head = at % l.h, i = at / l.h % l.sq, n = at / l.h / l.sq;
        lists_see(&l, n, i, head);
        score *scores = malloc(sizeof *scores * (size_t)(l.row.sk + 1));
        sight seen;
        double sum;
        score_row(&l.row, 0, 0, 0, scores, &seen, &sum);
        for (int64_t c = 0; c < l.d; c++) {
            double all = 0;
            for (int64_t j = 0; j < l.row.sk && sum != -INFINITY; j++)
                all += exp(scores[j].z - sum) * l.values[j * l.d + c];
            o[at * l.d + c] = all;
        }
        lse[(n * l.h + head) * l.sq + i] = sum;
        free(scores);
    }
    lists_free(&l);
}

const trine_spec trine_spec_attention_blocks_backward = {
    SPEC(attention_blocks_backward),
    .summary = "Gradient of attention by lists of blocks",
    .formula =
        "with p_iej = exp(z_iej - lse_i) over the pairs of attention_blocks, at most 1 where |lse_i| >= 2^17, D_i = "
        "dout_i.o_i, dz_iej = p_iej (dout_i.v_j - D_i), ds_iej = dz_iej (1 - tanh(s_ij/c)^2), the last factor only "
        "with "
        "a softcap c: dq_i = scale sum_ej ds_iej k_j; dk_j = scale sum_ie ds_iej q_i; dv_j = sum_ie p_iej dout_i, over "
        "the query heads of a group too; dbias_e = sum_ij dz_iej, over the heads of a list too. A row with lse = -Inf "
        "gives nothing",
    .source = "Dao 2023 (FlashAttention-2), algorithm 2",
    .tensors = { TENSOR(dout, IN, "T", "[b] sq h d"), TENSOR(q, IN, "T", "[b] sq h d"),
                 TENSOR(k, IN, "T", "[b] sk hk d"), TENSOR(v, IN, "T", "[b] sk hk d"),
                 TENSOR(o, IN, "T", "[b] sq h d", .fill = "derived"),
                 TENSOR(lse, IN, "f32", "[b] h sq", .fill = "derived"),
                 TENSOR(starts, IN, "i32", "[b] hl blocks+1", .fill = "lists entries"),
                 TENSOR(indices, IN, "i32", "[b] hl entries", .fill = "blocks sk key_block"),
                 TENSOR(bias, IN | OPTIONAL, "f32", "[b] hl entries"),
                 TENSOR(dq, OUT, "T", "[b] sq h d", .terms = "16", .rounds = "1"),
                 TENSOR(dk, OUT, "T", "[b] sk hk d", .terms = "16", .rounds = "1"),
                 TENSOR(dv, OUT, "T", "[b] sk hk d", .terms = "16", .rounds = "1"),
                 TENSOR(dbias, OUT | OPTIONAL, "f32", "[b] hl entries", .terms = "16") },
    .params = { LISTS_PARAMS },
    .types = { "T=f32", "T=bf16", "T=f16" },
    .require = { "hk > 0", "h % hk == 0", "hl > 0", "h % hl == 0", "d > 0", "dbias -> bias" },
    .gradient = { "dout = d o" },
    /* of full blocks of 64 keys, and queries that are divided among the lists */
    .flops = "10*b*sq*h*d*64*entries/max(blocks,1)",
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
    .prepare = prepare,
};
