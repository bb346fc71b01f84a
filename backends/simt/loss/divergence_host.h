/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that kl_div, jsd and their gradients share. */
#ifndef TRINE_SIMT_DIVERGENCE_HOST_H
#define TRINE_SIMT_DIVERGENCE_HOST_H

#include "backends/simt/core/host.h"
#include "divergence.h"

static inline row_kind divergence_kind(bool logits, bool probabilities) {
    return probabilities ? ROW_PROBABILITIES : logits ? ROW_LOGITS : ROW_LOGS;
}
static inline double divergence_factor(bool logits, float logit_scale, float beta) {
    return (logits ? logit_scale : 1.0) * (beta < 1 ? 1.0 - beta : 1.0);
}
static inline const float *divergence_floats(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? t->data : NULL;
}

static inline trine_status divergence_launch(const trine_call *call, const divergence_params *p, trine_dtype type) {
    const int threads = p->v <= DIVERGENCE_SHORT_MOST ? DIVERGENCE_SHORT : SIMT_THREADS;
    const simt_function function = { .type = { type }, .variant = threads };
    return simt_launch(call, &function, simt_blocks(p->rows, SIMT_THREADS / threads), SIMT_THREADS, p, sizeof *p);
}

static inline void divergence_edges(trine_kernel_edges *edges, int along) {
    trine_kernel_edge(edges, along, SIMT_VECTOR);
    trine_kernel_edge(edges, along, DIVERGENCE_SHORT * SIMT_VECTOR);
    trine_kernel_edge(edges, along, DIVERGENCE_SHORT_MOST + 1);
}

#endif
