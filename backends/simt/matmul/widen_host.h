/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of widening an operand of float8 to f16 in workspace. */
#ifndef TRINE_SIMT_WIDEN_HOST_H
#define TRINE_SIMT_WIDEN_HOST_H

#include "backends/simt/core/host.h"
#include "widen.h"

static inline bool simt_float8(trine_dtype dtype) { return dtype == TRINE_E4M3 || dtype == TRINE_E5M2; }

/* An operand [batch] rows columns, either of which may be consecutive, and stays so. */
typedef struct simt_widened {
    int tensor;
    bool turned;          /* rows are consecutive, not columns */
    int64_t lines, pitch; /* elements from line to line, `lines` of them to a matrix */
    int64_t bytes;
} simt_widened;

static inline simt_widened simt_widened_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    simt_widened w = { .tensor = tensor, .turned = t->stride[2] != 1 };
    w.lines = t->shape[w.turned ? 2 : 1];
    w.pitch = simt_blocks(t->shape[w.turned ? 1 : 2], 8) * 8;
    w.bytes = simt_blocks(t->shape[0] * w.lines * w.pitch * 2, 256) * 256;
    return w;
}

static inline trine_status simt_widen(const trine_call *call, const simt_widened *w, void *to) {
    const trine_tensor *t = &call->tensor[w->tensor];
    const int line = w->turned ? 2 : 1;
    const simt_widen_params p = { .from = t->data,
                                  .to = to,
                                  .batch = t->stride[0],
                                  .row = t->stride[line],
                                  .batches = t->shape[0],
                                  .rows = w->lines,
                                  .columns = t->shape[3 - line],
                                  .pitch = w->pitch,
                                  .aligned = (uintptr_t)t->data % 8 == 0 &&
                                             (w->lines == 1 || t->stride[line] % 8 == 0) &&
                                             (t->shape[0] == 1 || t->stride[0] % 8 == 0) };
    const simt_function function = { .step = "widen", .type = { t->dtype } };
    const int64_t vectors = p.batches * p.rows * (p.pitch / 8);
    return simt_launch(call, &function, simt_blocks(vectors, SIMT_WIDEN_THREADS), SIMT_WIDEN_THREADS, &p, sizeof p);
}

#endif
