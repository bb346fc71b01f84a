/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on devices: rows by groups, columns by blocks of rows. */
#include "backends/simt/core/columns.inl.h"
#include <fetch.h>
#include "reduce_sum.h"
#include "backends/simt/core/row.h"

/* Row `task % rows`, its piece `task / rows`. */
template <class T, class S, class Group> DEVICE void reduce_rows(const reduce_rows_params &p) {
    const int64_t task = Group::row();
    if (task >= p.rows * p.pieces) return;
    const int64_t piece = task / p.rows, row = task - piece * p.rows, first = piece * p.piece;
    const int64_t end = p.pieces > 1 && first + p.piece < p.n ? first + p.piece : p.n;
    const void *from = row_at<T>(p.x, row) + first;
    const typename Group::index n = (typename Group::index)(end - first);
    float sum = 0;
    for (typename Group::index at = 0; at < n; at += Group::PIECE) {
        float x[Group::VECTORS][VECTOR];
        Group::template load<T>(x, from, at, n);
        Group::each(at, n, [&](int v, const typename Group::lane &) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum += x[v][k];
        });
    }
    sum = group_sum<Group::SIZE>(sum);
    if (Group::rank() == 0) store_one<S>(p.out.data, task, sum);
}

/* The sum over a row of a thread's vector, if it is in the row, and those of its line. */
DEVICE void reduce_line(const reduce_columns_params &p, const float (&x)[VECTOR], int64_t row,
                        const columns_place &place) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < VECTOR; k++) sum += x[k];
    sum = group_sum<32>(within(place.l, 0) ? sum : 0.0f);
    if (thread_index() % 32 == 0) p.row_partial[place.tile * p.columns.rows + row] = sum;
}

/* WHOLE: every vector is in a row or beyond it, where the first is read instead. */
template <class T, bool WHOLE>
DEVICE void reduce_lines(float (&sum)[1][VECTOR], const reduce_columns_params &p, const columns_place &place) {
    enum { ROWS = WHOLE ? 4 : 1 }; /* asked for at a time; beyond the last one it is that again */
    const lane l = { WHOLE && !within(place.l, 0) ? 0 : place.l.at, place.l.n, place.l.aligned };
    for (int64_t first = place.first + place.line; first < place.end; first += ROWS * COLUMNS_LINES) {
        float x[ROWS][VECTOR];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int64_t row = first + i * COLUMNS_LINES;
            load_lane<T, WHOLE>(x[i], row_at<T>(p.x, row < place.end ? row : place.end - 1), l);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int64_t row = first + i * COLUMNS_LINES;
            if (row >= place.end) break;
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum[0][k] += x[i][k];
            if (p.row_partial) reduce_line(p, x[i], row, place);
        }
    }
}

template <class T> DEVICE void reduce_columns(const reduce_columns_params &p) {
    float *const partial[1] = { p.columns.partial };
    const columns_place place = columns_place_of(p.columns);
    float sum[1][VECTOR] = {};
    if (p.columns.wide && p.columns.n % VECTOR == 0)
        reduce_lines<T, true>(sum, p, place);
    else
        reduce_lines<T, false>(sum, p, place);
    columns_store(p.columns, partial, sum, place);
}

/* Of rows whose elements are apart. */
template <class T> DEVICE void reduce_columns_any(const reduce_columns_params &p) {
    float *const partial[1] = { p.columns.partial };
    const columns_place place = columns_place_of(p.columns);
    float sum[1][VECTOR] = {};
    for (int64_t row = place.first + place.line; row < place.end; row += COLUMNS_LINES) {
        const int64_t from = row * p.x.row + place.l.at * p.step;
        float x[VECTOR];
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            x[k] = within(place.l, k) ? load_one<T>(p.x.data, from + k * p.step) : 0.0f;
            sum[0][k] += x[k];
        }
        if (p.row_partial) reduce_line(p, x, row, place);
    }
    columns_store(p.columns, partial, sum, place);
}

template <class S, int WIDTH> DEVICE void reduce_finish(const reduce_finish_params &p) {
    const bool second = block_index() >= p.blocks;
    columns_finish<S, WIDTH>(p.sums[second], block_index() - (second ? p.blocks : 0));
}

#define ROWS(T, S, G) \
    ENTRY_ASKING(reduce_sum_rows_##T##_##S##_##G, row_threads(G), 1, reduce_rows_params) { \
        reduce_rows<T, S, group<G, ROW_VECTORS, true>>(p); \
    } \
    ENTRY_ASKING(reduce_sum_rows_ragged_##T##_##S##_##G, row_threads(G), 1, reduce_rows_params) { \
        reduce_rows<T, S, group<G, 1, false>>(p); \
    }
#define ROW_GROUPS(T, S) ROWS(T, S, 8) ROWS(T, S, 32) ROWS(T, S, 128) ROWS(T, S, 256) ROWS(T, S, 512) ROWS(T, S, 1024)
#define COLUMNS(T) \
    ENTRY_ASKING(reduce_sum_columns_##T, SIMT_THREADS, 1, reduce_columns_params) { reduce_columns<T>(p); } \
    ENTRY(reduce_sum_columns_any_##T, SIMT_THREADS, reduce_columns_params) { reduce_columns_any<T>(p); }
#define FINISH(S) \
    ENTRY(reduce_sum_finish_##S, SIMT_THREADS, reduce_finish_params) { reduce_finish<S, COLUMNS_FINISH>(p); } \
    ENTRY(reduce_sum_finish_narrow_##S, SIMT_THREADS, reduce_finish_params) { reduce_finish<S, COLUMNS_NARROW>(p); }

ROW_GROUPS(f32, f32)
ROW_GROUPS(bf16, f32)
ROW_GROUPS(bf16, bf16)
ROW_GROUPS(f16, f32)
ROW_GROUPS(f16, f16)
COLUMNS(f32)
COLUMNS(bf16)
COLUMNS(f16)
FINISH(f32)
FINISH(bf16)
FINISH(f16)

#include "reduce_sum_same.inl.h"
