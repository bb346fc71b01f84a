/* SPDX-License-Identifier: Apache-2.0 */
/* unpack24 on the CPU. */
#include "pairs24.h"
#include "spec/places/unpack24.h"

/* Elements first .. last-1 of a row, whole bytes of indices. */
INLINE void part(const char *values, const uint8_t *indices, char *y, int64_t first, int64_t last, trine_dtype T) {
    const size_t size = (size_t)size24(T);
    for (int64_t j = first; j < last; j += 4) {
        const int places = indices[j / 8] >> (j % 8);
        char *const group = y + (size_t)j * size;
        memset(group, 0, 4 * size);
        memcpy(group + (size_t)(places & 3) * size, values + (size_t)(j / 2) * size, size);
        memcpy(group + (size_t)(places >> 2 & 3) * size, values + (size_t)(j / 2 + 1) * size, size);
    }
}

static void parts(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t n = call->dim[UNPACK24_DIM_N], each = parts24(n);
    (void)thread;
    for (int64_t p = first; p < last; p++) {
        const int64_t i = p / each, at = p % each * PART24, end = at + PART24 < n ? at + PART24 : n;
        FOR_TYPE24(call->type[UNPACK24_TYPE_T], part, row24(call, UNPACK24_VALUES, i), row24(call, UNPACK24_INDICES, i),
                   row24(call, UNPACK24_Y, i), at, end);
    }
}

static trine_status launch(const trine_call *call) {
    return run24(call, call->dim[UNPACK24_DIM_R], call->dim[UNPACK24_DIM_N], parts);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, UNPACK24_DIM_N, PART24);
    cpu_team_edge(edges, UNPACK24_DIM_R, call->dim[UNPACK24_DIM_N] * WORK24);
}

CPU_KERNELS(unpack24) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
