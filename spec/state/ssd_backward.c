/* SPDX-License-Identifier: Apache-2.0 */
/* ssd_backward: the table and the reference. */
#include <trine/state.h>

#include "ssd.h"
#include "state_backward.h"

#define ARGS trine_ssd_backward_args

/* Of each head: da, dd, ddt_bias. */
typedef struct sums {
    state_sum a, d, dt_bias;
} sums;

/* A term that is a number, of a sum. */
static void add_number(state_sum *sum, state_number x, double size, bool uncertain) {
    sum->x += x.x, sum->error += x.error, sum->size += size;
    sum->uncertain |= uncertain || isinf(x.x);
}

/* Of raw = dt + bias, in the gradient of softplus: its slope is at most 1/4 times what raw is off by, and the sigmoid
 * is within 11u. */
static state_number slope_of(const state_problem *s, int64_t at, int64_t head) {
    const double bias = s->dt_bias ? s->dt_bias[head] : 0, raw = s->dt[at] + bias, size = trine_finite_abs(raw);
    if (!s->softplus) return (state_number){ 1, 0 };
    const double power = exp(-fabs(raw)), y = (raw < 0 ? power : 1) / (1 + power), off = s->dt_bias ? U * size : 0;
    return (state_number){ y, fmin(0.25, trine_finite_abs(y) * exp(off)) * off + 12 * U * trine_finite_abs(y) + FLUSH };
}

static void finish(trine_ref *ref, const state_problem *s, const state_step *x, int64_t row, int64_t head,
                   state_gradients *of, void *context) {
    const int64_t at = row * s->h + head;
    const double *d = trine_ref_value(ref, "d"), *dy = trine_ref_value(ref, "dy") + at * s->e;
    sums *all = (sums *)context + head;
    state_sum dt = { 0 }, dd = { 0 };
    for (int64_t j = 0; j < s->e; j++) {
        state_number dx = state_product(x->factor, of->value[j]);
        bool uncertain = of->uncertain[j];
        if (d) {
            const double term = d[head] * dy[j];
            dx.x += term;
            dx.error += 2 * U * trine_finite_abs(term) + U * (trine_finite_abs(dx.x) + dx.error) + 2 * FLUSH;
            uncertain |= isinf(d[head]) || isinf(dy[j]) || !(trine_finite_abs(term) < LARGEST);
        }
        state_put(ref, "dx", at * s->e + j, dx, uncertain);
        state_add(&dt, of->value[j], (state_number){ x->v[j], 0 }, of->uncertain[j]);
        state_add(&dd, (state_number){ dy[j], 0 }, (state_number){ x->v[j], 0 }, false);
    }
    const double e = (double)s->e;
    const state_number gate = state_total(&of->gate, (double)s->d + e + 4), by_x = state_total(&dt, e + 4),
                       by_gate = state_product((state_number){ s->a[head], 0 }, gate);
    state_number dl = { by_x.x + by_gate.x, by_x.error + by_gate.error };
    dl.error += U * (trine_finite_abs(dl.x) + dl.error);
    const bool vague = dt.uncertain || of->gate.uncertain || isinf(s->a[head]) || !(of->gate.size < LARGEST) ||
                       !(dt.size + trine_finite_abs(by_gate.x) < LARGEST);
    const state_number ddt = state_product(slope_of(s, at, head), dl), da = state_product(x->factor, gate);
    state_put(ref, "ddt", at, ddt, vague);
    add_number(&all->dt_bias, ddt, trine_finite_abs(ddt.x) + ddt.error, vague);
    add_number(&all->a, da, trine_finite_abs(da.x) + da.error, vague || x->vague);
    add_number(&all->d, state_total(&dd, e + 4), dd.size, dd.uncertain);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const state_problem s = ssd_of(ref, args->softplus);
    const double depth = state_depth((double)(trine_ref_dim(ref, "b") * s.t));
    sums *all = calloc((size_t)s.h + 1, sizeof *all);
    state_backward_all(ref, &s, "dy", "dc", "db", finish, all);
    for (int64_t head = 0; head < s.h; head++) {
        state_put_sum(ref, "da", head, &all[head].a, depth);
        state_put_sum(ref, "dd", head, &all[head].d, depth);
        state_put_sum(ref, "ddt_bias", head, &all[head].dt_bias, depth);
    }
    state_clear(ref, "dx", &s, s.h * s.e);
    state_clear(ref, "ddt", &s, s.h);
    free(all);
}

const trine_spec trine_spec_ssd_backward = {
    SPEC(ssd_backward),
    .summary = "Gradient of ssd",
    .formula =
        "of each member of the batch and head, with l and S as in ssd: G[t] = exp(l[t+1] a) G[t+1] + dy[t] c[t]^T, "
        "at the last step dlast + dy c^T; dx = l G b + d dy; db = l G^T x, dc = S^T dy, sums over the heads of a "
        "group; r[t] = exp(l[t] a) sum of G[t] S[t-1]; dl = x^T G b + a r; ddt = dl, or with softplus dl "
        "sigmoid(dt + dt_bias); da = sum over all steps of l r, dd of dy^T x, ddt_bias of ddt; ds0 = exp(l a) G "
        "of the first step, dlast or 0 if there is no step; 0 behind the last of packed sequences",
    .source = "the derivative of ssd's formula",
    .tensors = { TENSOR(dy, IN, "T", "[b] t h p"), SSD_INPUTS, TENSOR(dlast, IN | OPTIONAL, "f32", "[s] h p n"),
                 TENSOR(dx, OUT, "T", "[b] t h p", .terms = "1"), TENSOR(ddt, OUT, "f32", "[b] t h", .terms = "1"),
                 TENSOR(da, OUT, "f32", "h", .terms = "1"), TENSOR(db, OUT, "T", "[b] t g n", .terms = "1"),
                 TENSOR(dc, OUT, "T", "[b] t g n", .terms = "1"), TENSOR(dd, OUT | OPTIONAL, "f32", "h", .terms = "1"),
                 TENSOR(ddt_bias, OUT | OPTIONAL, "f32", "h", .terms = "1"),
                 TENSOR(ds0, OUT | OPTIONAL, "f32", "[s] h p n", .terms = "1") },
    .params = { SSD_PARAMS },
    .types = { "T=f32|bf16|f16" },
    .require = { SSD_REQUIRE, "with dlast: s == max(b, nseq)", "with ds0: s == max(b, nseq)", "dd -> d",
                 "ddt_bias -> dt_bias", "ds0 -> s0" },
    .flops = "20*b*t*h*p*n",
    .independent = "p",
    .sizes = { "b: 1 0 2", "t: 7 0 1 2 33 70", "h: 2 1 4 6", "p: 16 0 1 7 33 64 130", "g: 1 2 3",
               "n: 16 1 3 33 64 100 128 256", "nseq: 1 2 4", "s: 1 0 2 4" },
    .cases = { "mamba2-2.7b: T=bf16 b=1 t=2048 h=80 p=64 g=1 n=128 softplus=1 +d +dt_bias +dd +ddt_bias",
               "codestral: T=bf16 b=1 t=1024 h=128 p=64 g=8 n=128 softplus=1 +d +dt_bias +dd +ddt_bias",
               "packed: T=bf16 b=1 t=4096 h=80 p=64 g=1 n=128 nseq=8 softplus=1 +d +dt_bias +cu_seqlens +dd" },
    .reference = reference,
    .prepare = ssd_prepare,
};
