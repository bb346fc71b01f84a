/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of mlp_fused and of its gradient share: layers, activations and their slopes, with the error that
 * a kernel may make in each. */
#ifndef TRINE_SPEC_FIELD_MLP_H
#define TRINE_SPEC_FIELD_MLP_H

#include <stdlib.h>

#include "spec/near.h"

enum { MLP_WIDTH = 128, MLP_HIDDEN = 8 };
#define MLP_LEAK ((double)0.01f)

/* Bounds, u = 2^-24: 1/(1 + e^-x) to 11u of itself and tanh x to 8u, with what follows 12u: and as far as x may be off,
 * since neither slope grows by more than e^off, or its square, within that. */
static inline near mlp_sigmoid(near x) {
    if (isinf(x.off)) return near_any();
    const double s = 1 / (1 + exp(-x.of)), slope = x.off < 1 ? fmin(0.25, s * (1 - s) * exp(x.off)) : 0.25;
    return (near){ s, isfinite(s) ? x.off * slope + 12 * U * s + FLUSH : 0 };
}
static inline near mlp_tanh(near x) {
    if (isinf(x.off)) return near_any();
    const double y = tanh(x.of), slope = x.off < 1 ? fmin(1, (1 - y * y) * exp(2 * x.off)) : 1;
    return (near){ y, isfinite(y) ? x.off * slope + 12 * U * fabs(y) + FLUSH : 0 };
}

/* relu and leaky_relu move no more than their argument. */
static inline near mlp_activate(int32_t kind, near x) {
    if (isinf(x.off)) return near_any();
    switch (kind) {
    case TRINE_MLP_RELU: return (near){ x.of > 0 || isnan(x.of) ? x.of : 0, x.off };
    case TRINE_MLP_LEAKY_RELU:
        if (!(x.of <= 0)) return x;
        return (near){ MLP_LEAK * x.of, isfinite(x.of) ? x.off + U * (fabs(x.of) + x.off) + FLUSH : 0 };
    case TRINE_MLP_SIGMOID: return mlp_sigmoid(x);
    case TRINE_MLP_TANH: return mlp_tanh(x);
    case TRINE_MLP_EXPONENTIAL: return near_exp(x);
    default: return x;
    }
}

/* g times the activation's slope, of what it gave, which is exact. */
static inline near mlp_slope(int32_t kind, near g, double a) {
    const near y = near_of(a);
    switch (kind) {
    case TRINE_MLP_RELU: return a > 0 ? g : near_of(0);
    case TRINE_MLP_LEAKY_RELU: return a > 0 ? g : near_times(g, near_of(MLP_LEAK));
    case TRINE_MLP_SIGMOID: return near_times(g, near_times(y, near_minus(near_of(1), y)));
    case TRINE_MLP_TANH: return near_times(g, near_minus(near_of(1), near_times(y, y)));
    case TRINE_MLP_EXPONENTIAL: return near_times(g, y);
    default: return g;
    }
}

/* What goes on to the next layer is rounded to the type: a kernel's may be rounded the other way. */
static inline near mlp_rounded(const trine_ref *ref, near x) {
    const trine_dtype type = trine_ref_type(ref, "T");
    if (type == TRINE_F32 || isinf(x.off) || !isfinite(x.of)) return x;
    const double size = fabs(x.of) + x.off;
    if (size > trine_largest(type)) return near_any();
    x.of = trine_round(x.of, type, false);
    x.off += 2 * trine_unit_roundoff(type) * (size + 2 * trine_smallest_normal(type));
    return x;
}

typedef struct mlp {
    const trine_ref *ref;
    int64_t r, k, h, m, o;
    int32_t activation, output;
    const double *b_in, *b, *b_out; /* NULL: there are none */
} mlp;

static inline mlp mlp_of(const trine_ref *ref, int32_t activation, int32_t output) {
    return (mlp){ .ref = ref,
                  .r = trine_ref_dim(ref, "r"),
                  .k = trine_ref_dim(ref, "k"),
                  .h = trine_ref_dim(ref, "h"),
                  .m = trine_ref_value(ref, "w") ? trine_ref_dim(ref, "m") : 0,
                  .o = trine_ref_dim(ref, "o"),
                  .activation = activation,
                  .output = output };
}

/* to[j] = activation(sum_i w[j,i] from[i] + b[j]) */
static inline void mlp_layer(const double *w, const double *b, int64_t columns, int64_t rows, int32_t activation,
                             const near *from, near *to) {
    for (int64_t j = 0; j < rows; j++) {
        near_sum sum = { 0 };
        for (int64_t i = 0; i < columns; i++) near_add(&sum, near_times(near_of(w[j * columns + i]), from[i]));
        if (b) near_add(&sum, near_of(b[j]));
        to[j] = mlp_activate(activation, near_total(&sum, columns + 4));
    }
}

/* Layers of a row: put(context, layer, values), with layer m + 1 the output's. */
static inline void mlp_row(const mlp *n, int64_t row, void (*put)(const mlp *n, int64_t row, int64_t layer, near *a)) {
    const trine_ref *ref = n->ref;
    const double *x = trine_ref_value(ref, "x"), *w = trine_ref_value(ref, "w");
    near from[MLP_WIDTH], to[MLP_WIDTH];
    for (int64_t i = 0; i < n->k; i++) from[i] = near_of(x[row * n->k + i]);
    mlp_layer(trine_ref_value(ref, "w_in"), n->b_in, n->k, n->h, n->activation, from, to);
    put(n, row, 0, to);
    for (int64_t layer = 1; layer <= n->m; layer++) {
        for (int64_t i = 0; i < n->h; i++) from[i] = to[i];
        mlp_layer(w + (layer - 1) * n->h * n->h, n->b ? n->b + (layer - 1) * n->h : NULL, n->h, n->h, n->activation,
                  from, to);
        put(n, row, layer, to);
    }
    mlp_layer(trine_ref_value(ref, "w_out"), n->b_out, n->h, n->o, n->output, to, from);
    put(n, row, n->m + 1, from);
}

#define MLP_REQUIRE "k > 0", "k <= 128", "h > 0", "h <= 128", "o > 0", "o <= 128", "m <= 7", "without w: m == 0"
#define MLP_SIZES \
    { "r: 5 0 1 65 300", "k: 8 1 3 32 50 128", "h: 16 1 7 32 64 100 128", "m: 1 0 2 3 7", "o: 3 1 16 128" }
#define MLP_ACTIVATIONS "none relu leaky_relu sigmoid tanh exponential"
#define MLP_PARAMS \
    PARAM(activation, ENUM, .values = MLP_ACTIVATIONS, .doc = "TRINE_MLP_*: of hidden layers"), \
        PARAM(output_activation, ENUM, .values = MLP_ACTIVATIONS, .doc = "TRINE_MLP_*: of the output")

#endif
