/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d on devices: a thread has a window of 16 bytes of channels.
 *
 * NOTES. Floor: x once, y once, and indices, four times as long as y in 16 bits; windows that overlap are read from the
 * caches. */
#include "pool.inl.h"

template <class T, class Numbers> DEVICE void pool2d_of(const pool_params &p) {
    using channels = pool_channels<T>;
    using bits = typename T::bits;
    using value = typename channels::value;
    using number = typename Numbers::number;
    enum { V = channels::V };
    const int64_t own = block_index() * SIMT_THREADS + thread_index();
    if (own >= p.windows) return;
    const pool_place<Numbers> at(p, own, p.h.out, p.w.out);
    const pool_part<Numbers> h(p.h, at.h), w(p.w, at.w);
    const int count = channels::count(p, at.piece);
    const bits *const image = channels::image(p, p.x, at.n, at.piece);
    number best[V];
    value y[V];
    if (p.kind == TRINE_POOL2D_MAX) {
        const number wide = (number)p.w.in.by;
        channels::template largest<Numbers>(y, best, p, image, count, h, w, h.first * wide + w.first,
                                            (number)p.h.dilation.by * wide, (number)p.w.dilation.by);
    } else {
#pragma unroll
        for (int e = 0; e < V; e++) y[e] = 0, best[e] = -1;
        const int64_t step = p.w.dilation.by * p.x.w, line = p.h.dilation.by * p.x.h;
        const bits *row = image + h.first * p.x.h + w.first * p.x.w;
#pragma unroll 1
        for (number i = 0; i < h.count; i++, row += line) {
            const bits *from = row;
            for (number j = 0; j < w.count; j++, from += step) {
                value x[V];
                channels::load(x, from, p.x, count);
#pragma unroll
                for (int e = 0; e < V; e++) y[e] += x[e];
            }
        }
        const value over = pool_over<value>(p, h, w);
#pragma unroll
        for (int e = 0; e < V; e++) y[e] = y[e] / over;
    }
    channels::store(channels::image(p, p.y, at.n, at.piece) + at.h * p.y.h + at.w * p.y.w, y, p.y, count);
    if (!p.other.data) return;
    const pool_view &v = p.other;
    int64_t *const to = (int64_t *)v.data + at.n * v.n + at.h * v.h + at.w * v.w + at.piece * p.own * v.c;
    if (v.whole)
#pragma unroll
        for (int e = 0; e < V; e += 2) *(packed<int64_t, 2> *)(to + e) = { { best[e], best[e + 1] } };
    else
#pragma unroll
        for (int e = 0; e < V; e++)
            if (e < count) to[e * v.c] = best[e];
}

template <class T> DEVICE void pool2d(const pool_params &p) {
    if (p.narrow)
        pool2d_of<T, pool_short>(p);
    else
        pool2d_of<T, pool_long>(p);
}

ENTRY_HELD(pool2d_f32, SIMT_THREADS, POOL_HELD, pool_params) { pool2d<f32>(p); }
ENTRY_HELD(pool2d_bf16, SIMT_THREADS, POOL_HELD, pool_params) { pool2d<bf16>(p); }
ENTRY_HELD(pool2d_f16, SIMT_THREADS, POOL_HELD, pool_params) { pool2d<f16>(p); }
ENTRY_HELD(pool2d_f64, SIMT_THREADS, POOL_HELD, pool_params) { pool2d<f64>(p); }
