/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_route's host side passes to its device side. */
#ifndef TRINE_SIMT_MOE_ROUTE_H
#define TRINE_SIMT_MOE_ROUTE_H

#include "backends/simt/core/params.h"

enum {
    ROUTE_LANES = 32, /* threads of a token */
    ROUTE_FEW = 8,    /* experts that each of them holds, */
    ROUTE_MANY = 32,  /* or so many, in blocks of half as many tokens */
    ROUTE_TOKENS = 8, /* of a block */
    ROUTE_TOKENS_MANY = 4
};

enum { ROUTE_F32, ROUTE_BF16, ROUTE_F16 };

typedef struct route_params {
    simt_rows logits, weights, experts, scores;
    const float *bias; /* NULL: none */
    int64_t tokens;
    simt_divisor group_size;
    int32_t logit_type;                /* ROUTE_F32, ... */
    int32_t e, k, groups, groups_kept; /* groups: 0 where the choice is among all */
    float scale;
    bool sigmoid, renormalise;
} route_params;

#endif
