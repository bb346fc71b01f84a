/* SPDX-License-Identifier: Apache-2.0 */
/* sure_risk on devices: a block has a part of a band and some of the thresholds, then a block the parts of one.
 *
 * NOTES. Floor: x once for each eight thresholds, of which all but the first come from caches; of each element and
 * threshold a comparison, an addition in f64 of what does not exceed it, or one to a count of what does. */
#include "threshold.inl.h"

template <class T> DEVICE void sure_risk(const threshold_params &p) {
    using value = typename conv_summed<T>::type;
    const int64_t groups = (p.g + SURE_THRESHOLDS - 1) / SURE_THRESHOLDS, tile = block_index() / groups,
                  first = (block_index() - tile * groups) * SURE_THRESHOLDS, band = tile / p.parts,
                  part = tile - band * p.parts, size = p.h * p.w, begin = part * SURE_PART,
                  end = begin + SURE_PART < size ? begin + SURE_PART : size;
    value threshold[SURE_THRESHOLDS];
    double sum[SURE_THRESHOLDS] = {};
    int beyond[SURE_THRESHOLDS] = {};
#pragma unroll
    for (int k = 0; k < SURE_THRESHOLDS; k++)
        threshold[k] = first + k < p.g ? threshold_get<T>(p.threshold, (first + k) * p.threshold_step) : (value)0;
    for (int64_t at = begin + thread_index(); at < end; at += SIMT_THREADS) {
        const value a = threshold_size(threshold_get<T>(p.x.data, threshold_place(p, p.x, band, at)));
        const double square = (double)a * (double)a;
#pragma unroll
        for (int k = 0; k < SURE_THRESHOLDS; k++) {
            const bool more = a > threshold[k];
            beyond[k] += more ? 1 : 0;
            if (!more) sum[k] += square;
        }
    }
    const int steps = begin + thread_index() < end ? (int)((end - begin - thread_index() - 1) / SIMT_THREADS) + 1 : 0;
#pragma unroll
    for (int k = 0; k < SURE_THRESHOLDS; k++) {
        const double t = (double)threshold[k];
        double own = sum[k] + p.variance * (2 * beyond[k] - steps);
        if (beyond[k] > 0) own += t * t * beyond[k];
        own = group_sum<SIMT_THREADS>(own);
        if (thread_index() == 0 && first + k < p.g)
            p.partial[(band * p.g + first + k) * p.parts + part] = t == t ? own : t;
    }
}

template <class T> DEVICE void sure_risk_finish(const threshold_params &p) {
    const int64_t band = block_index() / p.g, number = block_index() - band * p.g;
    double sum = 0;
    for (int64_t part = thread_index(); part < p.parts; part += SIMT_THREADS)
        sum += p.partial[block_index() * p.parts + part];
    sum = group_sum<SIMT_THREADS>(sum);
    if (thread_index() == 0)
        threshold_set<T>(p.to, band * p.to_band + number * p.to_step, (typename conv_summed<T>::type)sum);
}

ENTRY(sure_risk_f32, SIMT_THREADS, threshold_params) { sure_risk<f32>(p); }
ENTRY(sure_risk_f64, SIMT_THREADS, threshold_params) { sure_risk<f64>(p); }
ENTRY(sure_risk_finish_f32, SIMT_THREADS, threshold_params) { sure_risk_finish<f32>(p); }
ENTRY(sure_risk_finish_f64, SIMT_THREADS, threshold_params) { sure_risk_finish<f64>(p); }
