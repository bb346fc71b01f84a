/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode: the table and the reference. */
#include <string.h>

#include <trine/attention.h>

#include "attention_rows.h"

#define ARGS trine_attention_decode_args

/* The bound is attention's (attention_rows.h), of a sequence's keys and values as the cache holds them. Their sums of
 * parts that are merged have no more roundings than one sum. Scales come in as factors:
 * 1. k_scale folds into scale: a product and its rounding more, 2u of scale k_scale sum |q||k|. Where the factor is
 *    subnormal it may be taken for 0.
 * 2. v_scale is multiplied in at the end: u of the result; and what was lost to flushing before is multiplied by it. */

/* One sequence and one head of keys: its keys and values side by side, as attention has them. */
typedef struct problem {
    attention a;
    double *q, *k, *v; /* v: NULL, the keys' first columns are the values */
    bool *absent;
    double length, k_scale, v_scale;
    int64_t dv, step; /* step: from a value to the next */
    bool k_scaled, v_scaled;
    score *scores;
    row row;
} problem;

static problem problem_of(const trine_ref *ref, const ARGS *args) {
    problem p = { .dv = trine_ref_dim(ref, "dv") };
    const int64_t sk = trine_ref_dim(ref, "maxpages") * trine_ref_dim(ref, "page"), sq = trine_ref_dim(ref, "sq"),
                  group = trine_ref_dim(ref, "h") / trine_ref_dim(ref, "hk"), d = trine_ref_dim(ref, "d");
    p.a = (attention){ .b = 1, .sq = sq, .sk = sk, .h = group, .hk = 1, .d = d, .causal = true };
    p.a.softcap = args->softcap, p.a.before = args->window_left;
    const trine_dtype T = trine_ref_type(ref, "T");
    p.a.lost = fmax(FLUSH, trine_smallest_normal(T) * trine_unit_roundoff(T));
    p.q = malloc(sizeof(double) * (size_t)(sq * group * d + 1));
    p.k = malloc(sizeof(double) * (size_t)(sk * d + 1));
    if (trine_ref_value(ref, "v_cache")) p.v = malloc(sizeof(double) * (size_t)(sk * p.dv + 1));
    p.absent = malloc((size_t)sk + 1);
    p.step = p.v ? p.dv : d;
    p.a.q = p.q, p.a.k = p.k, p.a.v = p.v ? p.v : p.k, p.a.absent = p.absent;
    p.scores = malloc(sizeof *p.scores * (size_t)(sk + 1));
    p.row = row_of(sk);
    for (int64_t j = 0; j <= sk; j++) p.row.kept[j] = 1;
    return p;
}

static void problem_free(problem *p) {
    free(p->q), free(p->k), free(p->v), free(p->absent), free(p->scores);
    row_free(&p->row);
}

/* Sequence n and head g of keys. */
static void gather(const trine_ref *ref, problem *p, int64_t n, int64_t g) {
    const int64_t page = trine_ref_dim(ref, "page"), pages = trine_ref_dim(ref, "pages"), d = p->a.d, dv = p->dv,
                  columns = trine_ref_dim(ref, "maxpages"), hk = trine_ref_dim(ref, "hk"), h = hk * p->a.h;
    const double *q = trine_ref_value(ref, "q"), *k = trine_ref_value(ref, "k_cache"),
                 *v = trine_ref_value(ref, "v_cache"), *table = trine_ref_value(ref, "block_table"),
                 *sinks = trine_ref_value(ref, "sinks"), *k_scale = trine_ref_value(ref, "k_scale"),
                 *v_scale = trine_ref_value(ref, "v_scale");
    p->length = fmax(0, fmin((double)p->a.sk, trine_ref_value(ref, "lengths")[n]));
    for (int64_t i = 0; i < p->a.sq; i++)
        memcpy(p->q + i * p->a.h * d, q + ((n * p->a.sq + i) * h + g * p->a.h) * d, sizeof *q * (size_t)(p->a.h * d));
    for (int64_t j = 0; j < (int64_t)p->length; j++) {
        const double at = table[n * columns + j / page];
        p->absent[j] = !(at >= 0 && at < (double)pages);
        const int64_t from = p->absent[j] ? 0 : ((int64_t)at * page + j % page) * hk + g;
        for (int64_t c = 0; c < d; c++) p->k[j * d + c] = p->absent[j] ? 0 : k[from * d + c];
        for (int64_t c = 0; p->v && c < dv; c++) p->v[j * dv + c] = p->absent[j] ? 0 : v[from * dv + c];
    }
    p->a.used_k = &p->length;
    p->a.sinks = sinks ? sinks + g * p->a.h : NULL;
    p->k_scaled = k_scale != NULL, p->k_scale = k_scale ? k_scale[g] : 1;
    p->v_scaled = p->v ? v_scale != NULL : p->k_scaled;
    p->v_scale = p->v ? (v_scale ? v_scale[g] : 1) : p->k_scale;
}

/* What folding k_scale into the factor of the scores adds to their errors. */
static void widen_errors(const problem *p, int64_t i, int64_t head) {
    const attention *a = &p->a;
    const double factor = fabs(a->scale), d = (double)a->d;
    const int64_t keys = p->row.sees.last - p->row.sees.first;
    for (int64_t j = 0; p->k_scaled && j < keys; j++) {
        const double *q = p->q + (i * a->h + head) * a->d, *k = p->k + (p->row.sees.first + j) * a->d;
        double size = 0;
        for (int64_t c = 0; factor < 0x1p-90 && c < a->d; c++) size += trine_finite_abs(q[c] * k[c]);
        p->scores[j].error = p->scores[j].error * (d + 6) / (d + 4) + 2 * FLUSH * size;
        p->scores[j].uncertain |= 1.5 * factor > 0.5 * trine_largest(TRINE_F32);
    }
}

/* Element c of a row's output. */
static void element(const problem *p, int64_t c, double *value, double *magnitude, double *slack) {
    const double *v = p->a.v + p->row.sees.first * p->step + c, scale = fabs(p->v_scale);
    output(&p->a, &p->row, v, p->step, value, magnitude, slack);
    if (!p->v_scaled) return;
    const double before = *value;
    *value *= p->v_scale;
    if (isfinite(*magnitude)) *magnitude *= scale;
    *slack = *slack * scale + 2 * U * fabs(isfinite(*value) ? *value : 0) + FLUSH * (1 + trine_finite_abs(before));
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    problem p = problem_of(ref, args);
    const int64_t b = trine_ref_dim(ref, "b"), hk = trine_ref_dim(ref, "hk"), sq = p.a.sq, h = p.a.h * hk;
    const double scale = args->scale != 0 ? args->scale : 1 / sqrt((double)p.a.d);
    double *out = trine_ref_value(ref, "out"), *out_magnitude = trine_ref_magnitude(ref, "out"),
           *out_slack = trine_ref_slack(ref, "out"), *lse = trine_ref_value(ref, "lse"),
           *lse_magnitude = trine_ref_magnitude(ref, "lse"), *lse_slack = trine_ref_slack(ref, "lse");
    for (int64_t n = 0; n < b * hk; n++) {
        gather(ref, &p, n / hk, n % hk);
        p.a.scale = scale * p.k_scale;
        for (int64_t row = 0; row < sq * p.a.h; row++) {
            const int64_t i = row / p.a.h, head = row % p.a.h, whole = n % hk * p.a.h + head,
                          at = ((n / hk * sq + i) * h + whole) * p.dv, lse_at = (n / hk * h + whole) * sq + i;
            p.row.count = score_row(&p.a, 0, i, head, p.scores, &p.row.sees, &p.row.lse);
            widen_errors(&p, i, head);
            measure(p.scores, &p.row);
            for (int64_t c = 0; c < p.dv; c++) {
                if (p.row.lse == -INFINITY && !p.row.uncertain)
                    out[at + c] = 0;
                else
                    element(&p, c, out + at + c, out_magnitude + at + c, out_slack + at + c);
            }
            if (lse) row_lse(&p.row, lse + lse_at, lse_magnitude + lse_at, lse_slack + lse_at);
        }
    }
    problem_free(&p);
}

const trine_spec trine_spec_attention_decode = {
    SPEC(attention_decode),
    .summary = "Attention of a sequence's last tokens to its keys and values in a paged cache",
    .formula =
        "out[b,i,h] = sum_j p_j V_j, p_j = exp(z_j - lse), lse = log(sum_j exp(z_j) + exp(sinks[h])) over the visible "
        "j, without a last term if there are no sinks; z_j = c tanh(s_j/c), or s_j if the softcap c is 0; s_j = scale "
        "q[b,i,h].K_j. With g = h/(H/Hk), P = block_table[b, j/page] and r = j%page: K_j = k_scale[g] "
        "k_cache[P,r,g], V_j = v_scale[g] v_cache[P,r,g], or without v_cache the first dv elements of K_j. j < "
        "lengths[b] is visible iff P is in [0, pages) and j <= a and (window_left w) a - j < w, a = lengths[b] - sq + "
        "i. out = 0, lse = -Inf where none is visible or every score is -Inf",
    .source = "Dao 2023 (FlashAttention-2), algorithm 1; Kwon et al. 2023 (PagedAttention); keys as values: "
              "DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.2; softcap: Gemma 2; sinks: as learnt by gpt-oss",
    .tensors = { TENSOR(q, IN, "T", "b sq h d"),
                 TENSOR(k_cache, IN, "C", "pages page hk d", .fill = "paged block_table lengths"),
                 TENSOR(v_cache, IN | OPTIONAL, "C", "pages page hk dv", .fill = "paged block_table lengths"),
                 TENSOR(block_table, IN, "i32", "b maxpages", .fill = "slots pages"),
                 TENSOR(lengths, IN, "i32", "b", .fill = "lengths maxpages*page"),
                 TENSOR(sinks, IN | OPTIONAL, "B", "h"),
                 TENSOR(k_scale, IN | OPTIONAL | BROADCAST, "f32", "hk", .fill = "positive"),
                 TENSOR(v_scale, IN | OPTIONAL | BROADCAST, "f32", "hk", .fill = "positive"),
                 TENSOR(out, OUT, "T", "b sq h dv", .terms = "2*maxpages*page + 32", .rounds = "1"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "b h sq", .terms = "2*maxpages*page + 32") },
    .params = { PARAM(scale, F32, .values = "0 0.3 -1", .unset = "1/sqrt(d)", .doc = "of the scores"),
                PARAM(softcap, F32, .values = "0 1 30", .min = 0,
                      .doc = "c: scores become c tanh(score/c); 0: they do not"),
                PARAM(window_left, I64, .values = "0 1 5 33", .min = 0,
                      .doc = "w: query i sees key j only if lengths - sq + i - j < w; 0: unlimited") },
    .types = { "T=f32 C=f32|e4m3|i8 B=f32", "T=bf16 C=bf16|e4m3|i8 B=bf16|f32", "T=f16 C=f16|e4m3|i8 B=f16|f32" },
    .require = { "hk > 0", "h % hk == 0", "d > 0", "dv > 0", "without v_cache: dv <= d", "v_scale -> v_cache" },
    .flops = "2*b*sq*h*maxpages*page*(d + dv)",
    .independent = "b",
    .sizes = { "b: 1 0 2 3", "sq: 1 0 2 4 7", "h: 1 2 4 8 20", "hk: 1 2 4", "d: 1 3 16 40 64 80 128 192 256 576",
               "dv: 1 5 16 40 64 128 256 512", "pages: 1 0 3 8 40", "page: 1 0 3 16 64 256",
               "maxpages: 1 0 2 5 17 40 300" },
    .cases = { "llama3-8b page 16: T=bf16 C=bf16 B=f32 b=16 sq=1 h=32 hk=8 d=128 dv=128 pages=8192 page=16 "
               "maxpages=512 +v_cache",
               "llama3-8b page 64: T=bf16 C=bf16 B=f32 b=16 sq=1 h=32 hk=8 d=128 dv=128 pages=2048 page=64 "
               "maxpages=128 +v_cache",
               "llama3-8b e4m3: T=bf16 C=e4m3 B=f32 b=16 sq=1 h=32 hk=8 d=128 dv=128 pages=2048 page=64 maxpages=128 "
               "+v_cache +k_scale +v_scale",
               "latent: T=bf16 C=bf16 B=f32 b=16 sq=1 h=128 hk=1 d=576 dv=512 pages=2048 page=64 maxpages=128",
               "one long sequence: T=bf16 C=bf16 B=f32 b=1 sq=1 h=32 hk=8 d=128 dv=128 pages=2048 page=16 "
               "maxpages=2048 +v_cache",
               "four tokens: T=bf16 C=bf16 B=f32 b=16 sq=4 h=32 hk=8 d=128 dv=128 pages=2048 page=64 maxpages=128 "
               "+v_cache",
               "gpt-oss local: T=bf16 C=bf16 B=bf16 b=16 sq=1 h=64 hk=8 d=64 dv=64 pages=2048 page=64 maxpages=128 "
               "window_left=128 +v_cache +sinks" },
    .reference = reference,
};
