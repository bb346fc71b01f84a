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

template <class T, int N>
DEVICE void load_either(float (&v)[N], const simt_rows &rows, bool is_f32, int64_t row, const lane &l) {
    if (is_f32)
        load<f32>(v, (const float *)rows.data + row * rows.row, l);
    else
        load<T>(v, (const typename T::bits *)rows.data + row * rows.row, l);
}

template <class T> struct rms_row {
    using sums = summed<T>;
    enum { N = sums::N, KEPT = RMS_KEPT / N }; /* packets that a thread keeps in registers; the rest is in q.h */
    const rms_params &q;
    const exchange_params &p;
    exchange e;
    int64_t own, each; /* rows of this block; packets of a row that this thread has */

    DEVICE explicit rms_row(const rms_params &params)
        : q(params), p(params.exchange), e(params.exchange),
          own(block_index() < params.rows ? (params.rows - block_index() + p.blocks - 1) / p.blocks : 0),
          each((((p.n + N - 1) / N) - thread_index() + EXCHANGE_THREADS - 1) / EXCHANGE_THREADS) {}

    /* Packet t of a row that this thread has. */
    DEVICE lane lane_of(int64_t t) const { return lane{ (t * EXCHANGE_THREADS + thread_index()) * N, p.n, p.aligned }; }

    /* Rounds are the packets that this thread has, one after the other: without gaps, as exchange.h asks for. */
    DEVICE int64_t row_of(int64_t k) const { return block_index() + k * p.blocks; }
    DEVICE packet load_own(int64_t k, int64_t t) const {
        return sums::load(p, row_of(k), t * EXCHANGE_THREADS + thread_index());
    }
    DEVICE void send(int64_t round, int64_t k, int64_t t) const {
        if (each <= 0 || k >= own) return;
        const packet x = load_own(k, t);
        for (int d = 1; d < p.ranks; d++) {
            const int to = p.rank + d < p.ranks ? p.rank + d : p.rank + d - p.ranks;
            packet_put(e.place(to, p.rank, round, 0), x);
        }
    }

    /* The sum and the residual, and their squares. */
    DEVICE void add_up(float (&h)[N], double &squares, int64_t k, int64_t t) {
        const int64_t row = row_of(k), round = k * each + t;
        const lane l = lane_of(t);
        float residual[N] = {};
        if (t + 1 < each)
            send(round + 1, k, t + 1);
        else
            send(round + 1, k + 1, 0);
        if (q.residual.data) load_either<T>(residual, q.residual, q.f32_residual, row, l);
        sums all;
        for (int r = 0; r < p.ranks; r++)
            all.add(r == p.rank ? load_own(k, t) : e.take(e.place(p.rank, r, round, 0), r), r == 0, TRINE_RANKS_SUM);
#pragma unroll
        for (int i = 0; i < N; i++) {
            h[i] = q.residual.data ? all.v[i] + residual[i] : all.v[i];
            squares += (double)h[i] * h[i];
        }
        if (q.residual_out.data && q.f32_residual)
            store<f32>(h, (float *)q.residual_out.data + row * q.residual_out.row, l);
        else if (q.residual_out.data)
            store<T>(h, (typename T::bits *)q.residual_out.data + row * q.residual_out.row, l);
        e.end_round(round + EXCHANGE_ROUNDS < own * each);
    }

    DEVICE void load_weight(float (&w)[N], int64_t t) const {
        if (!q.weight.data) return;
        load_either<T>(w, q.weight, q.f32_weight, 0, lane_of(t));
#pragma unroll
        for (int i = 0; i < N; i++) w[i] += q.weight_offset;
    }
    DEVICE void write(const float (&h)[N], const float (&w)[N], const rms_factors &factors, int64_t k,
                      int64_t t) const {
        float y[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = factors.of(h[i]);
            if (q.round) y[i] = rounded<T>(y[i]);
            if (q.weight.data) y[i] *= w[i];
        }
        store<T>(y, (char *)p.y + row_of(k) * p.y_row, lane_of(t));
    }

    DEVICE void run() {
        float kept[KEPT][N], weight[KEPT][N], h[N], w[N];
        float *const beyond = q.h + block_index() * p.n;
        e.greet();
        send(0, 0, 0);
#pragma unroll
        for (int t = 0; t < KEPT; t++)
            if (t < each) load_weight(weight[t], t);
        for (int64_t k = 0; k < own; k++) {
            double squares = 0;
#pragma unroll
            for (int t = 0; t < KEPT; t++)
                if (t < each) add_up(kept[t], squares, k, t);
            for (int64_t t = KEPT; t < each; t++) {
                add_up(h, squares, k, t);
                store<f32>(h, beyond, lane_of(t));
            }
            const double mean = group_sum<EXCHANGE_THREADS>(squares) / (double)p.n,
                         rstd = 1 / square_root(mean + (double)q.eps);
            if (q.rstd && thread_index() == 0) q.rstd[row_of(k)] = (float)rstd;
            const rms_factors factors(rstd);
#pragma unroll
            for (int t = 0; t < KEPT; t++)
                if (t < each) write(kept[t], weight[t], factors, k, t);
            for (int64_t t = KEPT; t < each; t++) {
                load<f32>(h, beyond, lane_of(t));
                load_weight(w, t);
                write(h, w, factors, k, t);
            }
        }
        e.end();
    }
};

#define RMS_ENTRY(T) \
    ENTRY_ALONE(all_reduce_rms_norm_##T, EXCHANGE_THREADS, RMS_HELD, rms_params) { rms_row<T>(p).run(); }
RMS_ENTRY(f32)
RMS_ENTRY(bf16)
RMS_ENTRY(f16)
