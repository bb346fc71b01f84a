/* SPDX-License-Identifier: Apache-2.0 */
/* attention_merge on devices: the host side. */
#include "attention_merge.h"
#include "backends/simt/core/host.h"
#include "spec/places/attention_merge.h"

enum { UNIT = 8 };

/* Tensors of heads before tokens are turned. */
static merge_tensor tensor_of(const trine_call *call, int tensor, bool heads_first) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (merge_tensor){ 0 };
    return (merge_tensor){ t->data, t->stride[0], t->stride[heads_first ? 2 : 1], t->stride[heads_first ? 1 : 2] };
}

/* Are all rows whole units, of up to 16 bytes each, and so aligned? */
static bool whole_units(const trine_call *call) {
    static const int tensors[] = { ATTENTION_MERGE_OUT_A, ATTENTION_MERGE_OUT_B, ATTENTION_MERGE_OUT };
    bool whole = call->dim[ATTENTION_MERGE_DIM_D] % UNIT == 0;
    for (int i = 0; i < 3; i++) {
        const trine_tensor *t = &call->tensor[tensors[i]];
        whole &= (uintptr_t)t->data % 16 == 0;
        for (int d = 0; d < 3; d++)
            whole &= t->shape[d] == 1 || t->stride[d] * (int64_t)trine_dtype_size(t->dtype) % 16 == 0;
    }
    return whole;
}

static int64_t at_least_one(int64_t x) { return x > 0 ? x : 1; }

static trine_status launch(const trine_call *call) {
    const int64_t *dim = call->dim;
    const int unit = whole_units(call) ? UNIT : 1;
    const int64_t rows = dim[ATTENTION_MERGE_DIM_B] * dim[ATTENTION_MERGE_DIM_SQ] * dim[ATTENTION_MERGE_DIM_H],
                  row_units = dim[ATTENTION_MERGE_DIM_D] / unit;
    attention_merge_params p = { .out_a = tensor_of(call, ATTENTION_MERGE_OUT_A, false),
                                 .lse_a = tensor_of(call, ATTENTION_MERGE_LSE_A, true),
                                 .out_b = tensor_of(call, ATTENTION_MERGE_OUT_B, false),
                                 .lse_b = tensor_of(call, ATTENTION_MERGE_LSE_B, true),
                                 .out = tensor_of(call, ATTENTION_MERGE_OUT, false),
                                 .lse = tensor_of(call, ATTENTION_MERGE_LSE, true),
                                 .row_units = simt_divisor_of(at_least_one(row_units)),
                                 .heads = simt_divisor_of(at_least_one(dim[ATTENTION_MERGE_DIM_H])),
                                 .tokens = simt_divisor_of(at_least_one(dim[ATTENTION_MERGE_DIM_SQ])),
                                 .units = rows * row_units };
    const simt_function function = { .type = { call->type[ATTENTION_MERGE_TYPE_S], call->type[ATTENTION_MERGE_TYPE_T] },
                                     .variant = unit };
    const trine_status status =
        simt_launch(call, &function, simt_blocks(p.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK || !simt_present(call, ATTENTION_MERGE_LSE)) return status;
    p.units = rows, p.row_units = simt_divisor_of(1);
    const simt_function lse = { .step = "lse" };
    return simt_launch(call, &lse, simt_blocks(rows, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ATTENTION_MERGE_DIM_D, UNIT);
    trine_kernel_edge(edges, ATTENTION_MERGE_DIM_D, SIMT_THREADS * UNIT);
    trine_kernel_edge(edges, ATTENTION_MERGE_DIM_H, SIMT_THREADS);
}

SIMT_KERNELS(attention_merge) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
