/* SPDX-License-Identifier: Apache-2.0 */
/* bleu on devices: the host side. */
#include <trine/text.h>

#include "bleu.h"
#include "backends/simt/core/host.h"
#include "spec/places/bleu.h"

static float amount_of(const trine_bleu_args *a) {
    if (a->amount > 0) return a->amount;
    return a->smoothing == TRINE_BLEU_SMOOTH_FLOOR ? 0.1f : a->smoothing == TRINE_BLEU_SMOOTH_ADD ? 1 : 5;
}

static trine_status launch(const trine_call *call) {
    const trine_bleu_args *args = call->args;
    const bleu_params p = {
        .matches = simt_rows_of(call, BLEU_MATCHES),
        .totals = simt_rows_of(call, BLEU_TOTALS),
        .sizes = call->tensor[BLEU_SIZES].data,
        .closest = call->tensor[BLEU_CLOSEST].data,
        .scores = simt_present(call, BLEU_SCORES) ? call->tensor[BLEU_SCORES].data : NULL,
        .corpus = simt_present(call, BLEU_CORPUS) ? call->tensor[BLEU_CORPUS].data : NULL,
        .s = call->dim[BLEU_DIM_S],
        .k = (int32_t)call->dim[BLEU_DIM_K],
        .smoothing = args->smoothing,
        .missing = args->missing,
        .amount = amount_of(args),
    };
    trine_status status = TRINE_OK;
    if (p.scores)
        status = simt_launch(call, &(simt_function){ .step = "sentences" }, simt_blocks(p.s, SIMT_THREADS),
                             SIMT_THREADS, &p, sizeof p);
    if (p.corpus && status == TRINE_OK)
        status = simt_launch(call, &(simt_function){ .step = "corpus" }, 1, SIMT_THREADS, &p, sizeof p);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, BLEU_DIM_S, SIMT_THREADS);
}

SIMT_KERNELS(bleu) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
