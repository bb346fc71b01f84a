/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on sm_90a. */
#include "rows_sm90.inl.h"
#include "grouped_matmul_sm90.h"
#include "backends/simt/matmul/grouped_matmul_tiles.inl.h"

/* What ends the two rows whose sums a thread has. */
struct grouped_two_rows {
    bool nothing[2];
    float factor[2];

    DEVICE grouped_two_rows(const grouped_params &p, const grouped_tile &tile, int first) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const grouped_row row(p, tile, first + thread_index() % 32 / 4 + i * 8);
            nothing[i] = row.nothing, factor[i] = row.factor;
        }
    }
};

/* Bias, activation and factors of 16 columns, of which a thread has four in each of its rows. */
template <class O, int COUNT>
DEVICE void grouped_more(float (&x)[COUNT][8], const grouped_params &p, const grouped_two_rows &rows, int group,
                         int64_t column) {
    if (p.bias)
#pragma unroll
        for (int i = 0; i < COUNT * 4; i++) {
            const int64_t at = column + i / 4 * 16 + i / 2 % 2 * 8 + i % 2, b = group * p.bias_group + at;
            const float bias = at >= p.n ? 0 : p.wide_bias ? load_one<f32>(p.bias, b) : load_one<O>(p.bias, b);
            x[i / 4][i / 2 % 2 * 4 + i % 2] += bias, x[i / 4][i / 2 % 2 * 4 + 2 + i % 2] += bias;
        }
    if (p.activation) matmul_activate(x, p.activation);
    if (p.row_scale)
#pragma unroll
        for (int i = 0; i < COUNT * 8; i++) x[i / 8][i % 8] *= rows.factor[i / 2 % 2];
}

template <class O, int N, bool MORE>
DEVICE void grouped_end(const grouped_sm90_params &s, const float (&sum)[N / 2], const grouped_tile &tile, int column,
                        int group, uint32_t memory) {
    using Held = matmul_held<O>;
    using Bits = typename O::bits;
    enum { WIDTH = 128 / Held::BYTES, PIECE = 16 / Held::BYTES, TURN = 16 * 128, PARTS = WIDTH / 16 };
    const grouped_params &p = s.of;
    const int lane = thread_index() % 32, warp = group * 4 + thread_index() % WARPGROUP / 32,
              first = tile.first + warp * 16, row = first + lane / 8;
    const grouped_two_rows rows(p, tile, first);
    Bits *const to = (Bits *)p.y.data + row * p.y.row + column + lane % 8 * PIECE;
    const int64_t left = p.n - column - lane % 8 * PIECE;
#pragma unroll(MORE ? 1 : N / WIDTH)
    for (int box = 0; box * WIDTH < N; box++) {
        if (column + box * WIDTH >= p.n) break;
        const uint32_t turn = memory + warp * TURN;
        float x[PARTS][8];
#pragma unroll
        for (int b = 0; b * WIDTH < N; b++)
            if (b == box)
#pragma unroll
                for (int i = 0; i < WIDTH / 2; i++) x[i / 8][i % 8] = sum[b * WIDTH / 2 + i];
        if constexpr (MORE) grouped_more<O>(x, p, rows, tile.group, column + box * WIDTH + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i++)
            if (rows.nothing[i / 2 % 2]) x[i / 8][i % 8] = 0;
#pragma unroll
        for (int i = 0; i < PARTS; i++) Held::put(turn, i * 16, x[i]);
        sync_warp();
        rows_store_box(to + box * WIDTH, p.y.row, turn, left - box * WIDTH, s.whole,
                       [&](int q) { return row + q < tile.last; });
        sync_warp(); /* the turn is free */
    }
}

/* Rows of no group. */
template <class O>
DEVICE void grouped_clear(const grouped_params &p, const grouped_tile &tile, int column, int columns, int group) {
    const int first = tile.first + group * 64, last = first + 64 < tile.last ? first + 64 : tile.last;
    for (int64_t row = first; row < last; row++)
        for (int64_t j = column + thread_index() % WARPGROUP; j < column + columns && j < p.n; j += WARPGROUP)
            ((typename O::bits *)p.y.data)[row * p.y.row + j] = 0;
}

/* Every tile of this block, of pairs of which either has rows. */
template <class Pipe, class Each> DEVICE void grouped_each(const grouped_params &p, const Each &each) {
    const int pairs = (p.tiles + 1) / ROWS_SM90_PAIR, right = (int)((p.n + Pipe::N - 1) / Pipe::N),
              rank = cluster_rank(), clusters = (int)block_count() / ROWS_SM90_PAIR;
#pragma unroll 1
    for (int unit = (int)block_index() / ROWS_SM90_PAIR; unit < pairs * right; unit += clusters) {
        const rows_place at = rows_place_of(unit, pairs, right, Pipe::N);
        grouped_tile two[ROWS_SM90_PAIR];
#pragma unroll
        for (int i = 0; i < ROWS_SM90_PAIR; i++) {
            const int number = at.pair * ROWS_SM90_PAIR + i;
            two[i] = number < p.tiles ? p.tile[number] : grouped_tile{ -1, 0, 0 };
        }
        if (two[0].first >= two[0].last) continue;
        const bool any = two[0].group >= 0 || two[1].group >= 0, shared = two[0].group == two[1].group && any;
        const grouped_tile tile = rank == 0 ? two[0] : two[1];
        each(tile,
             rows_task{ at.column, tile.group, any ? (int)((p.k + Pipe::STEP - 1) / Pipe::STEP) : 0, rank, shared });
    }
}

template <class T, class O, int N, bool ACROSS> DEVICE void grouped_sm90(const grouped_sm90_params &s) {
    using Pipe = rows_pipe<T, N, ACROSS>;
    const grouped_params &p = s.of;
    Pipe pipe = { shared_address(launch_memory()) };
    const int group = thread_index() / WARPGROUP - 1;
    launch_next();
    if (thread_index() == 0) {
        tensor_map_fetch(&s.w);
        tensor_map_fetch(&s.x);
        pipe.make_barriers(s.boxes ? 0 : WARPGROUP / WARP);
    }
    sync_warp();
    cluster_meet();
    launch_wait();
    if (group < 0) {
        registers_fewer<72>();
        if (!s.boxes) {
            rows_behind<Pipe> behind = { pipe };
            grouped_each<Pipe>(p, [&](const grouped_tile &tile, const rows_task &task) {
                const auto from = [&](int row) -> const typename Pipe::bits * {
                    const int32_t at = tile.first + row;
                    const int64_t source = at < tile.last && tile.group >= 0 ? grouped_source(p, at) : -1;
                    return source < 0 ? nullptr : (const typename Pipe::bits *)p.x.data + source * p.x.row;
                };
                rows_feed<Pipe, decltype(from)> feed(from, p.x_aligned, p.k);
                rows_produce<Pipe, ACROSS>(pipe, behind, feed, &s.w, s.hand, task, p.n);
            });
            behind.end();
            pipe.drain();
        } else if (thread_index() == 0) {
            grouped_each<Pipe>(p, [&](const grouped_tile &tile, const rows_task &task) {
                rows_produce_boxes<Pipe, ACROSS>(pipe, &s.x, tile.first, &s.w, task);
            });
            pipe.drain();
        }
    } else {
        registers_more<216>();
        grouped_each<Pipe>(p, [&](const grouped_tile &tile, const rows_task &task) {
            const bool there = tile.first + group * 64 < tile.last;
            if (!there || tile.group < 0) {
                rows_pass(pipe, task);
                if (there) grouped_clear<O>(p, tile, task.column, N, group);
                return;
            }
            float sum[Pipe::SUMS];
            rows_multiply<Pipe, ACROSS>(sum, pipe, task, group);
            if (p.bias || p.activation || p.row_scale)
                grouped_end<O, N, true>(s, sum, tile, task.column, group, pipe.memory);
            else
                grouped_end<O, N, false>(s, sum, tile, task.column, group, pipe.memory);
        });
    }
    sync_warp();
    cluster_meet(); /* a block stays while the other may still copy to it */
}

#define TILES(T, O, N) \
    ENTRY_AHEAD(grouped_matmul_sm90_##T##_##O##_##N##k, MATMUL_SM90_THREADS, 1, grouped_sm90_params) { \
        grouped_sm90<T, O, N, false>(p); \
    } \
    ENTRY_AHEAD(grouped_matmul_sm90_##T##_##O##_##N##l, MATMUL_SM90_THREADS, 1, grouped_sm90_params) { \
        grouped_sm90<T, O, N, true>(p); \
    }
#define WIDTHS(T, O) TILES(T, O, 256) TILES(T, O, 128) TILES(T, O, 64)
WIDTHS(bf16, bf16)
WIDTHS(bf16, f32)
WIDTHS(f16, f16)
WIDTHS(f16, f32)
