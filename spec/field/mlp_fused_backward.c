/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused_backward: the table and the reference. */
#include <trine/field.h>

#include "mlp.h"

#define ARGS trine_mlp_fused_backward_args

/* Sums over rows of a layer: of dw and of db. */
typedef struct layer_sums {
    near_sum *dw, *db;
} layer_sums;

static void add_row(const layer_sums *s, const near *g, int64_t outputs, const double *a, int64_t inputs) {
    for (int64_t j = 0; j < outputs; j++) {
        for (int64_t i = 0; i < inputs; i++) near_add(&s->dw[j * inputs + i], near_times(g[j], near_of(a[i])));
        near_add(&s->db[j], g[j]);
    }
}

/* What goes back through a layer: sum_j g[j] w[j,i], with as many additions as outputs and 4 more. */
static void back(const near *g, const double *w, int64_t outputs, int64_t inputs, near *to) {
    for (int64_t i = 0; i < inputs; i++) {
        near_sum sum = { 0 };
        for (int64_t j = 0; j < outputs; j++) near_add(&sum, near_times(g[j], near_of(w[j * inputs + i])));
        to[i] = near_total(&sum, outputs + 4);
    }
}

static layer_sums make_sums(int64_t outputs, int64_t inputs) {
    return (layer_sums){ calloc((size_t)(outputs * inputs) + 1, sizeof(near_sum)),
                         calloc((size_t)outputs + 1, sizeof(near_sum)) };
}

static void put_sums(trine_ref *ref, layer_sums s, const char *dw, const char *db, int64_t layer, int64_t outputs,
                     int64_t inputs) {
    const int64_t terms = trine_ref_dim(ref, "r") + 8;
    for (int64_t at = 0; trine_ref_value(ref, dw) && at < outputs * inputs; at++) {
        const near y = near_total(&s.dw[at], terms);
        near_put(ref, dw, layer * outputs * inputs + at, y.of, y.off / U, 0);
    }
    for (int64_t at = 0; trine_ref_value(ref, db) && at < outputs; at++) {
        const near y = near_total(&s.db[at], terms);
        near_put(ref, db, layer * outputs + at, y.of, y.off / U, 0);
    }
    free(s.dw), free(s.db);
}

static void go_back(trine_ref *ref, const mlp *n, int64_t row, const layer_sums *sums) {
    const double *dy = trine_ref_value(ref, "dy"), *y = trine_ref_value(ref, "y"), *x = trine_ref_value(ref, "x"),
                 *w = trine_ref_value(ref, "w"), *hidden = trine_ref_value(ref, "hidden");
    near g[MLP_WIDTH], next[MLP_WIDTH];
    for (int64_t j = 0; j < n->o; j++) g[j] = mlp_slope(n->output, near_of(dy[row * n->o + j]), y[row * n->o + j]);
    for (int64_t layer = n->m; layer >= 0; layer--) {
        const double *a = hidden + (layer * n->r + row) * n->h;
        const int64_t outputs = layer == n->m ? n->o : n->h;
        add_row(&sums[layer + 1], g, outputs, a, n->h);
        back(g, layer == n->m ? trine_ref_value(ref, "w_out") : w + layer * n->h * n->h, outputs, n->h, next);
        for (int64_t j = 0; j < n->h; j++) g[j] = mlp_slope(n->activation, next[j], a[j]);
    }
    add_row(&sums[0], g, n->h, x + row * n->k, n->k);
    if (trine_ref_value(ref, "dx") == NULL) return;
    back(g, trine_ref_value(ref, "w_in"), n->h, n->k, next);
    for (int64_t i = 0; i < n->k; i++) near_put(ref, "dx", row * n->k + i, next[i].of, next[i].off / U, 0);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const mlp n = mlp_of(ref, args->activation, args->output_activation);
    layer_sums sums[MLP_HIDDEN + 1];
    for (int64_t layer = 0; layer <= n.m + 1; layer++)
        sums[layer] = make_sums(layer == n.m + 1 ? n.o : n.h, layer == 0 ? n.k : n.h);
    for (int64_t row = 0; row < n.r; row++) go_back(ref, &n, row, sums);
    put_sums(ref, sums[0], "dw_in", "db_in", 0, n.h, n.k);
    for (int64_t layer = 1; layer <= n.m; layer++) put_sums(ref, sums[layer], "dw", "db", layer - 1, n.h, n.h);
    put_sums(ref, sums[n.m + 1], "dw_out", "db_out", 0, n.o, n.h);
}

static void save(const mlp *n, int64_t row, int64_t layer, near *a) {
    const bool last = layer > n->m;
    const int64_t width = last ? n->o : n->h;
    double *to = last ? trine_ref_value(n->ref, "y") + row * width
                      : trine_ref_value(n->ref, "hidden") + (layer * n->r + row) * width;
    for (int64_t j = 0; j < width; j++) to[j] = a[j].of, a[j].off = 0;
}

/* What a forward without biases saves. */
static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    const mlp n = mlp_of(ref, args->activation, args->output_activation);
    for (int64_t row = 0; row < n.r; row++) mlp_row(&n, row, save);
}

const trine_spec trine_spec_mlp_fused_backward = {
    SPEC(mlp_fused_backward),
    .summary = "Gradient of mlp_fused",
    .formula =
        "g = dy output_activation'(y), dw_out = g' hidden[m], db_out = sum_r g; g[m] = (g w_out) "
        "activation'(hidden[m]), g[i-1] = (g[i] w[i-1]) activation'(hidden[i-1]); dw[i-1] = g[i]' hidden[i-1], "
        "db[i-1] = sum_r g[i]; dw_in = g[0]' x, db_in = sum_r g[0], dx = g[0] w_in; slopes by what an activation "
        "gave: relu 1 where that is more than 0, else 0",
    .source = "the derivative of mlp_fused's formula",
    .tensors = { TENSOR(dy, IN, "T", "r o"), TENSOR(x, IN, "T", "r k"), TENSOR(w_in, IN, "T", "h k", .fill = "unit"),
                 TENSOR(w, IN | OPTIONAL, "T", "m h h", .fill = "unit"), TENSOR(w_out, IN, "T", "o h", .fill = "unit"),
                 TENSOR(hidden, IN, "T", "m+1 r h", .fill = "derived"), TENSOR(y, IN, "T", "r o", .fill = "derived"),
                 TENSOR(dx, OUT | OPTIONAL, "T", "r k", .terms = "1"), TENSOR(dw_in, OUT, "T", "h k", .terms = "1"),
                 TENSOR(dw, OUT | OPTIONAL, "T", "m h h", .terms = "1"), TENSOR(dw_out, OUT, "T", "o h", .terms = "1"),
                 TENSOR(db_in, OUT | OPTIONAL, "T", "h", .terms = "1"),
                 TENSOR(db, OUT | OPTIONAL, "T", "m h", .terms = "1"),
                 TENSOR(db_out, OUT | OPTIONAL, "T", "o", .terms = "1") },
    .params = { MLP_PARAMS },
    .types = { "T=f32|bf16|f16" },
    .require = { MLP_REQUIRE, "dw -> w", "db -> w" },
    .flops = "4*r*h*(k + m*h + o)",
    .independent = "r",
    .sizes = MLP_SIZES,
    .cases = { "nerf density: T=f16 r=65536 k=32 h=64 m=0 o=16 activation=relu +dx",
               "nerf colour: T=f16 r=65536 k=32 h=64 m=1 o=3 activation=relu output_activation=sigmoid +w +dw +dx",
               "image: T=f32 r=65536 k=32 h=64 m=1 o=3 activation=relu +w +dw +dx +db_in +db +db_out",
               "wide: T=bf16 r=32768 k=128 h=128 m=3 o=128 activation=relu +w +dw +dx" },
    .reference = reference,
    .prepare = prepare,
};
