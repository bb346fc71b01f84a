/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CDNA devices: any shape, stride and type. A block makes a SIDE x SIDE tile of d, each of its waves a part;
 * while one tile of a and b is multiplied out of LDS, the next is on its way from memory to registers, or several
 * straight to LDS. The order of an element's sum follows from k and the architecture alone.
 *
 * 64 and 128: four waves, a quarter each. 256: eight waves of 128 x 64, two on each SIMD, whose sums fill half of its
 * registers: 64 matrix instructions for 12 reads of LDS. The two take turns (HipKittens, arXiv 2511.08083): one
 * multiplies, and the other reads and brings what comes next. */
#include "matmul.h"

#include "backends/simt/matmul/widen.inl.h"
#include "matrix.h"
#include "matmul_finish.h"

/* How the waves of a block share its tile. */
template <int SIDE> struct matmul_split {
    static constexpr int DOWN = 2, RIGHT = SIDE == 256 ? 4 : 2, WAVES = DOWN * RIGHT, THREADS = WAVES * WARP,
                         ROWS = SIDE / DOWN, COLUMNS = SIDE / RIGHT;
};

/* Tiles of a and of b, of several pieces along k; afterwards a strip of 16 rows of sums for each wave. */
template <class Sum, int SIDE, int PIECES, int TILES> struct matmul_lds {
    using sum = Sum;
    using split = matmul_split<SIDE>;
    static constexpr int STRIP = split::COLUMNS + 16 / sizeof(sum); /* of sums; 16 bytes more, for the banks' sake */
    struct pair {
        chunk a[PIECES][SIDE * CHUNKS], b[PIECES][SIDE * CHUNKS];
    };
    union {
        pair tile[TILES];
        sum strip[split::WAVES][16][STRIP];
    };
};

/* Where the block's tile is: tiles are walked in groups of rows, down first. */
struct matmul_place {
    int64_t batch, row, column;
};
template <class Integer> DEVICE matmul_place matmul_place_of(const matmul_params &p, Integer number, int side) {
    const Integer down = (Integer)p.down, right = (Integer)p.right, group = (Integer)p.order.group;
    const Integer batch = number / (down * right), tile = number - batch * (down * right),
                  first = tile / (group * right) * group;
    const Integer high = down - first < group ? down - first : group, rest = tile - first * right, column = rest / high;
    return { (int64_t)batch, (int64_t)(first + rest - column * high) * side, (int64_t)column * side };
}
DEVICE matmul_place matmul_place_of(const matmul_params &p, int side) {
    const int64_t number = block_index();
    return divides_fast(p.blocks) ? matmul_place_of(p, tile_of_block((uint32_t)number, p.order), side)
                                  : matmul_place_of(p, (uint64_t)number, side);
}

template <class T, class U, class O, class B, int SIDE> struct matmul_block {
    using matrix = unit<T, U>;
    using sums = typename matrix::sums;
    using sum = typename matrix::sum;
    static constexpr int PIECES = UNIT_CHUNKS<T>;
    static_assert(UNIT_CHUNKS<U> == PIECES, "as many chunks of a and of b");
    static constexpr bool LACKS_INF = UNIT_LACKS_INF<T> || UNIT_LACKS_INF<U>;
    static constexpr int STAGES = SIDE == 256 ? direct<T>::STAGES : 0;
    using lds = matmul_lds<sum, SIDE, PIECES, (STAGES > 2 ? STAGES : 2)>;
    using split = matmul_split<SIDE>;
    static constexpr int DOWN = split::ROWS / 16, RIGHT = split::COLUMNS / 16,
                         DEPTH = TILE_BYTES / sizeof(typename T::bits), STEP = PIECES * DEPTH;

    /* Where the wave's part begins. */
    static DEVICE int first_row() { return thread_index() / WARP / split::RIGHT * split::ROWS; }
    static DEVICE int first_column() { return thread_index() / WARP % split::RIGHT * split::COLUMNS; }

    /* The 16 lanes from `first` on, out of LDS, where they are along k, or ACROSS it. */
    template <bool ACROSS = false>
    static DEVICE auto read(const chunk (&tile)[PIECES][SIDE * CHUNKS], int first, int place) {
        chunk c[PIECES];
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++)
            if constexpr (ACROSS)
                c[piece] = direct<T>::template read_turned<SIDE>(tile[piece], first);
            else
                c[piece] = tile[piece][first * CHUNKS + place];
        return joined(c);
    }
    using operand = decltype(read({}, 0, 0));

    /* What a wave multiplies at a time: its rows in PIECES parts, of which the first brings the columns. */
    static constexpr int ROWS = DOWN / PIECES;
    struct operands {
        operand x[ROWS], y[RIGHT];
        template <bool A_ACROSS = false, bool B_ACROSS = false>
        DEVICE void read(const typename lds::pair &tile, int part) {
            const int thread = thread_index() % WARP,
                      place[2] = { chunk_place(thread % 16, thread / 16),
                                   chunk_place(16 + thread % 16, thread / 16) - 16 * CHUNKS };
#pragma unroll
            for (int j = 0; part == 0 && j < RIGHT; j++)
                y[j] = matmul_block::read<B_ACROSS>(tile.b, first_column() + j * 16, place[j % 2]);
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                x[i] = matmul_block::read<A_ACROSS>(tile.a, first_row() + (part * ROWS + i) * 16,
                                                    place[(part * ROWS + i) % 2]);
        }
        DEVICE void multiply(sums (&s)[DOWN][RIGHT], int part) const {
            favour_warp(true);
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < RIGHT; j++) matrix::multiply(s[part * ROWS + i][j], x[i], y[j]);
            favour_warp(false);
        }
        DEVICE void multiply(sums (&s)[DOWN][RIGHT], const typename lds::pair &tile, int part) {
            read(tile, part);
            multiply(s, part);
        }
    };

    /* A piece of the tile at `depth` or of what follows it, on its way through registers. */
    template <bool WHOLE> struct passing {
        tile_part<T, SIDE, split::THREADS> a;
        tile_part<U, SIDE, split::THREADS> b;
        DEVICE void load(int64_t depth) {
            a.template load<WHOLE>(depth);
            b.template load<WHOLE>(depth);
        }
        DEVICE void store(typename lds::pair &tile, int piece) const {
            a.store(tile.a[piece]);
            b.store(tile.b[piece]);
        }
        DEVICE void bring(int64_t depth, typename lds::pair &tile) {
#pragma unroll 1
            for (int piece = 0; piece < PIECES; piece++) {
                load(depth + piece * DEPTH);
                store(tile, piece);
            }
        }
    };

    /* Adds the products of k from `begin` on: a part of them while a piece is on its way. Element by element, tiles of
     * 256 come late: the registers for loads in flight would be too many. */
    template <bool WHOLE>
    static DEVICE void steps(sums (&s)[DOWN][RIGHT], const matmul_params &p, const matmul_place &at, int64_t begin,
                             int64_t end, lds &m) {
        constexpr bool AHEAD = SIDE < 256;
        if (begin >= end) return;
        passing<WHOLE> next = { { p.a, at.batch, at.row }, { p.b, at.batch, at.column } };
        operands o;
        next.bring(begin, m.tile[0]);
        sync_block();
        int now = 0;
        for (int64_t depth = begin + STEP; depth < end; depth += STEP, now = 1 - now) {
#pragma unroll
            for (int part = 0; part < PIECES; part++) {
                if constexpr (AHEAD) next.load(depth + part * DEPTH);
                o.multiply(s, m.tile[now], part);
                if constexpr (AHEAD) next.store(m.tile[1 - now], part);
            }
            if constexpr (!AHEAD) next.bring(depth, m.tile[1 - now]);
            sync_block();
        }
#pragma unroll
        for (int part = 0; part < PIECES; part++) o.multiply(s, m.tile[now], part);
        sync_block();
    }

    /* The same of whole tiles along k up to `end`, by waves of which two share a SIMD, in turns: while the one
     * multiplies, the other, which is a turn late, reads what it multiplies next, and brings a piece of what
     * follows. */
    static DEVICE void steps_in_turns(sums (&s)[DOWN][RIGHT], const matmul_params &p, const matmul_place &at,
                                      int64_t end, lds &m) {
        if (end <= 0) return;
        passing<true> next = { { p.a, at.batch, at.row }, { p.b, at.batch, at.column } };
        operands o;
        next.bring(0, m.tile[0]);
        if (STEP < end) next.load(STEP);
        sync_block();
        const bool late = late_warp<split::WAVES>();
        if (late) end_turn();
        int now = 0;
        for (int64_t depth = 0; depth < end; depth += STEP, now = 1 - now) {
#pragma unroll
            for (int part = 0; part < PIECES; part++) {
                o.read(m.tile[now], part);
                if (depth + STEP < end) next.store(m.tile[1 - now], part);
                if (depth + STEP + (part + 1) * DEPTH < end) next.load(depth + STEP + (part + 1) * DEPTH);
                end_turn();
                o.multiply(s, part);
                end_turn();
            }
        }
        if (!late) end_turn();
    }

    /* The same of tiles that go straight to LDS, and are in flight for more than STAGES - 2 steps: what a wave that is
     * a turn late has sent for must be there a turn earlier than it needs it. */
    template <bool A_ACROSS, bool B_ACROSS>
    static DEVICE void direct_steps(sums (&s)[DOWN][RIGHT], const matmul_params &p, const matmul_place &at, int64_t end,
                                    lds &m) {
        const direct_part<T, SIDE, split::THREADS, A_ACROSS> a(p.a, at.batch, at.row);
        const direct_part<U, SIDE, split::THREADS, B_ACROSS> b(p.b, at.batch, at.column);
        constexpr int LOADS = PIECES * (a.COUNT + b.COUNT), PIECE = sizeof(m.tile[0].a[0]), TILE = sizeof(m.tile[0]);
        const uint32_t memory = lds_address(&m);
        const int tiles = (int)(end / STEP);
        const auto load = [&](int tile) {
            const uint32_t to = memory + tile % STAGES * TILE;
#pragma unroll
            for (int piece = 0; tile < tiles && piece < PIECES; piece++) {
                a.load((int64_t)tile * STEP + piece * DEPTH, to + piece * PIECE);
                b.load((int64_t)tile * STEP + piece * DEPTH, to + (PIECES + piece) * PIECE);
            }
        };
        const auto wait_for = [&](int tile) {
            if (tile + STAGES - 2 < tiles)
                direct<T>::template wait<(STAGES - 2) * LOADS>();
            else
                direct<T>::template wait<0>();
        };
        operands o;
#pragma unroll
        for (int tile = 0; tile < STAGES - 1; tile++) load(tile);
        wait_for(0);
        sync_block();
        const bool late = late_warp<split::WAVES>();
        if (late) end_turn();
        for (int tile = 0; tile < tiles; tile++) {
#pragma unroll
            for (int part = 0; part < PIECES; part++) {
                o.template read<A_ACROSS, B_ACROSS>(m.tile[tile % STAGES], part);
                if (part == 0) load(tile + STAGES - 1);
                if (part == PIECES - 1) wait_for(tile + 1);
                end_turn();
                o.multiply(s, part);
                end_turn();
            }
        }
        if (!late) end_turn();
    }

    /* Straight to LDS what can be read from there as it lies in memory. */
    static DEVICE void whole_steps(sums (&s)[DOWN][RIGHT], const matmul_params &p, const matmul_place &at, int64_t end,
                                   lds &m) {
        if constexpr (STAGES == 0)
            steps_in_turns(s, p, at, end, m);
        else if (!p.a.across && !p.b.across)
            direct_steps<false, false>(s, p, at, end, m);
        else if constexpr (!direct<T>::READS_TURNED)
            steps_in_turns(s, p, at, end, m);
        else if (!p.a.across)
            direct_steps<false, true>(s, p, at, end, m);
        else if (!p.b.across)
            direct_steps<true, false>(s, p, at, end, m);
        else
            direct_steps<true, true>(s, p, at, end, m);
    }

    /* Whole tiles along k first, if rows begin where they may. */
    static DEVICE void product(sums (&s)[DOWN][RIGHT], const matmul_params &p, const matmul_place &at, lds &m) {
        const int64_t whole = p.a.wide && p.b.wide ? p.k / STEP * STEP : 0;
        if constexpr (SIDE < 256)
            steps<true>(s, p, at, 0, whole, m);
        else
            whole_steps(s, p, at, whole, m);
        steps<false>(s, p, at, whole, p.k, m);
    }

    /* Is one of the wave's sums NaN? */
    static DEVICE bool any_odd(const sums (&s)[DOWN][RIGHT]) {
        sums all = {};
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int j = 0; j < RIGHT; j++) all += s[i][j];
        const float any = all[0] + all[1] + all[2] + all[3]; /* far from overflow */
        return any_of_warp(any != any);
    }
    /* Where the unit takes Inf for NaN, such a sum may stand for Inf: the wave adds up its products once more. */
    static DEVICE void restore_infinities(const matmul_params &p, const matmul_place &at, int row,
                                          sum (&strip)[16][lds::STRIP]) {
        const int thread = thread_index() % WARP;
        for (int i = 0; i < 16 && at.row + row + i < p.m; i++) {
            const float x = strip[i][thread % split::COLUMNS];
            const bool odd = x != x && thread < split::COLUMNS && at.column + first_column() + thread < p.n;
            for (uint64_t left = ballot_of_warp(odd); left; left &= left - 1) {
                const int column = __builtin_ctzll(left);
                const float again = sum_anew(p, at.batch, at.row + row + i, at.column + first_column() + column);
                if (thread == 0) strip[i][column] = again;
            }
        }
        sync_warp();
    }
    static DEVICE float sum_anew(const matmul_params &p, int64_t batch, int64_t row, int64_t column) {
        const auto *const a = (const typename T::bits *)p.a.data + batch * p.a.batch + row * p.a.lane;
        const auto *const b = (const typename U::bits *)p.b.data + batch * p.b.batch + column * p.b.lane;
        float sum = 0;
#pragma unroll 4
        for (int64_t k = thread_index() % WARP; k < p.k; k += WARP)
            sum = fused(T::get(a[k * p.a.along]), U::get(b[k * p.b.along]), sum);
        return group_sum<WARP>(sum);
    }

    /* A strip goes through LDS, so that each thread has vectors of a row. */
    static DEVICE void write_strip(const sums (&s)[RIGHT], const matmul_params &p, const matmul_place &at, int row,
                                   bool odd, sum (&strip)[16][lds::STRIP]) {
        constexpr int VECTORS = split::COLUMNS / VECTOR; /* of a row */
        const int thread = thread_index() % WARP;
#pragma unroll
        for (int j = 0; j < RIGHT; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) strip[sum_row<sums>(thread, r)][j * 16 + thread % 16] = s[j][r];
        sync_warp();
        if constexpr (LACKS_INF)
            if (odd) restore_infinities(p, at, row, strip);
        for (int i = thread; i < 16 * VECTORS; i += WARP) {
            const int64_t down = at.row + row + i / VECTORS, right = at.column + first_column() + i % VECTORS * VECTOR;
            sum v[VECTOR];
#pragma unroll
            for (int k = 0; k < VECTOR; k++) v[k] = strip[i / VECTORS][i % VECTORS * VECTOR + k];
            if (down < p.m && right < p.n) matmul_finish<O, B>(v, p, at.batch, down, right);
        }
        sync_warp();
    }

    static DEVICE void run(const matmul_params &p) {
        SHARED lds m;
        const matmul_place at = matmul_place_of(p, SIDE);
        sums s[DOWN][RIGHT] = {};
        product(s, p, at, m);
        constexpr float FACTOR = UNIT_FACTOR<T> * UNIT_FACTOR<U>;
        if constexpr (FACTOR != 1) {
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < RIGHT; j++) s[i][j] *= FACTOR;
        }
        bool odd = false;
        if constexpr (LACKS_INF) odd = any_odd(s);
#pragma unroll
        for (int i = 0; i < DOWN; i++)
            write_strip(s[i], p, at, first_row() + i * 16, odd, m.strip[thread_index() / WARP]);
    }
};

#define MATMUL(T, O, B, SIDE) \
    ENTRY(matmul_##T##_##O##_##B##_##SIDE, matmul_split<SIDE>::THREADS, matmul_params) { \
        matmul_block<T, T, O, B, SIDE>::run(p); \
    }
/* Tiles of 128 x 128 in float64, and of 256 x 256 in float32, would take too many registers. */
#define MATMUL_2(T, O, B) MATMUL(T, O, B, 64) MATMUL(T, O, B, 128)
#define MATMUL_3(T, O, B) MATMUL_2(T, O, B) MATMUL(T, O, B, 256)
MATMUL_2(f32, f32, f32)
#define MATMUL_WIDEN(T) \
    ENTRY(matmul_widen_##T, SIMT_WIDEN_THREADS, simt_widen_params) { simt_widen<T>(p); }
UNIT_WIDENED(MATMUL_WIDEN, MATMUL_3)
#define MATMUL_PAIR(T, U, O, SIDE) \
    ENTRY(matmul_##T##_##U##_##O##_f32_##SIDE, matmul_split<SIDE>::THREADS, matmul_params) { \
        matmul_block<T, U, O, f32, SIDE>::run(p); \
    }
#define MATMUL_PAIR_3(T, U, O) MATMUL_PAIR(T, U, O, 64) MATMUL_PAIR(T, U, O, 128) MATMUL_PAIR(T, U, O, 256)
#define MATMUL_FLOAT8(T, U) MATMUL_PAIR_3(T, U, bf16) MATMUL_PAIR_3(T, U, f16) MATMUL_PAIR_3(T, U, f32)
UNIT_FLOAT8(MATMUL_FLOAT8)
MATMUL_3(f16, f16, f32)
MATMUL_3(f16, f32, f32)
MATMUL_3(f16, f16, f16)
MATMUL_3(bf16, bf16, f32)
MATMUL_3(bf16, f32, f32)
MATMUL_3(bf16, bf16, bf16)
MATMUL_2(i8, i32, i32)
MATMUL(f64, f64, f64, 64)

#include "backends/simt/matmul/matmul_same.inl.h"
