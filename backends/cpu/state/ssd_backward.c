/* SPDX-License-Identifier: Apache-2.0 */
/* ssd_backward on the CPU: the gradient of the recurrence, and then sums over all steps. */
#include "backward.h"
#include "spec/places/ssd_backward.h"

#define DIM(name) call->dim[SSD_BACKWARD_DIM_##name]
#define GIVEN(name) trine_call_given(call, SSD_BACKWARD_##name)

static state_gradient plan_of(const trine_call *call) {
    const trine_ssd_backward_args *args = call->args;
    const trine_tensor *cu = GIVEN(CU_SEQLENS);
    state_gradient a = {
        .job = { .call = call,
                 .cu = cu ? cu->data : NULL,
                 .t = DIM(T),
                 .h = DIM(H),
                 .groups = DIM(G),
                 .d = DIM(N),
                 .e = DIM(P),
                 .count = cu ? DIM(NSEQ) : DIM(B),
                 .q = GIVEN(C),
                 .k = GIVEN(B),
                 .v = GIVEN(X),
                 .s0 = GIVEN(S0),
                 .dt = GIVEN(DT),
                 .a = GIVEN(A),
                 .dt_bias = GIVEN(DT_BIAS),
                 .past = GIVEN(D),
                 .softplus = args->softplus,
                 .scale = 1 },
        .dout = GIVEN(DY),
        .dlast = GIVEN(DLAST),
        .dq = GIVEN(DC),
        .dk = GIVEN(DB),
        .dv = GIVEN(DX),
        .ds0 = GIVEN(DS0),
        .ddt = GIVEN(DDT),
    };
    state_gradient_plan(&a, DIM(B), cu != NULL);
    a.of_a = call->workspace;
    if (a.of_a == NULL) return a;
    a.of_a += a.team * state_buffer_floats(&a);
    a.of_past = a.of_a + a.job.h * a.rows;
    a.of_dt = a.of_past + a.job.h * a.rows;
    return a;
}

static size_t workspace(const trine_call *call) {
    const state_gradient a = plan_of(call);
    return state_gradient_bytes(&a);
}

/* Of rows of terms, and then of the rows' sums. */
static float sum_of(const float *x, int64_t n) {
    float all = 0;
    for (int64_t first = 0; first < n; first += STATE_ROW) {
        const int64_t end = n - first < STATE_ROW ? n : first + STATE_ROW;
        float row = 0;
        for (int64_t i = first; i < end; i++) row += x[i];
        all += row;
    }
    return all;
}

static trine_status launch(const trine_call *call) {
    const state_gradient a = plan_of(call);
    const trine_status status = state_gradient_run(&a);
    if (status != TRINE_OK) return status;
    const trine_tensor *da = GIVEN(DA), *dd = GIVEN(DD), *ddt_bias = GIVEN(DDT_BIAS);
    for (int64_t head = 0; head < a.job.h; head++) {
        const int64_t at = head * a.rows;
        ((float *)da->data)[head] = sum_of(a.of_a + at, a.rows);
        if (dd) ((float *)dd->data)[head] = sum_of(a.of_past + at, a.rows);
        if (ddt_bias) ((float *)ddt_bias->data)[head] = sum_of(a.of_dt + at, a.rows);
    }
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SSD_BACKWARD_DIM_N, VL);
    trine_kernel_edge(edges, SSD_BACKWARD_DIM_P, STATE_WIDTH);
    trine_kernel_edge(edges, SSD_BACKWARD_DIM_T, STATE_LEAST_CHUNK);
    trine_kernel_edge(edges, SSD_BACKWARD_DIM_T, STATE_LEAST_CHUNK * STATE_LEAST_CHUNK);
}

CPU_KERNELS(ssd_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
