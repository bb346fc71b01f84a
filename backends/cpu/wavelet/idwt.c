/* SPDX-License-Identifier: Apache-2.0 */
/* idwt on the CPU: a task makes a row. */
#include "spec/places/idwt.h"
#include "wavelet.h"

#define REAL float
#define NAME(name) name##_f32
#include "synthesise.inl.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "synthesise.inl.h"

static wavelet idwt_of(const trine_call *call) {
    const trine_idwt_args *args = call->args;
    wavelet a = wavelet_of(call, &call->tensor[IDWT_X], &call->tensor[IDWT_Y], wavelet_filters_of(args->wavelet, 1),
                           args->edge);
    a.slice = cpu_round_up((2 * a.q + 4 * (a.w / 2 + 2) + a.filters.taps + a.w) * a.size, 64);
    return a;
}
static int team_of(const wavelet *a) { return cpu_team(a->call, a->n * a->h, wavelet_bytes(a)); }

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
    const wavelet a = idwt_of(call);
    return (size_t)team_of(&a) * (size_t)a.slice;
}

static trine_status launch(const trine_call *call) {
    const wavelet a = idwt_of(call);
    cpu_shares(call, team_of(&a), a.n * a.h, rows, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const wavelet a = idwt_of(call);
    trine_kernel_edge(edges, IDWT_DIM_W, 2 * VL);
    if (a.w > 0) cpu_team_edge(edges, IDWT_DIM_H, a.w * a.size);
}

CPU_KERNELS(idwt) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
