/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_counts on devices: the host side. */
#include <trine/text.h>

#include "ngram_counts.h"
#include "backends/simt/core/host.h"
#include "spec/places/ngram_counts.h"

static simt_rows lengths_of(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? (simt_rows){ .data = t->data, .row = t->stride[0] } : (simt_rows){ 0 };
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *references = &call->tensor[NGRAM_COUNTS_REFERENCES];
    const ngram_params p = {
        .candidates = simt_rows_of(call, NGRAM_COUNTS_CANDIDATES),
        .references = { references->data, references->stride[0], references->stride[1] },
        .matches = simt_rows_of(call, NGRAM_COUNTS_MATCHES),
        .totals = simt_rows_of(call, NGRAM_COUNTS_TOTALS),
        .lengths = lengths_of(call, NGRAM_COUNTS_LENGTHS),
        .reference_lengths = lengths_of(call, NGRAM_COUNTS_REFERENCE_LENGTHS),
        .sizes = call->tensor[NGRAM_COUNTS_SIZES].data,
        .closest = call->tensor[NGRAM_COUNTS_CLOSEST].data,
        .l = call->dim[NGRAM_COUNTS_DIM_L],
        .r = call->dim[NGRAM_COUNTS_DIM_R],
        .m = call->dim[NGRAM_COUNTS_DIM_M],
        .k = (int32_t)call->dim[NGRAM_COUNTS_DIM_K],
        .wide = call->type[NGRAM_COUNTS_TYPE_L] == TRINE_I64,
    };
    const simt_function function = { .type = { call->type[NGRAM_COUNTS_TYPE_I] } };
    return simt_launch(call, &function, call->dim[NGRAM_COUNTS_DIM_S], NGRAM_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, NGRAM_COUNTS_DIM_L, NGRAM_THREADS);
}

SIMT_KERNELS(ngram_counts) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
