/* SPDX-License-Identifier: Apache-2.0 */
/* attention on sm_90a: the host side. */
#include "attention_sm90_host.h"

#include <assert.h>
#include <stdio.h>

#include <trine/ops.h>

#include "attention_sm90.h"

const char *attention_sm90_refuse_tensors(const trine_call *call, uint32_t set) {
    const char *const why = cuda_refuse_hopper(call);
    if (why != NULL) return why;
    for (int i = 0; i < call->plan->tensors; i++) {
        const trine_tensor *t = &call->tensor[i];
        if (!(set >> i & 1)) continue;
        if (trine_dtype_size(t->dtype) != 2)
            return "tensor cores have no products of this type that the error bound allows";
        for (int k = 0; k < 3; k++) {
            if (t->shape[k] == 0) return "there is nothing to copy";
            if (t->shape[k] > 1 && !cuda_copyable_stride(2 * t->stride[k]))
                return "strides are not multiples of 16 bytes";
        }
    }
    return attention_refuse(call);
}

trine_status attention_sm90_encode(const trine_call *call, int tensor, int rows, tensor_map *map_out, bool *moved_out) {
    const cuda_driver *driver = ((const cuda_device *)call->device)->driver;
    const trine_tensor *t = &call->tensor[tensor];
    const uintptr_t data = (uintptr_t)t->data;
    const int64_t line = (2 * t->shape[3] + 15) / 16 * 16;
    const int order[3] = { 1, 2, 0 }; /* of s, h and b in the tensor */
    cuuint64_t shape[4] = { (cuuint64_t)t->shape[3] }, strides[3];
    const cuuint32_t box[4] = { 64, (cuuint32_t)rows, 1, 1 }, steps[4] = { 1, 1, 1, 1 };
    int64_t widest = line;
    for (int i = 0; i < 3; i++)
        if (t->shape[i] > 1 && 2 * t->stride[i] * t->shape[i] > widest) widest = 2 * t->stride[i] * t->shape[i];
    for (int i = 0; i < 3; i++) {
        shape[i + 1] = (cuuint64_t)t->shape[order[i]];
        strides[i] = (cuuint64_t)(t->shape[order[i]] > 1 ? 2 * t->stride[order[i]] : widest);
    }
    *moved_out = data % 16 != 0;
    return CUDA_CALL(driver, TensorMapEncodeTiled, (CUtensorMap *)(void *)map_out,
                     t->dtype == TRINE_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
                     (void *)(data - data % 16), shape, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                     CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* ---------------------------------------------------------------------------------------------------------- forward */

typedef struct tile {
    int d, keys, groups, bytes;
} tile;
#define TILE(D, KEYS, GROUPS, STAGES) { D, KEYS, GROUPS, ATTENTION_SM90_BYTES(D, KEYS, GROUPS, STAGES) },
static const tile tiles[] = { ATTENTION_SM90_TILES(TILE) }, bent[] = { ATTENTION_SM90_BENT_TILES(TILE) },
                  small[] = { ATTENTION_SM90_SHORT_TILES(TILE) };
static_assert(sizeof tiles == sizeof bent, "as many tiles with a softcap");

enum { SHORT = 1536, CONSUMER = 64 }; /* queries of a short sequence, and of a tile's consumer */

/* Under a causal mask a tile of 192 queries has 128 keys too many for some of them. */
static bool is_short(const attention_params *p) {
    return p->at.d <= small->d && p->at.causal && p->at.sq <= SHORT && !p->bends;
}

static tile tile_of(const attention_params *p) {
    const tile *t = is_short(p) ? small : p->bends ? bent : tiles;
    while (t->d < p->at.d) t++;
    return *t;
}

const char *attention_sm90_refuse(const trine_call *call) {
    const trine_attention_args *args = call->args;
    const char *const reason = attention_refuse_tiles(call, args->scale, args->softcap);
    if (reason != NULL) return reason;
    if (call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_H] * simt_blocks(call->dim[ATTENTION_DIM_SQ], 128) >
        INT32_MAX / 2)
        return "more tiles than are counted in 32 bits";
    return attention_sm90_refuse_tensors(call, 1u << ATTENTION_Q | 1u << ATTENTION_K | 1u << ATTENTION_V);
}

/* The order of tiles. Heads whose keys and values are in L2 together, about 24 MB of them, make a bunch; those of a
 * group share theirs.
 *
 * Under a causal mask tiles differ, and turns of alternating direction balance them only if a bunch has whole rounds of
 * slots, some of them empty. That pays where heads are many: otherwise all tiles go from the largest to the smallest,
 * and blocks that run at once share keys anyway. */
static void put_in_order(attention_sm90_params *p, int groups, int blocks) {
    enum { ROUNDS = 4 };
    const attention_problem *at = &p->call.at;
    const double bytes = 4.0 * at->sk * at->d;
    const int32_t tiles = p->call.tiles, heads = bytes < 24e6 ? (int32_t)(24e6 / bytes) : 1,
                  whole = p->planes / at->group;
    p->bunch = !at->causal && heads < whole ? heads * at->group : p->planes;
    p->span = p->bunch * tiles, p->slots = p->planes * tiles;
    if (!at->causal || tiles < 4 || groups > 2 || 2 * (int64_t)whole <= blocks) return;
    int64_t least = INT64_MAX;
    for (int32_t bunch = at->group;
         bunch <= heads * at->group && bunch <= p->planes && (int64_t)bunch * tiles <= (int64_t)ROUNDS * blocks;
         bunch += at->group) {
        const int64_t rounds = simt_blocks((int64_t)bunch * tiles, blocks),
                      all = simt_blocks(p->planes, bunch) * rounds;
        if (all >= least || all * blocks > INT32_MAX / 2) continue;
        least = all, p->bunch = bunch, p->span = (int32_t)(rounds * blocks), p->slots = (int32_t)(all * blocks);
    }
}

trine_status attention_sm90_launch(const trine_call *call) {
    const cuda_device *d = call->device;
    attention_sm90_params p = { .call = attention_params_of(call) };
    const tile t = tile_of(&p.call);
    const attention_problem *at = &p.call.at;
    p.call.tiles = (int32_t)simt_blocks(at->sq, t.groups * CONSUMER);
    p.planes = at->b * at->h;
    const int64_t all = (int64_t)p.planes * p.call.tiles, blocks = all < d->units ? all : d->units;
    put_in_order(&p, t.groups, (int)blocks);
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    const struct {
        int tensor, rows;
        tensor_map *map;
    } maps[] = { { ATTENTION_Q, 64, &p.q_map }, { ATTENTION_K, t.keys, &p.k_map }, { ATTENTION_V, t.keys, &p.v_map } };
    for (int i = 0; i < 3 && status == TRINE_OK; i++)
        status = attention_sm90_encode(call, maps[i].tensor, maps[i].rows, maps[i].map, &p.moved[i]);
    cuda_leave(d, scope);
    if (status != TRINE_OK) return status;
    cuda_launch launch = {
        .part = CUDA_HOPPER, .blocks = blocks, .threads = (t.groups + 1) * 128, .shared = t.bytes, .params = &p
    };
    snprintf(launch.name, sizeof launch.name, "attention_sm90_%s%s_%d",
             p.call.bends        ? "bent_"
             : is_short(&p.call) ? "short_"
                                 : "",
             trine_dtype_name(call->tensor[ATTENTION_Q].dtype), t.d);
    return cuda_launch_function(call, &launch);
}

void attention_sm90_edges(const trine_call *call, trine_kernel_edges *edges) {
    const tile *const lists[] = { tiles, bent };
    (void)call;
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof tiles / sizeof tiles[0]; k++) {
            const tile *t = &lists[i][k];
            trine_kernel_edge(edges, ATTENTION_DIM_D, t->d);
            trine_kernel_edge(edges, ATTENTION_DIM_SQ, t->groups * CONSUMER);
            trine_kernel_edge(edges, ATTENTION_DIM_SK, t->keys);
            trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * t->keys);
        }
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, CONSUMER);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, SHORT);
}
