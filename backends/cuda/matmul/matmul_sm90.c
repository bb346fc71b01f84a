/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on sm_90a: the host side. Tensor maps, tiles, and which of them. */
#include "matmul_kernels.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "matmul_sm90.h"
#include "backends/cuda/driver/maps.h"

/* A tile of 128 by n: blocks in pairs that share y's part, or in clusters that split k between them. */
typedef struct tile {
    bool pairs;
    int n;
} tile;
#define PAIRS(COLUMNS) { true, COLUMNS },
#define SPLIT(COLUMNS) { false, COLUMNS },
static const tile tiles[] = { MATMUL_SM90_PAIRS(PAIRS) MATMUL_SM90_SPLITS(SPLIT) };

/* Are there products with y's lanes consecutive? Panels are 64 of them. */
static bool takes_across(const tile *t) { return t->pairs || t->n % 64 == 0; }
/* Blocks that may share a tile. Three finish columns by eights, for which there has to be place for as many sums of
 * others as a tile has. */
static const int splits[] = { 1, 2, 3, 4, MATMUL_SM90_SPLIT };
static bool shareable(const tile *t, int split) { return split == 1 || (!t->pairs && (split != 3 || t->n >= 32)); }

typedef struct plan {
    tile tile;
    bool swapped;
    matmul_side x, y;
    int64_t down, right, tiles; /* a pair counts as one */
    int split, rows;            /* blocks that share a tile; lanes of x that are its own */
    int64_t held, alone;        /* tiles that the device works at at once; those that a pair has alone */
    int parts;                  /* pairs that share each of the others; 1: none */
    double seconds;
} plan;

/* Steps of so many bytes of k. */
enum { STEP = 128 };
static int64_t depth_of(const trine_call *call) {
    return simt_blocks(call->dim[MATMUL_DIM_K] * (int64_t)trine_dtype_size(call->tensor[MATMUL_A].dtype), STEP);
}

/* Clusters of so many blocks that the device holds at once: those of more than two leave SMs over. An H200 holds 39,
 * 30, 22, 17, 15 and 15 of 3 to 8. */
static int64_t clusters_held(const trine_call *call, int blocks) {
    const cuda_launch launch = { .part = CUDA_HOPPER,
                                 .name = "matmul_split_bf16_64_kk",
                                 .blocks = blocks,
                                 .threads = MATMUL_SM90_THREADS,
                                 .cluster = blocks,
                                 .shared = matmul_sm90_bytes(64, false) };
    const int units = simt_units(call);
    int held = 0;
    if (blocks > 1 && cuda_clusters_held(call, &launch, &held) == TRINE_OK && held > 0) return held;
    return units > blocks ? units / blocks : 1;
}

/* What an SM does one after the other, in us. A step of k takes as long as its products, or as what it reads, if that
 * is longer; each tile has an end. Blocks that stay hide the next tile's beginning. Pairs that share tiles exchange
 * sums. */
static double computing_of(const plan *p, double bytes, double depth, double waves) {
    const double n = p->tile.n, steps = ceil(depth / (p->tile.pairs ? p->parts : p->split));
    if (p->tile.pairs) {
        const double step = fmax(0.0020 * n, bytes / 109e3), whole = depth * step + 0.34 + 0.0047 * n;
        if (p->parts == 1) return waves * whole;
        return (waves - 1) * whole + steps * step + 3.5 + 0.042 * n * (p->parts - 1) / p->parts;
    }
    const double end = p->split > 1 ? 0.30 + 0.0221 * n : 0.0024 * n;
    return waves * (steps * fmax(0.0018 * n, 0.061 + bytes / 270e3) + end + 2.5 * (waves - 1) / waves);
}

/* Predicted time. The constants are fitted to thousands of times of random products of bf16 on an H200
 * (docs/learned.md). `operands`: their bytes and d's. Rows of k that are no multiple of 128 bytes are read from L2 by
 * two lines each. */
static double seconds_of(const trine_call *call, const plan *p, double operands) {
    const int64_t row = call->dim[MATMUL_DIM_K] * (int64_t)trine_dtype_size(call->tensor[MATMUL_A].dtype);
    const int blocks = p->tile.pairs ? 2 : 1;
    const double depth = (double)depth_of(call), bytes = 128.0 * (p->rows + p->tile.n / (double)blocks),
                 waves = (double)simt_blocks(p->tiles, p->held);
    const double moved = (double)(p->x.bytes + p->y.bytes) * 3 + operands, packing = (p->x.packed + p->y.packed) * 4,
                 apart = row % STEP != 0;
    const double computing = computing_of(p, bytes * (1 + 0.06 * apart), depth, waves),
                 cached = (double)(p->tiles * blocks) * depth * bytes * (1 + 0.65 * apart) / 15e6,
                 memory = moved / 5.8e6;
    /* none hides the others wholly */
    const double sum = computing * sqrt(computing) + cached * sqrt(cached) + memory * sqrt(memory);
    return (2.5 + packing + cbrt(sum * sum)) * 1e-6;
}

/* Tiles of 128 lanes of x; of fewer, if that makes more of them and the device still holds all at once. */
static void place(const trine_call *call, plan *p) {
    const int64_t planes = call->dim[MATMUL_DIM_G] * p->right;
    p->held = clusters_held(call, p->tile.pairs ? 2 : p->split);
    const bool once = !p->tile.pairs && !p->x.across && planes * simt_blocks(p->x.lanes, MATMUL_SM90_ROWS) <= p->held;
    p->rows = once ? MATMUL_SM90_LEAST : MATMUL_SM90_ROWS;
    while (p->rows < MATMUL_SM90_ROWS && planes * simt_blocks(p->x.lanes, p->rows) > p->held) p->rows += 8;
    p->down = simt_blocks(p->x.lanes, p->rows * (p->tile.pairs ? 2 : 1));
    p->tiles = p->alone = planes * p->down;
}

/* Tiles that are left over when each pair has had as many may be shared by several pairs each. */
static plan plan_pairs(const trine_call *call, plan p, double operands) {
    p.split = 1;
    place(call, &p);
    p.seconds = seconds_of(call, &p, operands);
    plan shared = p;
    const int64_t rest = p.tiles % p.held, depth = depth_of(call), most = rest > 0 ? p.held / rest : 1,
                  parts = most < depth ? most : depth;
    if (parts < 2) return p;
    shared.alone -= rest;
    shared.parts = (int)(parts < MATMUL_SM90_SPLIT ? parts : MATMUL_SM90_SPLIT);
    shared.seconds = seconds_of(call, &shared, operands);
    return shared.seconds < p.seconds ? shared : p;
}

static plan plan_splits(const trine_call *call, plan p, double operands) {
    plan best;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0] && (i == 0 || splits[i] <= depth_of(call)); i++) {
        if (!shareable(&p.tile, splits[i])) continue;
        p.split = splits[i];
        place(call, &p);
        p.seconds = seconds_of(call, &p, operands);
        /* cppcheck-suppress uninitvar ; the first is always taken */
        if (i == 0 || p.seconds < best.seconds) best = p;
    }
    return best;
}

/* The tile with either operand as x. */
static plan plan_side(const trine_call *call, tile t, bool swapped, double operands) {
    plan p = { .tile = t, .swapped = swapped, .parts = 1 };
    p.x = matmul_side_of(call, swapped ? MATMUL_B : MATMUL_A, true);
    p.y = matmul_side_of(call, swapped ? MATMUL_A : MATMUL_B, takes_across(&t));
    p.right = simt_blocks(p.y.lanes, t.n);
    return t.pairs ? plan_pairs(call, p, operands) : plan_splits(call, p, operands);
}

/* Split tiles have the operand with fewer lanes as y, pairs that which takes less time. */
static plan plan_tile(const trine_call *call, tile t, double operands) {
    const bool swapped = matmul_many_of(call) == MATMUL_B;
    const plan p = plan_side(call, t, swapped, operands);
    if (!t.pairs) return p;
    const plan other = plan_side(call, t, !swapped, operands);
    return other.seconds < p.seconds ? other : p;
}

static plan plan_best(const trine_call *call, int which) {
    const double operands = trine_plan_bytes(call->plan, call->dim, call->type, call->present);
    if (which < MATMUL_SM90_BEST) return plan_tile(call, tiles[which], operands);
    plan best = plan_tile(call, tiles[0], operands);
    for (int i = 1; i < MATMUL_SM90_BEST; i++) {
        const plan p = plan_tile(call, tiles[i], operands);
        if (p.seconds < best.seconds) best = p;
    }
    return best;
}

/* All that a plan follows from. */
typedef struct question {
    const void *device;
    int64_t units, which, present, dim[TRINE_MAX_SYMBOLS], stride[2][3];
    trine_dtype type[TRINE_MAX_SYMBOLS];
} question;

static uint32_t place_of(const question *q) {
    const unsigned char *const bytes = (const unsigned char *)q;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < sizeof *q; i++) hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

/* A call asks for its workspace and is then launched, and a program's calls are of a few kinds: each thread remembers
 * answers. */
static plan plan_of(const trine_call *call) {
    enum { REMEMBERED = 16 };
    static _Thread_local struct {
        question question;
        plan answer;
    } answers[REMEMBERED];
    question q;
    memset(&q, 0, sizeof q); /* padding too */
    q.device = call->device, q.units = simt_units(call), q.which = *(const int *)call->self, q.present = call->present;
    memcpy(q.dim, call->dim, (size_t)call->plan->symbols * sizeof q.dim[0]);
    memcpy(q.type, call->type, (size_t)call->plan->types * sizeof q.type[0]);
    memcpy(q.stride[0], call->tensor[MATMUL_A].stride, sizeof q.stride[0]);
    memcpy(q.stride[1], call->tensor[MATMUL_B].stride, sizeof q.stride[1]);
    const uint32_t at = place_of(&q) % REMEMBERED;
    if (memcmp(&q, &answers[at].question, sizeof q) != 0) {
        answers[at].answer = plan_best(call, (int)q.which);
        memcpy(&answers[at].question, &q, sizeof q);
    }
    return answers[at].answer;
}

const char *matmul_sm90_refuse(const trine_call *call) {
    const char *why = matmul_refuse_cores(call);
    if (why == NULL) why = cuda_refuse_hopper(call);
    if (why != NULL) return why;
    if (call->dim[MATMUL_DIM_K] == 0) return "k is 0";
    for (int i = 0; i < call->plan->symbols; i++)
        if (call->dim[i] > INT32_MAX - 256) return "a dimension exceeds the coordinates of tensor maps";
    const int64_t most =
        call->dim[MATMUL_DIM_G] * simt_blocks(call->dim[MATMUL_DIM_M], 128) * simt_blocks(call->dim[MATMUL_DIM_N], 8);
    return most * 8 > INT32_MAX ? "more tiles than are counted in 32 bits" : NULL;
}

/* The workspace: operands that are packed, sums that pairs leave for each other, and tickets. */
static int64_t packed_bytes(const plan *p) { return simt_blocks(p->x.bytes + p->y.bytes, 16) * 16; }
static int64_t shared_tiles(const plan *p) { return p->parts > 1 ? p->tiles - p->alone : 0; }
static int64_t sums_bytes(const plan *p) {
    return shared_tiles(p) * 2 * p->parts * (int64_t)MATMUL_SM90_SHARED(p->tile.n);
}
static int64_t tickets_bytes(const plan *p) {
    return shared_tiles(p) * 2 * MATMUL_SM90_SPLIT * MATMUL_SM90_SPLIT * (int64_t)sizeof(uint64_t);
}

/* A number that nothing in memory is by chance: no other call's, and not 0. */
static uint64_t next_ticket(void) {
    static _Atomic uint64_t count;
    const uint64_t mixed = (atomic_fetch_add(&count, 1) + (uintptr_t)&count) * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 29) | 1;
}

size_t matmul_sm90_workspace(const trine_call *call) {
    const plan p = plan_of(call);
    return (size_t)(packed_bytes(&p) + sums_bytes(&p) + tickets_bytes(&p));
}

double matmul_sm90_seconds(const trine_call *call) { return plan_of(call).seconds; }

/* An operand in boxes of `lanes` lanes (64, if they are consecutive) and 128 bytes of k, of which each of `blocks`
 * copies a part; or by hand, if it does not begin at 16 bytes: its sums must be the same. Few blocks that read once
 * what they read are 3 to 5 % faster if the cache fetches no more than a box has. */
static trine_status encode_side(const trine_call *call, const tile *tile, const matmul_side *s, void *packed, int lanes,
                                int blocks, tensor_map *map_out, matmul_operand *hand_out) {
    const trine_tensor *t = &call->tensor[s->tensor];
    const int lane = matmul_lane_of(s->tensor);
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), k = t->shape[3 - lane], step = STEP / size;
    cuda_map m = { .dtype = t->dtype,
                   .data = s->packed ? packed : t->data,
                   .shape = { s->across ? s->lanes : k, s->across ? k : s->lanes, t->shape[0] },
                   .width = s->across ? 64 : (int)step,
                   .rows = (s->across ? (int)step : lanes) / blocks,
                   .fetch = tile->pairs ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B };
    if ((uintptr_t)m.data % 16 != 0) {
        *hand_out = matmul_operand_of(call, s->tensor);
        return TRINE_OK;
    }
    m.line = s->packed        ? s->pitch * size
             : m.shape[1] > 1 ? t->stride[s->across ? 3 - lane : lane] * size
                              : (m.shape[0] * size + 15) / 16 * 16;
    m.batch = s->packed || m.shape[2] == 1 ? m.line * m.shape[1] : t->stride[0] * size;
    return cuda_map_encode(((const cuda_device *)call->device)->driver, &m, map_out);
}

/* The part of a function's name that says what it multiplies: of float8, the types of x and y. */
static const char *type_text(const trine_call *call, const plan *p) {
    const trine_dtype x = call->tensor[p->x.tensor].dtype, y = call->tensor[p->y.tensor].dtype;
    if (x == TRINE_F32) return "tf32";
    if (!simt_float8(x)) return trine_dtype_name(x);
    return x == TRINE_E5M2 ? "e5m2_e4m3" : y == TRINE_E5M2 ? "e4m3_e5m2" : "e4m3_e4m3";
}

/* Are the rows of d, or of c, written or read in whole 16 bytes? */
static bool whole_rows(const trine_tensor *t) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    return (uintptr_t)t->data % 16 == 0 && t->stride[2] == 1 && (t->shape[1] == 1 || t->stride[1] * size % 16 == 0) &&
           (t->shape[0] == 1 || t->stride[0] * size % 16 == 0);
}

trine_status matmul_sm90_launch(const trine_call *call) {
    const cuda_device *d = call->device;
    const plan p = plan_of(call);
    char *const packed = call->workspace;
    matmul_sm90_params params = { .to = matmul_target_of(call),
                                  .m = call->dim[MATMUL_DIM_M],
                                  .n = call->dim[MATMUL_DIM_N],
                                  .k = call->dim[MATMUL_DIM_K],
                                  .depth = (int32_t)depth_of(call),
                                  .down = (int32_t)p.down,
                                  .right = (int32_t)p.right,
                                  .tiles = (int32_t)p.tiles,
                                  .rows = p.rows,
                                  .columns = p.tile.n,
                                  .stages = MATMUL_SM90_STAGES(p.tile.n, p.y.across),
                                  .alone = (int32_t)p.alone,
                                  .parts = p.parts,
                                  .sums = packed + packed_bytes(&p),
                                  .tickets = (void *)(packed + packed_bytes(&p) + sums_bytes(&p)),
                                  .ticket = p.parts > 1 ? next_ticket() : 0,
                                  .x_batches = call->tensor[p.x.tensor].shape[0] > 1,
                                  .y_batches = call->tensor[p.y.tensor].shape[0] > 1,
                                  .swapped = p.swapped };
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = encode_side(call, &p.tile, &p.x, packed, p.rows, 1, &params.x, &params.x_hand);
    if (status == TRINE_OK)
        status = encode_side(call, &p.tile, &p.y, packed + p.x.bytes, p.tile.n, p.tile.pairs ? 2 : 1, &params.y,
                             &params.y_hand);
    cuda_leave(d, scope);
    const trine_tensor *end = &call->tensor[MATMUL_D];
    params.whole = end->shape[2] * (int64_t)trine_dtype_size(end->dtype) % 16 == 0 && whole_rows(end) &&
                   (!params.to.c || whole_rows(&call->tensor[MATMUL_C]));
    params.plain = params.to.plain && (!params.to.columns.data || simt_float8(call->tensor[MATMUL_A].dtype));
    params.by_hand = params.x_hand.data != NULL || params.y_hand.data != NULL;
    if (status == TRINE_OK) status = matmul_side_launch(call, &p.x, packed);
    if (status == TRINE_OK) status = matmul_side_launch(call, &p.y, packed + p.x.bytes);
    if (status != TRINE_OK) return status;
    cuda_launch launch = { .part = CUDA_HOPPER,
                           .threads = MATMUL_SM90_THREADS,
                           .shared = matmul_sm90_bytes(p.tile.n, p.tile.pairs),
                           .params = &params };
    char width[8] = "";
    if (!p.tile.pairs) snprintf(width, sizeof width, "%d_", p.tile.n);
    snprintf(launch.name, sizeof launch.name, "matmul_%s_%s_%s%c%c", p.tile.pairs ? "pairs" : "split",
             type_text(call, &p), width, p.x.across ? 'l' : 'k', p.y.across ? 'l' : 'k');
    launch.cluster = p.tile.pairs ? 2 : p.split;
    launch.blocks = launch.cluster * p.tiles;
    if (p.tile.pairs) {
        int held = 0;
        status = cuda_clusters_held(call, &launch, &held);
        if (status != TRINE_OK) return status;
        if (held == 0) return call->host->error(TRINE_ERR_UNSUPPORTED, "matmul: the device holds no pair of blocks");
        launch.together = p.parts > 1 && held >= p.held && !((const cuda_queue *)call->queue)->shares;
        if (!launch.together) params.alone = params.tiles, params.parts = 1;
        const int64_t units = params.alone + (params.tiles - params.alone) * params.parts;
        launch.blocks = launch.cluster * (held < units ? held : units);
        launch.alone = matmul_better_alone(simt_units(call), launch.blocks);
    }
    return cuda_launch_function(call, &launch);
}

void matmul_sm90_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int which = *(const int *)call->self;
    matmul_lane_edge(edges, MATMUL_SM90_LEAST);
    matmul_lane_edge(edges, MATMUL_SM90_ROWS);
    matmul_lane_edge(edges, 2 * MATMUL_SM90_ROWS);
    for (int i = 0; i < MATMUL_SM90_BEST; i++) {
        if (which != MATMUL_SM90_BEST && which != i) continue;
        const tile *t = &tiles[i];
        matmul_lane_edge(edges, t->n);
        matmul_depth_edges(call, edges, STEP,
                           t->pairs ? MATMUL_SM90_STAGES(t->n, false) : MATMUL_SM90_SPLIT_STAGES(t->n));
    }
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) matmul_depth_edges(call, edges, STEP, splits[i]);
}
