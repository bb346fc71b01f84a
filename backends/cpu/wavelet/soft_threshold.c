/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold on the CPU: row by row. */
#include "spec/places/soft_threshold.h"
#include "threshold.h"

#define REAL float
#define ABS fabsf
#define COPY_SIGN copysignf
#define NAME(name) name##_f32
#include "soft_threshold.inl.h"
#undef REAL
#undef ABS
#undef COPY_SIGN
#undef NAME
#define REAL double
#define ABS fabs
#define COPY_SIGN copysign
#define NAME(name) name##_f64
#include "soft_threshold.inl.h"

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_tensor *x = &call->tensor[SOFT_THRESHOLD_X];
    const bands from = bands_of(x), to = bands_of(&call->tensor[SOFT_THRESHOLD_Y]);
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t band = i / x->shape[1], row = i % x->shape[1];
        const double threshold = element_of(&call->tensor[SOFT_THRESHOLD_THRESHOLD], band);
        (x->dtype == TRINE_F64 ? row_f64 : row_f32)(band_row(&to, band, row), band_row(&from, band, row), threshold,
                                                    x->shape[2], to.step, from.step);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *x = &call->tensor[SOFT_THRESHOLD_X];
    const int64_t count = x->shape[0] * x->shape[1];
    cpu_shares(call, cpu_team(call, count, bands_bytes(x, 2)), count, rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SOFT_THRESHOLD_DIM_W, VL);
}

CPU_KERNELS(soft_threshold) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
