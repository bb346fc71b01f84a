/* SPDX-License-Identifier: Apache-2.0 */
/* argsort on devices: the host side. */
#include "argsort.h"
#include "backends/simt/core/host.h"
#include "spec/places/argsort.h"

static int64_t size_of(const trine_call *call) { return (int64_t)trine_dtype_size(call->type[ARGSORT_TYPE_T]); }

/* Of a row that does not fit in a block: whole tiles, at least two. */
static int64_t length_of(const trine_call *call) {
    const int64_t tiles = simt_blocks(simt_blocks(call->dim[ARGSORT_DIM_N], ARGSORT_TILE), ARGSORT_BLOCKS);
    return (tiles < 2 ? 2 : tiles) * ARGSORT_TILE;
}
static int64_t blocks_of(const trine_call *call) { return simt_blocks(call->dim[ARGSORT_DIM_N], length_of(call)); }

static const char *refuse(const trine_call *call) {
    return call->dim[ARGSORT_DIM_N] > INT32_MAX ? "rows of more than 2^31 - 1 elements" : NULL;
}

static size_t workspace(const trine_call *call) {
    const int64_t r = call->dim[ARGSORT_DIM_R], n = call->dim[ARGSORT_DIM_N];
    if (n <= ARGSORT_TILE) return 0;
    return (size_t)(2 * r * n) * ((size_t)size_of(call) + sizeof(uint32_t)) +
           (size_t)(r * blocks_of(call) * ARGSORT_DIGITS) * sizeof(uint32_t);
}

static trine_status launch_long(const trine_call *call, simt_function *function, argsort_params *p) {
    const int64_t r = call->dim[ARGSORT_DIM_R], size = size_of(call);
    char *const order = call->workspace;
    uint32_t *const at = (uint32_t *)(order + 2 * r * p->n * size);
    p->order[0] = order, p->order[1] = order + r * p->n * size;
    p->at[0] = at, p->at[1] = at + r * p->n;
    p->count = at + 2 * r * p->n;
    p->length = length_of(call), p->blocks = blocks_of(call);
    trine_status status = TRINE_OK;
    for (p->pass = 0; status == TRINE_OK && p->pass < size; p->pass++) {
        p->last = p->pass == size - 1;
        function->step = "count";
        status = simt_launch(call, function, r * p->blocks, SIMT_THREADS, p, sizeof *p);
        function->step = "move";
        if (status == TRINE_OK) status = simt_launch(call, function, r * p->blocks, SIMT_THREADS, p, sizeof *p);
    }
    return status;
}

static trine_status launch(const trine_call *call) {
    const trine_argsort_args *args = call->args;
    const trine_dtype T = call->type[ARGSORT_TYPE_T];
    argsort_params p = { .x = simt_rows_of(call, ARGSORT_X),
                         .values = simt_rows_of(call, ARGSORT_VALUES),
                         .indices = simt_rows_of(call, ARGSORT_INDICES),
                         .n = call->dim[ARGSORT_DIM_N],
                         .infinity = T == TRINE_F32    ? 0x7f800000
                                     : T == TRINE_BF16 ? 0x7f80
                                     : T == TRINE_F16  ? 0x7c00
                                                       : 0,
                         .descending = args->descending,
                         .long_indices = call->type[ARGSORT_TYPE_I] == TRINE_I64 };
    simt_function function = { .variant = 8 * (int)size_of(call) };
    if (p.n > ARGSORT_TILE) return launch_long(call, &function, &p);
    function.step = p.n <= SIMT_THREADS ? "small" : "tile";
    return simt_launch(call, &function, call->dim[ARGSORT_DIM_R], SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ARGSORT_DIM_N, SIMT_THREADS);
    trine_kernel_edge(edges, ARGSORT_DIM_N, ARGSORT_TILE);
    trine_kernel_edge(edges, ARGSORT_DIM_N, 2 * ARGSORT_TILE);
}

SIMT_KERNELS(argsort) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
