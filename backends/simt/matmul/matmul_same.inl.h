/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on devices with the same bits as on every other (spec/same.h): tiles of 64 by 64, of which each of 256 threads
 * has 16 sums, and 16 of k at a time in shared memory. */
#include "backends/simt/core/same.h"
#include "matmul_same.h"

/* Sums in f32 of rounded products, and in f64 of fused ones. */
template <class T> struct matmul_same_sum {
    using number = float;
    static DEVICE float get(const void *data, int64_t i) { return load_one<T>(data, i); }
    static DEVICE float step(float a, float b, float sum) { return product(a, b) + sum; }
    static DEVICE float other(const void *data, bool wide, int64_t i) { return same_load<T>(data, wide, i); }
    static DEVICE void put(void *data, bool wide, int64_t i, float x) { same_store<T>(data, wide, i, x); }
};
struct matmul_same_double {};
template <> struct matmul_same_sum<matmul_same_double> {
    using number = double;
    static DEVICE double get(const void *data, int64_t i) { return ((const double *)data)[i]; }
    static DEVICE double step(double a, double b, double sum) { return __builtin_fma(a, b, sum); }
    static DEVICE double other(const void *data, bool, int64_t i) { return get(data, i); }
    static DEVICE void put(void *data, bool, int64_t i, double x) { ((double *)data)[i] = x; }
};

template <class T> DEVICE void matmul_same(const matmul_same_params &p) {
    using sum = matmul_same_sum<T>;
    using number = typename sum::number;
    constexpr int SIDE = MATMUL_SAME_SIDE, STEP = MATMUL_SAME_STEP, EACH = 4;
    SHARED number a[STEP][SIDE], b[STEP][SIDE];
    const int64_t tile = block_index() % (p.down * p.right), g = block_index() / (p.down * p.right),
                  row = tile / p.right * SIDE, column = tile % p.right * SIDE, from_a = g * p.a.batch,
                  from_b = g * p.b.batch;
    const int i = thread_index() / 16, j = thread_index() % 16;
    number run[EACH][EACH] = {}, total[EACH][EACH] = {};
    for (int64_t q = 0; q < p.k; q += STEP) {
        if (q % SAME_CHAIN == 0)
#pragma unroll
            for (int x = 0; x < EACH * EACH; x++) {
                total[x / EACH][x % EACH] += run[x / EACH][x % EACH];
                run[x / EACH][x % EACH] = 0;
            }
#pragma unroll
        for (int x = thread_index(); x < STEP * SIDE; x += MATMUL_SAME_THREADS) {
            const int depth = x / SIDE, side = x % SIDE;
            const bool deep = q + depth < p.k;
            a[depth][side] = deep && row + side < p.m
                                 ? sum::get(p.a.data, from_a + (row + side) * p.a.row + (q + depth) * p.a.column)
                                 : 0;
            b[depth][side] = deep && column + side < p.n
                                 ? sum::get(p.b.data, from_b + (q + depth) * p.b.row + (column + side) * p.b.column)
                                 : 0;
        }
        sync_block();
#pragma unroll
        for (int depth = 0; depth < STEP; depth++)
#pragma unroll
            for (int x = 0; x < EACH * EACH; x++)
                run[x / EACH][x % EACH] =
                    sum::step(a[depth][i + x / EACH * 16], b[depth][j + x % EACH * 16], run[x / EACH][x % EACH]);
        sync_block();
    }
#pragma unroll
    for (int x = 0; x < EACH * EACH; x++) {
        const int64_t r = row + i + x / EACH * 16, c = column + j + x % EACH * 16;
        if (r >= p.m || c >= p.n) continue;
        number t = sum::step(p.alpha, total[x / EACH][x % EACH] + run[x / EACH][x % EACH], 0);
        if (p.c.data)
            t = sum::step(p.beta, sum::other(p.c.data, p.wide_out, g * p.c.batch + r * p.c.row + c * p.c.column), t);
        if (p.bias) t += sum::other(p.bias, p.wide_bias, c);
        if (p.relu && t < 0) t = 0;
        sum::put(p.d.data, p.wide_out, g * p.d.batch + r * p.d.row + c * p.d.column, t);
    }
}

#define MATMUL_SAME(name, T) \
    ENTRY(matmul_same_##name, MATMUL_SAME_THREADS, matmul_same_params) { matmul_same<T>(p); }
MATMUL_SAME(f32, f32)
MATMUL_SAME(bf16, bf16)
MATMUL_SAME(f16, f16)
MATMUL_SAME(f64, matmul_same_double)
