/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_quantized on devices: the host side. */
#include "grouped_matmul_quantized.h"
#include "grouped_host.h"
#include "backends/simt/quantize/codes_host.h"
#include "spec/places/grouped_matmul_quantized.h"

static const grouped_places places = GROUPED_PLACES(GROUPED_MATMUL_QUANTIZED);

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_quantized_args *args = call->args;
    if (call->dim[GROUPED_MATMUL_QUANTIZED_DIM_K] > INT32_MAX) return "rows of more than 2^31 - 1 weights";
    return grouped_refuse(call, &places, args->divide);
}

static size_t workspace(const trine_call *call) { return grouped_workspace(call, &places, GROUPED_ROWS); }

/* What an expert's rows have of a tensor; and the stride to the next expert. */
static simt_groups groups_of(const trine_call *call, int tensor, int64_t *expert_out) {
    const trine_tensor *t = trine_call_given(call, tensor);
    *expert_out = t ? t->stride[0] : 0;
    return t ? (simt_groups){ t->data, t->stride[1], t->stride[2] } : (simt_groups){ 0 };
}

/* Are units of codes aligned to their bytes? */
static bool aligned(const trine_tensor *codes, int bits) {
    bool whole = (uintptr_t)codes->data % (uintptr_t)bits == 0;
    for (int d = 0; d < 3; d++) whole = whole && codes->stride[d] % bits == 0;
    return whole;
}

static trine_status launch(const trine_call *call) {
    const trine_grouped_matmul_quantized_args *args = call->args;
    const trine_tensor *codes = &call->tensor[GROUPED_MATMUL_QUANTIZED_CODES];
    const int64_t k = call->dim[GROUPED_MATMUL_QUANTIZED_DIM_K],
                  groups = call->dim[GROUPED_MATMUL_QUANTIZED_DIM_GROUPS],
                  bytes = call->dim[GROUPED_MATMUL_QUANTIZED_DIM_BYTES], group = k > 0 ? k / groups : 1;
    const int bits = k > 0 ? (int)(8 * bytes * groups / k) : 8,
              type = codes_type_of(call->type[GROUPED_MATMUL_QUANTIZED_TYPE_S]);
    grouped_quantized_params p = { .rows =
                                       grouped_params_of(call, &places, args->divide, args->activation, GROUPED_ROWS),
                                   .group = simt_divisor_of(group),
                                   .units = group % CODES_UNIT == 0 };
    p.codes = (simt_codes){ .codes = groups_of(call, GROUPED_MATMUL_QUANTIZED_CODES, &p.codes_expert),
                            .scales = groups_of(call, GROUPED_MATMUL_QUANTIZED_SCALES, &p.scales_expert),
                            .zeros = groups_of(call, GROUPED_MATMUL_QUANTIZED_ZEROS, &p.zeros_expert),
                            .mins = groups_of(call, GROUPED_MATMUL_QUANTIZED_MINS, &p.mins_expert),
                            .n = group,
                            .bits = bits,
                            .type = type,
                            .others = type,
                            .offset = (float)args->code_offset,
                            .sign = codes->dtype == TRINE_I8,
                            .e2m1 = args->format == TRINE_CODES_E2M1,
                            .words = (bits == 4 || bits == 8) && aligned(codes, bits) };
    return grouped_launch(call, &p.rows, call->type[GROUPED_MATMUL_QUANTIZED_TYPE_T],
                          call->type[GROUPED_MATMUL_QUANTIZED_TYPE_O], &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    grouped_edges(edges, &places);
}

SIMT_KERNELS(grouped_matmul_quantized) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
