/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode by the tensor cores of sm_80: bf16 and f16, up to 128 columns, keys and values of any type of cache.
 *
 * A block is a sequence, a head of keys, a part of the keys, and up to 16 of the query heads and tokens that share
 * them. Its four warps take keys in turn, as those of attention_decode.h; where a key's page is they read in a list
 * that the block makes first. Sums are left for the launch that merges parts.
 *
 * What a row must not see is hidden in its scores, but a weight of 0 still meets the value, and 0 times NaN or Inf is
 * NaN: such rows are done again, one by one. */
#ifndef TRINE_CUDA_ATTENTION_PAGES_H
#define TRINE_CUDA_ATTENTION_PAGES_H

#include "attention_decode_products.h"
#include "attention_pages_rows.h"

/* 8 elements of a row, one by one; zeros beyond the last column. */
template <class C> DEVICE_CALLED cache_unit<C> pages_read_each(const typename C::bits *row, int column, int columns) {
    cache_unit<C> raw = {};
    load_bits(raw.v, row, lane{ column, columns, false });
    return raw;
}

/* 8 elements of a row as pairs of T; zeros if it is not there, and beyond the last column. */
template <class T, class C, bool WIDE>
DEVICE void pages_read(uint32_t (&x)[4], const typename C::bits *row, int column, int columns, bool there) {
    if constexpr (WIDE && sizeof(typename C::bits) == 2) {
        attention_decode_read<T, true>(x, row, column, columns, there);
    } else {
        cache_unit<C> raw = {};
        if (WIDE && there && column < columns) raw = *(const cache_unit<C> *)(row + column);
        if (!WIDE && there) raw = pages_read_each<C>(row, column, columns);
        if constexpr (sizeof raw == sizeof x) {
            __builtin_memcpy(x, &raw, sizeof x);
        } else {
            float y[VECTOR];
            cache_get(y, raw, C());
#pragma unroll
            for (int i = 0; i < 4; i++) x[i] = T::pair(y[2 * i], y[2 * i + 1]);
        }
    }
}

template <class T, class C, int D, int KEYS> struct pages_warp : attention_decode_products<T, D, KEYS> {
    using Bits = typename C::bits;

    /* Keys of the part from `first` on whose page is not there. */
    static DEVICE void hide_absent(float (&s)[KEYS / 2], const int64_t *key_at) {
        if (!any_of_warp(key_at[thread_index() % KEYS] == DECODE_ABSENT)) return;
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++)
            if (key_at[i / 4 * 8 + thread_index() % 4 * 2 + i % 2] == DECODE_ABSENT) s[i] = -infinity();
    }

    template <bool WIDE> DEVICE void read_queries(const decode_params &p, const decode_place &at) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const pages_row row(p, at, thread_index() % WARP / 4 + r * 8);
            const typename T::bits *const from = (const typename T::bits *)p.q.data + row.query(p, at);
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                pages_read<T, T, WIDE>(this->q[i][r], from, this->key_column(i), p.d, row.exists);
        }
    }
    template <bool WIDE> DEVICE void read_keys(const decode_params &p, const int64_t *key_at) {
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++) {
            const int64_t from = key_at[this->key_of(i)];
            const bool there = from != DECODE_ABSENT;
#pragma unroll
            for (int j = 0; j < D / 32; j++)
                pages_read<T, C, WIDE>(this->k[i][j], (const Bits *)p.k.data + (there ? from : 0), this->key_column(j),
                                       p.d, there);
        }
    }
    template <bool WIDE> DEVICE void read_values(const decode_params &p, const int64_t *value_at) {
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int64_t from = value_at[this->value_of(i, e)];
                const bool there = from != DECODE_ABSENT;
#pragma unroll
                for (int j = 0; j < D / 64; j++)
                    pages_read<T, C, WIDE>(this->v[i][j][e], (const Bits *)p.v.data + (there ? from : 0),
                                           this->value_column(j), p.dv, there);
            }
    }

    /* Keys `first` to `end` of the part, a step in so many; `all`: those that all rows see. */
    template <bool WIDE>
    DEVICE void run(const decode_params &p, const decode_place &at, const pages_list &list, int first, int end,
                    int step, const attention_sight &all, const pages_scale &scale) {
        if (first >= end) return;
        read_keys<WIDE>(p, list.key + first);
        read_values<WIDE>(p, list.value + first);
        read_queries<WIDE>(p, at);
#pragma unroll 1
        for (int key = first; key < end; key += step) {
            float s[KEYS / 2], before[2];
            this->scores(s);
            if (key + step < end) read_keys<WIDE>(p, list.key + key + step);
#pragma unroll
            for (int i = 0; i < KEYS / 2; i++) s[i] = scale.score(s[i]);
            hide_absent(s, list.key + key);
            if (key < all.low || key + KEYS > all.high) attention_hide(s, this->rows, key);
            attention_soften(s, this->rows, before, 1.0f);
            attention_scale(this->o, before);
            this->add_values(s);
            if (key + step < end) read_values<WIDE>(p, list.value + key + step);
        }
    }
};

template <class T, class C, int D, int KEYS> DEVICE void attention_pages(const decode_params &p) {
    enum { WARPS = ATTENTION_PAGES_THREADS / WARP, STEP = WARPS * KEYS, RECORD = ATTENTION_DECODE_RECORD(D) };
    union memory {
        int64_t list[2][ATTENTION_PAGES_PART];
        float sums[WARPS][ATTENTION_PAGES_ROWS][RECORD];
    };
    memory &m = *(memory *)launch_memory();
    static_assert(sizeof m <= ATTENTION_PAGES_BYTES(D), "what the host asks for");
    const decode_place at(p);
    const pages_part part(p, at);
    if (part.first >= part.end) return;
    const pages_list list = { m.list[0], m.list[1] };
    list.fill(p, at, part, ATTENTION_PAGES_THREADS);
    sync_block();
    const pages_scale scale(p, at);
    pages_warp<T, C, D, KEYS> mine;
#pragma unroll
    for (int r = 0; r < 2; r++)
        mine.rows.sees[r] = part.sees(p, at, pages_row(p, at, thread_index() % WARP / 4 + r * 8));
    const attention_sight all = {
        group_combine<WARP>(greater(mine.rows.sees[0].low, mine.rows.sees[1].low), attention_most()),
        group_combine<WARP>(lesser(mine.rows.sees[0].high, mine.rows.sees[1].high), attention_least())
    };
    const int first = part.first / STEP * STEP + thread_index() / WARP * KEYS;
    if (p.wide)
        mine.template run<true>(p, at, list, first, part.end, STEP, all, scale);
    else
        mine.template run<false>(p, at, list, first, part.end, STEP, all, scale);
    sync_block();
    mine.put(m.sums[thread_index() / WARP][0], RECORD);
    sync_block();
    const bool hides = all.low > part.first || all.high < part.end;
#pragma unroll 1
    for (int i = thread_index() / WARP; i < ATTENTION_PAGES_ROWS; i += WARPS) {
        const pages_row row(p, at, i);
        if (row.exists)
            pages_sums<D>(m.sums[0][i], WARPS, ATTENTION_PAGES_ROWS * RECORD)
                .template put<T, C>(p, at, part, row, hides, scale);
    }
}

#endif
