/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy with its gradient, of rows in shared memory: each in one block, or in parts in the blocks of a cluster. A thread copies into places of its own,
 * which no other looks at, so that it alone waits for them. A block has one row: those of a processor, three where there is room, are then at different steps.
 *
 * NOTES
 * Floor: logits once and dlogits once; 2 exponentials and about 12 other instructions for each.
 * Predicted: 45 % of what a processor issues at copying's rate, so that memory binds: 90 % of copy.
 * Measured, H200, 8192 rows of bf16: 97 % of copy for 32000 logits, 86 % for 128256 in four blocks. Blocks that stay, and ask for the next row as they write:
 * 87 and 83 %. Rows copied whole by the copy engine: as fast in one block, less in several. 1024 threads: 87 %. */
#ifndef TRINE_CUDA_CROSS_ENTROPY_PARTS_H
#define TRINE_CUDA_CROSS_ENTROPY_PARTS_H

#include <tile/mma.h>

#include "backends/simt/cross_entropy_gradient.h"
#include "cross_entropy.h"

/* The elements of a row that a block has, in pieces of 16 bytes. */
template <class T, bool WHOLE> struct row_part {
    using bits = typename T::bits;
    static constexpr int ITEMS = 16 / sizeof(bits), STEP = CROSS_ENTROPY_THREADS * ITEMS;
    using piece = held<T, ITEMS>;

    const int n;

    static DEVICE bits *memory() { return (bits *)launch_memory(); }
    DEVICE bool in(int i) const { return i < n; }

    /* Does this thread have element i? */
    static DEVICE bool mine(int i) { return i >= 0 && i / ITEMS % CROSS_ENTROPY_THREADS == thread_index(); }

    /* Body(i) for each of the thread's pieces: i is its first element. */
    template <class Body> DEVICE void each(const Body &body) const {
#pragma unroll 1
        for (int i = thread_index() * ITEMS; i < n; i += STEP) body(i);
    }

    /* Asks for a piece of the row whose part begins at `from`. */
    DEVICE void ask(const bits *from, int i) const {
        if constexpr (WHOLE) {
            copy_bytes<16>(memory() + i, from + i, 16);
        } else {
            piece x = {};
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (in(i + k)) x.word[k / x.PER_WORD] |= (uint32_t)from[i + k] << k % x.PER_WORD * 16;
            *(piece *)(memory() + i) = x;
        }
    }
    DEVICE piece get(int i) const { return *(const piece *)(memory() + i); }

    DEVICE void put(bits *to, int i, const piece &y) const {
        if constexpr (WHOLE) {
            store_whole(y.word, to + i);
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (in(i + k)) to[i + k] = (bits)(y.word[k / y.PER_WORD] >> k % y.PER_WORD * 16);
        }
    }

    /* The thread's. */
    DEVICE logit_sums sums(const cross_entropy_params &p) const {
        logit_sums s = { -f32::largest(), 0, 0 };
        each([&](int i) {
            const piece x = get(i);
            float z[ITEMS], max = -infinity(), sum = 0;
#pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                z[k] = WHOLE || in(i + k) ? product(x.get(k), p.base2) : -infinity();
                max = larger(max, z[k]);
            }
            if (p.smoothing > 0)
#pragma unroll
                for (int k = 0; k < ITEMS; k++) s.total += x.get(k);
            max = to_finite(max);
            if (max > s.origin) {
                s.sum *= exp2_approx(s.origin - max);
                s.origin = max;
            }
#pragma unroll
            for (int k = 0; k < ITEMS; k += 2) sum += exp2_approx(z[k] - s.origin) + exp2_approx(z[k + 1] - s.origin);
            s.sum += sum;
        });
        return s;
    }

    /* As if no element had the label. */
    DEVICE piece gradient(const cross_entropy_params &p, const row_gradient &g, const piece &x) const {
        float d[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) d[k] = gradient_at(p, g, x.get(k), p.spread);
        piece y = held_of<T>(d);
#pragma unroll
        for (uint32_t &word : y.word) word = g.ignored ? 0 : word;
        return y;
    }
};

/* A row in one block. */
struct one_block {
    static DEVICE int size() { return 1; }
    static DEVICE int rank() { return 0; }
    static DEVICE void begin() {}
    static DEVICE logit_sums all(const logit_sums &s) { return s; }
};

template <class T, bool WHOLE, class Blocks> DEVICE void cross_entropy_parts(const cross_entropy_parts_params &q) {
    constexpr int G = CROSS_ENTROPY_THREADS;
    const cross_entropy_params &p = q.rows;
    const int64_t row = block_index() / Blocks::size();
    const int first = Blocks::rank() * q.part, rest = (int)p.v - first;
    const row_part<T, WHOLE> part = { rest < q.part ? rest : q.part };
    const typename T::bits *const from = row_at<T>(p.logits, row) + first;
    part.each([&](int i) { part.ask(from, i); });
    copy_commit();
    Blocks::begin();
    const int64_t label = load_integer(p.labels.data, p.long_labels, row), distance = label - first;
    const int here = distance >= 0 && distance < part.n ? (int)distance : -1;
    const bool mine = part.mine(here), finishes = is_class(p, label) ? mine : Blocks::rank() == 0 && thread_index() == 0;
    copy_wait<0>();
    const float at_label = mine ? T::get(part.memory()[here]) : 0.0f;
    const logit_sums own = part.sums(p);
    const float origin = group_max<G>(own.origin);
    const two sums = group_sum<G>(two{ moved_sum(own, origin), own.total });
    const logit_sums s = Blocks::all({ origin, sums.a, sums.b });
    if (finishes) loss_store(p, row, label, at_label, s);
    const row_gradient g = gradient_of(p, row, label, (float)lse_of(s));
    typename T::bits *const to = row_at<T>(p.dlogits, row) + first;
    part.each([&](int i) { part.put(to, i, part.gradient(p, g, part.get(i))); });
    if (mine && !g.ignored) *(volatile typename T::bits *)(to + here) = T::put(gradient_at(p, g, at_label, p.at_label)); /* after its piece */
}

#endif
