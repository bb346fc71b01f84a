/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d_backward on devices: a thread has 16 bytes of channels of a place, and adds up what the windows over it give.
 * Of the largest, a launch before has written which tap of each window that is.
 *
 * NOTES. Floor: dy once, dx once; of the largest x once too, and a number for each element of dy written and read. What
 * windows share is read from the caches. */
#include "pool.inl.h"

/* Windows [first, last) that may hold place `at`. */
template <class Numbers> struct pool_windows {
    using number = typename Numbers::number;
    number first, last;

    DEVICE pool_windows(const pool_axis &a, number at) {
        const number out = (number)a.out.by, end = at + (number)a.pad,
                     start = end - ((number)a.kernel - 1) * (number)a.dilation.by;
        first = start > 0 ? Numbers::over(start + (number)a.stride.by - 1, a.stride) : 0;
        const number behind = Numbers::over(end, a.stride) + 1;
        last = behind < out ? behind : out;
    }
};

/* The tap that is `far` from a window's first place; -1: none. */
template <class Numbers> DEVICE typename Numbers::number pool_tap(const pool_axis &a, typename Numbers::number far) {
    if (a.dilation.by == 1) return far;
    const typename Numbers::number tap = Numbers::over(far, a.dilation);
    return tap * (typename Numbers::number)a.dilation.by == far ? tap : -1;
}

template <class Code, int V, class Number>
DEVICE void pool_put_codes(void *codes, int64_t piece, const Number (&x)[V]) {
    packed<Code, V> raw;
#pragma unroll
    for (int e = 0; e < V; e++) raw.v[e] = (Code)x[e];
    ((packed<Code, V> *)codes)[piece] = raw;
}

template <class T, class Numbers> DEVICE void pool2d_backward_codes_of(const pool_params &p) {
    using channels = pool_channels<T>;
    using number = typename Numbers::number;
    enum { V = channels::V };
    const int64_t own = block_index() * SIMT_THREADS + thread_index();
    if (own >= p.windows) return;
    const pool_place<Numbers> at(p, own, p.h.out, p.w.out);
    const pool_part<Numbers> h(p.h, at.h), w(p.w, at.w);
    const number wide = (number)p.w.kernel;
    const int64_t piece = ((at.n * p.h.out.by + at.h) * p.w.out.by + at.w) * p.pieces.by + at.piece;
    number best[V];
    typename channels::value most[V];
    channels::template largest<Numbers>(most, best, p, channels::image(p, p.x, at.n, at.piece),
                                        channels::count(p, at.piece), h, w, h.skipped * wide + w.skipped, wide,
                                        (number)1);
    if (sizeof(number) == 8)
        pool_put_codes<uint64_t>(p.codes.data, piece, best);
    else if (p.codes.size == 4)
        pool_put_codes<uint32_t>(p.codes.data, piece, best);
    else
        pool_put_codes<uint16_t>(p.codes.data, piece, best);
}

/* What the windows over a place give. MAX: those whose codes say its tap; Code is what these are in. */
template <class T, class Numbers, bool MAX, class Code>
DEVICE void pool_sum(typename pool_channels<T>::value (&sum)[pool_channels<T>::V], const pool_params &p,
                     const pool_place<Numbers> &at, int count) {
    using channels = pool_channels<T>;
    using bits = typename T::bits;
    using value = typename channels::value;
    using number = typename Numbers::number;
    enum { V = channels::V };
    const pool_windows<Numbers> down(p.h, at.h), right(p.w, at.w);
    const number stride = (number)p.w.stride.by, wide = (number)p.w.kernel;
    const bits *const dy = channels::image(p, p.y, at.n, at.piece) + right.first * p.y.w;
    const packed<Code, V> *const codes =
        (const packed<Code, V> *)p.codes.data + (at.n * p.h.out.by * p.w.out.by + right.first) * p.pieces.by + at.piece;
#pragma unroll 1
    for (number i = down.first; i < down.last; i++) {
        const number row = pool_tap<Numbers>(p.h, at.h + (number)p.h.pad - i * (number)p.h.stride.by);
        if (row < 0) continue;
        const bits *from = dy + i * p.y.h;
        const packed<Code, V> *code = codes + i * p.w.out.by * p.pieces.by;
        number far = at.w + (number)p.w.pad - right.first * stride;
#pragma unroll 1
        for (number j = right.first; j < right.last; j++, from += p.y.w, code += p.pieces.by, far -= stride) {
            const number column = pool_tap<Numbers>(p.w, far);
            if (column < 0) continue;
            value x[V];
            channels::load(x, from, p.y, count);
            if constexpr (MAX) {
                const Code tap = (Code)(row * wide + column);
                const packed<Code, V> own = *code;
#pragma unroll
                for (int e = 0; e < V; e++) sum[e] += own.v[e] == tap ? x[e] : 0;
            } else {
                const value part = 1 / pool_over<value>(p, pool_part<Numbers>(p.h, i), pool_part<Numbers>(p.w, j));
#pragma unroll
                for (int e = 0; e < V; e++) sum[e] += x[e] * part;
            }
        }
    }
}

template <class T, class Numbers> DEVICE void pool2d_backward_of(const pool_params &p) {
    using channels = pool_channels<T>;
    const int64_t own = block_index() * SIMT_THREADS + thread_index();
    if (own >= p.places) return;
    const pool_place<Numbers> at(p, own, p.h.in, p.w.in);
    const int count = channels::count(p, at.piece);
    typename channels::value sum[channels::V] = {};
    if (p.kind != TRINE_POOL2D_MAX)
        pool_sum<T, Numbers, false, uint16_t>(sum, p, at, count);
    else if constexpr (sizeof(typename Numbers::number) == 8)
        pool_sum<T, Numbers, true, uint64_t>(sum, p, at, count);
    else if (p.codes.size == 4)
        pool_sum<T, Numbers, true, uint32_t>(sum, p, at, count);
    else
        pool_sum<T, Numbers, true, uint16_t>(sum, p, at, count);
    channels::store(channels::image(p, p.other, at.n, at.piece) + at.h * p.other.h + at.w * p.other.w, sum, p.other,
                    count);
}

template <class T> DEVICE void pool2d_backward_codes(const pool_params &p) {
    if (p.narrow)
        pool2d_backward_codes_of<T, pool_short>(p);
    else
        pool2d_backward_codes_of<T, pool_long>(p);
}
template <class T> DEVICE void pool2d_backward(const pool_params &p) {
    if (p.narrow)
        pool2d_backward_of<T, pool_short>(p);
    else
        pool2d_backward_of<T, pool_long>(p);
}

/* As many blocks of an SM as short numbers let it hold. */
#define POOL_ENTRIES(T) \
    ENTRY_HELD(pool2d_backward_codes_##T, SIMT_THREADS, POOL_HELD, pool_params) { pool2d_backward_codes<T>(p); } \
    ENTRY_HELD(pool2d_backward_##T, SIMT_THREADS, POOL_HELD, pool_params) { pool2d_backward<T>(p); }
POOL_ENTRIES(f32)
POOL_ENTRIES(bf16)
POOL_ENTRIES(f16)
POOL_ENTRIES(f64)
