/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d on devices: a thread has a window of a channel.
 *
 * NOTES. Floor: x once, y once; windows that overlap are read from the caches. */
#include "pool.inl.h"

template <class T> DEVICE void pool2d(const pool_params &p) {
    using value = typename conv_summed<T>::type;
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.n * p.h.out * p.w.out * p.c) return;
    const pool_place at(p, number, p.h.out, p.w.out);
    const pool_part h(p.h, at.h), w(p.w, at.w);
    const int64_t image = at.n * p.x.n + at.c * p.x.c;
    int64_t best = -1;
    value y = 0;
    if (p.kind == TRINE_POOL2D_MAX) {
        best = pool_largest<T>(p, image, h, w, &y);
    } else {
        for (int64_t i = 0; i < h.count; i++)
            for (int64_t j = 0; j < w.count; j++)
                y += T::get(((const typename T::bits *)p.x.data)[image + (h.first + i * p.h.dilation) * p.x.h +
                                                                 (w.first + j * p.w.dilation) * p.x.w]);
        y = y / pool_over<value>(p, h, w);
    }
    ((typename T::bits *)p.y.data)[at.in(p.y)] = T::put(y);
    if (p.other.data) ((int64_t *)p.other.data)[at.in(p.other)] = best;
}

ENTRY(pool2d_f32, SIMT_THREADS, pool_params) { pool2d<f32>(p); }
ENTRY(pool2d_bf16, SIMT_THREADS, pool_params) { pool2d<bf16>(p); }
ENTRY(pool2d_f16, SIMT_THREADS, pool_params) { pool2d<f16>(p); }
ENTRY(pool2d_f64, SIMT_THREADS, pool_params) { pool2d<f64>(p); }
