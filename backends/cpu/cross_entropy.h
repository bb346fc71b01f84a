/* SPDX-License-Identifier: Apache-2.0 */
/* What cross_entropy and its gradient share on the CPU: their labels, and their exponential. */
#ifndef TRINE_CPU_CROSS_ENTROPY_H
#define TRINE_CPU_CROSS_ENTROPY_H

#include "cpu.h"
#include "vec_pair.h"

static inline int64_t label_at(const trine_tensor *labels, int64_t i) {
    return labels->dtype == TRINE_I32 ? ((const int32_t *)labels->data)[i] : ((const int64_t *)labels->data)[i];
}

/* The first row of [first, last) whose label is neither in [0, v) nor `ignore`; last if there is none. */
static inline int64_t label_bad(const trine_tensor *labels, int64_t first, int64_t last, int64_t v, int64_t ignore) {
    for (int64_t i = first; i < last; i++) {
        const int64_t y = label_at(labels, i);
        if ((y < 0 || y >= v) && y != ignore) return i;
    }
    return last;
}

/* TRINE_OK if every label is in [0, v) or `ignore`; else an error that names the first that is not. */
static inline trine_status labels_check(const trine_call *call, const trine_tensor *labels, int64_t v, int64_t ignore) {
    const int64_t rows = labels->shape[0], bad = label_bad(labels, 0, rows, v, ignore);
    if (bad == rows) return TRINE_OK;
    return call->host->error(TRINE_ERR_ARGUMENT, "%s: labels[%lld] = %lld is neither in [0, v = %lld) nor the ignored label %lld", call->plan->spec->name,
                             (long long)bad, (long long)label_at(labels, bad), (long long)v, (long long)ignore);
}

/* log2(e) times the scale of the logits: exponentials are powers of two of x times this. */
static inline float base2_scale(float scale) { return (float)(scale * 1.4426950408889634); }

/* 2^x for |x| <= 126, at a third of the work of vexp. Error below 2 ulp. */
INLINE vf exp2_near(vf x) {
    const vf magic = vset(0x1.8p23f + 127);      /* adding it rounds to an integer, biased as an exponent is, in the low bits */
    const vf t = x + magic, f = x + (magic - t); /* not t - magic, for which GCC makes another constant */
    vf p = vset(1.32693991e-3f);
    p = vfma(p, f, vset(9.67129413e-3f));
    p = vfma(p, f, vset(5.55071123e-2f));
    p = vfma(p, f, vset(2.40222469e-1f));
    p = vfma(p, f, vset(6.93147004e-1f));
    p = vfma(p, f, vset(1.0f));
    return p * (vf)((vi)t << 23);
}

/* The same for any x; results below 2^-126 count as 0, and those above 2^127 may be Inf. */
INLINE vf exp2_of(vf x) { return exp2_near(vmin(vset(128.0f), vmax(vset(-127.0f), x))); }

#endif
