/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CDNA devices: the host side. */
#include "matmul.h"

#include <math.h>

#include "backends/simt/host.h"

/* Places in the table of the specification. */
enum { A, B, C, BIAS, D };
enum { GA, M, K, GB, N, G };
enum { T, O };

enum {
    SMALL = 64, /* sides of tiles */
    LARGE = 128,
    ENOUGH = 256 /* large tiles for the compute units of a chip; with fewer they are made smaller */
};

static const trine_matmul_args *args_of(const trine_call *call) { return call->args; }

static bool integer(float x) { return x == floorf(x) && fabsf(x) <= 0x1p24f; }

static const char *refuse(const trine_call *call) {
    const trine_matmul_args *args = args_of(call);
    const bool curved = args->activation > TRINE_ACTIVATION_RELU;
    if (call->type[T] == TRINE_F64 && curved) return "float64 with an activation other than relu";
    if (call->type[T] == TRINE_I8 && curved) return "an activation other than relu, of integers";
    if (call->type[T] == TRINE_I8 && !(integer(args->alpha) && integer(args->beta))) return "a factor of integers that is none, or beyond 2^24";
    return NULL;
}

/* Does every row of an operand begin at a multiple of 16 bytes? `along` is the dimension that is contiguous. */
static bool wide(const trine_tensor *t, int along, int lane) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    return t->stride[along] == 1 && (uintptr_t)t->data % 16 == 0 && (t->shape[lane] == 1 || t->stride[lane] * size % 16 == 0) &&
           (t->shape[0] == 1 || t->stride[0] * size % 16 == 0);
}

static tile_operand operand(const trine_call *call, int tensor, int along, int lane) {
    const trine_tensor *t = &call->tensor[tensor];
    return (tile_operand){ .data = t->data,
                           .batch = t->shape[0] > 1 ? t->stride[0] : 0,
                           .lane = t->stride[lane],
                           .along = t->stride[along],
                           .lanes = t->shape[lane],
                           .depth = t->shape[along],
                           .wide = wide(t, along, lane) };
}

static trine_status launch(const trine_call *call) {
    const trine_matmul_args *args = args_of(call);
    const int64_t g = call->dim[G], m = call->dim[M], n = call->dim[N];
    const bool has_c = simt_present(call, C);
    const bool few = g * simt_blocks(m, LARGE) * simt_blocks(n, LARGE) < ENOUGH;
    const int side = few || call->type[T] == TRINE_F64 ? SMALL : LARGE;
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
    return simt_launch(call, &function, g * p.down * p.right, TILE_THREADS, &p, sizeof p);
}

SIMT_KERNELS(matmul) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch }, { 0 } };
