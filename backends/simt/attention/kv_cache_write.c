/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_write on devices: the host side. */
#include "kv_cache_write.h"
#include "backends/simt/core/host.h"
#include "spec/places/kv_cache_write.h"

enum { FEW = 2048 /* tokens, which get a block each */, UNIT = 8 };

/* Are all rows whole units, of up to 16 bytes each, and so aligned? */
static bool aligned(const trine_tensor *t) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), bytes = size * UNIT < 16 ? size * UNIT : 16;
    bool whole = (uintptr_t)t->data % (uintptr_t)bytes == 0 && t->shape[t->rank - 1] % UNIT == 0;
    for (int d = 0; d < t->rank - 1; d++) whole &= t->shape[d] == 1 || t->stride[d] * size % bytes == 0;
    return whole;
}

static kv_cache_write_part part_of(const trine_call *call, int x, int cache, int scale, int unit) {
    const trine_tensor *from = &call->tensor[x], *to = &call->tensor[cache];
    if (!simt_present(call, x)) return (kv_cache_write_part){ .units = simt_divisor_of(1) };
    const int64_t units = from->shape[2] / unit;
    return (kv_cache_write_part){ .x = from->data,
                                  .cache = to->data,
                                  .scale = simt_present(call, scale) ? call->tensor[scale].data : NULL,
                                  .token = from->stride[0],
                                  .head = from->stride[1],
                                  .page = to->stride[0],
                                  .place = to->stride[1],
                                  .row = to->stride[2],
                                  .scale_step = simt_present(call, scale) ? call->tensor[scale].stride[0] : 0,
                                  .units = simt_divisor_of(units > 0 ? units : 1),
                                  .all = units * from->shape[1] };
}

static bool whole_units(const trine_call *call) {
    static const int tensors[] = { KV_CACHE_WRITE_K, KV_CACHE_WRITE_V, KV_CACHE_WRITE_K_CACHE, KV_CACHE_WRITE_V_CACHE };
    bool whole = true;
    for (int i = 0; i < 4; i++) whole &= !simt_present(call, tensors[i]) || aligned(&call->tensor[tensors[i]]);
    return whole;
}

static trine_status launch(const trine_call *call) {
    const int unit = whole_units(call) ? UNIT : 1;
    const trine_tensor *slots = &call->tensor[KV_CACHE_WRITE_SLOTS];
    kv_cache_write_params p = {
        .k = part_of(call, KV_CACHE_WRITE_K, KV_CACHE_WRITE_K_CACHE, KV_CACHE_WRITE_K_SCALE, unit),
        .v = part_of(call, KV_CACHE_WRITE_V, KV_CACHE_WRITE_V_CACHE, KV_CACHE_WRITE_V_SCALE, unit),
        .slots = slots->data,
        .t = call->dim[KV_CACHE_WRITE_DIM_T],
        .page = call->dim[KV_CACHE_WRITE_DIM_PAGE],
        .all = call->dim[KV_CACHE_WRITE_DIM_PAGES] * call->dim[KV_CACHE_WRITE_DIM_PAGE],
        .long_slots = slots->dtype == TRINE_I64,
    };
    p.tokens = p.t > FEW ? KV_CACHE_WRITE_TOKENS : 1;
    const simt_function function = { .type = { call->type[KV_CACHE_WRITE_TYPE_T], call->type[KV_CACHE_WRITE_TYPE_C] },
                                     .variant = unit };
    return simt_launch(call, &function, simt_blocks(p.t, p.tokens), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, KV_CACHE_WRITE_DIM_T, SIMT_THREADS);
    trine_kernel_edge(edges, KV_CACHE_WRITE_DIM_T, FEW);
}

SIMT_KERNELS(kv_cache_write) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
