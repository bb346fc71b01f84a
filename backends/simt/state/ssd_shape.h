/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters of ssd and of its gradient share, on all devices. */
#ifndef TRINE_SIMT_SSD_SHAPE_H
#define TRINE_SIMT_SSD_SHAPE_H

#include "state_host.h"

/* Of a call of OP, in blocks of `width` columns. */
#define SSD_GIVEN(call, OP, name) trine_call_given(call, OP##_##name)
#define SSD_SHAPE(call, OP, soft, width) \
    { .cu = SSD_GIVEN(call, OP, CU_SEQLENS) ? SSD_GIVEN(call, OP, CU_SEQLENS)->data : NULL, \
      .t = (call)->dim[OP##_DIM_T], \
      .h = (call)->dim[OP##_DIM_H], \
      .groups = (call)->dim[OP##_DIM_G], \
      .d = (call)->dim[OP##_DIM_N], \
      .e = (call)->dim[OP##_DIM_P], \
      .count = (call)->dim[SSD_GIVEN(call, OP, CU_SEQLENS) ? OP##_DIM_NSEQ : OP##_DIM_B], \
      .blocks = state_blocks((call)->dim[OP##_DIM_P], width), \
      .q = state_rows_of(SSD_GIVEN(call, OP, C)), \
      .k = state_rows_of(SSD_GIVEN(call, OP, B)), \
      .v = state_rows_of(SSD_GIVEN(call, OP, X)), \
      .dt = state_rows_of(SSD_GIVEN(call, OP, DT)), \
      .a = state_numbers_of(SSD_GIVEN(call, OP, A)), \
      .dt_bias = state_numbers_of(SSD_GIVEN(call, OP, DT_BIAS)), \
      .past = state_numbers_of(SSD_GIVEN(call, OP, D)), \
      .s0 = state_matrices_of(SSD_GIVEN(call, OP, S0), true), \
      .scale = 1, \
      .softplus = (soft) }

#endif
