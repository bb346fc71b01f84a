/* SPDX-License-Identifier: Apache-2.0 */
/* policy_loss_backward on devices. */
#include "policy_loss_rows.h"

/* Tokens from `first` to the end. */
DEVICE void policy_fill(const policy_params &p, int64_t first, float x) {
    for (int64_t k = first + thread_index(); k < p.t; k += SIMT_THREADS) ((float *)p.dlogp.data)[k] = x;
}

/* Of packed sequences the block behind the last has the room behind it. */
ENTRY(policy_loss_backward, SIMT_THREADS, policy_params) {
    const bool astray = policy_astray(p);
    if (block_index() == p.sequences) {
        policy_fill(p, astray ? 0 : p.cu[p.sequences], astray ? not_a_number() : 0.0f);
        return;
    }
    const policy_row r = policy_row_of(p, block_index(), astray);
    const float own = p.dloss[r.sequence], g = p.mean && r.count > 0 ? own / r.count : own;
    float shared = 0;
    if (p.one_ratio && r.count > 0) shared = r.sum([&](int64_t k) { return r.slope(k); }) / r.count;
    for (int64_t k = thread_index(); k < r.steps; k += SIMT_THREADS) {
        const float slope = p.one_ratio ? shared : r.slope(k);
        ((float *)p.dlogp.data)[r.place(p.dlogp, k)] = r.counts(k) ? g * (slope + r.divergence_slope(k)) : 0.0f;
    }
}
