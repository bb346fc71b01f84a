/* SPDX-License-Identifier: Apache-2.0 */
/* What the device code of attention by lists and of its gradient is made of: tiles of 64 rows and 64 keys that are
 * gathered by the lists, and their products, for blocks of 256 threads: thread t has rows t/16*4 to t/16*4+3 and keys
 * t%16*4 to t%16*4+3. */
#include "lists.h"
#include "backends/simt/core/math.h"

enum {
    LISTS_PITCH = LISTS_SIDE + 4,
    LISTS_DEPTH = 32, /* columns of a slice */
    LISTS_BUFFER = 2 * LISTS_DEPTH * LISTS_PITCH,
    LISTS_WEIGHTS = LISTS_SIDE * LISTS_PITCH,
    LISTS_NOWHERE = INT32_MAX /* a key that is not there, and which so no row sees */
};
static_assert((int)LISTS_BUFFER >= LISTS_SIDE * 64, "values of a tile fit as well");

struct least_and_most {
    int32_t least, most;
    DEVICE friend least_and_most operator+(least_and_most x, least_and_most y) {
        return { x.least < y.least ? x.least : y.least, x.most > y.most ? x.most : y.most };
    }
};

/* A tile's rows, and the last key that each may see; and its keys. Where they are in a head, or LISTS_ABSENT. */
#define LISTS_ABSENT INT64_MIN
struct lists_lines {
    int64_t q_at[LISTS_SIDE], dout_at[LISTS_SIDE], k_at[LISTS_SIDE], v_at[LISTS_SIDE];
    int32_t query[LISTS_SIDE], head[LISTS_SIDE], limit[LISTS_SIDE], key[LISTS_SIDE], entry[LISTS_SIDE];
    float bias[LISTS_SIDE]; /* of a key, or in the gradient of keys of a row */

    /* Row t is query i of a head, or none. */
    DEVICE void set_row(const lists_params &p, int t, bool there, int64_t n, int32_t i, int32_t in_head) {
        query[t] = there ? i : -1, head[t] = in_head;
        limit[t] = -1;
        if (there) limit[t] = p.causal && i + p.sk - p.sq < p.sk - 1 ? i + p.sk - p.sq : p.sk - 1;
        q_at[t] = there ? n * p.q.batch + i * p.q.token + in_head * p.q.head : LISTS_ABSENT;
        dout_at[t] = there ? n * p.dout.batch + i * p.dout.token + in_head * p.dout.head : LISTS_ABSENT;
    }
    DEVICE void set_key(const lists_params &p, int t, int32_t j) {
        key[t] = j;
        k_at[t] = j != LISTS_NOWHERE ? j * p.k.token : LISTS_ABSENT;
        v_at[t] = j != LISTS_NOWHERE ? j * p.v.token : LISTS_ABSENT;
    }
};

DEVICE int lists_down() { return thread_index() / 16 * 4; }
DEVICE int lists_across() { return thread_index() % 16 * 4; }

/* A list: entries [first, last); bad ones are empty. */
struct lists_span {
    int32_t first, last;
    bool bad;
    DEVICE lists_span(const lists_params &p, int64_t n, int32_t l, int32_t r) : first(0), last(0), bad(false) {
        if (r >= p.blocks) return;
        const int32_t *const at = (const int32_t *)p.starts.data + n * p.starts.batch + l * p.starts.head + r;
        first = at[0], last = at[1];
        bad = first < 0 || last < first || last > p.entries;
        if (bad) first = last = 0;
    }
};

/* The first key of an entry's block; LISTS_NOWHERE if it is none. */
DEVICE int32_t lists_first_key(const lists_params &p, int64_t n, int32_t l, int32_t e) {
    const int32_t block = ((const int32_t *)p.indices.data)[n * p.indices.batch + l * p.indices.head + e];
    return block >= 0 && block < p.key_blocks ? block * p.key_block : (int32_t)LISTS_NOWHERE;
}

DEVICE float lists_bias(const lists_params &p, int64_t n, int32_t l, int32_t e) {
    return p.bias.data ? ((const float *)p.bias.data)[n * p.bias.batch + l * p.bias.head + e] : 0.0f;
}

/* Rows from number `first` on of list r, by the threads that have one each. */
DEVICE void lists_rows_of(const lists_params &p, lists_lines &lines, int64_t n, int32_t bundle, int32_t r,
                          int64_t first) {
    const int t = thread_index();
    if (t >= LISTS_SIDE) return;
    const int64_t in_list = (first + t) / p.bundle, i = (int64_t)r * p.query_block + in_list;
    lines.set_row(p, t, in_list < p.query_block && i < p.sq, n, (int32_t)i,
                  bundle * p.bundle + (int32_t)(first + t - in_list * p.bundle));
}

/* Keys number `first` on of a list, likewise: place `at` of entry e is key at of its block. */
DEVICE void lists_keys_of(const lists_params &p, lists_lines &lines, int64_t n, int32_t l, const lists_span &span,
                          int64_t first) {
    const int t = thread_index();
    if (t >= LISTS_SIDE) return;
    const int64_t number = first + t, before = number / p.key_block;
    int32_t key = LISTS_NOWHERE, e = -1;
    float bias = 0;
    if (before < span.last - span.first) {
        e = span.first + (int32_t)before;
        const int32_t start = lists_first_key(p, n, l, e);
        if (start != LISTS_NOWHERE) {
            const int64_t at = start + (number - before * p.key_block);
            if (at < p.sk) key = (int32_t)at;
        }
        bias = lists_bias(p, n, l, e);
    }
    lines.set_key(p, t, key);
    lines.entry[t] = e, lines.bias[t] = bias;
}

/* The least and the largest of the keys that are there. */
template <int THREADS = SIMT_THREADS> DEVICE least_and_most lists_extent(const int32_t (&of)[LISTS_SIDE]) {
    const int32_t x = of[thread_index() % LISTS_SIDE];
    return group_sum<THREADS>(least_and_most{ x, x });
}

/* Elements of the call's type, which is told at run time: there is little of it beside products. */
DEVICE float lists_load(const lists_params &p, const void *data, int64_t at) {
    return p.type == LISTS_F32    ? load_one<f32>(data, at)
           : p.type == LISTS_BF16 ? load_one<bf16>(data, at)
                                  : load_one<f16>(data, at);
}
DEVICE void lists_store(const lists_params &p, void *data, int64_t at, float x) {
    if (p.type == LISTS_F32)
        store_one<f32>(data, at, x);
    else if (p.type == LISTS_BF16)
        store_one<bf16>(data, at, x);
    else
        store_one<f16>(data, at, x);
}

/* Rows of a head that begins at element `from`, by their places in it; those that are absent are 0. */
struct lists_values {
    const lists_params &p;
    const void *data;
    int64_t from;
    const int64_t *at;
    DEVICE float get(int lane, int column) const {
        return at[lane] != LISTS_ABSENT && column < p.d ? lists_load(p, data, from + at[lane] + column) : 0.0f;
    }
};

/* What the tile's products are of. */
struct lists_operands {
    const lists_values q, dout, k, v;
    DEVICE lists_operands(const lists_params &p, const lists_lines &lines, int64_t n, int32_t g)
        : q{ p, p.q.data, 0, lines.q_at }, dout{ p, p.dout.data, 0, lines.dout_at },
          k{ p, p.k.data, n * p.k.batch + g * p.k.head, lines.k_at },
          v{ p, p.v.data, n * p.v.batch + g * p.v.head, lines.v_at } {}
};

/* sum[i][j] += x_i . y_j over all columns. */
template <class X, class Y>
DEVICE void lists_product(float (&sum)[4][4], const X &x, const Y &y, int columns, float *buffer) {
    float *const left = buffer, *const right = buffer + LISTS_DEPTH * LISTS_PITCH;
    const int thread = thread_index(), down = lists_down(), across = lists_across(), column = thread % LISTS_DEPTH;
#pragma unroll 1
    for (int c = 0; c < columns; c += LISTS_DEPTH) {
        sync_block();
#pragma unroll
        for (int lane = thread / LISTS_DEPTH; lane < LISTS_SIDE; lane += SIMT_THREADS / LISTS_DEPTH) {
            left[column * LISTS_PITCH + lane] = x.get(lane, c + column);
            right[column * LISTS_PITCH + lane] = y.get(lane, c + column);
        }
        sync_block();
#pragma unroll 4
        for (int k = 0; k < LISTS_DEPTH; k++) {
            const packed<float, 4> a = *(const packed<float, 4> *)(left + k * LISTS_PITCH + down);
            const packed<float, 4> b = *(const packed<float, 4> *)(right + k * LISTS_PITCH + across);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] = fused(a.v[i], b.v[j], sum[i][j]);
        }
    }
}

/* A tile of weights for lists_gather(): its sums run over the keys if they are TURNED, over the rows otherwise. */
template <bool TURNED> DEVICE void lists_put(float *weights, const float (&w)[4][4]) {
    const int down = lists_down(), across = lists_across();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        packed<float, 4> four;
#pragma unroll
        for (int j = 0; j < 4; j++) four.v[j] = TURNED ? w[j][i] : w[i][j];
        *(packed<float, 4> *)(weights + (TURNED ? across + i : down + i) * LISTS_PITCH + (TURNED ? down : across)) =
            four;
    }
}

/* sum[c][i][j] += sum over the 64 lanes k of weight and value, those alone with sees(i, k): a weight of 0 must not meet
 * a NaN. `whole`: it is so of all. */
template <int D, class V, class Sees>
DEVICE void lists_gather(float (&sum)[D / 64][4][4], const float *weights, const V &values, bool whole,
                         const Sees &sees, float *buffer) {
    const int down = lists_down(), across = lists_across();
#pragma unroll
    for (int c = 0; c < D / 64; c++) {
        sync_block();
#pragma unroll 4
        for (int i = thread_index(); i < LISTS_SIDE * 64; i += SIMT_THREADS)
            buffer[i] = values.get(i / 64, c * 64 + i % 64);
        sync_block();
#pragma unroll 2
        for (int k = 0; k < LISTS_SIDE; k++) {
            const packed<float, 4> a = *(const packed<float, 4> *)(weights + k * LISTS_PITCH + down);
            const packed<float, 4> b = *(const packed<float, 4> *)(buffer + k * 64 + across);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const bool seen = whole || sees(i, k);
#pragma unroll
                for (int j = 0; j < 4; j++) sum[c][i][j] = seen ? fused(a.v[i], b.v[j], sum[c][i][j]) : sum[c][i][j];
            }
        }
    }
    sync_block();
}

/* Scores become capped ones, and `slope` has the derivatives. One at a time, in shared memory of the thread's own: the
 * code for all of them would be most of the kernel. */
DEVICE void lists_cap(float (&s)[4][4], float (&slope)[4][4], float softcap, float *memory) {
    float *const own = memory + lists_down() * LISTS_PITCH + lists_across();
#pragma unroll
    for (int i = 0; i < 16; i++) own[i / 4 * LISTS_PITCH + i % 4] = s[i / 4][i % 4];
#pragma unroll 1
    for (int i = 0; i < 16; i++) {
        float &x = own[i / 4 * LISTS_PITCH + i % 4];
        x = tanh_of(x / softcap);
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float t = own[i / 4 * LISTS_PITCH + i % 4];
        s[i / 4][i % 4] = softcap * t, slope[i / 4][i % 4] = fused(-t, t, 1.0f);
    }
    sync_block(); /* weights may go there now */
}
