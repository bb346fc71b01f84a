/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan on devices: a thread has a channel of a sequence, or of a chunk of its steps, and takes the steps one
 * after the other. Chunks are looked at twice: for what they do to any state, and then from the state that they begin
 * with.
 *
 * NOTES. Floor: x and g once, y once, and so it is where there are channels enough. */
#include "scan.inl.h"

template <class T> struct linear_scan_terms {
    using Bits = typename T::bits;
    scan_line<Bits> x, g, next_x, next_g;
    float initial;
    bool alone; /* the first step has nothing before it */

    DEVICE linear_scan_terms(const linear_scan_params &p, const scan_task &a)
        : x(scan_line_of<T>(p.shape, a, p.x)), g(scan_line_of<T>(p.shape, a, p.g)) {
        const float *from = scan_state(a, p.h0);
        alone = from == nullptr;
        initial = from ? *from : 0.0f;
    }
    static DEVICE float get(Bits b) { return T::get(b); }
    DEVICE float gate(int64_t k) const { return alone && k == 0 ? 0.0f : T::get(g[k]); }
    DEVICE float term(int64_t k) const { return T::get(x[k]); }
    DEVICE void start(int64_t k) { next_x = x.from(k), next_g = g.from(k); }
    DEVICE Bits next_gate() { return next_g.next(); }
    DEVICE Bits next_term() { return next_x.next(); }
};

template <class T, int AHEAD> DEVICE void linear_scan(const linear_scan_params &p) {
    using Terms = linear_scan_terms<T>;
    const scan_task a = scan_task_of(p.shape, false);
    if (!a.there) return;
    if (a.room) {
        scan_clear<T>(p.shape, a, p.y);
        return;
    }
    struct loaded {
        typename T::bits gate, term;
    };
    Terms terms(p, a);
    auto y = scan_line_of<T>(p.shape, a, p.y).from(a.from);
    float *const last = scan_state(a, p.last);
    float h = scan_start(p.shape, a, terms.initial);
    if (a.from < a.to) {
        h = fused(terms.gate(a.from), h, terms.term(a.from));
        y.next() = T::put(h);
    }
    terms.start(a.from + 1);
    scan_each<AHEAD, true>(
        a.to - a.from - 1, [&]() { return loaded{ terms.next_gate(), terms.next_term() }; },
        [&](const loaded &in) {
            h = fused(T::get(in.gate), h, T::get(in.term));
            y.next() = T::put(h);
        });
    if (last && a.ends()) *last = a.astray ? not_a_number() : h;
}

SCAN_ENTRIES(linear_scan, f32)
SCAN_ENTRIES(linear_scan, bf16)
SCAN_ENTRIES(linear_scan, f16)
