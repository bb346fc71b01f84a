/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_pack on the CPU: a task is 16 columns. */
#include <trine/matmul.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/matmul/packed.h"
#include "spec/places/matmul_pack.h"

/* Blocks [first, last) of columns of which `columns` exist; strides in bytes. `whole`: all elements exist. */
INLINE void pack_blocks(char *to, int64_t block, const char *from, int64_t along, int64_t lane, int64_t columns,
                        int64_t k, int64_t first, int64_t last, bool whole, int size) {
    const int deep = size < PACKED_DEPTH ? PACKED_DEPTH / size : 1;
    for (int64_t b = first; b < last; b++) {
        char *at = to + b * block;
        for (int64_t p = b * PACKED_DEPTH; p < (b + 1) * PACKED_DEPTH; p += deep)
            for (int t = 0; t < PACKED_COLUMNS; t++)
                for (int i = 0; i < deep; i++, at += size) {
                    if (whole || (t < columns && p + i < k))
                        memcpy(at, from + (p + i) * along + t * lane, (size_t)size);
                    else
                        memset(at, 0, (size_t)size);
                }
    }
}

/* Elements are side by side in n, in k, or neither. */
INLINE void pack_group(char *to, int64_t block, const char *from, int64_t along, int64_t lane, int64_t columns,
                       int64_t k, int size) {
    const int64_t blocks = (k + PACKED_DEPTH - 1) / PACKED_DEPTH,
                  whole = columns == PACKED_COLUMNS ? k / PACKED_DEPTH : 0;
    if (lane == size)
        pack_blocks(to, block, from, along, size, columns, k, 0, whole, true, size);
    else if (along == size)
        pack_blocks(to, block, from, size, lane, columns, k, 0, whole, true, size);
    else
        pack_blocks(to, block, from, along, lane, columns, k, 0, whole, true, size);
    pack_blocks(to, block, from, along, lane, columns, k, whole, blocks, false, size);
}

static void groups(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_tensor *b = &call->tensor[MATMUL_PACK_B], *packed = &call->tensor[MATMUL_PACK_PACKED];
    const int64_t n = call->dim[MATMUL_PACK_DIM_N], k = call->dim[MATMUL_PACK_DIM_K], each = packed->shape[1],
                  size = (int64_t)trine_dtype_size(b->dtype);
    (void)thread;
    for (int64_t at = first; at < last; at++) {
        const int64_t g = at / each, j = at % each * PACKED_COLUMNS,
                      columns = n - j < PACKED_COLUMNS ? n - j : PACKED_COLUMNS, block = packed->stride[2] * size,
                      along = b->stride[1] * size, lane = b->stride[2] * size;
        const char *from = (const char *)b->data + g * b->stride[0] * size + j * lane;
        char *to = (char *)packed->data + (g * packed->stride[0] + at % each * packed->stride[1]) * size;
        switch (size) {
        case 1: pack_group(to, block, from, along, lane, columns, k, 1); break;
        case 2: pack_group(to, block, from, along, lane, columns, k, 2); break;
        case 4: pack_group(to, block, from, along, lane, columns, k, 4); break;
        default: pack_group(to, block, from, along, lane, columns, k, 8); break;
        }
    }
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *packed = &call->tensor[MATMUL_PACK_PACKED];
    const int64_t tasks = packed->shape[0] * packed->shape[1],
                  bytes = tasks * packed->shape[2] * PACKED_BLOCK * (int64_t)trine_dtype_size(packed->dtype);
    cpu_shares(call, cpu_team(call, tasks, bytes), tasks, groups, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_PACK_DIM_K, PACKED_DEPTH);
    trine_kernel_edge(edges, MATMUL_PACK_DIM_N, PACKED_COLUMNS);
}

CPU_KERNELS(matmul_pack) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
