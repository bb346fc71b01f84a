/* SPDX-License-Identifier: Apache-2.0 */
/* What the gradient of attention is made of: products by beats, sums for which weights of 0 do not hide Inf and NaN,
 * and weights from products. */
#ifndef TRINE_HIP_ATTENTION_BEAT_H
#define TRINE_HIP_ATTENTION_BEAT_H

#include "attention_tile.h"

/* Are there weights that do not fit T? Of a float that is too large for the others nothing is asked. */
template <class T> constexpr bool NARROW = false;
template <> constexpr bool NARROW<f16> = true;

/* A wave that has its SIMD for itself keeps the matrix unit busy by doing all else between matrix instructions. A
 * product goes by beats: in each the unit takes a chunk of the lane, and beside(beat) is what the wave does until it is
 * done, part of which is reading the next product's chunks out of LDS. */
template <class T, int D> struct attention_beats {
    using bits = typename T::bits;
    static constexpr int EDGE = 32;
    using own = square<EDGE>;
    using sums = typename own::sums;
    static constexpr int THREADS = TILE_THREADS, ROWS = TILE_BYTES / sizeof(bits), STRIPS = ROWS / EDGE,
                         PARTS = D / EDGE, SCORES = STRIPS * own::COUNT;
    using row_tiles = row_tile<T, D, ROWS, THREADS, EDGE>;
    using turned_tiles = turned_tile<T, D, ROWS, THREADS, EDGE>;
    static constexpr int WIDE = row_tiles::WIDTH / own::GROUPS, WEIGHTS = SCORES * sizeof(bits) / CHUNK,
                         BEATS = STRIPS * WIDE;
    static_assert(BEATS == PARTS * WEIGHTS, "of either form of a tile a lane reads as much");
    using scores = sums[STRIPS];
    using row = chunk[WIDE];
    using weights = chunk[WEIGHTS];
    using operands = chunk[BEATS];

    /* A lane's own row stays where only the matrix unit reads it. */
    static DEVICE void settle(row &r) {
#pragma unroll
        for (int i = 0; i < WIDE; i++) asm volatile("" : "+a"(r[i]));
    }

    /* In the first half of the beats: in the other, LDS is written to. */
    static DEVICE void read_rows(operands &x, const chunk *tile, int beat) {
#pragma unroll
        for (int i = 2 * beat; i < 2 * beat + 2 && i < BEATS; i++)
            x[i] = tile[row_tiles::place(i / WIDE * EDGE + own::lane(), i % WIDE * own::GROUPS + own::group())];
    }
    static DEVICE void read_turned(operands &x, const chunk *tile, int beat) {
#pragma unroll
        for (int i = 2 * beat; i < 2 * beat + 2 && i < BEATS; i++)
            x[i] = tile[turned_tiles::place(own::lane(), i / PARTS * own::GROUPS + own::group()) +
                        i % PARTS * EDGE * CHUNKS];
    }

    /* Rows times a lane's own, added to s. */
    template <class Beside> static DEVICE void multiply(scores &s, const operands &x, const row &mine, Beside beside) {
#pragma unroll
        for (int beat = 0; beat < BEATS; beat++) {
            unit<T>::multiply(s[beat / WIDE], x[beat], mine[beat % WIDE]);
            beside(beat);
            one_after_another();
        }
    }
    /* Turned rows times weights, added to a lane's sums. */
    template <class Beside>
    static DEVICE void add(sums (&to)[PARTS], const operands &x, const weights &w, Beside beside) {
#pragma unroll
        for (int beat = 0; beat < BEATS; beat++) {
            unit<T>::multiply(to[beat % PARTS], x[beat], w[beat / PARTS]);
            beside(beat);
            one_after_another();
        }
    }

    /* Calls what(n) for a beat's share of a lane's scores: n and n + 1. */
    template <class What> static DEVICE void each_pair(int beat, What what) {
#pragma unroll
        for (int n = beat * (SCORES / 2) / BEATS; n < (beat + 1) * (SCORES / 2) / BEATS; n++) what(2 * n);
    }
    /* The row of score n in group 0. */
    static constexpr DEVICE int row_of(int n) { return n / own::COUNT * EDGE + own::row(n % own::COUNT); }
    static DEVICE float &score(scores &s, int n) { return ((float *)&s[n / own::COUNT])[n % own::COUNT]; }
    /* Weights n and n + 1, rounded to T. */
    static DEVICE void put_weights(weights &w, int n, float a, float b) {
        w[n / 8][n % 8 / 2] = afresh(pair_of_weights<T>(a, b));
    }

    /* By wave: weights of rows for each lane, and which of a lane's own are unseen. */
    struct careful_lds {
        float weight[THREADS / WARP][ROWS][EDGE];
        uint32_t unseen[THREADS / WARP][WARP];
    };
    /* Adds turned rows times weights to a lane's sums, row by row in float, those it does not see left out: a weight of
     * 0 would not hide Inf or NaN. Seldom needed, and so written for little code and few registers. */
    static DEVICE void add_carefully(sums (&to)[PARTS], const scores &weight, uint32_t unseen, const chunk *tile,
                                     careful_lds &m) {
        const int thread = afresh(thread_index()), wave = thread / WARP, lane = thread % EDGE,
                  group = thread % WARP / EDGE;
        m.unseen[wave][thread % WARP] = unseen;
#pragma unroll
        for (int n = 0; n < SCORES; n++) m.weight[wave][row_of(n) + group * 4][lane] = sum_of(weight, n);
        sync_warp();
#pragma unroll 1
        for (int row = 0; row < ROWS; row++) {
            const int four = row / 4, n = four / own::GROUPS * 4 + row % 4;
            if (m.unseen[wave][four % own::GROUPS * EDGE + lane] >> n & 1) continue;
            const float w = m.weight[wave][row][lane];
#pragma unroll
            for (int i = 0; i < PARTS * own::COUNT; i++) {
                const int d = afresh(i / own::COUNT * EDGE + own::row(i % own::COUNT) + group * 4), at = afresh(row);
                float &sum = ((float *)&to[i / own::COUNT])[i % own::COUNT];
                sum = fused(w, turned_tiles::element(tile, d, at), sum);
            }
        }
        sync_warp();
    }
    /* The same where rows are `odd` or a weight, `most` of them, does not fit T. What the matrix unit adds afterwards
     * is 0 then: it may follow in any case, which costs no copies of the sums.
     * Bit n of `unseen`: weight n is 0 because it must not count. */
    static DEVICE void add_odd_rows(sums (&to)[PARTS], const scores &weight, float most, uint32_t unseen,
                                    const chunk *tile, uint32_t odd, careful_lds &m, operands &x, weights &w) {
        if (__builtin_expect(!any_of_warp((odd != 0) | (most > T::largest())), true)) return;
        add_carefully(to, weight, unseen, tile, m);
#pragma unroll
        for (int i = 0; i < WEIGHTS; i++) w[i] = chunk{};
#pragma unroll
        for (int i = 0; i < BEATS; i++) x[i] = finite<T>(x[i]);
    }
};

/* From products to weights, of which `most` is the largest; z log2(e) is unit s. */
template <class T, int D> struct attention_weighing {
    using beats = attention_beats<T, D>;
    using own = typename beats::own;
    using scores = typename beats::scores;
    using weights = typename beats::weights;
    static constexpr int SCORES = beats::SCORES;

    float scale, cap, unit, most;
    bool capped;
    scores s, dp, slope;
    DEVICE attention_weighing(const attention_params &p)
        : scale(p.scale), cap(p.cap), unit(uniform(p.cap > 0 ? LOG2E : p.scale * LOG2E)),
          capped((int32_t)bits_of_float(p.cap) > 0) {}

    /* With a cap, s becomes cap tanh(s scale / cap), whose slope is a factor of ds. */
    DEVICE void limit() {
        if (__builtin_expect(!capped, true)) return;
#pragma unroll
        for (int n = 0; n < SCORES; n++) {
            const float t = tanh_of(beats::score(s, n) * scale / cap);
            beats::score(s, n) = cap * t;
            beats::score(slope, n) = (1 - t) * (1 + t);
        }
    }
    /* By an lse that is too coarse for p = exp(z - lse), p is no more than 1: of minus(n), -lse, the difference itself
     * takes the place of a score, and has no other subtracted. Seldom needed. */
    template <class Minus> DEVICE void hold(const Minus &minus) {
#pragma unroll
        for (int n = 0; n < SCORES; n++) {
            const float z = capped ? sum_of(s, n) : sum_of(s, n) * scale, apart = z + minus(n);
            beats::score(s, n) = (apart > 0 ? 0 : apart) / (capped ? 1 : scale);
        }
    }
    /* p = exp(z - lse) in place of scores n and n + 1, of whose queries `minus` is -lse log2(e). */
    DEVICE void exponent(scores &p, int n, floats_2 minus) {
        const floats_2 z = afresh(
            __builtin_elementwise_fma(floats_2{ sum_of(s, n), sum_of(s, n + 1) }, floats_2{ unit, unit }, minus));
        beats::score(p, n) = exp2_approx(z[0]);
        beats::score(p, n + 1) = exp2_approx(z[1]);
    }
    DEVICE void put(weights &w, int n, float a, float b) {
        if (NARROW<T>) most = afresh(larger(larger(magnitude(a), magnitude(b)), most));
        beats::put_weights(w, n, a, b);
    }
    /* ds = p (dp - delta), where delta is in dp from the beginning. */
    DEVICE void put_ds(weights &w, const scores &p, int n) {
        const floats_2 ds =
            afresh(floats_2{ sum_of(dp, n), sum_of(dp, n + 1) } * floats_2{ sum_of(p, n), sum_of(p, n + 1) });
        beats::score(dp, n) = ds[0], beats::score(dp, n + 1) = ds[1];
        put(w, n, ds[0], ds[1]);
    }
    /* What seldom happens to p and to dp: the slope of a cap; and what is not seen, rows outside of `seen` and where
     * without(n), becomes 0, and bits of the result. */
    template <class Without> DEVICE uint32_t hide(scores &p, const attention_span &seen, int64_t at, Without without) {
        const int64_t mine = at + own::group() * 4;
        const int first = within_tile<beats::ROWS>(seen.first - mine),
                  last = within_tile<beats::ROWS>(seen.last - mine);
        uint32_t unseen = 0;
#pragma unroll
        for (int n = 0; n < SCORES; n++) {
            const int row = beats::row_of(n);
            const bool hidden = row < first || row >= last || without(n);
            beats::score(p, n) = hidden ? 0 : beats::score(p, n);
            beats::score(dp, n) = hidden ? 0 : capped ? sum_of(dp, n) * afresh(sum_of(slope, n)) : sum_of(dp, n);
            unseen |= (uint32_t)hidden << n;
        }
        return unseen;
    }
};

#endif
