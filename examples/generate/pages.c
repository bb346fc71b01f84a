/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of pages, a stack. */
#include <stdlib.h>

#include "pages.h"

bool page_pool_open(page_pool *pool, int64_t pages, problem *why) {
    *pool = (page_pool){ .pages = pages, .free = malloc((size_t)pages * sizeof *pool->free) };
    if (!pool->free) return refuse(why, "out of memory");
    while (pool->count < pages) {
        pool->free[pool->count] = (int32_t)(pages - 1 - pool->count);
        pool->count++;
    }
    return true;
}

void page_pool_close(page_pool *pool) {
    free(pool->free);
    *pool = (page_pool){ 0 };
}

bool sequence_reserve(page_pool *pool, sequence *s, int64_t tokens) {
    const int64_t wanted = pages_of(tokens), more = wanted - s->pages;
    if (more <= 0) return true;
    if (more > pool->count) return false;
    int32_t *page = realloc(s->page, (size_t)wanted * sizeof *page);
    if (!page) return false;
    s->page = page;
    while (s->pages < wanted) s->page[s->pages++] = pool->free[--pool->count];
    return true;
}

bool sequence_consecutive(const sequence *s, int64_t tokens) {
    for (int64_t i = 1; i < pages_of(tokens); i++)
        if (s->page[i] != s->page[i - 1] + 1) return false;
    return true;
}

void sequence_end(page_pool *pool, sequence *s) {
    while (s->pages > 0) pool->free[pool->count++] = s->page[--s->pages];
    free(s->page);
    *s = (sequence){ 0 };
}
