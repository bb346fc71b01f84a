/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_quantized on devices, in one step: all ranks get all codes. quantize makes them, of x and of the sum;
 * as many elements at a time as keep the workspace small. */
#include <trine/ops.h>

#include "backends/simt/comm/all_reduce_quantized.h"
#include "exchanges.h"
#include "spec/places/all_reduce_quantized.h"

enum { PANEL = 1 << 22, ALIGNMENT = 256 };

/* A panel's workspace: codes and scales of this rank and of all, the sum, and what quantize needs. */
typedef struct panel {
    const trine_call *call;
    int64_t ranks, block, n, blocks; /* of the panel */
    trine_dtype T, C;
    char *codes, *scales, *all_codes, *all_scales, *sum, *nested;
    size_t bytes; /* before what quantize needs */
} panel;

static char *take(const panel *p, size_t *at, int64_t bytes) {
    char *memory = p->call->workspace ? (char *)p->call->workspace + *at : NULL;
    *at += (size_t)(simt_blocks(bytes, ALIGNMENT) * ALIGNMENT);
    return memory;
}

static int64_t panel_of(const trine_call *call, int64_t block) {
    const int64_t n = call->dim[ALL_REDUCE_QUANTIZED_DIM_N], most = PANEL / block * block;
    return n < most ? n : most;
}

static panel panel_at(const trine_call *call, int64_t n) {
    const trine_all_reduce_quantized_args *args = call->args;
    panel p = { .call = call,
                .ranks = call->dim[ALL_REDUCE_QUANTIZED_DIM_RANKS],
                .block = args->block,
                .n = n,
                .blocks = simt_blocks(n, args->block),
                .T = call->type[ALL_REDUCE_QUANTIZED_TYPE_T],
                .C = args->codes == TRINE_RANKS_E4M3 ? TRINE_E4M3 : TRINE_I8 };
    p.codes = take(&p, &p.bytes, n);
    p.scales = take(&p, &p.bytes, p.blocks * 4);
    p.all_codes = take(&p, &p.bytes, p.ranks * n);
    p.all_scales = take(&p, &p.bytes, p.ranks * p.blocks * 4);
    p.sum = take(&p, &p.bytes, n * 4);
    p.nested = call->workspace ? (char *)call->workspace + p.bytes : NULL;
    return p;
}

/* quantize of `blocks` blocks of `block` elements from element `at` of the panel on; *bytes: what it may use, or, of no
 * data, what it needs if that is more. */
static trine_status quantize(const panel *p, const char *x, trine_dtype T, int64_t at, int64_t blocks, int64_t block,
                             bool run, size_t *bytes) {
    char *from = x ? (char *)(uintptr_t)x + at * (int64_t)trine_dtype_size(T) : NULL;
    const trine_tensor numbers = exchange_rows(from, T, 1, blocks * block),
                       codes = exchange_tensor(p->codes ? p->codes + at : NULL, p->C, 3, 1, blocks, block),
                       scales = exchange_rows(p->scales ? p->scales + at / p->block * 4 : NULL, TRINE_F32, 1, blocks);
    const trine_quantize_args args = { .struct_size = sizeof args, .x = &numbers, .codes = &codes, .scales = &scales };
    size_t need = 0;
    if (blocks == 0) return TRINE_OK;
    if (run) return p->call->host->nested_run(p->call, TRINE_OP_QUANTIZE, &args, p->nested, *bytes);
    const trine_status status = p->call->host->nested_workspace(p->call, TRINE_OP_QUANTIZE, &args, &need);
    if (need > *bytes) *bytes = need;
    return status;
}

/* All blocks, the last of which may be shorter. */
static trine_status quantize_all(const panel *p, const char *x, trine_dtype T, bool run, size_t *bytes) {
    const int64_t whole = p->n / p->block, rest = p->n % p->block;
    const trine_status status = quantize(p, x, T, 0, whole, p->block, run, bytes);
    return status == TRINE_OK ? quantize(p, x, T, whole * p->block, rest > 0, rest, run, bytes) : status;
}

static trine_status decode(const panel *p, int32_t ranks, const char *codes, const char *scales, void *y,
                           trine_dtype T) {
    const decoded_params d = { .codes = (const uint8_t *)codes,
                               .scales = (const float *)(const void *)scales,
                               .y = y,
                               .n = p->n,
                               .blocks = p->blocks,
                               .block = simt_divisor_of(p->block),
                               .ranks = ranks,
                               .float8 = p->C == TRINE_E4M3 };
    return simt_launch(p->call, &(simt_function){ .step = "decoded", .type = { T } }, simt_blocks(p->n, SIMT_THREADS),
                       SIMT_THREADS, &d, sizeof d);
}

static trine_status run_panel(const panel *p, const char *x, char *y) {
    const trine_tensor codes = exchange_row(p->codes, p->C, p->n),
                       scales = exchange_row(p->scales, TRINE_F32, p->blocks),
                       all_codes = exchange_rows(p->all_codes, p->C, p->ranks, p->n),
                       all_scales = exchange_rows(p->all_scales, TRINE_F32, p->ranks, p->blocks);
    size_t bytes = p->call->workspace_size - p->bytes;
    trine_status status = quantize_all(p, x, p->T, true, &bytes);
    if (status == TRINE_OK) status = exchange_copies(p->call, &codes, &all_codes, p->n, 0);
    if (status == TRINE_OK) status = exchange_copies(p->call, &scales, &all_scales, p->blocks, 0);
    if (status == TRINE_OK) status = decode(p, (int32_t)p->ranks, p->all_codes, p->all_scales, p->sum, TRINE_F32);
    if (status == TRINE_OK) status = quantize_all(p, p->sum, TRINE_F32, true, &bytes);
    return status == TRINE_OK ? decode(p, 1, p->codes, p->scales, y, p->T) : status;
}

/* Of a whole panel and of the last one. */
static trine_status plan(const trine_call *call, size_t *bytes_out) {
    const int64_t block = ((const trine_all_reduce_quantized_args *)call->args)->block, whole = panel_of(call, block),
                  n = call->dim[ALL_REDUCE_QUANTIZED_DIM_N], size[] = { whole, whole > 0 ? n % whole : 0 };
    size_t bytes = 0;
    trine_status status = TRINE_OK;
    for (int i = 0; i < 2 && status == TRINE_OK; i++) {
        panel p = panel_at(call, size[i]);
        p.codes = p.scales = p.sum = NULL;
        status = quantize_all(&p, NULL, p.T, false, &bytes);
        if (status == TRINE_OK) status = quantize_all(&p, NULL, TRINE_F32, false, &bytes);
    }
    *bytes_out = panel_at(call, whole).bytes + bytes;
    return status;
}

static const char *refuse(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? NULL : "quantize has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? bytes : 0;
}

static trine_status run(const trine_call *call) {
    const trine_all_reduce_quantized_args *args = call->args;
    const int64_t n = call->dim[ALL_REDUCE_QUANTIZED_DIM_N], whole = panel_of(call, args->block),
                  width = (int64_t)trine_dtype_size(call->type[ALL_REDUCE_QUANTIZED_TYPE_T]);
    const char *x = call->tensor[ALL_REDUCE_QUANTIZED_X].data;
    char *y = call->tensor[ALL_REDUCE_QUANTIZED_Y].data;
    for (int64_t at = 0; at == 0 || at < n; at += whole) {
        const panel p = panel_at(call, n - at < whole ? n - at : whole);
        const trine_status status = run_panel(&p, x + at * width, y + at * width);
        if (status != TRINE_OK) return status;
        if (whole == 0) break;
    }
    return TRINE_OK;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t block = ((const trine_all_reduce_quantized_args *)call->args)->block;
    exchange_edges(call, edges, ALL_REDUCE_QUANTIZED_DIM_N, EXCHANGE_PACKET, 1);
    trine_kernel_edge(edges, ALL_REDUCE_QUANTIZED_DIM_N, block);
    trine_kernel_edge(edges, ALL_REDUCE_QUANTIZED_DIM_N, PANEL / block * block);
}

SIMT_KERNELS(all_reduce_quantized) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
