/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_sparse24, made of other ops: w is unpacked, some rows at a time, and multiplied. */
#include "backends/composed/matmul/panels.h"
#include "spec/places/matmul_sparse24.h"

static panels panels_of(const trine_call *call) {
    return (panels){ .call = call,
                     .n = call->dim[MATMUL_SPARSE24_DIM_N],
                     .k = call->dim[MATMUL_SPARSE24_DIM_K],
                     .type = call->type[MATMUL_SPARSE24_TYPE_T],
                     .symbol = MATMUL_SPARSE24_DIM_N,
                     .lacking = "unpack24 or matmul has no kernel for it" };
}

static trine_status panel(panels *p, bool run, int64_t first, int64_t count) {
    const trine_matmul_sparse24_args *args = p->call->args;
    const trine_tensor *tensor = p->call->tensor, *bias = trine_call_given(p->call, MATMUL_SPARSE24_BIAS);
    const trine_tensor weights = trine_tensor_2d(run ? p->call->workspace : NULL, tensor[MATMUL_SPARSE24_X].dtype,
                                                 count, p->k),
                       across = trine_tensor_transpose(&weights),
                       values = part_of(&tensor[MATMUL_SPARSE24_VALUES], 0, first, count),
                       indices = part_of(&tensor[MATMUL_SPARSE24_INDICES], 0, first, count),
                       y = part_of(&tensor[MATMUL_SPARSE24_Y], 1, first, count);
    trine_tensor bias_part;
    if (bias) bias_part = part_of(bias, 0, first, count);
    const trine_unpack24_args unpack = {
        .struct_size = sizeof unpack, .values = &values, .indices = &indices, .y = &weights
    };
    const trine_matmul_args multiply = { .struct_size = sizeof multiply,
                                         .a = &tensor[MATMUL_SPARSE24_X],
                                         .b = &across,
                                         .bias = bias ? &bias_part : NULL,
                                         .d = &y,
                                         .activation = args->activation };
    const trine_status status = step(p, run, TRINE_OP_UNPACK24, &unpack);
    return status == TRINE_OK ? step(p, run, TRINE_OP_MATMUL, &multiply) : status;
}

extern const trine_kernel trine_matmul_sparse24_composed[];
const trine_kernel trine_matmul_sparse24_composed[] = { PANELS_KERNEL, { 0 } };
