/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal_backward: the table and the reference. */
#include <stdlib.h>

#include <trine/scan.h>

#include "conv1d.h"

#define ARGS trine_conv1d_causal_backward_args

/* Additions that a term of a sum over all steps passes through at most: up to 256 in a row, and then as many as there
 * are such rows. */
static double depth(const conv *c, int64_t b) {
    const double all = (double)(b * c->all.t);
    return fmin(all, 256) + all / 256 + 16;
}

/* A sum as it grows; its terms' own errors in `error` and `lost`. */
static void add(scan_state *sum, const scan_state *term) {
    sum->h += term->h, sum->size += term->size, sum->error += term->error, sum->lost += term->lost;
    sum->uncertain |= term->uncertain;
}

/* A sum that is done, of terms of which none passes through more than `roundings`. */
static void put(trine_ref *ref, const char *name, int64_t at, scan_state *sum, double roundings) {
    sum->error += roundings * sum->size;
    sum->uncertain |= !(sum->size + U * sum->error < trine_largest(TRINE_F32));
    if (!isfinite(sum->h)) sum->error = 0;
    scan_put(ref, name, at, sum);
}

/* dz of each step of a sequence's channel. */
static void slopes(const conv *c, const double *dy, int64_t i, int64_t j, scan_state *dz) {
    for (int64_t t = 0; t < scan_steps(&c->all, i); t++) {
        const double of_y = dy[scan_place(&c->all, i, t, j)];
        dz[t] = (scan_state){ .h = of_y, .size = trine_finite_abs(of_y) };
        if (!c->silu) continue;
        const scan_state z = conv_sum(c, i, t, j);
        dz[t] = conv_slope(&z, of_y);
    }
}

/* dx of step t, which is negative in x0. */
static scan_state input_gradient(const conv *c, const scan_state *dz, int64_t steps, int64_t t, int64_t j) {
    scan_state sum = { 0 };
    for (int64_t tap = 0; tap < c->k; tap++) {
        const int64_t at = t + c->k - 1 - tap;
        if (at < 0 || at >= steps) continue;
        const scan_state term = scan_product(&dz[at], c->weight[j * c->k + tap]);
        add(&sum, &term);
    }
    return sum;
}

static void channel(trine_ref *ref, const conv *c, int64_t b, int64_t j, scan_state *dz) {
    const double *dy = trine_ref_value(ref, "dy");
    scan_state dweight[CONV_MOST] = { 0 }, dbias = { 0 };
    for (int64_t i = 0; i < c->all.count; i++) {
        const int64_t steps = scan_steps(&c->all, i);
        slopes(c, dy, i, j, dz);
        for (int64_t t = trine_ref_value(ref, "dx0") ? 1 - c->k : 0; t < steps || t < 0; t++) {
            scan_state sum = input_gradient(c, dz, steps, t, j);
            if (t < 0)
                put(ref, "dx0", (i * (c->k - 1) + c->k - 1 + t) * c->all.n + j, &sum, (double)(c->k + 2));
            else
                put(ref, "dx", scan_place(&c->all, i, t, j), &sum, (double)(c->k + 2));
        }
        for (int64_t t = 0; t < steps; t++) {
            add(&dbias, &dz[t]);
            for (int64_t tap = 0; tap < c->k; tap++) {
                const double *x = conv_input(c, i, t - c->k + 1 + tap, j);
                const scan_state term = x ? scan_product(&dz[t], *x) : (scan_state){ 0 };
                add(&dweight[tap], &term);
            }
        }
    }
    for (int64_t tap = 0; tap < c->k; tap++) put(ref, "dweight", j * c->k + tap, &dweight[tap], depth(c, b) + 2);
    put(ref, "dbias", j, &dbias, depth(c, b));
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const conv c = conv_of(ref, args->silu);
    scan_state *dz = calloc((size_t)c.all.t + 1, sizeof *dz);
    if (dz == NULL) abort();
    for (int64_t j = 0; j < c.all.n; j++) channel(ref, &c, trine_ref_dim(ref, "b"), j, dz);
    for (int64_t at = scan_end(&c.all) * c.all.n; c.all.cu && at < c.all.t * c.all.n; at++)
        scan_put(ref, "dx", at, &(scan_state){ 0 });
    free(dz);
}

const trine_spec trine_spec_conv1d_causal_backward = {
    SPEC(conv1d_causal_backward),
    .summary = "Gradient of conv1d_causal",
    .formula =
        "dz = dy, or with silu dy s (1 + z (1 - s)), s = sigmoid(z), z as in conv1d_causal; dx[b,t,j] = sum over "
        "i < k of weight[j,i] dz[b,t+k-1-i,j]; dweight[j,i] = sum over b, t of dz[b,t,j] x[b,t-k+1+i,j]; "
        "dbias[j] = sum over b, t of dz[b,t,j]; dx0[b,i] = dx[b,-k+1+i]; 0 behind the last sequence",
    .source = "the derivative of conv1d_causal's formula",
    .tensors = { TENSOR(dy, IN, "T", "[b] t n"), TENSOR(x, IN, "T", "[b] t n"), TENSOR(weight, IN, "W", "n k"),
                 TENSOR(bias, IN | OPTIONAL, "W", "n"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(x0, IN | OPTIONAL, "T", "[s] k-1 n"), TENSOR(dx, OUT, "T", "[b] t n", .terms = "1"),
                 TENSOR(dweight, OUT, "W", "n k", .terms = "1"), TENSOR(dbias, OUT | OPTIONAL, "W", "n", .terms = "1"),
                 TENSOR(dx0, OUT | OPTIONAL, "T", "[s] k-1 n", .terms = "1") },
    .params = { PARAM(silu, BOOL, .values = "0 1", .doc = "of the forward") },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .require = { "k > 0", "k <= 8", "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0",
                 "with x0: s == max(b, nseq)", "with dx0: s == max(b, nseq)", "dbias -> bias", "dx0 -> x0" },
    .flops = "6*b*t*n*k",
    .independent = "n",
    .sizes = { "b: 1 0 2 3", "t: 7 0 1 2 33 130 600", "n: 64 0 1 3 8 31 130 257 1030", "k: 4 1 2 3 5 8", "nseq: 1 2 5",
               "s: 1 0 2 3 5" },
    .cases = { "mamba: T=bf16 W=f32 b=8 t=2048 n=4096 k=4 silu=1 +bias +dbias",
               "long, few channels: T=bf16 W=f32 b=1 t=65536 n=256 k=4 silu=1",
               "packed: T=bf16 W=bf16 b=1 t=16384 n=2048 k=4 nseq=8 silu=1 +cu_seqlens" },
    .reference = reference,
};
