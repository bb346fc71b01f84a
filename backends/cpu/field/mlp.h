/* SPDX-License-Identifier: Apache-2.0 */
/* What mlp_fused and its gradient share on the CPU: a tile of rows stays in the cache in f32 through all layers, whose
 * weights were copied to f32 once. Each element is a sum in the order of its terms, whatever stands beside it. */
#ifndef TRINE_CPU_FIELD_MLP_H
#define TRINE_CPU_FIELD_MLP_H

#include <trine/field.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_math.h"

enum {
    MLP_WIDTH = 128,
    MLP_LAYERS = 9,
    MLP_ROWS = 6,           /* of a product that are summed at a time */
    MLP_VECTORS = 2,        /* and vectors of each */
    MLP_TILE = 8 * MLP_ROWS /* rows that go through all layers together */
};

#define MLP_UNROLLED _Pragma("GCC unroll 6")

/* A layer: a matrix of `outputs` rows; `copy` has its rows in f32, or its columns if `turned`, each `width` apart. */
typedef struct mlp_layer {
    const char *w, *b; /* b: NULL: none */
    int64_t row, outputs, inputs;
    float *copy;
    int64_t width;
} mlp_layer;

typedef struct mlp {
    const trine_call *call;
    const trine_tensor *x, *y, *hidden, *dy, *dx; /* NULL: absent */
    mlp_layer layer[MLP_LAYERS + 1];
    int layers; /* the output's too */
    int64_t r, k, h, m, o;
    int64_t ld; /* of a tile's rows */
    trine_dtype dtype;
    int32_t activation, output;
    bool turned;
    /* of a gradient: sums of each chunk of rows, one chunk behind the other */
    float *partial;
    int64_t partial_size, chunk, chunks;
} mlp;

static inline int64_t mlp_width(int64_t n) { return cpu_round_up(n, VL); }

INLINE vf mlp_get(const void *row, trine_dtype T, int64_t j, int64_t n) {
    return n - j >= VL ? vload(row, T, j) : vloadn(row, T, j, (int)(n - j), 0);
}
INLINE void mlp_put(void *row, trine_dtype T, int64_t j, int64_t n, vf x) {
    if (n - j >= VL)
        vstore(row, T, j, x);
    else
        vstoren(row, T, j, (int)(n - j), x);
}

INLINE vf mlp_activate(vf x, int32_t kind) {
    switch (kind) {
    case TRINE_MLP_RELU: return vsel(x <= 0.0f, vzero(), x);
    case TRINE_MLP_LEAKY_RELU: return vsel(x <= 0.0f, x * 0.01f, x);
    case TRINE_MLP_SIGMOID: return vsigmoid(x);
    case TRINE_MLP_TANH: return vtanh(x);
    case TRINE_MLP_EXPONENTIAL: return vexp(x);
    default: return x;
    }
}
/* g times the slope where the activation gave a. */
INLINE vf mlp_slope(vf g, vf a, int32_t kind) {
    switch (kind) {
    case TRINE_MLP_RELU: return vsel(a > 0.0f, g, vzero());
    case TRINE_MLP_LEAKY_RELU: return vsel(a > 0.0f, g, g * 0.01f);
    case TRINE_MLP_SIGMOID: return g * (a * (1.0f - a));
    case TRINE_MLP_TANH: return g * (1.0f - a * a);
    case TRINE_MLP_EXPONENTIAL: return g * a;
    default: return g;
    }
}
INLINE vf mlp_rounded(vf x, trine_dtype dtype) {
    if (dtype == TRINE_BF16) return vf_from_bf16(vf_to_bf16(x));
    return dtype == TRINE_F16 ? vf_from_f16(vf_to_f16(x)) : x;
}

/* A product: out[p] = start + sum over t of a[p a_row + t a_term] matrix[t], rows of `columns` in whole vectors. Rows
 * are taken by MLP_ROWS: what lies behind the last of them is there to be read and written. start: NULL: 0; `more`:
 * what is in out. */
typedef struct mlp_product {
    const float *a, *matrix, *start;
    int64_t a_row, a_term, matrix_row, out_row, rows, terms, columns;
    float *out;
    bool more;
} mlp_product;

INLINE void mlp_block(const mlp_product *c, int64_t p, int64_t j, int vectors) {
    vf sum[MLP_ROWS][MLP_VECTORS];
    const float *a = c->a + p * c->a_row;
    float *out = c->out + p * c->out_row + j;
    MLP_UNROLLED for (int i = 0; i < MLP_ROWS; i++) {
        MLP_UNROLLED for (int v = 0; v < vectors; v++) {
            const float *from = c->more ? out + i * c->out_row + v * VL : c->start ? c->start + j + v * VL : NULL;
            sum[i][v] = from ? vload(from, TRINE_F32, 0) : vzero();
        }
    }
    for (int64_t t = 0; t < c->terms; t++) {
        vf m[MLP_VECTORS];
        MLP_UNROLLED for (int v = 0; v < vectors; v++) m[v] =
            vload(c->matrix + t * c->matrix_row + j + v * VL, TRINE_F32, 0);
        MLP_UNROLLED for (int i = 0; i < MLP_ROWS; i++) {
            const vf x = vset(a[i * c->a_row + t * c->a_term]);
            MLP_UNROLLED for (int v = 0; v < vectors; v++) sum[i][v] = vfma(x, m[v], sum[i][v]);
        }
    }
    MLP_UNROLLED for (int i = 0; i < MLP_ROWS; i++) {
        MLP_UNROLLED for (int v = 0; v < vectors; v++) vstore(out + i * c->out_row + v * VL, TRINE_F32, 0, sum[i][v]);
    }
}
static inline void mlp_multiply(const mlp_product *c) {
    for (int64_t p = 0; p < c->rows; p += MLP_ROWS) {
        int64_t j = 0;
        for (; j + MLP_VECTORS * VL <= c->columns; j += MLP_VECTORS * VL) mlp_block(c, p, j, MLP_VECTORS);
        for (; j < c->columns; j += VL) mlp_block(c, p, j, 1);
    }
}

/* Rows of a tensor into a tile, and 0 behind their ends and behind the last. */
static inline void mlp_load(const mlp *n, const char *from, int64_t row, int64_t rows, int64_t columns, float *to) {
    const int64_t width = mlp_width(columns);
    for (int64_t p = 0; p < rows; p++)
        for (int64_t j = 0; j < width; j += VL)
            vstore(to + p * n->ld + j, TRINE_F32, 0,
                   mlp_get(from + p * row * (int64_t)vsize(n->dtype), n->dtype, j, columns));
    for (int64_t p = rows; p < cpu_round_up(rows, MLP_ROWS); p++) memset(to + p * n->ld, 0, (size_t)width * sizeof *to);
}
static inline void mlp_save(const mlp *n, const float *from, int64_t rows, int64_t columns, char *to, int64_t row) {
    for (int64_t p = 0; p < rows; p++)
        for (int64_t j = 0; j < columns; j += VL)
            mlp_put(to + p * row * (int64_t)vsize(n->dtype), n->dtype, j, columns,
                    vload(from + p * n->ld + j, TRINE_F32, 0));
}

static inline char *mlp_at(const mlp *n, const trine_tensor *t, int64_t row) {
    return (char *)t->data + row * t->stride[0] * (int64_t)vsize(n->dtype);
}
static inline char *mlp_hidden_at(const mlp *n, int64_t layer, int64_t row) {
    return (char *)n->hidden->data +
           (layer * n->hidden->stride[0] + row * n->hidden->stride[1]) * (int64_t)vsize(n->dtype);
}

/* Rows of all layers are copied one by one: whole, or each into a column. */
static void mlp_copy(const void *context, int64_t first, int64_t last, int thread) {
    const mlp *n = context;
    (void)thread;
    for (int64_t number = first; number < last; number++) {
        const mlp_layer *l = n->layer;
        int64_t row = number;
        for (; row >= l->outputs; l++) row -= l->outputs;
        const char *from = l->w + row * l->row * (int64_t)vsize(n->dtype);
        for (int64_t i = 0; i < mlp_width(l->inputs); i += VL) {
            const vf w = mlp_get(from, n->dtype, i, l->inputs);
            if (!n->turned) vstore(l->copy + row * l->width + i, TRINE_F32, 0, w);
            for (int lane = 0; n->turned && lane < VL && i + lane < l->inputs; lane++)
                l->copy[(i + lane) * l->width + row] = w[lane];
        }
    }
}

static inline void mlp_layers(mlp *n, const trine_tensor *w_in, const trine_tensor *w, const trine_tensor *w_out) {
    n->layer[0] = (mlp_layer){ .w = w_in->data, .row = w_in->stride[0], .outputs = n->h, .inputs = n->k };
    for (int64_t i = 0; i < n->m; i++)
        n->layer[i + 1] = (mlp_layer){ .w = (char *)w->data + i * w->stride[0] * (int64_t)vsize(n->dtype),
                                       .row = w->stride[1],
                                       .outputs = n->h,
                                       .inputs = n->h };
    n->layers = (int)n->m + 2;
    n->layer[n->m + 1] = (mlp_layer){ .w = w_out->data, .row = w_out->stride[0], .outputs = n->o, .inputs = n->h };
}

/* Floats of the copies, the columns behind the last among them. */
static inline int64_t mlp_copies(int64_t k, int64_t h, int64_t m, int64_t o, bool turned) {
    if (turned) return (k + m * h) * mlp_width(h) + h * mlp_width(o);
    return h * mlp_width(k) + (m * h + o) * mlp_width(h);
}
static inline void mlp_make_copies(mlp *n, float *copy) {
    int64_t rows = 0;
    for (int l = 0; l < n->layers; l++) {
        mlp_layer *a = &n->layer[l];
        a->copy = copy;
        a->width = mlp_width(n->turned ? a->outputs : a->inputs);
        copy += (n->turned ? a->inputs : a->outputs) * a->width;
        rows += a->outputs;
    }
    n->ld = mlp_width(n->h > n->k ? (n->h > n->o ? n->h : n->o) : n->k > n->o ? n->k : n->o);
    if (n->turned) memset(n->layer[0].copy, 0, (size_t)(copy - n->layer[0].copy) * sizeof *copy);
    cpu_shares(n->call, 1, rows, mlp_copy, n);
}

#endif
