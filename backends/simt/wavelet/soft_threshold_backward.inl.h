/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold_backward on devices: a block has a part of a band.
 *
 * NOTES. Floor: x and dy once, dx once. */
#include "threshold.inl.h"

template <class T> DEVICE void soft_threshold_backward(const threshold_params &p) {
    using value = typename conv_summed<T>::type;
    const int64_t band = block_index() / p.parts, first = block_index() % p.parts * THRESHOLD_PART, size = p.h * p.w,
                  end = first + THRESHOLD_PART < size ? first + THRESHOLD_PART : size;
    const value threshold = threshold_get<T>(p.threshold, band * p.threshold_step);
    double sum = 0;
    for (int64_t at = first + thread_index(); at < end; at += SIMT_THREADS) {
        const value x = threshold_get<T>(p.x.data, threshold_place(p, p.x, band, at)),
                    dy = threshold_get<T>(p.dy.data, threshold_place(p, p.dy, band, at)),
                    rest = threshold_size(x) - threshold,
                    own = rest > 0       ? dy
                          : rest == rest ? 0
                                         : rest;
        sum += x < 0 ? (double)own : -(double)own;
        if (p.y.data) threshold_set<T>(p.y.data, threshold_place(p, p.y, band, at), own);
    }
    sum = group_sum<SIMT_THREADS>(sum);
    if (thread_index() == 0) p.partial[block_index()] = sum;
}

template <class T> DEVICE void soft_threshold_backward_finish(const threshold_params &p) {
    double sum = 0;
    for (int64_t part = thread_index(); part < p.parts; part += SIMT_THREADS)
        sum += p.partial[block_index() * p.parts + part];
    sum = group_sum<SIMT_THREADS>(sum);
    if (thread_index() == 0) threshold_set<T>(p.to, block_index() * p.to_step, (typename conv_summed<T>::type)sum);
}

ENTRY(soft_threshold_backward_f32, SIMT_THREADS, threshold_params) { soft_threshold_backward<f32>(p); }
ENTRY(soft_threshold_backward_f64, SIMT_THREADS, threshold_params) { soft_threshold_backward<f64>(p); }
ENTRY(soft_threshold_backward_finish_f32, SIMT_THREADS, threshold_params) { soft_threshold_backward_finish<f32>(p); }
ENTRY(soft_threshold_backward_finish_f64, SIMT_THREADS, threshold_params) { soft_threshold_backward_finish<f64>(p); }
