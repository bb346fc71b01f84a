/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm of rows in shared memory, without residuals or dropout, with weights of x's type. */
#ifndef TRINE_CUDA_NORM_PARTS_H
#define TRINE_CUDA_NORM_PARTS_H

#include <tile/access.h>

#include "backends/simt/norm_rows.h"
#include "row_part.h"

/* Something of each of a block's rows. */
template <class Value, int ROWS> struct of_rows {
    Value v[ROWS];
    DEVICE friend of_rows operator+(const of_rows &x, const of_rows &y) {
        of_rows z;
#pragma unroll
        for (int k = 0; k < ROWS; k++) z.v[k] = x.v[k] + y.v[k];
        return z;
    }
};

/* Of a block's parts: their means, and the sums of squares of what is left without them. A thread sums what its elements are beside the mean of its first few, so
 * that one pass suffices: of an element that is by far the largest that mean has an eighth or a quarter. */
template <class Part, int G, int ROWS> DEVICE of_rows<two, ROWS> norm_part_moments(const Part &part, float inverse) {
    const int start = thread_index() * Part::ITEMS, few = part.n - start < Part::ITEMS ? part.n - start : Part::ITEMS;
    of_rows<two, ROWS> sums = {}, odd = {};
    float origin[ROWS] = {};
    if (few > 0)
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            float h[Part::ITEMS];
            part.get(h, start, k);
            const float mean = vector_sum(h) * (Part::whole ? 1.0f / Part::ITEMS : 1.0f / (float)few);
            origin[k] = magnitude(mean) < infinity() ? mean : 0;
        }
    int count = 0;
    part.each([&](int i) {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            float h[Part::ITEMS];
            part.get(h, i, k);
#pragma unroll
            for (int j = 0; j < Part::ITEMS; j++) {
                const float apart = part.whole || part.in(i + j) ? h[j] - origin[k] : 0.0f;
                two &sum = j % 2 ? odd.v[k] : sums.v[k];
                sum = { sum.a + apart, fused(apart, apart, sum.b) };
            }
        }
        count += part.whole || part.n - i > Part::ITEMS ? Part::ITEMS : part.n - i;
    });
    sums = sums + odd;
    of_rows<float, ROWS> first;
#pragma unroll
    for (int k = 0; k < ROWS; k++) first.v[k] = fused((float)count, origin[k], sums.v[k].a);
    first = group_sum<G>(first);
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        first.v[k] *= inverse;
        const float apart = origin[k] - first.v[k], moved = (float)count * apart;
        two &sum = sums.v[k];
        if (count > 0) sum = { sum.a + moved, fused(apart, fused(2.0f, sum.a, moved), sum.b) };
    }
    sums = group_sum<G>(sums);
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const float shift = sums.v[k].a * inverse, mean = first.v[k];
        sums.v[k] = { magnitude(mean) < infinity() ? mean + shift : mean, fused(-shift, sums.v[k].a, sums.v[k].b) };
    }
    return sums;
}

/* y = (h - mean) rstd (weight + offset) + bias, of which a part need not be. */
template <bool CENTERED, bool PLAIN, class T, int ROWS, class Part>
DEVICE void norm_part_write(const Part &part, const norm_params &p, typename T::bits *const (&y)[ROWS], const norm_statistics (&s)[ROWS]) {
    using piece = typename Part::piece;
    constexpr int PER_WORD = piece::PER_WORD;
    part.each([&](int i) {
        const piece weight = PLAIN || p.weight.data ? part.read(p.weight.data, i) : piece{};
        const piece bias = CENTERED && (PLAIN || p.bias.data) ? part.read(p.bias.data, i) : piece{};
        piece x[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; k++) x[k] = part.get(i, k);
#pragma unroll
        for (int word = 0; word < Part::ITEMS / PER_WORD; word++) {
            float w[PER_WORD], b[PER_WORD], h[ROWS][PER_WORD];
#pragma unroll
            for (int j = 0; j < PER_WORD; j++) {
                w[j] = PLAIN ? weight.get(word * PER_WORD + j) : p.weight.data ? weight.get(word * PER_WORD + j) + p.weight_offset : 1.0f;
                b[j] = bias.get(word * PER_WORD + j);
            }
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
#pragma unroll
                for (int j = 0; j < PER_WORD; j++) {
                    float &y = h[k][j];
                    y = x[k].get(word * PER_WORD + j);
                    y = (CENTERED ? y - s[k].mean : y) * s[k].rstd;
                    if (!PLAIN && p.round) y = rounded<T>(y);
                    y = CENTERED ? fused(y, w[j], b[j]) : y * w[j];
                }
                x[k].word[word] = held_of<T>(h[k]).word[0];
            }
        }
#pragma unroll
        for (int k = 0; k < ROWS; k++) part.put(y[k], i, x[k]);
    });
}

/* Two rows of a block share what is read of the weight and of the bias. */
template <bool CENTERED, class T, class Part, int G, int ROWS> DEVICE void norm_parts_of(const norm_params &p) {
    const Part part(p.part, p.n);
    int64_t row[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        row[k] = block_index() / p.part.blocks * ROWS + k;
        if (row[k] >= p.rows) row[k] = p.rows - 1; /* once more, to the same end */
        part.ask(row_at<T>(p.x, row[k]), k);
    }
    const row_blocks blocks(p.part);
    const float inverse = 1.0f / (float)p.n;
    norm_statistics s[ROWS] = {};
    part.wait();
    if (CENTERED) {
        /* Chan, Golub and LeVeque 1983: parts of so many elements, by their means. */
        const of_rows<two, ROWS> their = blocks.exchange(norm_part_moments<Part, G, ROWS>(part, 1.0f / (float)part.n), of_rows<two, ROWS>{});
        const int before = thread_index() % blocks.MOST * p.part.length, rest = (int)p.n - before;
        const float count = (float)(rest < 0 ? 0 : rest < p.part.length ? rest : p.part.length);
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            s[k].mean = blocks.size == 1 ? group_sum<blocks.MOST>(their.v[k].a) : group_sum<blocks.MOST>(their.v[k].a * count) * inverse;
            const float apart = count > 0 && blocks.size > 1 ? their.v[k].a - s[k].mean : 0.0f;
            s[k].rstd = 1 / square_root(group_sum<blocks.MOST>(fused(apart * apart, count, their.v[k].b)) * inverse + p.eps);
        }
    } else {
        of_rows<float, ROWS> sum = {};
        part.each([&](int i) {
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                float h[Part::ITEMS];
                part.get(h, i, k);
                sum.v[k] += vector_squares(h);
            }
        });
        sum = blocks.exchange(group_sum<G>(sum), of_rows<float, ROWS>{});
#pragma unroll
        for (int k = 0; k < ROWS; k++) s[k].rstd = 1 / square_root(group_sum<blocks.MOST>(sum.v[k]) * inverse + p.eps);
    }
    typename T::bits *y[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        y[k] = row_at<T>(p.y, row[k]);
        keep_address(y[k]); /* or the row is multiplied by its stride for each piece, and registers do not suffice */
        if (thread_index() == 0 && part.first == 0) {
            if (p.mean.data) store_one<f32>(p.mean.data, row[k], s[k].mean);
            if (p.rstd.data) store_one<f32>(p.rstd.data, row[k], s[k].rstd);
        }
    }
    if (p.weight.data && (!CENTERED || p.bias.data) && p.weight_offset == 0 && !p.round)
        norm_part_write<CENTERED, true, T, ROWS>(part, p, y, s);
    else
        norm_part_write<CENTERED, false, T, ROWS>(part, p, y, s);
}
template <bool CENTERED, class T, class Part, int G> DEVICE void norm_parts(const norm_params &p) {
    if (p.block_rows == 2)
        norm_parts_of<CENTERED, T, Part, G, 2>(p);
    else
        norm_parts_of<CENTERED, T, Part, G, 1>(p);
}
template <class T, class Part, int G> DEVICE void rms_norm_parts(const norm_params &p) { norm_parts<false, T, Part, G>(p); }
template <class T, class Part, int G> DEVICE void layer_norm_parts(const norm_params &p) { norm_parts<true, T, Part, G>(p); }

#define NORM_PART_SHAPE(op, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, f32, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, bf16, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, f16, G, HELD)

#endif
