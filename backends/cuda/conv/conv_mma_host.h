/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that convolutions by mma.sync share: tiles and slices. */
#ifndef TRINE_CUDA_CONV_MMA_HOST_H
#define TRINE_CUDA_CONV_MMA_HOST_H

#include "backends/cuda/driver/state.h"
#include "backends/simt/conv/conv_host.h"
#include "conv_mma_shapes.h"

typedef struct conv_mma_tile {
    int rows, columns, held;
    double rate;                        /* of the first one's, of an SM that holds as many blocks as it can */
    const char *forward, *dx, *weights; /* steps of the ops' functions */
} conv_mma_tile;

#define CONV_MMA_TILE(r, c, blocks) \
    { .rows = r, \
      .columns = c, \
      .held = blocks, \
      .rate = (r) + (c) == 256   ? 1 \
              : (r) + (c) == 192 ? 0.85 \
                                 : 0.65, \
      .forward = "mma_" #r "x" #c, \
      .dx = "dx_mma_" #r "x" #c, \
      .weights = "mma_" #r "x" #c },
static const conv_mma_tile conv_mma_tiles[] = { CONV_MMA_SHAPES(CONV_MMA_TILE) };
enum {
    CONV_MMA_TILES = sizeof conv_mma_tiles / sizeof conv_mma_tiles[0],
    CONV_MMA_GRADIENT_TILES = 2, /* the first ones */
    CONV_MMA_LEAST = 4           /* steps of a slice */
};

/* What a kernel leaves to the prediction: 0 and 0, or the number of its tile from 1 on, and its slices. */
typedef struct conv_mma_choice {
    int tile, slices;
} conv_mma_choice;

/* A product: its rows, columns, and elements of a sum. */
typedef struct conv_mma_sizes {
    int64_t copies, rows, columns, depth; /* copies: of residues and groups */
    int tiles;                            /* of all, the first ones */
    int table;                            /* of rows, beside a ring: 1 or 0 */
} conv_mma_sizes;

typedef struct conv_mma_plan {
    const conv_mma_tile *tile;
    int64_t slices;
    double seconds;
} conv_mma_plan;

/* Predicted seconds of an H200, but for what all plans have alike: blocks in turns on SMs, which are slower with fewer
 * blocks than they could hold; and slices' sums to and from memory. */
static inline double conv_mma_seconds(const conv_mma_sizes *s, const conv_mma_tile *t, int64_t slices, int units) {
    const double rate = 3.4e12, bytes = 3e12, launch = 2.5e-6, begin = 4;
    const double blocks = (double)(s->copies * simt_blocks(s->rows, t->rows) * simt_blocks(s->columns, t->columns)),
                 steps = (double)simt_blocks(simt_blocks(s->depth, CONV_MMA_STEP), slices) + begin,
                 load = ceil(blocks * (double)slices / units), full = load < t->held ? load / t->held : 1,
                 step = 2.0 * t->rows * t->columns * CONV_MMA_STEP / (rate * t->rate);
    const double sums =
        slices > 1 ? launch + 8.0 * (double)slices * (double)(s->copies * s->rows * s->columns) / bytes : 0;
    return load * steps * step / (0.4 + 0.6 * full) + sums;
}

/* tile: NULL if a block cannot have as much shared memory. */
static inline conv_mma_plan conv_mma_plan_of(const trine_call *call, const conv_mma_choice *choice,
                                             const conv_mma_sizes *s) {
    const int shared = ((const cuda_device *)call->device)->shared, units = simt_units(call) > 0 ? simt_units(call) : 1;
    const int64_t steps = simt_blocks(s->depth, CONV_MMA_STEP);
    conv_mma_plan best = { NULL, 1, 0 };
    for (int i = 0; i < s->tiles; i++) {
        const conv_mma_tile *t = &conv_mma_tiles[i];
        if (CONV_MMA_BYTES(t->rows, t->columns) + s->table * CONV_MMA_TABLE(t->rows) > shared) continue;
        if (choice->tile > 0 && choice->tile != i + 1) continue;
        if (choice->tile > 0)
            return (conv_mma_plan){ t, choice->slices < steps ? choice->slices : steps > 0 ? steps : 1, 0 };
        for (int64_t slices = 1; slices <= CONV_SLICES; slices *= 2) {
            if (slices > 1 && steps / slices < CONV_MMA_LEAST) break;
            const double seconds = conv_mma_seconds(s, t, slices, units);
            if (best.tile != NULL && seconds >= best.seconds) continue;
            best = (conv_mma_plan){ t, slices, seconds };
        }
    }
    return best;
}

static inline conv_mma_plan conv_mma_plan_for(const trine_call *call, const conv_mma_choice *choice,
                                              const conv_params *p) {
    int64_t residues, taps = 1;
    const int64_t positions = conv_positions(p, &residues);
    for (int d = 0; d < 3; d++) {
        int64_t common = p->axis[d].stride, rest = p->axis[d].dilation;
        while (rest != 0) {
            const int64_t next = common % rest;
            common = rest, rest = next;
        }
        taps *= p->transposed ? simt_blocks(p->axis[d].taps, p->axis[d].stride / common) : p->axis[d].taps;
    }
    const conv_mma_sizes sizes = { residues * p->groups,
                                   positions,
                                   p->lanes,
                                   taps * p->channels,
                                   p->transposed ? (int)CONV_MMA_GRADIENT_TILES : (int)CONV_MMA_TILES,
                                   1 };
    return conv_mma_plan_of(call, choice, &sizes);
}

static inline void conv_mma_set(const trine_call *call, const conv_mma_choice *choice, conv_params *p) {
    const conv_mma_plan plan = conv_mma_plan_for(call, choice, p);
    int64_t residues;
    const int64_t positions = conv_positions(p, &residues);
    p->slices = plan.slices;
    p->down = simt_blocks(positions, plan.tile->rows), p->right = simt_blocks(p->lanes, plan.tile->columns);
}

static inline trine_status conv_mma_launch(const trine_call *call, const conv_mma_choice *choice, conv_params *p,
                                           const char *end) {
    const conv_mma_plan plan = conv_mma_plan_for(call, choice, p);
    int64_t residues;
    conv_positions(p, &residues);
    const simt_function function = { .step = p->transposed ? plan.tile->dx : plan.tile->forward,
                                     .type = { call->type[SIMT_FIRST_TYPE] },
                                     .shared = CONV_MMA_BYTES(plan.tile->rows, plan.tile->columns) };
    p->sums = call->workspace;
    const trine_status status = simt_launch(call, &function, residues * p->down * p->slices * p->groups * p->right,
                                            CONV_MMA_THREADS, p, sizeof *p);
    return status == TRINE_OK && p->slices > 1 ? conv_add_slices(call, p, end) : status;
}

static inline const char *conv_mma_refuse(const trine_call *call, const conv_mma_choice *choice, const conv_params *p) {
    return trine_dtype_size(call->type[SIMT_FIRST_TYPE]) != 2 ? "not of 16 bits"
           : conv_few(p)                                      ? "few channels of a group are written"
           : !conv_narrow(p->axis)                            ? "sizes beyond 2^28"
           : conv_mma_plan_for(call, choice, p).tile == NULL  ? "a block cannot have as much shared memory"
                                                              : NULL;
}

/* Those of an op of which conv_host.h's CONV_FORWARD has been written; with its edges along Q, K and CG. */
#define CONV_FORWARD_MMA_OF(OP) \
    static inline const char *conv_forward_mma_refuse(const trine_call *call) { \
        const conv_params p = conv_forward_of(call); \
        const char *const why = conv_forward_refuse(call); \
        return why ? why : conv_mma_refuse(call, call->self, &p); \
    } \
    static inline size_t conv_forward_mma_workspace(const trine_call *call) { \
        conv_params p = conv_forward_of(call); \
        if (call->empty) return 0; \
        conv_mma_set(call, call->self, &p); \
        return conv_sums_bytes(&p, TRINE_F32); \
    } \
    static inline trine_status conv_forward_mma_launch(const trine_call *call) { \
        conv_params p = conv_forward_of(call); \
        conv_mma_set(call, call->self, &p); \
        return conv_mma_launch(call, call->self, &p, "end"); \
    } \
    static inline void conv_forward_mma_edges(const trine_call *call, trine_kernel_edges *edges) { \
        (void)call; \
        trine_kernel_edge(edges, OP##_DIM_K, CONV_FEW); \
        trine_kernel_edge(edges, OP##_DIM_K, 64); \
        trine_kernel_edge(edges, OP##_DIM_K, 128); \
        trine_kernel_edge(edges, OP##_DIM_CG, CONV_MMA_STEP); \
        trine_kernel_edge(edges, OP##_DIM_Q, 64); \
        trine_kernel_edge(edges, OP##_DIM_Q, 128); \
    }

#define CONV_FORWARD_MMA(text, tile, slices) \
    { .name = SIMT_NAME "_mma" text, \
      .refuse = conv_forward_mma_refuse, \
      .workspace = conv_forward_mma_workspace, \
      .launch = conv_forward_mma_launch, \
      .self = &(const conv_mma_choice){ tile, slices }, \
      .edges = conv_forward_mma_edges }
/* By prediction, and each tile, with and without slices, for TRINE_KERNEL. */
#define CONV_FORWARD_MMA_EACH \
    CONV_FORWARD_MMA("_128x128", 1, 1), CONV_FORWARD_MMA("_64x64", 2, 1), CONV_FORWARD_MMA("_128x64", 3, 1), \
        CONV_FORWARD_MMA("_64x64_sliced", 2, 3)

#endif
