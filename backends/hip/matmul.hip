/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CDNA devices: any shape, stride and type. A block makes a SIDE x SIDE tile of d, each of its waves a part; while one tile of a and b is multiplied
 * out of LDS, the next is on its way from memory to registers. The order of an element's sum follows from k and the architecture alone.
 *
 * 64 and 128: four waves, a quarter each. 256: eight waves of 128 x 64, two on each SIMD, whose sums fill half of its registers: 64 matrix instructions for 12
 * reads of LDS. */
#include "matmul.h"

#include "backends/simt/widen.inl.h"
#include "matrix.h"
#include "matmul_finish.h"

/* How the waves of a block share its tile. */
template <int SIDE> struct matmul_split {
    static constexpr int DOWN = 2, RIGHT = SIDE == 256 ? 4 : 2, WAVES = DOWN * RIGHT, THREADS = WAVES * WARP, ROWS = SIDE / DOWN, COLUMNS = SIDE / RIGHT;
};

/* A tile of a and one of b, twice; afterwards a strip of 16 rows of sums for each wave. */
template <class T, int SIDE> struct matmul_lds {
    using sum = typename unit<T>::sum;
    using split = matmul_split<SIDE>;
    static constexpr int STRIP = split::COLUMNS + 16 / sizeof(sum); /* of sums; 16 bytes more, for the banks' sake */
    union {
        struct {
            chunk a[SIDE * CHUNKS], b[SIDE * CHUNKS];
        } tile[2];
        sum strip[split::WAVES][16][STRIP];
    };
};

/* Where the block's tile is: tiles are walked in groups of rows, down first. */
struct matmul_place {
    int64_t batch, row, column;
};
DEVICE matmul_place matmul_place_of(const matmul_params &p, int side) {
    const int64_t tiles = p.down * p.right, batch = block_index() / tiles, tile = block_index() - batch * tiles;
    const int64_t group = tile / (TILE_GROUP * p.right), first = group * TILE_GROUP, high = p.down - first < TILE_GROUP ? p.down - first : TILE_GROUP;
    const int64_t rest = tile - first * p.right, column = rest / high;
    return { batch, (first + rest - column * high) * side, column * side };
}

template <class T, class O, class B, int SIDE> struct matmul_block {
    using matrix = unit<T>;
    using sums = typename matrix::sums;
    using sum = typename matrix::sum;
    using lds = matmul_lds<T, SIDE>;
    using split = matmul_split<SIDE>;
    using part = tile_part<T, SIDE, split::THREADS>;
    static constexpr int DOWN = split::ROWS / 16, RIGHT = split::COLUMNS / 16, DEPTH = TILE_BYTES / sizeof(typename T::bits);

    /* Where the wave's part begins. */
    static DEVICE int first_row() { return thread_index() / WARP / split::RIGHT * split::ROWS; }
    static DEVICE int first_column() { return thread_index() / WARP % split::RIGHT * split::COLUMNS; }

    /* The wave's part, from a tile in LDS. */
    static DEVICE void multiply(sums (&s)[DOWN][RIGHT], const chunk *a, const chunk *b) {
        const int thread = thread_index() % WARP,
                  place[2] = { chunk_place(thread % 16, thread / 16), chunk_place(16 + thread % 16, thread / 16) - 16 * CHUNKS };
        chunk x[DOWN], y[RIGHT];
#pragma unroll
        for (int j = 0; j < RIGHT; j++) y[j] = b[(first_column() + j * 16) * CHUNKS + place[j % 2]];
#pragma unroll
        for (int i = 0; i < DOWN; i++) x[i] = a[(first_row() + i * 16) * CHUNKS + place[i % 2]];
        favour_warp(true);
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int j = 0; j < RIGHT; j++) matrix::multiply(s[i][j], x[i], y[j]);
        favour_warp(false);
    }

    /* Adds the products of k from `begin` on. Element by element, tiles of 256 come late: the registers for loads under way would be too many. */
    template <bool WHOLE> static DEVICE void steps(sums (&s)[DOWN][RIGHT], const matmul_params &p, const matmul_place &at, int64_t begin, int64_t end, lds &m) {
        constexpr bool AHEAD = WHOLE || SIDE < 256;
        if (begin >= end) return;
        part x(p.a, at.batch, at.row), y(p.b, at.batch, at.column);
        x.template load<WHOLE>(begin);
        y.template load<WHOLE>(begin);
        x.store(m.tile[0].a);
        y.store(m.tile[0].b);
        sync_block();
        int now = 0;
        for (int64_t depth = begin + DEPTH; depth < end; depth += DEPTH, now = 1 - now) {
            if constexpr (!AHEAD) multiply(s, m.tile[now].a, m.tile[now].b);
            x.template load<WHOLE>(depth);
            y.template load<WHOLE>(depth);
            if constexpr (AHEAD) multiply(s, m.tile[now].a, m.tile[now].b);
            x.store(m.tile[1 - now].a);
            y.store(m.tile[1 - now].b);
            sync_block();
        }
        multiply(s, m.tile[now].a, m.tile[now].b);
        sync_block();
    }

    static DEVICE void product(sums (&s)[DOWN][RIGHT], const matmul_params &p, const matmul_place &at, lds &m) {
        const int64_t whole = p.a.wide && p.b.wide ? p.k / DEPTH * DEPTH : 0;
        steps<true>(s, p, at, 0, whole, m);
        steps<false>(s, p, at, whole, p.k, m);
    }

    /* A strip goes through LDS, so that each thread has vectors of a row. */
    static DEVICE void write_strip(const sums (&s)[RIGHT], const matmul_params &p, const matmul_place &at, int row, sum (&strip)[16][lds::STRIP]) {
        constexpr int VECTORS = split::COLUMNS / VECTOR; /* of a row */
        const int thread = thread_index() % WARP;
#pragma unroll
        for (int j = 0; j < RIGHT; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) strip[sum_row<sums>(thread, r)][j * 16 + thread % 16] = s[j][r];
        sync_warp();
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
        if constexpr (UNIT_FACTOR<T> != 1) {
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < RIGHT; j++) s[i][j] *= UNIT_FACTOR<T>;
        }
#pragma unroll
        for (int i = 0; i < DOWN; i++) write_strip(s[i], p, at, first_row() + i * 16, m.strip[thread_index() / WARP]);
    }
};

#define MATMUL(T, O, B, SIDE) \
    ENTRY(matmul_##T##_##O##_##B##_##SIDE, matmul_split<SIDE>::THREADS, matmul_params) { matmul_block<T, O, B, SIDE>::run(p); }
/* Tiles of 128 x 128 in float64, and of 256 x 256 in float32, would take too many registers. */
#define MATMUL_2(T, O, B) MATMUL(T, O, B, 64) MATMUL(T, O, B, 128)
#define MATMUL_3(T, O, B) MATMUL_2(T, O, B) MATMUL(T, O, B, 256)
MATMUL_2(f32, f32, f32)
ENTRY(matmul_widen_e4m3, SIMT_WIDEN_THREADS, simt_widen_params) { simt_widen<e4m3>(p); }
ENTRY(matmul_widen_e5m2, SIMT_WIDEN_THREADS, simt_widen_params) { simt_widen<e5m2>(p); }
#define MATMUL_FLOAT8(T) MATMUL_3(T, bf16, f32) MATMUL_3(T, f16, f32) MATMUL_3(T, f32, f32)
UNIT_FLOAT8(MATMUL_FLOAT8)
MATMUL_3(f16, bf16, f32) /* of float8, widened */
MATMUL_3(f16, f16, f32)
MATMUL_3(f16, f32, f32)
MATMUL_3(f16, f16, f16)
MATMUL_3(bf16, bf16, f32)
MATMUL_3(bf16, f32, f32)
MATMUL_3(bf16, bf16, bf16)
MATMUL_2(i8, i32, i32)
MATMUL(f64, f64, f64, 64)
