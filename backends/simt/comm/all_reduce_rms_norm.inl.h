/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm on devices, in one step: a block has a row at a time, of which it gets all ranks' elements; it
 * sends its own of the next row before it normalizes this one. */
#include "all_reduce_rms_norm.h"
#include "exchange.inl.h"

/* 1/sqrt as the product of three floats, none of which overflows on the way of an h that it normalizes. */
struct rms_factors {
    float first, second, m;
    DEVICE explicit rms_factors(double rstd) {
        uint64_t bits;
        __builtin_memcpy(&bits, &rstd, sizeof bits);
        const int e = (int)(bits >> 52) - 1023, half = e >> 1;
        const bool plain = rstd > 0 && bits < (uint64_t)2047 << 52;
        bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
        double part;
        __builtin_memcpy(&part, &bits, sizeof part);
        first = plain ? float_of_bits((uint32_t)(127 + half) << 23) : 1.0f;
        second = plain ? float_of_bits((uint32_t)(127 + e - half) << 23) : 1.0f;
        m = plain ? (float)part : (float)rstd;
    }
    DEVICE float of(float h) const { return h * first * second * m; }
};

template <class T> DEVICE float load_either(const void *data, bool is_f32, int64_t i) {
    return is_f32 ? load_one<f32>(data, i) : load_one<T>(data, i);
}

template <class T> struct rms_row {
    using sums = summed<T>;
    enum { N = sums::N };
    const rms_params &q;
    const exchange_params &p;
    exchange e;
    int64_t own, each; /* rows of this block; packets of a row that this thread has */

    DEVICE explicit rms_row(const rms_params &params)
        : q(params), p(params.exchange), e(params.exchange),
          own(block_index() < params.rows ? (params.rows - block_index() + p.blocks - 1) / p.blocks : 0),
          each((((p.n + N - 1) / N) - thread_index() + EXCHANGE_THREADS - 1) / EXCHANGE_THREADS) {}

    /* Of the packets that this thread has, one after the other: without gaps, as exchange.h asks for. */
    DEVICE packet load(int64_t round) const {
        const int64_t row = block_index() + round / each * p.blocks,
                      i = round % each * EXCHANGE_THREADS + thread_index();
        return sums::load(p, row, i);
    }
    DEVICE void send(int64_t round) const {
        if (each <= 0 || round >= own * each) return;
        const packet x = load(round);
        for (int d = 1; d < p.ranks; d++) {
            const int to = p.rank + d < p.ranks ? p.rank + d : p.rank + d - p.ranks;
            packet_put(e.place(to, p.rank, round, 0), x);
        }
    }

    /* The sum and the residual: h, of which the squares are returned. */
    DEVICE double add_up(int64_t round, int64_t row, int64_t i) {
        sums all;
        double squares = 0;
        for (int r = 0; r < p.ranks; r++)
            all.add(r == p.rank ? load(round) : e.take(e.place(p.rank, r, round, 0), r), r == 0, TRINE_RANKS_SUM);
        float *h = q.h + block_index() * p.n;
        for (int k = 0; k < N; k++) {
            const int64_t j = i * N + k;
            if (j >= p.n) continue; /* so that the loop unrolls */
            float v = all.v[k];
            if (q.residual.data) v += load_either<T>(q.residual.data, q.f32_residual, row * q.residual.row + j);
            if (q.residual_out.data && q.f32_residual)
                store_one<f32>(q.residual_out.data, row * q.residual_out.row + j, v);
            else if (q.residual_out.data)
                store_one<T>(q.residual_out.data, row * q.residual_out.row + j, v);
            h[j] = v;
            squares += (double)v * v;
        }
        return squares;
    }

    DEVICE void write(int64_t row, int64_t i, const rms_factors &factors) const {
        const float *h = q.h + block_index() * p.n;
        typename T::bits *y = (typename T::bits *)((char *)p.y + row * p.y_row);
        for (int k = 0; k < N; k++) {
            const int64_t j = i * N + k;
            if (j >= p.n) continue; /* so that the loop unrolls */
            float v = factors.of(h[j]);
            if (q.round) v = rounded<T>(v);
            if (q.weight.data) v *= load_either<T>(q.weight.data, q.f32_weight, j) + q.weight_offset;
            y[j] = T::put(v);
        }
    }

    DEVICE void run() {
        e.greet();
        send(0);
        for (int64_t k = 0; k < own; k++) {
            const int64_t row = block_index() + k * p.blocks;
            double squares = 0;
            for (int64_t t = 0; t < each; t++) {
                send(k * each + t + 1);
                squares += add_up(k * each + t, row, t * EXCHANGE_THREADS + thread_index());
                system_fence();
            }
            const double mean = group_sum<EXCHANGE_THREADS>(squares) / (double)p.n,
                         rstd = 1 / square_root(mean + (double)q.eps);
            if (q.rstd && thread_index() == 0) q.rstd[row] = (float)rstd;
            const rms_factors factors(rstd);
            for (int64_t t = 0; t < each; t++) write(row, t * EXCHANGE_THREADS + thread_index(), factors);
        }
        e.end();
    }
};

#define RMS_ENTRY(T) \
    ENTRY_ALONE(all_reduce_rms_norm_##T, EXCHANGE_THREADS, rms_params) { rms_row<T>(p).run(); }
RMS_ENTRY(f32)
RMS_ENTRY(bf16)
RMS_ENTRY(f16)
