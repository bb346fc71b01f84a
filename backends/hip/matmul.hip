/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CDNA devices: any shape, stride and type. A block of four waves makes a SIDE x SIDE tile of d, a quarter for each wave; while one tile of a and b is
 * multiplied out of LDS, the next is on its way from memory to registers. The order of an element's sum follows from k and the architecture alone. */
#include "matmul.h"

#include "matrix.h"
#include "matmul_finish.h"

/* A tile of a and one of b, twice; afterwards a strip of 16 rows of sums for each wave. */
template <class T, int SIDE> struct matmul_lds {
    using sum = typename unit<T>::sum;
    static constexpr int STRIP = SIDE / 2 + 16 / sizeof(sum); /* of sums; 16 bytes more, for the banks' sake */
    union {
        struct {
            chunk a[SIDE * CHUNKS], b[SIDE * CHUNKS];
        } tile[2];
        sum strip[4][16][STRIP];
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
    static constexpr int HALF = SIDE / 2, PARTS = HALF / 16, DEPTH = TILE_BYTES / sizeof(typename T::bits);

    /* The wave's quarter, from a tile in LDS. */
    static DEVICE void multiply(sums (&s)[PARTS][PARTS], const chunk *a, const chunk *b) {
        const int thread = thread_index() % WARP, wave = thread_index() / WARP, c = thread / 16;
        chunk x[PARTS], y[PARTS];
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            x[i] = a[chunk_place(wave / 2 * HALF + i * 16 + thread % 16, c)];
            y[i] = b[chunk_place(wave % 2 * HALF + i * 16 + thread % 16, c)];
        }
#pragma unroll
        for (int i = 0; i < PARTS; i++)
#pragma unroll
            for (int j = 0; j < PARTS; j++) matrix::multiply(s[i][j], x[i], y[j]);
    }

    static DEVICE void product(sums (&s)[PARTS][PARTS], const matmul_params &p, const matmul_place &at, lds &m) {
        const typename T::bits *a = (const typename T::bits *)p.a.data + at.batch * p.a.batch, *b = (const typename T::bits *)p.b.data + at.batch * p.b.batch;
        tile_part<T, SIDE> x, y;
        if (p.k == 0) return;
        x.load(p.a, a, at.row, 0);
        y.load(p.b, b, at.column, 0);
        x.store(p.a, m.tile[0].a);
        y.store(p.b, m.tile[0].b);
        sync_block();
        int now = 0;
        for (int64_t depth = DEPTH; depth < p.k; depth += DEPTH, now = 1 - now) {
            x.load(p.a, a, at.row, depth);
            y.load(p.b, b, at.column, depth);
            multiply(s, m.tile[now].a, m.tile[now].b);
            x.store(p.a, m.tile[1 - now].a);
            y.store(p.b, m.tile[1 - now].b);
            sync_block();
        }
        multiply(s, m.tile[now].a, m.tile[now].b);
        sync_block();
    }

    /* A strip goes through LDS, so that each thread has vectors of a row. */
    static DEVICE void write_strip(const sums (&s)[PARTS], const matmul_params &p, const matmul_place &at, int row, sum (&strip)[16][lds::STRIP]) {
        const int thread = thread_index() % WARP, column = thread_index() / WARP % 2 * HALF;
#pragma unroll
        for (int j = 0; j < PARTS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) strip[sum_row<sums>(thread, r)][j * 16 + thread % 16] = s[j][r];
        sync_block();
        for (int i = thread; i < 16 * HALF / VECTOR; i += WARP) {
            const int down = i / (HALF / VECTOR), right = i % (HALF / VECTOR) * VECTOR;
            sum v[VECTOR];
#pragma unroll
            for (int k = 0; k < VECTOR; k++) v[k] = strip[down][right + k];
            if (at.row + row + down < p.m && at.column + column + right < p.n)
                matmul_finish<O, B>(v, p, at.batch, at.row + row + down, at.column + column + right);
        }
        sync_block();
    }

    static DEVICE void run(const matmul_params &p) {
        SHARED lds m;
        const matmul_place at = matmul_place_of(p, SIDE);
        const int wave = thread_index() / WARP;
        sums s[PARTS][PARTS] = {};
        product(s, p, at, m);
#pragma unroll
        for (int i = 0; i < PARTS; i++) write_strip(s[i], p, at, wave / 2 * HALF + i * 16, m.strip[wave]);
    }
};

#define MATMUL(T, O, B, SIDE) \
    ENTRY(matmul_##T##_##O##_##B##_##SIDE, TILE_THREADS, matmul_params) { matmul_block<T, O, B, SIDE>::run(p); }
/* Tiles of 128 x 128 in float64 would take more than half of a SIMD's registers. */
#define MATMUL_SIDES(T, O, B) MATMUL(T, O, B, 64) MATMUL(T, O, B, 128)
MATMUL_SIDES(f32, f32, f32)
MATMUL_SIDES(f16, f16, f32)
MATMUL_SIDES(f16, f32, f32)
MATMUL_SIDES(f16, f16, f16)
MATMUL_SIDES(bf16, bf16, f32)
MATMUL_SIDES(bf16, f32, f32)
MATMUL_SIDES(bf16, bf16, bf16)
MATMUL_SIDES(i8, i32, i32)
MATMUL(f64, f64, f64, 64)
