/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: the host side. */
#include "matmul_few_host.h"
#include "matmul_sm90_host.h"

#include <math.h>
#include <stdio.h>

#include <trine/ops.h>

const char *matmul_refuse(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    if (call->tensor[MATMUL_A].dtype != TRINE_I8) return NULL;
    if (simt_present(call, MATMUL_A_SCALE) || simt_present(call, MATMUL_B_SCALE)) return "i8 products take no scales";
    const bool integers = fabsf(args->alpha) <= 0x1p24f && args->alpha == rintf(args->alpha) && fabsf(args->beta) <= 0x1p24f && args->beta == rintf(args->beta);
    if (!integers) return "i8 products take integers up to 2^24 for alpha and beta";
    return args->activation > TRINE_ACTIVATION_RELU ? "i8 products take no activation but relu" : NULL;
}

const char *matmul_refuse_cores(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    const bool cut = ((const trine_matmul_args *)call->args)->precision == TRINE_PRECISION_TF32;
    if (type == TRINE_F64 || (type == TRINE_F32 && !cut)) return "tensor cores have no products of this type that the error bound allows";
    return matmul_refuse(call);
}

/* Can `count` elements that begin at a multiple of that be read as one? */
static bool wide(const trine_tensor *t, int across, int64_t count) {
    const int64_t bytes = count * (int64_t)trine_dtype_size(t->dtype), align = bytes < 16 ? bytes : 16, size = (int64_t)trine_dtype_size(t->dtype);
    return t->stride[3 - across] == 1 && (uintptr_t)t->data % (uintptr_t)align == 0 && (t->shape[0] == 1 || t->stride[0] * size % align == 0) &&
           (t->shape[across] == 1 || t->stride[across] * size % align == 0);
}

matmul_operand matmul_operand_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    const int lane = tensor == MATMUL_A ? 1 : 2, along = 3 - lane;
    return (matmul_operand){ .data = t->data,
                             .batch = t->shape[0] > 1 ? t->stride[0] : 0,
                             .lane = t->stride[lane],
                             .along = t->stride[along],
                             .across = t->stride[along] != 1,
                             .wide = wide(t, t->stride[along] == 1 ? lane : along, 4) };
}

static matmul_type type_of(trine_dtype dtype) { return dtype == TRINE_F16 ? MATMUL_F16 : dtype == TRINE_BF16 ? MATMUL_BF16 : MATMUL_F32; }

matmul_target matmul_target_of(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    const trine_tensor *d = &call->tensor[MATMUL_D], *c = &call->tensor[MATMUL_C], *bias = &call->tensor[MATMUL_BIAS];
    matmul_target t = { .d = d->data,
                        .d_batch = d->stride[0],
                        .d_row = d->stride[1],
                        .alpha = args->alpha + 0.0f, /* + 0: -0 stands for 0 */
                        .beta = args->beta + 0.0f,
                        .activation = args->activation,
                        .type = type_of(d->dtype),
                        .wide = wide(d, 1, 4),
                        .rows = simt_scales_of(call, MATMUL_A_SCALE),
                        .columns = simt_scales_of(call, MATMUL_B_SCALE) };
    if (simt_present(call, MATMUL_C)) {
        t.c = c->data, t.c_batch = c->stride[0], t.c_row = c->stride[1], t.c_column = c->stride[2];
        t.wide = t.wide && wide(c, 1, 4);
    }
    if (simt_present(call, MATMUL_BIAS)) t.bias = bias->data, t.bias_type = type_of(bias->dtype);
    t.plain = !t.c && !t.bias && !t.activation;
    return t;
}

/* -------------------------------------------------------------------------------------------------------------------- sides */

/* Can copies read the operand where it lies, if `across` says which direction is consecutive? Where it begins does not count: the order of sums and the
 * workspace follow from sizes and strides alone. */
static bool copyable(const trine_tensor *t, int lane, bool across) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    const int outer = across ? 3 - lane : lane;
    return t->stride[3 - outer] == 1 && (t->shape[outer] == 1 || matmul_copyable_stride(t->stride[outer] * size)) &&
           (t->shape[0] == 1 || matmul_copyable_stride(t->stride[0] * size));
}

matmul_side matmul_side_of(const trine_call *call, int tensor, bool across) {
    const trine_tensor *t = &call->tensor[tensor];
    const int lane = tensor == MATMUL_A ? 1 : 2;
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), k = t->shape[3 - lane];
    matmul_side s = { .tensor = tensor, .lanes = t->shape[lane] };
    if (copyable(t, lane, false)) return s;
    s.across = across && size == 2 && copyable(t, lane, true);
    s.packed = !s.across;
    if (s.packed) s.pitch = (k * size + 15) / 16 * 16 / size, s.bytes = (t->shape[0] * s.lanes * s.pitch * size + 255) / 256 * 256;
    return s;
}

trine_status matmul_side_launch(const trine_call *call, const matmul_side *side, void *to) {
    const trine_tensor *t = &call->tensor[side->tensor];
    matmul_pack_params p = { .from = matmul_operand_of(call, side->tensor),
                             .to = to,
                             .lanes = side->lanes,
                             .depth = call->dim[MATMUL_K],
                             .batches = t->shape[0],
                             .pitch = side->pitch };
    if (!side->packed) return TRINE_OK;
    p.blocks_along = simt_blocks(p.depth, MATMUL_PACK_SIDE), p.blocks_lane = simt_blocks(p.lanes, MATMUL_PACK_SIDE);
    cuda_launch launch = { .blocks = p.batches * p.blocks_along * p.blocks_lane, .threads = MATMUL_THREADS, .params = &p };
    snprintf(launch.name, sizeof launch.name, "matmul_pack_%d", 8 * (int)trine_dtype_size(t->dtype));
    return cuda_launch_function(call, &launch);
}

/* ----------------------------------------------------------------------------------------------------------------- launches */

/* The tiles of a kernel, and what a processor that has blocks enough multiplies in a second, measured on an H200. */
typedef struct tile {
    const char *name;
    int rows, columns, threads, held; /* blocks of which a processor is full */
    double rate, lacks;               /* by how much one that is alone takes longer */
    int groups, stages, shared;       /* groups of threads that share k, each with so many stages; 0 where the kernel has one way */
    bool stays;                       /* its blocks take tile after tile */
} tile;

typedef matmul_split split;

enum { MIN_DEPTH = 64 };

static int64_t sum_size(const trine_call *call) { return call->tensor[MATMUL_A].dtype == TRINE_F64 ? 8 : 4; }

split matmul_split_into(const trine_call *call, int64_t parts) {
    const int64_t k = call->dim[MATMUL_K];
    split s = { .parts = 1, .depth = k, .units = simt_blocks(call->dim[MATMUL_N], 4) };
    const bool counted = call->dim[MATMUL_G] * call->dim[MATMUL_M] * s.units < INT32_MAX / 8; /* by the addition, in 32 bits */
    if (parts > 1 && counted) s.depth = simt_blocks(k, parts * MIN_DEPTH) * MIN_DEPTH, s.parts = simt_blocks(k, s.depth);
    if (s.parts > 1) s.bytes = s.parts * call->dim[MATMUL_G] * call->dim[MATMUL_M] * s.units * 4 * sum_size(call);
    return s;
}

/* Blocks that share a processor take their time one after the other, longer if it could hold more; sums are written and read again at 4 TB/s. */
static double seconds_of(const trine_call *call, const tile *t, const split *s, int64_t tiles) {
    const cuda_device *d = call->device;
    const int64_t most = simt_blocks(tiles * s->parts, d->units);
    const double alone = most < t->held ? 1 + t->lacks / (double)(most * most) : 1, block = 2.0 * t->rows * t->columns * (double)s->depth / t->rate;
    return 4e-6 + (double)most * block * alone + (s->parts > 1 ? 2e-6 + 2.0 * (double)s->bytes / 4e12 : 0);
}

static int64_t tiles_of(const trine_call *call, const tile *t) {
    return call->dim[MATMUL_G] * simt_blocks(call->dim[MATMUL_M], t->rows) * simt_blocks(call->dim[MATMUL_N], t->columns);
}

static split split_of(const trine_call *call, const tile *t) {
    const cuda_device *d = call->device;
    const int64_t tiles = tiles_of(call, t), most = call->dim[MATMUL_K] / MIN_DEPTH;
    split best = matmul_split_into(call, 1);
    best.seconds = seconds_of(call, t, &best, tiles);
    for (int blocks = 1; blocks <= 2 * t->held && tiles > 0; blocks++) { /* for each processor */
        const int64_t parts = blocks * d->units / tiles;
        if (parts < 2) continue;
        split s = matmul_split_into(call, parts < most ? parts : most);
        s.seconds = seconds_of(call, t, &s, tiles);
        if (s.seconds < best.seconds) best = s;
    }
    return best;
}

matmul_target matmul_target_of_parts(const trine_call *call, const split *s, void *sums) {
    if (s->parts == 1) return matmul_target_of(call);
    return (matmul_target){ .d = sums, .d_batch = call->dim[MATMUL_M] * s->units * 4, .d_row = s->units * 4, .alpha = 1, .plain = true, .wide = true };
}

trine_status matmul_add_launch(const trine_call *call, const split *s, const void *sums) {
    if (s->parts == 1) return TRINE_OK;
    const matmul_add_params p = { .from = sums,
                                  .to = matmul_target_of(call),
                                  .m = (int32_t)call->dim[MATMUL_M],
                                  .n = (int32_t)call->dim[MATMUL_N],
                                  .units = (int32_t)s->units,
                                  .rows = (int32_t)(call->dim[MATMUL_G] * call->dim[MATMUL_M]),
                                  .parts = (int32_t)s->parts,
                                  .shared = s->parts >= 16 };
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    cuda_launch launch = { .blocks = simt_blocks((int64_t)p.rows * p.units, MATMUL_THREADS / (p.shared ? 4 : 1)), .threads = MATMUL_THREADS, .params = &p };
    snprintf(launch.name, sizeof launch.name, "matmul_add_%s", trine_dtype_name(type == TRINE_F64 ? TRINE_F64 : type == TRINE_I8 ? TRINE_I32 : TRINE_F32));
    return cuda_launch_function(call, &launch);
}

static matmul_params params_of(const trine_call *call, const tile *t, const split *s, void *sums) {
    return (matmul_params){ .a = matmul_operand_of(call, MATMUL_A),
                            .b = matmul_operand_of(call, MATMUL_B),
                            .to = matmul_target_of_parts(call, s, sums),
                            .m = call->dim[MATMUL_M],
                            .n = call->dim[MATMUL_N],
                            .k = call->dim[MATMUL_K],
                            .down = simt_blocks(call->dim[MATMUL_M], t->rows),
                            .right = simt_blocks(call->dim[MATMUL_N], t->columns),
                            .batches = call->dim[MATMUL_G],
                            .depth = s->depth,
                            .tiles = s->parts * tiles_of(call, t) };
}

/* Float8 is widened to f16, and goes on as such. */
static bool widens(const trine_call *call) { return simt_float8(call->tensor[MATMUL_A].dtype); }

static int64_t widened_bytes(const trine_call *call) {
    return widens(call) ? (int64_t)simt_widened_of(call, MATMUL_A).bytes + (int64_t)simt_widened_of(call, MATMUL_B).bytes : 0;
}

static trine_status widen(const trine_call *call, matmul_operand *operand, int tensor, void *to) {
    const simt_widened w = simt_widened_of(call, tensor);
    const bool across = w.turned == (tensor == MATMUL_A);
    *operand = (matmul_operand){
        .data = to, .batch = operand->batch ? w.lines * w.pitch : 0, .lane = across ? 1 : w.pitch, .along = across ? w.pitch : 1, .across = across, .wide = true
    };
    return simt_widen(call, &w, to);
}

static trine_status widen_both(const trine_call *call, matmul_params *p) {
    if (!widens(call)) return TRINE_OK;
    const trine_status status = widen(call, &p->a, MATMUL_A, call->workspace);
    return status == TRINE_OK ? widen(call, &p->b, MATMUL_B, (char *)call->workspace + simt_widened_of(call, MATMUL_A).bytes) : status;
}

/* Of what is multiplied. */
static const char *type_name(const trine_call *call) { return trine_dtype_name(widens(call) ? TRINE_F16 : call->tensor[MATMUL_A].dtype); }

/* Blocks that come before the launch ahead has ended save 0.4 to 1.6 us if they are one for each processor, which holds no second. Where it does, those that come early crowd on some: f64
 * 1024 cubed in tiles of 64 x 64, 45.6 us, took 62.9 (H200). */
static bool begins_early(const tile *t, int64_t units, int64_t blocks) {
    return t->held == 1 && blocks <= units && !(t->stays && matmul_better_alone(units, blocks));
}

/* `variant`: the end of the function's name. */
static trine_status launch_tiles(const trine_call *call, const tile *t, const split *s, const matmul_params *p, const char *variant, const void *sums) {
    const int64_t units = ((const cuda_device *)call->device)->units, held = units * t->held, blocks = t->stays && held < p->tiles ? held : p->tiles;
    cuda_launch launch = {
        .blocks = blocks, .threads = t->threads, .shared = t->shared, .cached = t->groups > 0, .alone = !begins_early(t, units, blocks), .params = p
    };
    snprintf(launch.name, sizeof launch.name, "matmul_%s_%s", t->name, variant);
    const trine_status status = cuda_launch_function(call, &launch);
    return status == TRINE_OK ? matmul_add_launch(call, s, sums) : status;
}

/* ---------------------------------------------------------------------------------------------------- without tensor cores */

static const tile simt = { "simt", MATMUL_SIDE, MATMUL_SIDE, MATMUL_THREADS, 2, 35e12 / 132, 0.05 };

static size_t workspace_simt(const trine_call *call) { return (size_t)(widened_bytes(call) + split_of(call, &simt).bytes); }
static double seconds_simt(const trine_call *call) { return split_of(call, &simt).seconds; }
static trine_status launch_simt(const trine_call *call) {
    const split s = split_of(call, &simt);
    void *const sums = (char *)call->workspace + widened_bytes(call);
    matmul_params p = params_of(call, &simt, &s, sums);
    const trine_status status = widen_both(call, &p);
    return status == TRINE_OK ? launch_tiles(call, &simt, &s, &p, type_name(call), sums) : status;
}

/* Which operand has few lanes; and its own workspace, which comes before that of sums. Blocks of half the threads, where there are more than processors. */
typedef struct skinny {
    int many, held;
    matmul_side few;
    int64_t lanes, right;
    bool across;
    split split;
} skinny;

static skinny skinny_of(const trine_call *call) {
    const cuda_device *d = call->device;
    const bool swapped = call->dim[MATMUL_M] < call->dim[MATMUL_N];
    skinny s = { .many = swapped ? MATMUL_B : MATMUL_A, .few = matmul_side_of(call, swapped ? MATMUL_A : MATMUL_B, false) };
    const trine_tensor *t = &call->tensor[s.many];
    s.lanes = t->shape[swapped ? 2 : 1], s.across = t->stride[swapped ? 1 : 2] != 1;
    const int64_t block = s.across ? MATMUL_SKINNY_LINE / (int64_t)trine_dtype_size(t->dtype) : MATMUL_SKINNY_LANES;
    s.held = call->dim[MATMUL_G] * simt_blocks(s.lanes, block) > d->units ? MATMUL_SKINNY_HELD : 1;
    s.right = simt_blocks(s.lanes, s.across ? block : block / s.held);
    const int64_t blocks = call->dim[MATMUL_G] * s.right, most = call->dim[MATMUL_K] / 1024, parts = blocks > 0 ? d->units / blocks : 1;
    s.split = matmul_split_into(call, parts < most ? parts : most);
    return s;
}

static const char *refuse_skinny(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    if (type != TRINE_F32 && type != TRINE_F64) return "only products of f32 and f64";
    return call->dim[MATMUL_M] > MATMUL_SKINNY_FEW && call->dim[MATMUL_N] > MATMUL_SKINNY_FEW ? "neither m nor n is at most 8" : NULL;
}

static size_t workspace_skinny(const trine_call *call) {
    const skinny s = skinny_of(call);
    return (size_t)(s.few.bytes + s.split.bytes);
}

static void use_packed(matmul_operand *operand, const matmul_side *side, const void *packed) {
    *operand = (matmul_operand){ .data = packed, .batch = operand->batch ? side->lanes * side->pitch : 0, .lane = side->pitch, .along = 1, .wide = true };
}

static trine_status launch_skinny(const trine_call *call) {
    const skinny s = skinny_of(call);
    char *const packed = call->workspace, *const sums = packed + s.few.bytes;
    matmul_skinny_params p = { .many = matmul_operand_of(call, s.many),
                               .few = matmul_operand_of(call, s.few.tensor),
                               .to = matmul_target_of_parts(call, &s.split, sums),
                               .m = call->dim[MATMUL_M],
                               .n = call->dim[MATMUL_N],
                               .k = call->dim[MATMUL_K],
                               .lanes = s.lanes,
                               .count = s.few.lanes,
                               .right = s.right,
                               .batches = call->dim[MATMUL_G],
                               .depth = s.split.depth,
                               .swapped = s.many == MATMUL_B };
    if (s.few.packed) use_packed(&p.few, &s.few, packed);
    p.whole = p.many.wide && p.few.wide;
    int few = 1;
    while (few < p.count) few *= 2;
    cuda_launch launch = { .blocks = s.split.parts * p.batches * p.right, .threads = MATMUL_SKINNY_THREADS(few, s.across, s.held), .params = &p };
    snprintf(launch.name, sizeof launch.name, "matmul_skinny_%s_%d%c_%d", trine_dtype_name(call->tensor[MATMUL_A].dtype), few, s.across ? 'l' : 'k', s.held);
    trine_status status = matmul_side_launch(call, &s.few, packed);
    if (status == TRINE_OK) status = cuda_launch_function(call, &launch);
    return status == TRINE_OK ? matmul_add_launch(call, &s.split, sums) : status;
}

/* ------------------------------------------------------------------------------------------------------------- by mma.sync */

static const char *refuse_shared(const trine_call *call, int bytes) {
    return bytes <= ((const cuda_device *)call->device)->shared ? NULL : "a block cannot have as much shared memory";
}

/* Products of 16 bits by each tile, on an H200, by the smaller ones as estimated; others by as many bytes. */
static const tile mma_tiles[] = {
    { "mma_128x256", 128, 256, 256, 1, 500e12 / 132, .stays = true },
    { "mma_128x128", 128, 128, 128, 2, 410e12 / 132, 0.2, .stays = true },
    { "mma_64x128", 64, 128, 128, 3, 330e12 / 132, 0.6, .stays = true },
};
enum { MMA_TILES = sizeof mma_tiles / sizeof mma_tiles[0] };

/* The tile by which the call is predicted to take the least time; NULL if a block has shared memory for none. */
static const char *mma_tile(const trine_call *call, tile *best) {
    const char *why = "a block cannot have as much shared memory";
    double least = INFINITY;
    for (int i = 0; i < MMA_TILES; i++) {
        tile t = mma_tiles[i];
        t.shared = MATMUL_MMA_STAGES * (t.rows + t.columns) * 128;
        t.rate *= widens(call) ? 1 : 2.0 / (double)trine_dtype_size(call->tensor[MATMUL_A].dtype);
        if (refuse_shared(call, t.shared) != NULL) continue;
        const double seconds = split_of(call, &t).seconds;
        if (seconds >= least) continue;
        *best = t, least = seconds, why = NULL;
    }
    return why;
}

static const char *refuse_mma(const trine_call *call) {
    tile t;
    const char *why = matmul_refuse_cores(call);
    return why != NULL ? why : mma_tile(call, &t);
}

/* Tiles take longer where lanes are few. */
static bool few(const trine_call *call) { return matmul_mma_few_refuse(call) == NULL; }

static size_t workspace_mma(const trine_call *call) {
    tile t;
    if (few(call)) return matmul_mma_few_workspace(call);
    if (mma_tile(call, &t) != NULL) return 0;
    const int64_t sides = widens(call) ? widened_bytes(call) : matmul_side_of(call, MATMUL_A, true).bytes + matmul_side_of(call, MATMUL_B, true).bytes;
    return (size_t)(sides + split_of(call, &t).bytes);
}
static double seconds_mma(const trine_call *call) {
    tile t;
    if (few(call)) return matmul_mma_few_seconds(call);
    return mma_tile(call, &t) == NULL ? split_of(call, &t).seconds : INFINITY;
}

void matmul_use_side(matmul_operand *operand, const matmul_side *side, const void *packed) {
    operand->across = side->across;
    operand->wide = (uintptr_t)operand->data % 16 == 0;
    if (side->packed) use_packed(operand, side, packed);
}

static trine_status launch_mma(const trine_call *call) {
    tile t;
    if (few(call)) return matmul_mma_few_launch(call);
    const char *const why = mma_tile(call, &t);
    if (why != NULL) return call->host->error(TRINE_ERR_UNSUPPORTED, "matmul: %s", why);
    const split s = split_of(call, &t);
    const matmul_side a = matmul_side_of(call, MATMUL_A, true), b = matmul_side_of(call, MATMUL_B, true);
    char *const packed = call->workspace, *const sums = packed + (widens(call) ? widened_bytes(call) : a.bytes + b.bytes);
    matmul_params p = params_of(call, &t, &s, sums);
    trine_status status = widen_both(call, &p);
    if (!widens(call)) {
        matmul_use_side(&p.a, &a, packed);
        matmul_use_side(&p.b, &b, packed + a.bytes);
        status = matmul_side_launch(call, &a, packed);
        if (status == TRINE_OK) status = matmul_side_launch(call, &b, packed + a.bytes);
    }
    char variant[16];
    snprintf(variant, sizeof variant, "%s_%c%c", type_name(call), p.a.across ? 'l' : 'k', p.b.across ? 'l' : 'k');
    return status == TRINE_OK ? launch_tiles(call, &t, &s, &p, variant, sums) : status;
}

/* ---------------------------------------------------------------------------------------------------- f32 and f64, by tiles */

/* Kernels of one type with tiles of several sizes: that whose time is predicted to be the least of those that a block has shared memory for, or any. */
typedef struct family {
    trine_dtype type;
    const char *others; /* why other types are refused */
    int (*bytes)(int rows, int columns, int groups, int stages);
    int64_t few; /* rows or columns of d that are left to the kernel for those, if it comes later */
    int count;
    tile tiles[5];
} family;
static const family f32 = { TRINE_F32,
                            "only products of f32",
                            matmul_f32_bytes,
                            0,
                            3,
                            { { "f32_128x128", 128, 128, 256, 2, 51e12 / 132, 0.05, 1, 4 },
                              { "f32_64x128", 64, 128, 512, 1, 48e12 / 132, 0, 4, 3 },
                              { "f32_32x64", 32, 64, 256, 1, 41e12 / 132, 0, 8, 3 } } };
static const family f64 = { TRINE_F64,
                            "only products of f64",
                            matmul_f64_bytes,
                            2,
                            5,
                            { { "f64_128x128", 128, 128, 256, 1, 58e12 / 132, 0, 1, 4 },
                              { "f64_64x64", 64, 64, 128, 3, 54e12 / 132, 0.28, 1, 4 },
                              { "f64_64x32", 64, 32, 256, 1, 42e12 / 132, 0, 4, 4 },
                              { "f64_16x64", 16, 64, 128, 4, 17e12 / 132, 0.28, 1, 4 },
                              { "f64_64x16", 64, 16, 128, 4, 17e12 / 132, 0.28, 1, 4 } } };

static const char *refuse_family(const trine_call *call, const family *f, int which) {
    const char *why = "m or n is very small";
    if (call->tensor[MATMUL_A].dtype != f->type) return f->others;
    if (which == f->count && (call->dim[MATMUL_M] <= f->few || call->dim[MATMUL_N] <= f->few)) return why;
    for (const tile *t = f->tiles; t < f->tiles + f->count && why != NULL; t++)
        if (which == t - f->tiles || which == f->count) why = refuse_shared(call, f->bytes(t->rows, t->columns, t->groups, t->stages));
    return why;
}

static tile family_tile(const trine_call *call, const family *f, int which) {
    tile best = f->tiles[0];
    double least = INFINITY;
    for (int i = 0; i < f->count; i++) {
        const double seconds = split_of(call, &f->tiles[i]).seconds;
        if (seconds >= least || (which != i && which != f->count) || refuse_family(call, f, i) != NULL) continue;
        best = f->tiles[i], least = seconds;
    }
    best.shared = f->bytes(best.rows, best.columns, best.groups, best.stages);
    return best;
}

static size_t workspace_family(const trine_call *call, const family *f, int which) {
    const tile t = family_tile(call, f, which);
    return (size_t)split_of(call, &t).bytes;
}
static double seconds_family(const trine_call *call, const family *f, int which) {
    const tile t = family_tile(call, f, which);
    return split_of(call, &t).seconds;
}
static trine_status launch_family(const trine_call *call, const family *f, int which) {
    const tile t = family_tile(call, f, which);
    const split s = split_of(call, &t);
    const matmul_params p = params_of(call, &t, &s, call->workspace);
    const char variant[] = { p.a.across ? 'l' : 'k', p.b.across ? 'l' : 'k', 0 };
    return launch_tiles(call, &t, &s, &p, variant, call->workspace);
}

/* The kernel for sm_90a that its model of time prefers comes first; then each of its tiles, for tuning and for TRINE_KERNEL; then what runs everywhere. */
#define SM90(which) \
    static size_t workspace_##which(const trine_call *call) { return matmul_sm90_workspace(call, which); } \
    static trine_status launch_##which(const trine_call *call) { return matmul_sm90_launch(call, which); } \
    static double seconds_##which(const trine_call *call) { return matmul_sm90_seconds(call, which); }
#define TILES(of, which) \
    static const char *refuse_##of##_##which(const trine_call *call) { return refuse_family(call, &of, which); } \
    static size_t workspace_##of##_##which(const trine_call *call) { return workspace_family(call, &of, which); } \
    static trine_status launch_##of##_##which(const trine_call *call) { return launch_family(call, &of, which); } \
    static double seconds_##of##_##which(const trine_call *call) { return seconds_family(call, &of, which); }
#define TILES_KERNEL(name, of, which) { SIMT_NAME name, refuse_##of##_##which, workspace_##of##_##which, launch_##of##_##which, seconds_##of##_##which }
#define SM90_KERNEL(name, which) { SIMT_NAME "_sm90" name, matmul_sm90_refuse, workspace_##which, launch_##which, seconds_##which }
SM90(0)
SM90(1)
SM90(2)
SM90(3)
SM90(4)
SM90(5)
SM90(6)
SM90(7)
SM90(8)
TILES(f32, 0)
TILES(f32, 1)
TILES(f32, 2)
TILES(f32, 3)
TILES(f64, 0)
TILES(f64, 1)
TILES(f64, 2)
TILES(f64, 3)
TILES(f64, 4)
TILES(f64, 5)

SIMT_KERNELS(matmul) = {
    { SIMT_NAME "_few", matmul_few_refuse, matmul_few_workspace, matmul_few_launch, matmul_few_seconds },
    SM90_KERNEL("", 8),
    SM90_KERNEL("_pairs_256", 0),
    SM90_KERNEL("_pairs_224", 1),
    SM90_KERNEL("_pairs_128", 2),
    SM90_KERNEL("_split_128", 3),
    SM90_KERNEL("_split_64", 4),
    SM90_KERNEL("_split_32", 5),
    SM90_KERNEL("_split_16", 6),
    SM90_KERNEL("_split_8", 7),
    TILES_KERNEL("_f64", f64, 5),
    { SIMT_NAME "_skinny", refuse_skinny, workspace_skinny, launch_skinny, NULL },
    TILES_KERNEL("_f64_128x128", f64, 0),
    TILES_KERNEL("_f64_64x64", f64, 1),
    TILES_KERNEL("_f64_64x32", f64, 2),
    TILES_KERNEL("_f64_16x64", f64, 3),
    TILES_KERNEL("_f64_64x16", f64, 4),
    { SIMT_NAME "_mma", refuse_mma, workspace_mma, launch_mma, seconds_mma },
    TILES_KERNEL("_f32", f32, 3),
    TILES_KERNEL("_f32_128x128", f32, 0),
    TILES_KERNEL("_f32_64x128", f32, 1),
    TILES_KERNEL("_f32_32x64", f32, 2),
    { SIMT_NAME, matmul_refuse, workspace_simt, launch_simt, seconds_simt },
    { 0 },
};
