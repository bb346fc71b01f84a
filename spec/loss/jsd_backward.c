/* SPDX-License-Identifier: Apache-2.0 */
/* jsd_backward: the table and the reference. */
#include <trine/loss.h>

#include "divergence.h"

#define ARGS trine_jsd_backward_args

/* q (rho - sum), rho = log q - log m, or with beta 1 log q - log p, and 0 where q is. Where the mixture says nothing of
 * rho but that it is no larger than q's logarithm and 128, q is as small, and so is all of it. */
static near gradient_of(const near_class *p, const near_class *q, double beta, near sum) {
    if (near_nan(sum)) return sum;
    if (q->p.of == 0 && q->p.off == 0) return near_times(q->p, sum);
    const near m = beta < 1 ? near_mixture(p, q, beta) : near_of(1);
    const double most = (1 - beta) * (q->p.of + q->p.off);
    if (near_mixture_vague(m) && most < 0x1p-90 && isfinite(q->log.of) && isfinite(sum.of))
        return (near){ 0, 2 * (q->p.of + q->p.off) * (fabs(q->log.of) + q->log.off + fabs(sum.of) + sum.off + 128) };
    const near rho = near_minus(q->log, beta < 1 ? near_mixture_log(m) : p->log);
    return near_part(q->p, near_minus(rho, sum));
}

static near rho_sum(const near_row *target, const near_row *input, int64_t v, double beta) {
    near_sum sum = { 0 };
    for (int64_t k = 0; k < v; k++) {
        const near_class q = near_class_of(input, k), p = near_class_of(target, k);
        near_add(&sum, gradient_of(&p, &q, beta, near_of(0)));
    }
    return near_sum_of(&sum, v + 8);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const double beta = args->beta, scale = args->logits ? args->logit_scale : 1, c = beta == 1 ? 1 : 1 - beta;
    for (int64_t i = 0; i < r; i++) {
        const near_row input = near_row_of(trine_ref_value(ref, "input") + i * v, v, args->logits, false, scale),
                       target = near_row_of(trine_ref_value(ref, "target") + i * v, v, args->logits, false, scale);
        near sum = { beta == 1 ? -1 : 0, 0 };
        if (args->logits) sum = beta > 0 ? rho_sum(&target, &input, v, beta) : near_of(0);
        for (int64_t k = 0; k < v; k++) {
            const near_class q = near_class_of(&input, k), p = near_class_of(&target, k);
            near g;
            if (beta > 0)
                g = gradient_of(&p, &q, beta, sum);
            else if (args->logits)
                g = (near){ q.p.of - p.p.of, q.p.off + p.p.off };
            else
                g = (near){ -p.p.of, p.p.off };
            const double size = beta > 0 ? fabs(g.of) : (args->logits ? q.p.of : 0) + p.p.of;
            put_gradient(ref, i, i * v + k, scale * c, g, isfinite(size) ? size : 0);
        }
    }
}

const trine_spec trine_spec_jsd_backward = {
    SPEC(jsd_backward),
    .summary = "Gradient of jsd with respect to input",
    .formula = "c = 1 - beta, rho = log q - log m, with beta 1 c = 1, rho = log q - log p; dinput[i,k] = dloss[i] "
               "weight[i] c q rho, beta 1: q (rho + 1), beta 0: -p; with logits dloss[i] weight[i] logit_scale c q "
               "(rho - sum_j q[i,j] rho[i,j]), beta 0: q - p; 0 where weight is 0; p, q and m as in jsd",
    .source = "the derivative of jsd's formula",
    .tensors = { TENSOR(input, IN, "T", "r v"), TENSOR(target, IN, "T", "r v"),
                 TENSOR(weight, IN | OPTIONAL, "f32", "r"), TENSOR(dloss, IN, "f32", "r"),
                 TENSOR(dinput, OUT, "T", "r v", .terms = "8") },
    .params = { PARAM(logits, BOOL, .values = "1 0", .doc = "input and target are logits"),
                PARAM(beta, F32, .values = "0.5 0 1 0.1", .min = 0, .max = 1,
                      .doc = "what target counts in the mixture"),
                PARAM(logit_scale, F32, .values = "1 0.7 2.5", .fallback = 1, .min = 0x1p-20, .max = 0x1p20,
                      .doc = "multiplies logits: one over the temperature") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dinput=input", "dinput=target" },
    .flops = "30*r*v",
    .independent = "r",
    .sizes = DIVERGENCE_SIZES,
    .cases = { "llama2 logits: T=bf16 r=1024 v=32000 logits=1 beta=0.5",
               "llama3 logits: T=bf16 r=256 v=128256 logits=1 beta=0.5", "llama2 f32: T=f32 r=512 v=32000 beta=0.5",
               "reverse: T=bf16 r=1024 v=32000 logits=1 beta=1", "small: T=f32 r=65536 v=256 logits=1 beta=0.1" },
    .reference = reference,
};
