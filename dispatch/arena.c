/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets for buffers with lifetimes. */
#include <stdlib.h>
#include <string.h>

#include <trine/arena.h>

#include "dispatch.h"

enum { MOST_SEARCHED = 64, MOST_NODES = 200000 };

typedef struct planned {
    int64_t bytes, first, last, breadth; /* breadth: most bytes live at a step of its life */
    int64_t number;                      /* in the caller's list */
    int64_t offset;
} planned;

typedef struct plan {
    planned *buffer;  /* in the order of placing */
    planned **placed; /* by offset */
    int64_t count;
} plan;

static bool meet(const planned *a, const planned *b) { return a->first <= b->last && b->first <= a->last; }

static int by_number(const planned *a, const planned *b) { return (a->number > b->number) - (a->number < b->number); }

static int larger(const void *left, const void *right) {
    const planned *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : by_number(a, b);
}

static int broader(const void *left, const void *right) {
    const planned *a = left, *b = right;
    return a->breadth != b->breadth ? (a->breadth < b->breadth) - (a->breadth > b->breadth) : larger(a, b);
}

static int earlier(const void *left, const void *right) {
    const planned *a = left, *b = right;
    return a->first != b->first ? (a->first > b->first) - (a->first < b->first) : by_number(a, b);
}

/* Each buffer in the smallest gap between those placed before which it meets, or behind the last of them. Returns the
 * bytes of the arena. */
static int64_t place_all(plan *p) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < p->count; i++) {
        planned *b = &p->buffer[i];
        int64_t end = 0, gap = INT64_MAX;
        b->offset = -1;
        for (int64_t j = 0; j < i; j++) {
            const planned *other = p->placed[j];
            if (!meet(b, other)) continue;
            const int64_t room = other->offset - end;
            if (room >= b->bytes && room < gap) {
                gap = room;
                b->offset = end;
            }
            if (other->offset + other->bytes > end) end = other->offset + other->bytes;
        }
        if (b->offset < 0) b->offset = end;
        if (b->offset + b->bytes > bytes) bytes = b->offset + b->bytes;
        int64_t j = i;
        for (; j > 0 && p->placed[j - 1]->offset > b->offset; j--) p->placed[j] = p->placed[j - 1];
        p->placed[j] = b;
    }
    return bytes;
}

static void keep(const plan *p, int64_t *offset_out) {
    for (int64_t i = 0; i < p->count; i++) offset_out[p->buffer[i].number] = p->buffer[i].offset;
}

/* The smallest plan has an order of offsets in which each buffer lies as low as those before it let it: all such orders
 * are tried, but for those that are not smaller than the best. */
typedef struct search {
    plan *p;
    bool done[MOST_SEARCHED];
    int64_t best, live, nodes, *offset;
} search;

static void search_from(search *s, int64_t placed, int64_t lowest, int64_t bytes) {
    const plan *p = s->p;
    if (placed == p->count) {
        s->best = bytes;
        keep(p, s->offset);
        return;
    }
    for (int64_t i = 0; i < p->count && s->best > s->live && s->nodes < MOST_NODES; i++) {
        planned *b = &p->buffer[i];
        int64_t end = 0;
        if (s->done[i]) continue;
        for (int64_t j = 0; j < p->count; j++) {
            const planned *other = &p->buffer[j];
            if (s->done[j] && meet(b, other) && other->offset + other->bytes > end) end = other->offset + other->bytes;
        }
        s->nodes++;
        if (end < lowest || end + b->bytes >= s->best) continue;
        b->offset = end;
        s->done[i] = true;
        search_from(s, placed + 1, end, end + b->bytes > bytes ? end + b->bytes : bytes);
        s->done[i] = false;
    }
}

/* Breadths, and the most that is live: only where a life begins can more be live than before. */
static void measure(plan *p, trine_arena_report *report) {
    qsort(p->buffer, (size_t)p->count, sizeof *p->buffer, earlier);
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t step = p->buffer[i].first;
        int64_t live = 0;
        report->separate += p->buffer[i].bytes;
        if (i > 0 && p->buffer[i - 1].first == step) continue;
        for (int64_t j = 0; j < p->count; j++)
            if (p->buffer[j].first <= step && step <= p->buffer[j].last) live += p->buffer[j].bytes;
        for (int64_t j = 0; j < p->count; j++)
            if (p->buffer[j].first <= step && step <= p->buffer[j].last && p->buffer[j].breadth < live)
                p->buffer[j].breadth = live;
        if (i == 0 || live > report->live) {
            report->live = live;
            report->step = step;
        }
    }
}

static void lay(plan *p, int64_t *offset_out, trine_arena_report *report) {
    static int (*const orders[])(const void *, const void *) = { larger, broader };
    measure(p, report);
    report->bytes = INT64_MAX;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        qsort(p->buffer, (size_t)p->count, sizeof *p->buffer, orders[i]);
        const int64_t bytes = place_all(p);
        if (bytes >= report->bytes) continue;
        report->bytes = bytes;
        keep(p, offset_out);
    }
    search s = { .p = p, .best = report->bytes, .live = report->live, .offset = offset_out };
    if (p->count <= MOST_SEARCHED && s.best > s.live) search_from(&s, 0, 0, 0);
    report->smallest = s.best == s.live || (p->count <= MOST_SEARCHED && s.nodes < MOST_NODES);
    report->bytes = s.best;
}

/* The buffer as it is laid; its size rounded up, to which `total` rises. */
static trine_status take(const trine_lifetime *buffer, int64_t number, int64_t alignment, planned *out,
                         int64_t *total) {
    int64_t bytes = 0;
    if (buffer->bytes < 0)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_arena_plan: buffer %lld has %lld bytes", (long long)number,
                          (long long)buffer->bytes);
    if (buffer->last < buffer->first)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_arena_plan: buffer %lld is needed from step %lld to %lld",
                          (long long)number, (long long)buffer->first, (long long)buffer->last);
    if (__builtin_add_overflow(buffer->bytes, alignment - 1, &bytes) ||
        __builtin_add_overflow(*total, bytes & -alignment, total))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_arena_plan: the sizes up to buffer %lld have a sum of over 2^63",
                          (long long)number);
    *out = (planned){ .bytes = bytes & -alignment, .first = buffer->first, .last = buffer->last, .number = number };
    return TRINE_OK;
}

trine_status trine_arena_plan(const trine_lifetime *buffer, int64_t count, int64_t alignment, int64_t *offset_out,
                              trine_arena_report *report_out) {
    trine_arena_report report = { 0 };
    if (count < 0) return trine_fail(TRINE_ERR_ARGUMENT, "trine_arena_plan: count is %lld", (long long)count);
    if (count > 0 && (buffer == NULL || offset_out == NULL))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_arena_plan: %s is NULL", buffer ? "offset_out" : "buffer");
    if (alignment < 1 || (alignment & (alignment - 1)) != 0)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_arena_plan: alignment is %lld, which is no power of 2",
                          (long long)alignment);
    trine_status status = TRINE_OK;
    plan p = { .count = count };
    p.buffer = calloc((size_t)count + 1, sizeof *p.buffer);
    p.placed = calloc((size_t)count + 1, sizeof(planned *));
    if (p.buffer == NULL || p.placed == NULL) status = trine_fail(TRINE_ERR_MEMORY, "trine_arena_plan: out of memory");
    for (int64_t i = 0, total = 0; status == TRINE_OK && i < count; i++)
        status = take(&buffer[i], i, alignment, &p.buffer[i], &total);
    if (status == TRINE_OK && count > 0) lay(&p, offset_out, &report);
    if (status == TRINE_OK && report_out != NULL) *report_out = report;
    if (count == 0 && status == TRINE_OK && report_out != NULL) report_out->smallest = 1;
    free(p.buffer);
    free(p.placed);
    return status;
}
