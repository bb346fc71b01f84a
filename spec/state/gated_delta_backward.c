/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward: the table and the reference. */
#include <trine/state.h>

#include "gated_delta.h"
#include "state_backward.h"

#define ARGS trine_gated_delta_backward_args

static void finish(trine_ref *ref, const state_problem *s, const state_step *x, int64_t row, int64_t head,
                   state_gradients *of, void *context) {
    const int64_t at = row * s->h + head;
    (void)x, (void)context;
    for (int64_t j = 0; j < s->e; j++) state_put(ref, "dv", at * s->e + j, of->value[j], of->uncertain[j]);
    state_put_sum(ref, "dbeta", at, &of->beta, (double)s->e + 4);
    state_put_sum(ref, "dg", at, &of->gate, (double)(s->d + s->e) + 4);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const state_problem s = gated_delta_of(ref, args->scale);
    state_backward_all(ref, &s, "dout", "dq", "dk", finish, NULL);
    state_clear(ref, "dv", &s, s.h * s.e);
    state_clear(ref, "dg", &s, s.h);
    state_clear(ref, "dbeta", &s, s.h);
}

const trine_spec trine_spec_gated_delta_backward = {
    SPEC(gated_delta_backward),
    .summary = "Gradient of gated_delta",
    .formula =
        "of each member of the batch and head, with P, S, u as in gated_delta: G[t] = exp(g[t+1]) H[t+1] + scale "
        "q[t] dout[t]^T, at the last step dlast + scale q dout^T; dv = beta G^T k, or G^T k without beta; H = G - "
        "k dv^T, or G without beta; dq = scale S dout; dk = G u - P dv, the last term with beta alone; dg = sum "
        "of H P; dbeta = k^T G (v - P^T k); ds0 = exp(g) H of the first step, dlast or 0 if there is no step; dq "
        "and dk are sums over the heads of a key head; 0 behind the last of packed sequences",
    .source = "the derivative of gated_delta's formula",
    .tensors = { TENSOR(dout, IN, "T", "[b] t h e"), GATED_DELTA_INPUTS,
                 TENSOR(dlast, IN | OPTIONAL, "f32", "[s] h d e"), TENSOR(dq, OUT, "T", "[b] t hk d", .terms = "1"),
                 TENSOR(dk, OUT, "T", "[b] t hk d", .terms = "1"), TENSOR(dv, OUT, "T", "[b] t h e", .terms = "1"),
                 TENSOR(dg, OUT | OPTIONAL, "f32", "[b] t h", .terms = "1"),
                 TENSOR(dbeta, OUT | OPTIONAL, "f32", "[b] t h", .terms = "1"),
                 TENSOR(ds0, OUT | OPTIONAL, "f32", "[s] h d e", .terms = "1") },
    .params = { GATED_DELTA_PARAMS },
    .types = { "T=f32|bf16|f16" },
    .require = { GATED_DELTA_REQUIRE, "with dlast: s == max(b, nseq)", "with ds0: s == max(b, nseq)", "dg -> g",
                 "dbeta -> beta", "ds0 -> s0" },
    .gradient = { "dout = d o" },
    .flops = "24*b*t*h*d*e",
    .independent = "e",
    .sizes = { "b: 1 0 2", "t: 7 0 1 2 33 70", "h: 2 1 4 6", "hk: 1 2 3", "d: 16 1 3 33 64 100 128 256",
               "e: 16 0 1 7 33 64 130", "nseq: 1 2 4", "s: 1 0 2 4" },
    .cases = { "qwen3-next: T=bf16 b=1 t=2048 h=32 hk=16 d=128 e=128 +g +beta +dg +dbeta",
               "deltanet-1.3b: T=bf16 b=2 t=2048 h=16 hk=16 d=128 e=128 +beta +dbeta",
               "gated linear attention: T=bf16 b=2 t=2048 h=16 hk=16 d=128 e=128 +g +dg",
               "packed: T=bf16 b=1 t=4096 h=16 hk=16 d=128 e=128 nseq=8 +g +beta +cu_seqlens +dg +dbeta" },
    .reference = reference,
    .prepare = gated_delta_prepare,
};
