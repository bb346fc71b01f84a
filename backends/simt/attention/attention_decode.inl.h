/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode on devices. A block is a sequence, a head of keys, a part of the keys, and of the query heads and
 * tokens that share them R rows. Groups of G threads take KEYS keys at a time, of which each thread has 8 columns, or
 * 3 times 8, in registers, as it has those of the queries and of the sums; only scores are summed across the group.
 * Groups have sums by maxima of their own, which are added at the end in the order of the groups, and parts in a second
 * launch in theirs. So a sequence's result does not depend on its batch.
 *
 * NOTES. Floor: keys and values once; rows beyond R read them again, from the second-level cache. */
#include "attention_decode_parts.h"

DEVICE float decode_query(const decode_params &p, int64_t at) {
    return p.type == DECODE_F32    ? load_one<f32>(p.q.data, at)
           : p.type == DECODE_BF16 ? load_one<bf16>(p.q.data, at)
                                   : load_one<f16>(p.q.data, at);
}

/* A thread's part of a block: U units of 8 columns, every G units, of R rows. */
template <class C, int G, int U, int R> struct decode_thread {
    static constexpr int KEYS = U > 1 ? 1 : R > 4 ? 2 : 4, GROUPS = SIMT_THREADS / G, WIDTH = G * U * VECTOR;
    float q[R][U * VECTOR], o[R][U * VECTOR], top[R], sum[R];
    int low[R], high[R]; /* of the part's keys */

    static DEVICE int member() { return thread_index() % G; }
    static DEVICE int group() { return thread_index() / G; }
    static DEVICE int column(int u) { return (u * G + member()) * VECTOR; }

    DEVICE void begin(const decode_params &p, const decode_place &at) {
        const int64_t start = at.part * p.part;
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int all = at.row * R + r, row = all < p.rows ? all : p.rows - 1, i = row / p.group,
                      head = at.head * p.group + row - i * p.group;
            const int64_t from = at.batch * p.q.outer + i * p.q.middle + head * p.q.inner;
            const decode_sight sees(p, at.length, i);
            const int64_t first = sees.first - start, last = sees.last - start;
            low[r] = first < 0 ? 0 : first < p.part ? (int)first : p.part;
            high[r] = last < 0 ? 0 : last < p.part ? (int)last : p.part;
            top[r] = -infinity(), sum[r] = 0;
#pragma unroll
            for (int c = 0; c < U * VECTOR; c++) {
                const int k = column(c / VECTOR) + c % VECTOR;
                q[r][c] = k < p.d ? decode_query(p, from + k) : 0.0f;
                o[r][c] = 0;
            }
        }
    }

    /* A row of keys or values of `columns` elements; zeros if it is not there. */
    static DEVICE void read(cache_unit<C> (&raw)[U], const decode_tensor &t, int64_t at, int columns) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            const lane mine = { column(u), at == DECODE_ABSENT ? 0 : columns, t.aligned };
            load_bits(raw[u].v, (const typename C::bits *)t.data + (at == DECODE_ABSENT ? 0 : at), mine);
        }
    }

    /* The row's product with a key. */
    DEVICE float dot(int r, const float (&k)[U * VECTOR]) const {
        float sum = 0;
#pragma unroll
        for (int c = 0; c < U * VECTOR; c++) sum = fused(q[r][c], k[c], sum);
#pragma unroll
        for (int mask = G / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
        return sum;
    }

    /* Scores are capped by one thread each; the code for all of them in every thread would be most of the kernel. */
    static DEVICE void cap(float (&s)[R][KEYS], float softcap) {
        SHARED float shared[GROUPS][R * KEYS];
#pragma unroll
        for (int i = 0; i < R * KEYS; i++)
            if (member() == 0) shared[group()][i] = s[i / KEYS][i % KEYS];
        sync_block();
#pragma unroll 1
        for (int i = member(); i < R * KEYS; i += G)
            shared[group()][i] = softcap * tanh_of(shared[group()][i] / softcap) * LOG2E;
        sync_block();
#pragma unroll
        for (int i = 0; i < R * KEYS; i++) s[i / KEYS][i % KEYS] = shared[group()][i];
        sync_block();
    }

    static DEVICE void widen(float (&x)[U * VECTOR], const cache_unit<C> (&raw)[U]) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            float part[VECTOR];
            cache_get(part, raw[u], C());
#pragma unroll
            for (int c = 0; c < VECTOR; c++) x[u * VECTOR + c] = part[c];
        }
    }

    /* KEYS keys, the first of which is number `first` of the part; `there`: bits. */
    DEVICE void step(const cache_unit<C> (&k)[KEYS][U], const cache_unit<C> (&v)[KEYS][U], int first, uint32_t there,
                     float factor, float softcap) {
        float s[R][KEYS];
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            float x[U * VECTOR];
            widen(x, k[j]);
#pragma unroll
            for (int r = 0; r < R; r++) s[r][j] = dot(r, x) * factor;
        }
        if (softcap > 0) cap(s, softcap);
#pragma unroll
        for (int r = 0; r < R; r++) {
            float most = top[r];
#pragma unroll
            for (int j = 0; j < KEYS; j++) {
                const bool sees = (there >> j & 1) && first + j >= low[r] && first + j < high[r];
                if (!sees) s[r][j] = -infinity();
                most = larger(most, s[r][j]);
            }
            const float base = most == -infinity() ? 0.0f : most, before = exp2_approx(top[r] - base);
            top[r] = most;
            sum[r] *= before;
#pragma unroll
            for (int c = 0; c < U * VECTOR; c++) o[r][c] *= before;
#pragma unroll
            for (int j = 0; j < KEYS; j++) {
                s[r][j] = exp2_approx(s[r][j] - base);
                sum[r] += s[r][j];
            }
        }
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            float x[U * VECTOR];
            widen(x, v[j]);
#pragma unroll
            for (int r = 0; r < R; r++) {
                if (first + j < low[r] || first + j >= high[r]) continue;
#pragma unroll
                for (int c = 0; c < U * VECTOR; c++) o[r][c] = fused(s[r][j], x[c], o[r][c]);
            }
        }
    }

    /* Sums of the groups in their order, to the row's place in the workspace. */
    DEVICE void end(const decode_params &p, const decode_place &at) const {
        SHARED float tops[GROUPS][R], sums[GROUPS][R], stage[GROUPS][WIDTH];
        const int thread = thread_index();
#pragma unroll
        for (int r = 0; r < R; r++)
            if (member() == 0) tops[group()][r] = top[r], sums[group()][r] = sum[r];
        sync_block();
#pragma unroll
        for (int r = 0; r < R; r++) {
            float most = -infinity();
            for (int i = 0; i < GROUPS; i++) most = larger(most, tops[i][r]);
            const float base = most == -infinity() ? 0.0f : most, factor = exp2_approx(top[r] - base);
#pragma unroll
            for (int c = 0; c < U * VECTOR; c++) stage[group()][column(c / VECTOR) + c % VECTOR] = o[r][c] * factor;
            sync_block();
            const int row = at.row * R + r;
            float *const to = decode_record(p, at, row);
            for (int c = thread; row < p.rows && c < p.dv; c += SIMT_THREADS) {
                float all = 0;
                for (int i = 0; i < GROUPS; i++) all += stage[i][c];
                to[c] = all;
            }
            if (thread == 0 && row < p.rows) {
                float all = 0;
                for (int i = 0; i < GROUPS; i++) all = fused(sums[i][r], exp2_approx(tops[i][r] - base), all);
                to[p.dv] = most, to[p.dv + 1] = all;
            }
            sync_block();
        }
    }
};

template <class C, int G, int U, int R> DEVICE void attention_decode_part(const decode_params &p) {
    using thread = decode_thread<C, G, U, R>;
    SHARED int64_t k_at[SIMT_THREADS], v_at[SIMT_THREADS];
    const decode_place at(p);
    const int64_t start = at.part * p.part, first = decode_sight(p, at.length, 0).first,
                  last = decode_sight(p, at.length, p.sq - 1).last, end = last < start + p.part ? last : start + p.part;
    if (start >= last || end <= first) return;
    const float scaled = p.scale * decode_scale(p.k_scale, p.k_scale_step, at.head),
                factor = p.softcap > 0 ? scaled : scaled * LOG2E;
    thread t;
    t.begin(p, at);
#pragma unroll 1
    for (int64_t chunk = start; chunk < end; chunk += SIMT_THREADS) {
        const int64_t j = chunk + thread_index();
        const decode_key mine(p, at, j, j >= first && j < end);
        sync_block();
        k_at[thread_index()] = mine.key, v_at[thread_index()] = mine.value;
        sync_block();
        const int count = end - chunk < SIMT_THREADS ? (int)(end - chunk) : SIMT_THREADS;
#pragma unroll 1
        for (int number = 0; number < count; number += thread::GROUPS * thread::KEYS) {
            const int here = number + thread::group() * thread::KEYS;
            cache_unit<C> keys[thread::KEYS][U], values[thread::KEYS][U];
            uint32_t there = 0;
#pragma unroll
            for (int i = 0; i < thread::KEYS; i++) {
                const int64_t key = k_at[here + i];
                there |= (uint32_t)(key != DECODE_ABSENT) << i;
                thread::read(keys[i], p.k, key, p.d);
                if (!p.latent) thread::read(values[i], p.v, v_at[here + i], p.dv);
            }
#pragma unroll
            for (int i = 0; i < thread::KEYS; i++)
#pragma unroll
                for (int u = 0; u < U; u++)
                    if (p.latent) values[i][u] = keys[i][u];
            t.step(keys, values, (int)(chunk - start) + here, there, factor, p.softcap);
        }
    }
    t.end(p, at);
}

/* A block for each row of a problem: its parts in their order, and its sink. */
template <class T> DEVICE void attention_decode_merge(const decode_params &p) {
    const int64_t problem = block_index() / p.rows, batch = problem / p.hk,
                  length = decode_place::decode_length(p, batch);
    const int row = (int)(block_index() - problem * p.rows), head_of_keys = (int)(problem - batch * p.hk),
              i = row / p.group, head = head_of_keys * p.group + row - i * p.group;
    const int64_t last = decode_sight(p, length, p.sq - 1).last, begin = decode_sight(p, length, 0).first / p.part,
                  end = (last + p.part - 1) / p.part, step = (int64_t)p.rows * (p.dv + 2);
    const float *const from = p.partial + (problem * p.parts * p.rows + row) * (p.dv + 2);
    float sink = -infinity();
    if (p.sinks) sink = (p.wide_sinks ? load_one<f32>(p.sinks, head) : load_one<T>(p.sinks, head)) * LOG2E;
    float top = sink;
#pragma unroll 8
    for (int64_t part = begin; part < end; part++) top = larger(top, from[part * step + p.dv]);
    const float base = top == -infinity() ? 0.0f : top;
    float sum = p.sinks ? exp2_approx(sink - base) : 0.0f;
#pragma unroll 8
    for (int64_t part = begin; part < end; part++)
        sum = fused(from[part * step + p.dv + 1], exp2_approx(from[part * step + p.dv] - base), sum);
    const bool none = sum == 0;
    const float scale = decode_scale(p.v_scale, p.v_scale_step, head_of_keys);
    for (int c = thread_index(); c < p.dv; c += SIMT_THREADS) {
        float o = 0;
#pragma unroll 8
        for (int64_t part = begin; part < end; part++)
            o = fused(from[part * step + c], exp2_approx(from[part * step + p.dv] - base), o);
        store_one<T>(p.out.data, batch * p.out.outer + i * p.out.middle + head * p.out.inner + c,
                     none ? 0.0f : o / sum * scale);
    }
    if (p.lse.data && thread_index() == 0)
        ((float *)p.lse.data)[batch * p.lse.outer + head * p.lse.middle + i * p.lse.inner] =
            none ? -infinity() : fused(base, LN2, log_of(sum));
}

ENTRY(attention_decode_merge_f32, SIMT_THREADS, decode_params) { attention_decode_merge<f32>(p); }
ENTRY(attention_decode_merge_bf16, SIMT_THREADS, decode_params) { attention_decode_merge<bf16>(p); }
ENTRY(attention_decode_merge_f16, SIMT_THREADS, decode_params) { attention_decode_merge<f16>(p); }

#define DECODE_PART(name, C, width, G, U, R) \
    ENTRY(attention_decode_##name##_##C##_##width, SIMT_THREADS, decode_params) { \
        attention_decode_part<C, G, U, R>(p); \
    }
#define DECODE_PARTS(C) \
    DECODE_PART(eight, C, 64, 8, 1, 8) \
    DECODE_PART(four, C, 128, 16, 1, 4) \
    DECODE_PART(eight, C, 128, 16, 1, 8) \
    DECODE_PART(four, C, 256, 32, 1, 4) \
    DECODE_PART(four, C, 768, 32, 3, 4)
DECODE_PARTS(f32)
DECODE_PARTS(bf16)
DECODE_PARTS(f16)
DECODE_PARTS(e4m3)
DECODE_PARTS(i8)
