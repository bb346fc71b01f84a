/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of attention_decode's kernels have in common. */
#ifndef TRINE_SIMT_ATTENTION_DECODE_LAUNCH_H
#define TRINE_SIMT_ATTENTION_DECODE_LAUNCH_H

#include "attention_decode.h"
#include "backends/simt/core/host.h"
#include "spec/places/attention_decode.h"

/* The larger of d and dv. */
int64_t attention_decode_widest(const trine_call *call);

const char *attention_decode_refuse(const trine_call *call);

/* Of the parts' records. */
size_t attention_decode_workspace(const trine_call *call);

/* Are queries, keys and values rows of whole units of 8 elements, aligned if the first is? */
bool attention_decode_whole(const trine_call *call);

/* All but row_tiles. */
decode_params attention_decode_params_of(const trine_call *call);

/* The launch that merges parts. */
trine_status attention_decode_merge(const trine_call *call, const decode_params *p);

/* Of columns, parts and rows. */
void attention_decode_edges(const trine_call *call, trine_kernel_edges *edges);

/* A block for R rows of a head of keys each, and a part of the keys: any type and columns. */
trine_status attention_decode_launch(const trine_call *call);
void attention_decode_launch_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
