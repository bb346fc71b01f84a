/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of attention for sm_90a, and tensor maps of what they copy. */
#ifndef TRINE_CUDA_ATTENTION_SM90_HOST_H
#define TRINE_CUDA_ATTENTION_SM90_HOST_H

#include "attention_host.h"
#include "backends/cuda/tile/map.h"

/* Why copies of boxes cannot read some of the tensors of `set`, all of which are b s h d; NULL if they can. Where the
 * tensors begin does not count. */
const char *attention_sm90_refuse_tensors(const trine_call *call, uint32_t set);

/* A tensor b s h d in boxes of `rows` tokens of 64 columns, as d, s, h, b; it need not begin at 16 bytes, but then
 * copies cannot read it (`moved_out`). */
trine_status attention_sm90_encode(const trine_call *call, int tensor, int rows, tensor_map *map_out, bool *moved_out);

/* The self of such a kernel: the tile it has, or the one that is predicted to take the least time. */
typedef struct attention_sm90_shape {
    int queries, keys; /* 0: any */
} attention_sm90_shape;

const char *attention_sm90_refuse(const trine_call *call);
double attention_sm90_seconds(const trine_call *call);
trine_status attention_sm90_launch(const trine_call *call);
void attention_sm90_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
