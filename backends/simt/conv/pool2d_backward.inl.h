/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d_backward on devices: a thread has an element of x, and looks at all windows that hold it; of each it finds the
 * largest anew.
 *
 * NOTES. Floor: x and dy once, dx once; what windows share is read from the caches. */
#include "pool.inl.h"

/* Windows [first, last) that may hold place `at`. */
struct pool_windows {
    int64_t first, last;

    DEVICE pool_windows(const pool_axis &a, int64_t at) {
        const int64_t end = at + a.pad, start = end - (a.kernel - 1) * a.dilation;
        first = start > 0 ? floor_quotient(start + a.stride - 1, a.stride) : 0;
        const int64_t behind = floor_quotient(end, a.stride) + 1;
        last = behind < a.out ? behind : a.out;
    }
};

DEVICE bool pool_holds(const pool_axis &a, const pool_part &part, int64_t at) {
    const int64_t far = at - part.first;
    if (far < 0) return false;
    const int64_t tap = floor_quotient(far, a.dilation);
    return tap * a.dilation == far && tap < part.count;
}

template <class T> DEVICE void pool2d_backward(const pool_params &p) {
    using value = typename conv_summed<T>::type;
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.n * p.h.in * p.w.in * p.c) return;
    const pool_place at(p, number, p.h.in, p.w.in);
    const pool_windows down(p.h, at.h), right(p.w, at.w);
    const int64_t image = at.n * p.x.n + at.c * p.x.c, own = at.h * p.w.in + at.w;
    const typename T::bits *const dy = (const typename T::bits *)p.y.data + at.n * p.y.n + at.c * p.y.c;
    value sum = 0;
    for (int64_t i = down.first; i < down.last; i++) {
        const pool_part h(p.h, i);
        if (!pool_holds(p.h, h, at.h)) continue;
        for (int64_t j = right.first; j < right.last; j++) {
            const pool_part w(p.w, j);
            if (!pool_holds(p.w, w, at.w)) continue;
            const value term = T::get(dy[i * p.y.h + j * p.y.w]);
            value most;
            if (p.kind != TRINE_POOL2D_MAX)
                sum += term / pool_over<value>(p, h, w);
            else if (pool_largest<T>(p, image, h, w, &most) == own)
                sum += term;
        }
    }
    ((typename T::bits *)p.other.data)[at.in(p.other)] = T::put(sum);
}

ENTRY(pool2d_backward_f32, SIMT_THREADS, pool_params) { pool2d_backward<f32>(p); }
ENTRY(pool2d_backward_bf16, SIMT_THREADS, pool_params) { pool2d_backward<bf16>(p); }
ENTRY(pool2d_backward_f16, SIMT_THREADS, pool_params) { pool2d_backward<f16>(p); }
ENTRY(pool2d_backward_f64, SIMT_THREADS, pool_params) { pool2d_backward<f64>(p); }
