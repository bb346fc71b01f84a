/* SPDX-License-Identifier: Apache-2.0 */
/* policy_loss on devices. */
#include "policy_loss_rows.h"

ENTRY(policy_loss, SIMT_THREADS, policy_params) {
    const bool astray = policy_astray(p);
    const policy_row r = policy_row_of(p, block_index(), astray);
    const float sum = r.sum([&](int64_t k) { return r.surrogate(k) + r.divergence(k); });
    if (thread_index() > 0) return;
    p.loss[r.sequence] = astray ? not_a_number() : p.mean && r.count > 0 ? sum / r.count : sum;
}
