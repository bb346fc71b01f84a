/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters of gated_delta and of its gradient share, on all devices. */
#ifndef TRINE_SIMT_GATED_DELTA_SHAPE_H
#define TRINE_SIMT_GATED_DELTA_SHAPE_H

#include "state_host.h"

/* Of a call of OP, in blocks of `width` columns. */
#define GATED_DELTA_GIVEN(call, OP, name) trine_call_given(call, OP##_##name)
#define GATED_DELTA_SHAPE(call, OP, by, width) \
    { .cu = GATED_DELTA_GIVEN(call, OP, CU_SEQLENS) ? GATED_DELTA_GIVEN(call, OP, CU_SEQLENS)->data : NULL, \
      .t = (call)->dim[OP##_DIM_T], \
      .h = (call)->dim[OP##_DIM_H], \
      .groups = (call)->dim[OP##_DIM_HK], \
      .d = (call)->dim[OP##_DIM_D], \
      .e = (call)->dim[OP##_DIM_E], \
      .count = (call)->dim[GATED_DELTA_GIVEN(call, OP, CU_SEQLENS) ? OP##_DIM_NSEQ : OP##_DIM_B], \
      .blocks = state_blocks((call)->dim[OP##_DIM_E], width), \
      .q = state_rows_of(GATED_DELTA_GIVEN(call, OP, Q)), \
      .k = state_rows_of(GATED_DELTA_GIVEN(call, OP, K)), \
      .v = state_rows_of(GATED_DELTA_GIVEN(call, OP, V)), \
      .g = state_rows_of(GATED_DELTA_GIVEN(call, OP, G)), \
      .beta = state_rows_of(GATED_DELTA_GIVEN(call, OP, BETA)), \
      .s0 = state_matrices_of(GATED_DELTA_GIVEN(call, OP, S0), false), \
      .scale = (by) == 0 ? (float)(1 / sqrt((double)(call)->dim[OP##_DIM_D])) : (by) }

#endif
