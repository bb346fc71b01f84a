/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CDNA devices: the host side. */
#include "matmul.h"

#include <math.h>

#include "backends/simt/host.h"

/* Places in the table of the specification. */
enum { A, B, C, BIAS, D };
enum { GA, M, K, GB, N, G };
enum { T, O };

/* Tiles of a size that give the compute units of a chip enough to do: of 304, 256 or 104. */
enum { ENOUGH = 256 };

static const trine_matmul_args *args_of(const trine_call *call) { return call->args; }

static bool integer(float x) { return x == floorf(x) && fabsf(x) <= 0x1p24f; }

static int64_t tiles(const trine_call *call, int side) { return call->dim[G] * simt_blocks(call->dim[M], side) * simt_blocks(call->dim[N], side); }

static const char *refuse_all(const trine_call *call) {
    const trine_matmul_args *args = args_of(call);
    const bool curved = args->activation > TRINE_ACTIVATION_RELU;
    if (call->type[T] == TRINE_F64 && curved) return "float64 with an activation other than relu";
    if (call->type[T] == TRINE_I8 && curved) return "an activation other than relu, of integers";
    if (call->type[T] == TRINE_I8 && !(integer(args->alpha) && integer(args->beta))) return "a factor of integers that is none, or beyond 2^24";
    return NULL;
}

/* Larger tiles read less; smaller ones are for what would leave compute units without any. The list of kernels begins with the smallest, so that each but the
 * last refuses what the next has enough tiles of, and all can be forced on what is small. */
static const char *refuse_64(const trine_call *call) {
    const char *why = refuse_all(call);
    if (why != NULL || call->type[T] == TRINE_F64) return why;
    return tiles(call, 128) >= ENOUGH ? "there are enough tiles of 128" : NULL;
}
static bool halves(const trine_call *call) { return call->type[T] == TRINE_F16 || call->type[T] == TRINE_BF16; }
static const char *refuse_128(const trine_call *call) {
    if (call->type[T] == TRINE_F64) return "float64 has tiles of 64 only";
    const char *why = refuse_all(call);
    if (why != NULL || !halves(call)) return why;
    return tiles(call, 256) >= ENOUGH ? "there are enough tiles of 256" : NULL;
}
static const char *refuse_256(const trine_call *call) { return halves(call) ? refuse_all(call) : "tiles of 256 are for float16 and bfloat16"; }

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
                           .wide = t->stride[inner] == 1 && (uintptr_t)t->data % 16 == 0 && batch * size % 16 == 0 && step % 16 == 0 && step >= 0 &&
                                   step <= INT32_MAX / 256 && (!across || t->shape[lane] * size % 16 == 0) };
}

static trine_status launch(const trine_call *call, int side) {
    const trine_matmul_args *args = args_of(call);
    const int64_t g = call->dim[G], m = call->dim[M], n = call->dim[N];
    const bool has_c = simt_present(call, C);
    const matmul_params p = {
        .a = operand(call, A, 2, 1),
        .b = operand(call, B, 1, 2),
        .c = simt_rows_of(call, C),
        .d = simt_rows_of(call, D),
        .bias = simt_present(call, BIAS) ? call->tensor[BIAS].data : NULL,
        .m = m,
        .n = n,
        .k = call->dim[K],
        .down = simt_blocks(m, side),
        .right = simt_blocks(n, side),
        .alpha = args->alpha + 0.0f, /* -0 stands for 0 */
        .beta = args->beta + 0.0f,
        .activation = args->activation,
        .c_spread = has_c && call->tensor[C].stride[2] == 0,
        .c_wide = simt_aligned(call, C),
        .d_wide = simt_aligned(call, D),
        .bias_wide = simt_present(call, BIAS) && (uintptr_t)call->tensor[BIAS].data % 16 == 0,
    };
    simt_function function = { .variant = side };
    for (int i = 0; i < call->plan->types; i++) function.type[i] = call->type[i];
    return simt_launch(call, &function, g * p.down * p.right, side == 256 ? 512 : TILE_THREADS, &p, sizeof p);
}

static trine_status launch_64(const trine_call *call) { return launch(call, 64); }
static trine_status launch_128(const trine_call *call) { return launch(call, 128); }
static trine_status launch_256(const trine_call *call) { return launch(call, 256); }

SIMT_KERNELS(matmul) = {
    { .name = SIMT_NAME "_64", .refuse = refuse_64, .launch = launch_64 },
    { .name = SIMT_NAME "_128", .refuse = refuse_128, .launch = launch_128 },
    { .name = SIMT_NAME "_256", .refuse = refuse_256, .launch = launch_256 },
    { 0 },
};
