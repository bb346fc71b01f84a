/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan_backward on devices: linear_scan's threads, whose steps run from the last to the first.
 *
 * NOTES. Floor: dy, g and y once, dx and dg once, and so it is where there are channels enough. */
#include "scan.inl.h"

template <class T> DEVICE void linear_scan_backward(const linear_scan_backward_params &p) {
    const scan_task a = scan_task_of(p.shape);
    if (!a.there) return;
    if (a.room) {
        scan_clear<T>(p.shape, a, p.dx);
        scan_clear<T>(p.shape, a, p.dg);
        return;
    }
    struct terms {
        typename T::bits dy, g, y;
    };
    const auto dy = scan_line_of<T>(p.shape, a, p.dy), g = scan_line_of<T>(p.shape, a, p.g),
               y = scan_line_of<T>(p.shape, a, p.y), dx = scan_line_of<T>(p.shape, a, p.dx),
               dg = scan_line_of<T>(p.shape, a, p.dg);
    const float *const h0 = scan_state(a, p.h0), *const dlast = scan_state(a, p.dlast);
    float *const dh0 = scan_state(a, p.dh0);
    const int64_t end = a.steps - 1;
    /* of the step after; behind the last a gate of 1 leaves dlast as it is */
    float dh = dlast ? *dlast : 0.0f, gate = dlast ? 1.0f : 0.0f;
    scan_each(
        a.steps,
        [&](int64_t k) { return terms{ dy[end - k], g[end - k], k < end ? y[end - k - 1] : (typename T::bits)0 }; },
        [&](int64_t k, const terms &in) {
            dh = fused(gate, dh, T::get(in.dy));
            gate = T::get(in.g);
            dx[end - k] = T::put(dh);
            dg[end - k] = T::put(k < end ? dh * T::get(in.y) : h0 ? dh * *h0 : 0.0f);
        });
    if (dh0) *dh0 = a.astray ? not_a_number() : gate * dh;
}

ENTRY(linear_scan_backward_f32, SCAN_THREADS, linear_scan_backward_params) { linear_scan_backward<f32>(p); }
ENTRY(linear_scan_backward_bf16, SCAN_THREADS, linear_scan_backward_params) { linear_scan_backward<bf16>(p); }
ENTRY(linear_scan_backward_f16, SCAN_THREADS, linear_scan_backward_params) { linear_scan_backward<f16>(p); }
