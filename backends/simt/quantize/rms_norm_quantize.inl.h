/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_quantize on devices: a block has a row, which it reads three times, for its squares, for the largest of a
 * group and for the codes.
 *
 * NOTES. Floor: x and residual once, codes and residual_out once; what is read again is in the first two levels of
 * caches. Squares are summed as the header says: thread t has the sums 8t .. 8t+7 of 2048. */
#include "rms_norm_quantize.h"
#include "rows.inl.h"

template <class T> struct rms_norm_source {
    using bits = typename T::bits;
    const rms_norm_quantize_params &p;
    int64_t row;
    float first, second, m; /* what h is multiplied by */

    static DEVICE void load_either(float (&v)[CODES_UNIT], const simt_rows &rows, bool wide, int64_t row,
                                   const lane &l) {
        if (wide)
            load<f32>(v, (const uint32_t *)rows.data + row * rows.row, l);
        else
            load<T>(v, (const bits *)rows.data + row * rows.row, l);
    }

    DEVICE void sum(float (&h)[CODES_UNIT], const lane &l) const {
        load<T>(h, (const bits *)p.x.data + row * p.x.row, l);
        if (!p.residual.data) return;
        float more[CODES_UNIT];
        load_either(more, p.residual, p.residual_wide, row, l);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) h[j] += more[j];
    }

    DEVICE void get(float (&y)[CODES_UNIT], const lane &l, bool last) const {
        sum(y, l);
        if (last && p.residual_out.data) {
            if (p.residual_wide)
                store<f32>(y, (uint32_t *)p.residual_out.data + row * p.residual_out.row, l);
            else
                store<T>(y, (bits *)p.residual_out.data + row * p.residual_out.row, l);
        }
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) y[j] = product(product(product(y[j], first), second), m);
        if (!p.weight.data) return;
        float weight[CODES_UNIT];
        load_either(weight, p.weight, p.weight_wide, 0, l);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) y[j] = product(y[j], weight[j] + p.weight_offset);
    }

    /* rstd = m 2^e with 1 <= m <= 2. */
    DEVICE void scale_by(double rstd) {
        uint64_t word;
        __builtin_memcpy(&word, &rstd, sizeof word);
        const int e = (int)(word >> 52) - 1023, half = e >> 1;
        first = second = 1;
        m = (float)rstd;
        if (word == 0 || e > 1023 || word >> 63) return;
        word = (word & 0x000fffffffffffffu) | 0x3ff0000000000000u;
        __builtin_memcpy(&rstd, &word, sizeof word);
        m = (float)rstd;
        first = float_of_bits((uint32_t)(half + 127) << 23);
        second = float_of_bits((uint32_t)(e - half + 127) << 23);
    }
};

/* The sum of a block's threads by neighbours: of 0 and 1, 2 and 3, ... */
DEVICE double rms_norm_by_pairs(double x) {
#pragma unroll
    for (int mask = 1; mask < WARP; mask *= 2) x += shuffle_xor(x, mask);
    constexpr int warps = SIMT_THREADS / WARP;
    SHARED double part[warps];
    if (thread_index() % WARP == 0) part[thread_index() / WARP] = x;
    sync_block();
    double sum[warps];
#pragma unroll
    for (int i = 0; i < warps; i++) sum[i] = part[i];
#pragma unroll
    for (int step = 1; step < warps; step *= 2)
#pragma unroll
        for (int i = 0; i < warps; i += 2 * step) sum[i] += sum[i + step];
    return sum[0];
}

template <class T, int G> DEVICE void rms_norm_quantize_row(const rms_norm_quantize_params &p) {
    rms_norm_source<T> source{ p, block_index(), 1, 1, 1 };
    double sum[CODES_UNIT] = {};
#pragma unroll 1
    for (int64_t at = (int64_t)thread_index() * CODES_UNIT; at < p.out.k; at += SIMT_THREADS * CODES_UNIT) {
        float h[CODES_UNIT];
        source.sum(h, lane{ at, p.out.k, p.out.vectors });
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) sum[j] += (double)h[j] * h[j]; /* exact, fused or not */
    }
    const double squares =
        rms_norm_by_pairs(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
    source.scale_by(1 / square_root(squares / (double)p.out.k + (double)p.eps));

    constexpr int teams = SIMT_THREADS / G;
#pragma unroll 1
    for (int64_t first = 0; first < p.out.groups; first += teams) {
        const int64_t group = first + thread_index() / G;
        row_group<T, G>(p.out, source, source.row, group, group < p.out.groups);
    }
}

#define RMS_NORM_QUANTIZE_TEAM(T, G) \
    ENTRY(rms_norm_quantize_##T##_##G, SIMT_THREADS, rms_norm_quantize_params) { rms_norm_quantize_row<T, G>(p); }
#define RMS_NORM_QUANTIZE(T) RMS_NORM_QUANTIZE_TEAM(T, 4) RMS_NORM_QUANTIZE_TEAM(T, 16) RMS_NORM_QUANTIZE_TEAM(T, 256)
RMS_NORM_QUANTIZE(f32)
RMS_NORM_QUANTIZE(bf16)
RMS_NORM_QUANTIZE(f16)
