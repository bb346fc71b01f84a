/* SPDX-License-Identifier: Apache-2.0 */
/* attention on sm_90a: the host side. */
#include "attention_sm90_host.h"

#include <math.h>
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
    int d, queries, keys, held, bytes; /* blocks of which an SM is full; bytes of shared memory */
    double step, rest;                 /* microseconds of a step of keys, and of what else a tile takes */
} tile;
#define TILE(D, QUERIES, KEYS, STAGES, HELD, STEP, REST) \
    { D, QUERIES, KEYS, HELD, ATTENTION_SM90_BYTES(D, QUERIES, KEYS, STAGES), STEP, REST },
static const tile tiles[] = { ATTENTION_SM90_TILES(TILE) }, bent[] = { ATTENTION_SM90_BENT_TILES(TILE) };
enum { TILES = sizeof tiles / sizeof tiles[0], BENT_TILES = sizeof bent / sizeof bent[0] };

/* Steps of keys that a tile makes, the mean of some tiles. Packed sequences count as if all were of a length. */
static double steps_of(const attention_problem *at, const tile *t) {
    enum { MOST = 16 };
    const int64_t all = simt_blocks(at->sq, t->queries), same = (int64_t)at->sk - at->sq;
    if (at->nseq > 0) {
        const double keys = (double)at->sk / at->nseq * (1 + (t->queries - 1) * (double)at->nseq / at->sq);
        return ceil((keys < at->sk ? keys : at->sk) / t->keys);
    }
    const int64_t count = !at->causal && at->before == 0 && at->after == 0 ? 1 : all < MOST ? all : MOST;
    int64_t steps = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = (2 * i + 1) * all / (2 * count) * t->queries;
        int64_t end = first + t->queries < at->sq ? first + t->queries : at->sq, low = 0;
        if (at->before > 0) low = same + first - at->before + 1;
        end = at->causal ? same + end : at->after > 0 ? same + end + at->after - 1 : at->sk;
        low = low > 0 ? low : 0, end = end < at->sk ? end : at->sk;
        steps += end > low ? simt_blocks(end - low, t->keys) : 1;
    }
    return (double)steps / (double)count;
}

/* Rounds of tiles; SMs that are not full take less time, though not as much less as they have fewer blocks. Measured on
 * an H200 over 193 calls of up to 1500 keys drawn at random, from which this is off by 6 to 11 % (root mean square);
 * tiles of 192 by 128, and heads of 256 columns, on an H100 over a few. */
static double seconds_of(const trine_call *call, const attention_problem *at, const tile *t) {
    const int64_t all = (int64_t)at->b * at->h * simt_blocks(at->sq, t->queries), units = simt_units(call),
                  blocks = simt_blocks(all, units);
    const double full = blocks < t->held ? 0.75 + 0.25 * (double)(blocks - 1) / (t->held - 1) : 1;
    return 1e-6 * (3.5 + (double)simt_blocks(all, units * t->held) * (steps_of(at, t) * t->step + t->rest) * full);
}

/* The kernel's tile, or of all that which is predicted to take the least time; NULL if it has none for such heads. */
static const tile *tile_of(const trine_call *call, const attention_params *p, double *seconds_out) {
    const attention_sm90_shape *const self = call->self;
    const tile *t = p->bends ? bent : tiles, *const end = t + (p->bends ? BENT_TILES : TILES), *best = NULL;
    while (t->d < p->at.d) t++;
    for (const int d = t->d; t < end && t->d == d; t++) {
        if (self->queries != 0 && (self->queries != t->queries || self->keys != t->keys)) continue;
        const double seconds = seconds_of(call, &p->at, t);
        if (best == NULL || seconds < *seconds_out) best = t, *seconds_out = seconds;
    }
    return best;
}

const char *attention_sm90_refuse(const trine_call *call) {
    enum { LEAST = 64 }; /* queries of a tile */
    const trine_attention_args *args = call->args;
    const char *const reason = attention_refuse_tiles(call, args->scale, args->softcap);
    if (reason != NULL) return reason;
    if (call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_H] * simt_blocks(call->dim[ATTENTION_DIM_SQ], LEAST) >
        INT32_MAX / 2)
        return "more tiles than are counted in 32 bits";
    const char *const why =
        attention_sm90_refuse_tensors(call, 1u << ATTENTION_Q | 1u << ATTENTION_K | 1u << ATTENTION_V);
    if (why != NULL) return why;
    const attention_params p = attention_params_of(call);
    const char *const options = attention_refuse_options(&p.at);
    if (options != NULL || ((const attention_sm90_shape *)call->self)->queries == 0) return options;
    double seconds;
    return tile_of(call, &p, &seconds) == NULL ? "heads of so many columns have no such tile" : NULL;
}

double attention_sm90_seconds(const trine_call *call) {
    const attention_params p = attention_params_of(call);
    double seconds;
    tile_of(call, &p, &seconds);
    return seconds;
}

/* The order of tiles. Heads whose keys and values are in L2 together, about 24 MB of them, make a bunch; those of a
 * group share theirs.
 *
 * Under a causal mask tiles differ, and turns of alternating direction balance them only if a bunch has whole rounds of
 * slots, some of them empty. That pays where heads are many: otherwise all tiles go from the largest to the smallest,
 * and blocks that run at once share keys anyway. */
static void put_in_order(attention_sm90_params *p, int queries, int blocks, int units) {
    enum { ROUNDS = 4 };
    const attention_problem *at = &p->call.at;
    const double bytes = 4.0 * at->sk * at->d;
    const int32_t tiles = p->call.tiles, heads = bytes < 24e6 ? (int32_t)(24e6 / bytes) : 1,
                  whole = p->planes / at->group;
    p->bunch = !at->causal && heads < whole ? heads * at->group : p->planes;
    p->span = p->bunch * tiles, p->slots = p->planes * tiles;
    if (!at->causal || tiles < 4 || queries > 128 || 2 * (int64_t)whole <= units) return;
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
    double seconds;
    const tile *const t = tile_of(call, &p.call, &seconds);
    const attention_problem *at = &p.call.at;
    p.call.tiles = (int32_t)simt_blocks(at->sq, t->queries);
    p.planes = at->b * at->h;
    const int64_t all = (int64_t)p.planes * p.call.tiles, held = (int64_t)simt_units(call) * t->held,
                  blocks = all < held ? all : held;
    put_in_order(&p, t->queries, (int)blocks, (int)(blocks < simt_units(call) ? blocks : simt_units(call)));
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    const struct {
        int tensor, rows;
        tensor_map *map;
    } maps[] = { { ATTENTION_Q, 64, &p.q_map },
                 { ATTENTION_K, t->keys, &p.k_map },
                 { ATTENTION_V, t->keys, &p.v_map } };
    for (int i = 0; i < 3 && status == TRINE_OK; i++)
        status = attention_sm90_encode(call, maps[i].tensor, maps[i].rows, maps[i].map, &p.moved[i]);
    cuda_leave(d, scope);
    if (status != TRINE_OK) return status;
    cuda_launch launch = {
        .part = CUDA_HOPPER, .blocks = blocks, .threads = (t->queries / 64 + 1) * 128, .shared = t->bytes, .params = &p
    };
    snprintf(launch.name, sizeof launch.name, "attention_sm90_%s%s_%d_%dx%d", p.call.bends ? "bent_" : "",
             trine_dtype_name(call->tensor[ATTENTION_Q].dtype), t->d, t->queries, t->keys);
    return cuda_launch_function(call, &launch);
}

/* Of the kernel's tile, or of all. */
void attention_sm90_edges(const trine_call *call, trine_kernel_edges *edges) {
    const attention_sm90_shape *const self = call->self;
    for (int i = 0; i < TILES + BENT_TILES; i++) {
        const tile *const t = i < TILES ? &tiles[i] : &bent[i - TILES];
        if (self->queries != 0 && (self->queries != t->queries || self->keys != t->keys)) continue;
        trine_kernel_edge(edges, ATTENTION_DIM_D, t->d);
        trine_kernel_edge(edges, ATTENTION_DIM_SQ, t->queries);
        trine_kernel_edge(edges, ATTENTION_DIM_SK, t->keys);
        trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * t->keys);
    }
}
