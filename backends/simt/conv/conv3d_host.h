/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of conv3d's kernels share. */
#ifndef TRINE_SIMT_CONV3D_HOST_H
#define TRINE_SIMT_CONV3D_HOST_H

#include "conv_host.h"
#include "spec/alike.h"
#include "spec/places/conv3d.h"

TRINE_ALIKE(CONV3D_TYPE_T, SIMT_FIRST_TYPE);

static inline conv_call conv3d_call_of(const trine_call *call) {
    const trine_conv3d_args *args = call->args;
    return (conv_call){ &call->tensor[CONV3D_X],
                        &call->tensor[CONV3D_WEIGHT],
                        &call->tensor[CONV3D_Y],
                        { args->stride_d, args->stride_h, args->stride_w },
                        { args->pad_front, args->pad_top, args->pad_left },
                        { args->dilation_d, args->dilation_h, args->dilation_w } };
}

CONV_FORWARD(conv3d_call_of, CONV3D)

#endif
