/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CDNA devices: the host side. */
#include "backends/simt/matmul/matmul_same_host.h"
#include "matmul.h"

#include <math.h>

#include "backends/simt/matmul/widen_host.h"
#include "backends/hip/driver/state.h"
#include "spec/places/matmul.h"

/* Tiles of a size that give the compute units of a chip enough to do: of 304, 256 or 104. */
enum { ENOUGH = 256 };

static const trine_matmul_args *args_of(const trine_call *call) { return call->args; }

static bool integer(float x) { return x == floorf(x) && fabsf(x) <= 0x1p24f; }

static int64_t tiles(const trine_call *call, int side) {
    return call->dim[MATMUL_DIM_G] * simt_blocks(call->dim[MATMUL_DIM_M], side) *
           simt_blocks(call->dim[MATMUL_DIM_N], side);
}

static const char *refuse_all(const trine_call *call) {
    const trine_matmul_args *args = args_of(call);
    const bool curved = args->activation > TRINE_ACTIVATION_RELU;
    if (call->type[MATMUL_TYPE_T] == TRINE_I8 && curved) return "an activation other than relu, of integers";
    if (call->type[MATMUL_TYPE_T] == TRINE_I8 &&
        (simt_present(call, MATMUL_A_SCALE) || simt_present(call, MATMUL_B_SCALE)))
        return "scales, of integers";
    if (call->type[MATMUL_TYPE_T] == TRINE_I8 && !(integer(args->alpha) && integer(args->beta)))
        return "a factor of integers that is none, or beyond 2^24";
    return NULL;
}

/* Larger tiles read less; smaller ones are for what would leave compute units without any. The list of kernels begins
 * with the smallest, so that each but the last refuses what the next has enough tiles of, and all can be forced on what
 * is small. */
static const char *refuse_64(const trine_call *call) {
    const char *why = refuse_all(call);
    if (why != NULL || call->type[MATMUL_TYPE_T] == TRINE_F64) return why;
    return tiles(call, 128) >= ENOUGH ? "there are enough tiles of 128" : NULL;
}
/* Float8 that the matrix unit does not multiply is widened to f16, which holds it exactly. */
static bool widens(const trine_call *call) {
    const hip_device *const d = call->device;
    return simt_float8(call->type[MATMUL_TYPE_T]) && !d->chip->float8;
}
static trine_dtype element(const trine_call *call) { return widens(call) ? TRINE_F16 : call->type[MATMUL_TYPE_T]; }
static bool narrow(const trine_call *call) {
    return element(call) == TRINE_F16 || element(call) == TRINE_BF16 || simt_float8(element(call));
}
static const char *refuse_128(const trine_call *call) {
    if (call->type[MATMUL_TYPE_T] == TRINE_F64) return "float64 has tiles of 64 only";
    const char *why = refuse_all(call);
    if (why != NULL || !narrow(call)) return why;
    return tiles(call, 256) >= ENOUGH ? "there are enough tiles of 256" : NULL;
}
static const char *refuse_256(const trine_call *call) {
    return narrow(call) ? refuse_all(call) : "tiles of 256 are for float16, bfloat16 and float8";
}

static tile_operand operand(const trine_call *call, int tensor, int along, int lane) {
    const trine_tensor *t = &call->tensor[tensor];
    const bool across = t->stride[along] != 1;
    const int outer = across ? along : lane, inner = across ? lane : along;
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), batch = t->shape[0] > 1 ? t->stride[0] : 0,
                  step = t->shape[outer] > 1 ? t->stride[outer] * size : 0;
    return (tile_operand){ .data = t->data,
                           .batch = batch,
                           .lane = t->stride[lane],
                           .along = t->stride[along],
                           .lanes = t->shape[lane],
                           .depth = t->shape[along],
                           .across = across,
                           .wide = t->stride[inner] == 1 && (uintptr_t)t->data % 16 == 0 && batch * size % 16 == 0 &&
                                   step % 16 == 0 && step >= 0 && step <= INT32_MAX / 256 &&
                                   (!across || t->shape[lane] * size % 16 == 0) };
}

/* The same, once widened to `data`. */
static tile_operand widened(const tile_operand *o, const simt_widened *w, const void *data) {
    const bool along = w->turned == (w->tensor == MATMUL_B);
    return (tile_operand){ .data = data,
                           .batch = o->batch ? w->lines * w->pitch : 0,
                           .lane = along ? w->pitch : 1,
                           .along = along ? 1 : w->pitch,
                           .lanes = o->lanes,
                           .depth = o->depth,
                           .across = !along,
                           .wide = along || o->lanes % 8 == 0 };
}

static size_t workspace(const trine_call *call) {
    return widens(call) ? (size_t)(simt_widened_of(call, MATMUL_A).bytes + simt_widened_of(call, MATMUL_B).bytes) : 0;
}

/* Its self is the side of its tiles. */
static trine_status launch(const trine_call *call) {
    const int side = *(const int *)call->self;
    const trine_matmul_args *args = args_of(call);
    const int64_t m = call->dim[MATMUL_DIM_M], n = call->dim[MATMUL_DIM_N], blocks = tiles(call, side);
    const hip_device *const d = call->device;
    const bool has_c = simt_present(call, MATMUL_C);
    matmul_params p = {
        .a = operand(call, MATMUL_A, 2, 1),
        .b = operand(call, MATMUL_B, 1, 2),
        .c = simt_rows_of(call, MATMUL_C),
        .d = simt_rows_of(call, MATMUL_D),
        .bias = simt_present(call, MATMUL_BIAS) ? call->tensor[MATMUL_BIAS].data : NULL,
        .m = m,
        .n = n,
        .k = call->dim[MATMUL_DIM_K],
        .down = simt_blocks(m, side),
        .right = simt_blocks(n, side),
        .blocks = blocks,
        .order = hip_order_of(d->chip, d->units, blocks),
        .alpha = args->alpha + 0.0f, /* -0 stands for 0 */
        .beta = args->beta + 0.0f,
        .activation = args->activation,
        .c_spread = has_c && call->tensor[MATMUL_C].stride[2] == 0,
        .c_wide = simt_aligned(call, MATMUL_C),
        .d_wide = simt_aligned(call, MATMUL_D),
        .bias_wide = simt_present(call, MATMUL_BIAS) && (uintptr_t)call->tensor[MATMUL_BIAS].data % 16 == 0,
        .row_scales = simt_scales_of(call, MATMUL_A_SCALE),
        .column_scales = simt_scales_of(call, MATMUL_B_SCALE),
    };
    if (widens(call)) {
        const simt_widened a = simt_widened_of(call, MATMUL_A), b = simt_widened_of(call, MATMUL_B);
        char *const to = call->workspace;
        p.a = widened(&p.a, &a, to), p.b = widened(&p.b, &b, to + a.bytes);
        trine_status status = simt_widen(call, &a, to);
        if (status == TRINE_OK) status = simt_widen(call, &b, to + a.bytes);
        if (status != TRINE_OK) return status;
    }
    simt_function function = { .type = { element(call), call->type[MATMUL_TYPE_O], call->type[MATMUL_TYPE_B] },
                               .variant = side };
    if (simt_float8(element(call)))
        function = (simt_function){ .type = { call->type[MATMUL_TYPE_T], call->type[MATMUL_TYPE_U],
                                              call->type[MATMUL_TYPE_O], TRINE_F32 },
                                    .variant = side };
    return simt_launch(call, &function, blocks, side == 256 ? 512 : TILE_THREADS, &p, sizeof p);
}

/* Sides of tiles, lanes beside each other in memory, and elements of k in a tile, one and two. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int side = *(const int *)call->self, depth = TILE_BYTES / (int)trine_dtype_size(element(call));
    static const int symbols[] = { MATMUL_DIM_M, MATMUL_DIM_N };
    for (int i = 0; i < 2; i++) {
        trine_kernel_edge(edges, symbols[i], side);
        trine_kernel_edge(edges, symbols[i], 2 * side);
        trine_kernel_edge(edges, symbols[i], SIMT_VECTOR);
    }
    trine_kernel_edge(edges, MATMUL_DIM_K, SIMT_VECTOR);
    trine_kernel_edge(edges, MATMUL_DIM_K, depth);
    trine_kernel_edge(edges, MATMUL_DIM_K, 2 * depth);
}

SIMT_KERNELS(matmul) = {
    { .name = SIMT_NAME "_64",
      .refuse = refuse_64,
      .workspace = workspace,
      .launch = launch,
      .edges = edges,
      .self = &(const int){ 64 } },
    { .name = SIMT_NAME "_128",
      .refuse = refuse_128,
      .workspace = workspace,
      .launch = launch,
      .edges = edges,
      .self = &(const int){ 128 } },
    { .name = SIMT_NAME "_256",
      .refuse = refuse_256,
      .workspace = workspace,
      .launch = launch,
      .edges = edges,
      .self = &(const int){ 256 } },
    MATMUL_SAME_KERNEL,
    { 0 },
};
