/* SPDX-License-Identifier: Apache-2.0 */
/* adafactor on devices: sums of squares in float64 by tiles, which depend on the shape alone; the variances of rows and
 * columns; the root mean square of the updates; then the updates.
 *
 * NOTES. The gradient is read three times, since the updates' root mean square depends on the variances, and all
 * updates on that; each time in the other direction, so that a cache still has what was read last. */
#include "adafactor.h"
#include "by_chance.inl.h"
#include "power64.inl.h"
#include "backends/simt/core/row.h"
#include "spec/places/adafactor.h"

DEVICE bool adafactor_skips(const adafactor_params &p) { return p.found_inf && *p.found_inf != 0; }

/* A thread's 8 columns, in vectors of 16 bytes of the wider of both types, each beside those of the other threads, and
 * its line's rows of a tile. */
template <class T, class G> struct adafactor_tile {
    static constexpr int N = sizeof(typename T::bits) > 2 || sizeof(typename G::bits) > 2 ? 4 : 8;
    static constexpr int VECTORS = ADAFACTOR_LANE / N;
    using row_of = float[VECTORS][N];
    const adafactor_params &p;
    int64_t number, down, across, row;
    int line, lane;

    DEVICE adafactor_tile(const adafactor_params &params, bool back) : p(params) {
        number = back ? p.tiles - 1 - block_index() : block_index();
        down = number / p.across;
        across = number - down * p.across;
        line = thread_index() / ADAFACTOR_LINE;
        lane = thread_index() % ADAFACTOR_LINE;
        row = down * ADAFACTOR_ROWS;
    }
    DEVICE int place(int v) const { return (v * ADAFACTOR_LINE + lane) * N; } /* in the tile */
    DEVICE int64_t column(int v) const { return across * ADAFACTOR_COLUMNS + place(v); }
    DEVICE bool whole() const { /* is each of its rows, and a whole vector? */
        return p.aligned && row + ADAFACTOR_ROWS <= p.r && (across + 1) * ADAFACTOR_COLUMNS <= p.c;
    }
    /* Row i's elements; 0 beyond. */
    template <class E, bool WHOLE> DEVICE void load_row(row_of &x, const simt_rows &rows, int64_t i) const {
        const typename E::bits *const from = row_at<E>(rows, i);
#pragma unroll
        for (int v = 0; v < VECTORS; v++) load_lane<E, WHOLE>(x[v], from, { column(v), i < p.r ? p.c : 0, p.aligned });
    }
    template <class E, bool WHOLE>
    DEVICE void store_vector_of(const float (&x)[N], const simt_rows &rows, int64_t i, int v) const {
        typename E::bits *const to = row_at<E>(rows, i);
        if constexpr (WHOLE)
            store_vector<E>(x, to + column(v));
        else
            store<E>(x, to, { column(v), i < p.r ? p.c : 0, p.aligned });
    }
    /* Body(i, k) for each of the line's rows, number k of the tile, two at a time; those beyond the matrix are left
     * out. */
    template <class Body> DEVICE void each(const Body &body) const {
        static_assert(ADAFACTOR_ROWS % (2 * ADAFACTOR_LINES) == 0, "pairs");
#pragma unroll 1
        for (int k = line; k < ADAFACTOR_ROWS; k += 2 * ADAFACTOR_LINES) {
            if (row + k < p.r) body(row + k, k);
            if (row + k + ADAFACTOR_LINES < p.r) body(row + k + ADAFACTOR_LINES, k + ADAFACTOR_LINES);
        }
    }
};

/* The sum of squares: of each four in f32, where these are neither near its largest numbers nor its smallest. */
template <int N> DEVICE double adafactor_sum_of_squares(const float (&x)[N]) {
    double sum = 0;
#pragma unroll
    for (int k = 0; k < N; k += 4) {
        const float four[4] = { x[k], x[k + 1], x[k + 2], x[k + 3] };
        const float squares = vector_squares(four);
        if (squares > 0x1p-80f && squares < 0x1p100f)
            sum += squares;
        else
#pragma unroll
            for (int i = 0; i < 4; i++) sum += (double)four[i] * four[i];
    }
    return sum;
}

template <class T, class G, bool WHOLE>
DEVICE void adafactor_squares_of(const adafactor_tile<T, G> &t, double (*part)[ADAFACTOR_COLUMNS]) {
    using tile = adafactor_tile<T, G>;
    constexpr int N = tile::N, VECTORS = tile::VECTORS;
    const adafactor_params &p = t.p;
    const float scale = p.grad_scale ? *p.grad_scale : 1.0f;
    double column[VECTORS][N] = {}, params = 0;
    t.each([&](int64_t i, int) {
        typename tile::row_of x, g;
        t.template load_row<T, WHOLE>(x, p.param, i);
        t.template load_row<G, WHOLE>(g, p.grad, i);
        double row = 0;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
#pragma unroll
            for (int k = 0; k < N; k++) {
                const double scaled = WHOLE || t.column(v) + k < p.c ? product(g[v][k], scale) : 0.0f;
                const double square = scaled * scaled;
                row += square;
                column[v][k] += square;
            }
            params += adafactor_sum_of_squares(x[v]);
        }
        if (!p.row_var) return;
        row = group_sum<ADAFACTOR_LINE>(row);
        if (t.lane == 0) p.rows[t.across * p.r + i] = row;
    });
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
#pragma unroll
        for (int k = 0; k < N; k++) part[t.line][t.place(v) + k] = column[v][k];
    sync_block();
    static_assert((int)ADAFACTOR_COLUMNS == (int)SIMT_THREADS, "a thread has a column");
    const int64_t j = t.across * ADAFACTOR_COLUMNS + thread_index();
    if (j < p.c) {
        double sum = 0;
#pragma unroll
        for (int line = 0; line < ADAFACTOR_LINES; line++) sum += part[line][thread_index()];
        p.columns[t.down * p.c + j] = sum;
    }
    params = group_sum<SIMT_THREADS>(params);
    if (thread_index() == 0) p.params[t.number] = params;
}
template <class T, class G> DEVICE void adafactor_squares(const adafactor_params &p) {
    SHARED double part[ADAFACTOR_LINES][ADAFACTOR_COLUMNS];
    const adafactor_tile<T, G> t(p, false);
    if (t.whole())
        adafactor_squares_of<T, G, true>(t, part);
    else
        adafactor_squares_of<T, G, false>(t, part);
}

/* ----------------------------------------------------------------------------------------------------- all elements */

/* The sum of number `at` of each of `count` lines of n, by the threads that have it. */
DEVICE double adafactor_added(const double *lines, int64_t count, int64_t n, int64_t at) {
    SHARED double part[ADAFACTOR_PARTS][ADAFACTOR_SUMS];
    const int own = thread_index() / ADAFACTOR_SUMS, place = thread_index() % ADAFACTOR_SUMS;
    double sum = 0;
    if (at < n)
#pragma unroll 8
        for (int64_t k = own; k < count; k += ADAFACTOR_PARTS) sum += lines[k * n + at];
    part[own][place] = sum;
    sync_block();
    sum = part[0][place];
#pragma unroll
    for (int i = 1; i < ADAFACTOR_PARTS; i++) sum += part[i][place];
    return sum;
}

DEVICE double adafactor_variance(double w, double before, double sum, int64_t count) {
    return (1 - w) * before + w * (count > 0 ? sum / (double)count : 0);
}

/* A number of a step that only the host could refuse makes NaN. */
ENTRY(adafactor_variances, SIMT_THREADS, adafactor_params) {
    if (adafactor_skips(p)) return;
    const int64_t step = p.step ? *p.step : p.step_here, block = block_index(), first = block - p.means_count;
    const int place = thread_index() % ADAFACTOR_SUMS;
    const bool own = thread_index() < ADAFACTOR_SUMS;
    const double w = step < 1 ? (double)not_a_number() : power_of_double((double)step, p.beta2_decay);
    if (first < 0) {
        const int64_t i = block * ADAFACTOR_SUMS + place;
        const double sum = adafactor_added(p.rows, p.across, p.r, i);
        double variance = 0;
        if (own && i < p.r) {
            variance = adafactor_variance(w, p.row_var[i], sum, p.c);
            p.row_var[i] = (float)variance;
            if (p.across > 0) p.rows[i] = variance;
        }
        const double mean = group_sum<SIMT_THREADS>(variance / (double)p.r);
        if (thread_index() == 0) p.means[block] = mean;
    } else {
        const int64_t j = first * ADAFACTOR_SUMS + place;
        const double sum = adafactor_added(p.columns, p.down, p.c, j);
        if (!own || j >= p.c) return;
        const double variance = adafactor_variance(w, p.col_var[j], sum, p.r);
        p.col_var[j] = (float)variance;
        p.col[j] = (float)(1 / square_root(variance));
    }
}

/* The sum of `count` numbers, by a block. */
DEVICE double adafactor_total(const double *numbers, int64_t count) {
    double sum = 0;
#pragma unroll 4
    for (int64_t i = thread_index(); i < count; i += SIMT_THREADS) sum += numbers[i];
    return group_sum<SIMT_THREADS>(sum);
}

/* ---------------------------------------------------------------------------------------------------------- updates */

/* A row's updates: the product of the roots, or the limit, and the gradient; 0 beyond. `g` becomes them. */
template <class Tile>
DEVICE void adafactor_updates(typename Tile::row_of &g, const Tile &t, const typename Tile::row_of &col, float row,
                              float scale) {
#pragma unroll
    for (int v = 0; v < Tile::VECTORS; v++)
#pragma unroll
        for (int k = 0; k < Tile::N; k++) {
            const float size = row * col[v][k];
            g[v][k] = product(g[v][k], scale) * (size > t.p.limit ? t.p.limit : size);
        }
}
/* The roots of a thread's columns; 0 beyond. */
template <class Tile> DEVICE void adafactor_roots(typename Tile::row_of &col, const Tile &t) {
#pragma unroll
    for (int v = 0; v < Tile::VECTORS; v++)
#pragma unroll
        for (int k = 0; k < Tile::N; k++) col[v][k] = t.column(v) + k < t.p.c ? t.p.col[t.column(v) + k] : 0.0f;
}

template <class G, bool WHOLE> DEVICE double adafactor_norms_of(const adafactor_tile<G, G> &t, const float *row) {
    using tile = adafactor_tile<G, G>;
    const float scale = t.p.grad_scale ? *t.p.grad_scale : 1.0f;
    typename tile::row_of col;
    adafactor_roots(col, t);
    double sum = 0;
    t.each([&](int64_t i, int k) {
        typename tile::row_of u;
        t.template load_row<G, WHOLE>(u, t.p.grad, i);
        adafactor_updates(u, t, col, row[k], scale);
#pragma unroll
        for (int v = 0; v < tile::VECTORS; v++) {
            if (!WHOLE)
#pragma unroll
                for (int e = 0; e < tile::N; e++)
                    if (t.column(v) + e >= t.p.c) u[v][e] = 0;
            sum += adafactor_sum_of_squares(u[v]);
        }
    });
    return sum;
}
template <class G> DEVICE void adafactor_norms(const adafactor_params &p) {
    SHARED float row[ADAFACTOR_ROWS];
    if (adafactor_skips(p)) return;
    const adafactor_tile<G, G> t(p, true);
    double mean = adafactor_total(p.means, p.means_count);
    if (mean <= p.eps1) mean = p.eps1;
    const int64_t i = t.row + thread_index();
    if (thread_index() < ADAFACTOR_ROWS && i < p.r) {
        row[thread_index()] = p.row_var ? (float)(1 / square_root(p.rows[i] / mean)) : 1.0f;
        if (t.across == 0) p.row[i] = row[thread_index()];
    }
    sync_block();
    const double sum =
        group_sum<SIMT_THREADS>(t.whole() ? adafactor_norms_of<G, true>(t, row) : adafactor_norms_of<G, false>(t, row));
    if (thread_index() == 0) p.updates[t.number] = sum;
}

/* One block. */
ENTRY(adafactor_factor, SIMT_THREADS, adafactor_params) {
    if (adafactor_skips(p)) return;
    const int64_t step = p.step ? *p.step : p.step_here;
    const double lr = p.lr ? *p.lr : p.lr_here, least = 1 / square_root((double)step), count = (double)(p.r * p.c);
    const double size = square_root(adafactor_total(p.params, p.tiles) / count),
                 over = square_root(adafactor_total(p.updates, p.tiles) / count) / p.clip;
    const double rate = (least < lr ? least : lr) * (size > p.eps2 ? size : p.eps2);
    if (thread_index() == 0) *p.scalars = { (float)(lr * p.weight_decay), (float)(rate / (over > 1 ? over : 1)) };
}

template <class T, class G, bool WHOLE> DEVICE void adafactor_update_of(const adafactor_tile<T, G> &t, bool skips) {
    using tile = adafactor_tile<T, G>;
    const adafactor_params &p = t.p;
    const float scale = p.grad_scale ? *p.grad_scale : 1.0f;
    const adafactor_scalars s = skips ? adafactor_scalars{} : *p.scalars;
    typename tile::row_of col = {};
    if (!skips) adafactor_roots(col, t);
    t.each([&](int64_t i, int) {
        typename tile::row_of x, u;
        t.template load_row<T, WHOLE>(x, p.param, i);
        if (!skips) {
            t.template load_row<G, WHOLE>(u, p.grad, i);
            adafactor_updates(u, t, col, p.row[i], scale);
        }
#pragma unroll
        for (int v = 0; v < tile::VECTORS; v++) {
            if (!skips)
#pragma unroll
                for (int k = 0; k < tile::N; k++)
                    x[v][k] = fused(-s.factor, u[v][k], fused(-s.decay, x[v][k], x[v][k]));
            if (p.copy.data && p.copy_bf16) t.template store_vector_of<bf16, WHOLE>(x[v], p.copy, i, v);
            if (p.copy.data && !p.copy_bf16) t.template store_vector_of<f16, WHOLE>(x[v], p.copy, i, v);
            if (skips) continue;
            by_chance_param<T>(x[v], p.chances, (uint64_t)(i * p.c + t.column(v)));
            t.template store_vector_of<T, WHOLE>(x[v], p.param, i, v);
        }
    });
}
template <class T, class G> DEVICE void adafactor_update(const adafactor_params &p) {
    const bool skips = adafactor_skips(p);
    if (skips && !p.copy.data) return;
    const adafactor_tile<T, G> t(p, false);
    if (t.whole())
        adafactor_update_of<T, G, true>(t, skips);
    else
        adafactor_update_of<T, G, false>(t, skips);
}

#define ADAFACTOR_EACH(T, G) \
    ENTRY_HELD(adafactor_squares_##T##_##G, SIMT_THREADS, 3, adafactor_params) { adafactor_squares<T, G>(p); } \
    ENTRY_HELD(adafactor_update_##T##_##G, SIMT_THREADS, 3, adafactor_params) { adafactor_update<T, G>(p); }
#define ADAFACTOR(G) \
    ENTRY(adafactor_norms_##G, SIMT_THREADS, adafactor_params) { adafactor_norms<G>(p); } \
    ADAFACTOR_EACH(f32, G) ADAFACTOR_EACH(bf16, G) ADAFACTOR_EACH(f16, G)
ADAFACTOR(f32)
ADAFACTOR(bf16)
ADAFACTOR(f16)
