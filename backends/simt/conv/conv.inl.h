/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on devices: where positions and elements of patches are, and the products. The order of an element's sum
 * is that of its patch. */
#ifndef TRINE_SIMT_CONV_INL_H
#define TRINE_SIMT_CONV_INL_H

#include "conv.h"
#include "summed.h"

DEVICE float conv_fused(float a, float b, float c) { return fused(a, b, c); }
DEVICE double conv_fused(double a, double b, double c) { return a * b + c; }

/* An axis as a block walks it: position i and tap t read place first + i step + t dilation, with tap tap + t every of
 * the weights, and write place to + i apart. */
struct conv_walk {
    int64_t in, positions, first, step, dilation, every, to, apart;
    int32_t taps, tap;
};

DEVICE conv_walk conv_walk_of(const conv_axis &a, bool transposed, int64_t residue) {
    if (!transposed) return { a.in, a.out, -a.pad, a.stride, a.dilation, 1, 0, 1, (int32_t)a.taps, 0 };
    int32_t common = (int32_t)a.stride, rest = (int32_t)a.dilation;
    while (rest != 0) {
        const int32_t next = common % rest;
        common = rest, rest = next;
    }
    const int32_t every = (int32_t)a.stride / common;
    int32_t tap = 0;
    while (tap < every && tap < a.taps && (residue + a.pad - tap * a.dilation) % a.stride != 0) tap++;
    const bool none = tap >= every || tap >= a.taps;
    return { a.in,
             residue < a.out ? (a.out - residue + a.stride - 1) / a.stride : 0,
             none ? 0 : (residue + a.pad - tap * a.dilation) / a.stride,
             1,
             -(a.dilation / common),
             every,
             residue,
             a.stride,
             none ? 0 : (int32_t)((a.taps - tap + every - 1) / every),
             tap };
}

struct conv_walks {
    conv_walk d, h, w;

    DEVICE conv_walks(const conv_axis (&axis)[3], bool transposed, int64_t residue) {
        const int64_t right = axis[2].residues > 0 ? axis[2].residues : 1,
                      down = axis[1].residues > 0 ? axis[1].residues : 1;
        d = conv_walk_of(axis[0], transposed, residue / (right * down));
        h = conv_walk_of(axis[1], transposed, residue / right % down);
        w = conv_walk_of(axis[2], transposed, residue % right);
    }
    DEVICE int64_t positions() const { return d.positions * h.positions * w.positions; }
    DEVICE int32_t taps() const { return d.taps * h.taps * w.taps; }
};

/* A position of all images: its numbers along each axis. */
struct conv_position {
    int64_t n, d, h, w;

    DEVICE conv_position() {}
    DEVICE conv_position(const conv_walks &k, int64_t number) {
        const int64_t by_w = k.w.positions, by_h = k.h.positions, by_d = k.d.positions;
        w = number % by_w, h = number / by_w % by_h;
        d = number / (by_w * by_h) % by_d, n = number / (by_w * by_h * by_d);
    }
    DEVICE void advance(const conv_walks &k, int64_t by) {
        w += by;
        while (w >= k.w.positions) {
            w -= k.w.positions;
            if (++h < k.h.positions) continue;
            h = 0;
            if (++d == k.d.positions) d = 0, n++;
        }
    }
};

/* An element of a patch: its taps and channel; there is none if d is beyond the taps. */
struct conv_element {
    int32_t d, h, w, channel;

    DEVICE conv_element() {}
    DEVICE conv_element(const conv_walks &k, int32_t channels, int32_t number) {
        const int32_t tap = number / channels;
        channel = number % channels;
        w = tap % k.w.taps, h = tap / k.w.taps % k.h.taps, d = tap / (k.w.taps * k.h.taps);
    }
    DEVICE void advance(const conv_walks &k, int32_t channels, int32_t by) {
        channel += by;
        while (channel >= channels) {
            channel -= channels;
            if (++w < k.w.taps) continue;
            w = 0;
            if (++h == k.h.taps) h = 0, d++;
        }
    }
    DEVICE bool there(const conv_walks &k) const { return d < k.d.taps; }
};

/* The bits of an element of a position's patch: 0 beyond the edges. `data` is the group's. */
template <class Bits>
DEVICE Bits conv_bits(const Bits *data, const conv_view &v, const conv_walks &k, const conv_position &at,
                      const conv_element &e) {
    const int64_t z = k.d.first + at.d * k.d.step + e.d * k.d.dilation,
                  y = k.h.first + at.h * k.h.step + e.h * k.h.dilation,
                  x = k.w.first + at.w * k.w.step + e.w * k.w.dilation;
    if (z < 0 || z >= k.d.in || y < 0 || y >= k.h.in || x < 0 || x >= k.w.in) return 0;
    return data[at.n * v.batch + z * v.axis[0] + y * v.axis[1] + x * v.axis[2] + e.channel * v.channel];
}
template <class T>
DEVICE typename conv_summed<T>::type conv_read(const typename T::bits *data, const conv_view &v, const conv_walks &k,
                                               const conv_position &at, const conv_element &e) {
    return T::get(conv_bits(data, v, k, at, e));
}

/* Where the weights have an element of a lane. */
DEVICE int64_t conv_weight_at(const conv_params &p, const conv_walks &k, int64_t group, int64_t lane,
                              const conv_element &e) {
    const conv_view &v = p.weight;
    return group * p.group + lane * v.batch + (k.d.tap + e.d * k.d.every) * v.axis[0] +
           (k.h.tap + e.h * k.h.every) * v.axis[1] + (k.w.tap + e.w * k.w.every) * v.axis[2] + e.channel * v.channel;
}
template <class T>
DEVICE typename conv_summed<T>::type conv_weight(const conv_params &p, const conv_walks &k, int64_t group, int64_t lane,
                                                 const conv_element &e) {
    return T::get(((const typename T::bits *)p.weight.data)[conv_weight_at(p, k, group, lane, e)]);
}

/* Where a position is written: its place in memory, but for the channel, or its number among all. */
DEVICE int64_t conv_to(const conv_params &p, const conv_walks &k, const conv_position &at) {
    const conv_view &v = p.to;
    return at.n * v.batch + (k.d.to + at.d * k.d.apart) * v.axis[0] + (k.h.to + at.h * k.h.apart) * v.axis[1] +
           (k.w.to + at.w * k.w.apart) * v.axis[2];
}
DEVICE int64_t conv_number(const conv_params &p, const conv_walks &k, const conv_position &at) {
    return ((at.n * p.axis[0].out + k.d.to + at.d * k.d.apart) * p.axis[1].out + k.h.to + at.h * k.h.apart) *
               p.axis[2].out +
           k.w.to + at.w * k.w.apart;
}

/* The end of a sum. */
template <class T, class Sum> DEVICE Sum conv_biased(const conv_params &p, int64_t channel, Sum sum) {
    if (!p.bias) return sum;
    const int64_t b = channel * p.bias_step;
    return sum + (p.wide_bias ? (Sum)((const float *)p.bias)[b] : (Sum)T::get(((const typename T::bits *)p.bias)[b]));
}
template <class T, class Sum> DEVICE void conv_put_at(const conv_params &p, int64_t to, int64_t channel, Sum sum) {
    ((typename T::bits *)p.to.data)[to + channel * p.to.channel] = T::put(conv_biased<T>(p, channel, sum));
}
template <class T, class Sum>
DEVICE void conv_put(const conv_params &p, const conv_walks &k, const conv_position &at, int64_t channel, Sum sum) {
    conv_put_at<T>(p, conv_to(p, k, at), channel, sum);
}

/* What a block of tiles has: by lanes, groups, slices, and tiles of positions, of all residues. */
struct conv_block {
    int64_t right, group, slice, tile;

    DEVICE explicit conv_block(const conv_params &p) {
        const int64_t slices = p.slices > 0 ? p.slices : 1, number = block_index() / p.right;
        right = block_index() % p.right;
        group = number % p.groups, slice = number / p.groups % slices, tile = number / (p.groups * slices);
    }
};
/* The steps of a slice. */
struct conv_steps {
    int32_t first, last;

    DEVICE conv_steps(const conv_params &p, const conv_block &b, int32_t elements, int32_t step) {
        const int32_t slices = p.slices > 0 ? (int32_t)p.slices : 1, all = elements / step + (elements % step > 0),
                      each = (all + slices - 1) / slices, begin = (int32_t)b.slice * each;
        first = begin < all ? begin : all;
        last = all - first < each ? all : first + each;
    }
};

/* Slices' sums, to where they belong. */
template <class T> DEVICE void conv_end(const conv_params &p) {
    using sum_type = typename conv_summed<T>::type;
    const conv_walks k(p.axis, false, 0); /* of positions alone */
    const int64_t number = block_index() * SIMT_THREADS + thread_index(), lanes = p.groups * p.lanes,
                  count = p.n * k.positions() * lanes;
    if (number >= count) return;
    const sum_type *const from = (const sum_type *)p.sums + number;
    sum_type sum = 0;
#pragma unroll 4
    for (int64_t s = 0; s < p.slices; s++) sum += from[s * count];
    conv_put<T>(p, k, conv_position(k, number / lanes), number % lanes, sum);
}

/* -------------------------------------------------------------------------------------- one sum a thread: few lanes */

template <class T> DEVICE void conv_few(const conv_params &p) {
    using sum_type = typename conv_summed<T>::type;
    const conv_walks k(p.axis, p.transposed, block_index() / p.down);
    const int64_t number = block_index() % p.down * SIMT_THREADS + thread_index(), rows = p.n * k.positions(),
                  lanes = p.groups * p.lanes;
    if (number >= rows * lanes) return;
    const int64_t channel = p.to_across ? number / rows : number % lanes, group = channel / p.lanes;
    const conv_position at(k, p.to_across ? number % rows : number / lanes);
    const typename T::bits *const from = (const typename T::bits *)p.from.data + group * p.channels * p.from.channel;
    sum_type sum = 0;
    conv_element e;
    for (e.d = 0; e.d < k.d.taps; e.d++)
        for (e.h = 0; e.h < k.h.taps; e.h++)
            for (e.w = 0; e.w < k.w.taps; e.w++)
                for (e.channel = 0; e.channel < p.channels; e.channel++)
                    sum = conv_fused(conv_read<T>(from, p.from, k, at, e),
                                     conv_weight<T>(p, k, group, channel % p.lanes, e), sum);
    conv_put<T>(p, k, at, channel, sum);
}

/* ------------------------------------------------------------------------------------------------------------ tiles */

enum {
    CONV_SIDE = 16, /* threads down and right */
    CONV_OWN = CONV_TILE / CONV_SIDE,
    CONV_FETCHES = CONV_TILE * CONV_DEPTH / SIMT_THREADS,
    CONV_BANDS = SIMT_THREADS / CONV_TILE
};
static_assert(CONV_SIDE * CONV_SIDE == (int)SIMT_THREADS && (int)CONV_DEPTH == (int)CONV_SIDE,
              "a thread has its part of the sums");

/* Lanes are consecutive, and a thread's CONV_OWN of them one or two vectors. */
template <class Sum> struct conv_stage {
    using own = packed<Sum, CONV_OWN>;
    alignas(16) Sum a[CONV_DEPTH][CONV_TILE + CONV_OWN], b[CONV_DEPTH][CONV_TILE + CONV_OWN];
};

template <class Sum>
DEVICE void conv_multiply(Sum (&sum)[CONV_OWN][CONV_OWN], const conv_stage<Sum> &stage, int down, int right) {
    using own = typename conv_stage<Sum>::own;
#pragma unroll 4
    for (int q = 0; q < CONV_DEPTH; q++) {
        const own u = *(const own *)&stage.a[q][down * CONV_OWN], v = *(const own *)&stage.b[q][right * CONV_OWN];
#pragma unroll
        for (int i = 0; i < CONV_OWN; i++)
#pragma unroll
            for (int j = 0; j < CONV_OWN; j++) sum[i][j] = conv_fused(u.v[i], v.v[j], sum[i][j]);
    }
}

/* Which row and which element of a step a thread fetches as its i-th: neighbours in a step, or across it. */
template <bool ACROSS> DEVICE int conv_row(int i) {
    return ACROSS ? thread_index() % CONV_TILE : thread_index() / CONV_DEPTH + i * CONV_SIDE;
}
template <bool ACROSS> DEVICE int conv_place(int i) {
    return ACROSS ? thread_index() / CONV_TILE + i * CONV_BANDS : thread_index() % CONV_DEPTH;
}

/* The patches of a tile: of one position a few elements, or of a few positions one element. */
template <class T, bool ACROSS> struct conv_patches {
    enum { POSITIONS = ACROSS ? 1 : CONV_FETCHES, ELEMENTS = ACROSS ? CONV_FETCHES : 1 };
    conv_position at[POSITIONS];
    conv_element e[ELEMENTS];
    bool there[POSITIONS];

    DEVICE conv_patches(const conv_params &p, const conv_walks &k, int64_t first, int64_t rows, int32_t begin) {
#pragma unroll
        for (int i = 0; i < POSITIONS; i++) {
            const int64_t row = first + conv_row<ACROSS>(i);
            there[i] = row < rows, at[i] = conv_position(k, there[i] ? row : 0);
        }
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) e[i] = conv_element(k, (int32_t)p.channels, begin + conv_place<ACROSS>(i));
    }
    template <class Sum>
    DEVICE void fetch(Sum (&v)[CONV_FETCHES], const typename T::bits *from, const conv_params &p, const conv_walks &k) {
#pragma unroll
        for (int i = 0; i < CONV_FETCHES; i++) {
            const conv_element &one = e[ACROSS ? i : 0];
            v[i] = there[ACROSS ? 0 : i] && one.there(k) ? conv_read<T>(from, p.from, k, at[ACROSS ? 0 : i], one) : 0;
        }
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) e[i].advance(k, (int32_t)p.channels, CONV_DEPTH);
    }
};

/* The weights of a tile, likewise: lanes are neighbours in memory of the gradient by x. */
template <class T, bool ACROSS> struct conv_weights {
    enum { ELEMENTS = ACROSS ? CONV_FETCHES : 1 };
    conv_element e[ELEMENTS];

    DEVICE conv_weights(const conv_params &p, const conv_walks &k, int32_t begin) {
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) e[i] = conv_element(k, (int32_t)p.channels, begin + conv_place<ACROSS>(i));
    }
    template <class Sum>
    DEVICE void fetch(Sum (&v)[CONV_FETCHES], const conv_params &p, const conv_walks &k, int64_t group, int64_t lane) {
#pragma unroll
        for (int i = 0; i < CONV_FETCHES; i++) {
            const conv_element &one = e[ACROSS ? i : 0];
            const int64_t own = lane + conv_row<ACROSS>(i);
            v[i] = own < p.lanes && one.there(k) ? conv_weight<T>(p, k, group, own, one) : 0;
        }
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) e[i].advance(k, (int32_t)p.channels, CONV_DEPTH);
    }
};

template <class T, bool ACROSS, bool TRANSPOSED> DEVICE void conv_tile(const conv_params &p) {
    using sum_type = typename conv_summed<T>::type;
    SHARED conv_stage<sum_type> stage;
    const conv_block block(p);
    const int64_t lane = block.right * CONV_TILE, group = block.group;
    const conv_walks k(p.axis, TRANSPOSED, block.tile / p.down);
    const int64_t first = block.tile % p.down * CONV_TILE, rows = p.n * k.positions();
    if (first >= rows) return;
    const conv_steps steps(p, block, k.taps() * (int32_t)p.channels, CONV_DEPTH);
    const typename T::bits *const from = (const typename T::bits *)p.from.data + group * p.channels * p.from.channel;
    const int near = thread_index() % CONV_SIDE, far = thread_index() / CONV_SIDE, down = p.to_across ? near : far,
              right = p.to_across ? far : near;
    sum_type sum[CONV_OWN][CONV_OWN] = {}, a[CONV_FETCHES], b[CONV_FETCHES];
    if (steps.first < steps.last) {
        conv_patches<T, ACROSS> patches(p, k, first, rows, steps.first * CONV_DEPTH);
        conv_weights<T, TRANSPOSED> weights(p, k, steps.first * CONV_DEPTH);
        for (int32_t step = steps.first; step < steps.last; step++) {
            patches.fetch(a, from, p, k);
            weights.fetch(b, p, k, group, lane);
            sync_block();
#pragma unroll
            for (int i = 0; i < CONV_FETCHES; i++) {
                stage.a[conv_place<ACROSS>(i)][conv_row<ACROSS>(i)] = a[i];
                stage.b[conv_place<TRANSPOSED>(i)][conv_row<TRANSPOSED>(i)] = b[i];
            }
            sync_block();
            conv_multiply(sum, stage, down, right);
        }
    }
#pragma unroll
    for (int i = 0; i < CONV_OWN; i++) {
        const int64_t row = first + down * CONV_OWN + i;
        if (row >= rows) continue;
        const conv_position at(k, row);
        const int64_t lanes = p.groups * p.lanes;
        const bool part = p.slices > 1;
        const int64_t to =
            part ? (block.slice * p.n * p.axis[0].out * p.axis[1].out * p.axis[2].out + conv_number(p, k, at)) * lanes
                 : conv_to(p, k, at);
#pragma unroll
        for (int j = 0; j < CONV_OWN; j++) {
            const int64_t own = lane + right * CONV_OWN + j, channel = group * p.lanes + own;
            if (own >= p.lanes) continue;
            if (part)
                ((sum_type *)p.sums)[to + channel] = sum[i][j];
            else
                conv_put_at<T>(p, to, channel, sum[i][j]);
        }
    }
}

template <class T, bool TRANSPOSED> DEVICE void conv_tiles(const conv_params &p) {
    if (p.across)
        conv_tile<T, true, TRANSPOSED>(p);
    else
        conv_tile<T, false, TRANSPOSED>(p);
}

#endif
