/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of calls: the same bits as the calls one after the other, of tensors of all sizes and types that begin
 * anywhere, at once and from a graph. */
#ifndef TRINE_TESTS_LISTS_H
#define TRINE_TESTS_LISTS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trine/trine.h>

enum { LISTS_CALLS = 150, LISTS_ARENA = 24 << 20, LISTS_SHARED = 256 };

typedef struct lists {
    trine_queue *queue;
    uint64_t random;
    size_t used;
    int64_t large;  /* elements of the largest tensors */
    char *memory;   /* of the device; all tensors are in it */
    char *at_first; /* its contents before a run, */
    char *expected; /* after the calls one after the other */
    char *found;    /* and after a list */
    trine_tensor tensor[LISTS_CALLS][9];
    trine_tensor shared[4]; /* that several calls read */
    union {
        trine_adamw_args adamw[LISTS_CALLS];
        trine_global_norm_clip_args clip[LISTS_CALLS];
        trine_chain_args chain[LISTS_CALLS];
    };
    const void *args[LISTS_CALLS];
    int count;
} lists;

static inline uint32_t lists_draw(lists *l, uint32_t below) {
    l->random = l->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(l->random >> 33) % below;
}

static inline int64_t lists_size(lists *l) {
    static const int64_t sizes[] = { 0, 1, 2, 3, 4, 5, 31, 64, 1000, 1023, 1024, 1025, 4097, 16383, 16384, 16385 };
    const uint32_t kind = lists_draw(l, 24);
    return kind < 16 ? sizes[kind] : kind == 16 ? l->large : lists_draw(l, 3000);
}

/* A vector of the arena, one element off an aligned place now and then, with values around 1, or above 0. */
static inline trine_tensor lists_vector(lists *l, trine_dtype dtype, int64_t n, bool positive) {
    const size_t size = trine_dtype_size(dtype);
    l->used = (l->used + 255) / 256 * 256 + (lists_draw(l, 4) == 0 ? size : 0);
    const trine_tensor t = trine_tensor_1d(l->memory + l->used, dtype, n);
    for (int64_t i = 0; i < n; i++, l->used += size) {
        const uint32_t sign = positive ? 0 : lists_draw(l, 2), bits = lists_draw(l, 1 << 23);
        const uint32_t word = dtype == TRINE_F16    ? sign << 15 | 0x3800 | bits >> 13
                              : dtype == TRINE_BF16 ? (sign << 31 | 0x3f000000 | bits) >> 16
                                                    : sign << 31 | 0x3f000000 | bits;
        const double wide = 0.5 + bits * 0x1p-24;
        const int64_t step = 1 + bits % 100;
        memcpy(l->at_first + l->used,
               dtype == TRINE_F64   ? (const void *)&wide
               : dtype == TRINE_I64 ? (const void *)&step
                                    : (const void *)&word,
               size);
    }
    return t;
}

static inline trine_dtype lists_float(lists *l) {
    static const trine_dtype types[] = { TRINE_F32, TRINE_BF16, TRINE_F16 };
    return types[lists_draw(l, 3)];
}

static inline void lists_begin(lists *l, uint64_t seed) {
    l->random = seed;
    l->used = 0;
    l->count = 0;
    for (int i = 0; i < 3; i++) l->shared[i] = lists_vector(l, TRINE_F32, 1, true);
    l->shared[3] = lists_vector(l, TRINE_I64, 1, true);
}

static inline bool lists_has_room(const lists *l) {
    return l->count < LISTS_CALLS && l->used + 40 * (size_t)(l->large > 16385 ? l->large : 16385) < LISTS_ARENA;
}

/* Steps of three groups of parameters, of which one reads its scalars from tensors. */
static inline void lists_add_adamw(lists *l) {
    const int64_t n = lists_size(l);
    trine_tensor *t = l->tensor[l->count];
    const trine_dtype state = lists_draw(l, 2) ? TRINE_F32 : TRINE_BF16;
    const uint32_t group = lists_draw(l, 3), options = lists_draw(l, 8);
    t[0] = lists_vector(l, lists_float(l), n, false);
    t[1] = lists_vector(l, lists_float(l), n, false);
    t[2] = lists_vector(l, state, n, false);
    t[3] = lists_vector(l, state, n, true);
    t[4] = lists_vector(l, lists_draw(l, 2) ? TRINE_BF16 : TRINE_F16, n, false);
    l->adamw[l->count] = (trine_adamw_args){
        TRINE_ARGS(adamw),
        .param = &t[0],
        .grad = &t[1],
        .m = &t[2],
        .v = &t[3],
        .copy = options & 1 ? &t[4] : NULL,
        .grad_scale = options & 2 ? &l->shared[0] : NULL,
        .found_inf = options & 4 ? &l->shared[1] : NULL,
        .lr_tensor = group == 2 ? &l->shared[2] : NULL,
        .step_tensor = group == 2 ? &l->shared[3] : NULL,
        .lr = group == 2 ? 0 : 0.01f,
        .weight_decay = group == 1 ? 0.1f : 0,
        .step = group == 2 ? 0 : 3,
        .seed = (uint64_t)group,
        .stream = (uint64_t)l->count,
        .stochastic = group > 0,
    };
    l->args[l->count] = &l->adamw[l->count];
    l->count++;
}

static inline void lists_add_clip(lists *l) {
    const int64_t n = lists_size(l);
    trine_tensor *t = l->tensor[l->count];
    const trine_dtype type = lists_float(l), squares = lists_draw(l, 2) ? TRINE_F32 : TRINE_F64;
    const uint32_t options = 1 + lists_draw(l, 63);
    t[0] = lists_vector(l, type, n, false);
    t[1] = options & 32 ? t[0] : lists_vector(l, type, n, false);
    t[2] = lists_vector(l, squares, lists_draw(l, 300), true);
    t[3] = lists_vector(l, squares, 1, true);
    t[4] = lists_vector(l, TRINE_F32, 1, true);
    t[5] = lists_vector(l, TRINE_F32, 1, true);
    l->clip[l->count] = (trine_global_norm_clip_args){
        TRINE_ARGS(global_norm_clip),
        .x = &t[0],
        .y = options & 1 ? &t[1] : NULL,
        .other_squares = options & 16 ? &t[2] : NULL,
        .sum_squares = options & 2 ? &t[3] : NULL,
        .norm = options & 4 || (options & 15) == 0 ? &t[4] : NULL,
        .coefficient = options & 8 ? &t[5] : NULL,
        .max_norm = lists_draw(l, 2) ? 1 : 0,
        .own_included = lists_draw(l, 2) ? 1 : 0,
    };
    l->args[l->count] = &l->clip[l->count];
    l->count++;
}

/* A matrix of the arena, whose rows may have room between them, or one of its rows, or a column. */
static inline trine_tensor lists_matrix(lists *l, trine_dtype dtype, int64_t rows, int64_t n, uint32_t kind) {
    const int64_t stride = n + (kind == 1 ? 3 : kind == 2 ? 8 : 0);
    const trine_tensor memory = lists_vector(l, dtype, rows * stride, false);
    trine_tensor t = { memory.data, dtype, 2, { rows, n }, { stride, 1 } };
    if (kind == 3) t = trine_tensor_1d(memory.data, dtype, n);
    if (kind == 4) t = trine_tensor_2d(memory.data, dtype, rows, 1);
    return t;
}

/* Programs on elements and on rows: of most calls the same one, so that there is something to be done at once. */
static inline void lists_add_chain(lists *l) {
    static const char *const programs[] = {
        "y0 = x0 * 1.5 + x1",
        "y0 = select(x0 > x1, x0 / x1, 0.25); y1 = max(x0, x1) / 3",
        "t = x0 + x1; e = exp(t - max_row(t)); y0 = e / sum_row(e)",
        "m = mean_row(x0); y0 = (x0 - m) * x1; y1 = sigmoid(x0) * min_row(x1); r0 = m; r1 = 2 - m",
    };
    const int64_t small = lists_size(l), n = small > l->large / 2 ? small : small % 2500,
                  rows = n < 3000 ? (int64_t[]){ 1, 1, 3, 7 }[lists_draw(l, 4)] : 1;
    const uint32_t program = lists_draw(l, 4), kind = lists_draw(l, 6), other = lists_draw(l, 8);
    const trine_dtype type = lists_draw(l, 4) == 0 ? TRINE_BF16 : TRINE_F32;
    trine_tensor *t = l->tensor[l->count];
    t[0] = lists_matrix(l, type, rows, n, kind < 3 ? kind : 0);
    t[1] = lists_matrix(l, type, rows, n, other < 5 ? other : 0);
    t[2] = lists_matrix(l, type, rows, n, kind == 5 ? 1 : 0);
    t[3] = lists_matrix(l, type, rows, n, 0);
    t[4] = lists_vector(l, TRINE_F32, rows, false);
    l->chain[l->count] = (trine_chain_args){
        TRINE_ARGS(chain),
        .x0 = &t[0],
        .x1 = &t[1],
        .y0 = &t[2],
        .y1 = program % 2 == 1 && lists_draw(l, 3) > 0 ? &t[3] : NULL,
        .program = programs[program],
        .r1 = program == 3 && kind > 0 ? &t[4] : NULL,
    };
    l->args[l->count] = &l->chain[l->count];
    l->count++;
}

static inline bool lists_read(const lists *l, char *to) {
    return trine_queue_wait(l->queue) == TRINE_OK && trine_memory_read(l->queue, to, l->memory, l->used) == TRINE_OK;
}

/* Where the two differ. */
static inline bool lists_alike(const lists *l, const char *how) {
    size_t at = 0;
    while (at < l->used && l->expected[at] == l->found[at]) at++;
    if (at == l->used) return true;
    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < 9; k++) {
            const trine_tensor *t = &l->tensor[i][k];
            const size_t first = (size_t)((char *)t->data - l->memory);
            if (t->data == NULL || at < first || at >= first + (size_t)t->shape[0] * trine_dtype_size(t->dtype))
                continue;
            fprintf(stderr, "%s: call %d of %d, tensor %d, byte %zu of %lld %s\n", how, i, l->count, k, at - first,
                    (long long)t->shape[0], trine_dtype_name(t->dtype));
        }
    return false;
}

/* The calls one after the other, then as a list, then as a list that is recorded and launched, if there are graphs. */
static inline bool lists_run(lists *l, trine_op op) {
    trine_graph *graph = NULL;
    trine_status status = trine_memory_write(l->queue, l->memory, l->at_first, l->used);
    for (int i = 0; i < l->count && status == TRINE_OK; i++) status = trine_run(l->queue, op, l->args[i]);
    bool good = status == TRINE_OK && lists_read(l, l->expected) &&
                trine_memory_write(l->queue, l->memory, l->at_first, l->used) == TRINE_OK &&
                trine_run_list(l->queue, op, l->args, l->count) == TRINE_OK && lists_read(l, l->found) &&
                lists_alike(l, "as a list") &&
                trine_memory_write(l->queue, l->memory, l->at_first, l->used) == TRINE_OK;
    if (good && (status = trine_graph_begin(l->queue)) == TRINE_OK) {
        good = trine_run_list(l->queue, op, l->args, l->count) == TRINE_OK;
        good &= trine_graph_end(l->queue, &graph) == TRINE_OK;
        memset(l->args, 0, sizeof l->args); /* a graph has no use for them */
        memset(l->tensor, 0, sizeof l->tensor);
        good = good && trine_graph_launch(l->queue, graph) == TRINE_OK && lists_read(l, l->found) &&
               lists_alike(l, "from a graph");
        trine_graph_free(graph);
    } else if (good) {
        good = status == TRINE_ERR_UNSUPPORTED;
    }
    if (!good) fprintf(stderr, "%s\n", trine_error_message());
    return good;
}

typedef struct lists_op {
    trine_op op;
    void (*add)(lists *l);
} lists_op;

/* So many lists of each of two ops, of up to `calls` calls, whose largest tensors have `large` elements. */
static inline bool lists_agree_of(trine_queue *queue, int rounds, int calls, int64_t large, const lists_op ops[2]) {
    lists *l = calloc(1, sizeof *l);
    *l = (lists){ .queue = queue,
                  .large = large,
                  .at_first = calloc(1, LISTS_ARENA),
                  .expected = malloc(LISTS_ARENA),
                  .found = malloc(LISTS_ARENA) };
    void *memory = NULL;
    bool good = trine_memory_alloc(queue, LISTS_ARENA, &memory) == TRINE_OK;
    l->memory = memory;
    for (int round = 0; round < 2 * rounds && good; round++) {
        const lists_op *op = &ops[round % 2];
        const int most = round < 2 ? calls : 1 + round * 7 % calls;
        lists_begin(l, (uint64_t)round);
        while (l->count < most && lists_has_room(l)) op->add(l);
        good = lists_run(l, op->op);
    }
    trine_memory_free(queue, memory);
    free(l->at_first), free(l->expected), free(l->found), free(l);
    return good;
}

static inline bool lists_agree(trine_queue *queue, int rounds, int64_t large) {
    static const lists_op ops[] = { { TRINE_OP_ADAMW, lists_add_adamw },
                                    { TRINE_OP_GLOBAL_NORM_CLIP, lists_add_clip } };
    return lists_agree_of(queue, rounds, LISTS_CALLS, large, ops);
}

static inline bool lists_of_chains_agree(trine_queue *queue, int rounds, int calls, int64_t large) {
    static const lists_op ops[] = { { TRINE_OP_CHAIN, lists_add_chain }, { TRINE_OP_CHAIN, lists_add_chain } };
    return lists_agree_of(queue, rounds, calls, large, ops);
}

#endif
