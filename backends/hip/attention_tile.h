/* SPDX-License-Identifier: Apache-2.0 */
/* What attention and its gradient share on the device: which keys a query sees, scores, and tiles of rows in LDS. */
#ifndef TRINE_HIP_ATTENTION_TILE_H
#define TRINE_HIP_ATTENTION_TILE_H

#include "attention.h"
#include "backends/simt/math.h"
#include "matrix.h"

/* Elements at `row` of batch `batch`, head `head`. */
template <class T> DEVICE typename T::bits *attention_row(const attention_rows &r, int64_t batch, int64_t row, int64_t head) {
    return (typename T::bits *)r.data + batch * r.batch + row * r.row + head * r.head;
}

/* The keys [first, last) that a query sees, or the queries that see a key; none if first >= last. */
struct attention_span {
    int64_t first, last;
};

/* `index` among `own`, whose sequences begin at cu_own, against `other`; of queries `causal` limits the end, of keys the beginning. */
DEVICE attention_span attention_seen(const attention_params &p, int64_t index, bool query) {
    const int64_t own = query ? p.sq : p.sk, other = query ? p.sk : p.sq;
    const int32_t *cu_own = query ? p.cu_q : p.cu_k, *cu_other = query ? p.cu_k : p.cu_q;
    int64_t end = own, first = 0, last = other;
    if (index >= own) return { 0, 0 };
    if (cu_own) {
        int64_t low = 0, high = p.nseq; /* the last sequence that begins at or before `index`: empty ones begin there too */
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            if (cu_own[middle] <= index)
                low = middle;
            else
                high = middle;
        }
        end = cu_own[low + 1], first = cu_other[low], last = cu_other[low + 1];
        if (index >= end || first < 0 || last > other) return { 0, 0 };
    }
    const int64_t same = last - (end - index); /* what is aligned with `index`, bottom right */
    if (p.causal && query && same + 1 < last) last = same + 1;
    if (p.causal && !query && same > first) first = same;
    if (p.window > 0) {
        if (same + p.window < last) last = same + p.window;
        if (same - p.window + 1 > first) first = same - p.window + 1;
    }
    return { first, last };
}

struct least {
    DEVICE int64_t operator()(int64_t a, int64_t b) const { return b < a ? b : a; }
};
struct most {
    DEVICE int64_t operator()(int64_t a, int64_t b) const { return b > a ? b : a; }
};

/* What any thread's span covers, the same in all. */
DEVICE attention_span attention_range(const attention_span &s) {
    const bool some = s.first < s.last;
    return { group_combine<TILE_THREADS>(some ? s.first : INT64_MAX, least()), group_combine<TILE_THREADS>(some ? s.last : (int64_t)0, most()) };
}

/* z = cap tanh(s / cap), or s. */
DEVICE float attention_score(const attention_params &p, float product) {
    const float s = product * p.scale;
    return p.cap > 0 ? p.cap * tanh_of(s / p.cap) : s;
}

/* A chunk of a row of n elements, from element `at`; 0 beyond it. */
template <class T> DEVICE chunk attention_chunk(const typename T::bits *row, int64_t at, int64_t n, bool wide) {
    constexpr int N = CHUNK / sizeof(typename T::bits);
    typename T::bits v[N];
    load_bits(v, row, { at, n, wide });
    chunk c;
    __builtin_memcpy(&c, v, sizeof c);
    return c;
}

/* LANES rows of D elements in LDS, in pieces of 64 bytes of all lanes; element along d. */
template <class T, int D, int LANES> struct row_tile {
    static constexpr int PIECES = D * sizeof(typename T::bits) / TILE_BYTES, WIDTH = PIECES * CHUNKS, ELEMENTS = CHUNK / sizeof(typename T::bits);
    static constexpr int SIZE = LANES * WIDTH;

    static DEVICE int place(int piece, int lane, int c) { return piece * LANES * CHUNKS + chunk_place(lane, c); }

    /* Rows from `row` on, of `rows`; 0 beyond them. */
    static DEVICE void load(chunk *tile, const attention_rows &r, int64_t batch, int64_t row, int64_t rows, int64_t head, int64_t d) {
#pragma unroll
        for (int i = 0; i < SIZE / TILE_THREADS; i++) {
            const int index = i * TILE_THREADS + thread_index(), lane = index / WIDTH, c = index % WIDTH;
            chunk x = {};
            if (row + lane < rows) x = attention_chunk<T>(attention_row<T>(r, batch, row + lane, head), c * ELEMENTS, d, r.wide);
            tile[place(c / CHUNKS, lane, c % CHUNKS)] = x;
        }
    }
};

/* The same turned: D lanes along the ROWS rows, in the order in which sums of 16 x 16 hold them: with the sums of 16 or 32 rows in registers, four of every 16
 * to a lane, a lane has a chunk of the other operand. */
template <class T, int D, int ROWS> struct turned_tile {
    static constexpr int ELEMENTS = CHUNK / sizeof(typename T::bits), DEPTH = CHUNKS * ELEMENTS, STEPS = ROWS / DEPTH;
    static constexpr int SIZE = D * CHUNKS * STEPS;

    static DEVICE int place(int step, int lane, int c) { return step * D * CHUNKS + chunk_place(lane, c); }

    /* The row of element e of chunk c in a step. */
    static DEVICE int row_of(int c, int e) { return e / 4 * 16 + c * 4 + e % 4; }

    /* True in a thread that met Inf or NaN. */
    static DEVICE bool load(chunk *tile, const attention_rows &r, int64_t batch, int64_t row, int64_t rows, int64_t head, int64_t d) {
        bool odd = false;
#pragma unroll
        for (int i = 0; i < SIZE / TILE_THREADS; i++) {
            const int index = i * TILE_THREADS + thread_index(), lane = index % D, c = index / D % CHUNKS, step = index / (D * CHUNKS);
            typename T::bits v[ELEMENTS];
#pragma unroll
            for (int e = 0; e < ELEMENTS; e++) {
                const int64_t at = row + step * DEPTH + row_of(c, e);
                v[e] = lane < d && at < rows ? attention_row<T>(r, batch, at, head)[lane] : typename T::bits(0);
                odd |= !(magnitude(T::get(v[e])) < infinity());
            }
            chunk x;
            __builtin_memcpy(&x, v, sizeof x);
            tile[place(step, lane, c)] = x;
        }
        return odd;
    }

    static DEVICE float element(const chunk *tile, int lane, int row) {
        const int step = row / DEPTH, c = row % 16 / 4, e = row % DEPTH / 16 * 4 + row % 4;
        return T::get(((const typename T::bits *)&tile[place(step, lane, c)])[e]);
    }
};

/* Sums of 16 or 32 rows as a chunk of T. */
template <class T> DEVICE chunk chunk_of_sums(const f32x4 *s) {
    constexpr int N = CHUNK / sizeof(typename T::bits);
    typename T::bits v[N];
#pragma unroll
    for (int e = 0; e < N; e++) v[e] = T::put(s[e / 4][e % 4]);
    chunk c;
    __builtin_memcpy(&c, v, sizeof c);
    return c;
}

/* By wave: 16 rows of weights for each of 16 lanes, and which of a lane's own are unseen. */
struct careful_lds {
    float weight[TILE_THREADS / WARP][16][16];
    uint32_t unseen[TILE_THREADS / WARP][WARP];
};

/* Adds turned rows times weights to a lane's sums, row by row in float, those it does not see left out: a weight of 0 would not hide Inf or NaN. */
template <class Tile, int PARTS, int STRIPS>
DEVICE void add_carefully(f32x4 (&sums)[PARTS], const f32x4 (&weight)[STRIPS], uint32_t unseen, const chunk *tile, careful_lds &m) {
    const int thread = thread_index() % WARP, wave = thread_index() / WARP, lane = thread % 16;
    m.unseen[wave][thread] = unseen;
#pragma unroll
    for (int j = 0; j < STRIPS; j++) {
#pragma unroll
        for (int r = 0; r < 4; r++) m.weight[wave][thread / 16 * 4 + r][lane] = weight[j][r];
        sync_warp();
#pragma unroll 1
        for (int row = 0; row < 16; row++) {
            if (m.unseen[wave][row / 4 * 16 + lane] >> (j * 4 + row % 4) & 1) continue;
            const float w = m.weight[wave][row][lane];
#pragma unroll
            for (int i = 0; i < PARTS; i++)
#pragma unroll
                for (int r = 0; r < 4; r++) sums[i][r] = fused(w, Tile::element(tile, i * 16 + thread / 16 * 4 + r, j * 16 + row), sums[i][r]);
        }
        sync_warp();
    }
}

/* The same by the matrix unit, with weights rounded to T; unless the rows are `odd`, or a weight does not fit T. Bit 4 j + r of `unseen`: weight[j][r] is 0
 * because it must not count. */
template <class T, class Tile, int PARTS, int STRIPS>
DEVICE void add_rows(f32x4 (&sums)[PARTS], const f32x4 (&weight)[STRIPS], uint32_t unseen, const chunk *tile, bool odd, careful_lds &m) {
    const int thread = thread_index() % WARP;
    bool over = odd;
#pragma unroll
    for (int j = 0; j < STRIPS; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) over |= magnitude(weight[j][r]) < infinity() && magnitude(rounded<T>(weight[j][r])) == infinity();
    if (any_of_warp(over)) {
        add_carefully<Tile>(sums, weight, unseen, tile, m);
        return;
    }
#pragma unroll
    for (int step = 0; step < Tile::STEPS; step++) {
        const chunk x = chunk_of_sums<T>(&weight[step * STRIPS / Tile::STEPS]);
#pragma unroll
        for (int i = 0; i < PARTS; i++) unit<T>::multiply(sums[i], tile[Tile::place(step, i * 16 + thread % 16, thread / 16)], x);
    }
}

/* Rows in LDS times a lane's own row in registers. */
template <class T, class Tile, int STRIPS> DEVICE void multiply_rows(f32x4 (&s)[STRIPS], const chunk *tile, const chunk (&own)[Tile::PIECES]) {
    const int thread = thread_index() % WARP;
#pragma unroll
    for (int j = 0; j < STRIPS; j++) {
        s[j] = f32x4{};
#pragma unroll
        for (int i = 0; i < Tile::PIECES; i++) unit<T>::multiply(s[j], tile[Tile::place(i, j * 16 + thread % 16, thread / 16)], own[i]);
    }
}

/* A lane's own row: its quarters of the pieces. */
template <class T, class Tile>
DEVICE void load_own(chunk (&own)[Tile::PIECES], const attention_rows &r, int64_t batch, int64_t row, int64_t rows, int64_t head, int64_t d) {
#pragma unroll
    for (int i = 0; i < Tile::PIECES; i++) {
        own[i] = chunk{};
        if (row < rows)
            own[i] = attention_chunk<T>(attention_row<T>(r, batch, row, head), (i * CHUNKS + thread_index() % WARP / 16) * Tile::ELEMENTS, d, r.wide);
    }
}

/* A lane's sums times a factor, to its row. */
template <class T, int PARTS>
DEVICE void store_own(const f32x4 (&sums)[PARTS], float factor, const attention_rows &r, int64_t batch, int64_t row, int64_t head, int64_t d) {
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = sums[i][k] * factor;
        store<T>(v, attention_row<T>(r, batch, row, head), { i * 16 + thread_index() % WARP / 16 * 4, d, r.wide });
    }
}

struct either {
    DEVICE int operator()(int a, int b) const { return a | b; }
};

/* Does `odd` hold in any thread of the block? */
DEVICE bool any_of_block(bool odd) { return group_combine<TILE_THREADS>((int)odd, either()) != 0; }

#endif
