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
template <int THREADS = TILE_THREADS> DEVICE attention_span attention_range(const attention_span &s) {
    const bool some = s.first < s.last;
    return { group_combine<THREADS>(some ? s.first : INT64_MAX, least()), group_combine<THREADS>(some ? s.last : (int64_t)0, most()) };
}

/* From products to scores: z = cap tanh(s / cap), or s. */
template <int STRIPS> DEVICE void attention_scores(f32x4 (&s)[STRIPS], const attention_params &p) {
#pragma unroll
    for (int j = 0; j < STRIPS; j++) s[j] *= p.scale;
    if (p.cap <= 0) return;
#pragma unroll
    for (int j = 0; j < STRIPS; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) s[j][r] = p.cap * tanh_of(s[j][r] / p.cap);
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

/* What a thread brings of ROWS rows of D elements, on its way to LDS: COUNT chunks, of which chunk i is `column(i)` of row `row(i)`. */
template <class T, int D, int ROWS, class Share> struct attention_part {
    static constexpr int ELEMENTS = CHUNK / sizeof(typename T::bits), COUNT = Share::COUNT;
    const attention_rows &r;
    const typename T::bits *head, *own; /* the head's first row; and where the thread's first chunk is, counted from there */
    int64_t d;
    chunk held[COUNT];

    DEVICE attention_part(const attention_rows &rows, int64_t batch, int64_t head_, int64_t width)
        : r(rows), head(attention_row<T>(rows, batch, 0, head_)), own(head + Share::row(0) * rows.row + Share::column(0) * ELEMENTS), d(width) {}

    /* Rows from `first` on, of `rows`; 0 beyond them. */
    DEVICE void load(int64_t first, int64_t rows) {
        if (r.wide && d == D && first + ROWS <= rows) {
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                if (Share::has(i))
                    held[i] = *(const chunk *)(own + (first + Share::row(i) - Share::row(0)) * r.row + (Share::column(i) - Share::column(0)) * ELEMENTS);
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int row = afresh(Share::row(i));
            held[i] = chunk{};
            if (Share::has(i) && first + row < rows) held[i] = attention_chunk<T>(head + (first + row) * r.row, Share::column(i) * ELEMENTS, d, r.wide);
        }
    }
};

/* LANES rows of D elements in LDS, in pieces of 64 bytes of all lanes; element along d. */
template <class T, int D, int LANES, int THREADS = TILE_THREADS> struct row_tile {
    static constexpr int PIECES = D * sizeof(typename T::bits) / TILE_BYTES, WIDTH = PIECES * CHUNKS, ELEMENTS = CHUNK / sizeof(typename T::bits);
    static constexpr int SIZE = LANES * WIDTH;

    static DEVICE int place(int piece, int lane, int c) { return piece * LANES * CHUNKS + chunk_place(lane, c); }

    /* Neighbouring threads have neighbouring chunks of a row. */
    struct share {
        static constexpr int COUNT = SIZE / THREADS;
        static DEVICE int row(int i) { return thread_index() / WIDTH + i * (THREADS / WIDTH); }
        static DEVICE int column(int) { return thread_index() % WIDTH; }
        static DEVICE bool has(int) { return true; }
    };
    struct part : attention_part<T, D, LANES, share> {
        using attention_part<T, D, LANES, share>::attention_part;
        DEVICE void store(chunk *tile) const {
            const int c = share::column(0);
#pragma unroll
            for (int i = 0; i < share::COUNT; i++) tile[place(c / CHUNKS, share::row(i), c % CHUNKS)] = this->held[i];
        }
    };

    static DEVICE void load(chunk *tile, const attention_rows &r, int64_t batch, int64_t row, int64_t rows, int64_t head, int64_t d) {
        part p(r, batch, head, d);
        p.load(row, rows);
        p.store(tile);
    }
};

/* The same turned: D lanes along the ROWS rows, in the order in which sums of 16 x 16 hold them: with the sums of 16 or 32 rows in registers, four of every 16
 * to a lane, a lane has a chunk of the other operand. */
template <class T, int D, int ROWS, int THREADS = TILE_THREADS> struct turned_tile {
    using bits = typename T::bits;
    static constexpr int ELEMENTS = CHUNK / sizeof(bits), DEPTH = CHUNKS * ELEMENTS, STEPS = ROWS / DEPTH;
    static constexpr int SIZE = D * CHUNKS * STEPS;

    static DEVICE int place(int step, int lane, int c) { return step * D * CHUNKS + chunk_place(lane, c); }

    /* Threads have PACK rows of a chunk, which go to LDS as words. Four neighbours have neighbouring chunks, the next four the next rows. */
    struct share {
        static constexpr int PACK = sizeof(bits) == 2 ? 2 : 1, ALONG = ROWS / PACK, WIDE = THREADS / ALONG, UNITS = (D / ELEMENTS + WIDE - 1) / WIDE,
                             COUNT = UNITS * PACK;
        static_assert(WIDE % 4 == 0, "four chunks side by side");
        static DEVICE int row(int i) { return thread_index() / 4 % ALONG * PACK + i % PACK; }
        static DEVICE int column(int i) { return i / PACK * WIDE + thread_index() / (4 * ALONG) * 4 + thread_index() % 4; }
        static DEVICE bool has(int i) { return D / ELEMENTS % WIDE == 0 || column(i) < D / ELEMENTS; }
    };
    struct part : attention_part<T, D, ROWS, share> {
        using attention_part<T, D, ROWS, share>::attention_part;
        /* True in a thread that met Inf or NaN. */
        DEVICE bool store(chunk *tile) const {
            constexpr int PACK = share::PACK;
            const int row = share::row(0), step = row / DEPTH, c = row % 16 / 4, e = row % DEPTH / 16 * 4 + row % 4;
            typedef bits vector __attribute__((ext_vector_type(ELEMENTS)));
            constexpr bits sign = (bits)((bits)1 << (sizeof(bits) * 8 - 1));
            vector most = {};
#pragma unroll
            for (int unit = 0; unit < share::UNITS; unit++) {
                if (!share::has(unit * PACK)) continue;
                bits element[PACK][ELEMENTS];
                __builtin_memcpy(element, &this->held[unit * PACK], sizeof element);
#pragma unroll
                for (int k = 0; k < PACK; k++)
                    most = __builtin_elementwise_max(most, __builtin_bit_cast(vector, this->held[unit * PACK + k]) & (vector)(bits)~sign);
#pragma unroll
                for (int lane = 0; lane < ELEMENTS; lane++) {
                    packed<bits, PACK> word;
#pragma unroll
                    for (int k = 0; k < PACK; k++) word.v[k] = element[k][lane];
                    *(packed<bits, PACK> *)((bits *)(tile + place(step, share::column(unit * PACK) * ELEMENTS + lane, c)) + e) = word;
                }
            }
            return __builtin_reduce_max(most) >= T::put(infinity());
        }
    };

    /* True in a thread that met Inf or NaN. */
    static DEVICE bool load(chunk *tile, const attention_rows &r, int64_t batch, int64_t row, int64_t rows, int64_t head, int64_t d) {
        part p(r, batch, head, d);
        p.load(row, rows);
        return p.store(tile);
    }

    static DEVICE float element(const chunk *tile, int lane, int row) {
        const int step = row / DEPTH, c = row % 16 / 4, e = row % DEPTH / 16 * 4 + row % 4;
        return T::get(((const bits *)&tile[place(step, lane, c)])[e]);
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

/* The same of powers, which are in [0, 1], or NaN, and then so is their sum. */
template <class T> DEVICE chunk chunk_of_powers(const f32x4 *s) {
    if constexpr (sizeof(typename T::bits) == 4) {
        return chunk_of_sums<T>(s);
    } else {
        return chunk{ pair_of_numbers<T>(s[0][0], s[0][1]), pair_of_numbers<T>(s[0][2], s[0][3]), pair_of_numbers<T>(s[1][0], s[1][1]),
                      pair_of_numbers<T>(s[1][2], s[1][3]) };
    }
}

/* By wave: 16 rows of weights for each of 16 lanes, and which of a lane's own are unseen. */
template <int THREADS = TILE_THREADS> struct careful_lds {
    float weight[THREADS / WARP][16][16];
    uint32_t unseen[THREADS / WARP][WARP];
};

/* Adds turned rows times weights to a lane's sums, row by row in float, those it does not see left out: a weight of 0 would not hide Inf or NaN. */
template <class Tile, int PARTS, int STRIPS, int THREADS>
DEVICE void add_carefully(f32x4 (&sums)[PARTS], const f32x4 (&weight)[STRIPS], uint32_t unseen, const chunk *tile, careful_lds<THREADS> &m) {
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

/* The same by the matrix unit, with weights rounded to T, where all rows are finite. */
template <class T, class Tile, int PARTS, int STRIPS, class Pack>
DEVICE void add_turned(f32x4 (&sums)[PARTS], const f32x4 (&weight)[STRIPS], const chunk *tile, Pack pack) {
    const int thread = thread_index() % WARP;
#pragma unroll
    for (int step = 0; step < Tile::STEPS; step++) {
        const chunk x = pack(&weight[step * STRIPS / Tile::STEPS]);
#pragma unroll
        for (int i = 0; i < PARTS; i++) unit<T>::multiply(sums[i], tile[Tile::place(step, i * 16 + thread % 16, thread / 16)], x);
    }
}

/* One or the other: are the rows `odd`, or does a weight not fit T? Bit 4 j + r of `unseen`: weight[j][r] is 0 because it must not count. */
template <class T, class Tile, int PARTS, int STRIPS>
DEVICE void add_rows(f32x4 (&sums)[PARTS], const f32x4 (&weight)[STRIPS], uint32_t unseen, const chunk *tile, bool odd, careful_lds<> &m) {
    bool over = odd;
#pragma unroll
    for (int j = 0; j < STRIPS; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) over |= magnitude(weight[j][r]) < infinity() && magnitude(rounded<T>(weight[j][r])) == infinity();
    if (any_of_warp(over))
        add_carefully<Tile>(sums, weight, unseen, tile, m);
    else
        add_turned<T, Tile>(sums, weight, tile, chunk_of_sums<T>);
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
