/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_v on devices: a launch gives all ranks all counts, a second one the rows. */
#include "all_to_all_v.h"
#include "exchange.inl.h"

/* Rows that each rank gets of this one, where they begin in its x, rows that each has for it, and where they go; the
 * end of these. */
struct vary_plan {
    int64_t sent[EXCHANGE_RANKS], first[EXCHANGE_RANKS], got[EXCHANGE_RANKS], to[EXCHANGE_RANKS], end;
};

/* Rows that rank `from` has for rank `to`, cut to what there is. */
DEVICE int64_t vary_count(const vary_params &q, int from, int to, int64_t &first) {
    int64_t count = 0;
    first = 0;
    for (int i = 0; i <= to; i++) {
        const int64_t wanted = load_integer(q.counts, q.wide, (int64_t)from * q.exchange.ranks + i);
        first += count;
        count = wanted <= 0 ? 0 : wanted < q.m - first ? wanted : q.m - first;
    }
    return count;
}

DEVICE void make_plan(const vary_params &q, vary_plan &plan) {
    const exchange_params &p = q.exchange;
    const int r = thread_index();
    if (r < p.ranks) {
        int64_t unused;
        plan.sent[r] = vary_count(q, p.rank, r, plan.first[r]);
        plan.got[r] = vary_count(q, r, p.rank, unused);
        if (q.received && block_index() == 0) {
            if (q.wide)
                ((int64_t *)q.received)[r] = plan.got[r];
            else
                ((int32_t *)q.received)[r] = (int32_t)plan.got[r];
        }
    }
    sync_block();
    if (r == 0) {
        plan.end = 0;
        for (int i = 0; i < p.ranks; i++) {
            plan.to[i] = plan.end;
            plan.end = plan.got[i] < q.capacity - plan.end ? plan.end + plan.got[i] : q.capacity;
        }
    }
    sync_block();
}

/* Two ranks send each other as many packets, so that each tells that there is room again: the one that has fewer sends
 * empty ones. */
template <class Bits> DEVICE void vary_rows(const vary_params &q) {
    using copy = copied<Bits>;
    SHARED vary_plan plan;
    const exchange_params &p = q.exchange;
    exchange e(p);
    make_plan(q, plan);
    const int64_t width = (p.n + copy::N - 1) / copy::N; /* packets of a row */
    int64_t most = plan.sent[p.rank];
    const auto between = [&](int r) { return (plan.sent[r] > plan.got[r] ? plan.sent[r] : plan.got[r]) * width; };
    for (int r = 0; r < p.ranks; r++)
        if (plan.sent[r] > most || plan.got[r] > most) most = plan.sent[r] > plan.got[r] ? plan.sent[r] : plan.got[r];
    const int64_t packets = most * width;
    const auto load = [&](int to, int64_t i) {
        return i < plan.sent[to] * width ? copy::load(p, plan.first[to] + i / width, i % width)
                                         : packet{ { 0, 0, 0, 0 } };
    };
    const auto store = [&](int from, int64_t i, const packet &x) {
        const int64_t row = plan.to[from] + i / width;
        if (i < plan.got[from] * width && row < q.capacity) copy::store(p, row, i % width, x);
    };
    const auto send = [&](int64_t round) {
        const int64_t i = round * e.step + e.lane;
        for (int d = 1; d < p.ranks; d++) {
            const int to = p.rank + d < p.ranks ? p.rank + d : p.rank + d - p.ranks;
            if (i < between(to)) e.send_copy(to, round, load(to, i));
        }
    };
    e.greet();
    send(0);
    for (int64_t round = 0, i = e.lane; i < packets && !e.failed; round++, i += e.step) {
        send(round + 1);
        for (int r = 0; r < p.ranks; r++) {
            if (r == p.rank)
                store(r, i, load(r, i));
            else if (i < between(r))
                store(r, i, e.take_copy(r, round));
        }
        e.end_round(i + EXCHANGE_ROUNDS * e.step < packets);
    }
    for (int64_t i = e.lane; i < (q.capacity - plan.end) * width; i += e.step)
        copy::store(p, plan.end + i / width, i % width, packet{ { 0, 0, 0, 0 } });
    e.end();
}

EXCHANGE_ENTRY(all_to_all_v_4, copy_rows<uint32_t>)
EXCHANGE_ENTRY(all_to_all_v_8, copy_rows<uint64_t>)
#define VARY_ENTRY(name, Bits) \
    ENTRY_ALONE(name, EXCHANGE_THREADS, EXCHANGE_HELD, vary_params) { vary_rows<Bits>(p); }
VARY_ENTRY(all_to_all_v_rows_1, uint8_t)
VARY_ENTRY(all_to_all_v_rows_2, uint16_t)
VARY_ENTRY(all_to_all_v_rows_4, uint32_t)
VARY_ENTRY(all_to_all_v_rows_8, uint64_t)
