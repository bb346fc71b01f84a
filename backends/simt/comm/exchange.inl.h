/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks exchange packets (exchange.h): the device code of all collective ops. */
#ifndef TRINE_SIMT_EXCHANGE_INL_H
#define TRINE_SIMT_EXCHANGE_INL_H

#include <trine/comm.h>

#include "backends/simt/core/f64.h"
#include "exchange.h"
#include <system.h>

#define ABSENT 0xffffffffu
#define BESIDE 0xfffffffeu /* of copies: the word itself is in a packet of the other kind */

DEVICE bool is_there(const packet &p) { return p.word[1] != ABSENT && p.word[3] != ABSENT; }

/* Of floating-point numbers, words that are all ones are NaN: another one. */
DEVICE packet never_absent(packet p) {
    if (p.word[1] == ABSENT) p.word[1] = 0x7fffffffu;
    if (p.word[3] == ABSENT) p.word[3] = 0x7fffffffu;
    return p;
}

struct exchange {
    const exchange_params &p;
    int64_t lane; /* of this thread among all of the launch */
    int64_t step; /* how many there are */
    int set;
    bool failed;

    DEVICE exchange(const exchange_params &params)
        : p(params), lane(block_index() * EXCHANGE_THREADS + thread_index()),
          step((int64_t)params.blocks * EXCHANGE_THREADS), set((int)(params.launches[block_index()] & 1)),
          failed(false) {}

    /* The greeting of rank `from` to rank `to`. */
    DEVICE char *greeting(int to, int from) const {
        return p.area[to] + (set * EXCHANGE_RANKS + from) * EXCHANGE_PACKET;
    }
    /* Places of two kinds: what goes to be added up, and what has been. */
    DEVICE char *place(int to, int from, int64_t round, int kind) const {
        const uint32_t turn = (uint32_t)((kind * EXCHANGE_SETS + set) * EXCHANGE_ROUNDS) +
                              ((uint32_t)round & (EXCHANGE_ROUNDS - 1)),
                       other = (uint32_t)(from < to ? from : from - 1), room = (uint32_t)p.room;
        const uint32_t before = (turn * (uint32_t)(p.ranks - 1) + other) * room + (uint32_t)lane;
        return p.area[to] + EXCHANGE_HEAD + (uint64_t)before * EXCHANGE_PACKET;
    }

    DEVICE void give_up(int why, int about) {
        failed = true;
        *(volatile uint32_t *)p.stop = 1;
        system_store(&p.report->failed, (uint64_t)why | (uint64_t)about << 8 | (uint64_t)p.op << 16);
    }

    /* What a rank has said that it calls, if it has said so: is it this? */
    DEVICE void look_at_greeting(int from) {
        const packet said = packet_get(greeting(p.rank, from));
        if (!is_there(said) || failed) return;
        if (said.word[0] & EXCHANGE_IS_REFUSED)
            give_up(EXCHANGE_REFUSED, from);
        else if (said.word[0] != p.op || said.word[2] != p.note)
            give_up(EXCHANGE_DIFFERS, from);
    }

    /* Until a packet has come, or there is a reason not to wait. */
    DEVICE packet wait_for(const char *at, int from) {
        packet got = packet_get(at);
        uint64_t start = 0;
        for (uint32_t looks = 1; !is_there(got) && !failed; looks++) {
            if (looks % 1024 == 0) {
                const uint64_t now = nanoseconds();
                if (start == 0) start = now;
                look_at_greeting(from);
                if (*(volatile uint32_t *)p.stop) failed = true;
                if (!failed && system_load(&p.report->abort)) give_up(EXCHANGE_ABORTED, p.rank);
                if (!failed && now - start > p.patience) give_up(EXCHANGE_LATE, from);
            }
            const bool last = looks % 1024 == 0 && system_load(&p.report->ended[from / 32]) >> from % 32 & 1;
            pause_thread();
            got = packet_get(at);
            if (last && !is_there(got) && !failed) give_up(EXCHANGE_ENDED, from);
        }
        return got;
    }

    DEVICE packet take(char *at, int from) {
        const packet got = wait_for(at, from);
        packet_put(at, packet{ { ABSENT, ABSENT, ABSENT, ABSENT } });
        return got;
    }

    /* Data of any bits: a word that would look absent goes beside. */
    static DEVICE bool goes_beside(uint32_t word) { return word >= BESIDE; }
    DEVICE void send_copy(int to, int64_t round, packet x) const {
        const bool first = goes_beside(x.word[1]), second = goes_beside(x.word[3]);
        if (first || second) packet_put(place(to, p.rank, round, 1), packet{ { x.word[1], 0, x.word[3], 0 } });
        if (first) x.word[1] = BESIDE;
        if (second) x.word[3] = BESIDE;
        packet_put(place(to, p.rank, round, 0), x);
    }
    DEVICE packet take_copy(int from, int64_t round) {
        packet x = take(place(p.rank, from, round, 0), from);
        const bool first = x.word[1] == BESIDE, second = x.word[3] == BESIDE;
        if (!first && !second) return x;
        const packet beside = take(place(p.rank, from, round, 1), from);
        if (first) x.word[1] = beside.word[0];
        if (second) x.word[3] = beside.word[2];
        return x;
    }

    /* What this round has cleared is so before this thread sends more, if there is a round that uses it again. */
    static DEVICE void end_round(bool again) {
        if (again) system_fence();
    }

    DEVICE bool greets() const { return block_index() == 0 && thread_index() < p.ranks && thread_index() != p.rank; }
    DEVICE void greet() const {
        if (greets()) packet_put(greeting(thread_index(), p.rank), packet{ { p.op, 0, p.note, 0 } });
    }

    /* Until all ranks have begun this launch: what the launches before it stored is there, for the whole block. */
    DEVICE void meet() {
        if (thread_index() == 0) {
            system_fence();
            for (int r = 0; r < p.ranks; r++)
                if (r != p.rank) packet_put(place(r, p.rank, 0, 0), packet{ { 0, 0, 0, 0 } });
            for (int r = 0; r < p.ranks; r++)
                if (r != p.rank) take(place(p.rank, r, 0, 0), r);
            system_fence();
        }
        sync_block();
    }

    /* The last of all: another launch of this rank finds its set free. */
    DEVICE void end() {
        if (greets()) {
            wait_for(greeting(p.rank, thread_index()), thread_index());
            look_at_greeting(thread_index());
            packet_put(greeting(p.rank, thread_index()), packet{ { ABSENT, ABSENT, ABSENT, ABSENT } });
        }
        const uint64_t launches = p.launches[block_index()] + 1;
        sync_block();
        for (int64_t b = block_index() + (int64_t)thread_index() * p.blocks; b < EXCHANGE_BLOCKS;
             b += (int64_t)EXCHANGE_THREADS * p.blocks)
            p.launches[b] = launches;
    }
};

/* ------------------------------------------------------------------------------------------------------------- sums */

template <class T> struct summed {
    using bits = typename T::bits;
    using number = decltype(T::get(bits()));
    enum { N = EXCHANGE_PACKET / sizeof(bits) };
    number v[N];

    static DEVICE int64_t packets(const exchange_params &p) { return (p.n + N - 1) / N; }
    static DEVICE packet load(const exchange_params &p, int64_t row, int64_t i) {
        bits raw[N];
        packet words;
        load_bits(raw, (const char *)p.x + row * p.x_row, lane{ i * N, p.n, p.aligned });
        __builtin_memcpy(&words, raw, sizeof words);
        return never_absent(words);
    }
    static DEVICE void store(const exchange_params &p, int64_t i, const packet &words) {
        bits raw[N];
        __builtin_memcpy(raw, &words, sizeof words);
        store_bits(raw, p.y, lane{ i * N, p.n, p.aligned });
    }
    DEVICE void add(const packet &words, bool first, int kind) {
        bits raw[N];
        __builtin_memcpy(raw, &words, sizeof words);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const number x = T::get(raw[k]);
            if (first)
                v[k] = x;
            else if (kind == TRINE_RANKS_MAX)
                v[k] = v[k] >= x || v[k] != v[k] ? v[k] : x;
            else
                v[k] = v[k] + x;
        }
    }
    DEVICE packet rounded_off() const {
        bits raw[N];
        packet words;
#pragma unroll
        for (int k = 0; k < N; k++) raw[k] = T::put(v[k]);
        __builtin_memcpy(&words, raw, sizeof words);
        return never_absent(words);
    }
};

/* In one step: each rank gets all that it adds up. */
template <class T, class sums = summed<T>> DEVICE void sum_directly(const exchange_params &p) {
    exchange e(p);
    const int64_t packets = sums::packets(p);
    const auto send = [&](int64_t round) {
        const int64_t i = round * e.step + e.lane;
        if (i >= packets) return;
        packet x;
        for (int d = 1; d < p.ranks; d++) {
            const int to = p.rank + d < p.ranks ? p.rank + d : p.rank + d - p.ranks;
            if (d == 1 || p.x_row != 0) x = sums::load(p, to, i);
            packet_put(e.place(to, p.rank, round, 0), x);
        }
    };
    e.greet();
    send(0);
    for (int64_t round = 0, i = e.lane; i < packets && !e.failed; round++, i += e.step) {
        sums all;
        send(round + 1);
        for (int r = 0; r < p.ranks; r++)
            all.add(r == p.rank ? sums::load(p, r, i) : e.take(e.place(p.rank, r, round, 0), r), r == 0, p.kind);
        sums::store(p, i, all.rounded_off());
        e.end_round(i + EXCHANGE_ROUNDS * e.step < packets);
    }
    e.end();
}

/* In two: each rank adds up its part of a round, and gives that to all. */
template <class T, class sums = summed<T>> DEVICE void sum_by_parts(const exchange_params &p) {
    exchange e(p);
    const int64_t packets = sums::packets(p), all = p.ranks * e.step, rounds = (packets + all - 1) / all;
    const auto place_of = [&](int64_t round, int part) { return round * all + part * e.step + e.lane; };
    const auto send = [&](int64_t round) {
        for (int d = 1; d < p.ranks; d++) {
            const int to = p.rank + d < p.ranks ? p.rank + d : p.rank + d - p.ranks;
            const int64_t i = place_of(round, to);
            if (i < packets) packet_put(e.place(to, p.rank, round, 0), sums::load(p, 0, i));
        }
    };
    e.greet();
    send(0);
    for (int64_t round = 0; round <= rounds && !e.failed; round++) {
        const int64_t own = place_of(round, p.rank);
        send(round + 1);
        if (own < packets) {
            sums sum;
            for (int r = 0; r < p.ranks; r++)
                sum.add(r == p.rank ? sums::load(p, 0, own) : e.take(e.place(p.rank, r, round, 0), r), r == 0, p.kind);
            const packet words = sum.rounded_off();
            for (int r = 0; r < p.ranks; r++)
                if (r != p.rank) packet_put(e.place(r, p.rank, round, 1), words);
            sums::store(p, own, words);
        }
        for (int r = 0; r < p.ranks && round > 0; r++) {
            const int64_t i = place_of(round - 1, r);
            if (r != p.rank && i < packets) sums::store(p, i, e.take(e.place(p.rank, r, round - 1, 1), r));
        }
        e.end_round(place_of(round + EXCHANGE_ROUNDS - 1, 0) < packets);
    }
    e.end();
}

/* ----------------------------------------------------------------------------------------------------------- copies */

template <class Bits> struct copied {
    enum { N = EXCHANGE_PACKET / sizeof(Bits) };

    static DEVICE int64_t packets(const exchange_params &p) { return (p.n + N - 1) / N; }
    static DEVICE packet load(const exchange_params &p, int64_t row, int64_t i) {
        Bits raw[N];
        packet x;
        load_bits(raw, (const char *)p.x + row * p.x_row, lane{ i * N, p.n, p.aligned });
        __builtin_memcpy(&x, raw, sizeof x);
        return x;
    }
    static DEVICE void store(const exchange_params &p, int64_t row, int64_t i, const packet &x) {
        Bits raw[N];
        __builtin_memcpy(raw, &x, sizeof x);
        store_bits(raw, (char *)p.y + row * p.y_row, lane{ i * N, p.n, p.aligned });
    }
};

/* Row r of y is what rank r has for this one: of all_gather, whose x is the same for all, and all_to_all. */
template <class Bits, class copy = copied<Bits>> DEVICE void copy_rows(const exchange_params &p) {
    exchange e(p);
    const int64_t packets = copy::packets(p);
    const auto send = [&](int64_t round) {
        const int64_t i = round * e.step + e.lane;
        for (int d = 1; d < p.ranks && i < packets; d++) {
            const int to = p.rank + d < p.ranks ? p.rank + d : p.rank + d - p.ranks;
            e.send_copy(to, round, copy::load(p, to, i));
        }
    };
    e.greet();
    send(0);
    for (int64_t round = 0, i = e.lane; i < packets && !e.failed; round++, i += e.step) {
        send(round + 1);
        for (int r = 0; r < p.ranks; r++)
            copy::store(p, r, i, r == p.rank ? copy::load(p, r, i) : e.take_copy(r, round));
        e.end_round(i + EXCHANGE_ROUNDS * e.step < packets);
    }
    e.end();
}

/* From the root. Where places are used again, what the others send it back after a fence says that they are clear. */
template <class Bits> DEVICE void copy_of_root(const exchange_params &p) {
    using copy = copied<Bits>;
    exchange e(p);
    const int root = p.kind;
    const int64_t packets = (p.n + copy::N - 1) / copy::N;
    e.greet();
    for (int64_t round = 0, i = e.lane; i < packets && !e.failed; round++, i += e.step) {
        if (p.rank == root) {
            const packet x = copy::load(p, 0, i);
            for (int r = 0; r < p.ranks && round >= EXCHANGE_ROUNDS; r++)
                if (r != root) e.take(e.place(root, r, round, 0), r);
            e.end_round(round >= EXCHANGE_ROUNDS);
            for (int r = 0; r < p.ranks && !e.failed; r++)
                if (r != root) e.send_copy(r, round, x);
            copy::store(p, 0, i, x);
        } else {
            copy::store(p, 0, i, e.take_copy(root, round));
            const bool again = i + EXCHANGE_ROUNDS * e.step < packets;
            e.end_round(again);
            if (again) packet_put(e.place(root, p.rank, round, 0), packet{ { 0, 0, 0, 0 } });
        }
    }
    e.end();
}

#define EXCHANGE_ENTRY(name, run) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, exchange_params) { run(p); }
#define SUM_ENTRIES(op, run) \
    EXCHANGE_ENTRY(op##_f32, run<f32>) \
    EXCHANGE_ENTRY(op##_bf16, run<bf16>) \
    EXCHANGE_ENTRY(op##_f16, run<f16>) \
    EXCHANGE_ENTRY(op##_f64, run<f64>)
#define COPY_ENTRIES(op, run) \
    EXCHANGE_ENTRY(op##_1, run<uint8_t>) \
    EXCHANGE_ENTRY(op##_2, run<uint16_t>) \
    EXCHANGE_ENTRY(op##_4, run<uint32_t>) \
    EXCHANGE_ENTRY(op##_8, run<uint64_t>)

#endif
