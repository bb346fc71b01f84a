/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks exchange matrices that they multiplied, or will: rows of lines (exchange.h), as the ops want them. */
#ifndef TRINE_SIMT_PRODUCTS_INL_H
#define TRINE_SIMT_PRODUCTS_INL_H

#include "exchange.inl.h"

/* Packet i of a matrix: so many of one line, then those of the next. */
template <int N> struct place_in_lines {
    int64_t line;
    lane elements;
    DEVICE place_in_lines(const exchange_params &p, int64_t i) : line(i / per_line(p)), elements{ 0, p.n, p.aligned } {
        elements.at = (i - line * per_line(p)) * N;
    }
    static DEVICE int64_t per_line(const exchange_params &p) { return (p.n + N - 1) / N; }
};

/* Sums of f32 in f32, of which T is what comes out. They are exchanged as they are: rounding is every rank's own. */
template <class T> struct summed_products : summed<f32> {
    using place = place_in_lines<summed<f32>::N>;
    static DEVICE int64_t packets(const exchange_params &p) { return p.lines * place::per_line(p); }
    static DEVICE packet load(const exchange_params &p, int row, int64_t i) {
        const place at(p, i);
        uint32_t raw[N];
        packet words;
        load_bits(raw, (const char *)p.x + row * p.x_row + at.line * p.x_line, at.elements);
        __builtin_memcpy(&words, raw, sizeof words);
        return never_absent(words);
    }
    static DEVICE void store(const exchange_params &p, int64_t i, const packet &words) {
        const place at(p, i);
        float sum[N];
        __builtin_memcpy(sum, &words, sizeof words);
        ::store<T>(sum, (char *)p.y + at.line * p.y_line, at.elements);
    }
};

template <class Bits> struct copied_lines : copied<Bits> {
    enum { N = copied<Bits>::N };
    using place = place_in_lines<N>;
    static DEVICE int64_t packets(const exchange_params &p) { return p.lines * place::per_line(p); }
    static DEVICE packet load(const exchange_params &p, int row, int64_t i) {
        const place at(p, i);
        Bits raw[N];
        packet x;
        load_bits(raw, (const char *)p.x + row * p.x_row + at.line * p.x_line, at.elements);
        __builtin_memcpy(&x, raw, sizeof x);
        return x;
    }
    static DEVICE void store(const exchange_params &p, int row, int64_t i, const packet &x) {
        const place at(p, i);
        Bits raw[N];
        __builtin_memcpy(raw, &x, sizeof x);
        store_bits(raw, (char *)p.y + row * p.y_row + at.line * p.y_line, at.elements);
    }
};

#define PRODUCT_SUM_ENTRY(name, T, run) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, exchange_params) { run<T, summed_products<T>>(p); }
#define PRODUCT_SUM_ENTRIES(op, run) \
    PRODUCT_SUM_ENTRY(op##_f32, f32, run) \
    PRODUCT_SUM_ENTRY(op##_bf16, bf16, run) \
    PRODUCT_SUM_ENTRY(op##_f16, f16, run)
#define LINE_COPY_ENTRY(name, Bits) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, exchange_params) { copy_rows<Bits, copied_lines<Bits>>(p); }

#endif
