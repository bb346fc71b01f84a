/* SPDX-License-Identifier: Apache-2.0 */
/* argsort on the CPU: by digits of the elements' orders, the lowest first. For each digit they are counted, then moved
 * with their places; a digit that is the same in all of a row is passed over. Rows are shared among the threads, or if
 * there are few long ones the parts of each. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/argsort.h"

enum {
    DIGIT = 8, /* bits */
    DIGITS = 1 << DIGIT,
    SHORT = 48,     /* elements that are put in their places one by one */
    PART = 1 << 15, /* elements of a long row that a thread takes */
    MOVES = 6       /* times that elements are touched, about */
};

typedef struct sorter {
    const trine_call *call;
    int64_t row, n, parts;
    uint64_t infinity; /* bits of a float's; 0: integers */
    int size, pass;    /* bytes of an element; the digit */
    int now;           /* which of two is sorted so far */
    bool descending;
    char *order[2];
    uint32_t *at[2];
    int64_t *count; /* of each part and digit; then where the next one goes */
} sorter;

INLINE uint64_t get(const char *from, int64_t i, int size) {
    uint64_t x = 0;
    if (size == 2) {
        x = ((const uint16_t *)(const void *)from)[i];
    } else if (size == 4) {
        x = ((const uint32_t *)(const void *)from)[i];
    } else {
        x = ((const uint64_t *)(const void *)from)[i];
    }
    return x;
}
INLINE void put(char *to, int64_t i, uint64_t x, int size) {
    if (size == 2)
        ((uint16_t *)(void *)to)[i] = (uint16_t)x;
    else if (size == 4)
        ((uint32_t *)(void *)to)[i] = (uint32_t)x;
    else
        ((uint64_t *)(void *)to)[i] = x;
}

#define FOR_SIZE(bytes, body, ...) \
    do { \
        if ((bytes) == 2) \
            body(__VA_ARGS__, 2); \
        else if ((bytes) == 4) \
            body(__VA_ARGS__, 4); \
        else \
            body(__VA_ARGS__, 8); \
    } while (0)

/* Larger numbers for elements that come later: those of -0 and 0 are equal, and NaN's is the largest. */
INLINE uint64_t order_of(uint64_t bits, uint64_t infinity, bool descending, int size) {
    const uint64_t sign = UINT64_C(1) << (8 * size - 1), all = sign | (sign - 1), magnitude = bits & (sign - 1);
    uint64_t order = bits ^ sign;
    if (infinity) {
        order = bits & sign ? bits ^ all : bits | sign;
        order = magnitude == 0 ? sign : magnitude > infinity ? all : order;
    }
    return descending ? order ^ all : order;
}

static const char *row_of(const trine_call *call, int tensor, int64_t row) {
    const trine_tensor *t = &call->tensor[tensor];
    return (const char *)t->data + row * t->stride[0] * (int64_t)trine_dtype_size(t->dtype);
}

static void part_of(const sorter *s, int64_t part, int64_t *first, int64_t *end) {
    *first = s->parts > 1 ? part * PART : 0;
    *end = s->parts > 1 && *first + PART < s->n ? *first + PART : s->n;
}

INLINE void begin_part(const sorter *s, int64_t part, int size) {
    const char *row = row_of(s->call, ARGSORT_X, s->row);
    int64_t first, end;
    part_of(s, part, &first, &end);
    for (int64_t i = first; i < end; i++) {
        put(s->order[0], i, order_of(get(row, i, size), s->infinity, s->descending, size), size);
        s->at[0][i] = (uint32_t)i;
    }
}
static void begin(const void *context, int64_t first, int64_t last, int thread) {
    const sorter *s = context;
    (void)thread;
    for (int64_t part = first; part < last; part++) FOR_SIZE(s->size, begin_part, s, part);
}

INLINE void count_part(const sorter *s, int64_t part, int size) {
    int64_t first, end, *count = s->count + part * DIGITS;
    part_of(s, part, &first, &end);
    memset(count, 0, DIGITS * sizeof *count);
    for (int64_t i = first; i < end; i++) count[get(s->order[s->now], i, size) >> (DIGIT * s->pass) & (DIGITS - 1)]++;
}
static void count(const void *context, int64_t first, int64_t last, int thread) {
    const sorter *s = context;
    (void)thread;
    for (int64_t part = first; part < last; part++) FOR_SIZE(s->size, count_part, s, part);
}

/* Where each part's elements of each digit go; false: they are all of one digit. */
static bool places(sorter *s) {
    int64_t next = 0;
    for (int d = 0; d < DIGITS; d++) {
        const int64_t before = next;
        for (int64_t part = 0; part < s->parts; part++) {
            int64_t *at = &s->count[part * DIGITS + d], many = *at;
            *at = next;
            next += many;
        }
        if (next - before == s->n) return false;
    }
    return true;
}

INLINE void move_part(const sorter *s, int64_t part, int size) {
    int64_t first, end, *next = s->count + part * DIGITS;
    part_of(s, part, &first, &end);
    const char *from = s->order[s->now];
    char *to = s->order[1 - s->now];
    const uint32_t *at = s->at[s->now];
    uint32_t *at_to = s->at[1 - s->now];
    for (int64_t i = first; i < end; i++) {
        const uint64_t order = get(from, i, size);
        const int64_t place = next[order >> (DIGIT * s->pass) & (DIGITS - 1)]++;
        put(to, place, order, size);
        at_to[place] = at[i];
    }
}
static void move(const void *context, int64_t first, int64_t last, int thread) {
    const sorter *s = context;
    (void)thread;
    for (int64_t part = first; part < last; part++) FOR_SIZE(s->size, move_part, s, part);
}

INLINE void insert(const sorter *s, int size) {
    char *order = s->order[0];
    for (int64_t i = 1; i < s->n; i++) {
        const uint64_t own = get(order, i, size);
        int64_t j = i;
        for (; j > 0 && get(order, j - 1, size) > own; j--) {
            put(order, j, get(order, j - 1, size), size);
            s->at[0][j] = s->at[0][j - 1];
        }
        put(order, j, own, size);
        s->at[0][j] = (uint32_t)i;
    }
}

INLINE void copy_values(const sorter *s, int64_t first, int64_t end, int size) {
    const char *row = row_of(s->call, ARGSORT_X, s->row);
    char *to = (char *)(uintptr_t)row_of(s->call, ARGSORT_VALUES, s->row);
    const uint32_t *at = s->at[s->now];
    for (int64_t i = first; i < end; i++) put(to, i, get(row, at[i], size), size);
}
static void finish(const void *context, int64_t first, int64_t last, int thread) {
    const sorter *s = context;
    const trine_tensor *indices = &s->call->tensor[ARGSORT_INDICES];
    char *to = (char *)(uintptr_t)row_of(s->call, ARGSORT_INDICES, s->row);
    (void)thread;
    for (int64_t part = first; part < last; part++) {
        int64_t from, end;
        part_of(s, part, &from, &end);
        for (int64_t i = from; i < end; i++) put(to, i, s->at[s->now][i], (int)trine_dtype_size(indices->dtype));
        if (trine_call_given(s->call, ARGSORT_VALUES)) FOR_SIZE(s->size, copy_values, s, from, end);
    }
}

/* One row by a team. */
static void sort_row(sorter *s, int team) {
    const trine_call *call = s->call;
    s->now = 0;
    cpu_shares(call, team, s->parts, begin, s);
    if (s->n <= SHORT) FOR_SIZE(s->size, insert, s);
    for (s->pass = 0; s->n > SHORT && s->pass < s->size; s->pass++) {
        cpu_shares(call, team, s->parts, count, s);
        if (!places(s)) continue;
        cpu_shares(call, team, s->parts, move, s);
        s->now = 1 - s->now;
    }
    cpu_shares(call, team, s->parts, finish, s);
}

static int64_t bytes_of(const trine_call *call) {
    return MOVES * call->dim[ARGSORT_DIM_N] * (int64_t)trine_dtype_size(call->type[ARGSORT_TYPE_T]);
}
static int64_t parts_of(const trine_call *call) {
    const int64_t n = call->dim[ARGSORT_DIM_N], parts = (n + PART - 1) / PART;
    const bool few = call->dim[ARGSORT_DIM_R] < ((const cpu_queue *)call->queue)->threads;
    return few && parts > 1 && cpu_team(call, parts, bytes_of(call)) > 1 ? parts : 1;
}
static int row_team(const trine_call *call) {
    return cpu_team(call, call->dim[ARGSORT_DIM_R], call->dim[ARGSORT_DIM_R] * bytes_of(call));
}

/* What a sorter has of the workspace. */
static int64_t orders_bytes(const trine_call *call) {
    return cpu_round_up(call->dim[ARGSORT_DIM_N] * (int64_t)trine_dtype_size(call->type[ARGSORT_TYPE_T]), 64);
}
static int64_t places_bytes(const trine_call *call) {
    return cpu_round_up(call->dim[ARGSORT_DIM_N] * (int64_t)sizeof(uint32_t), 64);
}
static int64_t sorter_bytes(const trine_call *call) {
    return 2 * orders_bytes(call) + 2 * places_bytes(call) + parts_of(call) * DIGITS * (int64_t)sizeof(int64_t);
}

static sorter sorter_of(const trine_call *call, int thread) {
    const trine_argsort_args *args = call->args;
    const trine_dtype T = call->type[ARGSORT_TYPE_T];
    char *memory = (char *)call->workspace + thread * sorter_bytes(call);
    const int64_t orders = orders_bytes(call), at = places_bytes(call);
    return (
        sorter){ .call = call,
                 .n = call->dim[ARGSORT_DIM_N],
                 .parts = parts_of(call),
                 .infinity = T == TRINE_F32    ? 0x7f800000
                             : T == TRINE_BF16 ? 0x7f80
                             : T == TRINE_F16  ? 0x7c00
                                               : 0,
                 .size = (int)trine_dtype_size(T),
                 .descending = args->descending,
                 .order = { memory, memory + orders },
                 .at = { (uint32_t *)(void *)(memory + 2 * orders), (uint32_t *)(void *)(memory + 2 * orders + at) },
                 .count = (int64_t *)(void *)(memory + 2 * orders + 2 * at) };
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    sorter s = sorter_of(context, thread);
    for (s.row = first; s.row < last; s.row++) sort_row(&s, 1);
}

static const char *refuse(const trine_call *call) {
    return call->dim[ARGSORT_DIM_N] > INT32_MAX ? "rows of more than 2^31 - 1 elements" : NULL;
}

static size_t workspace(const trine_call *call) {
    return (size_t)(parts_of(call) > 1 ? sorter_bytes(call) : row_team(call) * sorter_bytes(call));
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[ARGSORT_DIM_R], parts = parts_of(call);
    if (parts > 1) {
        sorter s = sorter_of(call, 0);
        for (s.row = 0; s.row < r; s.row++) sort_row(&s, cpu_team(call, parts, bytes_of(call)));
    } else {
        cpu_shares(call, row_team(call), r, rows, call);
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ARGSORT_DIM_N, SHORT);
    trine_kernel_edge(edges, ARGSORT_DIM_N, PART);
    cpu_team_edge(edges, ARGSORT_DIM_R, bytes_of(call));
}

CPU_KERNELS(argsort) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
