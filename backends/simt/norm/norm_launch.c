/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that the norms share, and those of their gradients, on all devices. */
#include "norm_launch.h"

#include "spec/same.h"

static simt_rows rows_of(const trine_call *call, int tensor) {
    return tensor >= 0 ? simt_rows_of(call, tensor) : (simt_rows){ 0 };
}

/* ------------------------------------------------------------------------------------------------------------ norms */

#define PARAMS_OF(op) \
    static norm_params op##_params(const trine_call *call) { \
        const trine_##op##_args *args = call->args; \
        return (norm_params){ .eps = args->eps, \
                              .weight_offset = args->weight_offset, \
                              .round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT, \
                              .dropout = simt_dropout_of(args->dropout, args->seed, args->offset) }; \
    }
PARAMS_OF(rms_norm)
PARAMS_OF(layer_norm)

const norm_op norm_rms = { .x = RMS_NORM_X,
                           .residual = RMS_NORM_RESIDUAL,
                           .philox = RMS_NORM_PHILOX,
                           .weight = RMS_NORM_WEIGHT,
                           .bias = -1,
                           .y = RMS_NORM_Y,
                           .residual_out = RMS_NORM_RESIDUAL_OUT,
                           .mean = -1,
                           .rstd = RMS_NORM_RSTD,
                           .params = rms_norm_params };
const norm_op norm_layer = { .x = LAYER_NORM_X,
                             .residual = LAYER_NORM_RESIDUAL,
                             .philox = LAYER_NORM_PHILOX,
                             .weight = LAYER_NORM_WEIGHT,
                             .bias = LAYER_NORM_BIAS,
                             .y = LAYER_NORM_Y,
                             .residual_out = LAYER_NORM_RESIDUAL_OUT,
                             .mean = LAYER_NORM_MEAN,
                             .rstd = LAYER_NORM_RSTD,
                             .params = layer_norm_params };

/* From a tensor, or itself, to `to`. */
static trine_status mask(const trine_call *call, int from, int to, int philox, const simt_dropout *dropout) {
    if (call->dim[NORM_DIM_R] == 0 || call->dim[NORM_DIM_N] == 0) return TRINE_OK; /* there may be a dweight */
    const norm_mask_params p = { simt_walk_between(&call->tensor[from], &call->tensor[to]), *dropout,
                                 call->tensor[philox].data };
    const simt_function function = { .step = "mask", .type = { call->type[NORM_TYPE_T] } };
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

/* Of what is masked all is kept. */
static void keep_all(simt_dropout *dropout) { dropout->last = UINT32_MAX; }

static bool told(const trine_call *call) {
    const norm_op *op = call->self;
    return simt_present(call, op->philox) && op->params(call).dropout.p > 0;
}
int norm_source(const trine_call *call) {
    const norm_op *op = call->self;
    return told(call) ? op->y : op->x;
}
trine_status norm_mask(const trine_call *call) {
    const norm_op *op = call->self;
    const norm_params p = op->params(call);
    return told(call) ? mask(call, op->x, op->y, op->philox, &p.dropout) : TRINE_OK;
}

void norm_edges_mask(const trine_call *call, trine_kernel_edges *edges) {
    if (told(call)) simt_walk_edges(call, edges);
}

norm_params norm_params_of(const trine_call *call) {
    const norm_op *op = call->self;
    norm_params p = op->params(call);
    if (told(call)) keep_all(&p.dropout);
    p.x = simt_rows_of(call, norm_source(call));
    p.residual = simt_rows_of(call, op->residual);
    p.weight = simt_rows_of(call, op->weight);
    p.bias = rows_of(call, op->bias);
    p.y = simt_rows_of(call, op->y);
    p.residual_out = simt_rows_of(call, op->residual_out);
    p.mean = rows_of(call, op->mean);
    p.rstd = simt_rows_of(call, op->rstd);
    p.rows = call->dim[NORM_DIM_R];
    p.n = call->dim[NORM_DIM_N];
    p.inverse = 1.0f / (float)p.n;
    p.f32_residual = call->type[NORM_TYPE_R] == TRINE_F32;
    p.f32_weight = call->type[NORM_TYPE_W] == TRINE_F32;
    p.ahead = simt_ahead_of(call, norm_source(call));
    return p;
}

trine_status norm_launch_rows(const trine_call *call) {
    const norm_params p = norm_params_of(call);
    const trine_status status = norm_mask(call);
    return status == TRINE_OK ? simt_launch_rows(call, NULL, p.rows, NORM_DIM_N, SIMT_ONE_ROW, &p, sizeof p) : status;
}

void norm_edges_rows(const trine_call *call, trine_kernel_edges *edges) {
    simt_row_edges(edges, NORM_DIM_R, NORM_DIM_N, SIMT_ONE_ROW);
    norm_edges_mask(call, edges);
}

const char *norm_refuse_same(const trine_call *call) {
    const norm_op *op = call->self;
    return op->params(call).dropout.p > 0 ? "what is the same everywhere has no dropout" : NULL;
}

trine_status norm_launch_same(const trine_call *call) {
    const norm_params p = norm_params_of(call);
    const simt_function function = { .step = "same", .type = { call->type[NORM_TYPE_T] } };
    return simt_launch(call, &function, p.rows, SAME_LANES, &p, sizeof p);
}

void norm_edges_same(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, NORM_DIM_N, SAME_LANES);
}

/* -------------------------------------------------------------------------------------------------------- gradients */

#define BACKWARD_PARAMS_OF(op) \
    static norm_backward_params op##_params(const trine_call *call) { \
        const trine_##op##_args *args = call->args; \
        return (norm_backward_params){ .weight_offset = args->weight_offset, \
                                       .dropout = simt_dropout_of(args->dropout, args->seed, args->offset) }; \
    }
BACKWARD_PARAMS_OF(rms_norm_backward)
BACKWARD_PARAMS_OF(layer_norm_backward)

const norm_backward_op norm_backward_rms = { .dy = RMS_NORM_BACKWARD_DY,
                                             .h = RMS_NORM_BACKWARD_H,
                                             .weight = RMS_NORM_BACKWARD_WEIGHT,
                                             .mean = -1,
                                             .rstd = RMS_NORM_BACKWARD_RSTD,
                                             .dresidual = RMS_NORM_BACKWARD_DRESIDUAL,
                                             .philox = RMS_NORM_BACKWARD_PHILOX,
                                             .dx = RMS_NORM_BACKWARD_DX,
                                             .dh = RMS_NORM_BACKWARD_DH,
                                             .dweight = RMS_NORM_BACKWARD_DWEIGHT,
                                             .dbias = -1,
                                             .params = rms_norm_backward_params };
const norm_backward_op norm_backward_layer = { .dy = LAYER_NORM_BACKWARD_DY,
                                               .h = LAYER_NORM_BACKWARD_H,
                                               .weight = LAYER_NORM_BACKWARD_WEIGHT,
                                               .mean = LAYER_NORM_BACKWARD_MEAN,
                                               .rstd = LAYER_NORM_BACKWARD_RSTD,
                                               .dresidual = LAYER_NORM_BACKWARD_DRESIDUAL,
                                               .philox = LAYER_NORM_BACKWARD_PHILOX,
                                               .dx = LAYER_NORM_BACKWARD_DX,
                                               .dh = LAYER_NORM_BACKWARD_DH,
                                               .dweight = LAYER_NORM_BACKWARD_DWEIGHT,
                                               .dbias = LAYER_NORM_BACKWARD_DBIAS,
                                               .params = layer_norm_backward_params };

/* Is dx masked when the rows are done, since only the device has dropout's key? */
static bool told_backward(const trine_call *call) {
    const norm_backward_op *op = call->self;
    return simt_present(call, op->philox) && op->params(call).dropout.p > 0;
}

norm_backward_params norm_backward_params_of(const trine_call *call) {
    const norm_backward_op *op = call->self;
    norm_backward_params p = op->params(call);
    if (told_backward(call)) keep_all(&p.dropout);
    p.dy = simt_rows_of(call, op->dy);
    p.h = simt_rows_of(call, op->h);
    p.weight = simt_rows_of(call, op->weight);
    p.mean = rows_of(call, op->mean);
    p.rstd = simt_rows_of(call, op->rstd);
    p.dresidual = simt_rows_of(call, op->dresidual);
    p.dx = simt_rows_of(call, op->dx);
    p.dh = simt_rows_of(call, op->dh);
    p.rows = call->dim[NORM_DIM_R];
    p.n = call->dim[NORM_DIM_N];
    p.f32_residual = call->type[NORM_TYPE_R] == TRINE_F32;
    p.f32_weight = call->type[NORM_TYPE_W] == TRINE_F32;
    p.ahead = simt_ahead_of_two(call, op->dy, op->h);
    return p;
}

size_t norm_backward_bytes(const trine_call *call, int64_t blocks) {
    const norm_backward_op *op = call->self;
    return (size_t)((norm_given(call, op->dweight) + norm_given(call, op->dbias)) * blocks * call->dim[NORM_DIM_N]) *
           sizeof(float);
}

void norm_backward_partials(const trine_call *call, norm_backward_params *p) {
    const norm_backward_op *op = call->self;
    float *next = call->workspace;
    if (norm_given(call, op->dweight)) {
        p->weight_partial = next;
        next += p->blocks * p->n;
    }
    if (norm_given(call, op->dbias)) p->bias_partial = next;
}

/* Sums over blocks, by thread blocks of so many columns: of 32 threads for each, of which an SM holds two, where that
 * is one round of them; of one, where a ring leaves few sums and its columns are enough for all SMs; else of 8. */
typedef struct finish_way {
    const char *step;
    int columns, threads;
} finish_way;

static const finish_way *finish_way_of(const norm_backward_params *norm, int count, int64_t units, bool ring) {
    static const finish_way deep = { "finish_deep", COLUMNS_FINISH, NORM_DEEP_THREADS },
                            each = { "finish_each", SIMT_THREADS, SIMT_THREADS },
                            plain = { "finish", COLUMNS_FINISH, SIMT_THREADS };
    enum { FEW = 40 };
    if (count * simt_blocks(norm->n, deep.columns) <= 2 * units) return &deep;
    return ring && norm->blocks <= FEW && count * simt_blocks(norm->n, each.columns) >= units ? &each : &plain;
}

/* One launch for all sums: each costs as much as those of a small call's rows. */
static trine_status finish_sums(const trine_call *call, const norm_backward_params *norm, bool ring) {
    const norm_backward_op *op = call->self;
    const struct {
        int tensor;
        float *partial;
    } sums[] = { { op->dweight, norm->weight_partial }, { op->dbias, norm->bias_partial } };
    norm_finish_params p = { 0 };
    int count = 0, tensor = op->dweight;
    for (int i = 0; i < 2; i++) {
        if (!norm_given(call, sums[i].tensor)) continue;
        tensor = sums[i].tensor;
        p.sum[count++] = (columns_params){
            .out = simt_rows_of(call, tensor), .partial = sums[i].partial, .n = norm->n, .blocks = norm->blocks
        };
    }
    if (count == 0) return TRINE_OK;
    const finish_way *way = finish_way_of(norm, count, simt_units(call), ring);
    const simt_function function = { .step = way->step, .type = { call->tensor[tensor].dtype } };
    return simt_launch(call, &function, count * simt_blocks(norm->n, way->columns), way->threads, &p, sizeof p);
}

trine_status norm_backward_finish(const trine_call *call, const norm_backward_params *norm, bool ring) {
    const norm_backward_op *op = call->self;
    trine_status status = TRINE_OK;
    if (told_backward(call)) {
        const norm_backward_params own = op->params(call);
        status = mask(call, op->dx, op->dx, op->philox, &own.dropout);
    }
    return status == TRINE_OK ? finish_sums(call, norm, ring) : status;
}

/* ------------------------------------------------------------------------------------- gradients, rows in registers */

int64_t norm_backward_turns(simt_group *group, int64_t held) {
    const int64_t all = simt_blocks(group->blocks, held), most = NORM_FUSED_TURNS,
                  turns = all < 1      ? 1
                          : all > most ? most
                                       : all;
    group->blocks = simt_blocks(group->blocks, turns);
    return turns;
}

static const int fused_sizes[] = { 8, 32, 64, 128, 256, NORM_FUSED_MOST };
enum { FUSED_SIZES = sizeof fused_sizes / sizeof fused_sizes[0] };

/* Groups take the rows of a few blocks in turns. */
static simt_group fused_group(const trine_call *call, int64_t *turns_out) {
    simt_group group =
        simt_group_of(call->dim[NORM_DIM_R], call->dim[NORM_DIM_N], NORM_FUSED_ITEMS, FUSED_SIZES, fused_sizes);
    *turns_out = norm_backward_turns(&group, norm_fused_blocks(group.size));
    return group;
}

static bool fused(const trine_call *call) { return call->dim[NORM_DIM_N] <= NORM_FUSED_ITEMS * NORM_FUSED_MOST; }
const char *norm_backward_refuse_rows(const trine_call *call) {
    return fused(call) ? NULL : "a block's registers do not hold a row";
}
const char *norm_backward_refuse_long(const trine_call *call) {
    return fused(call) ? "a block's registers hold a row" : NULL;
}

size_t norm_backward_workspace_rows(const trine_call *call) {
    int64_t turns;
    return norm_backward_bytes(call, fused_group(call, &turns).blocks);
}

/* Is a residual's gradient prefetched a row ahead? Of 16 bits layer_norm at 4096 has 95 % of what a copy moves instead
 * of 87, and rms_norm 88 instead of 84 at 1024 with dropout, but 88 instead of 92 without (H200). Of f32 full groups
 * have enough on their way. */
static bool asks_dresidual(const trine_call *call, const norm_backward_params *p, int size) {
    const bool centered = p->mean.data, dropout = p->dropout.p > 0, wide = call->type[NORM_TYPE_T] == TRINE_F32;
    if (!p->dresidual.data) return false;
    if (!p->f32_residual) return centered || dropout;
    return centered ? 5 * p->n <= 4 * NORM_FUSED_ITEMS * size
                    : dropout && !wide && 4 * p->n < 3 * NORM_FUSED_ITEMS * size;
}

trine_status norm_backward_launch_rows(const trine_call *call) {
    norm_backward_params p = norm_backward_params_of(call);
    const simt_group group = fused_group(call, &p.turns);
    const simt_function function = { .ragged = !simt_rows_whole(call, NORM_DIM_N),
                                     .type = { call->type[NORM_TYPE_T] },
                                     .variant = group.size };
    p.blocks = group.blocks;
    p.ask_dresidual = asks_dresidual(call, &p, group.size);
    norm_backward_partials(call, &p);
    const trine_status status = simt_launch(call, &function, group.blocks, group.threads, &p, sizeof p);
    return status == TRINE_OK ? norm_backward_finish(call, &p, false) : status;
}

/* And so many rows that the smallest groups take a second turn. */
void norm_backward_edges_rows(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, NORM_DIM_N, SIMT_VECTOR);
    for (int i = 0; i < FUSED_SIZES; i++)
        trine_kernel_edge(edges, NORM_DIM_N, (int64_t)fused_sizes[i] * NORM_FUSED_ITEMS);
    trine_kernel_edge(edges, NORM_DIM_R, (int64_t)norm_fused_blocks(fused_sizes[0]) * (SIMT_THREADS / fused_sizes[0]));
    norm_backward_edges_finish(call, edges);
}

void norm_backward_edges_finish(const trine_call *call, trine_kernel_edges *edges) {
    if (told_backward(call)) simt_walk_edges(call, edges);
    trine_kernel_edge(edges, NORM_DIM_N, COLUMNS_FINISH);
    trine_kernel_edge(edges, NORM_DIM_N, SIMT_THREADS);
}

void norm_backward_edges_long(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, NORM_DIM_N, NORM_FUSED_ITEMS * NORM_FUSED_MOST);
    simt_columns_edges(edges, NORM_DIM_R, NORM_DIM_N);
    norm_backward_edges_finish(call, edges);
}

size_t norm_backward_workspace_long(const trine_call *call) {
    const int64_t rows = call->dim[NORM_DIM_R];
    return norm_backward_bytes(call, simt_blocks(rows, columns_block_rows(rows)));
}

/* The sums come first: dx may be dy. */
trine_status norm_backward_launch_long(const trine_call *call) {
    const bool whole = simt_rows_whole(call, NORM_DIM_N);
    const int64_t rows = call->dim[NORM_DIM_R], n = call->dim[NORM_DIM_N], block_rows = columns_block_rows(rows),
                  blocks = simt_blocks(rows, block_rows);
    norm_columns_params p = { .norm = norm_backward_params_of(call),
                              .columns = {
                                  .rows = rows, .n = n, .block_rows = block_rows, .blocks = blocks, .wide = whole } };
    p.norm.blocks = blocks;
    norm_backward_partials(call, &p.norm);
    const simt_function columns = { .step = "columns", .type = { call->type[NORM_TYPE_T] } };
    const simt_function long_rows = { .step = "long", .ragged = !whole, .type = { call->type[NORM_TYPE_T] } };
    trine_status status = TRINE_OK;
    if (p.norm.weight_partial || p.norm.bias_partial)
        status = simt_launch(call, &columns, blocks * simt_blocks(n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK) status = simt_launch(call, &long_rows, rows, NORM_FUSED_MOST, &p.norm, sizeof p.norm);
    return status == TRINE_OK ? norm_backward_finish(call, &p.norm, false) : status;
}
