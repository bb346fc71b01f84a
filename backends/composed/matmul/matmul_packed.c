/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_packed, made of other ops: some columns of b at a time are unpacked into rows, and multiplied. */
#include <stdlib.h>
#include <string.h>

#include "backends/composed/matmul/panels.h"
#include "spec/matmul/packed.h"
#include "spec/places/matmul_packed.h"

static int64_t whole(int64_t size, int64_t of) { return (size + of - 1) / of * of; }

/* Matrices of whole blocks, rows of all of which are one of the panel. */
static panels panels_of(const trine_call *call) {
    return (panels){ .call = call,
                     .n = whole(call->dim[MATMUL_PACKED_DIM_N], PACKED_COLUMNS),
                     .k = call->dim[MATMUL_PACKED_DIM_GB] * whole(call->dim[MATMUL_PACKED_DIM_K], PACKED_DEPTH),
                     .type = call->type[MATMUL_PACKED_TYPE_U],
                     .symbol = MATMUL_PACKED_DIM_N,
                     .lacking = "pack_strided or matmul has no kernel for it" };
}

/* Columns of a matrix, whole groups from `first` on, as rows of the panel: a line of each block at a time. */
static trine_status unpack(panels *p, bool run, const trine_tensor *weights, int64_t batch, int64_t first) {
    const trine_tensor *packed = &p->call->tensor[MATMUL_PACKED_PACKED];
    const int64_t deep = packed_deep(packed->dtype), groups = weights->shape[2] / PACKED_COLUMNS,
                  blocks = packed->shape[2], size = (int64_t)trine_dtype_size(packed->dtype),
                  down = (groups - 1) * packed->stride[1], along = (blocks - 1) * packed->stride[2],
                  before = (down < 0 ? -down : 0) + (along < 0 ? -along : 0), row = weights->stride[1];
    const trine_dtype type = size == 1 ? TRINE_I8 : packed->dtype; /* any of that size: bits are copied */
    const bool runs = deep == 1;
    trine_tensor from = trine_tensor_1d(NULL, type, llabs(down) + llabs(along) + PACKED_BLOCK),
                 to = { .dtype = type, .rank = 5 };
    if (run)
        from.data = (char *)packed->data +
                    (batch * packed->stride[0] + first / PACKED_COLUMNS * packed->stride[1] - before) * size;
    const int64_t shape[] = { blocks, deep, groups, runs ? 1 : PACKED_COLUMNS, runs ? PACKED_COLUMNS : 1 },
                  stride[] = { PACKED_DEPTH * row, row, PACKED_COLUMNS, 1, 1 };
    memcpy(to.shape, shape, sizeof shape);
    memcpy(to.stride, stride, sizeof stride);
    trine_status status = TRINE_OK;
    for (int64_t line = 0; line < PACKED_DEPTH / deep && status == TRINE_OK; line++) {
        if (run) to.data = (char *)weights->data + (batch * weights->stride[0] + line * deep * row) * size;
        const trine_pack_strided_args gather = { .struct_size = sizeof gather,
                                                 .x = &from,
                                                 .packed = &to,
                                                 .start = before + line * PACKED_COLUMNS * deep,
                                                 .stride_i = deep,
                                                 .stride_j = packed->stride[1],
                                                 .stride_k = 1,
                                                 .extent = packed->stride[2] };
        status = step(p, run, TRINE_OP_PACK_STRIDED, &gather);
    }
    return status;
}

/* Columns [first, first + count) of a tensor's last dimension; NULL of none. */
static const trine_tensor *columns_of(const trine_call *call, int place, int64_t first, int64_t count,
                                      trine_tensor *part) {
    const trine_tensor *t = trine_call_given(call, place);
    if (t == NULL) return NULL;
    *part = part_of(t, t->rank - 1, first, count);
    return part;
}

static trine_status panel(panels *p, bool run, int64_t first, int64_t count) {
    const trine_call *call = p->call;
    const trine_matmul_packed_args *args = call->args;
    const int64_t n = call->dim[MATMUL_PACKED_DIM_N], k = call->dim[MATMUL_PACKED_DIM_K],
                  batches = call->dim[MATMUL_PACKED_DIM_GB], columns = n - first < count ? n - first : count;
    trine_tensor part[4];
    const trine_tensor weights = trine_tensor_3d(run ? call->workspace : NULL, call->type[MATMUL_PACKED_TYPE_U],
                                                 batches, whole(k, PACKED_DEPTH), count);
    trine_tensor b = weights;
    b.shape[1] = k, b.shape[2] = columns;
    trine_status status = TRINE_OK;
    for (int64_t batch = 0; batch < batches && k > 0 && status == TRINE_OK; batch++)
        status = unpack(p, run, &weights, batch, first);
    const trine_matmul_args multiply = { .struct_size = sizeof multiply,
                                         .a = &call->tensor[MATMUL_PACKED_A],
                                         .b = &b,
                                         .c = columns_of(call, MATMUL_PACKED_C, first, columns, &part[0]),
                                         .bias = columns_of(call, MATMUL_PACKED_BIAS, first, columns, &part[1]),
                                         .d = columns_of(call, MATMUL_PACKED_D, first, columns, &part[2]),
                                         .alpha = args->alpha == 0 ? -0.0f : args->alpha,
                                         .beta = args->beta == 0 ? -0.0f : args->beta,
                                         .activation = args->activation,
                                         .a_scale = trine_call_given(call, MATMUL_PACKED_A_SCALE),
                                         .b_scale = columns_of(call, MATMUL_PACKED_B_SCALE, first, columns, &part[3]),
                                         .precision = args->precision };
    return status == TRINE_OK ? step(p, run, TRINE_OP_MATMUL, &multiply) : status;
}

extern const trine_kernel trine_matmul_packed_composed[];
const trine_kernel trine_matmul_packed_composed[] = { PANELS_KERNEL, { 0 } };
