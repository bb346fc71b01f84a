/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that convolutions for sm_90a share: what they refuse, tiles and slices, maps, launches. */
#ifndef TRINE_CUDA_CONV_SM90_HOST_H
#define TRINE_CUDA_CONV_SM90_HOST_H

#include <stdio.h>

#include "conv_mma_host.h"
#include "conv_sm90.h"
#include "backends/cuda/driver/maps.h"

enum { CONV_SM90_RESIDUES = 16, CONV_SM90_LEAST = 4 /* steps of a slice */ };

typedef struct conv_sm90_tile {
    int rows, columns;
} conv_sm90_tile;

#define CONV_SM90_TILE(r, c) { r, c },
static const conv_sm90_tile conv_sm90_tiles[] = { CONV_SM90_SHAPES(CONV_SM90_TILE) };
enum { CONV_SM90_TILES = sizeof conv_sm90_tiles / sizeof conv_sm90_tiles[0] };

/* Each tile, and one with slices, for TRINE_KERNEL: KERNEL(name, number from 1 on, slices). */
#define CONV_SM90_EACH(KERNEL) \
    KERNEL("_128x64", 1, 1), KERNEL("_128x128", 2, 1), KERNEL("_128x192", 3, 1), KERNEL("_128x256", 4, 1), \
        KERNEL("_192x128", 5, 1), KERNEL("_192x192", 6, 1), KERNEL("_128x64_sliced", 1, 3)

/* What a kernel leaves to the prediction: 0 and 0, or the number of its tile from 1 on, and its slices. */
typedef struct conv_sm90_choice {
    int tile, slices;
} conv_sm90_choice;

typedef struct conv_sm90_plan {
    conv_sm90_tile tile;
    int64_t slices;
    double seconds;
} conv_sm90_plan;

/* As conv_walk_of() of the device side, but for taps in the order in which places grow. */
static inline conv_sm90_axis conv_sm90_axis_of(const conv_axis *a, bool transposed, int64_t residue) {
    conv_sm90_axis k = { .positions = (int32_t)a->out,
                         .taps = (int32_t)a->taps,
                         .first = (int32_t)-a->pad,
                         .step = (int32_t)a->stride,
                         .on = (int32_t)a->dilation,
                         .every = 1,
                         .apart = 1 };
    if (!transposed) return k;
    int64_t common = a->stride, rest = a->dilation, tap = 0;
    while (rest != 0) {
        const int64_t next = common % rest;
        common = rest, rest = next;
    }
    const int64_t every = a->stride / common, back = a->dilation / common;
    while (tap < every && tap < a->taps && (residue + a->pad - tap * a->dilation) % a->stride != 0) tap++;
    const bool none = tap >= every || tap >= a->taps;
    k.positions = (int32_t)simt_blocks(a->out - residue, a->stride);
    k.taps = none ? 0 : (int32_t)simt_blocks(a->taps - tap, every);
    k.from = none ? 0 : (int32_t)((k.taps - 1) * back), k.on = (int32_t)-back;
    k.first = none ? 0 : (int32_t)((residue + a->pad - tap * a->dilation) / a->stride - k.from);
    k.step = 1, k.tap = none ? 0 : (int32_t)tap, k.every = (int32_t)every;
    k.to = (int32_t)residue, k.apart = (int32_t)a->stride;
    return k;
}

/* All of a residue, of so many: patches and weights as maps have them, and tiles but for their number. */
typedef struct conv_sm90_part {
    conv_sm90_axis height, width;
    int64_t rows;
    int chunks, steps;
} conv_sm90_part;

static inline conv_sm90_part conv_sm90_part_of(const conv_params *p, int64_t residue) {
    const int64_t right = p->axis[2].residues;
    conv_sm90_part part = { conv_sm90_axis_of(&p->axis[1], p->transposed, residue / right),
                            conv_sm90_axis_of(&p->axis[2], p->transposed, residue % right),
                            .chunks = (int)simt_blocks(p->channels, CONV_SM90_STEP) };
    part.rows = p->n * part.height.positions * part.width.positions;
    part.steps = part.height.taps * part.width.taps * part.chunks;
    return part;
}

static inline int64_t conv_sm90_pitch(int64_t count, int64_t stride) { return count > 1 ? 2 * stride : 16; }

static inline cuda_patches conv_sm90_patches(const trine_call *call, const conv_params *p, const conv_sm90_part *part,
                                             int rows) {
    const conv_sm90_axis *const h = &part->height, *const w = &part->width;
    const int64_t all = p->groups * p->channels, high = p->axis[1].in, wide = p->axis[2].in;
    return (cuda_patches){ .dtype = call->type[SIMT_FIRST_TYPE],
                           .data = p->from.data,
                           .shape = { all, wide, high, p->n },
                           .stride = { conv_sm90_pitch(wide, p->from.axis[2]), conv_sm90_pitch(high, p->from.axis[1]),
                                       conv_sm90_pitch(p->n, p->from.batch) },
                           .first = { w->first, h->first },
                           .positions = { w->positions, h->positions },
                           .step = { w->step, h->step },
                           .width = CONV_SM90_STEP,
                           .rows = rows };
}

/* By channel of a group of x, channel of y, and tap; the first consecutive. */
static inline cuda_map conv_sm90_weights(const trine_call *call, const conv_params *p, int columns) {
    const conv_view *const v = &p->weight;
    const int64_t inner = p->transposed ? p->lanes : p->channels,
                  outer = p->groups * (p->transposed ? p->channels : p->lanes), high = p->axis[1].taps,
                  wide = p->axis[2].taps;
    return (cuda_map){ .dtype = call->type[SIMT_FIRST_TYPE],
                       .data = v->data,
                       .shape = { inner, outer, high * wide },
                       .line = conv_sm90_pitch(outer, p->transposed ? v->channel : v->batch),
                       .batch = conv_sm90_pitch(high * wide, v->axis[wide > 1 ? 2 : 1]),
                       .width = 64,
                       .rows = (p->transposed ? 64 : columns) / ROWS_SM90_PAIR,
                       .fetch = CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
}

/* Predicted seconds of an H200, comparable with conv_mma_seconds(): pairs of tiles in turns. */
static inline double conv_sm90_seconds(const conv_params *p, const conv_sm90_tile *t, int64_t slices, int units) {
    const double step = (0.19e-6 + 0.0015e-6 * t->columns) * (t->rows == 128 ? 1 : 1.4),
                 end = 0.9e-6 + 0.0099e-6 * t->columns, begin = 1.5e-6, launch = 3.5e-6, bytes = 2e12;
    const int64_t residues = p->axis[1].residues * p->axis[2].residues,
                  held = units > ROWS_SM90_PAIR ? units / ROWS_SM90_PAIR : 1;
    double seconds = 0;
    for (int64_t r = 0; r < residues; r++) {
        const conv_sm90_part part = conv_sm90_part_of(p, r);
        const int64_t pairs = simt_blocks(part.rows, (int64_t)ROWS_SM90_PAIR * t->rows) * p->groups *
                              simt_blocks(p->lanes, t->columns) * slices;
        seconds += (double)simt_blocks(pairs, held) * ((double)simt_blocks(part.steps, slices) * step + end) + begin +
                   (r > 0 ? launch : 0);
    }
    return seconds + (slices > 1 ? launch + 8.0 * (double)slices * (double)conv_written(p) / bytes : 0);
}

static inline conv_sm90_plan conv_sm90_plan_of(const trine_call *call, const conv_sm90_choice *choice,
                                               const conv_params *p) {
    const int units = simt_units(call);
    const int64_t steps = conv_sm90_part_of(p, 0).steps;
    conv_sm90_plan best = { { 0 } };
    if (choice->tile > 0)
        return (conv_sm90_plan){ .tile = conv_sm90_tiles[choice->tile - 1],
                                 .slices = choice->slices < steps ? choice->slices
                                           : steps > 0            ? steps
                                                                  : 1 };
    for (int i = 0; i < CONV_SM90_TILES; i++)
        for (int64_t slices = 1; slices <= CONV_SLICES; slices *= 2) {
            if (slices > 1 && steps / slices < CONV_SM90_LEAST) break;
            const double seconds = conv_sm90_seconds(p, &conv_sm90_tiles[i], slices, units);
            if (best.tile.rows > 0 && seconds >= best.seconds) continue;
            best = (conv_sm90_plan){ conv_sm90_tiles[i], slices, seconds };
        }
    return best;
}

static inline void conv_sm90_set(const trine_call *call, const conv_sm90_choice *choice, conv_params *p) {
    p->slices = conv_sm90_plan_of(call, choice, p).slices;
}

static inline const char *conv_sm90_refuse_maps(const trine_call *call, const conv_params *p) {
    const int64_t residues = p->axis[1].residues * p->axis[2].residues;
    const cuda_map weights = conv_sm90_weights(call, p, CONV_SM90_NARROW);
    if (!cuda_copyable_stride(weights.line) || !cuda_copyable_stride(weights.batch))
        return "strides of the weights that copies do not take";
    if (p->axis[1].taps > 1 && p->axis[2].taps > 1 && p->weight.axis[1] != p->axis[2].taps * p->weight.axis[2])
        return "taps that do not follow each other";
    for (int64_t r = 0; r < residues; r++) {
        const conv_sm90_part part = conv_sm90_part_of(p, r);
        const cuda_patches patches = conv_sm90_patches(call, p, &part, ROWS_SM90_ROWS);
        const int64_t reach[2] = { (int64_t)(part.width.taps - 1) * labs(part.width.on),
                                   (int64_t)(part.height.taps - 1) * labs(part.height.on) };
        for (int d = 0; d < 3; d++)
            if (!cuda_copyable_stride(patches.stride[d])) return "strides of images that copies do not take";
        if (!cuda_patches_fit(&patches, reach)) return "edges, steps or taps farther than copies of patches reach";
    }
    return NULL;
}

/* Whatever the tile. */
static inline const char *conv_sm90_refuse(const trine_call *call, const conv_params *p) {
    const char *why = cuda_refuse_hopper(call);
    int64_t residues;
    const int64_t tiles = conv_positions(p, &residues) / ROWS_SM90_ROWS + 2;
    if (why != NULL) return why;
    if (trine_dtype_size(call->type[SIMT_FIRST_TYPE]) != 2) return "not of 16 bits";
    if (!conv_narrow(p->axis)) return "sizes beyond 2^28";
    if (p->from.channel != 1 || (p->transposed ? p->weight.batch : p->weight.channel) != 1)
        return "channels that are not neighbours";
    if (p->groups > 1 && p->channels % CONV_SM90_STEP != 0) return "groups of channels that are not whole steps";
    if (p->channels == 0 || p->axis[1].in == 0 || p->axis[2].in == 0 || conv_elements(p) == 0)
        return "there is nothing to copy";
    if (residues > CONV_SM90_RESIDUES) return "strides with more residues than are worth a launch each";
    if (p->n > INT32_MAX || tiles * ROWS_SM90_ROWS > INT32_MAX ||
        tiles * p->groups * simt_blocks(p->lanes, CONV_SM90_NARROW) * CONV_SLICES > INT32_MAX ||
        p->groups * (p->lanes + p->channels) > INT32_MAX / 2 || conv_elements(p) > INT32_MAX / 2)
        return "more than is counted in 32 bits";
    return conv_sm90_refuse_maps(call, p);
}

static inline trine_status conv_sm90_encode(const trine_call *call, const conv_sm90_part *part,
                                            const conv_sm90_tile *tile, conv_sm90_params *params) {
    const cuda_device *d = call->device;
    const cuda_patches patches = conv_sm90_patches(call, &params->of, part, tile->rows);
    const cuda_map weights = conv_sm90_weights(call, &params->of, tile->columns);
    if ((uintptr_t)patches.data % 16 != 0 || (uintptr_t)weights.data % 16 != 0) {
        params->hand = (matmul_operand){ .data = weights.data,
                                         .batch = weights.batch / 2,
                                         .lane = params->of.weight.batch,
                                         .along = params->of.weight.channel };
        return TRINE_OK;
    }
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = cuda_map_encode_patches(d->driver, &patches, &params->x);
    if (status == TRINE_OK) status = cuda_map_encode(d->driver, &weights, &params->w);
    cuda_leave(d, scope);
    return status;
}

static inline trine_status conv_sm90_launch_residue(const trine_call *call, const conv_sm90_plan *plan,
                                                    const conv_params *p, int64_t residue, cuda_launch launch) {
    const conv_sm90_part part = conv_sm90_part_of(p, residue);
    conv_sm90_params params = { .of = *p, .height = part.height, .width = part.width };
    const int64_t pairs = simt_blocks(part.rows, (int64_t)ROWS_SM90_PAIR * plan->tile.rows),
                  right = simt_blocks(p->lanes, plan->tile.columns), units = pairs * right * p->groups * p->slices;
    if (units == 0) return TRINE_OK;
    params.rows = (int32_t)part.rows, params.pairs = (int32_t)pairs, params.right = (int32_t)right;
    params.units = (int32_t)units, params.chunks = part.chunks, params.steps = part.steps;
    params.each = (int32_t)simt_blocks(part.steps, p->slices);
    params.whole = p->slices > 1 ? p->lanes % 4 == 0 : p->to_pieces;
    int held = 0;
    launch.params = &params, launch.blocks = ROWS_SM90_PAIR;
    trine_status status = cuda_clusters_held(call, &launch, &held);
    if (status != TRINE_OK) return status;
    if (held == 0) return call->host->error(TRINE_ERR_UNSUPPORTED, "a convolution: the device holds no pair of blocks");
    status = conv_sm90_encode(call, &part, &plan->tile, &params);
    if (status != TRINE_OK) return status;
    launch.blocks = ROWS_SM90_PAIR * (units < held ? units : held);
    return cuda_launch_function(call, &launch);
}

/* `name`: of the functions; `end`: the step of that which adds slices. */
static inline trine_status conv_sm90_launch(const trine_call *call, const conv_sm90_choice *choice, conv_params *p,
                                            const char *name, const char *end) {
    const conv_sm90_plan plan = conv_sm90_plan_of(call, choice, p);
    const int64_t residues = p->axis[1].residues * p->axis[2].residues;
    cuda_launch launch = { .part = CUDA_HOPPER,
                           .threads = CONV_SM90_THREADS(plan.tile.rows),
                           .cluster = ROWS_SM90_PAIR,
                           .shared = MATMUL_SM90_MEMORY };
    snprintf(launch.name, sizeof launch.name, "%s_%dx%d_%s", name, plan.tile.rows, plan.tile.columns,
             trine_dtype_name(call->type[SIMT_FIRST_TYPE]));
    p->slices = plan.slices, p->sums = call->workspace;
    trine_status status = TRINE_OK;
    for (int64_t r = 0; r < residues && status == TRINE_OK; r++)
        status = conv_sm90_launch_residue(call, &plan, p, r, launch);
    return status == TRINE_OK && p->slices > 1 ? conv_add_slices(call, p, end) : status;
}

/* Of a kernel that chooses its tile: does another take less time? Those of mma.sync take `more` times what
 * conv_mma_seconds() has to compare them by (H200, twelve shapes: 1.4 to 2.6). */
static inline const char *conv_sm90_slower(const trine_call *call, const conv_params *p) {
    const double more = 1.6;
    const conv_mma_plan other = conv_mma_plan_for(call, &(const conv_mma_choice){ 0 }, p);
    return other.tile != NULL &&
                   more * other.seconds < conv_sm90_plan_of(call, &(const conv_sm90_choice){ 0 }, p).seconds
               ? "tiles of mma.sync are predicted to take less time"
               : NULL;
}

#endif
