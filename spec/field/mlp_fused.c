/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused: the table and the reference. */
#include <trine/field.h>

#include "mlp.h"

#define ARGS trine_mlp_fused_args

static void put(const mlp *n, int64_t row, int64_t layer, near *a) {
    trine_ref *const ref = (trine_ref *)n->ref;
    const bool last = layer > n->m;
    const int64_t width = last ? n->o : n->h;
    for (int64_t j = 0; j < width; j++) {
        if (last)
            near_put(ref, "y", row * width + j, a[j].of, a[j].off / U, 0);
        else if (trine_ref_value(ref, "hidden"))
            near_put(ref, "hidden", (layer * n->r + row) * width + j, a[j].of, a[j].off / U, 0);
        a[j] = mlp_rounded(ref, a[j]);
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    mlp n = mlp_of(ref, args->activation, args->output_activation);
    n.b_in = trine_ref_value(ref, "b_in"), n.b = trine_ref_value(ref, "b"), n.b_out = trine_ref_value(ref, "b_out");
    for (int64_t row = 0; row < n.r; row++) mlp_row(&n, row, put);
}

const trine_spec trine_spec_mlp_fused = {
    SPEC(mlp_fused),
    .summary = "A small fully connected network, all layers at once",
    .formula = "hidden[0] = activation(x w_in' + b_in); hidden[i] = activation(hidden[i-1] w[i-1]' + b[i-1]), 0 < i <= "
               "m; y = output_activation(hidden[m] w_out' + b_out); between layers rounded to T",
    .source = "Muller et al. 2021, section 4; Muller et al. 2022, section 5.4",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(w_in, IN, "T", "h k", .fill = "unit"),
                 TENSOR(w, IN | OPTIONAL, "T", "m h h", .fill = "unit"), TENSOR(w_out, IN, "T", "o h", .fill = "unit"),
                 TENSOR(b_in, IN | OPTIONAL, "T", "h", .fill = "unit"),
                 TENSOR(b, IN | OPTIONAL, "T", "m h", .fill = "unit"),
                 TENSOR(b_out, IN | OPTIONAL, "T", "o", .fill = "unit"), TENSOR(y, OUT, "T", "r o", .terms = "1"),
                 TENSOR(hidden, OUT | OPTIONAL, "T", "m+1 r h", .terms = "1") },
    .params = { MLP_PARAMS },
    .types = { "T=f32|bf16|f16" },
    .require = { MLP_REQUIRE, "b -> w" },
    .flops = "2*r*h*(k + m*h + o)",
    .independent = "r",
    .sizes = MLP_SIZES,
    .cases = { "nerf density: T=f16 r=262144 k=32 h=64 m=0 o=16 activation=relu",
               "nerf colour: T=f16 r=262144 k=32 h=64 m=1 o=3 activation=relu output_activation=sigmoid +w",
               "image: T=f32 r=262144 k=32 h=64 m=1 o=3 activation=relu +w +b_in +b +b_out",
               "radiance cache: T=bf16 r=131072 k=64 h=64 m=4 o=3 activation=relu +w",
               "wide: T=bf16 r=65536 k=128 h=128 m=3 o=128 activation=relu +w",
               "training: T=f32 r=65536 k=32 h=64 m=1 o=3 activation=relu +w +hidden" },
    .reference = reference,
};
