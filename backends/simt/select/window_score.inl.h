/* SPDX-License-Identifier: Apache-2.0 */
/* window_score on devices. A thread has a key and computes its products with some queries at a time, whose columns lie
 * in shared memory. A first launch finds the largest product and the sum of exponentials of each query and block of
 * keys, a second puts these together, a third computes the products again and adds up the probabilities, and a last one
 * pools them.
 *
 * NOTES. Floor: k once; it is read twice from memory, and from the cache for each 8 queries. The products are computed
 * twice: kept they would be w h/hk floats for each key, more than the key is. */
#include "window_score.h"
#include "backends/simt/core/math.h"

/* Queries first, first + 1, ... of those of output row `u` of a head of keys; those from heads w on are not there. */
template <class T>
DEVICE void window_queries(const window_score_params &p, float (&to)[WINDOW_COLUMNS][WINDOW_ROWS], int64_t group,
                           int64_t u, int64_t first, int64_t column) {
    const typename T::bits *const q = (const typename T::bits *)p.q + group / p.hk * p.q_batch;
    for (int i = thread_index(); i < WINDOW_COLUMNS * WINDOW_ROWS; i += SIMT_THREADS) {
        const int64_t r = first + i / WINDOW_COLUMNS, c = column + i % WINDOW_COLUMNS;
        float x = 0;
        if (r < p.heads * p.w && c < p.d) {
            const int64_t head = (group % p.hk * p.outs + u) * p.heads + r / p.w;
            x = T::get(q[r % p.w * p.q_row + head * p.q_head + c]);
        }
        to[i % WINDOW_COLUMNS][i / WINDOW_COLUMNS] = x;
    }
}

/* The thread's key times those queries, scaled, the same bits in both launches; all threads of the block come here,
 * those that have no key too. */
template <class T>
DEVICE void window_products(const window_score_params &p, float (&z)[WINDOW_ROWS], int64_t group, int64_t u,
                            int64_t first, int64_t key, bool there) {
    SHARED float q[WINDOW_COLUMNS][WINDOW_ROWS];
    const typename T::bits *const k = (const typename T::bits *)p.k + group / p.hk * p.k_batch +
                                      (there ? key : 0) * p.k_row + group % p.hk * p.k_head;
#pragma unroll
    for (int r = 0; r < WINDOW_ROWS; r++) z[r] = 0;
    for (int64_t column = 0; column < p.d; column += WINDOW_COLUMNS) {
        sync_block();
        window_queries<T>(p, q, group, u, first, column);
        sync_block();
        const int columns = p.d - column < WINDOW_COLUMNS ? (int)(p.d - column) : (int)WINDOW_COLUMNS;
#pragma unroll 1
        for (int c = 0; c < columns; c += VECTOR) {
            float x[VECTOR];
            load<T>(x, k, lane{ column + c, there ? p.d : 0, p.wide });
#pragma unroll
            for (int v = 0; v < VECTOR; v++)
#pragma unroll
                for (int r = 0; r < WINDOW_ROWS; r++) z[r] = fused(x[v], q[c + v][r], z[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < WINDOW_ROWS; r++) z[r] = product(z[r], p.scale);
}

/* What exponents are told from: the largest, or 0 if it is -Inf, where all are. */
DEVICE float window_base(float most) { return most == -infinity() ? 0 : most; }

struct window_values {
    float of[WINDOW_ROWS];
};
struct window_larger {
    DEVICE window_values operator()(window_values a, const window_values &b) const {
#pragma unroll
        for (int r = 0; r < WINDOW_ROWS; r++) a.of[r] = larger(a.of[r], b.of[r]);
        return a;
    }
};
struct window_sum {
    DEVICE window_values operator()(window_values a, const window_values &b) const {
#pragma unroll
        for (int r = 0; r < WINDOW_ROWS; r++) a.of[r] += b.of[r];
        return a;
    }
};

/* A query's place among those of a head of keys. */
DEVICE int64_t window_lane(const window_score_params &p, int64_t u, int64_t r) { return u * p.heads * p.w + r; }

template <class T> DEVICE void window_part(const window_score_params &p) {
    const int64_t group = block_index() / p.chunks, key = block_index() % p.chunks * SIMT_THREADS + thread_index();
    float *const part = p.part + 2 * block_index() * p.lanes;
    for (int64_t u = 0; u < p.outs; u++)
        for (int64_t first = 0; first < p.heads * p.w; first += WINDOW_ROWS) {
            window_values z;
            window_products<T>(p, z.of, group, u, first, key, key < p.s);
#pragma unroll
            for (int r = 0; r < WINDOW_ROWS; r++)
                if (key >= p.s || key > p.s - p.w + (first + r) % p.w) z.of[r] = -infinity();
            const window_values most = group_combine<SIMT_THREADS>(z, window_larger());
#pragma unroll
            for (int r = 0; r < WINDOW_ROWS; r++) z.of[r] = exp_of(z.of[r] - window_base(most.of[r]));
            const window_values sum = group_combine<SIMT_THREADS>(z, window_sum());
#pragma unroll
            for (int r = 0; r < WINDOW_ROWS; r++) {
                const int64_t at = window_lane(p, u, first + r);
                if (thread_index() != r || first + r >= p.heads * p.w) continue;
                part[at] = most.of[r], part[p.lanes + at] = sum.of[r];
            }
        }
}

/* A query of a thread. */
ENTRY(window_score_state, SIMT_THREADS, window_score_params) {
    const int64_t i = block_index() * SIMT_THREADS + thread_index();
    if (i >= p.items) return;
    const int64_t group = i / p.lanes, at = i % p.lanes;
    const float *const part = p.part + 2 * group * p.chunks * p.lanes + at;
    float most = -infinity(), sum = 0;
    for (int64_t c = 0; c < p.chunks; c++) most = larger(most, part[2 * c * p.lanes]);
    const float base = window_base(most);
    for (int64_t c = 0; c < p.chunks; c++)
        if (part[2 * c * p.lanes] != -infinity())
            sum += part[(2 * c + 1) * p.lanes] * exp_of(part[2 * c * p.lanes] - base);
    float *const state = p.state + 2 * group * p.lanes + at;
    state[0] = base, state[p.lanes] = sum == 0 ? 0 : reciprocal(sum);
}

DEVICE float *window_scores(const window_score_params &p, int64_t row) {
    return (float *)p.scores.data + row / p.o * p.scores.batch + row % p.o * p.scores.row;
}

template <class T> DEVICE void window_sums(const window_score_params &p) {
    const int64_t blocks = (p.n + SIMT_THREADS - 1) / SIMT_THREADS, group = block_index() / blocks,
                  key = block_index() % blocks * SIMT_THREADS + thread_index();
    const float *const state = p.state + 2 * group * p.lanes;
    for (int64_t u = 0; u < p.outs; u++) {
        float sum = 0;
        for (int64_t first = 0; first < p.heads * p.w; first += WINDOW_ROWS) {
            float z[WINDOW_ROWS];
            window_products<T>(p, z, group, u, first, key, key < p.n);
#pragma unroll
            for (int r = 0; r < WINDOW_ROWS; r++) {
                const int64_t at = window_lane(p, u, first + r);
                if (first + r < p.heads * p.w) sum = fused(exp_of(z[r] - state[at]), state[p.lanes + at], sum);
            }
        }
        const int64_t row = group * p.outs + u;
        if (key < p.n) (p.radius > 0 ? p.raw + row * p.n : window_scores(p, row))[key] = sum;
    }
}

/* The larger; NaN if either is. */
DEVICE float window_most(float a, float b) { return a > b || a != a ? a : b; }

/* A score of a thread. */
ENTRY(window_score_pool, SIMT_THREADS, window_score_params) {
    const int64_t i = block_index() * SIMT_THREADS + thread_index();
    if (i >= p.items) return;
    const int64_t row = i / p.n, at = i % p.n, first = at > p.radius ? at - p.radius : 0,
                  end = p.n - 1 - at > p.radius ? at + p.radius + 1 : p.n;
    const float *const raw = p.raw + row * p.n;
    float x = raw[first];
    for (int64_t j = first + 1; j < end; j++) x = p.share > 0 ? x + raw[j] : window_most(x, raw[j]);
    window_scores(p, row)[at] = p.share > 0 ? x * p.share : x;
}

#define WINDOW_SCORE(T) \
    ENTRY(window_score_part_##T, SIMT_THREADS, window_score_params) { window_part<T>(p); } \
    ENTRY(window_score_sum_##T, SIMT_THREADS, window_score_params) { window_sums<T>(p); }
WINDOW_SCORE(f32)
WINDOW_SCORE(bf16)
WINDOW_SCORE(f16)
