/* SPDX-License-Identifier: Apache-2.0 */
/* adafactor on devices: sums of squares in float64 by tiles, which depend on the shape alone, then the root mean square
 * of the updates, then the updates. */
#include "adafactor.h"
#include "by_chance.inl.h"
#include "power64.inl.h"
#include "backends/simt/core/row.h"
#include "spec/places/adafactor.h"

DEVICE bool adafactor_skips(const adafactor_params &p) { return p.found_inf && *p.found_inf != 0; }

/* A thread's 4 columns and its line's rows of a tile. */
struct adafactor_tile {
    int64_t down, row, column;
    int line, lane;
    DEVICE adafactor_tile(const adafactor_params &p) {
        line = thread_index() / ADAFACTOR_LINE;
        lane = thread_index() % ADAFACTOR_LINE;
        down = block_index() / p.across;
        row = down * ADAFACTOR_ROWS + line;
        column = block_index() % p.across * ADAFACTOR_COLUMNS + lane * ADAFACTOR_VECTOR;
    }
};

/* Row i's elements of a tensor; 0 beyond. */
DEVICE lane adafactor_lane(const adafactor_params &p, int64_t i, int64_t column) {
    return { column, i < p.r ? p.c : 0, p.aligned };
}
template <class T>
DEVICE void adafactor_load(float (&x)[ADAFACTOR_VECTOR], const adafactor_params &p, const simt_rows &rows, int64_t i,
                           int64_t column) {
    load<T>(x, row_at<T>(rows, i), adafactor_lane(p, i, column));
}
template <class T>
DEVICE void adafactor_store(const float (&x)[ADAFACTOR_VECTOR], const adafactor_params &p, const simt_rows &rows,
                            int64_t i, int64_t column) {
    store<T>(x, row_at<T>(rows, i), adafactor_lane(p, i, column));
}

/* Body(i) for each of the line's rows, of which those beyond the matrix are 0. */
template <class Body> DEVICE void adafactor_each(const adafactor_tile &t, const Body &body) {
    for (int k = 0; k < ADAFACTOR_ROWS; k += ADAFACTOR_LINES) body(t.row + k);
}

template <class T, class G> DEVICE void adafactor_squares(const adafactor_params &p) {
    SHARED double part[ADAFACTOR_LINES][ADAFACTOR_COLUMNS];
    const adafactor_tile t(p);
    const float scale = p.grad_scale ? *p.grad_scale : 1.0f;
    double column[ADAFACTOR_VECTOR] = {}, params = 0;
    adafactor_each(t, [&](int64_t i) {
        float x[ADAFACTOR_VECTOR], g[ADAFACTOR_VECTOR];
        adafactor_load<T>(x, p, p.param, i, t.column);
        adafactor_load<G>(g, p, p.grad, i, t.column);
        double row = 0;
#pragma unroll
        for (int k = 0; k < ADAFACTOR_VECTOR; k++) {
            const double scaled = t.column + k < p.c && i < p.r ? product(g[k], scale) : 0.0f;
            row += scaled * scaled;
            column[k] += scaled * scaled;
            params += (double)x[k] * x[k];
        }
        row = group_sum<ADAFACTOR_LINE>(row);
        if (t.lane == 0 && i < p.r) p.rows[block_index() % p.across * p.r + i] = row;
    });
#pragma unroll
    for (int k = 0; k < ADAFACTOR_VECTOR; k++) part[t.line][t.lane * ADAFACTOR_VECTOR + k] = column[k];
    sync_block();
    const int64_t j = block_index() % p.across * ADAFACTOR_COLUMNS + thread_index();
    if (thread_index() < ADAFACTOR_COLUMNS && j < p.c) {
        double sum = 0;
        for (int line = 0; line < ADAFACTOR_LINES; line++) sum += part[line][thread_index()];
        p.columns[t.down * p.c + j] = sum;
    }
    params = group_sum<SIMT_THREADS>(params);
    if (thread_index() == 0) p.params[block_index()] = params;
}

/* Of the sums of all tiles, by one block. */
DEVICE double adafactor_root_mean(const adafactor_params &p, const double *sums) {
    double sum = 0;
    for (int64_t i = thread_index(); i < p.tiles; i += SIMT_THREADS) sum += sums[i];
    return square_root(group_sum<SIMT_THREADS>(sum) / (double)(p.r * p.c));
}

DEVICE double adafactor_variance(double w, double before, double sum, int64_t count) {
    return (1 - w) * before + w * (count > 0 ? sum / (double)count : 0);
}

/* One block. A number of a step that only the host could refuse makes NaN. */
ENTRY(adafactor_rows, SIMT_THREADS, adafactor_params) {
    if (adafactor_skips(p)) return;
    const int64_t step = p.step ? *p.step : p.step_here;
    const double lr = p.lr ? *p.lr : p.lr_here, least = 1 / square_root((double)step);
    const double w = step < 1 ? (double)not_a_number() : power_of_double((double)step, p.beta2_decay);
    const double size = adafactor_root_mean(p, p.params);
    if (thread_index() == 0)
        *p.scalars = { w, (least < lr ? least : lr) * (size > p.eps2 ? size : p.eps2), (float)(lr * p.weight_decay),
                       0 };
    double mean = 0;
    for (int64_t i = thread_index(); i < p.r && p.row_var; i += SIMT_THREADS) {
        double sum = 0;
        for (int64_t k = 0; k < p.across; k++) sum += p.rows[k * p.r + i];
        const double variance = adafactor_variance(w, p.row_var[i], sum, p.c);
        if (p.across > 0) p.rows[i] = variance;
        p.row_var[i] = (float)variance;
        mean += variance / (double)p.r;
    }
    mean = group_sum<SIMT_THREADS>(mean);
    if (mean <= p.eps1) mean = p.eps1;
    for (int64_t i = thread_index(); i < p.r && p.across > 0; i += SIMT_THREADS)
        p.row[i] = p.row_var ? (float)(1 / square_root(p.rows[i] / mean)) : 1.0f;
}

ENTRY(adafactor_columns, SIMT_THREADS, adafactor_params) {
    const int64_t j = block_index() * SIMT_THREADS + thread_index(), down = p.tiles / (p.across > 0 ? p.across : 1);
    if (j >= p.c || adafactor_skips(p)) return;
    double sum = 0;
    for (int64_t k = 0; k < down; k++) sum += p.columns[k * p.c + j];
    const double variance = adafactor_variance(p.scalars->w, p.col_var[j], sum, p.r);
    p.col_var[j] = (float)variance;
    p.col[j] = (float)(1 / square_root(variance));
}

/* Row i's updates: the product of the roots, or the limit, and the gradient; 0 beyond. */
template <class G>
DEVICE void adafactor_updates(float (&u)[ADAFACTOR_VECTOR], const adafactor_params &p, int64_t i, int64_t column) {
    const float scale = p.grad_scale ? *p.grad_scale : 1.0f, row = i < p.r ? p.row[i] : 0.0f;
    adafactor_load<G>(u, p, p.grad, i, column);
#pragma unroll
    for (int k = 0; k < ADAFACTOR_VECTOR; k++) {
        if (i >= p.r || column + k >= p.c) continue;
        const float size = row * p.col[column + k];
        u[k] = product(u[k], scale) * (size > p.limit ? p.limit : size);
    }
}

template <class G> DEVICE void adafactor_norms(const adafactor_params &p) {
    const adafactor_tile t(p);
    double sum = 0;
    if (adafactor_skips(p)) return;
    adafactor_each(t, [&](int64_t i) {
        float u[ADAFACTOR_VECTOR];
        adafactor_updates<G>(u, p, i, t.column);
#pragma unroll
        for (int k = 0; k < ADAFACTOR_VECTOR; k++) sum += (double)u[k] * u[k];
    });
    sum = group_sum<SIMT_THREADS>(sum);
    if (thread_index() == 0) p.updates[block_index()] = sum;
}

ENTRY(adafactor_factor, SIMT_THREADS, adafactor_params) {
    if (adafactor_skips(p)) return;
    const double over = adafactor_root_mean(p, p.updates) / p.clip;
    if (thread_index() == 0) p.scalars->factor = (float)(p.scalars->rate / (over > 1 ? over : 1));
}

template <class T, class G> DEVICE void adafactor_update(const adafactor_params &p) {
    const adafactor_tile t(p);
    const bool skips = adafactor_skips(p);
    if (skips && !p.copy.data) return;
    const float decay = skips ? 0.0f : p.scalars->decay, factor = skips ? 0.0f : p.scalars->factor;
    adafactor_each(t, [&](int64_t i) {
        float x[ADAFACTOR_VECTOR], u[ADAFACTOR_VECTOR];
        adafactor_load<T>(x, p, p.param, i, t.column);
        if (!skips) {
            adafactor_updates<G>(u, p, i, t.column);
#pragma unroll
            for (int k = 0; k < ADAFACTOR_VECTOR; k++) x[k] = fused(-factor, u[k], fused(-decay, x[k], x[k]));
        }
        if (p.copy.data && p.copy_bf16) adafactor_store<bf16>(x, p, p.copy, i, t.column);
        if (p.copy.data && !p.copy_bf16) adafactor_store<f16>(x, p, p.copy, i, t.column);
        if (skips) return;
        by_chance_param<T>(x, p.chances, (uint64_t)(i * p.c + t.column));
        adafactor_store<T>(x, p, p.param, i, t.column);
    });
}

#define ADAFACTOR_EACH(T, G) \
    ENTRY(adafactor_squares_##T##_##G, SIMT_THREADS, adafactor_params) { adafactor_squares<T, G>(p); } \
    ENTRY(adafactor_update_##T##_##G, SIMT_THREADS, adafactor_params) { adafactor_update<T, G>(p); }
#define ADAFACTOR(G) \
    ENTRY(adafactor_norms_##G, SIMT_THREADS, adafactor_params) { adafactor_norms<G>(p); } \
    ADAFACTOR_EACH(f32, G) ADAFACTOR_EACH(bf16, G) ADAFACTOR_EACH(f16, G)
ADAFACTOR(f32)
ADAFACTOR(bf16)
ADAFACTOR(f16)
