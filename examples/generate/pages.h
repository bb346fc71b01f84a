/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a cache of keys and values: which are free, and which a sequence has. */
#ifndef GENERATE_PAGES_H
#define GENERATE_PAGES_H

#include "file.h"

enum { PAGE = 32 /* tokens */ };

typedef struct page_pool {
    int32_t *free; /* the next one last */
    int64_t count, pages;
} page_pool;

bool page_pool_open(page_pool *pool, int64_t pages, problem *why);
void page_pool_close(page_pool *pool);

/* Tokens whose keys and values are kept, and where. One of zeros has none. */
typedef struct sequence {
    int64_t length;
    int32_t *page; /* those of its tokens, in their order */
    int64_t pages;
} sequence;

static inline int64_t pages_of(int64_t tokens) { return (tokens + PAGE - 1) / PAGE; }

/* Gives a sequence pages for `tokens` in all; false where not as many are free, or without memory. */
bool sequence_reserve(page_pool *pool, sequence *s, int64_t tokens);

/* Whether the first `tokens` lie one after the other. */
bool sequence_consecutive(const sequence *s, int64_t tokens);

/* Gives back all pages. */
void sequence_end(page_pool *pool, sequence *s);

/* Where a token's keys and values are: a page, times PAGE, and the place in it. */
static inline int32_t sequence_slot(const sequence *s, int64_t token) {
    return (int32_t)(s->page[token / PAGE] * PAGE + token % PAGE);
}

#endif
