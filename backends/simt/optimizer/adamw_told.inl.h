/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of the scalars of a step of AdamW. */
#ifndef TRINE_SIMT_ADAMW_TOLD_INL_H
#define TRINE_SIMT_ADAMW_TOLD_INL_H

#include "adamw_told.h"
#include "backends/simt/core/simt.h"

/* 1 - e^x for -1/4 < x <= 0, to the last bits of itself: 15 terms of its series. */
DEVICE double adamw_rest_of_small(double x) {
    double sum = 1;
#pragma unroll
    for (int i = 15; i > 1; i--) sum = 1 + x * (1.0 / i) * sum;
    return -x * sum;
}
/* And for any x <= 0, to 2^-42: e^x is the 256th power of e^(x/256); below 2^-66 it does not count. */
DEVICE double adamw_rest(double x) {
    if (x > -0.25) return adamw_rest_of_small(x);
    if (x < -46) return 1;
    double power = 1 - adamw_rest_of_small(x / 256);
#pragma unroll
    for (int i = 0; i < 8; i++) power *= power;
    return 1 - power;
}

/* A number of a step that only the host could refuse makes NaN. */
DEVICE adamw_scalars adamw_scalars_told(const adamw_told_params &p) {
    const double lr = p.lr ? *p.lr : p.lr_here;
    const int64_t step = p.step ? *p.step : p.step_here;
    const float rate = (float)(lr / adamw_rest((double)step * p.log1)); /* 1 - beta^t without cancellation */
    return { (float)(lr * p.weight_decay), step < 1 ? not_a_number() : rate,
             (float)(1 / square_root(adamw_rest((double)step * p.log2))) };
}

#endif
