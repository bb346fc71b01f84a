/* SPDX-License-Identifier: Apache-2.0 */
/* sample on devices: the host side. */
#include "sample.h"
#include "backends/simt/core/host.h"
#include "spec/places/sample.h"

static void *data_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_sample_args *args = call->args;
    const sample_params p = {
        .logits = simt_rows_of(call, SAMPLE_LOGITS),
        .counts = simt_rows_of(call, SAMPLE_COUNTS),
        .temperatures = data_of(call, SAMPLE_TEMPERATURES),
        .top_ps = data_of(call, SAMPLE_TOP_PS),
        .min_ps = data_of(call, SAMPLE_MIN_PS),
        .top_ks = data_of(call, SAMPLE_TOP_KS),
        .tokens = call->tensor[SAMPLE_TOKENS].data,
        .probabilities = data_of(call, SAMPLE_PROBABILITIES),
        .key = { args->seed, args->offset, data_of(call, SAMPLE_PHILOX) },
        .v = call->dim[SAMPLE_DIM_V],
        .temperature = args->temperature,
        .top_p = args->top_p,
        .min_p = args->min_p,
        .penalty = args->repetition_penalty,
        .inverse = (float)(1 / (double)args->repetition_penalty),
        .presence = args->presence_penalty,
        .frequency = args->frequency_penalty,
        .top_k = args->top_k,
        .wide = simt_aligned(call, SAMPLE_LOGITS) && simt_aligned(call, SAMPLE_COUNTS),
        .long_tokens = call->type[SAMPLE_TYPE_I] == TRINE_I64,
    };
    const simt_function function = { .type = { call->type[SAMPLE_TYPE_T] } };
    return simt_launch(call, &function, call->dim[SAMPLE_DIM_R], DRAW_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SAMPLE_DIM_V, SIMT_VECTOR);
    trine_kernel_edge(edges, SAMPLE_DIM_V, DRAW_PARTS);
    trine_kernel_edge(edges, SAMPLE_DIM_V, DRAW_THREADS);
}

SIMT_KERNELS(sample) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
