/* SPDX-License-Identifier: Apache-2.0 */
/* matmul by tiles of d, on CUDA devices of any architecture: which tiles, into how many parts they divide k, and the
 * launches. */
#include <math.h>
#include <stdio.h>

#include "matmul_kernels.h"

/* What an SM that has blocks enough multiplies in a second, measured on an H200. */
typedef struct tile {
    const char *name;
    int rows, columns, threads, shared, held; /* bytes of shared memory; blocks of which an SM is full */
    double rate, lacks;                       /* by how much a block takes longer that has an SM alone */
} tile;

/* Kernels that differ by the size of their tiles. */
struct matmul_family {
    const char *(*refuse)(const trine_call *call);
    /* rows and columns of d; products with fewer are left to kernels that come later, unless a tile is asked for */
    int64_t least;
    bool typed, directed; /* functions are named by the type, and by the directions of operands */
    /* operands are copied by 16 bytes, and packed first where they cannot be;
     * rates are of 16-bit elements, others multiply as many bytes */
    bool copies;
    bool cached; /* operands come through the first-level cache */
    bool stays;  /* blocks take tile after tile */
    int count;
    tile tiles[5];
};

/* What a call is multiplied by. */
typedef struct plan {
    const tile *tile;
    matmul_split split;
    double seconds;
} plan;

/* --------------------------------------------------------------------------------------------------------- families */

static const char *refuse_all_but(const trine_call *call, trine_dtype type, const char *why) {
    return call->tensor[MATMUL_A].dtype == type ? NULL : why;
}
static const char *refuse_f32(const trine_call *call) {
    return refuse_all_but(call, TRINE_F32, "only products of f32");
}
static const char *refuse_f64(const trine_call *call) {
    return refuse_all_but(call, TRINE_F64, "only products of f64");
}

enum { UNITS = 132 }; /* SMs of an H200 */
#define MMA(ROWS, COLUMNS, DOWN, RIGHT, HELD, RATE, LACKS) \
    { "mma_" #ROWS "x" #COLUMNS,       ROWS, COLUMNS,        32 * (DOWN) * (RIGHT), \
      MATMUL_MMA_BYTES(ROWS, COLUMNS), HELD, (RATE) / UNITS, LACKS },
#define F32(ROWS, COLUMNS, GROUPS, STAGES, HELD, RATE, LACKS) \
    { "f32_" #ROWS "x" #COLUMNS, \
      ROWS, \
      COLUMNS, \
      (ROWS) * (COLUMNS) / 64 * (GROUPS), \
      MATMUL_F32_BYTES(ROWS, COLUMNS, GROUPS, STAGES), \
      HELD, \
      (RATE) / UNITS, \
      LACKS },
#define F64(ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, HELD, RATE, LACKS) \
    { "f64_" #ROWS "x" #COLUMNS, \
      ROWS, \
      COLUMNS, \
      (ROWS) / (DOWN) * ((COLUMNS) / (RIGHT)) * 32 * (GROUPS), \
      MATMUL_F64_BYTES(ROWS, COLUMNS, GROUPS, STAGES), \
      HELD, \
      (RATE) / UNITS, \
      LACKS },
const matmul_family matmul_simt_family = { .refuse = matmul_refuse,
                                           .typed = true,
                                           .count = MATMUL_SIMT_BEST,
                                           .tiles = { { "simt", MATMUL_SIDE, MATMUL_SIDE, MATMUL_THREADS, 0, 2,
                                                        35e12 / UNITS, 0.05 } } };
const matmul_family matmul_mma_family = { .refuse = matmul_refuse_cores,
                                          .typed = true,
                                          .directed = true,
                                          .copies = true,
                                          .stays = true,
                                          .count = MATMUL_MMA_BEST,
                                          .tiles = { MATMUL_MMA_TILES(MMA) } };
const matmul_family matmul_f32_family = { .refuse = refuse_f32,
                                          .least = 1,
                                          .directed = true,
                                          .cached = true,
                                          .count = MATMUL_F32_BEST,
                                          .tiles = { MATMUL_F32_TILES(F32) } };
const matmul_family matmul_f64_family = { .refuse = refuse_f64,
                                          .least = 3,
                                          .directed = true,
                                          .cached = true,
                                          .count = MATMUL_F64_BEST,
                                          .tiles = { MATMUL_F64_TILES(F64) } };

/* Is tile i the kernel's, or one of all, and does a block have room for it? */
static bool may_take(const trine_call *call, const matmul_family_tile *self, int i) {
    const matmul_family *const f = self->family;
    return (self->which == i || self->which == f->count) &&
           f->tiles[i].shared <= ((const cuda_device *)call->device)->shared;
}

const char *matmul_family_refuse(const trine_call *call) {
    const matmul_family_tile *const self = call->self;
    const matmul_family *const f = self->family;
    const char *const why = f->refuse(call);
    if (why != NULL) return why;
    if (self->which == f->count && (call->dim[MATMUL_DIM_M] < f->least || call->dim[MATMUL_DIM_N] < f->least))
        return "m or n is very small";
    for (int i = 0; i < f->count; i++)
        if (may_take(call, self, i)) return NULL;
    return "a block cannot have as much shared memory";
}

/* ------------------------------------------------------------------------------------------------------------ plans */

static int64_t tiles_of(const trine_call *call, const tile *t) {
    return call->dim[MATMUL_DIM_G] * simt_blocks(call->dim[MATMUL_DIM_M], t->rows) *
           simt_blocks(call->dim[MATMUL_DIM_N], t->columns);
}

/* Float8 is widened to f16, and goes on as such. */
static bool widens(const trine_call *call) { return simt_float8(call->tensor[MATMUL_A].dtype); }
static trine_dtype multiplied_type(const trine_call *call) {
    return widens(call) ? TRINE_F16 : call->tensor[MATMUL_A].dtype;
}

static double rate_of(const trine_call *call, const matmul_family *f, const tile *t) {
    return f->copies ? t->rate * 2 / (double)trine_dtype_size(multiplied_type(call)) : t->rate;
}

/* Blocks that share an SM take their time one after the other, longer if it could hold more;
 * sums are written and read again at 4 TB/s. */
static double seconds_of(const trine_call *call, const tile *t, double rate, const matmul_split *s) {
    const int64_t most = simt_blocks(tiles_of(call, t) * s->parts, simt_units(call));
    const double alone = most < t->held ? 1 + t->lacks / (double)(most * most) : 1,
                 block = 2.0 * t->rows * t->columns * (double)s->depth / rate;
    return 4e-6 + (double)most * block * alone + (s->parts > 1 ? 2e-6 + 2.0 * (double)s->bytes / 4e12 : 0);
}

/* By one tile: k in as many parts as fill the device, or a multiple of that. */
static plan plan_tile(const trine_call *call, const matmul_family *f, const tile *t) {
    const int64_t tiles = tiles_of(call, t), most = call->dim[MATMUL_DIM_K] / MATMUL_LEAST_DEPTH;
    const double rate = rate_of(call, f, t);
    plan best = { .tile = t, .split = matmul_split_into(call, 1) };
    best.seconds = seconds_of(call, t, rate, &best.split);
    for (int blocks = 1; blocks <= 2 * t->held && tiles > 0; blocks++) { /* for each SM */
        const int64_t parts = blocks * simt_units(call) / tiles;
        if (parts < 2) continue;
        const matmul_split s = matmul_split_into(call, parts < most ? parts : most);
        const double seconds = seconds_of(call, t, rate, &s);
        if (seconds < best.seconds) best.split = s, best.seconds = seconds;
    }
    return best;
}

/* That which is predicted to take the least time. */
static plan plan_of(const trine_call *call) {
    const matmul_family_tile *const self = call->self;
    const matmul_family *const f = self->family;
    plan best = { .seconds = INFINITY };
    for (int i = 0; i < f->count; i++) {
        if (!may_take(call, self, i)) continue;
        const plan p = plan_tile(call, f, &f->tiles[i]);
        if (p.seconds < best.seconds) best = p;
    }
    return best;
}

double matmul_family_seconds(const trine_call *call) { return plan_of(call).seconds; }

/* --------------------------------------------------------------------------------------------------------- operands */

/* What operands want of the workspace, in front of sums. */
static int64_t operands_bytes(const trine_call *call, const matmul_family *f) {
    if (widens(call)) return simt_widened_of(call, MATMUL_A).bytes + simt_widened_of(call, MATMUL_B).bytes;
    return f->copies ? matmul_side_of(call, MATMUL_A, true).bytes + matmul_side_of(call, MATMUL_B, true).bytes : 0;
}

size_t matmul_family_workspace(const trine_call *call) {
    return (size_t)(operands_bytes(call, ((const matmul_family_tile *)call->self)->family) + plan_of(call).split.bytes);
}

static trine_status widen(const trine_call *call, matmul_operand *operand, int tensor, void *to) {
    const simt_widened w = simt_widened_of(call, tensor);
    const bool across = w.turned == (tensor == MATMUL_A);
    *operand = (matmul_operand){ .data = to,
                                 .batch = operand->batch ? w.lines * w.pitch : 0,
                                 .lane = across ? 1 : w.pitch,
                                 .along = across ? w.pitch : 1,
                                 .across = across,
                                 .wide = true };
    return simt_widen(call, &w, to);
}

static trine_status widen_both(const trine_call *call, matmul_params *p) {
    char *const to = call->workspace;
    const trine_status status = widen(call, &p->a, MATMUL_A, to);
    return status == TRINE_OK ? widen(call, &p->b, MATMUL_B, to + simt_widened_of(call, MATMUL_A).bytes) : status;
}

static trine_status pack_both(const trine_call *call, matmul_params *p) {
    const matmul_side a = matmul_side_of(call, MATMUL_A, true), b = matmul_side_of(call, MATMUL_B, true);
    char *const to = call->workspace;
    matmul_use_side(&p->a, &a, to);
    matmul_use_side(&p->b, &b, to + a.bytes);
    const trine_status status = matmul_side_launch(call, &a, to);
    return status == TRINE_OK ? matmul_side_launch(call, &b, to + a.bytes) : status;
}

/* --------------------------------------------------------------------------------------------------------- launches */

static matmul_params params_of(const trine_call *call, const plan *plan, void *sums) {
    const tile *t = plan->tile;
    return (matmul_params){ .a = matmul_operand_of(call, MATMUL_A),
                            .b = matmul_operand_of(call, MATMUL_B),
                            .to = matmul_target_of_parts(call, &plan->split, sums),
                            .m = call->dim[MATMUL_DIM_M],
                            .n = call->dim[MATMUL_DIM_N],
                            .k = call->dim[MATMUL_DIM_K],
                            .down = simt_blocks(call->dim[MATMUL_DIM_M], t->rows),
                            .right = simt_blocks(call->dim[MATMUL_DIM_N], t->columns),
                            .batches = call->dim[MATMUL_DIM_G],
                            .depth = plan->split.depth,
                            .tiles = plan->split.parts * tiles_of(call, t) };
}

/* Blocks that come before the previous launch has ended save 0.4 to 1.6 us if they are one for each SM, which holds no
 * second. Where it does, those that come early crowd on some: f64 1024 cubed in tiles of 64 x 64, 45.6 us, took 62.9
 * (H200). */
static bool begins_early(const matmul_family *f, const tile *t, int64_t units, int64_t blocks) {
    return t->held == 1 && blocks <= units && !(f->stays && matmul_better_alone(units, blocks));
}

static trine_status launch_tiles(const trine_call *call, const matmul_family *f, const tile *t,
                                 const matmul_params *p) {
    const int64_t units = simt_units(call), held = units * t->held,
                  blocks = f->stays && held < p->tiles ? held : p->tiles;
    const char directions[] = { '_', p->a.across ? 'l' : 'k', p->b.across ? 'l' : 'k', 0 };
    cuda_launch launch = { .blocks = blocks,
                           .threads = t->threads,
                           .shared = t->shared,
                           .cached = f->cached,
                           .alone = !begins_early(f, t, units, blocks),
                           .params = p };
    snprintf(launch.name, sizeof launch.name, "matmul_%s%s%s%s", t->name, f->typed ? "_" : "",
             f->typed ? trine_dtype_name(multiplied_type(call)) : "", f->directed ? directions : "");
    return cuda_launch_function(call, &launch);
}

trine_status matmul_family_launch(const trine_call *call) {
    const matmul_family *const f = ((const matmul_family_tile *)call->self)->family;
    const plan plan = plan_of(call);
    char *const sums = (char *)call->workspace + operands_bytes(call, f);
    matmul_params p = params_of(call, &plan, sums);
    trine_status status = widens(call) ? widen_both(call, &p) : f->copies ? pack_both(call, &p) : TRINE_OK;
    if (status == TRINE_OK) status = launch_tiles(call, f, plan.tile, &p);
    return status == TRINE_OK ? matmul_add_launch(call, &plan.split, sums) : status;
}

void matmul_family_edges(const trine_call *call, trine_kernel_edges *edges) {
    const matmul_family_tile *const self = call->self;
    const matmul_family *const f = self->family;
    const int depth = f == &matmul_f32_family ? MATMUL_F32_DEPTH : f == &matmul_f64_family ? MATMUL_F64_DEPTH : 0;
    for (int i = 0; i < f->count; i++) {
        if (!may_take(call, self, i)) continue;
        trine_kernel_edge(edges, MATMUL_DIM_M, f->tiles[i].rows);
        trine_kernel_edge(edges, MATMUL_DIM_N, f->tiles[i].columns);
        trine_kernel_edge(edges, MATMUL_DIM_M, (int64_t)MATMUL_GROUP * f->tiles[i].rows);
    }
    matmul_lane_edge(edges, f->least);
    trine_kernel_edge(edges, MATMUL_DIM_K, depth);
    if (f->copies) matmul_depth_edges(call, edges, 128, MATMUL_MMA_STAGES);
    trine_kernel_edge(edges, MATMUL_DIM_K, MATMUL_LEAST_DEPTH);
    trine_kernel_edge(edges, MATMUL_DIM_K, 2 * MATMUL_LEAST_DEPTH);
}
