/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that policy_loss and its gradient share. */
#ifndef TRINE_SIMT_POLICY_LOSS_HOST_H
#define TRINE_SIMT_POLICY_LOSS_HOST_H

#include "backends/simt/core/host.h"
#include "policy_loss.h"

#define POLICY_FIELDS(call, args, OP) \
    .logp = simt_rows_of(call, OP##_LOGP), .old_logp = simt_rows_of(call, OP##_OLD_LOGP), \
    .ref_logp = simt_rows_of(call, OP##_REF_LOGP), .advantages = simt_rows_of(call, OP##_ADVANTAGES), \
    .mask = simt_rows_of(call, OP##_MASK), \
    .returns = trine_call_given(call, OP##_RETURNS) ? (call)->tensor[OP##_RETURNS].data : NULL, \
    .cu = trine_call_given(call, OP##_CU_SEQLENS) ? (call)->tensor[OP##_CU_SEQLENS].data : NULL, \
    .t = (call)->dim[OP##_DIM_T], .sequences = (call)->dim[OP##_DIM_S], .low = 1.0f - (args)->clip_low, \
    .high = 1.0f + (args)->clip_high, .kl_weight = (args)->kl_weight, .one_ratio = (args)->sequence_ratio, \
    .mean = (args)->mean

#endif
