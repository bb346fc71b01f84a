/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on devices: the host side. */
#include "matmul_scaled.h"
#include "backends/simt/core/host.h"
#include "spec/places/matmul_scaled.h"
#include "spec/scaled/blocks.h"

static const char *refuse(const trine_call *call) {
    const trine_dtype b = call->type[MATMUL_SCALED_TYPE_B];
    if ((b == TRINE_E4M3 || b == TRINE_E5M2) && call->dim[MATMUL_SCALED_DIM_P] != call->dim[MATMUL_SCALED_DIM_Q])
        return "b of two elements in a byte that take 8 bits";
    return call->dim[MATMUL_SCALED_DIM_P] > INT32_MAX / 4 ? "rows of more than 2^29 bytes" : NULL;
}

static scaled_type type_of(trine_dtype type) {
    switch (type) {
    case TRINE_F32: return SCALED_AS_F32;
    case TRINE_BF16: return SCALED_AS_BF16;
    case TRINE_F16: return SCALED_AS_F16;
    case TRINE_E8M0: return SCALED_AS_E8M0;
    default: return SCALED_AS_E4M3;
    }
}

static scaled_kind kind_of(trine_dtype type, bool packed, bool e2m1) {
    if (packed) return e2m1 ? SCALED_IS_E2M1 : SCALED_IS_HALF;
    return type == TRINE_E4M3 ? SCALED_IS_E4M3 : type == TRINE_E5M2 ? SCALED_IS_E5M2 : SCALED_IS_BYTE;
}

static scaled_side side_of(const trine_call *call, int data, int scale, int64_t k, scaled_kind kind, int32_t offset) {
    const trine_tensor *t = &call->tensor[data], *scales = &call->tensor[scale];
    const bool scaled = simt_present(call, scale), half = kind >= SCALED_IS_E2M1,
               is_signed = t->dtype == TRINE_I8 && kind != SCALED_IS_E2M1;
    const int64_t run = half ? SCALED_RUN / 2 : SCALED_RUN;
    return (scaled_side){ .data = t->data,
                          .scale = scaled ? scales->data : NULL,
                          .row = t->stride[0],
                          .scale_row = scaled ? scales->stride[0] : 0,
                          .rows = t->shape[0],
                          .row_block = scaled_block(t->shape[0], scaled ? scales->shape[0] : 1),
                          .block = simt_divisor_of(scaled_block(k, scaled ? scales->shape[1] : 1)),
                          .flip = !is_signed ? 0
                                  : half     ? 0x88888888u
                                             : 0x80808080u,
                          .none = offset + (!is_signed ? 0
                                            : half     ? 8
                                                       : 128),
                          .kind = kind,
                          .scale_type = scaled ? type_of(scales->dtype) : SCALED_AS_F32,
                          .aligned = (int64_t)(uintptr_t)t->data % run == 0 && t->stride[0] % run == 0 };
}

static scaled_params params_of(const trine_call *call) {
    const trine_matmul_scaled_args *args = call->args;
    const trine_tensor *d = &call->tensor[MATMUL_SCALED_D];
    const bool both = args->format == TRINE_SCALED_E2M1_BOTH, e2m1 = args->format >= TRINE_SCALED_E2M1;
    const int64_t k = call->dim[MATMUL_SCALED_DIM_P] * (both ? 2 : 1);
    const trine_dtype *type = call->type;
    return (scaled_params){
        .a = side_of(call, MATMUL_SCALED_A, MATMUL_SCALED_A_SCALE, k, kind_of(type[MATMUL_SCALED_TYPE_A], both, true),
                     0),
        .b = side_of(call, MATMUL_SCALED_B, MATMUL_SCALED_B_SCALE, k,
                     kind_of(type[MATMUL_SCALED_TYPE_B], call->dim[MATMUL_SCALED_DIM_Q] < k, e2m1), args->offset),
        .d = d->data,
        .bias = simt_present(call, MATMUL_SCALED_BIAS) ? call->tensor[MATMUL_SCALED_BIAS].data : NULL,
        .d_row = d->stride[0],
        .k = (int32_t)k,
        .activation = args->activation,
        .alpha = args->alpha,
        .out_type = type_of(d->dtype),
        .bias_type = type_of(type[MATMUL_SCALED_TYPE_V])
    };
}

/* Does a run of elements that begins at a multiple of its length have one scale? */
static bool has_runs(const scaled_side *s, int32_t k) { return s->block.by >= k || s->block.by % SCALED_RUN == 0; }

static trine_status launch(const trine_call *call) {
    scaled_params p = params_of(call);
    const int64_t m = p.a.rows, n = p.b.rows, teams = SIMT_THREADS / SCALED_TEAM;
    if (m <= SCALED_FEW && has_runs(&p.a, p.k) && has_runs(&p.b, p.k)) {
        const int side = m == 1 ? 1 : SCALED_SIDE;
        p.down = simt_blocks(m, side);
        return simt_launch(call, &(simt_function){ .step = "few", .variant = side }, p.down * simt_blocks(n, teams),
                           SIMT_THREADS, &p, sizeof p);
    }
    p.down = simt_blocks(m, SCALED_ROWS);
    return simt_launch(call, &(simt_function){ 0 }, p.down * simt_blocks(n, SCALED_COLUMNS), SIMT_THREADS, &p,
                       sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, 1);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SCALED_SIDE);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SCALED_FEW);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SCALED_ROWS);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, SCALED_COLUMNS);
}

SIMT_KERNELS(matmul_scaled) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
