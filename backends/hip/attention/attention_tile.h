/* SPDX-License-Identifier: Apache-2.0 */
/* What attention and its gradient share on the device: which keys a query sees, scores, and tiles of rows in LDS. */
#ifndef TRINE_HIP_ATTENTION_TILE_H
#define TRINE_HIP_ATTENTION_TILE_H

#include "attention.h"
#include "backends/simt/attention/attention_terms.h"
#include "backends/simt/core/math.h"
#include "matrix.h"

/* Elements at `row` of batch `batch`, head `head`. */
template <class T>
DEVICE typename T::bits *attention_row(const attention_rows &r, int64_t batch, int64_t row, int64_t head) {
    return (typename T::bits *)r.data + batch * r.batch + row * r.row + head * r.head;
}

/* Where a block's tile is, of so many in each of `heads` heads. */
struct attention_place {
    int64_t batch, head, tile;
};
DEVICE attention_place attention_place_of(const attention_params &p, int64_t heads, int64_t tiles) {
    const int64_t number = shared_tile_of_block(block_index(), p.order), line = number / tiles, batch = line / heads;
    return { batch, line - batch * heads, tile_from_ends(number - line * tiles, tiles) };
}

/* The keys [first, last) that a query sees, or the queries that see a key; none if first >= last. */
struct attention_span {
    int64_t first, last;
};

/* Where `index` is among queries or keys: the end of those of its sequence that count, the others' beginning and end,
 * and what of them is aligned with it, bottom right. */
struct attention_sequence {
    int64_t end, first, last, aligned;
    bool counts;
};
DEVICE attention_sequence attention_sequence_of(const attention_params &p, int64_t batch, int64_t index, bool query) {
    const int32_t *cu_own = query ? p.cu_q : p.cu_k, *cu_other = query ? p.cu_k : p.cu_q,
                  *used_own = query ? p.used_q : p.used_k, *used_other = query ? p.used_k : p.used_q;
    const int64_t own = query ? p.sq : p.sk, other = query ? p.sk : p.sq;
    int64_t number = batch, begin = 0, end = own, first = 0, last = other;
    if (index >= own) return { 0, 0, 0, 0, false };
    if (cu_own) {
        if (index >= cu_own[p.nseq]) return { 0, 0, 0, 0, false };
        /* the last sequence that begins at or before `index`: empty ones begin there too */
        int64_t low = 0, high = p.nseq;
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            if (cu_own[middle] <= index)
                low = middle;
            else
                high = middle;
        }
        number = low, begin = cu_own[low], end = cu_own[low + 1], first = cu_other[low], last = cu_other[low + 1];
        if (index >= end || first < 0 || last > other) return { 0, 0, 0, 0, false };
    }
    if (used_own && begin + used_own[number] < end) end = begin + used_own[number];
    if (used_other && first + used_other[number] < last) last = first + used_other[number];
    return { end, first, last, last - (end - index), index < end };
}

/* What query or key `index` sees, or is seen by; of queries `causal` limits the end, of keys the beginning. */
DEVICE attention_span attention_seen(const attention_params &p, int64_t batch, int64_t index, bool query) {
    if (p.simple) {
        const int64_t own = query ? p.sq : p.sk, other = query ? p.sk : p.sq, aligned = other - own + index;
        if (index >= own) return { 0, 0 };
        return { p.causal && !query && aligned > 0 ? aligned : 0,
                 p.causal && query && aligned + 1 < other ? aligned + 1 : other };
    }
    const attention_sequence s = attention_sequence_of(p, batch, index, query);
    const int64_t below = query ? p.before : p.after, above = query ? p.after : p.before;
    attention_span r = { s.first, s.last };
    if (!s.counts) return { 0, 0 };
    if (p.causal && query && s.aligned + 1 < r.last) r.last = s.aligned + 1;
    if (p.causal && !query && s.aligned > r.first) r.first = s.aligned;
    if (above > 0 && s.aligned + above < r.last) r.last = s.aligned + above;
    if (below > 0 && s.aligned - below + 1 > r.first) r.first = s.aligned - below + 1;
    return r;
}

/* The options of a query. */
template <class T, bool OPTIONS>
DEVICE attention_terms<T, OPTIONS> attention_terms_of(const attention_params &p, int64_t batch, int64_t head,
                                                      int64_t i) {
    const int64_t aligned = OPTIONS && p.options.slopes ? attention_sequence_of(p, batch, i, true).aligned : 0;
    return { p.options, { batch, head, i, (batch * p.h + head) * p.sq + i }, p.sk, aligned };
}

/* The sink of a query; -Inf if there are none, or it does not count. */
template <class T> DEVICE float attention_sink(const attention_params &p, int64_t batch, int64_t head, int64_t i) {
    return p.options.sinks == nullptr || !attention_sequence_of(p, batch, i, true).counts
               ? -infinity()
               : attention_sink_of<T>(p.options, head);
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
    return { uniform(group_combine<THREADS>(some ? s.first : INT64_MAX, least())),
             uniform(group_combine<THREADS>(some ? s.last : (int64_t)0, most())) };
}

/* And what every thread's span covers. */
template <int THREADS> DEVICE attention_span attention_common(const attention_span &s) {
    return { uniform(group_combine<THREADS>(s.first, most())), uniform(group_combine<THREADS>(s.last, least())) };
}

/* A place that counts from the beginning of ROWS rows: before, among or behind them. */
template <int ROWS> DEVICE int within_tile(int64_t row) { return row < 0 ? 0 : row < ROWS ? (int)row : (int)ROWS; }

/* A chunk of a row of n elements, from element `at`; 0 beyond it. */
template <class T> DEVICE chunk attention_chunk(const typename T::bits *row, int64_t at, int64_t n, bool wide) {
    constexpr int N = CHUNK / sizeof(typename T::bits);
    typename T::bits v[N];
    load_bits(v, row, { at, n, wide });
    chunk c;
    __builtin_memcpy(&c, v, sizeof c);
    return c;
}

/* What a thread brings of ROWS rows of D elements, on its way to LDS: chunk i is down(i) rows and right(i) chunks from
 * `column` of `row`. */
template <class T, int D, int ROWS, class Share> struct attention_part {
    static constexpr int SIZE = sizeof(typename T::bits), ELEMENTS = CHUNK / SIZE, COUNT = Share::COUNT;
    const attention_rows &r;
    const typename T::bits *head; /* the head's first row */
    uint32_t offset;              /* of the thread's first chunk, in bytes */
    int64_t d;
    chunk held[COUNT];

    DEVICE attention_part(const attention_rows &rows, int64_t batch, int64_t head_, int64_t width)
        : r(rows), head(attention_row<T>(rows, batch, 0, head_)),
          offset((uint32_t)((Share::row() * rows.row + Share::column() * ELEMENTS) * SIZE)), d(width) {}

    /* Are rows wide, and as long as the tile? */
    static DEVICE bool fits(const attention_rows &r, int64_t d) { return r.wide && d == D; }
    DEVICE bool fits() const { return fits(r, d); }
    /* Such rows from `first` on, of `rows` behind `begin`; the last one again and again beyond them. */
    DEVICE void load_fitting(const typename T::bits *begin, int first, int rows) {
        const int at = first < rows ? first : rows - 1;
        const typename T::bits *const tile = begin + (uint64_t)(uint32_t)at * (uint32_t)r.row;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int row = Share::row() + Share::down(i), least = row < rows - 1 - at ? row : rows - 1 - at;
            const uint32_t own =
                (uint32_t)least * (uint32_t)(r.row * SIZE) + (uint32_t)((Share::column() + Share::right(i)) * CHUNK);
            if (Share::has(i)) held[i] = *(const chunk *)((const char *)tile + afresh(own));
        }
    }

    /* Rows from `first` on, of `rows`, if there are any; 0 beyond them. */
    DEVICE void load(int64_t first, int64_t rows) {
        if (first >= rows) return;
        const typename T::bits *const tile = head + first * r.row;
        if (fits() && first + ROWS <= rows) {
            const uint32_t own = afresh(offset); /* or it would be widened outside of the loop, to two registers */
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                if (Share::has(i))
                    held[i] =
                        *(const chunk *)((const char *)(tile + Share::down(i) * r.row + Share::right(i) * ELEMENTS) +
                                         own);
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int row = afresh(Share::row() + Share::down(i)),
                      at = afresh((Share::column() + Share::right(i)) * ELEMENTS);
            held[i] = chunk{};
            if (Share::has(i) && first + row < rows) held[i] = attention_chunk<T>(tile + row * r.row, at, d, r.wide);
        }
    }
};

/* LANES rows of D elements in LDS, in pieces of 64 bytes of all lanes, read by EDGE x EDGE; element along d. */
template <class T, int D, int LANES, int THREADS = TILE_THREADS, int EDGE = 16> struct row_tile {
    static constexpr int PIECES = D * sizeof(typename T::bits) / TILE_BYTES, WIDTH = PIECES * CHUNKS,
                         ELEMENTS = CHUNK / sizeof(typename T::bits);
    static constexpr int SIZE = LANES * WIDTH;

    /* Of chunk c of a lane. Neighbouring pieces of a lane are in different banks. */
    static DEVICE int place(unsigned lane, unsigned c) {
        return c / CHUNKS * LANES * CHUNKS +
               chunk_place_by<EDGE>(EDGE == 32 ? lane ^ c / CHUNKS % 2 : lane, c % CHUNKS);
    }

    /* Neighbouring threads have neighbouring chunks of a row. */
    struct share {
        static constexpr int COUNT = SIZE / THREADS;
        static DEVICE int row() { return thread_index() / WIDTH; }
        static DEVICE int column() { return thread_index() % WIDTH; }
        static constexpr DEVICE int down(int i) { return i * (THREADS / WIDTH); }
        static constexpr DEVICE int right(int) { return 0; }
        static DEVICE bool has(int) { return true; }
    };
    struct part : attention_part<T, D, LANES, share> {
        using attention_part<T, D, LANES, share>::attention_part;
        DEVICE void store(chunk *tile) const {
#pragma unroll
            for (int i = 0; i < share::COUNT; i++)
                tile[place(share::row() + share::down(i), share::column())] = this->held[i];
        }
    };
};

/* The same turned: D lanes along the ROWS rows, in the order in which sums of EDGE x EDGE hold them, so that what a
 * lane has of the sums of these rows, a chunk at a time, is the other operand. */
template <class T, int D, int ROWS, int THREADS = TILE_THREADS, int EDGE = 16> struct turned_tile {
    using bits = typename T::bits;
    static constexpr int ELEMENTS = CHUNK / sizeof(bits), SIZE = D * ROWS / ELEMENTS;

    /* Of chunk c of a lane. */
    static DEVICE int place(unsigned lane, unsigned c) {
        return c / CHUNKS * D * CHUNKS + chunk_place_by<EDGE>(lane, c % CHUNKS);
    }
    /* Where a row is along a lane: in which chunk, which element of it. */
    static DEVICE int chunk_of(unsigned row) {
        constexpr int GROUPS = WARP / EDGE, DEEP = GROUPS * ELEMENTS;
        return row / DEEP * GROUPS + row % (4 * GROUPS) / 4;
    }
    static DEVICE int element_of(unsigned row) {
        constexpr int GROUPS = WARP / EDGE, DEEP = GROUPS * ELEMENTS;
        return row % DEEP / (4 * GROUPS) * 4 + row % 4;
    }

    /* Threads have PACK rows of a chunk, which go to LDS as words.
     * Four neighbours have neighbouring chunks, the next four the next rows. */
    struct share {
        static constexpr int PACK = sizeof(bits) == 2 ? 2 : 1, ALONG = ROWS / PACK, WIDE = THREADS / ALONG,
                             UNITS = (D / ELEMENTS + WIDE - 1) / WIDE, COUNT = UNITS * PACK;
        static_assert(WIDE % 4 == 0, "four chunks side by side");
        static DEVICE int row() { return thread_index() / 4 % ALONG * PACK; }
        static DEVICE int column() { return thread_index() / (4 * ALONG) * 4 + thread_index() % 4; }
        static constexpr DEVICE int down(int i) { return i % PACK; }
        static constexpr DEVICE int right(int i) { return i / PACK * WIDE; }
        static DEVICE bool has(int i) { return D / ELEMENTS % WIDE == 0 || column() + right(i) < D / ELEMENTS; }
    };
    struct part : attention_part<T, D, ROWS, share> {
        using attention_part<T, D, ROWS, share>::attention_part;
        DEVICE void give(chunk (&to)[share::COUNT]) const {
#pragma unroll
            for (int i = 0; i < share::COUNT; i++) to[i] = this->held[i];
        }
        DEVICE void take(const chunk (&from)[share::COUNT]) {
#pragma unroll
            for (int i = 0; i < share::COUNT; i++) this->held[i] = from[i];
        }
        /* As they are, to a tile of rows. */
        template <class RowTile> DEVICE void store_rows(chunk *tile) const {
#pragma unroll
            for (int i = 0; i < share::COUNT; i++)
                if (share::has(i))
                    tile[RowTile::place(share::row() + share::down(i), share::column() + share::right(i))] =
                        this->held[i];
        }
        DEVICE void store(chunk *tile) const {
            constexpr int PACK = share::PACK;
            const int row = share::row(), c = chunk_of(row), e = element_of(row);
#pragma unroll
            for (int unit = 0; unit < share::UNITS; unit++) {
                if (!share::has(unit * PACK)) continue;
                bits element[PACK][ELEMENTS];
                __builtin_memcpy(element, &this->held[unit * PACK], sizeof element);
#pragma unroll
                for (int lane = 0; lane < ELEMENTS; lane++) {
                    packed<bits, PACK> word;
#pragma unroll
                    for (int k = 0; k < PACK; k++) word.v[k] = element[k][lane];
                    *(packed<bits, PACK> *)((bits *)(tile +
                                                     place((share::column() + share::right(unit * PACK)) * ELEMENTS +
                                                               lane,
                                                           c)) +
                                            e) = word;
                }
            }
        }
        /* Is there an Inf or a NaN among the thread's elements? */
        DEVICE bool odd() const {
            typedef bits vector __attribute__((ext_vector_type(ELEMENTS)));
            constexpr uint32_t sign = sizeof(bits) == 2 ? 0x80008000u : 0x80000000u;
            vector most = {};
#pragma unroll
            for (int i = 0; i < share::COUNT; i++) /* not by halves */
                if (share::has(i))
                    most = __builtin_elementwise_max(most, __builtin_bit_cast(vector, afresh(this->held[i] & ~sign)));
            return __builtin_reduce_max(most) >= T::put(infinity());
        }
    };

    static DEVICE float element(const chunk *tile, unsigned lane, unsigned row) {
        return T::get(((const bits *)&tile[place(lane, chunk_of(row))])[element_of(row)]);
    }
};

/* What a lane has of STRIPS sums. */
template <class Sums> constexpr int COUNT_OF = sizeof(Sums) / sizeof(float);
template <class Sums> using square_of = square<COUNT_OF<Sums> == 4 ? 16 : 32>;
template <class Sums> DEVICE float sum_of(const Sums *s, int n) { return s[n / COUNT_OF<Sums>][n % COUNT_OF<Sums>]; }

/* Weights from the n-th of a lane on as a chunk of T. */
template <class T, class Sums> DEVICE chunk chunk_of_weights(const Sums *s, int n) {
    chunk c;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(typename T::bits) == 4)
            c[i] = bits_of_float(sum_of(s, n + i));
        else
            c[i] = pair_of_weights<T>(sum_of(s, n + 2 * i), sum_of(s, n + 2 * i + 1));
    }
    return c;
}

/* Adds turned rows, which are finite, times weights rounded to T to a lane's sums. */
template <class T, class Tile, class Sums, int PARTS, int STRIPS>
DEVICE void add_turned(Sums (&sums)[PARTS], const Sums (&weight)[STRIPS], const chunk *tile) {
    using own = square_of<Sums>;
#pragma unroll
    for (int n = 0; n < STRIPS * own::COUNT; n += Tile::ELEMENTS) {
        const chunk x = chunk_of_weights<T>(weight, n);
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            unit<T>::multiply(
                sums[i],
                tile[Tile::place(i * own::EDGE + own::lane(), n / Tile::ELEMENTS * own::GROUPS + own::group())], x);
    }
}

/* Without Inf and NaN. */
template <class T> DEVICE chunk finite(chunk c) {
    typename T::bits v[CHUNK / sizeof(typename T::bits)];
    __builtin_memcpy(v, &c, sizeof v);
#pragma unroll
    for (auto &x : v) x = magnitude(T::get(x)) < infinity() ? x : 0;
    __builtin_memcpy(&c, v, sizeof v);
    return c;
}
/* The same of a tile that all threads of the block are done with. */
template <class T, int THREADS, int SIZE> DEVICE void make_finite(chunk (&tile)[SIZE]) {
    using bits = typename T::bits;
    sync_block();
#pragma unroll 1
    for (int i = thread_index(); i < SIZE * CHUNK / (int)sizeof(bits); i += THREADS) {
        bits &x = ((bits *)tile)[i];
        if (!(magnitude(T::get(x)) < infinity())) x = 0;
    }
    sync_block();
}

/* Rows in LDS times a lane's own row in registers. */
template <class T, class Tile, class Sums, int STRIPS, int N>
DEVICE void multiply_rows(Sums (&s)[STRIPS], const chunk *tile, const chunk (&own_row)[N]) {
    using own = square_of<Sums>;
#pragma unroll
    for (int j = 0; j < STRIPS; j++) {
        s[j] = Sums{};
#pragma unroll
        for (int i = 0; i < N; i++)
            unit<T>::multiply(s[j], tile[Tile::place(j * own::EDGE + own::lane(), i * own::GROUPS + own::group())],
                              own_row[i]);
    }
}

/* A lane's own row: those of its chunks that its group has. */
template <class T, class Tile, int N>
DEVICE void load_own(chunk (&own_row)[N], const attention_rows &r, int64_t batch, int64_t row, int64_t rows,
                     int64_t head, int64_t d) {
    constexpr int GROUPS = Tile::WIDTH / N;
#pragma unroll
    for (int i = 0; i < N; i++) {
        own_row[i] = chunk{};
        if (row < rows)
            own_row[i] = attention_chunk<T>(attention_row<T>(r, batch, row, head),
                                            (i * GROUPS + square<WARP / GROUPS>::group()) * Tile::ELEMENTS, d, r.wide);
    }
}

/* A lane's sums times a factor, to its row. */
template <class T, class Sums, int PARTS>
DEVICE void store_own(const Sums (&sums)[PARTS], float factor, const attention_rows &r, int64_t batch, int64_t row,
                      int64_t head, int64_t d) {
    using own = square_of<Sums>;
#pragma unroll
    for (int four = 0; four < PARTS * own::COUNT / 4; four++) {
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = sum_of(sums, four * 4 + k) * factor;
        store<T>(v, attention_row<T>(r, batch, row, head), { (four * own::GROUPS + own::group()) * 4, d, r.wide });
    }
}

#endif
