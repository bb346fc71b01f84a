/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on sm_90a: the host side. */
#include "grouped_matmul_sm90.h"

#include <stdio.h>

#include "grouped_matmul_sm90_host.h"
#include "rows_sm90_host.h"
#include "backends/cuda/driver/maps.h"
#include "backends/cuda/driver/state.h"
#include "backends/simt/matmul/grouped_matmul_host.h"

/* Which dimension of w is consecutive; 0: neither. */
static int inner_of(const trine_tensor *w) { return w->stride[2] == 1 ? 2 : w->stride[1] == 1 ? 1 : 0; }

static int64_t pitch_of(const trine_tensor *w, int dimension) {
    return w->shape[dimension] > 1 ? 2 * w->stride[dimension] : 16;
}

const char *grouped_matmul_sm90_refuse(const trine_call *call) {
    const char *why = cuda_refuse_hopper(call);
    if (why == NULL) why = grouped_matmul_refuse(call);
    if (why != NULL) return why;
    const trine_tensor *w = &call->tensor[GROUPED_MATMUL_W], *x = &call->tensor[GROUPED_MATMUL_X];
    if (call->type[GROUPED_MATMUL_TYPE_T] == TRINE_F32) return "f32 has no products here that the error bound allows";
    if (call->dim[GROUPED_MATMUL_DIM_K] == 0 || call->dim[GROUPED_MATMUL_DIM_E] == 0) return "there is nothing to copy";
    const int inner = inner_of(w);
    if (inner == 0 || !cuda_copyable_stride(pitch_of(w, 3 - inner)) || !cuda_copyable_stride(pitch_of(w, 0)))
        return "strides of w are not multiples of 16 bytes";
    if (x->shape[0] > 1 && x->stride[0] % 8 != 0) return "rows of x are not multiples of 16 bytes apart";
    for (int i = 0; i < call->plan->symbols; i++)
        if (call->dim[i] > INT32_MAX - MATMUL_SM90_WIDE) return "a dimension exceeds the coordinates of tensor maps";
    if (grouped_tiles(call, &grouped_matmul_places, ROWS_SM90_ROWS) *
            simt_blocks(call->dim[GROUPED_MATMUL_DIM_N], MATMUL_SM90_NARROW) >
        INT32_MAX / 2)
        return "more tiles than are counted in 32 bits";
    return NULL;
}

size_t grouped_matmul_sm90_workspace(const trine_call *call) {
    return grouped_workspace(call, &grouped_matmul_places, ROWS_SM90_ROWS);
}

/* w in boxes of n columns, or by hand, if it does not begin at 16 bytes: its sums must be the same. And x, if its rows
 * follow each other. */
static trine_status encode(const trine_call *call, bool across, int n, grouped_sm90_params *params) {
    const cuda_device *d = call->device;
    const trine_tensor *w = &call->tensor[GROUPED_MATMUL_W], *x = &call->tensor[GROUPED_MATMUL_X];
    const int inner = across ? 1 : 2;
    const cuda_map of_w = { .dtype = w->dtype,
                            .data = w->data,
                            .shape = { w->shape[inner], w->shape[3 - inner], w->shape[0] },
                            .line = pitch_of(w, 3 - inner),
                            .batch = pitch_of(w, 0),
                            .width = 64,
                            .rows = (across ? 64 : n) / ROWS_SM90_PAIR,
                            .fetch = CU_TENSOR_MAP_L2_PROMOTION_L2_256B },
                   of_x = { .dtype = x->dtype,
                            .data = x->data,
                            .shape = { x->shape[1], x->shape[0], 1 },
                            .line = pitch_of(x, 0),
                            .batch = 16,
                            .width = 64,
                            .rows = ROWS_SM90_ROWS,
                            .fetch = CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
    if (!rows_sm90_begins_whole(w)) {
        params->hand = (matmul_operand){
            .data = w->data, .batch = w->stride[0], .lane = w->stride[1], .along = w->stride[2], .across = across
        };
        return TRINE_OK;
    }
    params->boxes =
        !simt_present(call, GROUPED_MATMUL_GATHER) && rows_sm90_begins_whole(x) && cuda_copyable_stride(pitch_of(x, 0));
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = cuda_map_encode(d->driver, &of_w, &params->w);
    if (status == TRINE_OK && params->boxes) status = cuda_map_encode(d->driver, &of_x, &params->x);
    cuda_leave(d, scope);
    return status;
}

trine_status grouped_matmul_sm90_launch(const trine_call *call) {
    const trine_dtype in = call->type[GROUPED_MATMUL_TYPE_T], out = call->type[GROUPED_MATMUL_TYPE_O];
    grouped_sm90_params params = { .of = grouped_matmul_params_of(call, ROWS_SM90_ROWS) };
    const grouped_params *p = &params.of;
    const bool across = inner_of(&call->tensor[GROUPED_MATMUL_W]) == 1;
    const int64_t some = simt_blocks(p->p, ROWS_SM90_ROWS) + (p->e < p->p ? p->e : p->p) / 2;
    cuda_launch launch = { .part = CUDA_HOPPER,
                           .threads = MATMUL_SM90_THREADS,
                           .cluster = ROWS_SM90_PAIR,
                           .blocks = ROWS_SM90_PAIR,
                           .shared = MATMUL_SM90_MEMORY,
                           .params = &params };
    const int own = *(const int *)call->self,
              n = own ? own
                      : rows_sm90_columns(simt_units(call) / ROWS_SM90_PAIR, simt_blocks(some, ROWS_SM90_PAIR), p->n,
                                          simt_blocks(2 * p->k, 128), simt_present(call, GROUPED_MATMUL_GATHER));
    snprintf(launch.name, sizeof launch.name, "grouped_matmul_sm90_%s_%s_%d%c", trine_dtype_name(in),
             trine_dtype_name(out), n, across ? 'l' : 'k');
    params.whole = p->y_aligned && p->n * (int64_t)trine_dtype_size(out) % 16 == 0;
    int held = 0;
    trine_status status = cuda_clusters_held(call, &launch, &held);
    if (status != TRINE_OK) return status;
    if (held == 0)
        return call->host->error(TRINE_ERR_UNSUPPORTED, "grouped_matmul: the device holds no pair of blocks");
    status = encode(call, across, n, &params);
    if (status == TRINE_OK) status = grouped_plan(call, p);
    if (status != TRINE_OK) return status;
    const int64_t units = simt_blocks(p->tiles, ROWS_SM90_PAIR) * simt_blocks(p->n, n);
    launch.blocks = ROWS_SM90_PAIR * (units < held ? units : held);
    return cuda_launch_function(call, &launch);
}

void grouped_matmul_sm90_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_P, ROWS_SM90_ROWS / 2);
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_P, ROWS_SM90_ROWS);
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_P, (int64_t)ROWS_SM90_BAND * ROWS_SM90_PAIR * ROWS_SM90_ROWS);
    for (int n = 64; n <= 256; n *= 2) {
        trine_kernel_edge(edges, GROUPED_MATMUL_DIM_N, n);
        trine_kernel_edge(edges, GROUPED_MATMUL_DIM_K, (int64_t)64 * ROWS_SM90_STAGES(n, false, 0));
    }
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_K, 64);
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_E, SIMT_THREADS);
}
