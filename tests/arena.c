/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of an arena: no two buffers of one step overlap, no arena is smaller than what is live, the smallest is found
 * for few buffers, and wrong lifetimes are refused. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trine/trine.h>

#include "tap.h"

enum { MOST = 200, FEW = 6 };

static uint32_t state = 1;
static int64_t draw(int64_t most) {
    state = state * 1664525u + 1013904223u;
    return (int64_t)(state >> 8) % (most + 1);
}

static int64_t up(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

static bool meet(const trine_lifetime *a, const trine_lifetime *b) {
    return a->first <= b->last && b->first <= a->last;
}

static int64_t live_at(const trine_lifetime *b, int64_t count, int64_t alignment, int64_t step) {
    int64_t live = 0;
    for (int64_t i = 0; i < count; i++)
        if (b[i].first <= step && step <= b[i].last) live += up(b[i].bytes, alignment);
    return live;
}

/* Byte by byte of the report, and pair by pair of the buffers. */
static bool is_right(const trine_lifetime *b, int64_t count, int64_t alignment, const int64_t *offset,
                     const trine_arena_report *r) {
    int64_t end = 0, separate = 0, live = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t here = live_at(b, count, alignment, b[i].first);
        if (offset[i] < 0 || offset[i] % alignment) return false;
        if (offset[i] + up(b[i].bytes, alignment) > end) end = offset[i] + up(b[i].bytes, alignment);
        if (here > live) live = here;
        separate += up(b[i].bytes, alignment);
        for (int64_t j = 0; j < i; j++)
            if (meet(&b[i], &b[j]) && offset[i] < offset[j] + b[j].bytes && offset[j] < offset[i] + b[i].bytes)
                return false;
    }
    return r->bytes == end && r->separate == separate && r->live == live && r->bytes >= live && r->bytes <= separate &&
           live_at(b, count, alignment, r->step) == live;
}

/* The smallest arena, by all orders in which buffers are laid as low as those before them let them. */
static int64_t smallest(const trine_lifetime *b, int count, unsigned laid, int64_t *offset, int64_t bytes) {
    int64_t best = INT64_MAX;
    if (laid == (1u << count) - 1) return bytes;
    for (int i = 0; i < count; i++) {
        int64_t end = 0;
        if (laid >> i & 1) continue;
        for (int j = 0; j < count; j++)
            if (laid >> j & 1 && meet(&b[i], &b[j]) && offset[j] + b[j].bytes > end) end = offset[j] + b[j].bytes;
        offset[i] = end;
        const int64_t here =
            smallest(b, count, laid | 1u << i, offset, end + b[i].bytes > bytes ? end + b[i].bytes : bytes);
        if (here < best) best = here;
    }
    return best;
}

static void fill(trine_lifetime *b, int64_t count, int64_t bytes, int64_t steps) {
    for (int64_t i = 0; i < count; i++) {
        b[i].bytes = draw(bytes);
        b[i].first = draw(steps) - steps / 2;
        b[i].last = b[i].first + draw(draw(3) ? 3 : steps);
    }
}

static void random_plans(void) {
    static trine_lifetime b[MOST];
    static int64_t offset[MOST], again[MOST];
    trine_arena_report r, r2;
    int right = 0, proved = 0;
    enum { ROUNDS = 300 };
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t count = draw(i % 3 ? 20 : MOST), alignment = INT64_C(1) << draw(9);
        fill(b, count, i % 2 ? 10 : INT64_C(1) << 40, draw(60));
        right += trine_arena_plan(b, count, alignment, offset, &r) == TRINE_OK &&
                 is_right(b, count, alignment, offset, &r) &&
                 trine_arena_plan(b, count, alignment, again, &r2) == TRINE_OK &&
                 memcmp(offset, again, sizeof *offset * (size_t)count) == 0;
        proved += r.smallest;
    }
    tap(right == ROUNDS, "%d of %d random plans are right and the same again", right, ROUNDS);
    tap(proved > ROUNDS / 2, "%d of them are proved the smallest", proved);
}

static void few_buffers(void) {
    trine_lifetime b[FEW];
    int64_t offset[FEW], other[FEW];
    trine_arena_report r;
    int right = 0;
    enum { ROUNDS = 2000 };
    for (int i = 0; i < ROUNDS; i++) {
        const int count = 1 + (int)draw(FEW - 1);
        fill(b, count, 9, 8);
        right += trine_arena_plan(b, count, 1, offset, &r) == TRINE_OK && r.smallest == 1 &&
                 r.bytes == smallest(b, count, 0, other, 0);
    }
    tap(right == ROUNDS, "%d of %d arenas of few buffers are the smallest", right, ROUNDS);
    /* Seven of whom no arena has only the 8 bytes that are live. */
    const trine_lifetime hard[] = { { 1, 3, 5 }, { 4, 0, 3 }, { 2, 5, 6 }, { 4, 0, 0 },
                                    { 4, 6, 7 }, { 3, 7, 9 }, { 2, 1, 6 } };
    int64_t place[7];
    tap(trine_arena_plan(hard, 7, 1, place, &r) == TRINE_OK && is_right(hard, 7, 1, place, &r) && r.live == 8 &&
            r.bytes == 9 && r.smallest == 1 && smallest(hard, 7, 0, place, 0) == 9,
        "an arena of %d bytes where %d are live", (int)r.bytes, (int)r.live);
}

static bool refused(const trine_lifetime *b, int64_t count, int64_t alignment, const char *text) {
    int64_t offset[2] = { 77, 77 };
    trine_arena_report r = { .bytes = 77 };
    const bool right = trine_arena_plan(b, count, alignment, offset, &r) == TRINE_ERR_ARGUMENT && offset[0] == 77 &&
                       r.bytes == 77 && strstr(trine_error_message(), text) != NULL;
    return tap(right, "refused: %s", trine_error_message());
}

int main(void) {
    const trine_lifetime good[] = { { 5, 0, 1 }, { 7, 1, 2 } };
    trine_arena_report r = { .bytes = 77 };
    int64_t offset[2];
    random_plans();
    few_buffers();
    tap(trine_arena_plan(NULL, 0, 256, NULL, &r) == TRINE_OK && r.bytes == 0 && r.smallest == 1,
        "no buffers, no bytes");
    tap(trine_arena_plan(good, 2, 256, offset, NULL) == TRINE_OK, "a report is not needed");
    refused(good, -1, 1, "count is -1");
    refused(NULL, 2, 1, "buffer is NULL");
    tap(trine_arena_plan(good, 2, 1, NULL, &r) == TRINE_ERR_ARGUMENT, "refused: %s", trine_error_message());
    refused(good, 2, 0, "alignment is 0");
    refused(good, 2, 24, "alignment is 24");
    refused((trine_lifetime[]){ good[0], { -1, 0, 1 } }, 2, 1, "buffer 1 has -1 bytes");
    refused((trine_lifetime[]){ { 1, 3, 2 }, good[1] }, 2, 1, "buffer 0 is needed from step 3 to 2");
    refused((trine_lifetime[]){ { INT64_MAX - 4, 0, 1 }, good[1] }, 2, 1, "up to buffer 1");
    refused((trine_lifetime[]){ { INT64_MAX, 0, 1 }, good[1] }, 2, 256, "up to buffer 0");
    return tap_end();
}
