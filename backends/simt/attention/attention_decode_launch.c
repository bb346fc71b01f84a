/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode on devices: what the host sides of its kernels have in common. */
#include "attention_decode_launch.h"

#include <math.h>

int64_t attention_decode_widest(const trine_call *call) {
    const int64_t d = call->dim[ATTENTION_DECODE_DIM_D], dv = call->dim[ATTENTION_DECODE_DIM_DV];
    return d > dv ? d : dv;
}

const char *attention_decode_refuse(const trine_call *call) {
    const int64_t rows = call->dim[ATTENTION_DECODE_DIM_H] * call->dim[ATTENTION_DECODE_DIM_SQ];
    if (rows > INT32_MAX) return "heads times tokens beyond 2^31 - 1";
    return attention_decode_widest(call) > DECODE_COLUMNS ? "more than 768 columns" : NULL;
}

/* Units of 8 elements are read by up to 16 bytes at a time. Do all rows begin where the first does? And that, aligned?
 * */
static int64_t bytes_of(const trine_tensor *t) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    return 8 * size < 16 ? 8 * size : 16;
}
static bool steps_aligned(const trine_tensor *t) {
    bool whole = true;
    for (int d = 0; d < 3; d++)
        whole &= t->shape[d] == 1 || t->stride[d] * (int64_t)trine_dtype_size(t->dtype) % bytes_of(t) == 0;
    return whole;
}
static bool aligned(const trine_tensor *t) {
    return (uintptr_t)t->data % (uintptr_t)bytes_of(t) == 0 && steps_aligned(t);
}

bool attention_decode_whole(const trine_call *call) {
    const int all[] = { ATTENTION_DECODE_Q, ATTENTION_DECODE_K_CACHE, ATTENTION_DECODE_V_CACHE };
    bool whole =
        call->dim[ATTENTION_DECODE_DIM_D] % SIMT_VECTOR == 0 && call->dim[ATTENTION_DECODE_DIM_DV] % SIMT_VECTOR == 0;
    for (int i = 0; i < 3; i++) whole &= !simt_present(call, all[i]) || steps_aligned(&call->tensor[all[i]]);
    return whole;
}

static decode_tensor tensor_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (decode_tensor){ 0 };
    return (decode_tensor){ t->data, t->stride[0], t->stride[1], t->stride[2], aligned(t) };
}

static const void *given(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}
static int64_t step_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].stride[0] : 0;
}

/* Parts depend on a sequence's own sizes alone. */
static int64_t part_of(const trine_call *call) {
    const int64_t *dim = call->dim,
                  rows = dim[ATTENTION_DECODE_DIM_H] / dim[ATTENTION_DECODE_DIM_HK] * dim[ATTENTION_DECODE_DIM_SQ];
    return rows <= DECODE_FEW ? DECODE_SHORT : DECODE_LONG;
}
static int64_t keys_of(const trine_call *call) {
    return call->dim[ATTENTION_DECODE_DIM_MAXPAGES] * call->dim[ATTENTION_DECODE_DIM_PAGE];
}
static int64_t parts_of(const trine_call *call) { return (keys_of(call) + part_of(call) - 1) / part_of(call); }

size_t attention_decode_workspace(const trine_call *call) {
    const int64_t *dim = call->dim;
    return (size_t)(dim[ATTENTION_DECODE_DIM_B] * dim[ATTENTION_DECODE_DIM_H] * dim[ATTENTION_DECODE_DIM_SQ] *
                    parts_of(call) * (dim[ATTENTION_DECODE_DIM_DV] + 2)) *
           sizeof(float);
}

decode_params attention_decode_params_of(const trine_call *call) {
    const trine_attention_decode_args *args = call->args;
    const int64_t *dim = call->dim, page = dim[ATTENTION_DECODE_DIM_PAGE];
    const trine_dtype type = call->type[ATTENTION_DECODE_TYPE_T];
    const bool latent = !simt_present(call, ATTENTION_DECODE_V_CACHE);
    const int v_scale = latent ? ATTENTION_DECODE_K_SCALE : ATTENTION_DECODE_V_SCALE;
    decode_params p = {
        .q = tensor_of(call, ATTENTION_DECODE_Q),
        .k = tensor_of(call, ATTENTION_DECODE_K_CACHE),
        .v = tensor_of(call, ATTENTION_DECODE_V_CACHE),
        .out = tensor_of(call, ATTENTION_DECODE_OUT),
        .lse = tensor_of(call, ATTENTION_DECODE_LSE),
        .table = call->tensor[ATTENTION_DECODE_BLOCK_TABLE].data,
        .lengths = call->tensor[ATTENTION_DECODE_LENGTHS].data,
        .table_row = call->tensor[ATTENTION_DECODE_BLOCK_TABLE].stride[0],
        .sinks = given(call, ATTENTION_DECODE_SINKS),
        .k_scale = given(call, ATTENTION_DECODE_K_SCALE),
        .v_scale = given(call, v_scale),
        .k_scale_step = step_of(call, ATTENTION_DECODE_K_SCALE),
        .v_scale_step = step_of(call, v_scale),
        .partial = call->workspace,
        .keys = keys_of(call),
        .pages = dim[ATTENTION_DECODE_DIM_PAGES],
        .window = args->window_left,
        .page = simt_divisor_of(page > 0 ? page : 1),
        .sq = (int32_t)dim[ATTENTION_DECODE_DIM_SQ],
        .hk = (int32_t)dim[ATTENTION_DECODE_DIM_HK],
        .group = (int32_t)(dim[ATTENTION_DECODE_DIM_H] / dim[ATTENTION_DECODE_DIM_HK]),
        .d = (int32_t)dim[ATTENTION_DECODE_DIM_D],
        .dv = (int32_t)dim[ATTENTION_DECODE_DIM_DV],
        .part = (int32_t)part_of(call),
        .parts = parts_of(call),
        .type = type == TRINE_F32    ? DECODE_F32
                : type == TRINE_BF16 ? DECODE_BF16
                                     : DECODE_F16,
        .scale = args->scale != 0 ? args->scale : (float)(1 / sqrt((double)dim[ATTENTION_DECODE_DIM_D])),
        .softcap = args->softcap,
        .wide_sinks =
            simt_present(call, ATTENTION_DECODE_SINKS) && call->tensor[ATTENTION_DECODE_SINKS].dtype == TRINE_F32,
    };
    p.rows = p.sq * p.group;
    if (latent) p.v = p.k;
    p.latent = latent;
    p.wide = attention_decode_whole(call) && p.q.aligned && p.k.aligned && p.v.aligned;
    return p;
}

trine_status attention_decode_merge(const trine_call *call, const decode_params *p) {
    const simt_function merge = { .step = "merge", .type = { call->type[ATTENTION_DECODE_TYPE_T] } };
    return simt_launch(call, &merge, call->dim[ATTENTION_DECODE_DIM_B] * p->hk * p->rows, SIMT_THREADS, p, sizeof *p);
}

void attention_decode_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t page = call->dim[ATTENTION_DECODE_DIM_PAGE] > 0 ? call->dim[ATTENTION_DECODE_DIM_PAGE] : 1,
                  group = call->dim[ATTENTION_DECODE_DIM_H] / call->dim[ATTENTION_DECODE_DIM_HK];
    static const int64_t columns[] = { 8, 64, 128, 256 };
    for (int i = 0; i < 4; i++) {
        trine_kernel_edge(edges, ATTENTION_DECODE_DIM_D, columns[i]);
        trine_kernel_edge(edges, ATTENTION_DECODE_DIM_DV, columns[i]);
    }
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, DECODE_SHORT / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, DECODE_LONG / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ, DECODE_FEW / group);
}

enum { ROWS_FEW = 4, ROWS_MANY = 8 };

trine_status attention_decode_launch(const trine_call *call) {
    const int64_t width = attention_decode_widest(call);
    decode_params p = attention_decode_params_of(call);
    const int variant = width <= 64    ? 64
                        : width <= 128 ? 128
                        : width <= 256 ? 256
                                       : DECODE_COLUMNS,
              rows = variant == 64 || (variant == 128 && p.rows > ROWS_FEW) ? ROWS_MANY : ROWS_FEW;
    p.row_tiles = (p.rows + rows - 1) / rows;
    const simt_function parts = { .step = rows == ROWS_FEW ? "four" : "eight",
                                  .type = { call->type[ATTENTION_DECODE_TYPE_C] },
                                  .variant = variant };
    const int64_t blocks = call->dim[ATTENTION_DECODE_DIM_B] * p.hk * p.parts * p.row_tiles;
    const trine_status status = simt_launch(call, &parts, blocks, SIMT_THREADS, &p, sizeof p);
    return status != TRINE_OK ? status : attention_decode_merge(call, &p);
}

void attention_decode_launch_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t group = call->dim[ATTENTION_DECODE_DIM_H] / call->dim[ATTENTION_DECODE_DIM_HK];
    attention_decode_edges(call, edges);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ, ROWS_FEW / group);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ, ROWS_MANY / group);
}
