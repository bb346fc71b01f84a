/* SPDX-License-Identifier: Apache-2.0 */
/* sure_risk on the CPU: a task has a threshold of a band. */
#include "spec/places/sure_risk.h"
#include "threshold.h"

#define REAL float
#define NAME(name) name##_f32
#include "sure_risk.inl.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "sure_risk.inl.h"

static void risks(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_sure_risk_args *args = call->args;
    const trine_tensor *x = &call->tensor[SURE_RISK_X], *to = &call->tensor[SURE_RISK_RISK];
    const bands from = bands_of(x);
    const double variance = (double)args->sigma * args->sigma;
    const int64_t g = to->shape[1], size = (int64_t)trine_dtype_size(x->dtype);
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t band = i / g, number = i % g;
        const double threshold = element_of(&call->tensor[SURE_RISK_THRESHOLD], number);
        double sum[BAND_LANES] = { 0 }, all = 0;
        for (int64_t row = 0; row < x->shape[1]; row++)
            (x->dtype == TRINE_F64 ? row_f64 : row_f32)(sum, band_row(&from, band, row), threshold, variance,
                                                        x->shape[2], from.step);
        for (int l = 0; l < BAND_LANES; l++) all += sum[l];
        if (threshold != threshold && x->shape[1] * x->shape[2] > 0) all = threshold;
        element_put((char *)to->data + (band * to->stride[0] + number * to->stride[1]) * size, to->dtype, all);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *x = &call->tensor[SURE_RISK_X], *to = &call->tensor[SURE_RISK_RISK];
    const int64_t count = to->shape[0] * to->shape[1];
    cpu_tasks(call, cpu_team(call, count, bands_bytes(x, (double)to->shape[1])), count, risks, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SURE_RISK_DIM_W, BAND_LANES);
}

CPU_KERNELS(sure_risk) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
