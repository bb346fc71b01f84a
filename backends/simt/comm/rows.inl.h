/* SPDX-License-Identifier: Apache-2.0 */
/* Rows go to other ranks by lists (rows.h). A packet says in its second word which row of y it is for. Every rank sends
 * every other a packet in each round, of nothing if its list has ended: so each knows that there is room again. */
#ifndef TRINE_SIMT_ROWS_INL_H
#define TRINE_SIMT_ROWS_INL_H

#include "exchange.inl.h"
#include "rows.h"

/* Half of a packet is data. */
template <class Bits> struct copied_half {
    enum { N = EXCHANGE_PACKET / 2 / sizeof(Bits) };

    static DEVICE packet load(const exchange_params &p, int64_t row, int64_t i) {
        Bits raw[N];
        uint32_t words[2];
        load_bits(raw, (const char *)p.x + row * p.x_row, lane{ i * N, p.n, p.aligned });
        __builtin_memcpy(words, raw, sizeof words);
        return packet{ { words[0], 0, words[1], 0 } };
    }
    static DEVICE void store(const exchange_params &p, int64_t row, int64_t i, const packet &x) {
        Bits raw[N];
        const uint32_t words[2] = { x.word[0], x.word[2] };
        __builtin_memcpy(raw, words, sizeof words);
        store_bits(raw, (char *)p.y + row * p.y_row, lane{ i * N, p.n, p.aligned });
    }
};

#define NO_ROW 0x80000000u /* and what is above it: no place that is absent is one */

template <class Bits> DEVICE void move_rows(const exchange_params &p) {
    using copy = copied_half<Bits>;
    exchange e(p);
    const moved_rows &moves = *(const moved_rows *)p.moves;
    const moved_row *const list = (const moved_row *)(&moves + 1);
    const int64_t row_packets = (p.n + copy::N - 1) / copy::N, packets = moves.most * row_packets;
    const auto packet_for = [&](int to, int64_t i) {
        const int64_t row = i / row_packets;
        if (row >= moves.count[to]) return packet{ { 0, NO_ROW, 0, 0 } };
        const moved_row move = list[moves.first[to] + row];
        packet x = copy::load(p, move.from, i - row * row_packets);
        x.word[1] = (uint32_t)move.to;
        return x;
    };
    const auto send = [&](int64_t round) {
        const int64_t i = round * e.step + e.lane;
        for (int d = 1; d < p.ranks && i < packets; d++) {
            const int to = p.rank + d < p.ranks ? p.rank + d : p.rank + d - p.ranks;
            packet_put(e.place(to, p.rank, round, 0), packet_for(to, i));
        }
    };
    e.greet();
    send(0);
    for (int64_t i = e.lane; i < (moves.end - moves.clear) * row_packets; i += e.step)
        copy::store(p, moves.clear + (int)(i / row_packets), i % row_packets, packet{ { 0, 0, 0, 0 } });
    for (int64_t round = 0, i = e.lane; i < packets && !e.failed; round++, i += e.step) {
        send(round + 1);
        for (int r = 0; r < p.ranks; r++) {
            const packet x = r == p.rank ? packet_for(r, i) : e.take(e.place(p.rank, r, round, 0), r);
            if (x.word[1] < NO_ROW) copy::store(p, (int)x.word[1], i % row_packets, x);
        }
        e.end_round(i + EXCHANGE_ROUNDS * e.step < packets);
    }
    e.end();
}

#endif
