/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks exchange matrices that they multiplied, or will: rows of lines (exchange.h), as the ops want them. */
#ifndef TRINE_SIMT_PRODUCTS_INL_H
#define TRINE_SIMT_PRODUCTS_INL_H

#include "backends/simt/core/quotient.h"
#include "exchange.inl.h"

/* Packet i of a matrix: so many of one line, then those of the next. */
template <int N> struct place_in_lines {
    int64_t line, packet;
    lane elements;
    DEVICE place_in_lines(const exchange_params &p, int64_t i)
        : line(quotient_below(packets(p), i, p.line_packets)), packet(i - line * p.line_packets.by),
          elements{ packet * N, p.n, p.aligned } {}
    static DEVICE int64_t packets(const exchange_params &p) { return p.lines * p.line_packets.by; }
};

/* Sums of f32 in f32, of which T is what comes out. They are exchanged as they are: rounding is every rank's own. */
template <class T> struct summed_products : summed<f32> {
    using place = place_in_lines<summed<f32>::N>;
    static DEVICE int64_t packets(const exchange_params &p) { return place::packets(p); }
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

/* Packet i of what rank r sent. */
template <class place> DEVICE packet landed_packet(const landed_params &l, int r, int64_t i) {
    const place at(l.exchange, i);
    return packet_get(l.landed + (r < l.exchange.rank ? r : r - 1) * l.landed_row + at.line * l.landed_line +
                      at.packet * EXCHANGE_PACKET);
}

/* Those of the other ranks have landed in this one's memory, their lines padded to whole packets. */
template <class T> DEVICE void sum_landed(const landed_params &l) {
    using sums = summed_products<T>;
    const exchange_params &p = l.exchange;
    exchange e(p);
    e.greet();
    e.meet();
    for (int64_t i = e.lane, packets = sums::packets(p); i < packets && !e.failed; i += e.step) {
        sums all;
        for (int r = 0; r < p.ranks; r++)
            all.add(r == p.rank ? sums::load(p, 0, i) : landed_packet<typename sums::place>(l, r, i), r == 0,
                    TRINE_RANKS_SUM);
        sums::store(p, i, all.rounded_off());
    }
    e.end();
}

template <class Bits> struct copied_lines : copied<Bits> {
    enum { N = copied<Bits>::N };
    using place = place_in_lines<N>;
    static DEVICE int64_t packets(const exchange_params &p) { return place::packets(p); }
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

/* Lines that have landed, where all come; without y, nothing is done but to wait for them. */
template <class Bits> DEVICE void copy_landed(const landed_params &l) {
    using copy = copied_lines<Bits>;
    const exchange_params &p = l.exchange;
    const int64_t packets = p.y != nullptr ? copy::packets(p) : 0;
    exchange e(p);
    e.greet();
    e.meet();
    for (int64_t i = e.lane; i < packets && !e.failed; i += e.step)
        for (int r = 0; r < p.ranks; r++)
            copy::store(p, r, i, r == p.rank ? copy::load(p, 0, i) : landed_packet<typename copy::place>(l, r, i));
    e.end();
}

#define PRODUCT_SUM_ENTRY(name, T, run) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, exchange_params) { run<T, summed_products<T>>(p); }
#define PRODUCT_SUM_ENTRIES(op, run) \
    PRODUCT_SUM_ENTRY(op##_f32, f32, run) \
    PRODUCT_SUM_ENTRY(op##_bf16, bf16, run) \
    PRODUCT_SUM_ENTRY(op##_f16, f16, run)
#define LANDED_COPY_ENTRY(name, Bits) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, landed_params) { copy_landed<Bits>(p); }
#define LANDED_SUM_ENTRY(name, T) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, landed_params) { sum_landed<T>(p); }
#define LANDED_SUM_ENTRIES(op) \
    LANDED_SUM_ENTRY(op##_landed_f32, f32) \
    LANDED_SUM_ENTRY(op##_landed_bf16, bf16) \
    LANDED_SUM_ENTRY(op##_landed_f16, f16)
#define LINE_COPY_ENTRY(name, Bits) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, exchange_params) { copy_rows<Bits, copied_lines<Bits>>(p); }

#endif
