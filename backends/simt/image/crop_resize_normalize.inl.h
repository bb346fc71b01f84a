/* SPDX-License-Identifier: Apache-2.0 */
/* crop_resize_normalize on devices: a thread has a pixel of y, up to four channels of it.
 *
 * NOTES. Floor: y once, and of x what boxes need once; what pixels share is read from the caches. */
#include "sides.inl.h"

/* Pixels of an image as they are in memory. */
struct resize_u8 {
    static DEVICE float at(const void *data, int64_t i) { return (float)((const uint8_t *)data)[i]; }
};
struct resize_f32 {
    static DEVICE float at(const void *data, int64_t i) { return ((const float *)data)[i]; }
};

/* The thread's pixel, its box within the image; image < 0: it has none. */
struct resize_place {
    int64_t group, b, row, column, image, left, top, w, h;

    DEVICE resize_place(const resize_params &p, int64_t number) {
        if (divides_fast(p.count)) {
            const uint32_t pixel = quotient((uint32_t)number, p.groups), line = quotient(pixel, p.q);
            group = number - (int64_t)pixel * p.groups.by, column = pixel - (int64_t)line * p.q.by;
            b = quotient(line, p.p), row = line - b * p.p.by;
        } else {
            group = number % p.groups.by, column = number / p.groups.by % p.q.by;
            row = number / (p.groups.by * p.q.by) % p.p.by, b = number / (p.groups.by * p.q.by * p.p.by);
        }
        int64_t edge[4] = { 0, 0, p.w, p.h };
        if (p.boxes.data)
            for (int k = 0; k < 4; k++) edge[k] = load_integer(p.boxes.data, p.wide, b * p.boxes.row + k);
        image = p.images.data ? load_integer(p.images.data, p.wide, b * p.images.row) : b;
        left = edge[0] > 0 ? edge[0] : 0, top = edge[1] > 0 ? edge[1] : 0;
        const int64_t right = edge[2] < p.w ? edge[2] : p.w, bottom = edge[3] < p.h ? edge[3] : p.h;
        if (image >= p.n || right <= left || bottom <= top) image = -1;
        w = right - left, h = bottom - top;
    }
};

/* Where in the image the thread's channels begin, and how many it has. */
struct resize_channels {
    int64_t first;
    int count;

    DEVICE resize_channels(const resize_params &p, const resize_place &at) {
        first = at.group * RESIZE_CHANNELS;
        count = p.c - first < RESIZE_CHANNELS ? (int)(p.c - first) : RESIZE_CHANNELS;
    }
    /* Of y; of x it is the one beside. */
    DEVICE int64_t to(const resize_params &p, int k) const { return p.reverse ? p.c - 1 - first - k : first + k; }
};

template <int K, class U>
DEVICE void resize_near(float (&sum)[RESIZE_CHANNELS], const resize_params &p, const resize_place &at,
                        const resize_channels &c) {
    const side_near<K> v(p, at.row, at.h, p.p.by), h(p, at.column, at.w, p.q.by);
    const int64_t base = at.image * p.x.n + at.top * p.x.h + at.left * p.x.w + c.first * p.x.c;
#pragma unroll
    for (int i = 0; i < K; i++) {
        if (i >= v.count) break;
        float line[RESIZE_CHANNELS] = {};
#pragma unroll
        for (int j = 0; j < K; j++) {
            if (j >= h.count) break;
            const int64_t from = base + v.place[i] * p.x.h + h.place[j] * p.x.w;
#pragma unroll
            for (int k = 0; k < RESIZE_CHANNELS; k++)
                if (k < c.count) line[k] = fused(h.weight[j], U::at(p.x.data, from + k * p.x.c), line[k]);
        }
#pragma unroll
        for (int k = 0; k < RESIZE_CHANNELS; k++) sum[k] = fused(v.weight[i], line[k], sum[k]);
    }
}

template <class U>
DEVICE void resize_spread(float (&sum)[RESIZE_CHANNELS], const resize_params &p, const resize_place &at,
                          const resize_channels &c) {
    const side_spread v(p, at.row, at.h, p.p.by), h(p, at.column, at.w, p.q.by);
    const int64_t base = at.image * p.x.n + at.top * p.x.h + at.left * p.x.w + c.first * p.x.c;
    for (int64_t i = v.first; i < v.last; i++) {
        float line[RESIZE_CHANNELS] = {};
        for (int64_t j = h.first; j < h.last; j++) {
            const float weight = h.weight(p, j);
            const int64_t from = base + i * p.x.h + j * p.x.w;
#pragma unroll
            for (int k = 0; k < RESIZE_CHANNELS; k++)
                if (k < c.count) line[k] = fused(weight, U::at(p.x.data, from + k * p.x.c), line[k]);
        }
        const float weight = v.weight(p, i) / v.sum;
#pragma unroll
        for (int k = 0; k < RESIZE_CHANNELS; k++) sum[k] = fused(weight, line[k] / h.sum, sum[k]);
    }
}

template <class U, class T> DEVICE void crop_resize_normalize(const resize_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.count) return;
    const resize_place at(p, number);
    const resize_channels c(p, at);
    float sum[RESIZE_CHANNELS] = {};
    if (at.image >= 0) {
        if (p.filter == TRINE_RESIZE_NEAREST)
            resize_near<1, U>(sum, p, at, c);
        else if (p.filter == TRINE_RESIZE_AREA || p.antialias)
            resize_spread<U>(sum, p, at, c);
        else if (p.filter == TRINE_RESIZE_BILINEAR)
            resize_near<2, U>(sum, p, at, c);
        else
            resize_near<4, U>(sum, p, at, c);
    }
    typename T::bits *const y = (typename T::bits *)p.y.data + at.b * p.y.n + at.row * p.y.h + at.column * p.y.w;
#pragma unroll
    for (int k = 0; k < RESIZE_CHANNELS; k++) {
        if (k >= c.count) break;
        const int64_t to = c.to(p, k);
        float value = product(sum[k], p.scale);
        if (p.mean) value -= p.mean[to];
        if (p.deviation) value = value / p.deviation[to];
        y[to * p.y.c] = T::put(at.image < 0 ? not_a_number() : value);
    }
}

#define RESIZE_ENTRY(U, T) \
    ENTRY(crop_resize_normalize_##U##_##T, SIMT_THREADS, resize_params) { crop_resize_normalize<resize_##U, T>(p); }
RESIZE_ENTRY(u8, f32)
RESIZE_ENTRY(u8, f16)
RESIZE_ENTRY(u8, bf16)
RESIZE_ENTRY(f32, f32)
RESIZE_ENTRY(f32, f16)
RESIZE_ENTRY(f32, bf16)
