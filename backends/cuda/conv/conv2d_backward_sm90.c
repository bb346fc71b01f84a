/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of conv2d by x on sm_90a: the host side. */
#include "conv2d_backward_sm90_host.h"

#include "backends/simt/conv/conv2d_backward_host.h"
#include "conv_sm90_host.h"

const char *conv2d_backward_sm90_refuse(const trine_call *call, int tile, int slices, const conv_params *p) {
    const char *const why = conv_sm90_refuse(call, p);
    (void)slices;
    return why == NULL && tile == 0 ? conv_sm90_slower(call, p) : why;
}

void conv2d_backward_sm90_set(const trine_call *call, int tile, int slices, conv_params *p) {
    conv_sm90_set(call, &(const conv_sm90_choice){ tile, slices }, p);
}

trine_status conv2d_backward_sm90_dx(const trine_call *call, int tile, int slices, conv_params *p) {
    return conv_sm90_launch(call, &(const conv_sm90_choice){ tile, slices }, p, "conv2d_backward_sm90", "dx_end");
}
