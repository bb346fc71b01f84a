/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized, made of other ops: weights are written down in x's type, some rows at a time, and multiplied. */
#include "backends/composed/matmul/panels.h"
#include "spec/places/matmul_quantized.h"

static panels panels_of(const trine_call *call) {
    return (panels){ .call = call,
                     .n = call->dim[MATMUL_QUANTIZED_DIM_N],
                     .k = call->dim[MATMUL_QUANTIZED_DIM_K],
                     .type = call->type[MATMUL_QUANTIZED_TYPE_T],
                     .symbol = MATMUL_QUANTIZED_DIM_N,
                     .lacking = "dequantize or matmul has no kernel for it" };
}

static trine_status panel(panels *p, bool run, int64_t first, int64_t count) {
    const trine_matmul_quantized_args *args = p->call->args;
    const trine_tensor *tensor = p->call->tensor, *zeros = trine_call_given(p->call, MATMUL_QUANTIZED_ZEROS),
                       *mins = trine_call_given(p->call, MATMUL_QUANTIZED_MINS),
                       *bias = trine_call_given(p->call, MATMUL_QUANTIZED_BIAS);
    const trine_tensor weights = trine_tensor_2d(run ? p->call->workspace : NULL, tensor[MATMUL_QUANTIZED_X].dtype,
                                                 count, p->k),
                       across = trine_tensor_transpose(&weights),
                       codes = part_of(&tensor[MATMUL_QUANTIZED_CODES], 0, first, count),
                       scales = part_of(&tensor[MATMUL_QUANTIZED_SCALES], 0, first, count),
                       y = part_of(&tensor[MATMUL_QUANTIZED_Y], 1, first, count);
    trine_tensor zeros_part, mins_part, bias_part;
    if (zeros) zeros_part = part_of(zeros, 0, first, count);
    if (mins) mins_part = part_of(mins, 0, first, count);
    if (bias) bias_part = part_of(bias, 0, first, count);
    const trine_dequantize_args expand = { .struct_size = sizeof expand,
                                           .codes = &codes,
                                           .scales = &scales,
                                           .zeros = zeros ? &zeros_part : NULL,
                                           .mins = mins ? &mins_part : NULL,
                                           .y = &weights,
                                           .offset = args->offset,
                                           .format = args->format };
    const trine_matmul_args multiply = { .struct_size = sizeof multiply,
                                         .a = &tensor[MATMUL_QUANTIZED_X],
                                         .b = &across,
                                         .bias = bias ? &bias_part : NULL,
                                         .d = &y,
                                         .activation = args->activation };
    const trine_status status = step(p, run, TRINE_OP_DEQUANTIZE, &expand);
    return status == TRINE_OK ? step(p, run, TRINE_OP_MATMUL, &multiply) : status;
}

extern const trine_kernel trine_matmul_quantized_composed[];
const trine_kernel trine_matmul_quantized_composed[] = { PANELS_KERNEL, { 0 } };
