/* SPDX-License-Identifier: Apache-2.0 */
/* attention_merge on devices: a thread has a unit of a row, and the weights of both states to itself.
 *
 * NOTES. Floor: both states once; each lse is read by all threads of its row, from the first-level cache. Where lse is
 * lse_a or lse_b, threads of a row would read what another has written: a row's lse is written by a launch of its
 * own. */
#include "attention_merge.h"
#include "backends/simt/core/math.h"

/* The weights of both states, which add up to 1, and the lse of the row. */
struct merge_weights {
    float a, b, lse;
    DEVICE merge_weights(float x, float y) {
        const float top = x > y ? x : y, base = top == -infinity() ? 0.0f : top, p = exp_of(x - base),
                    q = exp_of(y - base), sum = p + q;
        a = p / sum, b = q / sum, lse = base + log_of(sum);
    }
};

DEVICE float merge_lse_of(const merge_tensor &t, int64_t n, int64_t i, int64_t head) {
    return ((const float *)t.data)[n * t.batch + i * t.token + head * t.head];
}
DEVICE int64_t merge_row_of(const merge_tensor &t, int64_t n, int64_t i, int64_t head) {
    return n * t.batch + i * t.token + head * t.head;
}

/* Where unit `number` of all is. */
template <class Integer> struct merge_place {
    int64_t batch, token, head, at;
    DEVICE merge_place(const attention_merge_params &p, Integer number) {
        const Integer row = quotient(number, p.row_units), i = quotient(row, p.heads), n = quotient(i, p.tokens);
        at = (int64_t)(number - row * (Integer)p.row_units.by), head = (int64_t)(row - i * (Integer)p.heads.by);
        token = (int64_t)(i - n * (Integer)p.tokens.by), batch = (int64_t)n;
    }
};

template <class S, class T, int N, class Integer>
DEVICE void merge_unit(const attention_merge_params &p, Integer number) {
    const merge_place<Integer> at(p, number);
    const float x = merge_lse_of(p.lse_a, at.batch, at.token, at.head),
                y = merge_lse_of(p.lse_b, at.batch, at.token, at.head);
    const merge_weights w(x, y);
    float a[N], b[N];
    load_vector<S>(a, (const typename S::bits *)p.out_a.data + merge_row_of(p.out_a, at.batch, at.token, at.head) +
                          at.at * N);
    load_vector<S>(b, (const typename S::bits *)p.out_b.data + merge_row_of(p.out_b, at.batch, at.token, at.head) +
                          at.at * N);
#pragma unroll
    for (int k = 0; k < N; k++)
        a[k] = (x == -infinity() ? 0.0f : product(w.a, a[k])) + (y == -infinity() ? 0.0f : product(w.b, b[k]));
    store_vector<T>(a, (typename T::bits *)p.out.data + merge_row_of(p.out, at.batch, at.token, at.head) + at.at * N);
}

template <class S, class T, int N> DEVICE void attention_merge(const attention_merge_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    if (divides_fast(p.units))
        merge_unit<S, T, N>(p, (uint32_t)number);
    else
        merge_unit<S, T, N>(p, (uint64_t)number);
}

/* A thread has a row. */
ENTRY(attention_merge_lse, SIMT_THREADS, attention_merge_params) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    const merge_place<uint64_t> at(p, (uint64_t)number);
    const merge_weights w(merge_lse_of(p.lse_a, at.batch, at.token, at.head),
                          merge_lse_of(p.lse_b, at.batch, at.token, at.head));
    ((float *)p.lse.data)[merge_row_of(p.lse, at.batch, at.token, at.head)] = w.lse;
}

#define MERGE_TYPES(S, T) \
    ENTRY(attention_merge_##S##_##T##_1, SIMT_THREADS, attention_merge_params) { attention_merge<S, T, 1>(p); } \
    ENTRY(attention_merge_##S##_##T##_8, SIMT_THREADS, attention_merge_params) { attention_merge<S, T, 8>(p); }
MERGE_TYPES(f32, f32)
MERGE_TYPES(f32, bf16)
MERGE_TYPES(f32, f16)
MERGE_TYPES(bf16, bf16)
MERGE_TYPES(f16, f16)
