/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold on devices: a thread has an element.
 *
 * NOTES. Floor: x once, y once. */
#include "threshold.inl.h"

template <class T> DEVICE void soft_threshold(const threshold_params &p) {
    using value = typename conv_summed<T>::type;
    const int64_t number = block_index() * SIMT_THREADS + thread_index(), size = p.h * p.w;
    if (number >= p.b * size) return;
    const int64_t band = quotient_below(p.b * size, number, p.band), at = number - band * size;
    const value x = threshold_get<T>(p.x.data, threshold_place(p, p.x, band, at)),
                rest = threshold_size(x) - threshold_get<T>(p.threshold, band * p.threshold_step);
    const bool negative = x < 0 || (x == 0 && 1 / x < 0);
    threshold_set<T>(p.y.data, threshold_place(p, p.y, band, at),
                     rest > 0       ? negative ? -rest : rest
                     : rest == rest ? 0
                                    : rest);
}

ENTRY(soft_threshold_f32, SIMT_THREADS, threshold_params) { soft_threshold<f32>(p); }
ENTRY(soft_threshold_f64, SIMT_THREADS, threshold_params) { soft_threshold<f64>(p); }
