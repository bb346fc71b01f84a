/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold_backward on the CPU: row by row, whose sums the workspace holds. */
#include "spec/places/soft_threshold_backward.h"
#include "threshold.h"

#define REAL float
#define ABS fabsf
#define NAME(name) name##_f32
#include "soft_threshold_backward.inl.h"
#undef REAL
#undef ABS
#undef NAME
#define REAL double
#define ABS fabs
#define NAME(name) name##_f64
#include "soft_threshold_backward.inl.h"

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_tensor *x = &call->tensor[SOFT_THRESHOLD_BACKWARD_X];
    const bands from = bands_of(x), dy = bands_of(&call->tensor[SOFT_THRESHOLD_BACKWARD_DY]),
                dx = bands_of(trine_call_given(call, SOFT_THRESHOLD_BACKWARD_DX));
    const int64_t step[3] = { dx.step, dy.step, from.step };
    double *sums = call->workspace;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t band = i / x->shape[1], row = i % x->shape[1];
        const double threshold = element_of(&call->tensor[SOFT_THRESHOLD_BACKWARD_THRESHOLD], band);
        sums[i] = (x->dtype == TRINE_F64 ? row_f64 : row_f32)(band_row(&dx, band, row), band_row(&dy, band, row),
                                                              band_row(&from, band, row), threshold, x->shape[2], step);
    }
}

static int64_t rows_of(const trine_call *call) {
    const trine_tensor *x = &call->tensor[SOFT_THRESHOLD_BACKWARD_X];
    return x->shape[0] * x->shape[1];
}

static size_t workspace(const trine_call *call) { return (size_t)rows_of(call) * sizeof(double); }

static trine_status launch(const trine_call *call) {
    const trine_tensor *x = &call->tensor[SOFT_THRESHOLD_BACKWARD_X],
                       *to = trine_call_given(call, SOFT_THRESHOLD_BACKWARD_DTHRESHOLD);
    const int64_t count = rows_of(call), size = (int64_t)trine_dtype_size(x->dtype);
    const double *sums = call->workspace;
    cpu_shares(call, cpu_team(call, count, bands_bytes(x, 3)), count, rows, call);
    for (int64_t band = 0; to && band < x->shape[0]; band++) {
        double sum = 0;
        for (int64_t row = 0; row < x->shape[1]; row++) sum += sums[band * x->shape[1] + row];
        element_put((char *)to->data + band * to->stride[0] * size, to->dtype, sum);
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SOFT_THRESHOLD_BACKWARD_DIM_W, BAND_LANES);
}

CPU_KERNELS(soft_threshold_backward) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
