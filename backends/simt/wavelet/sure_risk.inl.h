/* SPDX-License-Identifier: Apache-2.0 */
/* sure_risk on devices: a block has a threshold of a band.
 *
 * NOTES. Floor: x once; here once for each threshold, from the caches. */
#include "threshold.inl.h"

template <class T> DEVICE void sure_risk(const threshold_params &p) {
    using value = typename conv_summed<T>::type;
    const int64_t band = block_index() / p.g, number = block_index() % p.g, size = p.h * p.w;
    const double threshold = threshold_get<T>(p.threshold, number * p.threshold_step);
    double sum = 0;
    for (int64_t at = thread_index(); at < size; at += SIMT_THREADS) {
        const double a = threshold_size((double)threshold_get<T>(p.x.data, threshold_place(p, p.x, band, at))),
                     least = a > threshold ? threshold : a;
        sum += least * least + (a > threshold ? p.variance : -p.variance);
    }
    sum = group_sum<SIMT_THREADS>(sum);
    if (threshold != threshold && size > 0) sum = threshold;
    if (thread_index() == 0) threshold_set<T>(p.to, band * p.to_band + number * p.to_step, (value)sum);
}

ENTRY(sure_risk_f32, SIMT_THREADS, threshold_params) { sure_risk<f32>(p); }
ENTRY(sure_risk_f64, SIMT_THREADS, threshold_params) { sure_risk<f64>(p); }
