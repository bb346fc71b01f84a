/* SPDX-License-Identifier: Apache-2.0 */
/* dwt on the CPU: a task makes a row of each band. */
#include "spec/places/dwt.h"
#include "wavelet.h"

#define REAL float
#define NAME(name) name##_f32
#include "analyse.inl.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "analyse.inl.h"

static wavelet dwt_of(const trine_call *call) {
    const trine_dwt_args *args = call->args;
    wavelet a =
        wavelet_of(call, &call->tensor[DWT_X], &call->tensor[DWT_Y], wavelet_filters_of(args->wavelet, 0), args->edge);
    a.slice = cpu_round_up((2 * a.w + 4 * a.q + a.filters.taps) * a.size, 64);
    return a;
}
static int team_of(const wavelet *a) { return cpu_team(a->call, a->n * a->p, wavelet_bytes(a)); }

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const wavelet *a = context;
    for (int64_t i = first; i < last; i++) {
        if (a->size == 4)
            row_f32(a, i, thread);
        else
            row_f64(a, i, thread);
    }
}

static size_t workspace(const trine_call *call) {
    const wavelet a = dwt_of(call);
    return (size_t)team_of(&a) * (size_t)a.slice;
}

static trine_status launch(const trine_call *call) {
    const wavelet a = dwt_of(call);
    cpu_shares(call, team_of(&a), a.n * a.p, rows, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const wavelet a = dwt_of(call);
    trine_kernel_edge(edges, DWT_DIM_Q, VL);
    if (a.q > 0) cpu_team_edge(edges, DWT_DIM_P, a.w * a.size);
}

CPU_KERNELS(dwt) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
