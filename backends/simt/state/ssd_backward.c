/* SPDX-License-Identifier: Apache-2.0 */
/* ssd_backward on devices: the host side. */
#include "state_host.h"
#include "spec/places/ssd_backward.h"

#define DIM(name) call->dim[SSD_BACKWARD_DIM_##name]
#define GIVEN(name) trine_call_given(call, SSD_BACKWARD_##name)

static state_backward_params params_of(const trine_call *call) {
    const trine_ssd_backward_args *args = call->args;
    const trine_tensor *cu = GIVEN(CU_SEQLENS);
    return (state_backward_params){
        .shape = { .cu = cu ? cu->data : NULL,
                   .t = DIM(T),
                   .h = DIM(H),
                   .groups = DIM(G),
                   .d = DIM(N),
                   .e = DIM(P),
                   .count = cu ? DIM(NSEQ) : DIM(B),
                   .blocks = DIM(P) > 0 ? simt_blocks(DIM(P), STATE_BACK_WIDTH) : 1,
                   .q = state_rows_of(GIVEN(C)),
                   .k = state_rows_of(GIVEN(B)),
                   .v = state_rows_of(GIVEN(X)),
                   .dt = state_rows_of(GIVEN(DT)),
                   .a = state_numbers_of(GIVEN(A)),
                   .dt_bias = state_numbers_of(GIVEN(DT_BIAS)),
                   .past = state_numbers_of(GIVEN(D)),
                   .s0 = state_matrices_of(GIVEN(S0), true),
                   .scale = 1,
                   .softplus = args->softplus },
        .dout = state_rows_of(GIVEN(DY)),
        .dq = state_rows_of(GIVEN(DC)),
        .dk = state_rows_of(GIVEN(DB)),
        .dv = state_rows_of(GIVEN(DX)),
        .ddt = state_rows_of(GIVEN(DDT)),
        .dlast = state_matrices_of(GIVEN(DLAST), true),
        .ds0 = state_matrices_of(GIVEN(DS0), true),
        .da = state_numbers_of(GIVEN(DA)),
        .dpast = state_numbers_of(GIVEN(DD)),
        .ddt_bias = state_numbers_of(GIVEN(DDT_BIAS)),
    };
}

static size_t workspace(const trine_call *call) {
    state_backward_params p = params_of(call);
    const int64_t floats = state_backward_plan(&p, DIM(B), GIVEN(CU_SEQLENS) != NULL, NULL);
    return (size_t)(floats + 3 * DIM(H) * p.rows) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    state_backward_params p = params_of(call);
    state_backward_plan(&p, DIM(B), GIVEN(CU_SEQLENS) != NULL, call->workspace);
    const simt_function heads = { .step = "heads" };
    const trine_status status = state_backward_launch(call, &p);
    return status == TRINE_OK ? simt_launch(call, &heads, 3 * DIM(H), SIMT_THREADS, &p, sizeof p) : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, SSD_BACKWARD_DIM_N, SSD_BACKWARD_DIM_P, SSD_BACKWARD_DIM_T, STATE_BACK_WIDTH, STATE_LEAST_CHUNK);
}

SIMT_KERNELS(ssd_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
