/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and its gradient as the host sides of their kernels see them. */
#ifndef TRINE_CUDA_ATTENTION_HOST_H
#define TRINE_CUDA_ATTENTION_HOST_H

#include "attention.h"
#include "backends/simt/attention/attention_options_host.h"
#include "backends/simt/core/host.h"
#include "backends/cuda/driver/state.h"
#include "spec/attention/attention_places.h"

attention_problem attention_problem_of(const trine_call *call, attention_asked asked);

/* A tensor b s h d; and one b h s, which may be absent. */
attention_tensor attention_tokens_of(const trine_call *call, int tensor);
attention_tensor attention_statistic_of(const trine_call *call, int tensor);

/* All of attention's but tiles and columns. */
attention_params attention_params_of(const trine_call *call);

/* Columns of a block, for heads of so many elements, where they are not those of a tile. */
enum { ATTENTION_NARROW = 64, ATTENTION_WIDE = 128 };
static inline int attention_width(int64_t d) { return d <= ATTENTION_NARROW ? ATTENTION_NARROW : ATTENTION_WIDE; }

/* The edges of the kernels without tensor cores. */
void attention_edges_simt(const trine_call *call, trine_kernel_edges *edges);

/* Why no kernel here can run the call; NULL if one can. */
const char *attention_refuse(const trine_call *call);
/* likewise, none of tensor cores */
const char *attention_refuse_tiles(const trine_call *call, float scale, float softcap);
/* likewise, none that leaves options out */
const char *attention_refuse_options(const attention_problem *at);

#endif
