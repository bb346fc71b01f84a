/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked: the table and the reference. */
#include <trine/norm.h>

#include "norm.h"

#define ARGS trine_softmax_masked_args

/* One row: what of it is visible, and where its results go. */
typedef struct row {
    const double *x, *mask, *bias; /* mask, bias: NULL if not given */
    double *y, *magnitude, *slack;
    int64_t n, limit; /* elements; those that the causal mask leaves */
    double scale;
} row;

static bool seen(const row *r, int64_t j) { return j < r->limit && (!r->mask || r->mask[j] != 0); }

/* The score of a visible element. */
static double score(const row *r, int64_t j) { return r->scale * r->x[j] + (r->bias ? r->bias[j] : 0); }

/* What a kernel's d_j, the distance of a score from the largest, is off by. */
static double error(const row *r, int64_t j, double d) {
    if (r->bias) return 5 * U * fabs(d) + U * (fabs(r->scale * r->x[j]) + fabs(score(r, j))) + 0x1p-148;
    return (5 * U + (r->scale == 0 ? 0 : 0x1p-150 / fabs(r->scale))) * fabs(d) + 0x1p-148 * fabs(r->scale);
}

/* May f32 overflow where the formula does not? Without bias no score is computed, only differences. */
static bool uncertain(const row *r, int64_t j) {
    const double most = fmax(trine_finite_abs(r->scale * r->x[j]), trine_finite_abs(score(r, j)));
    return r->bias && most > 0.5 * trine_largest(TRINE_F32);
}

/* Bound, with z_j the visible scores, d_j = z_j - max z and l = sum_k exp(d_k) >= 1, so that y_j = exp(d_j)/l.
 *
 * A kernel has d_j from some origin that is the same for all elements of the row, whose rounding thus cancels, with an
 * error of at most e_j: 5u|d_j| as in softmax.c, and if there is a bias what its f32 score is off by, from one product
 * and one sum: u|scale x_j| + u|z_j|. So exp(d_j) is within exp(+-e_j) of itself, l between l- = sum_k exp(d_k - e_k)
 * and l+ = sum_k exp(d_k + e_k), and y_j between exp(d_j - e_j)/l+ and exp(d_j + e_j)/l-: slack, however large e_j is.
 * What is relative besides, and what may be flushed, is as in softmax.c. */
static void reference_row(const row *r) {
    double top = -INFINITY, sum = 0, low = 0, high = 0;
    bool any = false, unsure = false;
    for (int64_t j = 0; j < r->n; j++) {
        if (!seen(r, j)) continue;
        any |= score(r, j) != -INFINITY;
        unsure |= uncertain(r, j);
        top = fmax(top, score(r, j));
    }
    for (int64_t j = 0; any && j < r->n; j++) {
        const double d = seen(r, j) ? score(r, j) - top : -INFINITY, e = d == -INFINITY ? 0 : error(r, j, d);
        sum += exp(d);
        low += exp(d - e);
        high += exp(d + e);
    }
    for (int64_t j = 0; j < r->n; j++) {
        r->y[j] = 0;
        if (!seen(r, j)) continue;
        if (unsure) r->magnitude[j] = INFINITY;
        if (!any) continue;
        const double d = score(r, j) - top, e = d == -INFINITY ? 0 : error(r, j, d), y = exp(d) / sum;
        r->y[j] = y;
        if (!isfinite(sum) || unsure) continue;
        r->magnitude[j] = y;
        r->slack[j] = low > 0 ? fmax(exp(d + e) / low - y, y - exp(d - e) / high) : INFINITY;
        r->slack[j] += ((double)r->n * y + 2) * FLUSH;
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t sq = trine_ref_dim(ref, "sq"), n = trine_ref_dim(ref, "sk"),
                  rows = trine_ref_dim(ref, "b") * trine_ref_dim(ref, "h") * sq;
    const double *x = trine_ref_value(ref, "x"), *mask = trine_ref_value(ref, "mask"),
                 *bias = trine_ref_value(ref, "bias");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = i * n;
        const row r = { .x = x + at,
                        .mask = mask ? mask + at : NULL,
                        .bias = bias ? bias + at : NULL,
                        .y = y + at,
                        .magnitude = magnitude + at,
                        .slack = slack + at,
                        .n = n,
                        .limit = args->causal ? i % sq + n - sq + 1 : n,
                        .scale = args->scale };
        reference_row(&r);
    }
}

const trine_spec trine_spec_softmax_masked = {
    SPEC(softmax_masked),
    .summary = "Softmax of attention's scores, with scale, mask, bias and causal mask",
    .formula = "y[b,h,i,j] = exp(z[b,h,i,j]) / sum_k exp(z[b,h,i,k]) over the visible k, z = scale x + bias; 0 where j "
               "is hidden, and where no z that is visible is above -Inf. j is visible iff mask[b,h,i,j] != 0 and "
               "(causal) j <= i + sk - sq",
    .source = "Narayanan et al. 2021 (Megatron-LM), section 4.2; Milakov and Gimelshein 2018 (online statistics)",
    .tensors = { TENSOR(x, IN, "T", "[b] [h] sq sk"),
                 TENSOR(mask, IN | OPTIONAL | BROADCAST, "u8", "[b] [h] [sq] sk", .fill = "sparse"),
                 TENSOR(bias, IN | OPTIONAL | BROADCAST, "B", "[b] [h] [sq] sk"),
                 TENSOR(y, OUT, "T", "[b] [h] sq sk", .terms = SUM_DEPTH(sk) " + sk/64 + 72") },
    .params = { PARAM(scale, F32, .values = "1 0.125 -2", .fallback = 1, .min = -0x1p126, .max = 0x1p126,
                      .doc = "multiplies x"),
                PARAM(causal, BOOL, .values = "0 1",
                      .doc = "1: element j of row i is visible only if j <= i + sk - "
                             "sq") },
    .types = { "T=f32 B=f32", "T=bf16 B=bf16|f32", "T=f16 B=f16|f32" },
    .alias = { "y=x" },
    .flops = "7*b*h*sq*sk",
    .masked = "sq sk",
    .independent = "b",
    .sizes = { "b: 1 0 2", "h: 1 2 3", "sq: 1 0 2 7 33", "sk: 1 0 3 31 64 127 1000 4097 20008" },
    .cases = { "gpt2-xl causal: T=bf16 b=2 h=25 sq=1024 sk=1024 scale=0.125 causal=1",
               "no mask: T=bf16 b=4 h=16 sq=512 sk=512 scale=0.125",
               "bert-large mask: T=bf16 b=4 h=16 sq=512 sk=512 scale=0.125 +mask",
               "bert-large mask f32: T=f32 b=4 h=16 sq=512 sk=512 scale=0.125 +mask",
               "t5-large bias: T=bf16 B=bf16 b=4 h=16 sq=512 sk=512 +bias",
               "bias and mask f32: T=f32 B=f32 b=4 h=12 sq=512 sk=512 scale=0.125 +bias +mask",
               "long rows: T=bf16 h=4 sq=64 sk=65536 scale=0.125 +mask" },
    .reference = reference,
};
