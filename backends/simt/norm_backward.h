/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that rms_norm_backward and layer_norm_backward share. `dweight` and `dbias` are tensors' numbers, -1 where an op has none; `p` is all but where
 * the sums go. */
#ifndef TRINE_SIMT_NORM_BACKWARD_H
#define TRINE_SIMT_NORM_BACKWARD_H

#include "host.h"
#include "norm.h"

/* Partial sums of dweight, then of dbias, where they are asked for. */
size_t norm_backward_workspace(const trine_call *call, norm_backward_params p, int dweight, int dbias);

trine_status norm_backward_launch(const trine_call *call, norm_backward_params *p, int dweight, int dbias);

#endif
