/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm_backward on the CPU: a row is held as floats, or if it is long read again for its second pass. */
#include "backends/cpu/core/columns.h"
#include "spec/places/l1_norm_backward.h"

typedef struct l1_gradient {
    const trine_tensor *dy, *x, *weight, *mean, *rmad, *dx, *dweight, *dbias;
    int64_t r, n;
    bool stream;
} l1_gradient;

/* A piece of a row: g = weight dy, and x less the mean, 0 beyond the row. */
typedef struct l1_piece {
    row_piece g, d;
} l1_piece;

static void load_dy(const l1_gradient *a, l1_piece *p, int64_t i, int64_t at, int count, float mean) {
    row_load(p->g, row_at(a->dy, i), at, count, a->dy->dtype);
    row_load(p->d, row_at(a->x, i), at, count, a->x->dtype);
    ROW_EACH(count, j, k, m, *row_vector(p->d, j) = row_mask(*row_vector(p->d, j) - mean, m, 0));
}

/* What columns sum, while g is dy. */
static void add_columns(const l1_piece *p, int count, float rmad, float *dweight, float *dbias) {
    if (dweight)
        ROW_EACH(count, j, k, m,
                 *(vf_any *)(dweight + j) += *(const vf *)(p->g + j) * (*(const vf *)(p->d + j) * rmad));
    if (dbias) ROW_EACH(count, j, k, m, *(vf_any *)(dbias + j) += *(const vf *)(p->g + j));
}

static void weigh(const l1_gradient *a, l1_piece *p, int64_t at, int count) {
    row_piece w;
    if (!a->weight) return;
    row_load(w, a->weight->data, at, count, a->weight->dtype);
    ROW_EACH(count, j, k, m, *row_vector(p->g, j) *= *row_vector(w, j));
}

INLINE vf sign(vf d) { return vsel(d > vzero(), vset(1), vsel(d < vzero(), vset(-1), d)); }

/* Sums of g, of g xhat and of signs. */
typedef struct l1_sums {
    float g, product, sign;
} l1_sums;

static void add_sums(const l1_piece *p, int count, float rmad, l1_sums *sums) {
    vf g[ROW_ACC] = { { 0 } }, product[ROW_ACC] = { { 0 } }, signs[ROW_ACC] = { { 0 } };
    ROW_EACH(count, j, k, m, {
        const vf x = row_mask(*(const vf *)(p->g + j), m, 0), d = *(const vf *)(p->d + j);
        g[k] += x;
        product[k] += x * (d * rmad);
        signs[k] += sign(d);
    });
    sums->g += row_total(g), sums->product += row_total(product), sums->sign += row_total(signs);
}

/* What becomes of a piece once the row's sums are known. */
static void put_dx(const l1_gradient *a, l1_piece *p, int64_t i, int64_t at, int count, float rmad,
                   const l1_sums *sums) {
    const float all = (float)a->n, g = sums->g / all, product = sums->product / all, signs = sums->sign / all;
    ROW_EACH(count, j, k, m,
             *row_vector(p->g, j) =
                 rmad * ((*row_vector(p->g, j) - g) - (sign(*row_vector(p->d, j)) - signs) * product));
    row_store(p->g, row_sink_of(a->dx, i, at, a->stream), count, a->dx->dtype);
}

static float mean_of(const l1_gradient *a, int64_t i) { return ((const float *)a->mean->data)[i * a->mean->stride[0]]; }
static float rmad_of(const l1_gradient *a, int64_t i) { return ((const float *)a->rmad->data)[i * a->rmad->stride[0]]; }

static void row(const void *op, int64_t i, float *const sum[COLUMNS_SUMS]) {
    const l1_gradient *a = op;
    const float rmad = rmad_of(a, i);
    const int n = (int)a->n;
    l1_piece p;
    l1_sums sums = { 0 };
    load_dy(a, &p, i, 0, n, mean_of(a, i));
    add_columns(&p, n, rmad, sum[0], sum[1]);
    weigh(a, &p, 0, n);
    add_sums(&p, n, rmad, &sums);
    put_dx(a, &p, i, 0, n, rmad, &sums);
}

/* Of rows of several pieces. */
static void measure(const void *op, int64_t i, int64_t at, int count, double *result) {
    const l1_gradient *a = op;
    l1_piece p;
    l1_sums sums = { 0 };
    load_dy(a, &p, i, at, count, mean_of(a, i));
    weigh(a, &p, at, count);
    add_sums(&p, count, rmad_of(a, i), &sums);
    result[0] = sums.g, result[1] = sums.product, result[2] = sums.sign;
}
static void piece(const void *op, int64_t i, int64_t at, int count, const double *total,
                  float *const sum[COLUMNS_SUMS]) {
    const l1_gradient *a = op;
    const float rmad = rmad_of(a, i);
    const l1_sums sums = { (float)total[0], (float)total[1], (float)total[2] };
    l1_piece p;
    load_dy(a, &p, i, at, count, mean_of(a, i));
    add_columns(&p, count, rmad, sum[0], sum[1]);
    weigh(a, &p, at, count);
    put_dx(a, &p, i, at, count, rmad, &sums);
}

static l1_gradient gradient_of(const trine_call *call) {
    return (l1_gradient){ .dy = row_tensor(call, L1_NORM_BACKWARD_DY),
                          .x = row_tensor(call, L1_NORM_BACKWARD_X),
                          .weight = row_tensor(call, L1_NORM_BACKWARD_WEIGHT),
                          .mean = row_tensor(call, L1_NORM_BACKWARD_MEAN),
                          .rmad = row_tensor(call, L1_NORM_BACKWARD_RMAD),
                          .dx = row_tensor(call, L1_NORM_BACKWARD_DX),
                          .dweight = row_tensor(call, L1_NORM_BACKWARD_DWEIGHT),
                          .dbias = row_tensor(call, L1_NORM_BACKWARD_DBIAS),
                          .r = call->dim[L1_NORM_BACKWARD_DIM_R],
                          .n = call->dim[L1_NORM_BACKWARD_DIM_N] };
}

static size_t workspace(const trine_call *call) {
    const l1_gradient a = gradient_of(call);
    return columns_workspace(call, a.r, a.n, (a.dweight != NULL) + (a.dbias != NULL));
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    columns_edges(edges, row_down(call), row_along(call));
}

static trine_status launch(const trine_call *call) {
    l1_gradient a = gradient_of(call);
    a.stream = row_streams(call);
    columns_job job = { .op = &a,
                        .row = row,
                        .measure = measure,
                        .piece = piece,
                        .r = a.r,
                        .n = a.n,
                        .out = { a.dweight, a.dbias },
                        .stream = a.stream };
    columns_run(call, &job, call->workspace);
    return TRINE_OK;
}

CPU_KERNELS(l1_norm_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                  { 0 } };
