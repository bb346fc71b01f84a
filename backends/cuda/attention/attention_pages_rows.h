/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, parts and lists of keys of the kernels of attention_decode by tensor cores. */
#ifndef TRINE_CUDA_ATTENTION_PAGES_ROWS_H
#define TRINE_CUDA_ATTENTION_PAGES_ROWS_H

#include "attention_pages_host.h"
#include "attention_rows.h"
#include "backends/simt/attention/attention_decode_parts.h"

/* Row r of a block's; of one that is not there its first. */
struct pages_row {
    int number, token, head; /* number: among those of the head of keys */
    bool exists;
    DEVICE pages_row(const decode_params &p, const decode_place &at, int r, int rows = ATTENTION_PAGES_ROWS) {
        const int all = at.row * rows + r;
        exists = all < p.rows, number = exists ? all : at.row * rows, token = number / p.group,
        head = at.head * p.group + number - token * p.group;
    }
    DEVICE int64_t query(const decode_params &p, const decode_place &at) const {
        return at.batch * p.q.outer + token * p.q.middle + head * p.q.inner;
    }
};

/* The block's keys, counted from the first of its part: those that any row may see. */
struct pages_part {
    int64_t start;
    int first, end;
    DEVICE pages_part(const decode_params &p, const decode_place &at) : start(at.part * p.part) {
        first = inside(p, decode_sight(p, at.length, 0).first);
        end = inside(p, decode_sight(p, at.length, p.sq - 1).last);
    }
    DEVICE int inside(const decode_params &p, int64_t key) const {
        return key < start ? 0 : key - start < p.part ? (int)(key - start) : p.part;
    }
    DEVICE attention_sight sees(const decode_params &p, const decode_place &at, const pages_row &row) const {
        const decode_sight s(p, at.length, row.token);
        return { inside(p, s.first), inside(p, s.last) };
    }
};

/* Where the keys and values of a part are, in shared memory. */
struct pages_list {
    int64_t *key, *value;
    /* To the end of the last step of all warps. */
    DEVICE void fill(const decode_params &p, const decode_place &at, const pages_part &part, int threads) const {
        for (int j = thread_index(); j < p.part; j += threads) {
            const decode_key k(p, at, part.start + j, j >= part.first && j < part.end);
            key[j] = k.key, value[j] = k.value;
        }
    }
};

/* From products to scores in powers of 2. */
struct pages_scale {
    bool bends; /* tanh of the product times `bend` is taken first */
    float factor, bend;
    DEVICE pages_scale(const decode_params &p, const decode_place &at) : bends(p.softcap > 0) {
        const float scaled = p.scale * decode_scale(p.k_scale, p.k_scale_step, at.head);
        factor = (bends ? p.softcap : scaled) * LOG2E, bend = bends ? scaled / p.softcap : 0.0f;
    }
    DEVICE float score(float product) const { return (bends ? attention_tanh(product * bend) : product) * factor; }
};

/* What is known of a row from the keys of a part: its sums, the largest score in powers of 2, and the sum of
 * weights. */
template <int D> struct pages_sums {
    float o[D / WARP], top, sum; /* lane l has columns l, l + 32, ... */

    /* That of `count` records that are so far apart; by a warp. */
    DEVICE pages_sums(const float *parts, int count, int step) : top(-infinity()), sum(0) {
#pragma unroll
        for (int i = 0; i < D / WARP; i++) o[i] = 0;
        for (int n = 0; n < count; n++) top = larger(top, parts[n * step + D]);
        const float base = top == -infinity() ? 0.0f : top;
        for (int n = 0; n < count; n++) {
            const float *const part = parts + n * step;
            const float factor = exp2_approx(part[D] - base);
            sum = fused(part[D + 1], factor, sum);
#pragma unroll
            for (int i = 0; i < D / WARP; i++) o[i] = fused(part[thread_index() % WARP + i * WARP], factor, o[i]);
        }
    }

    DEVICE pages_sums() : top(-infinity()), sum(0) {}

    /* From what the row sees alone, columns of values from `first` on. */
    template <class T, class C>
    DEVICE void redo(const decode_params &p, const decode_place &at, const pages_part &part, const pages_row &row,
                     const pages_scale &scale, int first = 0) {
        const int lane = thread_index() % WARP;
        const typename T::bits *const q = (const typename T::bits *)p.q.data + row.query(p, at);
        const attention_sight sees = part.sees(p, at, row);
        top = -infinity(), sum = 0;
#pragma unroll
        for (int i = 0; i < D / WARP; i++) o[i] = 0;
#pragma unroll 1
        for (int j = sees.low; j < sees.high; j++) {
            const decode_key k(p, at, part.start + j, true);
            if (k.key == DECODE_ABSENT) continue;
            float product = 0;
            for (int c = lane; c < p.d; c += WARP)
                product = fused(T::get(q[c]), load_one<C>(p.k.data, k.key + c), product);
            const float s = scale.score(group_sum<WARP>(product)), now = larger(top, s),
                        base = now == -infinity() ? 0.0f : now, before = exp2_approx(top - base),
                        weight = exp2_approx(s - base);
            top = now, sum = fused(sum, before, weight);
#pragma unroll
            for (int i = 0; i < D / WARP; i++) {
                const int column = first + lane + i * WARP;
                if (column < p.dv) o[i] = fused(weight, load_one<C>(p.v.data, k.value + column), o[i] * before);
            }
        }
    }

    /* Columns from `first` on, by another largest score. */
    DEVICE void store(float *record, int first, int dv, float by) const {
        const float factor = by == top ? 1.0f : exp2_approx(top - by);
#pragma unroll
        for (int i = 0; i < D / WARP; i++) {
            const int column = first + thread_index() % WARP + i * WARP;
            if (column < dv) record[column] = o[i] * factor;
        }
    }

    /* To the row's place in the workspace; done again if it may have met NaN or Inf that it does not see. */
    template <class T, class C>
    DEVICE void put(const decode_params &p, const decode_place &at, const pages_part &part, const pages_row &row,
                    bool hides, const pages_scale &scale) {
        float spoilt = 0;
#pragma unroll
        for (int i = 0; i < D / WARP; i++) spoilt += o[i] * 0.0f;
        if (hides && any_of_warp(spoilt != 0)) redo<T, C>(p, at, part, row, scale);
        float *const to = decode_record(p, at, row.number);
        store(to, 0, p.dv, top);
        if (thread_index() % WARP == 0) to[p.dv] = top, to[p.dv + 1] = sum;
    }
};

#endif
