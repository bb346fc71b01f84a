/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan on devices: a thread has a channel of a sequence, and takes its steps one after the other.
 *
 * NOTES. Floor: x and g once, y once, and so it is where there are channels enough. */
#include "scan.inl.h"

template <class T> DEVICE void linear_scan(const linear_scan_params &p) {
    const scan_task a = scan_task_of(p.shape);
    if (!a.there) return;
    if (a.room) {
        scan_clear<T>(p.shape, a, p.y);
        return;
    }
    struct terms {
        typename T::bits x, g;
    };
    const auto x = scan_line_of<T>(p.shape, a, p.x), g = scan_line_of<T>(p.shape, a, p.g),
               y = scan_line_of<T>(p.shape, a, p.y);
    const float *const h0 = scan_state(a, p.h0);
    float *const last = scan_state(a, p.last);
    float h = h0 ? *h0 : 0.0f;
    const bool alone = h0 == nullptr;
    scan_each(
        a.steps, [&](int64_t k) { return terms{ x[k], g[k] }; },
        [&](int64_t k, const terms &in) {
            h = fused(alone && k == 0 ? 0.0f : T::get(in.g), h, T::get(in.x));
            y[k] = T::put(h);
        });
    if (last) *last = a.astray ? not_a_number() : h;
}

ENTRY(linear_scan_f32, SCAN_THREADS, linear_scan_params) { linear_scan<f32>(p); }
ENTRY(linear_scan_bf16, SCAN_THREADS, linear_scan_params) { linear_scan<bf16>(p); }
ENTRY(linear_scan_f16, SCAN_THREADS, linear_scan_params) { linear_scan<f16>(p); }
