/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward on devices: the one is the other without the mean. h, dh and dresidual have
 * the type T of dy, or f32, and so has the weight: as in norm_rows.h that is tested at run time. */
#ifndef TRINE_SIMT_NORM_BACKWARD_ROWS_H
#define TRINE_SIMT_NORM_BACKWARD_ROWS_H

#include "backends/simt/core/columns.inl.h"
#include <fetch.h>
#include "norm_rows.h"

struct norm_saved {
    float mean, rstd;
};
template <bool CENTERED> DEVICE norm_saved norm_saved_of(const norm_backward_params &p, int64_t row) {
    return { CENTERED ? load_one<f32>(p.mean.data, row) : 0.0f, load_one<f32>(p.rstd.data, row) };
}

/* xhat by what a row saved: h - mean by halves, since f32 need not have the difference of two of its numbers. */
template <bool CENTERED> struct norm_hats {
    const float minus, factor;
    DEVICE norm_hats(const norm_saved &s)
        : minus(CENTERED ? -0.5f * s.mean : 0.0f), factor(CENTERED ? 2 * s.rstd : s.rstd) {}
    /* of a row's element, or of 0 beyond it */
    DEVICE float of(float h, bool in = true) const {
        return (CENTERED ? fused(h, 0.5f, in ? minus : 0.0f) : h) * factor;
    }
    DEVICE float of_or_zero(float h, bool in) const {
        return (CENTERED ? fused(h, 0.5f, in ? minus : 0.0f) : h) * (in ? factor : 0.0f);
    }
};

/* dy and h of the thread's items in a piece. Asked for while a row before is at work: they are as in memory, h in half
 * of its words if it has 16 bits. */
template <class T, class Group> struct norm_backward_input {
    held<T, VECTOR> dy[Group::VECTORS];
    held<f32, VECTOR> h[Group::VECTORS];
    norm_saved s;

    DEVICE void ask(const norm_backward_params &p, int64_t row, typename Group::index at, typename Group::index n) {
        Group::template fetch_any<T>(dy, row_at<T>(p.dy, row), 0, at, n);
        if (sizeof(typename T::bits) == 4 || p.f32_residual)
            ask_h<f32>(p, row, at, n);
        else
            ask_h<T>(p, row, at, n);
    }
    /* Of a row that may be beyond the last, and then has no elements. */
    template <bool CENTERED> DEVICE void ask_turn(const norm_backward_params &p, int64_t row) {
        const bool live = row < p.rows;
        s = norm_saved_of<CENTERED>(p, live ? row : 0);
        ask(p, live ? row : 0, 0, live ? (typename Group::index)p.n : 0);
        if (live && p.ask_dresidual) fetch_residual(p, row);
    }
    /* The residual's gradient, for which no registers are left, is prefetched into L2. */
    static DEVICE void fetch_residual(const norm_backward_params &p, int64_t row) {
        const int size = p.f32_residual ? (int)sizeof(float) : (int)sizeof(typename T::bits);
        const char *from = (const char *)p.dresidual.data + row * p.dresidual.row * size;
#pragma unroll
        for (int v = 0; v < Group::VECTORS; v++) {
            const auto l = Group::place(v, 0, (typename Group::index)p.n);
            if (within(l, 0)) fetch_sector(from + l.at * size);
        }
    }
    template <class R>
    DEVICE void ask_h(const norm_backward_params &p, int64_t row, typename Group::index at, typename Group::index n) {
        typename Group::template raw<R> x;
        Group::template fetch_any<R>(x, row_at<R>(p.h, row), 0, at, n);
#pragma unroll
        for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
            for (int i = 0; i < VECTOR / held<R, VECTOR>::PER_WORD; i++) h[v].word[i] = x[v].word[i];
    }

    /* dy, and h as xhat, 0 beyond the row. */
    template <bool CENTERED>
    DEVICE void get(float (&g)[Group::VECTORS][VECTOR], float (&hat)[Group::VECTORS][VECTOR],
                    const norm_backward_params &p, typename Group::index at, typename Group::index n) const {
#pragma unroll
        for (int v = 0; v < Group::VECTORS; v++) {
            const held<T, VECTOR> x = emptied<T>(dy[v], Group::place(v, at, n));
#pragma unroll
            for (int k = 0; k < VECTOR; k++) g[v][k] = x.get(k);
        }
        if (sizeof(typename T::bits) == 4 || p.f32_residual)
            get_hat<CENTERED, f32>(hat, at, n);
        else
            get_hat<CENTERED, T>(hat, at, n);
    }
    template <bool CENTERED, class R>
    DEVICE void get_hat(float (&hat)[Group::VECTORS][VECTOR], typename Group::index at, typename Group::index n) const {
        const norm_hats<CENTERED> hats(s);
#pragma unroll
        for (int v = 0; v < Group::VECTORS; v++) {
            const auto l = Group::place(v, at, n);
            held<R, VECTOR> x;
#pragma unroll
            for (int i = 0; i < VECTOR / x.PER_WORD; i++) x.word[i] = h[v].word[i];
            x = emptied<R>(x, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) hat[v][k] = hats.of_or_zero(x.get(k), inside(l, k));
        }
    }
};

/* dy becomes g = (weight + offset) dy. */
template <class T, class W, class Group>
DEVICE void norm_weigh_as(float (&dy)[Group::VECTORS][VECTOR], const norm_backward_params &p, typename Group::index at,
                          typename Group::index n) {
    typename Group::template raw<W> weight;
    Group::template load<W>(weight, p.weight.data, at, n);
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) dy[v][k] *= weight[v].get(k) + p.weight_offset;
}
template <class T, class Group>
DEVICE void norm_weigh(float (&dy)[Group::VECTORS][VECTOR], const norm_backward_params &p, typename Group::index at,
                       typename Group::index n) {
    if (!p.weight.data) return;
    if (sizeof(typename T::bits) == 4 || p.f32_weight)
        norm_weigh_as<T, f32, Group>(dy, p, at, n);
    else
        norm_weigh_as<T, T, Group>(dy, p, at, n);
}

/* weight + offset of the thread's columns, kept for all rows: in shared memory, where no other thread looks at it, lest
 * registers do not suffice. The largest blocks read it for each row: so much memory would leave a CU of CDNA one of
 * them; and so do the smallest groups, of which gfx90a spilt registers. */
template <class T, class Group> struct norm_factors {
    static constexpr int HALF = VECTOR / 2, HALVES = Group::VECTORS * 2;
    static constexpr bool KEPT = Group::SIZE > 32 && Group::THREADS < NORM_FUSED_MOST;
    using half = packed<float, HALF>;
    const norm_backward_params &p;

    static DEVICE half &memory(int i) {
        SHARED half m[HALVES][KEPT ? Group::THREADS : 1];
        return m[i][thread_index()];
    }
    DEVICE norm_factors(const norm_backward_params &params) : p(params) {
        if constexpr (KEPT) {
            float w[Group::VECTORS][VECTOR];
#pragma unroll
            for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
                for (int k = 0; k < VECTOR; k++) w[v][k] = 1;
            norm_weigh<T, Group>(w, p, 0, (typename Group::index)p.n);
#pragma unroll
            for (int i = 0; i < HALVES; i++) {
                half h;
#pragma unroll
                for (int k = 0; k < HALF; k++) h.v[k] = w[i / 2][i % 2 * HALF + k];
                memory(i) = h;
            }
        }
    }
    DEVICE void weigh(float (&dy)[Group::VECTORS][VECTOR], typename Group::index n) const {
        if constexpr (KEPT) {
#pragma unroll
            for (int i = 0; i < HALVES; i++) {
                const half w = memory(i);
#pragma unroll
                for (int k = 0; k < HALF; k++) dy[i / 2][i % 2 * HALF + k] *= w.v[k];
            }
        } else {
            norm_weigh<T, Group>(dy, p, 0, n);
        }
    }
};

/* Adds the sums of g and of g xhat. */
template <class Group>
DEVICE void norm_backward_sums(two &sums, const float (&g)[Group::VECTORS][VECTOR],
                               const float (&hat)[Group::VECTORS][VECTOR]) {
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            sums.a += g[v][k];
            sums.b = fused(g[v][k], hat[v][k], sums.b);
        }
}

template <int G> DEVICE two norm_means(two sums, float inverse) {
    sums = group_sum<G>(sums);
    return { sums.a * inverse, sums.b * inverse };
}

/* dh = rstd (g - c1 - xhat c2) + dresidual, in place of g; dx = dropout of dh */
template <bool CENTERED, class T, class Group>
DEVICE void norm_backward_write(float (&g)[Group::VECTORS][VECTOR], const float (&hat)[Group::VECTORS][VECTOR],
                                const norm_backward_params &p, int64_t row, typename Group::index at,
                                typename Group::index n, float rstd, two means) {
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
        /* last: it may be large */
        for (int k = 0; k < VECTOR; k++)
            g[v][k] = fused(-hat[v][k], means.b, CENTERED ? g[v][k] - means.a : g[v][k]) * rstd;
    if (p.dresidual.data) norm_add<T, Group>(g, 1.0f, p.dresidual, p.f32_residual, row, at, n);
    norm_put<T, Group>(g, p.dh, p.f32_residual, row, at, n);
    if (p.dropout.p > 0) {
        norm_drop<Group>(g, p.dropout, row, at, n);
        norm_scale<Group>(g, p.dropout.scale);
    }
    norm_put_as<T, Group>(g, p.dx, row, at, n);
}

/* A row of several pieces. */
template <bool CENTERED, class T, class Group> DEVICE void norm_backward_long(const norm_backward_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    const index n = (index)p.n;
    norm_backward_input<T, Group> input;
    input.s = norm_saved_of<CENTERED>(p, row);
    float g[Group::VECTORS][VECTOR], hat[Group::VECTORS][VECTOR];
    two sums = { 0, 0 };
    for (index at = 0; at < n; at += Group::PIECE) {
        input.ask(p, row, at, n);
        input.template get<CENTERED>(g, hat, p, at, n);
        norm_weigh<T, Group>(g, p, at, n);
        norm_backward_sums<Group>(sums, g, hat);
    }
    const two means = norm_means<Group::SIZE>(sums, 1.0f / (float)n);
    for (index at = 0; at < n; at += Group::PIECE) {
        input.ask(p, row, at, n);
        input.template get<CENTERED>(g, hat, p, at, n);
        norm_weigh<T, Group>(g, p, at, n);
        norm_backward_write<CENTERED, T, Group>(g, hat, p, row, at, n, input.s.rstd, means);
    }
}

/* Adds the groups of the block in order and stores their sum. */
template <class Group>
DEVICE void norm_partial(float *partial, const float (&sum)[Group::VECTORS][VECTOR], typename Group::index n) {
    float *to = partial + block_index() * n;
    if constexpr (Group::ROWS == 1) {
        Group::each(0, n, [&](int v, const typename Group::lane &l) { put<f32>(sum[v], to, l); });
    } else {
        SHARED float part[Group::ROWS][Group::PIECE];
        sync_block();
        Group::each(0, n, [&](int v, const typename Group::lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) part[thread_index() / Group::SIZE][l.at + k] = sum[v][k];
        });
        sync_block();
        for (int at = thread_index(); at < n; at += Group::THREADS) {
            float total = 0;
            for (int i = 0; i < Group::ROWS; i++) total += part[i][at];
            to[at] = total;
        }
    }
}

/* Rows of one piece, in turns: while one is at work the next is on its way, if there are registers for it. A group that
 * has no row left follows the others through the last turn, on a row of no elements. */
template <bool CENTERED, class T, class Group> DEVICE void norm_backward_rows(const norm_backward_params &p) {
    using index = typename Group::index;
    constexpr bool AHEAD = !CENTERED || sizeof(typename T::bits) == 2,
                   WHOLE = sizeof(index) == sizeof(typename span<true>::index);
    float dweight[Group::VECTORS][VECTOR] = {}, dbias[Group::VECTORS][VECTOR] = {};
    const float inverse = 1.0f / (float)p.n;
    norm_backward_input<T, Group> input;
    int64_t row = Group::row();
    if (AHEAD && WHOLE) input.template ask_turn<CENTERED>(p, row);
    /* after that: it waits for the weight; of other rows before it, lest registers spill on CDNA */
    const norm_factors<T, Group> factors(p);
    if (AHEAD && !WHOLE) input.template ask_turn<CENTERED>(p, row);
    for (int64_t turn = 0; turn < p.turns; turn++) {
        if (!AHEAD) input.template ask_turn<CENTERED>(p, row);
        const bool live = row < p.rows;
        const int64_t here = row;
        const index n = live ? (index)p.n : 0;
        const float rstd = input.s.rstd;
        float g[Group::VECTORS][VECTOR], hat[Group::VECTORS][VECTOR];
        input.template get<CENTERED>(g, hat, p, 0, n);
        row += p.blocks * Group::ROWS;
        if (AHEAD && turn + 1 < p.turns) input.template ask_turn<CENTERED>(p, row);
#pragma unroll
        for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                dweight[v][k] = fused(g[v][k], hat[v][k], dweight[v][k]);
                if (CENTERED) dbias[v][k] += g[v][k];
            }
        factors.weigh(g, n);
        two sums = { 0, 0 };
        norm_backward_sums<Group>(sums, g, hat);
        sums = norm_means<Group::SIZE>(sums, inverse);
        if (live) norm_backward_write<CENTERED, T, Group>(g, hat, p, here, 0, n, rstd, sums);
    }
    if (p.weight_partial) norm_partial<Group>(p.weight_partial, dweight, (index)p.n);
    if (CENTERED && p.bias_partial) norm_partial<Group>(p.bias_partial, dbias, (index)p.n);
}

/* dweight sums dy xhat, dbias dy. */
template <bool CENTERED, class T> struct norm_terms {
    const norm_backward_params &p;
    template <bool WHOLE> DEVICE void add(float (&sum)[2][VECTOR], int64_t row, const lane &l) const {
        const norm_hats<CENTERED> hats(norm_saved_of<CENTERED>(p, row));
        float dy[VECTOR], h[VECTOR];
        load_lane<T, WHOLE>(dy, row_at<T>(p.dy, row), l);
        if (p.f32_residual)
            load_lane<f32, WHOLE>(h, row_at<f32>(p.h, row), l);
        else
            load_lane<T, WHOLE>(h, row_at<T>(p.h, row), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            sum[0][k] += dy[k] * hats.of(h[k]);
            sum[1][k] += dy[k];
        }
    }
};

template <bool CENTERED, class T> DEVICE void norm_columns(const norm_columns_params &p) {
    float *const partial[2] = { p.norm.weight_partial, p.norm.bias_partial };
    columns_block<2>(p.columns, partial, norm_terms<CENTERED, T>{ p.norm });
}

template <class S> DEVICE void norm_finish(const norm_finish_params &p) {
    const int64_t blocks = (p.sum[0].n + COLUMNS_FINISH - 1) / COLUMNS_FINISH, which = block_index() / blocks;
    columns_finish<S>(p.sum[which], block_index() - which * blocks);
}

#define NORM_BACKWARD_ROWS(op, ragged, WHOLE, CENTERED, T, G) \
    ENTRY_ASKING(op##ragged##_##T##_##G, row_threads(G), NORM_FUSED_MOST / row_threads(G), norm_backward_params) { \
        norm_backward_rows<CENTERED, T, group<G, NORM_FUSED_ITEMS / VECTOR, WHOLE>>(p); \
    }
#define NORM_BACKWARD_LENGTHS(op, ragged, WHOLE, CENTERED, T) \
    NORM_BACKWARD_ROWS(op, ragged, WHOLE, CENTERED, T, 8) \
    NORM_BACKWARD_ROWS(op, ragged, WHOLE, CENTERED, T, 32) \
    NORM_BACKWARD_ROWS(op, ragged, WHOLE, CENTERED, T, 64) \
    NORM_BACKWARD_ROWS(op, ragged, WHOLE, CENTERED, T, 128) \
    NORM_BACKWARD_ROWS(op, ragged, WHOLE, CENTERED, T, 256) \
    NORM_BACKWARD_ROWS(op, ragged, WHOLE, CENTERED, T, 512) \
    ENTRY(op##_long##ragged##_##T, NORM_FUSED_MOST, norm_backward_params) { \
        norm_backward_long<CENTERED, T, group<NORM_FUSED_MOST, NORM_FUSED_ITEMS / VECTOR, WHOLE>>(p); \
    }
#define NORM_BACKWARD_ENTRIES(op, CENTERED, T) \
    NORM_BACKWARD_LENGTHS(op, , true, CENTERED, T) \
    NORM_BACKWARD_LENGTHS(op, _ragged, false, CENTERED, T) \
    ENTRY(op##_columns_##T, SIMT_THREADS, norm_columns_params) { norm_columns<CENTERED, T>(p); } \
    ENTRY(op##_finish_##T, SIMT_THREADS, norm_finish_params) { norm_finish<T>(p); }

#endif
