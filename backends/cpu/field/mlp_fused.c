/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused on the CPU. */
#include "mlp.h"
#include "spec/places/mlp_fused.h"

typedef struct tile {
    _Alignas(64) float a[MLP_TILE * MLP_WIDTH], b[MLP_TILE * MLP_WIDTH];
} tile;

/* Biases in f32, and 0 behind the last; 0 without. */
static void bias_of(const mlp *n, const mlp_layer *l, float *to) {
    for (int64_t j = 0; j < mlp_width(l->outputs); j += VL)
        vstore(to + j, TRINE_F32, 0, l->b ? mlp_get(l->b, n->dtype, j, l->outputs) : vzero());
}

static void finish(const mlp *n, float *a, int64_t rows, int64_t width, bool output) {
    const int32_t kind = output ? n->output : n->activation;
    for (int64_t p = 0; p < rows; p++)
        for (int64_t j = 0; j < width; j += VL) {
            float *at = a + p * n->ld + j;
            const vf y = mlp_activate(vload(at, TRINE_F32, 0), kind);
            vstore(at, TRINE_F32, 0, output ? y : mlp_rounded(y, n->dtype));
        }
}

static void rows_through(const mlp *n, int64_t first, int64_t rows, tile *t) {
    _Alignas(64) float bias[MLP_WIDTH];
    float *from = t->a, *to = t->b;
    mlp_load(n, mlp_at(n, n->x, first), n->x->stride[0], rows, n->k, from);
    for (int l = 0; l < n->layers; l++) {
        const mlp_layer *a = &n->layer[l];
        const bool output = l == n->layers - 1;
        const mlp_product c = { .a = from,
                                .matrix = a->copy,
                                .start = bias,
                                .a_row = n->ld,
                                .a_term = 1,
                                .matrix_row = a->width,
                                .out_row = n->ld,
                                .rows = rows,
                                .terms = a->inputs,
                                .columns = a->width,
                                .out = to };
        bias_of(n, a, bias);
        mlp_multiply(&c);
        finish(n, to, cpu_round_up(rows, MLP_ROWS), a->width, output);
        if (output)
            mlp_save(n, to, rows, n->o, mlp_at(n, n->y, first), n->y->stride[0]);
        else if (n->hidden)
            mlp_save(n, to, rows, n->h, mlp_hidden_at(n, l, first), n->hidden->stride[1]);
        float *const swap = from;
        from = to, to = swap;
    }
}

static void tiles(const void *context, int64_t first, int64_t last, int thread) {
    const mlp *n = context;
    tile t;
    (void)thread;
    for (int64_t number = first; number < last; number++) {
        const int64_t row = number * MLP_TILE, rows = n->r - row < MLP_TILE ? n->r - row : MLP_TILE;
        rows_through(n, row, rows, &t);
    }
}

static size_t workspace(const trine_call *call) {
    return (size_t)mlp_copies(call->dim[MLP_FUSED_DIM_K], call->dim[MLP_FUSED_DIM_H], call->dim[MLP_FUSED_DIM_M],
                              call->dim[MLP_FUSED_DIM_O], true) *
           sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const trine_mlp_fused_args *args = call->args;
    const trine_tensor *t = call->tensor, *b_in = trine_call_given(call, MLP_FUSED_B_IN),
                       *b = trine_call_given(call, MLP_FUSED_B), *b_out = trine_call_given(call, MLP_FUSED_B_OUT);
    mlp n = { .call = call,
              .x = &t[MLP_FUSED_X],
              .y = &t[MLP_FUSED_Y],
              .hidden = trine_call_given(call, MLP_FUSED_HIDDEN),
              .r = call->dim[MLP_FUSED_DIM_R],
              .k = call->dim[MLP_FUSED_DIM_K],
              .h = call->dim[MLP_FUSED_DIM_H],
              .m = call->dim[MLP_FUSED_DIM_M],
              .o = call->dim[MLP_FUSED_DIM_O],
              .dtype = call->type[MLP_FUSED_TYPE_T],
              .activation = args->activation,
              .output = args->output_activation,
              .turned = true };
    mlp_layers(&n, &t[MLP_FUSED_W_IN], trine_call_given(call, MLP_FUSED_W), &t[MLP_FUSED_W_OUT]);
    n.layer[0].b = b_in ? b_in->data : NULL;
    for (int64_t i = 0; b && i < n.m; i++)
        n.layer[i + 1].b = (const char *)b->data + i * b->stride[0] * (int64_t)vsize(n.dtype);
    n.layer[n.m + 1].b = b_out ? b_out->data : NULL;
    mlp_make_copies(&n, call->workspace);
    const int64_t count = (n.r + MLP_TILE - 1) / MLP_TILE;
    cpu_tasks(call, cpu_team(call, count, n.r * n.h * (n.k + n.m * n.h + n.o)), count, tiles, &n);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MLP_FUSED_DIM_R, MLP_ROWS);
    trine_kernel_edge(edges, MLP_FUSED_DIM_R, MLP_TILE);
    trine_kernel_edge(edges, MLP_FUSED_DIM_H, VL);
    trine_kernel_edge(edges, MLP_FUSED_DIM_H, MLP_VECTORS * VL);
}

CPU_KERNELS(mlp_fused) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
