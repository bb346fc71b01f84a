/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm of rows in shared memory, without residuals or dropout, with weights of x's type. */
#ifndef TRINE_CUDA_NORM_PARTS_H
#define TRINE_CUDA_NORM_PARTS_H

#include "backends/simt/norm_rows.h"
#include "row_part.h"

/* Of a block's part: its mean, and the sum of squares of what is left without it. */
template <class Part, int G> DEVICE two norm_part_moments(const Part &part, float inverse) {
    float sum = 0;
    part.each([&](int i) {
        float h[Part::ITEMS];
        part.get(h, i);
        sum += vector_sum(h);
    });
    const float first = group_sum<G>(sum) * inverse;
    two sums = { 0, 0 };
    part.each([&](int i) {
        float h[Part::ITEMS];
        part.get(h, i);
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) h[k] = part.whole || part.in(i + k) ? h[k] - first : 0.0f;
        sums = sums + two{ vector_sum(h), vector_squares(h) };
    });
    sums = group_sum<G>(sums);
    const float shift = sums.a * inverse;
    return { magnitude(first) < infinity() ? first + shift : first, fused(-shift, sums.a, sums.b) };
}

/* y = (h - mean) rstd (weight + offset) + bias, of which a part need not be. */
template <bool CENTERED, bool PLAIN, class T, class Part>
DEVICE void norm_part_write(const Part &part, const norm_params &p, typename T::bits *y, const norm_statistics &s) {
    using piece = typename Part::piece;
    part.each([&](int i) {
        const piece weight = PLAIN || p.weight.data ? part.read(p.weight.data, i) : piece{};
        const piece bias = CENTERED && (PLAIN || p.bias.data) ? part.read(p.bias.data, i) : piece{};
        float h[Part::ITEMS];
        part.get(h, i);
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) {
            h[k] = (CENTERED ? h[k] - s.mean : h[k]) * s.rstd;
            if (!PLAIN && p.round) h[k] = rounded<T>(h[k]);
            const float w = PLAIN ? weight.get(k) : p.weight.data ? weight.get(k) + p.weight_offset : 1.0f;
            h[k] = CENTERED ? fused(h[k], w, bias.get(k)) : h[k] * w;
        }
        part.put(y, i, held_of<T>(h));
    });
}

template <bool CENTERED, class T, class Part, int G> DEVICE void norm_parts(const norm_params &p) {
    const int64_t row = block_index() / p.part.blocks;
    const Part part(p.part, p.n);
    part.ask(row_at<T>(p.x, row));
    const row_blocks blocks(p.part);
    const float inverse = 1.0f / (float)p.n;
    norm_statistics s = {};
    part.wait();
    if (CENTERED) {
        /* Chan, Golub and LeVeque 1983: parts of so many elements, by their means. */
        const two their = blocks.exchange(norm_part_moments<Part, G>(part, 1.0f / (float)part.n), two{ 0, 0 });
        const int before = thread_index() % blocks.MOST * p.part.length, rest = (int)p.n - before;
        const float count = (float)(rest < 0 ? 0 : rest < p.part.length ? rest : p.part.length);
        s.mean = blocks.size == 1 ? group_sum<blocks.MOST>(their.a) : group_sum<blocks.MOST>(their.a * count) * inverse;
        const float apart = count > 0 && blocks.size > 1 ? their.a - s.mean : 0.0f;
        s.rstd = 1 / square_root(group_sum<blocks.MOST>(fused(apart * apart, count, their.b)) * inverse + p.eps);
    } else {
        float sum = 0;
        part.each([&](int i) {
            float h[Part::ITEMS];
            part.get(h, i);
            sum += vector_squares(h);
        });
        s.rstd = 1 / square_root(group_sum<blocks.MOST>(blocks.exchange(group_sum<G>(sum), 0.0f)) * inverse + p.eps);
    }
    if (thread_index() == 0 && part.first == 0) {
        if (p.mean.data) store_one<f32>(p.mean.data, row, s.mean);
        if (p.rstd.data) store_one<f32>(p.rstd.data, row, s.rstd);
    }
    typename T::bits *const y = row_at<T>(p.y, row);
    if (p.weight.data && (!CENTERED || p.bias.data) && p.weight_offset == 0 && !p.round)
        norm_part_write<CENTERED, true, T>(part, p, y, s);
    else
        norm_part_write<CENTERED, false, T>(part, p, y, s);
}
template <class T, class Part, int G> DEVICE void rms_norm_parts(const norm_params &p) { norm_parts<false, T, Part, G>(p); }
template <class T, class Part, int G> DEVICE void layer_norm_parts(const norm_params &p) { norm_parts<true, T, Part, G>(p); }

#define NORM_PART_SHAPE(op, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, f32, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, bf16, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, f16, G, HELD)

#endif
