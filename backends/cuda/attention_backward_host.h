/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention as the host sides of its kernels see it. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_HOST_H
#define TRINE_CUDA_ATTENTION_BACKWARD_HOST_H

#include "attention_sm90_host.h"

/* Tensors, in the order of the specification. */
enum {
    ATTENTION_BACKWARD_DOUT,
    ATTENTION_BACKWARD_Q,
    ATTENTION_BACKWARD_K,
    ATTENTION_BACKWARD_V,
    ATTENTION_BACKWARD_O,
    ATTENTION_BACKWARD_LSE,
    ATTENTION_BACKWARD_CU_Q,
    ATTENTION_BACKWARD_CU_K,
    ATTENTION_BACKWARD_DQ,
    ATTENTION_BACKWARD_DK,
    ATTENTION_BACKWARD_DV
};

/* All but delta, tiles and columns. */
attention_backward_params attention_backward_params_of(const trine_call *call);

/* Why tensor cores cannot run the call; NULL if they can. */
const char *attention_backward_refuse_tiles(const trine_call *call);

const char *attention_backward_sm90_refuse(const trine_call *call);
size_t attention_backward_sm90_workspace(const trine_call *call);
trine_status attention_backward_sm90_launch(const trine_call *call);

#endif
