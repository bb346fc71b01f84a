/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm_quantize on devices, in one step: all ranks' rows and the residual are added up in f32; the rest
 * is rms_norm_quantize's. */
#include "all_reduce_rms_norm_quantize.h"
#include "products.inl.h"

template <class T> struct summed_rows : summed<T> {
    using bits = typename T::bits;
    enum { N = summed<T>::N };
    using place = place_in_lines<N>;

    static DEVICE int64_t packets(const exchange_params &p) { return place::packets(p); }
    static DEVICE packet load(const exchange_params &p, int64_t, int64_t i) {
        const place at(p, i);
        bits raw[N];
        packet words;
        load_bits(raw, (const char *)p.x + at.line * p.x_line, at.elements);
        __builtin_memcpy(&words, raw, sizeof words);
        return never_absent(words);
    }
    DEVICE const summed_rows &rounded_off() const { return *this; }

    /* The exchange is of parameters that begin with it. */
    static DEVICE void store(const exchange_params &p, int64_t i, const summed_rows &all) {
        const summed_rows_params &q = *(const summed_rows_params *)(const void *)&p;
        const place at(p, i);
        float *h = (float *)((char *)p.y + at.line * p.y_line);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const int64_t j = at.elements.at + k, from = at.line * q.residual.row + j,
                          to = at.line * q.residual_out.row + j;
            if (j >= p.n) continue; /* so that the loop unrolls */
            float v = all.v[k];
            if (q.residual.data)
                v += q.f32_residual ? load_one<f32>(q.residual.data, from) : load_one<T>(q.residual.data, from);
            if (q.residual_out.data && q.f32_residual) store_one<f32>(q.residual_out.data, to, v);
            if (q.residual_out.data && !q.f32_residual) store_one<T>(q.residual_out.data, to, v);
            h[j] = v;
        }
    }
};

#define SUMMED_ROWS_ENTRY(T) \
    ENTRY_ALONE(all_reduce_rms_norm_quantize_##T, EXCHANGE_THREADS, EXCHANGE_HELD, summed_rows_params) { \
        sum_directly<T, summed_rows<T>>(p.exchange); \
    }
SUMMED_ROWS_ENTRY(f32)
SUMMED_ROWS_ENTRY(bf16)
SUMMED_ROWS_ENTRY(f16)
