/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on devices: the host side. */
#include <assert.h>

#include "dropout.h"
#include "backends/simt/core/host.h"
#include "spec/places/dropout.h"

static_assert((int)DROPOUT_MASK < SIMT_WALK_TENSORS, "the walk has room for it");

static trine_status launch(const trine_call *call) {
    const trine_dropout_args *args = call->args;
    const bool none = args->p == 1, told = simt_present(call, DROPOUT_PHILOX);
    const dropout_params p = { simt_walk_of(call, call->present & ~(1u << DROPOUT_PHILOX), DROPOUT_Y),
                               simt_dropout_of(args->p, args->seed, args->offset),
                               told && !none ? call->tensor[DROPOUT_PHILOX].data : NULL };
    const bool whole = p.walk.length > 1 && p.walk.units == p.walk.row_units.by && p.walk.n % p.walk.length == 0;
    const char *const step = none || told                       ? "told"
                             : !whole                           ? NULL
                             : simt_present(call, DROPOUT_MASK) ? "whole_mask"
                                                                : "whole";
    const simt_function function = { .step = step, .type = { call->tensor[DROPOUT_Y].dtype } };
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(dropout) = { { .name = SIMT_NAME, .launch = launch, .edges = simt_walk_edges }, { 0 } };
