/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm on devices: the one is the other without the mean. Residuals and weights have the type T of
 * x, or f32: that is tested at run time, which costs nothing beside memory, where an entry for each combination cost
 * minutes of compiling. */
#ifndef TRINE_SIMT_NORM_ROWS_H
#define TRINE_SIMT_NORM_ROWS_H

#include "norm.h"
#include "backends/simt/core/philox.h"
#include "backends/simt/core/row.h"

template <int N> struct batch {
    static constexpr int size = N;
};

/* Body(v, batch) for the vectors of the piece that the group has something of, STEP at a time: a branch round each
 * would keep them apart. The last one alone where the group has nothing of the other: most rows have something of more
 * than half of a group's vectors, and many of three of the four. By one question for even and odd counts the compiler's
 * order of four is another, and rows of 1024 with dropout have 64 % of what a copy moves instead of 73 (H200). */
template <class Group, int STEP, class Body>
DEVICE void norm_batches(typename Group::index at, typename Group::index n, const Body &body) {
    static_assert(STEP < 3, "one is left, or none");
#pragma unroll
    for (int first = 0; first < Group::VECTORS; first += STEP) {
        const auto has = [&](int v) { return at + v * Group::SIZE * VECTOR < n; };
        bool alone = false;
        if constexpr (Group::VECTORS % STEP > 0)
            alone = has(first) && (first + STEP > Group::VECTORS || (first > 0 && !has(first + 1)));
        else if constexpr (STEP > 1)
            alone = first > 0 && has(first) && !has(first + 1);
        if (alone)
            body(first, batch<1>());
        else if (has(first))
            body(first, batch<STEP>());
    }
}

/* Body(v) for each of them. */
template <class Group, int STEP = Group::VECTORS < 2 ? 1 : 2, class Body>
DEVICE void norm_each(typename Group::index at, typename Group::index n, const Body &body) {
    norm_batches<Group, STEP>(at, n, [&](int first, auto batch) {
#pragma unroll
        for (int i = 0; i < batch.size; i++) body(first + i);
    });
}

/* Is dropout unrolled? The generator is long: not for rows that are not whole, nor in the largest blocks, where scalar
 * registers on CDNA do not suffice. */
template <class Group> constexpr bool norm_drop_unrolled = Group::whole && Group::SIZE < ROW_MOST;

/* The words of the rows of a thread block; and which of them is that of the thread's first element in a piece. */
template <class Group> DEVICE dropout_words norm_words(int64_t row, typename Group::index n) {
    return { (row - Group::number()) * n, (uint32_t)(Group::ROWS * n) };
}
template <class Group> DEVICE uint32_t norm_words_at(typename Group::index at, typename Group::index n) {
    return (uint32_t)(Group::number() * n + at + Group::rank() * VECTOR);
}

/* What dropout leaves of x of the thread's items in a piece, not scaled: in a loop, */
template <class Group>
DEVICE void norm_drop_rolled(float (&x)[Group::VECTORS][VECTOR], const simt_dropout &d, int64_t row,
                             typename Group::index at, typename Group::index n) {
    uint64_t bits = 0;
#pragma unroll 1
    for (int v = 0; v < Group::VECTORS; v++) {
        const typename Group::lane l = Group::place(v, at, n);
        if (within(l, 0)) bits |= (uint64_t)(kept<VECTOR>(d, (uint64_t)(row * n + l.at)) & 0xff) << v * VECTOR;
    }
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[v][k] = bits >> (v * VECTOR + k) & 1 ? x[v][k] : 0.0f;
}

/* or each word compared where it is; */
template <class Group>
DEVICE void norm_drop(float (&x)[Group::VECTORS][VECTOR], const simt_dropout &d, int64_t row, typename Group::index at,
                      typename Group::index n) {
    const dropout_words words = norm_words<Group>(row, n);
    if constexpr (norm_drop_unrolled<Group>)
        if (words.alike) {
            const uint32_t first = norm_words_at<Group>(at, n);
            norm_each<Group>(at, n, [&](int v) { dropout_left(x[v], d, words, first + v * Group::SIZE * VECTOR); });
            return;
        }
    norm_drop_rolled<Group>(x, d, row, at, n);
}

/* and of 16 bits as they are in memory, none of which is looked at before all words are there: x comes while they are
 * made. In blocks of 512 threads, whose rows may lack a quarter of a group's vectors, one at a time. */
template <class T, class Group>
DEVICE void norm_mask(typename Group::template raw<T> &x, const simt_dropout &d, const dropout_words &words,
                      typename Group::index at, typename Group::index n) {
    const uint32_t first = norm_words_at<Group>(at, n);
    constexpr int AT_ONCE = Group::SIZE < 512 ? 2 : 1;
    typename Group::template raw<T> mask = {};
    norm_each<Group, AT_ONCE>(
        at, n, [&](int v) { mask[v] = dropout_mask<T, VECTOR>(d, words, first + v * Group::SIZE * VECTOR); });
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
        for (int i = 0; i < VECTOR / 2; i++) x[v].word[i] &= mask[v].word[i];
}

/* x becomes x scale + the thread's items of a row. Two vectors at a time, or one of 1024 threads, lest registers do not
 * suffice. */
template <class T, class Group>
DEVICE void norm_add_as(float (&x)[Group::VECTORS][VECTOR], float scale, const simt_rows &rows, int64_t row,
                        typename Group::index at, typename Group::index n) {
    constexpr int STEP = Group::VECTORS < 2 || Group::SIZE > 512 ? 1 : 2;
    const typename T::bits *from = row_at<T>(rows, row);
    keep_address(from);
#pragma unroll
    for (int first = 0; first < Group::VECTORS; first += STEP) {
        held<T, VECTOR> other[STEP];
        Group::template fetch<T>(other, from, first, at, n);
#pragma unroll
        for (int v = 0; v < STEP && first + v < Group::VECTORS; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) x[first + v][k] = fused(x[first + v][k], scale, other[v].get(k));
    }
}
template <class T, class Group>
DEVICE void norm_add(float (&x)[Group::VECTORS][VECTOR], float scale, const simt_rows &rows, bool is_f32, int64_t row,
                     typename Group::index at, typename Group::index n) {
    if (sizeof(typename T::bits) == 4 || is_f32)
        norm_add_as<f32, Group>(x, scale, rows, row, at, n);
    else
        norm_add_as<T, Group>(x, scale, rows, row, at, n);
}

/* Stores the thread's items of a row; norm_put(): if there is one. */
template <class T, class Group>
DEVICE void norm_put_as(const float (&x)[Group::VECTORS][VECTOR], const simt_rows &rows, int64_t row,
                        typename Group::index at, typename Group::index n) {
    typename T::bits *to = row_at<T>(rows, row);
    keep_address(to);
    Group::each(at, n, [&](int v, const typename Group::lane &l) { put<T>(x[v], to, l); });
}
template <class T, class Group>
DEVICE void norm_put(const float (&x)[Group::VECTORS][VECTOR], const simt_rows &rows, bool is_f32, int64_t row,
                     typename Group::index at, typename Group::index n) {
    if (!rows.data) return;
    if (sizeof(typename T::bits) == 4 || is_f32)
        norm_put_as<f32, Group>(x, rows, row, at, n);
    else
        norm_put_as<T, Group>(x, rows, row, at, n);
}

/* What dropout leaves of x of the thread's items in a piece; 0 beyond the row. */
template <class T, class Group>
DEVICE void norm_read_x(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at,
                        typename Group::index n) {
    constexpr bool MASKS = norm_drop_unrolled<Group> && sizeof(typename T::bits) == 2;
    const typename T::bits *from = row_at<T>(p.x, row);
    keep_address(from);
    typename Group::template raw<T> x;
    Group::template fetch_any<T>(x, from, 0, at, n);
    const dropout_words words = norm_words<Group>(row, n);
    const bool drop = p.dropout.p > 0, masks = MASKS && drop && words.alike;
    if constexpr (MASKS)
        if (masks) norm_mask<T, Group>(x, p.dropout, words, at, n);
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++) {
        x[v] = emptied<T>(x[v], Group::place(v, at, n));
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[v][k] = x[v].get(k);
    }
    if (!drop || masks) return;
    if constexpr (MASKS)
        norm_drop_rolled<Group>(h, p.dropout, row, at, n);
    else
        norm_drop<Group>(h, p.dropout, row, at, n);
}

template <class Group> DEVICE void norm_scale(float (&x)[Group::VECTORS][VECTOR], float scale) {
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[v][k] *= scale;
}

/* h = dropout(x) + residual, likewise. */
template <class T, class Group>
DEVICE void norm_read(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at,
                      typename Group::index n) {
    const bool drop = p.dropout.p > 0;
    const float scale = drop ? p.dropout.scale : 1.0f;
    norm_read_x<T, Group>(h, p, row, at, n);
    if (p.residual.data) norm_add<T, Group>(h, scale, p.residual, p.f32_residual, row, at, n);
    if (drop && !p.residual.data) norm_scale<Group>(h, scale);
}

/* Of a row: y = ((h - origin) rstd + lift) (weight + offset) + bias, where origin + shift is the mean and lift = -shift
 * rstd. */
struct norm_statistics {
    float mean, rstd, origin, lift;
};

/* What they are made of; square: the variance, or mean square, with eps. */
struct norm_found {
    float origin, shift, square;
    DEVICE float mean() const { return origin + shift; }
    DEVICE norm_statistics statistics() const {
        const float rstd = 1 / square_root(square);
        return { mean(), rstd, origin, -shift * rstd };
    }
};

/* f32 has not the squares of all of f32: a row whose `square` is not between these is done again times a power of two
 * (spec/norm/norm.h). One about a mean far from zero is as it is: its spread is no less than the mean's last bit, or
 * 0. */
DEVICE bool norm_fits(float square) { return square >= 0x1p-100f && square <= 0x1p126f; }
DEVICE float norm_power(float mean, bool small) { return small ? magnitude(mean) < 1 ? 0x1p96f : 1.0f : 0x1p-96f; }
DEVICE float norm_scaled_eps(float eps, float power) {
    return power < 1 ? larger(eps * power * power, 0x1p-126f) : eps * power * power; /* of a spread of 0 */
}
/* A mean is none beyond what it is of. */
DEVICE float norm_unscaled(float mean, float power) {
    const float x = mean / power, most = f32::largest();
    return magnitude(mean) < infinity() ? x > most ? most : x < -most ? -most : x : mean;
}

/* Sums of a thread in several chains, so that each addition is one instruction and waits for none of the others. */
template <class Value> struct chains {
    static constexpr int COUNT = 4;
    Value of[COUNT] = {};
    DEVICE Value &operator[](int k) { return of[k % COUNT]; }
    DEVICE Value total() const { return (of[0] + of[1]) + (of[2] + of[3]); }
};

/* Adds h, or its squares; beyond the row h is 0. */
template <bool CENTERED, class Group>
DEVICE void norm_sum(chains<float> &sum, const float (&h)[Group::VECTORS][VECTOR], typename Group::index at,
                     typename Group::index n) {
    norm_each<Group>(at, n, [&](int v) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum[k] = CENTERED ? sum[k] + h[v][k] : fused(h[v][k], h[v][k], sum[k]);
    });
}

/* h becomes h - origin, 0 beyond the row; adds that and its squares. */
template <class Group>
DEVICE void norm_center(chains<two> &sums, float (&h)[Group::VECTORS][VECTOR], typename Group::index at,
                        typename Group::index n, float origin) {
    norm_each<Group>(at, n, [&](int v) {
        const typename Group::lane l = Group::place(v, at, n);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            float &x = h[v][k];
            x -= inside(l, k) ? origin : 0.0f;
            sums[k] = { sums[k].a + x, fused(x, x, sums[k].b) };
        }
    });
}

/* The sums of h - origin correct both the mean and the variance for the rounding of the first mean
 * (spec/norm/layer_norm.c). */
DEVICE norm_found norm_centered(two sums, float origin, float inverse, float eps) {
    const float shift = sums.a * inverse, variance = fused(sums.b, inverse, -(shift * shift));
    return { origin, shift, (variance < 0 ? 0 : variance) + eps };
}

/* Are there a weight, and a bias if there can be one, and nothing else? */
template <bool CENTERED> DEVICE bool norm_factors_plain(const norm_params &p) {
    return p.weight.data && (!CENTERED || p.bias.data) && p.weight_offset == 0 && !p.round;
}

/* Some vectors of a weight or of a bias; ones or zeros if it is absent. */
template <class W, bool ONES, class Group, int N>
DEVICE void norm_factor(held<W, VECTOR> (&x)[N], bool there, const void *data, int first, typename Group::index at,
                        typename Group::index n) {
    constexpr bool WHOLE = Group::whole;
#pragma unroll
    for (int i = 0; i < N; i++) {
        if constexpr (WHOLE)
            x[i] = there  ? fetch_any<W>(data, Group::place(first + i, at, n))
                   : ONES ? held_ones<W, VECTOR>()
                          : held<W, VECTOR>{};
        else
            x[i] = ONES ? held_ones<W, VECTOR>() : held<W, VECTOR>{};
    }
    if (!WHOLE && there) Group::template fetch_any<W>(x, data, first, at, n);
}

/* y of a piece of h - origin, with weight and bias of type W; PLAIN: in the sense of norm_factors_plain(). They are
 * asked for, of some vectors at a time, before any is looked at. */
template <bool CENTERED, bool PLAIN, class T, class W, class Group>
DEVICE void norm_write_as(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, typename T::bits *row,
                          typename Group::index at, typename Group::index n, const norm_statistics &s) {
    constexpr int STEP = Group::SIZE < 512 && sizeof(typename W::bits) == 2 && Group::VECTORS > 1 ? 2 : 1;
    const bool weighted = PLAIN || p.weight.data, biased = CENTERED && (PLAIN || p.bias.data);
    const float offset = !PLAIN && weighted ? p.weight_offset : 0.0f;
    norm_batches<Group, STEP>(at, n, [&](int first, auto batch) {
        held<W, VECTOR> weight[batch.size], bias[batch.size];
        norm_factor<W, true, Group>(weight, weighted, p.weight.data, first, at, n);
        norm_factor<W, false, Group>(bias, biased, p.bias.data, first, at, n);
#pragma unroll
        for (int i = 0; i < batch.size; i++) {
            float(&y)[VECTOR] = h[first + i];
#pragma unroll
            for (int k = 0; k < VECTOR; k++) y[k] = CENTERED ? fused(y[k], s.rstd, s.lift) : y[k] * s.rstd;
            if (!PLAIN && p.round)
#pragma unroll
                for (int k = 0; k < VECTOR; k++) y[k] = rounded<T>(y[k]);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                const float factor = PLAIN ? weight[i].get(k) : weight[i].get(k) + offset;
                y[k] = CENTERED ? fused(y[k], factor, bias[i].get(k)) : y[k] * factor;
            }
            put<T>(y, row, Group::place(first + i, at, n));
        }
    });
}
template <bool CENTERED, class T, class Group>
DEVICE void norm_write(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at,
                       typename Group::index n, const norm_statistics &s) {
    typename T::bits *y = row_at<T>(p.y, row);
    keep_address(y);
    if (sizeof(typename T::bits) < 4 && p.f32_weight)
        norm_write_as<CENTERED, false, T, f32, Group>(h, p, y, at, n, s);
    else if (norm_factors_plain<CENTERED>(p))
        norm_write_as<CENTERED, true, T, T, Group>(h, p, y, at, n, s);
    else
        norm_write_as<CENTERED, false, T, T, Group>(h, p, y, at, n, s);
}

/* The statistics of a row, of which the group then has h - origin if it is HELD from step to step. Or, if this is not
 * the first time, of a row times `power`: of what the group has, which is another row by its mean alone, or of what it
 * reads once more. Of a power of 1 then nothing changes, since other groups of the warp may have come for theirs. */
template <bool CENTERED, class T, class Group>
DEVICE void norm_find(norm_found &found, float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row,
                      bool held, bool first, float power) {
    using index = typename Group::index;
    const index n = (index)p.n, end = Group::ONE_PIECE ? 1 : n;
    const bool mine = first || power != 1;
    const float inverse = 1.0f / (float)n, /* now, while the row is on its way */
        eps = first ? p.eps : norm_scaled_eps(p.eps, power);
    chains<float> sum;
    for (index at = 0; at < end; at += Group::PIECE) {
        if (first || !held) norm_read<T, Group>(h, p, row, at, n);
        if (first && held) norm_put<T, Group>(h, p.residual_out, p.f32_residual, row, at, n);
        if (!first) norm_scale<Group>(h, power);
        norm_sum<CENTERED, Group>(sum, h, at, n);
    }
    const float mean = group_sum<Group::SIZE>(sum.total()) * inverse;
    if (!CENTERED) {
        if (mine) found = { 0, 0, mean + eps };
        return;
    }
    const float origin = mine && magnitude(mean) < 0x1p100f ? mean : 0.0f; /* so that no difference overflows */
    chains<two> sums;
    for (index at = 0; at < end; at += Group::PIECE) {
        if (!held) {
            norm_read<T, Group>(h, p, row, at, n);
            if (!first) norm_scale<Group>(h, power);
        }
        norm_center<Group>(sums, h, at, n, origin);
    }
    const two total = group_sum<Group::SIZE>(sums.total());
    if (mine) found = norm_centered(total, origin, inverse, eps);
}

template <bool CENTERED, class T, class Group> DEVICE void norm_row(const norm_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const index n = (index)p.n, end = Group::ONE_PIECE ? 1 : n;
    const bool held = Group::ONE_PIECE || n <= Group::PIECE;
    float h[Group::VECTORS][VECTOR], power = 1, before = 0; /* before: what was subtracted before */
    norm_found found = {};
    const auto again = [&] {
        if (!norm_fits(found.square)) power = norm_power(found.mean(), found.square < 1);
        if (held && power != 1) before = found.origin;
        return any_of_warp(power != 1);
    };
    if constexpr (Group::ONE_PIECE) {
        norm_find<CENTERED, T, Group>(found, h, p, row, true, true, 1);
        if (again()) norm_find<CENTERED, T, Group>(found, h, p, row, true, false, power);
    } else { /* the same code for both times */
#pragma unroll 1
        for (bool first = true;; first = false) {
            norm_find<CENTERED, T, Group>(found, h, p, row, held, first, power);
            if (!first || !again()) break;
        }
    }
    const norm_statistics s = found.statistics();
    if (Group::rank() == 0) {
        if (p.mean.data) store_one<f32>(p.mean.data, row, norm_unscaled(fused(before, power, s.mean), power));
        if (p.rstd.data) store_one<f32>(p.rstd.data, row, s.rstd * power);
    }
    for (index at = 0; at < end; at += Group::PIECE) {
        if (!held) {
            norm_read<T, Group>(h, p, row, at, n);
            norm_put<T, Group>(h, p.residual_out, p.f32_residual, row, at, n); /* which may be the residual */
            if (power != 1) norm_scale<Group>(h, power);
            chains<two> unused;
            if (CENTERED) norm_center<Group>(unused, h, at, n, s.origin);
        }
        norm_write<CENTERED, T, Group>(h, p, row, at, n, s);
    }
}

/* Left alone, the compiler spends registers on residuals and dropout until too few blocks hide the latency of memory:
 * 768 threads, or 1024 with 16-bit elements in blocks of 512, took rms_norm on bf16 from 3.3 to 3.8 TB/s at 8192, and
 * from 2.4 to 3.5 at 16384 (H200). 1024 threads everywhere spill. */
template <class T> constexpr int norm_held(int threads) {
    const bool narrow = sizeof(typename T::bits) == 2;
    return threads == 512 ? 1 + narrow : threads > 512 ? 1 : (threads <= 128 && !narrow ? 640 : 768) / threads;
}
template <class T> constexpr int rms_norm_held(int threads) { return norm_held<T>(threads); }
template <class T> constexpr int layer_norm_held(int threads) { return norm_held<T>(threads); }

/* What is seldom done, a row once more, would have others take half as many registers again where rows are ragged. CDNA
 * has enough. */
template <class T> constexpr int norm_ragged_held(bool centered, int g) {
    const bool narrow = sizeof(typename T::bits) == 2;
    const int held = WARP > 32 ? 1 : !centered ? 1024 : g == 8 && narrow ? 512 : 768;
    return row_threads(g) > held ? 1 : held / row_threads(g);
}
#define NORM_ROW_ENTRY(op, CENTERED, T, G) \
    ROW_ENTRY_WHOLE(op, norm_params, T, G) \
    ENTRY_HELD(op##_ragged_##T##_##G, row_threads(G), norm_ragged_held<T>(CENTERED, G), norm_params) { \
        op##_row<T, group<G, 1, false>>(p); \
    }
#define NORM_ROW_ENTRIES(op, CENTERED, T) \
    NORM_ROW_ENTRY(op, CENTERED, T, 8) \
    NORM_ROW_ENTRY(op, CENTERED, T, 32) \
    NORM_ROW_ENTRY(op, CENTERED, T, 64) \
    NORM_ROW_ENTRY(op, CENTERED, T, 128) \
    NORM_ROW_ENTRY(op, CENTERED, T, 256) \
    NORM_ROW_ENTRY(op, CENTERED, T, 512) \
    NORM_ROW_ENTRY(op, CENTERED, T, 1024)

template <class T, class Group> DEVICE void rms_norm_row(const norm_params &p) { norm_row<false, T, Group>(p); }
template <class T, class Group> DEVICE void layer_norm_row(const norm_params &p) { norm_row<true, T, Group>(p); }

#endif
