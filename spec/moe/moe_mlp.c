/* SPDX-License-Identifier: Apache-2.0 */
/* moe_mlp: the table and the reference. */
#include <stdlib.h>

#include <trine/moe.h>

#include "spec/elementwise/gelu.h"

#define ARGS trine_moe_mlp_args

/* Bound, part by part, u = 2^-24, v the roundoff of T; the reference adds up in `slack` what a kernel may be off by.
 *
 * A product of n terms a b, a being off by o, is off by (n + 4)u M + sum o |b|, M = sum (|a| + o) |b| + |bias|, the sum
 * counting 2.25 times for bf16 and f16 (spec/matmul/element.h), an operand as T's smallest normal at least, and by v of
 * itself once it is rounded to T. gate and up are such, z = act(gate) up is off by 1.13 off(gate) (|up| + off(up)) +
 * |act(gate)| off(up), act's slope being below 1.13, and by (14 + 14 |gate| (1 + gate^2))u of itself, which bounds what
 * swiglu's and geglu's headers say, and by v; d is a product of z. The sum over slots is moe_combine's, of d as it is,
 * and of its errors times |weights|; the sum with shared has one rounding to T more.
 *
 * Underflow loses T's smallest normal in each product of bf16, and its roundoff of that in each rounding. Where a part
 * may overflow, or an Inf is among what a token meets, all may be Inf or NaN; NaN is certain where NaN is met. */
typedef struct value {
    double is, off;
} value;

typedef struct token {
    const trine_ref *ref;
    trine_dtype T;
    int64_t h, f;
    value *z;
    bool wild, nan; /* is an Inf met, or may one come about? and is a NaN? */
} token;

static void meet(token *at, double x) {
    at->nan |= isnan(x);
    at->wild |= !isfinite(x);
}

static value rounded(token *at, double is, double off) {
    const double v = trine_unit_roundoff(at->T), least = trine_smallest_normal(at->T);
    if (!(fabs(is) + off < trine_largest(at->T) * (1 - v))) at->wild = true;
    return (value){ is, off + v * (fabs(is) + off) + least * v };
}

/* The product of n terms and a bias; `a`: of exact elements, or NULL and `z` of those that are off. */
static value product(token *at, const double *a, const value *z, const double *b, int64_t n, double bias) {
    const bool narrow = at->T != TRINE_F32;
    const double least = narrow ? trine_smallest_normal(at->T) : 0, lost = at->T == TRINE_BF16 ? 0x1p-126 : 0x1p-150;
    long double sum = bias;
    double size = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = a ? a[i] : z[i].is, o = a ? 0 : z[i].off, most = fabs(x) + o, other = fabs(b[i]);
        sum += (long double)x * b[i];
        meet(at, b[i]);
        if (a) meet(at, x);
        if (most > 0 && other > 0) size += fmax(most, least) * fmax(other, least);
        off += o * other + 2 * lost;
        if (at->T == TRINE_BF16 && (fabs(x) < 0x1p-126 || other < 0x1p-126)) off += 2 * most * other;
    }
    meet(at, bias);
    size = size * (narrow ? 2.25 : 1) + fabs(bias);
    off += (double)(n + 4) * 0x1p-24 * size + 2 * lost;
    if (!(size + off < trine_largest(TRINE_F32))) at->wild = true;
    return rounded(at, (double)sum, off);
}

static value gated(token *at, int32_t form, value gate, value up) {
    const double x = gate.is, far = fabs(x) + gate.off,
                 act = form == TRINE_GATED_SILU       ? x * sigmoid(x)
                       : form == TRINE_GATED_GELU_ERF ? x * normal_cdf(x)
                                                      : x * sigmoid(gelu_argument(x));
    const double moved = 1.13 * gate.off * (fabs(up.is) + up.off) + fabs(act) * up.off,
                 steps = form == TRINE_GATED_SILU ? 1 : 1 + fabs(gelu_argument(far)) + far * far,
                 off = moved + 14 * 0x1p-24 * steps * (fabs(act * up.is) + moved) +
                       0x1p-125 * (1 + far) * (1 + fabs(up.is) + up.off);
    if (!(far * far * far * (1 + fabs(up.is) + up.off) < trine_largest(TRINE_F32))) at->wild = true;
    return rounded(at, act * up.is, off);
}

/* z of the token with expert j. */
static void hidden(token *at, const double *x, int64_t j) {
    const ARGS *args = at->ref->args;
    const int64_t g = 2 * at->f;
    const double *w = trine_ref_value(at->ref, "w_gate_up") + j * g * at->h,
                 *bias = trine_ref_value(at->ref, "bias_gate_up");
    for (int64_t i = 0; i < at->f; i++) {
        const value gate = product(at, x, NULL, w + i * at->h, at->h, bias ? bias[j * g + i] : 0),
                    up = product(at, x, NULL, w + (at->f + i) * at->h, at->h, bias ? bias[j * g + at->f + i] : 0);
        at->z[i] = gated(at, args->gated, gate, up);
    }
}

/* An element of y while it is added up: its errors, and what it met. */
typedef struct sum {
    double is, size, off;
    bool wild, nan;
} sum;

static void add_slot(const trine_ref *ref, const double *x, int64_t j, double weight, value *z, sum *row) {
    const int64_t h = trine_ref_dim(ref, "h"), f = trine_ref_dim(ref, "f");
    const double *w = trine_ref_value(ref, "w_down"), *bias = trine_ref_value(ref, "bias_down");
    token at = { .ref = ref, .T = trine_ref_type(ref, "T"), .h = h, .f = f, .z = z };
    meet(&at, weight);
    hidden(&at, x, j);
    for (int64_t l = 0; l < h; l++) {
        token own = at;
        const value d = product(&own, NULL, z, w + (j * h + l) * f, f, bias ? bias[j * h + l] : 0);
        row[l].is += weight * d.is;
        row[l].size += fabs(weight) * (fabs(d.is) + d.off);
        row[l].off += fabs(weight) * d.off + 0x1p-149;
        row[l].wild |= own.wild, row[l].nan |= own.nan;
    }
}

static void finish(const trine_ref *ref, sum *at, const double *shared, int64_t to) {
    const trine_dtype T = trine_ref_type(ref, "T");
    double *y = trine_ref_value(ref, "y") + to, *magnitude = trine_ref_magnitude(ref, "y") + to,
           *slack = trine_ref_slack(ref, "y") + to;
    if (!(at->size + at->off < trine_largest(shared ? T : TRINE_F32) * (1 - trine_unit_roundoff(T)))) at->wild = true;
    if (shared) {
        at->off += trine_unit_roundoff(T) * (fabs(at->is) + at->off) +
                   trine_smallest_normal(T) * trine_unit_roundoff(T) + 0x1p-149;
        at->is += *shared, at->size += fabs(*shared);
        at->nan |= isnan(*shared), at->wild |= !isfinite(*shared);
    }
    *y = at->nan ? NAN : at->wild && isnan(at->is) ? INFINITY : at->is;
    *magnitude = at->wild ? INFINITY : at->size, *slack = at->wild ? 0 : at->off;
}

static void reference(trine_ref *ref) {
    const int64_t t = trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"), e = trine_ref_dim(ref, "e"),
                  h = trine_ref_dim(ref, "h"), f = trine_ref_dim(ref, "f");
    const double *x = trine_ref_value(ref, "x"), *experts = trine_ref_value(ref, "experts"),
                 *weights = trine_ref_value(ref, "weights"), *shared = trine_ref_value(ref, "shared");
    value *z = malloc(sizeof *z * (size_t)(f + 1));
    sum *row = malloc(sizeof *row * (size_t)(h + 1));
    if (z == NULL || row == NULL) abort();
    for (int64_t i = 0; i < t; i++) {
        for (int64_t l = 0; l < h; l++) row[l] = (sum){ 0 };
        for (int64_t a = i * k; a < (i + 1) * k; a++)
            if (experts[a] >= 0 && experts[a] < (double)e)
                add_slot(ref, x + i * h, (int64_t)experts[a], weights[a], z, row);
        for (int64_t l = 0; l < h; l++) finish(ref, &row[l], shared ? shared + i * h + l : NULL, i * h + l);
    }
    free(z);
    free(row);
}

const trine_spec trine_spec_moe_mlp = {
    SPEC(moe_mlp),
    .summary =
        "The experts of a mixture: gated products of each token with its experts' matrices, weighted and added up",
    .formula = "y[i] = shared[i] + sum over a of weights[i,a] (w_down[j] (act(gate) up) + bias_down[j]), j = "
               "experts[i,a], with gate and up the first and the second half of w_gate_up[j] x[i] + bias_gate_up[j]; a "
               "slot whose expert is not in [0, e) adds nothing",
    .source = "Shazeer et al. 2017; Jiang et al. 2024 (Mixtral)",
    .tensors = { TENSOR(x, IN, "T", "t h"), TENSOR(weights, IN, "f32", "t k"),
                 TENSOR(experts, IN, "i32", "t k", .fill = "places e"),
                 TENSOR(w_gate_up, IN | TRANSPOSABLE, "T", "e g h"), TENSOR(w_down, IN | TRANSPOSABLE, "T", "e h f"),
                 TENSOR(bias_gate_up, IN | OPTIONAL, "B", "e g"), TENSOR(bias_down, IN | OPTIONAL, "B", "e h"),
                 TENSOR(shared, IN | OPTIONAL, "T", "t h"), TENSOR(y, OUT, "T", "t h", .terms = "k + 4") },
    .params = { PARAM(gated, ENUM, .values = "silu gelu_tanh gelu_erf", .doc = "act: of swiglu, or of geglu") },
    .types = { "T=f32 B=f32", "T=bf16 B=bf16|f32", "T=f16 B=f16|f32" },
    .require = { "g == 2*f" },
    .flops = "6*t*k*h*f",
    .independent = "t",
    .sizes = { "t: 1 0 2 7 33 100", "h: 1 0 3 8 17 64 100", "k: 1 2 0 4", "e: 1 2 0 3 8 20", "g: 2 0 4 16 34 66 128",
               "f: 1 0 2 8 17 33 64" },
    .cases = { "mixtral: T=bf16 t=4096 h=4096 k=2 e=8 g=28672 f=14336",
               "qwen3: T=bf16 t=4096 h=2048 k=8 e=128 g=1536 f=768",
               "qwen3 16 tokens: T=bf16 t=16 h=2048 k=8 e=128 g=1536 f=768",
               "deepseek-v3 512 tokens: T=bf16 t=512 h=7168 k=8 e=128 g=4096 f=2048 +shared" },
    .reference = reference,
};
