/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy's launches that backends share, and what they pass to device code. */
#ifndef TRINE_SIMT_CROSS_ENTROPY_LAUNCH_H
#define TRINE_SIMT_CROSS_ENTROPY_LAUNCH_H

#include "cross_entropy.h"
#include "host.h"

enum { CROSS_ENTROPY_LOGITS, CROSS_ENTROPY_LABELS, CROSS_ENTROPY_LOSS, CROSS_ENTROPY_LSE, CROSS_ENTROPY_DLOSS, CROSS_ENTROPY_DLOGITS };

cross_entropy_params cross_entropy_params_of(const trine_call *call);

/* Rows through registers. */
trine_status cross_entropy_launch(const trine_call *call);

#endif
