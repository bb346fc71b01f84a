/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode on the CPU. A task takes its places level by level, so that a small level's table stays in the cache. */
#include "grid.h"
#include "spec/places/hash_encode.h"

INLINE void put(const grids *g, int64_t i, int count, int64_t level, int64_t k, vf y, trine_dtype T) {
    const vh h = T == TRINE_BF16 ? vf_to_bf16(y) : vf_to_f16(y);
    for (int lane = 0; lane < count; lane++) {
        const int64_t at = grid_place(g->y, i + lane, level, k);
        if (T == TRINE_F32)
            ((float *)g->y->data)[at] = y[lane];
        else
            ((uint16_t *)g->y->data)[at] = h[lane];
    }
}

INLINE void encode(const grids *g, const grid_level *v, int64_t level, int64_t i, int count, int d, trine_dtype T) {
    const int f = (int)g->f;
    vf x[GRID_DIMS], y[GRID_FEATURES] = { 0 };
    grid_coordinates(g, i, count, d, x);
    const grid_places p = grid_places_of(g, v, x, d);
    for (int q = 0; v->m > 0 && q < 1 << d; q++) {
        const vf w = grid_weight(&p, q, d, -1);
        const vu row = grid_rows(v, &p, q, d);
        for (int k = 0; k < f; k++) y[k] = vfma(w, grid_gather(g->table, v, row, k, T), y[k]);
    }
    for (int k = 0; k < f; k++) put(g, i, count, level, k, vsel(p.astray, vset(NAN), y[k]), T);
}

INLINE void block(const grids *g, int64_t number, int d, trine_dtype T) {
    const int64_t first = number * GRID_BLOCK, end = first + GRID_BLOCK < g->n ? first + GRID_BLOCK : g->n;
    for (int64_t level = 0; level < g->l; level++) {
        const grid_level v = grid_level_of(g, level);
        for (int64_t i = first; i < end; i += VL) encode(g, &v, level, i, end - i < VL ? (int)(end - i) : VL, d, T);
    }
}

static void blocks(const void *context, int64_t first, int64_t last, int thread) {
    const grids *g = context;
    (void)thread;
    for (int64_t number = first; number < last; number++) FOR_GRID(block, g, number);
}

static trine_status launch(const trine_call *call) {
    const trine_hash_encode_args *args = call->args;
    const trine_tensor *t = call->tensor;
    grids g = grids_of(call, &t[HASH_ENCODE_X], &t[HASH_ENCODE_TABLE], &t[HASH_ENCODE_OFFSETS], &t[HASH_ENCODE_Y],
                       args->per_level_scale, args->base_resolution);
    g.smooth = args->interpolation == TRINE_INTERPOLATION_SMOOTHSTEP;
    const trine_status status = grid_check(&g);
    const int64_t tasks = (g.n + GRID_BLOCK - 1) / GRID_BLOCK, bytes = g.n * g.l * g.f * (4 << g.d);
    if (status == TRINE_OK) cpu_tasks(call, cpu_team(call, tasks, bytes), tasks, blocks, &g);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, HASH_ENCODE_DIM_N, VL);
    trine_kernel_edge(edges, HASH_ENCODE_DIM_N, GRID_BLOCK);
}

CPU_KERNELS(hash_encode) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
