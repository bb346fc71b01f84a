/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_route_backward's host side passes to its device side. */
#ifndef TRINE_SIMT_MOE_ROUTE_BACKWARD_H
#define TRINE_SIMT_MOE_ROUTE_BACKWARD_H

#include "backends/simt/core/params.h"

typedef struct route_backward_params {
    simt_rows dweights, logits, experts, dscores, dlogits;
    int64_t tokens;
    int32_t type; /* of the logits: ROUTE_F32, ... */
    int32_t e, k;
    float scale;
    bool sigmoid, renormalise;
} route_backward_params;

#endif
