/* SPDX-License-Identifier: Apache-2.0 */
/* Device side that policy_loss and its gradient share: a block has a sequence. */
#ifndef TRINE_SIMT_POLICY_LOSS_ROWS_H
#define TRINE_SIMT_POLICY_LOSS_ROWS_H

#include "policy_loss.h"
#include "backends/simt/core/math.h"

/* e^x of any x. */
DEVICE float power_of(float x) {
    return x > 88.0f ? (x > 89.0f ? infinity() : exp_of(x - 1.0f) * 2.71828183f) : exp_of(x);
}

/* Do offsets not ascend from 0 to at most t? All threads of a block ask together. */
DEVICE bool policy_astray(const policy_params &p) {
    if (!p.cu) return false;
    float bad = p.cu[0] != 0 || p.cu[p.sequences] > p.t ? 1.0f : 0.0f;
    for (int64_t i = thread_index(); i < p.sequences; i += SIMT_THREADS)
        if (p.cu[i + 1] < p.cu[i]) bad = 1.0f;
    return group_sum<SIMT_THREADS>(bad) > 0;
}

/* The tokens of a sequence, and what they share. */
struct policy_row {
    const policy_params &p;
    int64_t sequence, first, steps;
    float returns, count, shared; /* count: of the tokens that count */

    DEVICE int64_t place(const simt_rows &t, int64_t k) const { return (p.cu ? 0 : sequence * t.row) + first + k; }
    DEVICE float get(const simt_rows &t, int64_t k) const { return ((const float *)t.data)[place(t, k)]; }
    DEVICE bool counts(int64_t k) const {
        return !p.mask.data || ((const uint8_t *)p.mask.data)[place(p.mask, k)] != 0;
    }

    DEVICE float exponent(int64_t k) const { return p.old_logp.data ? get(p.logp, k) - get(p.old_logp, k) : 0.0f; }

    /* The sum of term(k) over the tokens that count, of all threads. */
    template <class Term> DEVICE float sum(const Term &term) const {
        float own = 0;
        for (int64_t k = thread_index(); k < steps; k += SIMT_THREADS)
            if (counts(k)) own += term(k);
        return group_sum<SIMT_THREADS>(own);
    }

    DEVICE void share() {
        int64_t own = 0;
        for (int64_t k = thread_index(); k < steps; k += SIMT_THREADS) own += counts(k);
        count = (float)group_sum<SIMT_THREADS>(own);
        shared = 1;
        if (p.one_ratio && count > 0) shared = power_of(sum([&](int64_t k) { return exponent(k); }) / count);
    }

    DEVICE float ratio(int64_t k) const { return p.one_ratio ? shared : power_of(exponent(k)); }
    DEVICE float advantage(int64_t k) const { return (p.advantages.data ? get(p.advantages, k) : 0.0f) + returns; }
    DEVICE bool above(float ratio, float a) const { return a > 0 && ratio > p.high; }
    DEVICE bool below(float ratio, float a) const { return a < 0 && ratio < p.low; }

    DEVICE float surrogate(int64_t k) const {
        const float x = ratio(k), a = advantage(k);
        return -((above(x, a) ? p.high : below(x, a) ? p.low : x) * a);
    }
    DEVICE float slope(int64_t k) const {
        const float x = ratio(k), a = advantage(k);
        return above(x, a) || below(x, a) ? 0.0f : -(x * a);
    }

    /* The divergence, if there is one, and its derivative. */
    DEVICE float divergence(int64_t k) const {
        if (!p.ref_logp.data || p.kl_weight == 0) return 0;
        const float d = get(p.ref_logp, k) - get(p.logp, k);
        return p.kl_weight * ((power_of(d) - 1.0f) - d);
    }
    DEVICE float divergence_slope(int64_t k) const {
        if (!p.ref_logp.data || p.kl_weight == 0) return 0;
        return p.kl_weight * (1.0f - power_of(get(p.ref_logp, k) - get(p.logp, k)));
    }
};

DEVICE policy_row policy_row_of(const policy_params &p, int64_t i, bool astray) {
    policy_row r = { p, i, 0, p.t, 0, 0, 1 };
    if (p.cu) r.first = astray ? 0 : p.cu[i], r.steps = astray ? 0 : p.cu[i + 1] - r.first;
    if (p.returns) r.returns = p.returns[i];
    r.share();
    return r;
}

#endif
