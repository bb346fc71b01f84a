/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: its operands and its target as device code takes them, what packs operands, and how k is
 * shared and its parts are added up. */
#include "matmul_host.h"

#include <stdio.h>

#include <trine/ops.h>

/* Can 4 elements that begin at a multiple of that be read as one, along the dimension that is not `outer`? */
static bool wide(const trine_tensor *t, int outer) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), align = size < 4 ? 4 * size : 16;
    return t->stride[3 - outer] == 1 && (uintptr_t)t->data % (uintptr_t)align == 0 &&
           (t->shape[0] == 1 || t->stride[0] * size % align == 0) &&
           (t->shape[outer] == 1 || t->stride[outer] * size % align == 0);
}

matmul_operand matmul_operand_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    const int lane = matmul_lane_of(tensor), along = 3 - lane;
    return (matmul_operand){ .data = t->data,
                             .batch = t->shape[0] > 1 ? t->stride[0] : 0,
                             .lane = t->stride[lane],
                             .along = t->stride[along],
                             .across = t->stride[along] != 1,
                             .wide = wide(t, t->stride[along] == 1 ? lane : along) };
}

static matmul_type type_of(trine_dtype dtype) {
    return dtype == TRINE_F16 ? MATMUL_F16 : dtype == TRINE_BF16 ? MATMUL_BF16 : MATMUL_F32;
}

matmul_target matmul_target_of(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    const trine_tensor *d = &call->tensor[MATMUL_D], *c = &call->tensor[MATMUL_C], *bias = &call->tensor[MATMUL_BIAS];
    matmul_target t = { .d = d->data,
                        .d_batch = d->stride[0],
                        .d_row = d->stride[1],
                        .alpha = args->alpha + 0.0f, /* + 0: -0 stands for 0 */
                        .beta = args->beta + 0.0f,
                        .activation = args->activation,
                        .type = type_of(d->dtype),
                        .wide = wide(d, 1),
                        .rows = simt_scales_of(call, MATMUL_A_SCALE),
                        .columns = simt_scales_of(call, MATMUL_B_SCALE) };
    if (simt_present(call, MATMUL_C)) {
        t.c = c->data, t.c_batch = c->stride[0], t.c_row = c->stride[1], t.c_column = c->stride[2];
        t.wide = t.wide && wide(c, 1);
    }
    if (simt_present(call, MATMUL_BIAS)) t.bias = bias->data, t.bias_type = type_of(bias->dtype);
    t.plain = !t.c && !t.bias && !t.activation;
    return t;
}

/* ------------------------------------------------------------------------------------------------------------ sides */

/* Can copies read the operand where it lies, if `across` says which direction is consecutive? Where it begins does not
 * count: the order of sums and the workspace follow from sizes and strides alone. */
static bool copyable(const trine_tensor *t, int lane, bool across) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    const int outer = across ? 3 - lane : lane;
    return t->stride[3 - outer] == 1 && (t->shape[outer] == 1 || cuda_copyable_stride(t->stride[outer] * size)) &&
           (t->shape[0] == 1 || cuda_copyable_stride(t->stride[0] * size));
}

matmul_side matmul_side_of(const trine_call *call, int tensor, bool across) {
    const trine_tensor *t = &call->tensor[tensor];
    const int lane = matmul_lane_of(tensor);
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), k = t->shape[3 - lane];
    matmul_side s = { .tensor = tensor, .lanes = t->shape[lane] };
    if (copyable(t, lane, false)) return s;
    s.across = across && size == 2 && copyable(t, lane, true);
    s.packed = !s.across;
    if (s.packed)
        s.pitch = (k * size + 15) / 16 * 16 / size,
        s.bytes = (t->shape[0] * s.lanes * s.pitch * size + 255) / 256 * 256;
    return s;
}

trine_status matmul_side_launch(const trine_call *call, const matmul_side *side, void *to) {
    const trine_tensor *t = &call->tensor[side->tensor];
    matmul_pack_params p = { .from = matmul_operand_of(call, side->tensor),
                             .to = to,
                             .lanes = side->lanes,
                             .depth = call->dim[MATMUL_DIM_K],
                             .batches = t->shape[0],
                             .pitch = side->pitch };
    if (!side->packed) return TRINE_OK;
    p.blocks_along = simt_blocks(p.depth, MATMUL_PACK_SIDE), p.blocks_lane = simt_blocks(p.lanes, MATMUL_PACK_SIDE);
    cuda_launch launch = { .blocks = p.batches * p.blocks_along * p.blocks_lane,
                           .threads = MATMUL_THREADS,
                           .params = &p };
    snprintf(launch.name, sizeof launch.name, "matmul_copy_%d", 8 * (int)trine_dtype_size(t->dtype));
    return cuda_launch_function(call, &launch);
}

void matmul_use_side(matmul_operand *operand, const matmul_side *side, const void *packed) {
    operand->across = side->across;
    operand->wide = (uintptr_t)operand->data % 16 == 0;
    if (!side->packed) return;
    *operand = (matmul_operand){ .data = packed,
                                 .batch = operand->batch ? side->lanes * side->pitch : 0,
                                 .lane = side->pitch,
                                 .along = 1,
                                 .wide = true };
}

/* ------------------------------------------------------------------------------------------------------- parts of k */

/* Of what is summed. */
static trine_dtype sum_type(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    return type == TRINE_F64 ? TRINE_F64 : type == TRINE_I8 ? TRINE_I32 : TRINE_F32;
}

matmul_split matmul_split_into(const trine_call *call, int64_t parts) {
    const int64_t k = call->dim[MATMUL_DIM_K], rows = call->dim[MATMUL_DIM_G] * call->dim[MATMUL_DIM_M];
    matmul_split s = { .parts = 1, .depth = k, .units = simt_blocks(call->dim[MATMUL_DIM_N], 4) };
    const bool counted = rows * s.units < INT32_MAX / 8; /* by the addition, in 32 bits */
    if (parts > 1 && counted)
        s.depth = simt_blocks(k, parts * MATMUL_LEAST_DEPTH) * MATMUL_LEAST_DEPTH, s.parts = simt_blocks(k, s.depth);
    if (s.parts > 1) s.bytes = s.parts * rows * s.units * 4 * (int64_t)trine_dtype_size(sum_type(call));
    return s;
}

matmul_target matmul_target_of_parts(const trine_call *call, const matmul_split *s, void *sums) {
    if (s->parts == 1) return matmul_target_of(call);
    return (matmul_target){ .d = sums,
                            .d_batch = call->dim[MATMUL_DIM_M] * s->units * 4,
                            .d_row = s->units * 4,
                            .alpha = 1,
                            .plain = true,
                            .wide = true };
}

trine_status matmul_add_launch(const trine_call *call, const matmul_split *s, const void *sums) {
    if (s->parts == 1) return TRINE_OK;
    const matmul_add_params p = { .from = sums,
                                  .to = matmul_target_of(call),
                                  .m = (int32_t)call->dim[MATMUL_DIM_M],
                                  .n = (int32_t)call->dim[MATMUL_DIM_N],
                                  .units = (int32_t)s->units,
                                  .rows = (int32_t)(call->dim[MATMUL_DIM_G] * call->dim[MATMUL_DIM_M]),
                                  .parts = (int32_t)s->parts,
                                  .shared = s->parts >= 16 };
    cuda_launch launch = { .blocks = simt_blocks((int64_t)p.rows * p.units, MATMUL_THREADS / (p.shared ? 4 : 1)),
                           .threads = MATMUL_THREADS,
                           .params = &p };
    snprintf(launch.name, sizeof launch.name, "matmul_add_%s", trine_dtype_name(sum_type(call)));
    return cuda_launch_function(call, &launch);
}
