/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm on CUDA devices: rows that fill registers, and rows in shared memory. */
#include "norm_host.h"

#include "backends/cuda/core/shared.h"

/* ------------------------------------------------------------------------------- rows that fill a group's registers */

const norm_fit *norm_fit_among(int64_t n, int count, const norm_fit *fits) {
    for (int i = 0; i < count && n % NORM_FIT_ITEMS == 0; i++)
        if (n > fits[i].least && n <= norm_fit_columns(&fits[i])) return &fits[i];
    return NULL;
}

void norm_fit_edges(int count, const norm_fit *fits, trine_kernel_edges *edges) {
    for (int i = 0; i < count; i++) {
        trine_kernel_edge(edges, NORM_DIM_N, fits[i].least);
        trine_kernel_edge(edges, NORM_DIM_N, norm_fit_columns(&fits[i]));
    }
}

/* Is the row a sum with a residual, in or out? */
static bool sums(const trine_call *call) {
    const norm_op *op = call->self;
    return norm_given(call, op->residual) || norm_given(call, op->residual_out);
}

/* Groups of row.h, whose threads have four vectors each, would have room for a third to all of the columns again, of
 * which nothing is on its way. On an H100 that costs up to 37 % below 512 columns and up to 10 at 513 to 768; above,
 * only rows with dropout and nothing added lose, up to 30. Of f32 enough is on its way beyond 512. */
static const norm_fit fits[] = {
    { .least = 0, .size = 8, .vectors = 1 },     { .least = 64, .size = 8, .vectors = 2 },
    { .least = 128, .size = 8, .vectors = 3 },   { .least = 256, .size = 32, .vectors = 2 },
    { .least = 512, .size = 32, .vectors = 3 },  { .least = 1024, .size = 32, .vectors = 5 },
    { .least = 1280, .size = 64, .vectors = 3 }, { .least = 1536, .size = 32, .vectors = 7 },
    { .least = 1792, .size = 64, .vectors = 5 },
};
enum { FITS = sizeof fits / sizeof fits[0], WIDE = 512 };
static const norm_fit *fit_of(const trine_call *call) {
    const int64_t n = call->dim[NORM_DIM_N];
    const bool wide = call->type[NORM_TYPE_T] == TRINE_F32 || (call->type[NORM_TYPE_R] == TRINE_F32 && sums(call));
    return wide && n > WIDE ? NULL : norm_fit_among(n, FITS, fits);
}

void norm_edges_fit(const trine_call *call, trine_kernel_edges *edges) {
    norm_fit_edges(FITS, fits, edges);
    norm_edges_mask(call, edges);
}

const char *norm_refuse_fit(const trine_call *call) {
    return fit_of(call) == NULL ? "no group has just room for a row" : NULL;
}

/* Rows that begin anywhere go by groups of as many threads, whose sums are the same. */
trine_status norm_launch_fit(const trine_call *call) {
    const norm_fit *fit = fit_of(call);
    const norm_params p = norm_params_of(call);
    const simt_function whole = { .step = "fit",
                                  .type = { call->type[NORM_TYPE_T] },
                                  .variant = norm_fit_columns(fit) };
    const simt_function ragged = { .ragged = true, .type = { call->type[NORM_TYPE_T] }, .variant = fit->size };
    const simt_group group = simt_group_of(p.rows, p.n, NORM_FIT_ITEMS, 1, &fit->size);
    const int threads = NORM_FIT_THREADS(fit->size);
    const trine_status status = norm_mask(call);
    if (status != TRINE_OK) return status;
    if (simt_rows_whole(call, NORM_DIM_N))
        return simt_launch(call, &whole, simt_blocks(p.rows, threads / fit->size), threads, &p, sizeof p);
    return simt_launch(call, &ragged, group.blocks, group.threads, &p, sizeof p);
}

/* -------------------------------------------------------------------------------------------- rows in shared memory */

/* What a row is there: as it is; with its elements dropped where they are, of 16 bits and by words whose numbers have
 * 32 bits; or as f32, the sum that is made of it. */
typedef enum row_kind { PLAIN, DROPPED, SUM } row_kind;

static row_kind kind_of(const trine_call *call, const norm_params *p) {
    const norm_op *op = call->self;
    const bool factors = norm_given(call, op->weight) || norm_given(call, op->bias);
    if (sums(call) || (factors && call->type[NORM_TYPE_W] != call->type[NORM_TYPE_T])) return SUM;
    if (p->dropout.p == 0) return PLAIN;
    const bool words = p->dropout.p < 1 && p->n % 8 == 0 && p->rows <= ((int64_t)1 << 35) / (p->n > 0 ? p->n : 1);
    return words && trine_dtype_size(call->type[NORM_TYPE_T]) == 2 ? DROPPED : SUM;
}

/* The longest rows that registers hold as fast, or faster: whole ones as far as groups fill them, of sums 8192. Beyond,
 * shared memory takes 0.66 to 0.97 of their time on an H200 and sums 0.54 to 1.04 (random lengths), as long within 3 %
 * on an H100 up to 4096. Rows of odd lengths take 0.3 to 0.77 of it from 465 elements on, sums 0.54 to 1 from 1687 and
 * with dropout 0.34 to 1.23 from 1069. The length decides alone, not where rows begin: both ways sum in other orders.
 */
enum { WHOLE_SUM = 8192, RAGGED = 384, RAGGED_DROPOUT = 1024, RAGGED_SUM = 2048 };
static int registers_hold(const trine_call *call, row_kind kind, const norm_params *p) {
    if (p->n % NORM_FIT_ITEMS != 0) return kind != SUM ? RAGGED : p->dropout.p > 0 ? RAGGED_DROPOUT : RAGGED_SUM;
    return kind == SUM ? WHOLE_SUM : call->type[NORM_TYPE_T] == TRINE_F32 ? WIDE : norm_fit_columns(&fits[FITS - 1]);
}

static cuda_shape_range range_of(const trine_call *call, row_kind kind, int block_rows) {
    const int64_t size = (int64_t)trine_dtype_size(call->type[NORM_TYPE_T]);
    return kind == SUM ? (cuda_shape_range){ CUDA_SHAPE_256, CUDA_SHAPE_256 + 1, cuda_cluster(call), sizeof(float) }
                       : (cuda_shape_range){ CUDA_SHAPE_128,
                                             kind == DROPPED || block_rows > 1 ? CUDA_SHAPE_256 + 1 : CUDA_SHAPES,
                                             cuda_cluster(call), block_rows * size };
}

/* The blocks that hold a row, or two of a block, which share what is read of the weight, if those are enough for the
 * device; with a mean, one row with dropout is faster than two. NULL: registers hold the row as fast. */
static const cuda_shape *shape_of(const trine_call *call, row_kind kind, norm_params *p) {
    const norm_op *op = call->self;
    p->block_rows = 1;
    if (p->n <= registers_hold(call, kind, p)) return NULL;
    if (kind == SUM) {
        const cuda_shape_range range = range_of(call, kind, 1);
        return cuda_shape_for(call, NORM_DIM_N, &range, &p->part);
    }
    const bool factors = norm_given(call, op->weight) || norm_given(call, op->bias), dropped = kind == DROPPED;
    for (p->block_rows = factors && !(dropped && op->mean >= 0) ? 2 : 1; p->block_rows > 0; p->block_rows--) {
        const cuda_shape_range range = range_of(call, kind, p->block_rows);
        const cuda_shape *shape = cuda_shape_for(call, NORM_DIM_N, &range, &p->part);
        if (shape != NULL && (p->block_rows == 1 || p->rows * p->part.blocks >= simt_units(call))) return shape;
    }
    return NULL;
}

void norm_edges_shared(const trine_call *call, trine_kernel_edges *edges) {
    static const int least[] = { WIDE, WHOLE_SUM, RAGGED, RAGGED_DROPOUT, RAGGED_SUM };
    trine_kernel_edge(edges, NORM_DIM_N, norm_fit_columns(&fits[FITS - 1]));
    for (size_t i = 0; i < sizeof least / sizeof least[0]; i++) trine_kernel_edge(edges, NORM_DIM_N, least[i]);
    for (row_kind kind = PLAIN; kind <= SUM; kind++)
        for (int block_rows = 1; block_rows <= 2; block_rows++) {
            const cuda_shape_range range = range_of(call, kind, block_rows);
            cuda_shape_edges_for(call, NORM_DIM_N, &range, edges);
        }
    norm_edges_mask(call, edges);
}

const char *norm_refuse_shared(const trine_call *call) {
    norm_params p = norm_params_of(call);
    return shape_of(call, kind_of(call, &p), &p) == NULL
               ? "registers hold a row as fast, or a cluster's shared memory does not"
               : NULL;
}

trine_status norm_launch_shared(const trine_call *call) {
    static const char *const steps[] = { [PLAIN] = "parts", [DROPPED] = "drop", [SUM] = "full" };
    norm_params p = norm_params_of(call);
    const row_kind kind = kind_of(call, &p);
    const cuda_shape *shape = shape_of(call, kind, &p);
    if (kind == DROPPED) p.eps = (float)(p.eps / ((double)p.dropout.scale * p.dropout.scale));
    p.ahead = cuda_ahead_of_parts(call, norm_source(call), shape);
    const trine_dtype other = kind == SUM ? call->type[NORM_TYPE_R] : TRINE_NONE;
    const trine_status status = norm_mask(call);
    if (status != TRINE_OK) return status;
    return cuda_launch_parts(call, steps[kind], other, shape, NORM_DIM_N, &p.part, simt_blocks(p.rows, p.block_rows),
                             &p, sizeof p);
}
