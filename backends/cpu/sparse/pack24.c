/* SPDX-License-Identifier: Apache-2.0 */
/* pack24 on the CPU. */
#include "pairs24.h"
#include "spec/places/pack24.h"

/* The packed half of the group from element j on: where its two are. `checked`: NaN if there are more. */
INLINE int pack_group(const char *x, char *values, int64_t j, bool checked, trine_dtype T) {
    static const uint32_t nan = 0x7fc00000u;
    static const uint16_t half[2] = { 0x7fc0u, 0x7e00u };
    const int size = size24(T), kept = kept24(x, j, T), places[2] = { first24(kept), second24(kept) };
    int filled = 0;
    for (int i = 0; i < 4; i++) filled += key24(x, j + i, T) != 0;
    for (int i = 0; i < 2; i++) {
        const void *from = x + (j + places[i]) * size;
        if (T != TRINE_I8 && checked && filled > 2)
            from = T == TRINE_F32 ? (const void *)&nan : (const void *)&half[T == TRINE_F16];
        memcpy(values + (j / 2 + i) * size, from, (size_t)size);
    }
    return places[0] | places[1] << 2;
}

/* Elements first .. last-1 of a row, whole bytes of indices. */
INLINE void part(const char *x, char *values, uint8_t *indices, bool checked, int64_t first, int64_t last,
                 trine_dtype T) {
    for (int64_t j = first; j < last; j += 8)
        indices[j / 8] =
            (uint8_t)(pack_group(x, values, j, checked, T) | pack_group(x, values, j + 4, checked, T) << 4);
}

static void parts(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const bool checked = !((const trine_pack24_args *)call->args)->prune;
    const int64_t n = call->dim[PACK24_DIM_N], each = parts24(n);
    (void)thread;
    for (int64_t p = first; p < last; p++) {
        const int64_t i = p / each, at = p % each * PART24, end = at + PART24 < n ? at + PART24 : n;
        FOR_TYPE24(call->type[PACK24_TYPE_T], part, row24(call, PACK24_X, i), row24(call, PACK24_VALUES, i),
                   row24(call, PACK24_INDICES, i), checked, at, end);
    }
}

static trine_status launch(const trine_call *call) {
    return run24(call, call->dim[PACK24_DIM_R], call->dim[PACK24_DIM_N], parts);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, PACK24_DIM_N, PART24);
    cpu_team_edge(edges, PACK24_DIM_R, call->dim[PACK24_DIM_N] * WORK24);
}

CPU_KERNELS(pack24) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
