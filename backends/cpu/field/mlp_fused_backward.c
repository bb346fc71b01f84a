/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused_backward on the CPU. Chunks of rows, whose number follows from the sizes, each have sums of all weights,
 * which are then added in the chunks' order. */
#include "mlp.h"
#include "spec/places/mlp_fused_backward.h"

enum { CHUNKS = 32 /* at most */, CHUNK_TILES = 16 /* at least */ };

typedef struct tile {
    _Alignas(64) float a[MLP_TILE * MLP_WIDTH], g[(MLP_TILE + 1) * MLP_WIDTH], next[(MLP_TILE + 1) * MLP_WIDTH];
} tile;

typedef struct gradients {
    mlp n;
    const trine_tensor *dw[3], *db[3]; /* of the first layer, of those behind it, of the output; NULL: not wanted */
} gradients;

/* Of a layer's sums: rows of dw, whole MLP_ROWS of them, then db. */
static int64_t sums_of(int64_t outputs, int64_t inputs) {
    return cpu_round_up(outputs, MLP_ROWS) * mlp_width(inputs) + mlp_width(outputs);
}
static int64_t all_sums(int64_t k, int64_t h, int64_t m, int64_t o) {
    return sums_of(h, k) + m * sums_of(h, h) + sums_of(o, h);
}
static int64_t chunk_rows(int64_t r) {
    const int64_t even = cpu_round_up((r + CHUNKS - 1) / CHUNKS, MLP_TILE), least = (int64_t)CHUNK_TILES * MLP_TILE;
    return even > least ? even : least;
}
static int64_t chunks_of(int64_t r) { return (r + chunk_rows(r) - 1) / chunk_rows(r); }

/* g times the slope of a, of whole vectors. */
static void slope(const mlp *n, float *g, const float *a, int64_t rows, int64_t width, int32_t kind) {
    for (int64_t p = 0; p < rows; p++)
        for (int64_t j = 0; j < width; j += VL)
            vstore(g + p * n->ld + j, TRINE_F32, 0,
                   mlp_slope(vload(g + p * n->ld + j, TRINE_F32, 0), vload(a + p * n->ld + j, TRINE_F32, 0), kind));
}

/* Adds a tile's g' a to the layer's sums, and its g. */
static void add_sums(const mlp *n, const mlp_layer *l, const float *g, const float *a, int64_t rows, float *sums) {
    const int64_t width = mlp_width(l->inputs);
    const mlp_product c = { .a = g,
                            .matrix = a,
                            .a_row = 1,
                            .a_term = n->ld,
                            .matrix_row = n->ld,
                            .out_row = width,
                            .rows = l->outputs,
                            .terms = rows,
                            .columns = width,
                            .out = sums,
                            .more = true };
    mlp_multiply(&c);
    float *const db = sums + cpu_round_up(l->outputs, MLP_ROWS) * width;
    for (int64_t j = 0; j < mlp_width(l->outputs); j += VL) {
        vf sum = vload(db + j, TRINE_F32, 0);
        for (int64_t p = 0; p < rows; p++) sum += vload(g + p * n->ld + j, TRINE_F32, 0);
        vstore(db + j, TRINE_F32, 0, sum);
    }
}

static void back(const mlp *n, const mlp_layer *l, const float *g, int64_t rows, float *to) {
    const mlp_product c = { .a = g,
                            .matrix = l->copy,
                            .a_row = n->ld,
                            .a_term = 1,
                            .matrix_row = l->width,
                            .out_row = n->ld,
                            .rows = rows,
                            .terms = l->outputs,
                            .columns = l->width,
                            .out = to };
    mlp_multiply(&c);
}

static void rows_back(const mlp *n, int64_t first, int64_t rows, float *sums, tile *t) {
    float *g = t->g, *next = t->next;
    mlp_load(n, mlp_at(n, n->dy, first), n->dy->stride[0], rows, n->o, g);
    mlp_load(n, mlp_at(n, n->y, first), n->y->stride[0], rows, n->o, t->a);
    slope(n, g, t->a, rows, mlp_width(n->o), n->output);
    float *at = sums + n->partial_size;
    for (int l = n->layers - 1; l >= 0; l--) {
        const mlp_layer *layer = &n->layer[l];
        at -= sums_of(layer->outputs, layer->inputs);
        if (l == 0)
            mlp_load(n, mlp_at(n, n->x, first), n->x->stride[0], rows, n->k, t->a);
        else
            mlp_load(n, mlp_hidden_at(n, l - 1, first), n->hidden->stride[1], rows, n->h, t->a);
        add_sums(n, layer, g, t->a, rows, at);
        if (l == 0 && n->dx == NULL) break;
        back(n, layer, g, rows, next);
        if (l == 0)
            mlp_save(n, next, rows, n->k, mlp_at(n, n->dx, first), n->dx->stride[0]);
        else
            slope(n, next, t->a, rows, mlp_width(n->h), n->activation);
        float *const swap = g;
        g = next, next = swap;
    }
}

static void chunks(const void *context, int64_t first, int64_t last, int thread) {
    const mlp *n = context;
    tile t;
    (void)thread;
    memset(t.g, 0, sizeof t.g); /* what lies behind the outputs of a row is read, too */
    memset(t.next, 0, sizeof t.next);
    for (int64_t number = first; number < last; number++) {
        float *const sums = n->partial + number * n->partial_size;
        const int64_t end = (number + 1) * n->chunk < n->r ? (number + 1) * n->chunk : n->r;
        memset(sums, 0, (size_t)n->partial_size * sizeof *sums);
        for (int64_t row = number * n->chunk; row < end; row += MLP_TILE)
            rows_back(n, row, end - row < MLP_TILE ? end - row : MLP_TILE, sums, &t);
    }
}

static void put_row(const mlp *n, int64_t at, int64_t columns, char *to) {
    for (int64_t j = 0; j < columns; j += VL) {
        vf sum = vzero();
        for (int64_t c = 0; c < n->chunks; c++) sum += vload(n->partial + c * n->partial_size + at + j, TRINE_F32, 0);
        mlp_put(to, n->dtype, j, columns, sum);
    }
}

static void put_layer(const gradients *s, int l, int64_t at) {
    const mlp *n = &s->n;
    const mlp_layer *a = &n->layer[l];
    const int place = l == 0 ? 0 : l == n->layers - 1 ? 2 : 1, size = (int)vsize(n->dtype);
    const trine_tensor *dw = s->dw[place], *db = s->db[place];
    const int64_t row = dw ? dw->stride[place == 1] : 0;
    for (int64_t j = 0; dw && j < a->outputs; j++)
        put_row(n, at + j * mlp_width(a->inputs), a->inputs,
                (char *)dw->data + ((place == 1 ? (l - 1) * dw->stride[0] : 0) + j * row) * size);
    if (db)
        put_row(n, at + cpu_round_up(a->outputs, MLP_ROWS) * mlp_width(a->inputs), a->outputs,
                (char *)db->data + (place == 1 ? (l - 1) * db->stride[0] : 0) * size);
}

static size_t workspace(const trine_call *call) {
    const int64_t k = call->dim[MLP_FUSED_BACKWARD_DIM_K], h = call->dim[MLP_FUSED_BACKWARD_DIM_H],
                  m = call->dim[MLP_FUSED_BACKWARD_DIM_M], o = call->dim[MLP_FUSED_BACKWARD_DIM_O];
    return (size_t)(mlp_copies(k, h, m, o, false) +
                    all_sums(k, h, m, o) * chunks_of(call->dim[MLP_FUSED_BACKWARD_DIM_R])) *
           sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const trine_mlp_fused_backward_args *args = call->args;
    const trine_tensor *t = call->tensor;
    gradients s = { .n = { .call = call,
                           .x = &t[MLP_FUSED_BACKWARD_X],
                           .y = &t[MLP_FUSED_BACKWARD_Y],
                           .hidden = &t[MLP_FUSED_BACKWARD_HIDDEN],
                           .dy = &t[MLP_FUSED_BACKWARD_DY],
                           .dx = trine_call_given(call, MLP_FUSED_BACKWARD_DX),
                           .r = call->dim[MLP_FUSED_BACKWARD_DIM_R],
                           .k = call->dim[MLP_FUSED_BACKWARD_DIM_K],
                           .h = call->dim[MLP_FUSED_BACKWARD_DIM_H],
                           .m = call->dim[MLP_FUSED_BACKWARD_DIM_M],
                           .o = call->dim[MLP_FUSED_BACKWARD_DIM_O],
                           .dtype = call->type[MLP_FUSED_BACKWARD_TYPE_T],
                           .activation = args->activation,
                           .output = args->output_activation },
                    .dw = { &t[MLP_FUSED_BACKWARD_DW_IN], trine_call_given(call, MLP_FUSED_BACKWARD_DW),
                            &t[MLP_FUSED_BACKWARD_DW_OUT] },
                    .db = { trine_call_given(call, MLP_FUSED_BACKWARD_DB_IN),
                            trine_call_given(call, MLP_FUSED_BACKWARD_DB),
                            trine_call_given(call, MLP_FUSED_BACKWARD_DB_OUT) } };
    mlp *n = &s.n;
    mlp_layers(n, &t[MLP_FUSED_BACKWARD_W_IN], trine_call_given(call, MLP_FUSED_BACKWARD_W),
               &t[MLP_FUSED_BACKWARD_W_OUT]);
    mlp_make_copies(n, call->workspace);
    n->partial = (float *)call->workspace + mlp_copies(n->k, n->h, n->m, n->o, false);
    n->partial_size = all_sums(n->k, n->h, n->m, n->o);
    n->chunk = chunk_rows(n->r), n->chunks = chunks_of(n->r);
    const int team = cpu_team(call, n->chunks, 2 * n->r * n->h * (n->k + n->m * n->h + n->o));
    cpu_tasks(call, team, n->chunks, chunks, n);
    for (int64_t l = 0, at = 0; l < n->layers; l++) {
        put_layer(&s, (int)l, at);
        at += sums_of(n->layer[l].outputs, n->layer[l].inputs);
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MLP_FUSED_BACKWARD_DIM_R, MLP_ROWS);
    trine_kernel_edge(edges, MLP_FUSED_BACKWARD_DIM_R, MLP_TILE);
    trine_kernel_edge(edges, MLP_FUSED_BACKWARD_DIM_R, (int64_t)CHUNK_TILES * MLP_TILE);
    trine_kernel_edge(edges, MLP_FUSED_BACKWARD_DIM_H, VL);
    trine_kernel_edge(edges, MLP_FUSED_BACKWARD_DIM_H, MLP_VECTORS * VL);
}

CPU_KERNELS(mlp_fused_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                    { 0 } };
