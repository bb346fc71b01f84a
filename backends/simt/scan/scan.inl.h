/* SPDX-License-Identifier: Apache-2.0 */
/* What ops along time share on devices: a thread has a channel of a sequence. */
#ifndef TRINE_SIMT_SCAN_INL_H
#define TRINE_SIMT_SCAN_INL_H

#include "scan.h"
#include "backends/simt/core/simt.h"

/* A thread's channel, its sequence's steps and those of its chunk of them, from .. to-1: `sequence` is the count in the
 * room behind the last. Where offsets are astray the room is all steps, and no sequence has any. */
struct scan_task {
    int64_t sequence, batch, first, steps, channel, chunk, from, to;
    int64_t number; /* of the sequence's first chunk */
    bool there, room, astray;

    DEVICE bool ends() const { return to == steps; } /* the last chunk of the sequence? */
};

/* Do offsets not ascend from 0 to at most t? All threads of a block ask together. */
DEVICE bool scan_astray(const scan_shape &s) {
    if (!s.cu) return false;
    float bad = s.cu[0] != 0 || s.cu[s.count] > s.t ? 1.0f : 0.0f;
    for (int64_t i = thread_index(); i < s.count; i += SCAN_THREADS)
        if (s.cu[i + 1] < s.cu[i]) bad = 1.0f;
    return group_sum<SCAN_THREADS>(bad) > 0;
}

DEVICE int64_t scan_first_chunk(const scan_shape &s, int64_t sequence) {
    return s.cu ? s.cu[sequence] / s.chunk + sequence : sequence * s.chunks;
}
/* The sequence that has a chunk. Where offsets are astray each has one, and the room the rest. */
DEVICE int64_t scan_sequence_of(const scan_shape &s, int64_t number, bool astray) {
    if (!s.cu) return number / s.chunks;
    if (astray) return number < s.count ? number : s.count;
    int64_t low = 0, high = s.count + 1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (scan_first_chunk(s, middle) <= number ? low : high) = middle;
    }
    return low;
}

/* `whole`: blocks have sequences, not chunks. */
DEVICE scan_task scan_task_of(const scan_shape &s, bool whole) {
    scan_task a = {};
    const int64_t tile = block_index() / s.tiles;
    a.channel = (block_index() - tile * s.tiles) * SCAN_THREADS + thread_index();
    a.astray = scan_astray(s);
    a.sequence = whole ? tile : scan_sequence_of(s, tile, a.astray);
    a.number = a.astray ? a.sequence : scan_first_chunk(s, a.sequence);
    a.chunk = whole ? 0 : tile - a.number;
    a.steps = s.t;
    a.batch = a.sequence;
    if (s.cu) {
        a.batch = 0;
        a.room = a.sequence == s.count;
        a.first = a.astray ? 0 : s.cu[a.sequence];
        a.steps = a.room ? s.t - a.first : a.astray ? 0 : s.cu[a.sequence + 1] - a.first;
    }
    a.from = a.chunk * s.chunk;
    a.to = whole || a.steps - a.from < s.chunk ? a.steps : a.from + s.chunk;
    a.there = a.channel < s.n && (a.chunk == 0 || a.from < a.steps);
    return a;
}

/* A channel's elements, step by step in the order of the scan. */
template <class Bits> struct scan_line {
    Bits *at;
    int64_t step;
    DEVICE Bits &operator[](int64_t k) const { return at[k * step]; }
    DEVICE scan_line from(int64_t k) const { return { at + k * step, step }; }
    DEVICE scan_line back(int64_t k) const { return { at + k * step, -step }; } /* from step k to the first */
    DEVICE Bits &next() {
        Bits &one = *at;
        at += step;
        return one;
    }
};
template <class T>
DEVICE scan_line<typename T::bits> scan_line_of(const scan_shape &s, const scan_task &a, const simt_rows &rows) {
    const int64_t first = a.first + (s.reverse ? a.steps - 1 : 0);
    return { (typename T::bits *)rows.data + a.batch * rows.batch + first * rows.row + a.channel,
             s.reverse ? -rows.row : rows.row };
}
DEVICE float *scan_state(const scan_task &a, const simt_rows &rows) {
    return rows.data ? (float *)rows.data + a.sequence * rows.row + a.channel : nullptr;
}

/* The room behind the last sequence: 0, or NaN if offsets are astray. */
template <class T> DEVICE void scan_clear(const scan_shape &s, const scan_task &a, const simt_rows &rows) {
    const auto y = scan_line_of<T>(s, a, rows);
    for (int64_t k = a.from; k < a.to; k++) y[k] = T::put(a.astray ? not_a_number() : 0.0f);
}

/* Does step(load()) `steps` times, what is loaded being asked for AHEAD steps before; load() and step() know which is
 * next. LIGHT: a step is so little that asking whether there is another would count. */
template <int AHEAD, bool LIGHT, class Load, class Step>
DEVICE void scan_each(int64_t steps, const Load &load, const Step &step) {
    if (LIGHT && steps <= SCAN_SHORT) {
#pragma unroll 1
        for (; steps > 0; steps--) step(load());
        return;
    }
    decltype(load()) in[AHEAD] = {};
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        if (i < steps) in[i] = load();
    for (; LIGHT && steps >= 2 * AHEAD; steps -= AHEAD) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            step(in[i]);
            in[i] = load();
        }
    }
    for (; steps > 0; steps -= AHEAD) {
        const int left = steps < 2 * AHEAD ? (int)steps : 2 * AHEAD;
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (i < left) step(in[i]);
            if (AHEAD + i < left) in[i] = load();
        }
    }
}

/* -------------------------------------------------------------------------------------------------- time in chunks */

/* m 2^power, m of 0.5 to 1 but for what is zero or not finite. A product of gates may be beyond what a float holds
 * where the state that it multiplies is small, or zero. */
struct scan_gain {
    float m = 0.5f;
    int power = 1;

    DEVICE bool finite() const { return (bits_of_float(m) & INF_BITS) != INF_BITS; }
    DEVICE void multiply(float x) {
        const bool tiny = magnitude(x) < 0x1p-64f;
        m *= tiny ? x * 0x1p90f : x;
        const int exponent = bits_of_float(m) >> 23 & 0xff;
        if (exponent == 0 || exponent == 0xff) return;
        m = float_of_bits((bits_of_float(m) & 0x807fffffu) | 126u << 23);
        power += exponent - 126 - (tiny ? 90 : 0);
    }
    /* Is it a normal number itself, which single() is then, so that one fused step applies it? */
    DEVICE bool is_single() const { return power >= -125 && power <= 127; }
    DEVICE float single() const { return m * float_of_bits((uint32_t)(127 + power) << 23); }
    DEVICE float value() const {
        const int all = power < -400 ? -400 : power > 400 ? 400 : power, part = all / 4;
        const float factor = float_of_bits((uint32_t)(127 + part) << 23);
        return m * factor * factor * factor * float_of_bits((uint32_t)(127 + all - 3 * part) << 23);
    }
};

DEVICE int64_t scan_carried(const scan_shape &s, const scan_task &a, int64_t chunk) {
    return (a.number + chunk) * s.n + a.channel;
}

/* What a chunk does to the state that it begins with. Terms has gate(k) and term(k), those of step k, next_gate() and
 * next_term(), those of the steps from start(k) on, and `initial`, the state before the first step. */
template <class Terms> DEVICE void scan_end(const scan_shape &s, const scan_task &a, Terms terms) {
    struct loaded {
        typename Terms::Bits gate, term;
    };
    scan_gain gain;
    gain.multiply(terms.gate(a.from));
    float h = terms.term(a.from);
    terms.start(a.from + 1);
    scan_each<SCAN_FEW_AHEAD, true>(
        a.to - a.from - 1, [&]() { return loaded{ terms.next_gate(), terms.next_term() }; },
        [&](const loaded &in) {
            const float gate = Terms::get(in.gate);
            gain.multiply(gate);
            h = fused(gate, h, Terms::get(in.term));
        });
    const int64_t at = scan_carried(s, a, a.chunk);
    s.gain[at] = gain.m;
    s.power[at] = gain.power;
    s.end[at] = h;
}

/* The states that the chunks of a sequence begin with. Where a gate is not finite a product of gates
 * says too little: 0 Inf is NaN, but the state that the gate multiplies need not be 0. The steps are taken then. */
template <class Terms> DEVICE void scan_starts(const scan_shape &s, const scan_task &a, const Terms &terms) {
    struct effect {
        float m, end;
        int power;
    };
    float h = terms.initial;
    const int64_t chunks = (a.steps + s.chunk - 1) / s.chunk;
    for (int64_t first = 0; first < chunks;) {
        const int64_t many = chunks - first < SCAN_STARTS ? chunks - first : (int64_t)SCAN_STARTS;
        int64_t ask = scan_carried(s, a, first), put = ask, done = 0;
        bool vague = false;
        scan_each<SCAN_FEW_AHEAD, false>(
            many,
            [&]() {
                const effect one = { s.gain[ask], s.end[ask], s.power[ask] };
                ask += s.n;
                return one;
            },
            [&](const effect &in) {
                if (vague) return;
                s.end[put] = h;
                put += s.n;
                done++;
                scan_gain gain = { in.m, in.power };
                vague = !gain.finite() && h == h;
                if (vague) return;
                if (gain.is_single()) {
                    h = fused(gain.single(), h, in.end);
                    return;
                }
                gain.multiply(h);
                h = gain.value() + in.end;
            });
        first += done;
        const int64_t end = first * s.chunk < a.steps ? first * s.chunk : a.steps;
        for (int64_t k = (first - 1) * s.chunk; vague && k < end; k++) h = fused(terms.gate(k), h, terms.term(k));
    }
}

/* The state that a task begins with, that of the sequence being h. */
DEVICE float scan_start(const scan_shape &s, const scan_task &a, float h) {
    return a.chunk > 0 ? s.end[scan_carried(s, a, a.chunk)] : h;
}

/* The same of all tasks. */
template <class Terms, class Params> DEVICE void scan_all_ends(const Params &p) {
    const scan_task a = scan_task_of(p.shape, false);
    if (a.there && !a.room && a.from < a.to) scan_end(p.shape, a, Terms(p, a));
}
template <class Terms, class Params> DEVICE void scan_all_starts(const Params &p) {
    const scan_task a = scan_task_of(p.shape, true);
    if (a.there) scan_starts(p.shape, a, Terms(p, a));
}

/* The functions of an op, whose parameters are <op>_params, its terms <op>_terms: of whole sequences, and of chunks. */
#define SCAN_ENTRIES(op, T) \
    ENTRY(op##_##T, SCAN_THREADS, op##_params) { op<T, SCAN_AHEAD>(p); } \
    ENTRY(op##_ends_##T, SCAN_THREADS, op##_params) { scan_all_ends<op##_terms<T>>(p); } \
    ENTRY(op##_starts_##T, SCAN_THREADS, op##_params) { scan_all_starts<op##_terms<T>>(p); } \
    ENTRY(op##_chunks_##T, SCAN_THREADS, op##_params) { op<T, SCAN_FEW_AHEAD>(p); }

#endif
