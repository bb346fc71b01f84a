/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of conv2d's kernels share. */
#ifndef TRINE_SIMT_CONV2D_HOST_H
#define TRINE_SIMT_CONV2D_HOST_H

#include "conv_host.h"
#include "spec/alike.h"
#include "spec/places/conv2d.h"

TRINE_ALIKE(CONV2D_TYPE_T, SIMT_FIRST_TYPE);

static inline conv_call conv2d_call_of(const trine_call *call) {
    const trine_conv2d_args *args = call->args;
    return (conv_call){ &call->tensor[CONV2D_X],           &call->tensor[CONV2D_WEIGHT],
                        &call->tensor[CONV2D_Y],           { args->stride_h, args->stride_w },
                        { args->pad_top, args->pad_left }, { args->dilation_h, args->dilation_w } };
}

CONV_FORWARD(conv2d_call_of, CONV2D)

#endif
