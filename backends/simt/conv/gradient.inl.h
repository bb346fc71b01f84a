/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a convolution's weights on devices, a product over positions: a block has a tile of channels and
 * elements and a slice of the positions; a last launch adds slices in their order. And the bias's. */
#ifndef TRINE_SIMT_CONV_GRADIENT_INL_H
#define TRINE_SIMT_CONV_GRADIENT_INL_H

#include "depthwise.inl.h"

/* Where dweight's element is that channel k and number `element` of a patch meet at. */
DEVICE int64_t gradient_at(const conv_gradient_params &p, int64_t k, int64_t element) {
    const int64_t channel = element % p.channels, tap = element / p.channels, wide = p.axis[2].taps,
                  high = p.axis[1].taps;
    return k * p.to.batch + tap / (wide * high) * p.to.axis[0] + tap / wide % high * p.to.axis[1] +
           tap % wide * p.to.axis[2] + channel * p.to.channel;
}

template <class T>
DEVICE typename conv_summed<T>::type gradient_dy(const typename T::bits *data, const conv_view &v,
                                                 const conv_position &at) {
    return T::get(data[at.n * v.batch + at.d * v.axis[0] + at.h * v.axis[1] + at.w * v.axis[2]]);
}

DEVICE int64_t gradient_end(const conv_gradient_params &p, int64_t first) {
    return first + p.slice < p.positions ? first + p.slice : p.positions;
}

/* One sum a thread: consecutive ones are of consecutive channels of dy. */
template <class T> DEVICE void gradient_few(const conv_gradient_params &p) {
    using sum_type = typename conv_summed<T>::type;
    const conv_walks k(p.axis, false, 0);
    const int64_t number = block_index() % p.down * SIMT_THREADS + thread_index(), slice = block_index() / p.down,
                  lanes = p.groups * p.rows, first = slice * p.slice, last = gradient_end(p, first);
    if (number >= lanes * p.elements) return;
    const int64_t channel = number % lanes, element = number / lanes;
    const typename T::bits *const x = (const typename T::bits *)p.x.data + channel / p.rows * p.channels * p.x.channel;
    const typename T::bits *const dy = (const typename T::bits *)p.dy.data + channel * p.dy.channel;
    const conv_element e(k, (int32_t)p.channels, (int32_t)element);
    sum_type sum = 0;
    if (first < last) {
        conv_position at(k, first);
        for (int64_t i = first; i < last; i++, at.advance(k, 1))
            sum = conv_fused(gradient_dy<T>(dy, p.dy, at), conv_read<T>(x, p.x, k, at, e), sum);
    }
    ((sum_type *)p.sums)[(slice * lanes + channel) * p.elements + element] = sum;
}

/* Of a step of positions a thread fetches a few lanes of one, where positions are neighbours in memory, or one lane
 * of a few. */
template <class T, bool ACROSS> DEVICE void gradient_tile(const conv_gradient_params &p) {
    using sum_type = typename conv_summed<T>::type;
    enum { POSITIONS = ACROSS ? 1 : CONV_FETCHES, LANES = ACROSS ? CONV_FETCHES : 1 };
    SHARED conv_stage<sum_type> stage;
    const int64_t column = block_index() % p.right * CONV_TILE, row = block_index() / p.right % p.down * CONV_TILE,
                  group = block_index() / (p.right * p.down) % p.groups,
                  slice = block_index() / (p.right * p.down * p.groups), first = slice * p.slice,
                  last = gradient_end(p, first);
    const conv_walks k(p.axis, false, 0);
    const typename T::bits *const x = (const typename T::bits *)p.x.data + group * p.channels * p.x.channel;
    const typename T::bits *const dy = (const typename T::bits *)p.dy.data + group * p.rows * p.dy.channel;
    const int right = thread_index() % CONV_SIDE, down = thread_index() / CONV_SIDE;
    sum_type sum[CONV_OWN][CONV_OWN] = {}, a[CONV_FETCHES], b[CONV_FETCHES];
    conv_element e[LANES];
    conv_position at[POSITIONS];
#pragma unroll
    for (int i = 0; i < LANES; i++) {
        const int64_t own = column + conv_row<!ACROSS>(i);
        e[i] = conv_element(k, (int32_t)p.channels, (int32_t)(own < p.elements ? own : 0));
    }
#pragma unroll
    for (int i = 0; i < POSITIONS; i++)
        if (first < last) at[i] = conv_position(k, first + conv_place<!ACROSS>(i));
    for (int64_t done = first; done < last; done += CONV_DEPTH) {
#pragma unroll
        for (int i = 0; i < CONV_FETCHES; i++) {
            const int lane = conv_row<!ACROSS>(i);
            const bool there = done + conv_place<!ACROSS>(i) < last;
            const conv_position &place = at[ACROSS ? 0 : i];
            a[i] = there && row + lane < p.rows ? gradient_dy<T>(dy + (row + lane) * p.dy.channel, p.dy, place) : 0;
            b[i] = there && column + lane < p.elements ? conv_read<T>(x, p.x, k, place, e[ACROSS ? i : 0]) : 0;
        }
#pragma unroll
        for (int i = 0; i < POSITIONS; i++) at[i].advance(k, CONV_DEPTH);
        sync_block();
#pragma unroll
        for (int i = 0; i < CONV_FETCHES; i++) {
            stage.a[conv_place<!ACROSS>(i)][conv_row<!ACROSS>(i)] = a[i];
            stage.b[conv_place<!ACROSS>(i)][conv_row<!ACROSS>(i)] = b[i];
        }
        sync_block();
        conv_multiply(sum, stage, down, right);
    }
#pragma unroll
    for (int i = 0; i < CONV_OWN; i++)
#pragma unroll
        for (int j = 0; j < CONV_OWN; j++) {
            const int64_t own = row + down * CONV_OWN + i, to = column + right * CONV_OWN + j;
            if (own < p.rows && to < p.elements)
                ((sum_type *)p.sums)[((slice * p.groups + group) * p.rows + own) * p.elements + to] = sum[i][j];
        }
}

template <class T> DEVICE void gradient_dx(const conv_params &p) { conv_tiles<T, true>(p); }
template <class T> DEVICE void gradient_tiles(const conv_gradient_params &p) {
    if (p.across)
        gradient_tile<T, true>(p);
    else
        gradient_tile<T, false>(p);
}

/* Slices' sums, to where they belong. */
template <class T> DEVICE void gradient_end_of(const conv_gradient_params &p) {
    using sum_type = typename conv_summed<T>::type;
    const int64_t number = block_index() * SIMT_THREADS + thread_index(), count = p.groups * p.rows * p.elements;
    if (number >= count) return;
    sum_type sum = 0;
#pragma unroll 4
    for (int64_t s = 0; s < p.slices; s++) sum += ((const sum_type *)p.sums)[s * count + number];
    ((typename T::bits *)p.to.data)[gradient_at(p, number / p.elements, number % p.elements)] = T::put(sum);
}

/* The functions of a type, by the tiles of the gradients by x and by weights. */
#define GRADIENT_ENTRIES(T, DX, WEIGHTS) \
    ENTRY(conv2d_backward_dx_##T, SIMT_THREADS, conv_params) { DX<T>(p); } \
    ENTRY(conv2d_backward_dx_few_##T, SIMT_THREADS, conv_params) { conv_few<T>(p); } \
    ENTRY_HELD(conv2d_backward_dx_depthwise_##T, SIMT_THREADS, CONV_HELD, conv_params) { conv_depthwise<T, true>(p); } \
    ENTRY(conv2d_backward_dx_end_##T, SIMT_THREADS, conv_params) { conv_end<T>(p); } \
    ENTRY(conv2d_backward_few_##T, SIMT_THREADS, conv_gradient_params) { gradient_few<T>(p); } \
    ENTRY(conv2d_backward_tiles_##T, SIMT_THREADS, conv_gradient_params) { WEIGHTS<T>(p); } \
    ENTRY_HELD(conv2d_backward_depthwise_##T, SIMT_THREADS, CONV_HELD, conv_gradient_params) { \
        gradient_depthwise<T>(p); \
    } \
    ENTRY(conv2d_backward_bias_##T, SIMT_THREADS, conv_gradient_params) { gradient_bias<T>(p); } \
    ENTRY(conv2d_backward_end_##T, SIMT_THREADS, conv_gradient_params) { gradient_end_of<T>(p); }

#endif
