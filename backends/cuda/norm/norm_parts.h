/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm of rows in shared memory. */
#ifndef TRINE_CUDA_NORM_PARTS_H
#define TRINE_CUDA_NORM_PARTS_H

#include <tile/access.h>
#include <tile/piece.h>

#include "backends/simt/norm/norm_rows.h"
#include "backends/cuda/core/row_part.h"

template <class T> constexpr bool is_f16 = false;
template <> constexpr bool is_f16<f16> = true;

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

/* What a thread sums up of its elements of a row: their squares. */
template <bool CENTERED> struct norm_part_sum {
    chains<float> squares;
    template <class Part> DEVICE void begin(const Part &, const float (&)[Part::ITEMS], int) {}
    template <class Part> DEVICE void add(const Part &, const float (&h)[Part::ITEMS], int) {
#pragma unroll
        for (int j = 0; j < Part::ITEMS; j++) squares[j] = fused(h[j], h[j], squares[j]);
    }
};
/* Or what they are beside the mean of its first few, and the squares of that, so that one pass suffices: of an element
 * that is by far the largest that mean has an eighth or a quarter. */
template <> struct norm_part_sum<true> {
    float origin = 0;
    two even = {}, odd = {};
    template <class Part> DEVICE void begin(const Part &part, const float (&h)[Part::ITEMS], int i) {
        const int few = part.n - i < Part::ITEMS ? part.n - i : Part::ITEMS;
        const float mean = vector_sum(h) * (Part::whole ? 1.0f / Part::ITEMS : 1.0f / (float)few);
        origin = magnitude(mean) < infinity() ? mean : 0;
    }
    template <class Part> DEVICE void add(const Part &part, const float (&h)[Part::ITEMS], int i) {
#pragma unroll
        for (int j = 0; j < Part::ITEMS; j++) {
            const float apart = part.whole || part.in(i + j) ? h[j] - origin : 0.0f;
            two &sum = j % 2 ? odd : even;
            sum = { sum.a + apart, fused(apart, apart, sum.b) };
        }
    }
};

/* Nothing is dropped. */
struct norm_part_whole {
    template <class Part> DEVICE void drop(const Part &, int, int) const {}
};
/* Or elements of rows of 16 bits, where they are: of matrices of up to 2^35, whose blocks of words have numbers of 32
 * bits. */
template <int ROWS> struct norm_part_dropped {
    const simt_dropout &d;
    uint32_t first[ROWS];
    template <class Part> DEVICE void drop(const Part &part, int i, int k) const {
        typename Part::own x = part.get(i, k);
        dropout_each<Part::ITEMS>(d, dropout_words(first[k]), part.column(i), [&](int j, uint32_t word) {
            mask_unless(word, d.last, x.word[j / 2], j % 2 ? 0xffffu : 0xffff0000u);
        });
        part.keep(i, x, k);
    }
};

template <bool CENTERED, class Part, int ROWS, class Drop>
DEVICE void norm_part_sum_up(const Part &part, norm_part_sum<CENTERED> (&sum)[ROWS], const Drop &drop) {
    part.template each_come<Part::template TURNS<ROWS>>([&](int i) {
        float h[Part::ITEMS];
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            drop.drop(part, i, k);
            part.get(h, i, k);
            if (i < Part::STEP) sum[k].begin(part, h, i);
            sum[k].add(part, h, i);
        }
    });
}

/* sum = x + y, and what its rounding lost, as long as y is but a correction of x. */
DEVICE float norm_part_corrected(float x, float y, float &lost) {
    const float sum = x + y;
    lost = y - (sum - x);
    return sum;
}

/* Of a block's parts, by what its threads have summed: their means, of which rounding lost `lost`, and the sums of
 * squares of what is left without them. */
template <int G, int ROWS>
DEVICE of_rows<two, ROWS> norm_part_moments(const norm_part_sum<true> (&sum)[ROWS], float count, float inverse,
                                            float (&lost)[ROWS]) {
    of_rows<float, ROWS> first;
    of_rows<two, ROWS> sums;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        sums.v[k] = sum[k].even + sum[k].odd;
        first.v[k] = fused(count, sum[k].origin, sums.v[k].a);
    }
    first = group_sum<G>(first);
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        first.v[k] *= inverse;
        const float apart = sum[k].origin - first.v[k], moved = count * apart;
        two &x = sums.v[k];
        if (count > 0) x = { x.a + moved, fused(apart, fused(2.0f, x.a, moved), x.b) };
    }
    sums = group_sum<G>(sums);
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const float shift = sums.v[k].a * inverse, mean = first.v[k];
        sums.v[k] = { norm_part_corrected(mean, magnitude(mean) < infinity() ? shift : 0.0f, lost[k]),
                      fused(-shift, sums.v[k].a, sums.v[k].b) };
    }
    return sums;
}

/* What stands for a residual that is not given: with dropout, what dropped elements are; else what changes no sum. */
template <class R> DEVICE uint32_t norm_part_no_residual(const norm_params &p) {
    return p.dropout.p > 0 ? 0 : sizeof(typename R::bits) == 4 ? 0x80000000u : 0x80008000u;
}

/* The thread's pieces of a row of the residual, of type R, and with it of x: two of the former are asked for ahead, and
 * L2 for all. */
template <class T, class R, class Part, int ITEMS = Part::ITEMS> struct norm_part_residual {
    using piece = held<R, ITEMS>;
    enum { AHEAD = 2 };
    const Part &part;
    const bool given;
    const uint32_t none;
    typename R::bits *const from;
    piece next[AHEAD];

    DEVICE norm_part_residual(const Part &row_part, const norm_params &p, int64_t row)
        : part(row_part), given(p.residual.data), none(norm_part_no_residual<R>(p)), from(row_at<R>(p.residual, row)) {
#pragma unroll
        for (int k = 0; k < AHEAD; k++) next[k] = ask(thread_index() * ITEMS + k * Part::STEP);
        if (Part::whole && given && thread_index() == 0) fetch_bytes(from + part.column(0), part.n * (int)sizeof *from);
        part.ask(row_at<T>(p.x, row));
    }
    DEVICE piece ask(int i) const { return part.template read_if<R>(given && i < part.n, from, i, none); }
    DEVICE piece take(int i) {
        const piece x = next[0];
#pragma unroll
        for (int k = 0; k + 1 < AHEAD; k++) next[k] = next[k + 1];
        next[AHEAD - 1] = ask(i + AHEAD * Part::STEP);
        return x;
    }
};
/* Where x and the residual take as much room as their sum, both wait there for it. */
template <class T, class R, class Part> struct norm_part_residual<T, R, Part, 8> {
    using piece = held<R, 8>;
    const Part &part;

    DEVICE norm_part_residual(const Part &row_part, const norm_params &p, int64_t row) : part(row_part) {
        part.template ask_both<R>(row_at<T>(p.x, row), p.residual.data ? row_at<R>(p.residual, row) : NULL,
                                  norm_part_no_residual<R>(p));
    }
    DEVICE piece take(int i) const { return part.template come<R, 1>(i); }
};

/* h = dropout(x) + residual in place of x, once that is there, and its sum; Add(h, x, i) adds to a piece of the
 * residual what dropout leaves of one of x. */
template <bool CENTERED, class T, class R, class Part, class Add>
DEVICE void norm_part_add(const Part &part, const norm_params &p, int64_t row, norm_part_residual<T, R, Part> &residual,
                          norm_part_sum<CENTERED> &sum, const Add &add) {
    typename R::bits *to = row_at<R>(p.residual_out, row);
    keep_address(to);
    const bool stored = p.residual_out.data;
    part.template each_come<Part::template TURNS<1>>([&](int i) {
        const held<R, Part::ITEMS> more = residual.take(i);
        float h[Part::ITEMS];
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) h[k] = more.get(k);
        add(h, part.template come<T>(i), i);
        part.keep(i, held_of<f32>(h));
        if (i < Part::STEP) sum.begin(part, h, i);
        sum.add(part, h, i);
        if (stored) part.template put<R>(to, i, held_of<R>(h));
    });
}
/* One loop where words are alike, without a question in it, and one for all else. */
template <bool CENTERED, class T, class R, class Part>
DEVICE void norm_part_add(const Part &part, const norm_params &p, int64_t row, norm_part_residual<T, R, Part> &residual,
                          norm_part_sum<CENTERED> &sum) {
    using sums = float[Part::ITEMS];
    using piece = typename Part::piece;
    dropout_words words(row * p.n, (uint32_t)p.n);
    keep_number(words.low);
    keep_number(words.high);
    if (Part::whole && p.dropout.p > 0 && words.alike) {
        norm_part_add<CENTERED, T, R>(part, p, row, residual, sum, [&](sums &h, const piece &x, int i) {
            dropout_each<Part::ITEMS>(p.dropout, words, part.column(i), [&](int k, uint32_t word) {
                add_product_if(word, p.dropout.last, h[k], x.get(k), p.dropout.scale);
            });
        });
        return;
    }
    const bool dropped = p.dropout.p > 0;
    const float scale = dropped ? p.dropout.scale : 1.0f;
    norm_part_add<CENTERED, T, R>(part, p, row, residual, sum, [&](sums &h, const piece &x, int i) {
        const uint32_t bits =
            dropped ? kept<Part::ITEMS, Part::whole>(p.dropout, (uint64_t)(row * p.n + part.column(i))) : UINT32_MAX;
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) h[k] = bits >> k & 1 ? fused(x.get(k), scale, h[k]) : h[k];
    });
}

/* y = (h - mean) rstd (weight + offset) + bias, of which a part need not be.
 * W: the type of the weight and of the bias. */
template <bool CENTERED, bool PLAIN, class T, class W, int ROWS, class Part>
DEVICE void norm_part_write(const Part &part, const norm_params &p, typename T::bits *const (&y)[ROWS],
                            const norm_statistics (&s)[ROWS]) {
    using piece = typename Part::piece;
    using factors = held<W, Part::ITEMS>;
    constexpr int PER_WORD = piece::PER_WORD;
    part.each([&](int i) {
        const factors weight = PLAIN || p.weight.data ? part.template read<W>(p.weight.data, i) : factors{};
        const factors bias = CENTERED && (PLAIN || p.bias.data) ? part.template read<W>(p.bias.data, i) : factors{};
        typename Part::own x[ROWS];
        piece to[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; k++) x[k] = part.get(i, k);
#pragma unroll
        for (int word = 0; word < Part::ITEMS / PER_WORD; word++) {
            float w[PER_WORD], b[PER_WORD], h[ROWS][PER_WORD];
#pragma unroll
            for (int j = 0; j < PER_WORD; j++) {
                w[j] = PLAIN           ? weight.get(word * PER_WORD + j)
                       : p.weight.data ? weight.get(word * PER_WORD + j) + p.weight_offset
                                       : 1.0f;
                b[j] = bias.get(word * PER_WORD + j);
            }
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
#pragma unroll
                for (int j = 0; j < PER_WORD; j++) {
                    float &y = h[k][j];
                    y = x[k].get(word * PER_WORD + j);
                    y = CENTERED ? fused(y, s[k].rstd, s[k].lift) : y * s[k].rstd;
                    if (!PLAIN && p.round) y = rounded<T>(y);
                    y = CENTERED ? fused(y, w[j], b[j]) : y * w[j];
                }
                to[k].word[word] = held_of<T>(h[k]).word[0];
            }
        }
#pragma unroll
        for (int k = 0; k < ROWS; k++) part.put(y[k], i, to[k]);
    });
}

/* Of each row what its lanes have, LANES of them one behind the other. */
template <int LANES> DEVICE void norm_part_spread(norm_statistics (&s)[1], const norm_statistics &own) { s[0] = own; }
template <int LANES> DEVICE void norm_part_spread(norm_statistics (&s)[2], const norm_statistics &own) {
    const bool second = thread_index() / LANES % 2;
    const norm_statistics other = shuffle_xor(own, LANES);
    s[0] = second ? other : own;
    s[1] = second ? own : other;
}

/* The statistics of a block's rows, each by as many lanes as a cluster may have blocks; eps: of the lane's row. */
template <int G, int ROWS, class Part>
DEVICE void norm_part_statistics(const Part &part, const norm_params &p, const row_blocks &blocks,
                                 const norm_part_sum<true> (&sum)[ROWS], norm_statistics (&s)[ROWS], float eps,
                                 uint32_t turn = 0) {
    /* Chan, Golub and LeVeque 1983: parts of so many elements, by their means. */
    float losses[ROWS];
    const of_rows<two, ROWS> own = norm_part_moments<G>(sum, (float)part.count(), reciprocal((float)part.n), losses);
    const two their = blocks.exchange(own.v, two{}, turn);
    float lost = losses[0], squares = their.b;
#pragma unroll
    for (int k = 1; k < ROWS; k++) lost = thread_index() / blocks.MOST % ROWS == k ? losses[k] : lost;
    norm_statistics of_row = {};
    if (blocks.size == 1) {
        of_row.mean = group_sum<blocks.MOST>(their.a);
    } else {
        const int before = thread_index() % blocks.MOST * p.part.length, rest = (int)p.n - before;
        const float count = (float)(rest < 0 ? 0 : rest < p.part.length ? rest : p.part.length);
        of_row.mean = group_sum<blocks.MOST>(their.a * count * p.inverse);
        const float shift = group_sum<blocks.MOST>(count > 0 ? (their.a - of_row.mean) * count : 0.0f) * p.inverse;
        /* near the mean by some roundings, then by one */
        if (magnitude(of_row.mean) < infinity()) of_row.mean = norm_part_corrected(of_row.mean, shift, lost);
        const float apart = count > 0 ? their.a - of_row.mean : 0.0f;
        squares = fused(apart * apart, count, squares);
    }
    of_row.rstd = reciprocal_root(fused(group_sum<blocks.MOST>(squares), p.inverse, eps));
    /* rounded once, which is what the bound has for the rounding of the mean */
    of_row.lift = fused(-of_row.mean, of_row.rstd, -lost * of_row.rstd);
    norm_part_spread<blocks.MOST>(s, of_row);
}
template <int G, int ROWS, class Part>
DEVICE void norm_part_statistics(const Part &, const norm_params &p, const row_blocks &blocks,
                                 const norm_part_sum<false> (&sum)[ROWS], norm_statistics (&s)[ROWS], float eps,
                                 uint32_t turn = 0) {
    of_rows<float, ROWS> squares;
#pragma unroll
    for (int k = 0; k < ROWS; k++) squares.v[k] = sum[k].squares.total();
    const float their = blocks.exchange(group_sum<G>(squares).v, 0.0f, turn);
    norm_statistics of_row = {};
    of_row.rstd = reciprocal_root(fused(group_sum<blocks.MOST>(their), p.inverse, eps));
    norm_part_spread<blocks.MOST>(s, of_row);
}

/* `scale`: the row is so many times what is in shared memory. */
template <class Part, int ROWS>
DEVICE void norm_part_save(const Part &part, const norm_params &p, const int64_t (&row)[ROWS],
                           const norm_statistics (&s)[ROWS], float scale) {
    if (thread_index() != 0 || part.first != 0) return;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (p.mean.data) store_one<f32>(p.mean.data, row[k], s[k].mean * scale);
        if (p.rstd.data) store_one<f32>(p.rstd.data, row[k], s[k].rstd / scale);
    }
}

/* By rstd what norm_fits() says of its row. */
DEVICE bool norm_part_fits(const norm_statistics &s) { return s.rstd >= 0x1p-63f && s.rstd <= 0x1p50f; }

/* The rows that do not fit, in shared memory, times a power of two, and their statistics. f16 has nothing beyond. */
template <bool CENTERED, int G, class Part, int ROWS>
DEVICE void norm_part_again(const Part &part, const norm_params &p, const row_blocks &blocks,
                            const int64_t (&row)[ROWS], norm_statistics (&s)[ROWS], float scale) {
    norm_part_sum<CENTERED> sum[ROWS];
    norm_statistics found[ROWS];
    float power[ROWS], own = 1; /* of the lane's row */
    blocks.again();
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        power[k] = norm_part_fits(s[k]) ? 1.0f : norm_power(s[k].mean, s[k].rstd > 1);
        own = thread_index() / blocks.MOST % ROWS == k ? power[k] : own;
    }
    part.each([&](int i) {
        float h[Part::ITEMS];
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            part.get(h, i, k);
#pragma unroll
            for (float &x : h) x *= power[k];
            part.keep(i, held_of<typename Part::type>(h), k);
            if (i < Part::STEP) sum[k].begin(part, h, i);
            sum[k].add(part, h, i);
        }
    });
    norm_part_statistics<G>(part, p, blocks, sum, found, norm_scaled_eps(p.eps, own), 1);
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (power[k] == 1) continue;
        s[k] = found[k];
        if (thread_index() != 0 || part.first != 0) continue;
        if (p.mean.data) store_one<f32>(p.mean.data, row[k], norm_unscaled(s[k].mean * scale, power[k]));
        if (p.rstd.data) store_one<f32>(p.rstd.data, row[k], s[k].rstd / scale * power[k]);
    }
}

/* What the rows save, and the statistics by which they are written. */
template <bool CENTERED, int G, class Part, int ROWS>
DEVICE void norm_part_end(const Part &part, const norm_params &p, const row_blocks &blocks, const int64_t (&row)[ROWS],
                          norm_statistics (&s)[ROWS], float scale = 1.0f) {
    norm_part_save(part, p, row, s, scale);
    if constexpr (!is_f16<typename Part::type>) {
        bool fit = true;
#pragma unroll
        for (int k = 0; k < ROWS; k++) fit = fit && norm_part_fits(s[k]);
        if (any_of_warp(!fit)) norm_part_again<CENTERED, G>(part, p, blocks, row, s, scale);
    }
}

/* Two rows of a block share what is read of the weight and of the bias. */
template <bool CENTERED, bool DROP, class T, class Part, int G, int ROWS>
DEVICE void norm_parts_of(const norm_params &p) {
    const Part part(p.part, p.n);
    int64_t row[ROWS];
    const void *x[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        row[k] = cluster_index() * ROWS + k;
        if (row[k] >= p.rows) row[k] = p.rows - 1; /* once more, to the same end */
        x[k] = row_at<T>(p.x, row[k]);
    }
    part.ask(x);
    const row_blocks blocks(p.part);
    norm_statistics s[ROWS];
    norm_part_sum<CENTERED> sum[ROWS];
    if constexpr (DROP) {
        norm_part_dropped<ROWS> drop = { p.dropout, {} };
#pragma unroll
        for (int k = 0; k < ROWS; k++) drop.first[k] = (uint32_t)(row[k] * p.n / 8);
        norm_part_sum_up<CENTERED>(part, sum, drop);
    } else {
        norm_part_sum_up<CENTERED>(part, sum, norm_part_whole{});
    }
    norm_part_statistics<G>(part, p, blocks, sum, s, p.eps);
    typename T::bits *y[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        y[k] = row_at<T>(p.y, row[k]);
        keep_address(y[k]); /* or the row is multiplied by its stride for each piece, and registers do not suffice */
    }
    norm_part_end<CENTERED, G>(part, p, blocks, row, s, DROP ? p.dropout.scale : 1.0f);
    if (norm_factors_plain<CENTERED>(p))
        norm_part_write<CENTERED, true, T, T, ROWS>(part, p, y, s);
    else
        norm_part_write<CENTERED, false, T, T, ROWS>(part, p, y, s);
}
template <bool CENTERED, bool DROP, class T, class Part, int G> DEVICE void norm_parts(const norm_params &p) {
    if (p.block_rows == 2)
        norm_parts_of<CENTERED, DROP, T, Part, G, 2>(p);
    else
        norm_parts_of<CENTERED, DROP, T, Part, G, 1>(p);
}
template <class T, class Part, int G> DEVICE void rms_norm_parts(const norm_params &p) {
    norm_parts<false, false, T, Part, G>(p);
}
template <class T, class Part, int G> DEVICE void layer_norm_parts(const norm_params &p) {
    norm_parts<true, false, T, Part, G>(p);
}

/* Rows with a residual of type R, dropout or a weight of another type: h is made once, as f32, in shared memory. Pieces
 * are of 16 bytes of R, lest stores have gaps. */
template <bool CENTERED, class T, class R, int G, int HELD, bool WHOLE> DEVICE void norm_full(const norm_params &p) {
    using part_of = row_part<T, G, HELD, WHOLE, f32, 16 / (int)sizeof(typename R::bits)>;
    const part_of part(p.part, p.n);
    const int64_t row[1] = { cluster_index() };
    norm_part_residual<T, R, part_of> residual(part, p, row[0]);
    const row_blocks blocks(p.part);
    norm_statistics s[1];
    norm_part_sum<CENTERED> sum[1];
    norm_part_add<CENTERED, T, R>(part, p, row[0], residual, sum[0]);
    norm_part_statistics<G>(part, p, blocks, sum, s, p.eps);
    norm_part_end<CENTERED, G>(part, p, blocks, row, s);
    typename T::bits *y[1] = { row_at<T>(p.y, row[0]) };
    keep_address(y[0]);
    if (sizeof(typename T::bits) < 4 && p.f32_weight)
        norm_part_write<CENTERED, false, T, f32, 1>(part, p, y, s);
    else if (norm_factors_plain<CENTERED>(p))
        norm_part_write<CENTERED, true, T, T, 1>(part, p, y, s);
    else
        norm_part_write<CENTERED, false, T, T, 1>(part, p, y, s);
}

#define NORM_PART_SHAPE(op, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, f32, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, bf16, G, HELD) \
    ROW_PART_SHAPE(op, norm_params, op##_parts, f16, G, HELD)

/* The entries <op>_drop[_ragged]_<T>_<held>: of rows of 16 bits with dropout and nothing added to them, of a length
 * that is a multiple of 8. `eps` is divided by the square of dropout's scale, so that what is left needs no scale. */
#define NORM_DROP(op, CENTERED, T, G, HELD) \
    ENTRY_ASKING(op##_drop_##T##_##HELD, G, HELD, norm_params) { \
        norm_parts<CENTERED, true, T, row_part<T, G, HELD, true>, G>(p); \
    } \
    ENTRY_HELD(op##_drop_ragged_##T##_##HELD, G, HELD, norm_params) { \
        norm_parts<CENTERED, true, T, row_part<T, G, HELD, false>, G>(p); \
    }

/* The entries <op>_fit_<T>_<columns>: whole rows by groups that they fill (norm_fit), of so many threads of an SM; of
 * two and three vectors of short rows as many as registers suffice for, since 896 instead of 1024, and 768 instead of
 * 896, lose 2 to 4 % (bf16 at 128, 512 and 768). */
#define NORM_FIT(op, T, G, V, HELD, COLUMNS) \
    ENTRY_ASKING(op##_fit_##T##_##COLUMNS, NORM_FIT_THREADS(G), HELD / NORM_FIT_THREADS(G), norm_params) { \
        static_assert(G * V * NORM_FIT_ITEMS == COLUMNS, "its name"); \
        op##_row<T, group<G, V, true, NORM_FIT_SMALL>>(p); \
    }
#define NORM_FITS_SHORT(op, T, TWO, THREE) \
    NORM_FIT(op, T, 8, 1, 1024, 64) \
    NORM_FIT(op, T, 8, 2, TWO, 128) \
    NORM_FIT(op, T, 8, 3, THREE, 192) \
    NORM_FIT(op, T, 32, 2, TWO, 512)
#define NORM_FITS(op, T, TWO, THREE) \
    NORM_FITS_SHORT(op, T, TWO, THREE) \
    NORM_FIT(op, T, 32, 3, THREE, 768) \
    NORM_FIT(op, T, 32, 5, 640, 1280) \
    NORM_FIT(op, T, 64, 3, 768, 1536) \
    NORM_FIT(op, T, 32, 7, 512, 1792) \
    NORM_FIT(op, T, 64, 5, 640, 2560)

/* The entries <op>_full[_ragged]_<T>_<R>_<held>. */
#define NORM_FULL(op, CENTERED, T, R) \
    ENTRY_ASKING(op##_full_##T##_##R##_6, NORM_FULL_THREADS, 6, norm_params) { \
        norm_full<CENTERED, T, R, NORM_FULL_THREADS, 6, true>(p); \
    } \
    ENTRY_HELD(op##_full_ragged_##T##_##R##_6, NORM_FULL_THREADS, 4, norm_params) { \
        norm_full<CENTERED, T, R, NORM_FULL_THREADS, 6, false>(p); \
    }
#define NORM_FULLS(op, CENTERED) \
    NORM_FULL(op, CENTERED, f32, f32) \
    NORM_FULL(op, CENTERED, bf16, bf16) \
    NORM_FULL(op, CENTERED, bf16, f32) \
    NORM_FULL(op, CENTERED, f16, f16) \
    NORM_FULL(op, CENTERED, f16, f32)

#endif
