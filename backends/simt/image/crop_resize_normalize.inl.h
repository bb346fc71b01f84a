/* SPDX-License-Identifier: Apache-2.0 */
/* crop_resize_normalize on devices: a block has a square of y, a thread four of its pixels, up to four channels of
 * them. Which pixels of x and what weights the rows and the columns of the square have is found once, by a thread each.
 *
 * NOTES. Floor: y once, and of x what boxes need once; what pixels share is read from the caches. */
#include <count.h>

#include "sides.inl.h"

/* Pixels of an image as they are in memory. */
struct resize_u8 {
    static DEVICE float at(const void *data, int64_t i) { return (float)((const uint8_t *)data)[i]; }
};
struct resize_f32 {
    static DEVICE float at(const void *data, int64_t i) { return ((const float *)data)[i]; }
};

/* A block's square, and its box within the image; image < 0: it has none. */
struct resize_place {
    int64_t group, b, row, column, image, left, top, w, h;

    DEVICE resize_place(const resize_params &p) {
        const int64_t block = block_index(), square = quotient_below(p.blocks, block, p.groups),
                      line = quotient_below(p.blocks, square, p.across);
        group = block - square * p.groups.by, column = (square - line * p.across.by) * RESIZE_SIDE;
        b = quotient_below(p.blocks, line, p.down), row = (line - b * p.down.by) * RESIZE_SIDE;
        int64_t edge[4] = { 0, 0, p.w, p.h };
        if (p.boxes.data)
            for (int k = 0; k < 4; k++) edge[k] = load_integer(p.boxes.data, p.wide, b * p.boxes.row + k);
        image = p.images.data ? load_integer(p.images.data, p.wide, b * p.images.row) : b;
        left = edge[0] > 0 ? edge[0] : 0, top = edge[1] > 0 ? edge[1] : 0;
        const int64_t right = edge[2] < p.w ? edge[2] : p.w, bottom = edge[3] < p.h ? edge[3] : p.h;
        if (image >= p.n || right <= left || bottom <= top) image = -1;
        w = right - left, h = bottom - top;
    }
    /* Of the sides of the square, first its rows: the pixel of y, and how many pixels the box and y have there. */
    DEVICE int64_t at(int side) const { return side < RESIZE_SIDE ? row + side : column + side - RESIZE_SIDE; }
    DEVICE int64_t from(int side) const { return side < RESIZE_SIDE ? h : w; }
    DEVICE int64_t to(const resize_params &p, int side) const { return side < RESIZE_SIDE ? p.p : p.q; }
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

/* line += weight times a pixel. */
template <class U>
DEVICE void resize_add(float (&line)[RESIZE_CHANNELS], const resize_params &p, int64_t from, const resize_channels &c,
                       float weight) {
#pragma unroll
    for (int k = 0; k < RESIZE_CHANNELS; k++)
        if (k < c.count) line[k] = fused(weight, U::at(p.x.data, from + k * p.x.c), line[k]);
}
DEVICE void resize_add_line(float (&sum)[RESIZE_CHANNELS], const float (&line)[RESIZE_CHANNELS], float weight) {
#pragma unroll
    for (int k = 0; k < RESIZE_CHANNELS; k++) sum[k] = fused(weight, line[k], sum[k]);
}

/* The rows' and columns' pixels of the plain filters. */
template <int K> struct resize_near {
    int place[2 * RESIZE_SIDE][K], count[2 * RESIZE_SIDE];
    float weight[2 * RESIZE_SIDE][K];

    DEVICE void fill(const resize_params &p, const resize_place &at) {
        const int side = thread_index();
        if (side < 2 * RESIZE_SIDE && at.at(side) < at.to(p, side)) {
            const side_near<K> own(p, at.at(side), at.from(side), at.to(p, side));
            count[side] = own.count;
#pragma unroll
            for (int k = 0; k < K; k++)
                if (k < own.count) place[side][k] = (int)own.place[k], weight[side][k] = own.weight[k];
        }
        sync_block();
    }
    template <class U>
    DEVICE void sum(float (&sum)[RESIZE_CHANNELS], const resize_params &p, const resize_place &, int row, int column,
                    int64_t base, const resize_channels &c) const {
        const int down = count[row], across = count[column];
#pragma unroll
        for (int i = 0; i < K; i++) {
            if (i >= down) break;
            float line[RESIZE_CHANNELS] = {};
            const int64_t from = base + place[row][i] * p.x.h;
#pragma unroll
            for (int j = 0; j < K; j++)
                if (j < across) resize_add<U>(line, p, from + place[column][j] * p.x.w, c, weight[column][j]);
            resize_add_line(sum, line, weight[row][i]);
        }
    }
};

/* Those of an area or of antialias, whose weights are divided by their sums. */
struct resize_spread {
    int64_t first[2 * RESIZE_SIDE];
    int count[2 * RESIZE_SIDE];
    uint32_t beyond; /* how many have more pixels than there is room for */
    float weight[2 * RESIZE_SIDE][RESIZE_REACH + 1], all[2 * RESIZE_SIDE];

    DEVICE void fill(const resize_params &p, const resize_place &at) {
        const int thread = thread_index();
        if (thread == 0) beyond = 0;
        sync_block();
        if (thread < 2 * RESIZE_SIDE) {
            count[thread] = 0;
            if (at.at(thread) < at.to(p, thread)) {
                const side_spread own(p, at.at(thread), at.from(thread), at.to(p, thread));
                first[thread] = own.first;
                count[thread] = own.last - own.first <= RESIZE_REACH ? (int)(own.last - own.first) : 0;
                if (own.last - own.first > RESIZE_REACH) add_shared(&beyond, 1);
            }
        }
        sync_block();
        if (beyond) return;
        for (int n = thread; n < 2 * RESIZE_SIDE * RESIZE_REACH; n += SIMT_THREADS) {
            const int side = n / RESIZE_REACH, k = n % RESIZE_REACH;
            if (k >= count[side]) continue;
            const side_spread own(p, at.at(side), at.from(side), at.to(p, side));
            weight[side][k] = own.weight(p, first[side] + k);
        }
        sync_block();
        if (thread < 2 * RESIZE_SIDE) {
            float sum = 0;
            for (int k = 0; k < count[thread]; k++) sum += weight[thread][k];
            all[thread] = p.filter == TRINE_RESIZE_AREA ? 1 : sum;
        }
        sync_block();
        for (int n = thread; n < 2 * RESIZE_SIDE * RESIZE_REACH; n += SIMT_THREADS) {
            const int side = n / RESIZE_REACH, k = n % RESIZE_REACH;
            if (k < count[side]) weight[side][k] = weight[side][k] / all[side];
        }
        sync_block();
    }
    template <class U>
    DEVICE void sum(float (&sum)[RESIZE_CHANNELS], const resize_params &p, const resize_place &at, int row, int column,
                    int64_t base, const resize_channels &c) const {
        if (beyond) {
            far_sum<U>(sum, p, at, row, column, base, c);
            return;
        }
        base += first[row] * p.x.h + first[column] * p.x.w;
        for (int i = 0; i < count[row]; i++) {
            float line[RESIZE_CHANNELS] = {};
            for (int j = 0; j < count[column]; j++)
                resize_add<U>(line, p, base + i * p.x.h + j * p.x.w, c, weight[column][j]);
            resize_add_line(sum, line, weight[row][i]);
        }
    }
    template <class U>
    DEVICE void far_sum(float (&sum)[RESIZE_CHANNELS], const resize_params &p, const resize_place &at, int row,
                        int column, int64_t base, const resize_channels &c) const {
        const side_spread v(p, at.at(row), at.h, p.p), h(p, at.at(column), at.w, p.q);
        const float down = v.sum(p), across = h.sum(p);
        for (int64_t i = v.first; i < v.last; i++) {
            float line[RESIZE_CHANNELS] = {};
            for (int64_t j = h.first; j < h.last; j++)
                resize_add<U>(line, p, base + i * p.x.h + j * p.x.w, c, h.weight(p, j) / across);
            resize_add_line(sum, line, v.weight(p, i) / down);
        }
    }
};

template <class T>
DEVICE void resize_put(const float (&sum)[RESIZE_CHANNELS], const resize_params &p, const resize_place &at, int64_t row,
                       int64_t column, const resize_channels &c) {
    typename T::bits *const y = (typename T::bits *)p.y.data + at.b * p.y.n + row * p.y.h + column * p.y.w;
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

template <class Sides, class U, class T> DEVICE void resize_square(const resize_params &p, const resize_place &at) {
    SHARED Sides sides;
    const resize_channels c(p, at);
    const int64_t base = at.image * p.x.n + at.top * p.x.h + at.left * p.x.w + c.first * p.x.c;
    if (at.image >= 0) sides.fill(p, at);
    const int across = thread_index() % RESIZE_SIDE;
    if (at.column + across >= p.q) return;
    for (int down = thread_index() / RESIZE_SIDE; down < RESIZE_SIDE; down += SIMT_THREADS / RESIZE_SIDE) {
        if (at.row + down >= p.p) return;
        float sum[RESIZE_CHANNELS] = {};
        if (at.image >= 0) sides.template sum<U>(sum, p, at, down, RESIZE_SIDE + across, base, c);
        resize_put<T>(sum, p, at, at.row + down, at.column + across, c);
    }
}

template <class U, class T> DEVICE void crop_resize_normalize(const resize_params &p) {
    const resize_place at(p);
    if (p.filter == TRINE_RESIZE_NEAREST)
        resize_square<resize_near<1>, U, T>(p, at);
    else if (p.filter == TRINE_RESIZE_AREA || p.antialias)
        resize_square<resize_spread, U, T>(p, at);
    else if (p.filter == TRINE_RESIZE_BILINEAR)
        resize_square<resize_near<2>, U, T>(p, at);
    else
        resize_square<resize_near<4>, U, T>(p, at);
}

#define RESIZE_ENTRY(U, T) \
    ENTRY(crop_resize_normalize_##U##_##T, SIMT_THREADS, resize_params) { crop_resize_normalize<resize_##U, T>(p); }
RESIZE_ENTRY(u8, f32)
RESIZE_ENTRY(u8, f16)
RESIZE_ENTRY(u8, bf16)
RESIZE_ENTRY(f32, f32)
RESIZE_ENTRY(f32, f16)
RESIZE_ENTRY(f32, bf16)
