/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward of rows through shared memory. Each thread sums dweight and dbias of its
 * columns over the rows of its cluster. Where it has two chunks of them it keeps the weight, and g and xhat until the
 * row's sums are known; of more, the weight lies behind the ring, and they are computed anew.
 *
 * NOTES. Floors: dy and h read once, dx written, and dresidual and dh if there are such; 9 flops an element for
 * rms_norm, 13 for layer_norm. */
#ifndef TRINE_CUDA_NORM_BACKWARD_RING_H
#define TRINE_CUDA_NORM_BACKWARD_RING_H

#include <tile/vote.h>

#include "backends/simt/norm/norm_backward_rows.h"
#include "backends/cuda/core/ring.h"

/* What a row saved, in shared memory beside it: two lanes of each warp ask for it as for the row. */
template <int WARPS> struct norm_ring_places {
    norm_saved saved[SIMT_RING_ROWS][WARPS];
    static DEVICE norm_ring_places &here() {
        SHARED norm_ring_places memory;
        return memory;
    }
};
template <bool CENTERED, int WARPS> struct norm_ring_copied {
    struct state {};
    const int lane = thread_index() % WARP;
    const int64_t step;
    const float *from; /* the second of two lanes has rstd, and the first the mean */

    DEVICE norm_ring_copied(const norm_backward_params &p)
        : step(p.ring.clusters), from((const float *)(lane == 0 ? p.mean.data : p.rstd.data) + cluster_index()) {}
    static DEVICE norm_saved &at(int place) {
        return norm_ring_places<WARPS>::here().saved[place][thread_index() / WARP];
    }

    DEVICE void ask(bool more, int place) const {
        sync_warp(); /* all have read what was there */
        if (more && (CENTERED ? lane < 2 : lane == 1)) copy_bytes<4>((float *)&at(place) + lane, from, 4);
    }
    DEVICE void next() { from += step; }
    DEVICE void load() const {}
    DEVICE void before(state &) const {}
    /* Of a row that the thread has waited for. */
    DEVICE norm_saved come(const state &, int place) const {
        sync_warp();
        return get({}, place);
    }
    DEVICE norm_saved get(const state &, int place) const {
        const norm_saved s = at(place);
        return { CENTERED ? s.mean : 0.0f, s.rstd };
    }
};

/* The same, loaded by all threads while the row before is at work. `turns` is 0, but the compiler must not know that
 * they ask for the same: it would keep that in a uniform register, and wait for it at once (bf16 at 8192: 3.2 TB/s
 * instead of 4.0). */
template <bool CENTERED> struct norm_ring_loaded {
    using state = norm_saved;
    const norm_backward_params &p;
    int64_t row;
    norm_saved ahead = {};

    DEVICE norm_ring_loaded(const norm_backward_params &params)
        : p(params), row(cluster_index() + thread_index() * (int)params.turns) {
        load();
    }
    DEVICE void load() {
        if (row < p.rows) ahead = norm_saved_of<CENTERED>(p, row);
        row += p.ring.clusters;
    }
    DEVICE void before(state &s) const { s = ahead; }
    DEVICE void ask(bool, int) const {}
    DEVICE void next() const {}
    DEVICE norm_saved come(const state &s, int) const { return s; }
    DEVICE norm_saved get(const state &s, int) const { return s; }
};

/* The sums of a row's g and g xhat; rms_norm needs the latter alone. */
template <bool CENTERED> struct norm_ring_sums;
template <> struct norm_ring_sums<true> {
    using type = two;
    static DEVICE two of(float a, float b) { return { a, b }; }
    static DEVICE two means(two x, float inverse) { return { x.a * inverse, x.b * inverse }; }
};
template <> struct norm_ring_sums<false> {
    using type = float;
    static DEVICE float of(float, float b) { return b; }
    static DEVICE two means(float x, float inverse) { return { 0, x * inverse }; }
};

/* The weight of the thread's columns, behind the ring: as f32, with the offset, if there is room, else as it is in
 * memory. */
template <class T, class W, class Rows> struct norm_ring_weight {
    using chunk = held<W, Rows::ITEMS>;

    static DEVICE chunk &at(int v) {
        return ((chunk *)(launch_memory() + Rows::BYTES))[v * Rows::STEP / Rows::ITEMS + thread_index()];
    }

    template <class S> static DEVICE chunk of(const held<S, Rows::ITEMS> &x, float offset) {
        if constexpr (sizeof(chunk) == sizeof x && sizeof(typename W::bits) == 2) {
            return x;
        } else {
            float w[Rows::ITEMS];
#pragma unroll
            for (int k = 0; k < Rows::ITEMS; k++) w[k] = x.get(k) + offset;
            return held_of<W>(w);
        }
    }
    static DEVICE void fill(const Rows &r, const norm_backward_params &p, int v) {
        float ones[Rows::ITEMS];
#pragma unroll
        for (float &one : ones) one = 1;
        if (!p.weight.data)
            at(v) = held_of<W>(ones);
        else if (sizeof(typename W::bits) == 4 && (sizeof(typename T::bits) == 4 || p.f32_weight))
            at(v) = of<f32>(r.template read<f32>((const f32::bits *)p.weight.data + r.first, v), p.weight_offset);
        else
            at(v) = of<T>(r.template read<T>((const typename T::bits *)p.weight.data + r.first, v), p.weight_offset);
    }
};

/* dy, xhat and the factors of dy of a chunk. */
template <bool CENTERED, bool OFFSET, class Weight, class Rows> struct norm_ring_terms {
    float dy[Rows::ITEMS], w[Rows::ITEMS], hat[Rows::ITEMS];
    DEVICE norm_ring_terms(const Rows &r, int v, int stage, const norm_saved &s, float offset) {
        const auto from = Rows::template get<0>(v, stage);
        const auto h = Rows::template get<1>(v, stage);
        const auto factors = Weight::at(v);
        const norm_hats<CENTERED> hats(s);
#pragma unroll
        for (int k = 0; k < Rows::ITEMS; k++) {
            dy[k] = from.get(k);
            w[k] = OFFSET ? factors.get(k) + offset : factors.get(k);
            hat[k] = hats.of(h.get(k), r.has(v, k));
        }
    }
};

/* The cluster's sums of the thread's columns. */
template <bool CENTERED, class Rows, int CHUNKS>
DEVICE void norm_backward_store(const norm_backward_params &p, const Rows &r,
                                const float (&dweight)[CHUNKS][Rows::ITEMS],
                                const float (&dbias)[CHUNKS][Rows::ITEMS]) {
    const int64_t from = cluster_index() * p.n + r.first;
#pragma unroll
    for (int v = 0; v < CHUNKS; v++) {
        if (p.weight_partial) r.template put<f32>((uint32_t *)p.weight_partial + from, v, dweight[v]);
        if (CENTERED && p.bias_partial) r.template put<f32>((uint32_t *)p.bias_partial + from, v, dbias[v]);
    }
}

/* A sum of products, by two chains. */
template <int N> DEVICE float vector_dot(const float (&x)[N], const float (&y)[N]) {
    float a = x[0] * y[0], b = x[1] * y[1];
#pragma unroll
    for (int k = 2; k < N; k += 2) {
        a = fused(x[k], y[k], a);
        b = fused(x[k + 1], y[k + 1], b);
    }
    return a + b;
}

/* What follows dx of rows with a gradient of a residual, or dropout, one after the other. The words of tensors of up to
 * 2^34 elements have numbers of 32 bits. */
template <class Rows> struct norm_ring_residual {
    using R = typename Rows::template type<2>;
    static constexpr int ITEMS = Rows::ITEMS;
    const norm_backward_params &p;
    dropout_words words;
    const uint32_t hop;

    DEVICE norm_ring_residual(const norm_backward_params &params, const Rows &r)
        : p(params), words(cluster_index() * params.n + r.first, 0), hop((uint32_t)(r.step * params.n / ITEMS)) {
        words.high = 0;
        words.alike = Rows::whole && (uint64_t)params.rows * params.n <= (uint64_t)1 << 34;
    }
    DEVICE void next() { (ITEMS == 8 ? words.low : words.quads) += hop; }
    /* dh = dx + dresidual, in place of dx, which then is dropout's of that. */
    DEVICE void finish(const Rows &r, int v, float (&dx)[ITEMS]) const {
        const held<R, ITEMS> more = Rows::template get<2>(v, r.stage);
#pragma unroll
        for (int k = 0; k < ITEMS; k++) dx[k] += more.get(k);
        if (p.dh.data) r.template put<R>(r.template mine<R>(p.dh), v, dx);
        if (p.dropout.p == 0) return;
        if (words.alike) {
            dropout_left(dx, p.dropout, words, v * Rows::STEP);
        } else {
            const uint32_t bits =
                kept<ITEMS, Rows::whole>(p.dropout, (uint64_t)(r.row * p.n + r.first + v * Rows::STEP));
#pragma unroll
            for (int k = 0; k < ITEMS; k++) dx[k] = bits >> k & 1 ? dx[k] : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < ITEMS; k++) dx[k] *= p.dropout.scale;
    }
};
template <class Rows> struct norm_ring_bare { /* of others */
    DEVICE norm_ring_bare(const norm_backward_params &, const Rows &) {}
    DEVICE void next() {}
    DEVICE void finish(const Rows &, int, float (&)[Rows::ITEMS]) const {}
};

/* W: the weight's type behind the ring; OFFSET: without its offset. */
template <bool CENTERED, class T, class W, bool OFFSET, int CHUNKS, bool COPIED, class Rows>
DEVICE void norm_backward_anew(const norm_backward_params &p) {
    using weight = norm_ring_weight<T, W, Rows>;
    using terms = norm_ring_terms<CENTERED, OFFSET, weight, Rows>;
    using sums_of = norm_ring_sums<CENTERED>;
    using sums = typename sums_of::type;
    constexpr int ITEMS = Rows::ITEMS, FEWEST = CENTERED || CHUNKS == 2 ? 1 : CHUNKS;
    const simt_rows from[3] = { p.dy, p.h, p.dresidual };
    using saved_of =
        typename nth_type<COPIED, norm_ring_loaded<CENTERED>, norm_ring_copied<CENTERED, Rows::WARPS>>::type;
    using rest_of = typename nth_type<Rows::TENSORS == 3, norm_ring_bare<Rows>, norm_ring_residual<Rows>>::type;
    using state = typename saved_of::state;
    saved_of saved(p);
    Rows r(p.ring, from, p.rows, p.n, saved);
    const float offset = p.weight.data ? p.weight_offset : 0.0f, inverse = 1.0f / (float)p.n;
#pragma unroll
    for (int v = 0; v < CHUNKS; v++) weight::fill(r, p, v);
    float dweight[CHUNKS][ITEMS] = {}, dbias[CHUNKS][ITEMS] = {};
    rest_of rest(p, r);
    r.template each_row<sums>(
        saved,
        [&](state &kept, int stage, const typename Rows::request &meanwhile) {
            const norm_saved s = saved.come(kept, stage);
            float a = 0, b = 0;
            r.template used_chunks<FEWEST>([&](auto chunks) {
#pragma unroll
                for (int v = 0; v < chunks.COUNT; v++) {
                    const terms t(r, v, stage, s, offset);
                    r.ask_meanwhile(meanwhile, v);
                    float g[ITEMS];
#pragma unroll
                    for (int k = 0; k < ITEMS; k++) {
                        g[k] = t.dy[k] * t.w[k];
                        dweight[v][k] = fused(t.dy[k], t.hat[k], dweight[v][k]);
                        if (CENTERED) dbias[v][k] += t.dy[k];
                    }
                    if (CENTERED) a += vector_sum(g);
                    b += vector_dot(g, t.hat);
                }
            });
            return sums_of::of(a, b);
        },
        [&](const state &kept, sums total) {
            const norm_saved s = saved.get(kept, r.stage);
            const two means = sums_of::means(total, inverse);
            r.template used_chunks<FEWEST>([&](auto chunks) {
#pragma unroll
                for (int v = 0; v < chunks.COUNT; v++) {
                    const terms t(r, v, r.stage, s, offset);
                    float dx[ITEMS];
#pragma unroll
                    for (int k = 0; k < ITEMS; k++)
                        dx[k] =
                            fused(-t.hat[k], means.b, CENTERED ? fused(t.dy[k], t.w[k], -means.a) : t.dy[k] * t.w[k]) *
                            s.rstd;
                    rest.finish(r, v, dx);
                    r.template put<T>(r.template mine<T>(p.dx), v, dx);
                    r.refill(v);
                }
            });
            rest.next();
        });
    norm_backward_store<CENTERED>(p, r, dweight, dbias);
}

/* FEWEST: chunks that a warp does at least. Where all are full, a question for each row costs rms_norm 8 to 10 %. */
template <bool CENTERED, class T, int CHUNKS, int THREADS, bool WHOLE, int FEWEST>
DEVICE void norm_backward_kept(const norm_backward_params &p) {
    using rows = ring<CHUNKS, THREADS, WHOLE, RING_THREE, T, T>;
    using chunk = held<T, rows::ITEMS>;
    const simt_rows from[2] = { p.dy, p.h };
    norm_ring_loaded<CENTERED> saved(p);
    rows r(p.ring, from, p.rows, p.n, saved);
    float weight[CHUNKS][rows::ITEMS];
#pragma unroll
    for (int v = 0; v < CHUNKS; v++) {
        const chunk w =
            p.weight.data ? r.template read<T>((const typename T::bits *)p.weight.data + r.first, v) : chunk{};
#pragma unroll
        for (int k = 0; k < rows::ITEMS; k++) weight[v][k] = p.weight.data ? w.get(k) + p.weight_offset : 1.0f;
    }
    const float inverse = 1.0f / (float)p.n;
    float dweight[CHUNKS][rows::ITEMS] = {}, dbias[CHUNKS][rows::ITEMS] = {};
    for (; r.turn < r.turns; r.next(saved)) {
        norm_saved s;
        saved.before(s);
        saved.load();
        copy_wait<rows::ROWS - 1>();
        const norm_hats<CENTERED> hats(s);
        float g[CHUNKS][rows::ITEMS], hat[CHUNKS][rows::ITEMS];
        two sums = { 0, 0 };
        r.template used_chunks<FEWEST>([&](auto chunks) {
#pragma unroll
            for (int v = 0; v < chunks.COUNT; v++) {
                const chunk dy = r.template get<0>(v, r.stage), h = r.template get<1>(v, r.stage);
#pragma unroll
                for (int k = 0; k < rows::ITEMS; k++) {
                    g[v][k] = dy.get(k) * weight[v][k];
                    hat[v][k] = hats.of(h.get(k), r.has(v, k));
                    dweight[v][k] = fused(dy.get(k), hat[v][k], dweight[v][k]);
                    if (CENTERED) dbias[v][k] += dy.get(k);
                }
                r.refill(v);
                sums = sums + two{ CENTERED ? vector_sum(g[v]) : 0.0f, vector_dot(g[v], hat[v]) };
            }
        });
        sums = CENTERED ? r.sum(sums) : two{ 0, r.sum(sums.b) };
        const float c1 = sums.a * inverse, c2 = sums.b * inverse;
        r.template used_chunks<FEWEST>([&](auto chunks) {
#pragma unroll
            for (int v = 0; v < chunks.COUNT; v++) {
                float dx[rows::ITEMS];
#pragma unroll
                for (int k = 0; k < rows::ITEMS; k++)
                    dx[k] = fused(-hat[v][k], c2, CENTERED ? g[v][k] - c1 : g[v][k]) * s.rstd;
                r.template put<T>(r.template mine<T>(p.dx), v, dx);
            }
        });
    }
    norm_backward_store<CENTERED>(p, r, dweight, dbias);
}

/* Rows that are not WHOLE take any offset: they are slower anyway. Of f32 there is room for it behind the ring.
 * layer_norm's of 16 bits, which have all registers in use, are slower by 2 to 5 % with a row's mean and rstd in shared
 * memory, and as the others are by 1 to 4. */
template <bool CENTERED, class T, int CHUNKS> DEVICE void norm_backward_anew_ring(const norm_backward_params &p) {
    constexpr bool NARROW = sizeof(typename T::bits) == 2;
    constexpr ring_way WAY = NARROW && CENTERED ? RING_SPARE : RING_NEAR;
    constexpr bool COPIED = WAY == RING_NEAR;
    using whole = ring<CHUNKS, SIMT_RING_THREADS, true, WAY, T, T>;
    using ragged = ring<CHUNKS, SIMT_RING_THREADS, false, WAY, T, T>;
    if (!p.ring.whole)
        norm_backward_anew<CENTERED, T, T, NARROW, CHUNKS, COPIED, ragged>(p);
    else if (NARROW && p.weight.data && p.weight_offset != 0)
        norm_backward_anew<CENTERED, T, T, NARROW, CHUNKS, COPIED, whole>(p);
    else
        norm_backward_anew<CENTERED, T, T, false, CHUNKS, COPIED, whole>(p);
}
template <bool CENTERED, class T, int CHUNKS, int THREADS>
DEVICE void norm_backward_kept_ring(const norm_backward_params &p) {
    if (!p.ring.whole)
        norm_backward_kept<CENTERED, T, CHUNKS, THREADS, false, 1>(p);
    else if (p.ring.part == CHUNKS * ring<CHUNKS, THREADS, true, RING_THREE, T, T>::STEP)
        norm_backward_kept<CENTERED, T, CHUNKS, THREADS, true, CHUNKS>(p);
    else
        norm_backward_kept<CENTERED, T, CHUNKS, THREADS, true, 1>(p);
}

/* Rows of one type in few blocks: of 16 bits they have 84 % of what a copy moves in the way that others have 91 to 95
 * %, and 88 to 92 in this, of f32 at 12288 89 and 92; but f32 at 49152, in 16 blocks, 89 and 83 (H200). */
template <bool CENTERED, class T, class R, int THREADS, int CHUNKS>
DEVICE void norm_backward_full_ring(const norm_backward_params &p) {
    constexpr bool FEW = sizeof(typename T::bits) == sizeof(typename R::bits),
                   MANY = !FEW || THREADS == SIMT_RING_THREADS;
    constexpr int FEWEST = sizeof(typename T::bits) == 2 ? 2 : SIMT_RING_MOST;
    if (!p.ring.whole)
        return norm_backward_anew<CENTERED, T, f32, false, CHUNKS, true,
                                  ring<CHUNKS, THREADS, false, RING_SPARE, T, R, R>>(p);
    if constexpr (FEW)
        if (!MANY || p.ring.blocks <= FEWEST)
            return norm_backward_anew<CENTERED, T, f32, false, CHUNKS, false,
                                      ring<CHUNKS, THREADS, true, RING_THREE, T, R, R>>(p);
    if constexpr (MANY)
        norm_backward_anew<CENTERED, T, f32, false, CHUNKS, true, ring<CHUNKS, THREADS, true, RING_SPARE, T, R, R>>(p);
}

/* The sums over blocks by 32 threads for each of 32 columns, which ask for several parts at a time, if all thread
 * blocks are held at once: gradients at 1600 to 4096 gained 1.1 to 2 us of 33 by it, and lost up to 20 of 230 at 65536,
 * in 16 rounds (H200). */
template <class S> DEVICE void norm_finish_deep(const norm_finish_params &both) {
    const int64_t blocks = (both.sum[0].n + COLUMNS_FINISH - 1) / COLUMNS_FINISH, which = block_index() / blocks,
                  block = block_index() - which * blocks;
    const columns_params &p = both.sum[which];
    enum { AT_ONCE = 8, LINES = COLUMNS_FINISH };
    SHARED float part[LINES][COLUMNS_FINISH + 1];
    const int line = thread_index() / COLUMNS_FINISH, column = thread_index() % COLUMNS_FINISH;
    const int64_t first = block * COLUMNS_FINISH;
    float sum = 0;
#pragma unroll 1
    for (int64_t b = line; b < p.blocks && first + column < p.n; b += AT_ONCE * LINES) {
        float x[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            x[i] = b + i * LINES < p.blocks ? p.partial[(b + i * LINES) * p.n + first + column] : 0.0f;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) sum += x[i];
    }
    part[line][column] = sum;
    sync_block();
    sum = group_sum<LINES>(part[column][line]);
    if (column == 0 && first + line < p.n) store_one<S>(p.out.data, first + line, sum);
}
/* By one thread for each column: of a row of 65,536 two sums of 15 blocks took 12.8 us by 8. */
template <class S> DEVICE void norm_finish_each(const norm_finish_params &both) {
    const int64_t blocks = (both.sum[0].n + SIMT_THREADS - 1) / SIMT_THREADS;
    const bool second = block_index() >= blocks;
    const columns_params &p = both.sum[second];
    const int64_t column = (block_index() - (second ? blocks : 0)) * SIMT_THREADS + thread_index();
    if (column >= p.n) return;
    float sum = 0;
#pragma unroll 8
    for (int64_t b = 0; b < p.blocks; b++) sum += p.partial[b * p.n + column];
    store_one<S>(p.out.data, column, sum);
}
#define NORM_BACKWARD_FINISH(op, T) \
    ENTRY(op##_finish_deep_##T, NORM_DEEP_THREADS, norm_finish_params) { norm_finish_deep<T>(p); } \
    ENTRY(op##_finish_each_##T, SIMT_THREADS, norm_finish_params) { norm_finish_each<T>(p); }

/* Entries <op>_ring_<T>_<chunks of a block>, and <op>_ring_full_<T>_<R>_<chunks>, of rows with a gradient of the
 * residual, of type R, or dropout. */
#define NORM_BACKWARD_KEPT(op, CENTERED, T, CHUNKS, THREADS, VARIANT) \
    ENTRY_ASKING(op##_ring_##T##_##VARIANT, THREADS, SIMT_RING_THREADS / THREADS, norm_backward_params) { \
        norm_backward_kept_ring<CENTERED, T, CHUNKS, THREADS>(p); \
    }
#define NORM_BACKWARD_ANEW(op, CENTERED, T, CHUNKS, VARIANT) \
    ENTRY_HELD(op##_ring_##T##_##VARIANT, SIMT_RING_THREADS, 1, norm_backward_params) { \
        norm_backward_anew_ring<CENTERED, T, CHUNKS>(p); \
    }
#define NORM_BACKWARD_FULL(op, CENTERED, T, R, THREADS, CHUNKS, VARIANT) \
    ENTRY_HELD(op##_ring_full_##T##_##R##_##VARIANT, THREADS, SIMT_RING_HELD(THREADS), norm_backward_params) { \
        norm_backward_full_ring<CENTERED, T, R, THREADS, CHUNKS>(p); \
    }
#define NORM_BACKWARD_FULLS(op, CENTERED, T) \
    NORM_BACKWARD_FULL(op, CENTERED, T, T, 128, 2, 256) \
    NORM_BACKWARD_FULL(op, CENTERED, T, T, 256, 2, 512) \
    NORM_BACKWARD_FULL(op, CENTERED, T, T, 512, 2, 1024)

/* Entries <op>_fit_<T>_<columns>, of whole rows in registers by groups that they fill, and
 * <op>_fit_ragged_<T>_<columns>, of those that begin anywhere. */
#define NORM_BACKWARD_FIT(op, CENTERED, T, G, COLUMNS) \
    ENTRY_ASKING(op##_fit_##T##_##COLUMNS, row_threads(G), NORM_FIT_BLOCKS(CENTERED, G), norm_backward_params) { \
        static_assert(G * NORM_FIT_ITEMS == COLUMNS, "its name"); \
        norm_backward_rows<CENTERED, T, group<G, 1, true>>(p); \
    }
#define NORM_BACKWARD_FIT_RAGGED(op, CENTERED, T) \
    ENTRY_ASKING(op##_fit_ragged_##T##_2560, NORM_FIT_MOST, 1, norm_backward_params) { \
        static_assert(NORM_FIT_MOST * NORM_FIT_ITEMS == 2560, "its name"); \
        norm_backward_rows<CENTERED, T, group<NORM_FIT_MOST, 1, false>>(p); \
    }
#define NORM_BACKWARD_FITS(op, CENTERED, T) \
    NORM_BACKWARD_FIT(op, CENTERED, T, 8, 64) \
    NORM_BACKWARD_FIT(op, CENTERED, T, 32, 256) \
    NORM_BACKWARD_FIT(op, CENTERED, T, 96, 768) \
    NORM_BACKWARD_FIT(op, CENTERED, T, 160, 1280) \
    NORM_BACKWARD_FIT(op, CENTERED, T, 192, 1536) \
    NORM_BACKWARD_FIT(op, CENTERED, T, 320, 2560) \
    NORM_BACKWARD_FIT_RAGGED(op, CENTERED, T)

#define NORM_BACKWARD_RINGS(op, CENTERED) \
    NORM_BACKWARD_KEPT(op, CENTERED, f32, 2, 128, 256) \
    NORM_BACKWARD_KEPT(op, CENTERED, f32, 2, 256, 512) \
    NORM_BACKWARD_KEPT(op, CENTERED, f32, 2, 512, 1024) \
    NORM_BACKWARD_KEPT(op, CENTERED, bf16, 2, 64, 128) \
    NORM_BACKWARD_KEPT(op, CENTERED, bf16, 2, 128, 256) \
    NORM_BACKWARD_KEPT(op, CENTERED, bf16, 2, 256, 512) \
    NORM_BACKWARD_KEPT(op, CENTERED, bf16, 2, 512, 1024) \
    NORM_BACKWARD_KEPT(op, CENTERED, f16, 2, 64, 128) \
    NORM_BACKWARD_KEPT(op, CENTERED, f16, 2, 128, 256) \
    NORM_BACKWARD_KEPT(op, CENTERED, f16, 2, 256, 512) \
    NORM_BACKWARD_KEPT(op, CENTERED, f16, 2, 512, 1024) \
    NORM_BACKWARD_ANEW(op, CENTERED, f32, 4, 2048) \
    NORM_BACKWARD_ANEW(op, CENTERED, bf16, 4, 2048) \
    NORM_BACKWARD_ANEW(op, CENTERED, f16, 4, 2048) \
    NORM_BACKWARD_FULLS(op, CENTERED, f32) \
    NORM_BACKWARD_FULLS(op, CENTERED, bf16) \
    NORM_BACKWARD_FULLS(op, CENTERED, f16) \
    NORM_BACKWARD_FULL(op, CENTERED, bf16, f32, 512, 2, 1024) \
    NORM_BACKWARD_FULL(op, CENTERED, f16, f32, 512, 2, 1024) \
    NORM_BACKWARD_FINISH(op, f32) \
    NORM_BACKWARD_FINISH(op, bf16) \
    NORM_BACKWARD_FINISH(op, f16)

#endif
