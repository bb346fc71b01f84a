/* SPDX-License-Identifier: Apache-2.0 */
/* The launch that rope and rope_backward share. */
#ifndef TRINE_SIMT_ROPE_LAUNCH_H
#define TRINE_SIMT_ROPE_LAUNCH_H

#include "backends/simt/core/host.h"

/* Rotates by the angle times `sign`. */
trine_status rope_launch(const trine_call *call, bool interleaved, float sign);
void rope_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
