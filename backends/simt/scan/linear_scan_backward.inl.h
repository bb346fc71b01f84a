/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan_backward on devices: linear_scan's threads, whose steps run from the last to the first.
 *
 * NOTES. Floor: dy, g and y once, dx and dg once, and so it is where there are channels enough. */
#include "scan.inl.h"

/* Step k is the k-th from the end; its gate is that of the step after it, and behind the last one of 1 leaves dlast as
 * it is. */
template <class T> struct linear_scan_backward_terms {
    using Bits = typename T::bits;
    scan_line<Bits> dy, g, next_dy, next_g;
    int64_t end;
    float initial, gate_of_last;

    DEVICE linear_scan_backward_terms(const linear_scan_backward_params &p, const scan_task &a)
        : dy(scan_line_of<T>(p.shape, a, p.dy)), g(scan_line_of<T>(p.shape, a, p.g)), end(a.steps - 1) {
        const float *from = scan_state(a, p.dlast);
        initial = from ? *from : 0.0f;
        gate_of_last = from ? 1.0f : 0.0f;
    }
    static DEVICE float get(Bits b) { return T::get(b); }
    DEVICE float gate(int64_t k) const { return k == 0 ? gate_of_last : T::get(g[end - k + 1]); }
    DEVICE float term(int64_t k) const { return T::get(dy[end - k]); }
    DEVICE void start(int64_t k) { next_dy = dy.back(end - k), next_g = g.back(end - k + 1); }
    DEVICE Bits next_gate() { return next_g.next(); }
    DEVICE Bits next_term() { return next_dy.next(); }
};

template <class T, int AHEAD> DEVICE void linear_scan_backward(const linear_scan_backward_params &p) {
    using Terms = linear_scan_backward_terms<T>;
    const scan_task a = scan_task_of(p.shape, false);
    if (!a.there) return;
    if (a.room) {
        scan_clear<T>(p.shape, a, p.dx);
        scan_clear<T>(p.shape, a, p.dg);
        return;
    }
    struct loaded {
        typename T::bits gate, term, y;
    };
    Terms terms(p, a);
    const int64_t end = terms.end;
    const auto y = scan_line_of<T>(p.shape, a, p.y);
    auto before = y.back(end - a.from - 1), dx = scan_line_of<T>(p.shape, a, p.dx).back(end - a.from),
         dg = scan_line_of<T>(p.shape, a, p.dg).back(end - a.from);
    const float *const h0 = scan_state(a, p.h0);
    float *const dh0 = scan_state(a, p.dh0);
    float dh = scan_start(p.shape, a, terms.initial);
    const auto put = [&](float of_gate) {
        dx.next() = T::put(dh);
        dg.next() = T::put(of_gate);
    };
    /* The first step, and the one that has h0 before it, by themselves. */
    const int64_t inner = (a.ends() ? a.to - 1 : a.to) - a.from - 1;
    if (a.from < a.to) {
        dh = fused(terms.gate(a.from), dh, terms.term(a.from));
        put(a.from < end ? dh * T::get(before.next()) : h0 ? dh * *h0 : 0.0f);
    }
    terms.start(a.from + 1);
    scan_each<AHEAD, true>(
        inner, [&]() { return loaded{ terms.next_gate(), terms.next_term(), before.next() }; },
        [&](const loaded &in) {
            dh = fused(T::get(in.gate), dh, T::get(in.term));
            put(dh * T::get(in.y));
        });
    if (!a.ends()) return;
    if (a.to - a.from > 1) {
        dh = fused(terms.gate(end), dh, terms.term(end));
        put(h0 ? dh * *h0 : 0.0f);
    }
    if (!dh0) return;
    const float gate = a.steps > 0 ? T::get(terms.g[0]) : terms.gate_of_last;
    *dh0 = a.astray ? not_a_number() : gate * dh;
}

SCAN_ENTRIES(linear_scan_backward, f32)
SCAN_ENTRIES(linear_scan_backward, bf16)
SCAN_ENTRIES(linear_scan_backward, f16)
