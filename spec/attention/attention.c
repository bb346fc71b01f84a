/* SPDX-License-Identifier: Apache-2.0 */
/* attention: the table and the reference. */
#include <stdlib.h>

#include <trine/attention.h>

#include "attention_rows.h"

#define ARGS trine_attention_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const attention a = ATTENTION_OF(ref, args);
    double *o = trine_ref_value(ref, "o"), *o_magnitude = trine_ref_magnitude(ref, "o"),
           *o_slack = trine_ref_slack(ref, "o");
    double *lse = trine_ref_value(ref, "lse"), *lse_magnitude = trine_ref_magnitude(ref, "lse"),
           *lse_slack = trine_ref_slack(ref, "lse");
    score *scores = malloc(sizeof *scores * (size_t)(a.sk + 1));
    row r = row_of(a.sk);
    for (int64_t n = 0; n < a.b; n++)
        for (int64_t i = 0; i < a.sq; i++)
            for (int64_t head = 0; head < a.h; head++) {
                r.count = score_row(&a, n, i, head, scores, &r.sees, &r.lse);
                measure(scores, &r);
                for (int64_t j = r.sees.first; j < r.sees.last; j++) r.kept[j - r.sees.first] = kept(&a, n, i, head, j);
                const int64_t at = query_row(&a, n, i, head) * a.d, stride = a.hk * a.d,
                              lse_at = (n * a.h + head) * a.sq + i;
                const bool masked = r.lse == -INFINITY && !r.uncertain;
                for (int64_t c = 0; c < a.d; c++) {
                    if (masked)
                        o[at + c] = 0;
                    else
                        output(&a, &r, a.v + key_row(&a, n, r.sees.first, head) * a.d + c, stride, o + at + c,
                               o_magnitude + at + c, o_slack + at + c);
                }
                if (lse) row_lse(&r, lse + lse_at, lse_magnitude + lse_at, lse_slack + lse_at);
            }
    free(scores);
    row_free(&r);
}

const trine_spec trine_spec_attention = {
    SPEC(attention),
    .summary = "Scaled dot-product attention",
    .formula =
        "o[b,i,h] = sum_j p_j r_j v[b,j,g], g = h/(H/Hk); p_j = exp(z_j - lse), lse = log(sum_j exp(z_j) + "
        "exp(sinks[h])) over the visible j, without a last term if there are no sinks; z_j = c tanh(s_j/c), or s_j "
        "if the softcap c is 0, + bias[b,h,i,j] - alibi_slopes[b,h] |i + sk - sq - j|; s_j = scale "
        "q[b,i,h].k[b,j,g]. j is visible iff (causal) j <= i + sk - sq and "
        "(window w) |i + sk - sq - j| < w and (window_left w) i + sk - sq - j < w and (window_right w) j - i - sk "
        "+ sq < w, within the same sequence. r_j is 1, or with dropout 1/(1-dropout) rounded to f32 where element "
        "((b H + h) sq + i) 8 ceil(sk/8) + j is kept by dropout's rule, else 0. o = 0, lse = -Inf where none is "
        "visible or every score is -Inf",
    .source =
        "Dao 2023 (FlashAttention-2), algorithm 1; softcap: Gemma 2; Press et al. 2022 (ALiBi), section 3; sinks: "
        "Xiao et al. 2024, section 3.2, as learnt by gpt-oss",
    .tensors = { TENSOR(q, IN, "T", "[b] sq h d"), TENSOR(k, IN, "T", "[b] sk hk d"), TENSOR(v, IN, "T", "[b] sk hk d"),
                 TENSOR(cu_seqlens_q, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sq"),
                 TENSOR(cu_seqlens_k, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sk"),
                 TENSOR(seqused_q, IN | OPTIONAL, "i32", "nused", .fill = "lengths sq cu_seqlens_q"),
                 TENSOR(seqused_k, IN | OPTIONAL, "i32", "nused", .fill = "lengths sk cu_seqlens_k"),
                 TENSOR(bias, IN | OPTIONAL | BROADCAST, "B", "[b] [h] [sq] sk"),
                 TENSOR(alibi_slopes, IN | OPTIONAL | BROADCAST, "f32", "[b] h"),
                 TENSOR(sinks, IN | OPTIONAL, "B", "h"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(o, OUT, "T", "[b] sq h d", .terms = "2*sk + 32", .rounds = "1"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "[b] h sq", .terms = "2*sk + 32") },
    .params = { ATTENTION_PARAMS },
    .types = { "T=f32 B=f32", "T=bf16 B=bf16|f32", "T=f16 B=f16|f32" },
    .require = { "hk > 0", "h % hk == 0", "d > 0", "cu_seqlens_q <-> cu_seqlens_k", "with cu_seqlens_q: b == 1",
                 "with seqused_q: nused == max(b, nseq)", "with seqused_k: nused == max(b, nseq)",
                 "philox instead of seed" },
    .flops = "4*b*sq*sk*h*d",
    .masked = "sq sk",
    .independent = "b",
    .sizes = { "b: 1 0 2", "sq: 1 0 2 7 64 113 203 300", "sk: 1 0 3 16 97 128 203 1100", "h: 1 2 4 8", "hk: 1 2 4",
               "d: 1 3 16 40 64 80 128 256", "nseq: 1 2 5", "nused: 1 2 5" },
    .cases = { "llama3-8b prefill: T=bf16 sq=1024 sk=1024 h=32 hk=8 d=128 causal=1",
               "gpt2: T=f32 b=2 sq=1024 sk=1024 h=12 hk=12 d=64 causal=1",
               "square f32: T=f32 sq=1024 sk=1024 h=8 hk=8 d=128",
               "square f32 d64: T=f32 sq=1024 sk=1024 h=8 hk=8 d=64",
               "square bf16: T=bf16 sq=1024 sk=1024 h=8 hk=8 d=128",
               "llama3-8b decode: T=bf16 b=4 sq=1 sk=8192 h=32 hk=8 d=128",
               "multi-head decode: T=f16 b=4 sq=1 sk=4096 h=16 hk=16 d=64",
               "gemma2 local: T=bf16 sq=2048 sk=2048 h=8 hk=4 d=256 causal=1 softcap=50 window=512",
               "packed: T=bf16 sq=2048 sk=2048 h=16 hk=4 d=64 nseq=8 causal=1 +cu_seqlens_q +cu_seqlens_k",
               "alibi: T=bf16 b=2 sq=2048 sk=2048 h=16 hk=16 d=64 causal=1 +alibi_slopes",
               "bias: T=bf16 b=2 sq=1024 sk=1024 h=16 hk=16 d=64 +bias",
               "gpt-oss local: T=bf16 sq=4096 sk=4096 h=64 hk=8 d=64 causal=1 window_left=128 +sinks",
               "dropout: T=bf16 b=4 sq=1024 sk=1024 h=16 hk=16 d=64 causal=1 dropout=0.1" },
    .reference = reference,
};
