/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_match on devices: the host side. */
#include "ngram_match.h"
#include "backends/simt/core/host.h"
#include "spec/places/ngram_match.h"

static trine_status launch(const trine_call *call) {
    const trine_ngram_match_args *args = call->args;
    const trine_tensor *lengths = trine_call_given(call, NGRAM_MATCH_LENGTHS);
    const ngram_match_params p = { .tokens = simt_rows_of(call, NGRAM_MATCH_TOKENS),
                                   .draft = simt_rows_of(call, NGRAM_MATCH_DRAFT),
                                   .lengths = lengths ? lengths->data : NULL,
                                   .counts = call->tensor[NGRAM_MATCH_COUNTS].data,
                                   .s = call->dim[NGRAM_MATCH_DIM_S],
                                   .m = call->dim[NGRAM_MATCH_DIM_M],
                                   .most = args->n_max,
                                   .least = args->n_min,
                                   .wide = call->type[NGRAM_MATCH_TYPE_I] == TRINE_I64,
                                   .long_lengths = lengths && lengths->dtype == TRINE_I64,
                                   .first = args->first };
    return simt_launch(call, &(simt_function){ 0 }, call->dim[NGRAM_MATCH_DIM_B], NGRAM_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, NGRAM_MATCH_DIM_S, NGRAM_THREADS);
    trine_kernel_edge(edges, NGRAM_MATCH_DIM_M, NGRAM_THREADS);
}

SIMT_KERNELS(ngram_match) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
