/* SPDX-License-Identifier: Apache-2.0 */
/* sgd: the table and the reference. */
#include <math.h>

#include <trine/optimizer.h>

#include "by_chance.h"

#define ARGS trine_sgd_args

/* Bounds, with u = 2^-24. 1-dampening, lr*wd and lr*scale are rounded to f32 (1u each).
 *
 * moment: momentum*m is rounded as a product and in the sum (2u); (1-dampening)*g as a constant, g = grad*grad_scale, a
 * product and in the sum (4u): 4u of M = momentum|m| + |1-dampening||g|. update: with nesterov momentum*moment has
 * these, and is rounded as a product and in the sum: 6u of |1-dampening||g| + momentum M; else it is the moment, or g.
 *    Underflow of products is worth 2^-147.
 * param: the step has 6u of its terms, the constant, the product and the last difference: 9u. The decay, as
 * p - (lr wd)p or p(1 - lr wd), and that difference are 4u of |p|(1 + lr wd): 9u with half of that. copy is rounded
 * from the f32 result, not from param. */
static void put(trine_ref *ref, const char *name, int64_t i, double exact, double magnitude, double slack) {
    const double largest = trine_largest(TRINE_F32);
    if (trine_ref_value(ref, name) == NULL) return;
    trine_ref_value(ref, name)[i] = exact;
    if (!isfinite(exact) && !isfinite(magnitude)) return; /* Inf or NaN was there */
    trine_ref_magnitude(ref, name)[i] = magnitude > largest ? INFINITY : magnitude;
    trine_ref_slack(ref, name)[i] = magnitude > largest ? 0 : slack;
}

static void skip(trine_ref *ref, int64_t count) {
    const double *param = trine_ref_value(ref, "param");
    double *copy = trine_ref_value(ref, "copy"), *update = trine_ref_value(ref, "update");
    for (int64_t i = 0; i < count; i++) {
        if (copy) copy[i] = param[i];
        if (update) update[i] = 0;
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = trine_ref_dim(ref, "r") * trine_ref_dim(ref, "c");
    const double *grad = trine_ref_value(ref, "grad"), *grad_scale = trine_ref_value(ref, "grad_scale"),
                 *told_lr = trine_ref_value(ref, "lr_tensor"), *found_inf = trine_ref_value(ref, "found_inf"),
                 *param = trine_ref_value(ref, "param"), *moment = trine_ref_value(ref, "moment");
    const double mu = args->momentum, part = 1 - (double)args->dampening, lr = told_lr ? told_lr[0] : args->lr,
                 rate = lr * ((double)args->scale + 0.0), decay = lr * args->weight_decay, tiny = 0x1p-147,
                 largest = trine_largest(TRINE_F32);
    if (found_inf && found_inf[0] != 0) {
        skip(ref, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const double g = grad_scale ? grad[i] * grad_scale[0] : grad[i];
        const bool beyond = isfinite(g) && fabs(g) > largest;
        double u = g, terms = fabs(g);
        if (moment) {
            const double m = mu * moment[i] + part * g, size = mu * fabs(moment[i]) + part * fabs(g);
            u = args->nesterov ? part * g + mu * m : m;
            terms = args->nesterov ? part * fabs(g) + mu * size : size;
            put(ref, "moment", i, m, beyond ? INFINITY : size, tiny);
        }
        if (beyond) terms = largest * 2;
        put(ref, "update", i, u, terms, 2 * tiny);
        if (param == NULL) continue;
        const double p = param[i], after = (p - decay * p) - rate * u, p_abs = fabs(p) * (1 + decay),
                     step = fabs(rate) * terms;
        const bool wild = terms > largest || fabs(rate) > largest || decay > largest || step > largest;
        const double magnitude = isnan(p_abs + step) ? NAN : wild || p_abs > largest ? INFINITY : step + p_abs / 2;
        put(ref, "param", i, after, magnitude, tiny * (2 + fabs(rate)));
        put(ref, "copy", i, after, magnitude, tiny * (2 + fabs(rate)));
    }
    if (args->stochastic && param) by_chance(ref, count, 9, args->seed, args->stream);
}

const trine_spec trine_spec_sgd = {
    SPEC(sgd),
    .summary = "Gradient descent step: momentum, decoupled weight decay",
    .formula =
        "g = grad_scale grad; m = mu m + (1-dampening) g; u = m, or (1-dampening) g + mu m, or without moment g; p "
        "= p - lr wd p - lr scale u; copy = p; update = u; param of bf16 may be rounded by chance; where "
        "found_inf is not 0 param and moment stay as they are and update is 0",
    .source = "Polyak 1964; Sutskever et al. 2013, section 3; torch.optim.SGD; Loshchilov and Hutter 2019, algorithm 1",
    .tensors = { TENSOR(param, IN | OUT | OPTIONAL, "T", "[r] c", .terms = "9"), TENSOR(grad, IN, "G", "[r] c"),
                 TENSOR(moment, IN | OUT | OPTIONAL, "S", "[r] c", .terms = "4"),
                 TENSOR(update, OUT | OPTIONAL, "f32", "[r] c", .terms = "6"),
                 TENSOR(copy, OUT | OPTIONAL, "C", "[r] c", .terms = "9"),
                 TENSOR(grad_scale, IN | OPTIONAL, "f32", "1"),
                 TENSOR(lr_tensor, IN | OPTIONAL, "f32", "1", .fill = "positive"),
                 TENSOR(found_inf, IN | OPTIONAL, "f32", "1", .fill = "flag"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2") },
    .params = { PARAM(lr, F32, .values = "1e-2 0 0.5", .min = 0, .doc = "learning rate"),
                PARAM(momentum, F32, .values = "0.9 0 1 0.5", .min = 0, .max = 1,
                      .doc = "mu: decay of moment per step"),
                PARAM(dampening, F32, .values = "0 0.9 0.5 1", .min = 0, .max = 1,
                      .doc = "what g enters moment without"),
                PARAM(weight_decay, F32, .values = "0 0.1", .min = 0, .doc = "wd: decay of param per step and lr"),
                PARAM(scale, F32, .values = "1 -0.25 3 -0", .fallback = 1, .doc = "of u in the step"),
                PARAM(nesterov, BOOL, .values = "0 1", .doc = "1: the step looks ahead by a gradient like this one"),
                BY_CHANCE_PARAMS },
    .types = { "T=f32|bf16|f16 G=f32|bf16|f16 S=f32|bf16 C=bf16|f16" },
    .require = { "philox instead of seed", "lr_tensor instead of lr", "param | update", "copy -> param" },
    .flops = "8*r*c",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64 300", "c: 0 1 7 8 31 64 1000 4097" },
    .cases = { "f32: T=f32 G=f32 S=f32 C=bf16 r=4096 c=4096 lr=0.01 momentum=0.9 +param +moment",
               "mixed: T=f32 G=bf16 S=f32 C=bf16 r=4096 c=4096 lr=0.01 momentum=0.9 +param +moment +copy",
               "bf16 by chance: T=bf16 G=bf16 S=bf16 C=bf16 r=8192 c=4096 lr=0.01 momentum=0.9 stochastic=1 seed=1 "
               "+param +moment",
               "plain: T=f32 G=f32 S=f32 C=bf16 r=4096 c=4096 lr=0.01 +param" },
    .reference = reference,
};
