/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding over a paged cache: written by slots, in either layout, it is read as it was written; and a sequence's
 * result has the same bits alone and in any batch, with any number of threads. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { B = 3, SQ = 2, H = 8, HK = 2, D = 32, PAGE = 16, COLUMNS = 48, PAGES = B * COLUMNS, MOST = COLUMNS * PAGE };
static const int lengths[B] = { MOST, 300, 17 };

static float q[B][SQ][H][D], k[MOST][HK][D], v[MOST][HK][D], k_cache[2][PAGES][HK][PAGE][D],
    v_cache[2][PAGES][HK][PAGE][D];
static int32_t table[B][COLUMNS];
static trine *lib;

static float drawn(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (1 << 23) - 1;
}

static trine_tensor view(void *data, trine_dtype dtype, int rank, const int64_t *shape) {
    trine_tensor t = { .data = data, .dtype = dtype, .rank = rank };
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; step *= t.shape[d--]) t.shape[d] = shape[d], t.stride[d] = step;
    return t;
}

/* pages page hk d: of memory in this order, or heads before places. */
static trine_tensor cache_view(void *data, bool heads_first) {
    trine_tensor t = view(data, TRINE_F32, 4, (const int64_t[]){ PAGES, PAGE, HK, D });
    if (heads_first) t.stride[1] = D, t.stride[2] = PAGE * D;
    return t;
}

static trine_queue *queue_of(int threads) {
    trine_queue *queue;
    assert_ok(trine_queue_open(
        lib, 0, &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .threads = threads }, &queue));
    return queue;
}

/* The keys of each sequence, into both caches. */
static void set_up(void) {
    uint32_t state = 1;
    lib = open_plain("");
    trine_queue *queue = queue_of(1);
    for (size_t i = 0; i < sizeof q / sizeof(float); i++) ((float *)q)[i] = drawn(&state);
    memset(k_cache, 0xff, sizeof k_cache);
    memset(v_cache, 0xff, sizeof v_cache);
    for (int n = 0; n < B; n++) {
        int64_t slots[MOST];
        for (int c = 0; c < COLUMNS; c++) table[n][c] = (n + c * B * 7) % PAGES;
        for (int j = 0; j < MOST; j++) slots[j] = j < lengths[n] ? (int64_t)table[n][j / PAGE] * PAGE + j % PAGE : -1;
        for (size_t i = 0; i < sizeof k / sizeof(float); i++)
            ((float *)k)[i] = drawn(&state), ((float *)v)[i] = drawn(&state);
        const trine_tensor tk = view(k, TRINE_F32, 3, (const int64_t[]){ MOST, HK, D }),
                           tv = view(v, TRINE_F32, 3, (const int64_t[]){ MOST, HK, D }),
                           ts = trine_tensor_1d(slots, TRINE_I64, MOST);
        for (int heads_first = 0; heads_first < 2; heads_first++) {
            const trine_tensor to_k = cache_view(k_cache[heads_first], heads_first),
                               to_v = cache_view(v_cache[heads_first], heads_first);
            assert_ok(trine_kv_cache_write(queue, &(trine_kv_cache_write_args){ TRINE_ARGS(kv_cache_write), .k = &tk,
                                                                                .v = &tv, .slots = &ts,
                                                                                .k_cache = &to_k, .v_cache = &to_v }));
        }
    }
    trine_queue_close(queue);
}

static void tear_down(void) { trine_close(lib); }

/* `count` sequences from `first` on. */
static void decode(int threads, bool heads_first, int first, int count, float *out, float *lse) {
    trine_queue *queue = queue_of(threads);
    int32_t ends[B];
    for (int n = 0; n < B; n++) ends[n] = lengths[n];
    const trine_tensor tq = view(q[first], TRINE_F32, 4, (const int64_t[]){ count, SQ, H, D }),
                       tk = cache_view(k_cache[heads_first], heads_first),
                       tv = cache_view(v_cache[heads_first], heads_first),
                       tt = trine_tensor_2d(table[first], TRINE_I32, count, COLUMNS),
                       tl = trine_tensor_1d(ends + first, TRINE_I32, count),
                       to = view(out, TRINE_F32, 4, (const int64_t[]){ count, SQ, H, D }),
                       te = view(lse, TRINE_F32, 3, (const int64_t[]){ count, H, SQ });
    assert_ok(trine_attention_decode(
        queue, &(trine_attention_decode_args){ TRINE_ARGS(attention_decode), .q = &tq, .k_cache = &tk, .v_cache = &tv,
                                               .block_table = &tt, .lengths = &tl, .out = &to, .lse = &te }));
    trine_queue_close(queue);
}

TestSuite(decode, .init = set_up, .fini = tear_down, .timeout = 60);

Test(decode, alone_and_in_a_batch) {
    static float all[B][SQ][H][D], all_lse[B][H][SQ], one[SQ][H][D], one_lse[H][SQ];
    decode(3, false, 0, B, (float *)all, (float *)all_lse);
    for (int n = 0; n < B; n++)
        for (int threads = 1; threads < 4; threads++)
            for (int heads_first = 0; heads_first < 2; heads_first++) {
                decode(threads, heads_first, n, 1, (float *)one, (float *)one_lse);
                cr_expect(memcmp(one, all[n], sizeof one) == 0, "sequence %d has other bits alone", n);
                cr_expect(memcmp(one_lse, all_lse[n], sizeof one_lse) == 0, "its lse, too: %d", n);
            }
    for (size_t i = 0; i < sizeof all / sizeof(float); i++)
        cr_assert(((float *)all)[i] == ((float *)all)[i], "what no token was written to was read");
}
