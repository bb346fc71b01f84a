/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary: tokens and merges in hash tables. */
#include <stdlib.h>
#include <string.h>

#include "examples/gpt/data.h"
#include "tokenizer_parts.h"
#include "unicode.h"

enum { MAX_TOKENS = 1 << 22, LONGEST = 1 << 16 };

/* The least power of two that leaves a hash table of `count` half empty. */
static uint64_t table_size(uint64_t count) {
    uint64_t size = 16;
    while (size < 2 * count) size *= 2;
    return size;
}

bool tokenizer_open(tokenizer *t, const split_kind *kind, uint64_t tokens, uint64_t merges, uint64_t bytes,
                    problem *why) {
    *t = (tokenizer){ .kind = kind, .whole = split_kind_whole(kind), .first = -1 };
    if (tokens < 1 || tokens > MAX_TOKENS || merges > MAX_TOKENS || bytes > (uint64_t)1 << 32)
        return refuse(why, "a vocabulary of %llu tokens and %llu merges is out of range", (unsigned long long)tokens,
                      (unsigned long long)merges);
    t->by_bytes_mask = table_size(tokens) - 1;
    t->merge_mask = table_size(merges) - 1;
    t->room = (int32_t)tokens;
    t->merge_room = (int32_t)merges;
    t->bytes_room = (size_t)bytes;
    t->token = calloc(tokens, sizeof *t->token);
    t->special = calloc(tokens, sizeof *t->special);
    t->by_bytes = malloc((t->by_bytes_mask + 1) * sizeof *t->by_bytes);
    t->merge = malloc((t->merge_mask + 1) * sizeof *t->merge);
    t->bytes = malloc((size_t)bytes + 1);
    if (!t->token || !t->special || !t->by_bytes || !t->merge || !t->bytes) return refuse(why, "out of memory");
    for (uint64_t i = 0; i <= t->by_bytes_mask; i++) t->by_bytes[i] = -1;
    for (uint64_t i = 0; i <= t->merge_mask; i++) t->merge[i].left = -1;
    for (int i = 0; i < 256; i++) t->of_byte[i] = -1;
    return true;
}

void tokenizer_free(tokenizer *t) {
    free(t->token);
    free(t->special);
    free(t->by_bytes);
    free(t->merge);
    free(t->bytes);
    *t = (tokenizer){ 0 };
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

/* The byte that a character of the byte alphabet stands for, or -1. Bytes that print in Latin-1 stand for themselves,
 * the other 68 for the characters from 256 on, in their order. */
static int alphabet_byte(uint32_t c) {
    if (c > 32 && c < 256 && c != 173 && (c < 127 || c > 160)) return (int)c;
    if (c < 256 || c >= 256 + 68) return -1;
    const int n = (int)c - 256;
    return n < 33 ? n : n < 67 ? 127 + n - 33 : 173;
}

/* Writes what a spelling stands for to `out`, which has room for the spelling; returns its bytes. */
static size_t unspell(slice spelled, uint8_t *out) {
    const uint8_t *at = (const uint8_t *)spelled.bytes, *end = at + spelled.size;
    size_t size = 0;
    while (at < end) {
        uint32_t c;
        const size_t n = unicode_next(at, (size_t)(end - at), &c);
        const int byte = alphabet_byte(c);
        if (byte >= 0)
            out[size++] = (uint8_t)byte;
        else
            for (size_t i = 0; i < n; i++) out[size++] = at[i];
        at += n;
    }
    return size;
}

static slice bytes_of(const tokenizer *t, int32_t id) {
    return (slice){ (const char *)t->bytes + t->token[id].at, t->token[id].size };
}

/* Where in by_bytes a token of these bytes is, or would be. */
static int32_t *place_of(const tokenizer *t, slice bytes) {
    uint64_t at = gpt_hash(GPT_HASH_START, bytes.bytes, bytes.size) & t->by_bytes_mask;
    while (t->by_bytes[at] >= 0 && !slice_same(bytes_of(t, t->by_bytes[at]), bytes)) at = (at + 1) & t->by_bytes_mask;
    return &t->by_bytes[at];
}

int32_t token_of(const tokenizer *t, slice bytes) { return *place_of(t, bytes); }

bool tokenizer_add(tokenizer *t, slice spelled, token_kind kind, problem *why) {
    if (t->tokens == t->room || spelled.size > t->bytes_room - t->bytes_used)
        return refuse(why, "there are more tokens than were counted");
    if (spelled.size > LONGEST) return refuse(why, "a token of %zu bytes", spelled.size);
    const int32_t id = t->tokens++;
    uint8_t *to = t->bytes + t->bytes_used;
    size_t size = spelled.size;
    if (kind == TOKEN_TEXT)
        size = unspell(spelled, to);
    else if (size > 0)
        memcpy(to, spelled.bytes, size);
    t->token[id] = (token){ t->bytes_used, (uint32_t)size, kind };
    t->bytes_used += size;
    if (size == 0) return true;
    if (kind != TOKEN_TEXT) {
        t->special[t->specials++] = id;
        t->begins[*to] = true;
        return true;
    }
    int32_t *place = place_of(t, bytes_of(t, id));
    if (*place < 0) *place = id;
    if (size == 1 && t->of_byte[*to] < 0) t->of_byte[*to] = id;
    return true;
}

typedef struct sized {
    uint32_t size;
    int32_t id;
} sized;

static int longest_first(const void *a, const void *b) {
    const sized *x = a, *y = b;
    return x->size != y->size ? (x->size < y->size) - (x->size > y->size) : (x->id > y->id) - (x->id < y->id);
}

bool tokenizer_add_end(tokenizer *t, problem *why) {
    sized *order = malloc(((size_t)t->specials + 1) * sizeof *order);
    if (!order) return refuse(why, "out of memory");
    for (int32_t i = 0; i < t->specials; i++) order[i] = (sized){ t->token[t->special[i]].size, t->special[i] };
    qsort(order, (size_t)t->specials, sizeof *order, longest_first);
    for (int32_t i = 0; i < t->specials; i++) t->special[i] = order[i].id;
    free(order);
    return true;
}

slice tokenizer_text(const tokenizer *t, int32_t id) {
    return t->token[id].kind == TOKEN_CONTROL ? (slice){ "", 0 } : bytes_of(t, id);
}

int32_t tokenizer_special(const tokenizer *t, slice spelled) {
    for (int32_t i = 0; i < t->specials; i++)
        if (slice_same(bytes_of(t, t->special[i]), spelled)) return t->special[i];
    return -1;
}

int32_t special_at(const tokenizer *t, const uint8_t *at, size_t left, bool control) {
    if (!t->begins[*at]) return -1;
    for (int32_t i = 0; i < t->specials; i++) {
        const int32_t id = t->special[i];
        const uint32_t size = t->token[id].size;
        if ((control || t->token[id].kind != TOKEN_CONTROL) && size <= left &&
            !memcmp(at, t->bytes + t->token[id].at, size))
            return id;
    }
    return -1;
}

bool tokenizer_stops(const tokenizer *t, int32_t id) {
    for (int32_t i = 0; i < t->stops; i++)
        if (t->stop[i] == id) return true;
    return false;
}

/* ----------------------------------------------------------------------------------------------------------- merges */

static merge *merge_place(const tokenizer *t, int32_t left, int32_t right) {
    uint64_t at = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    for (at = (at ^ at >> 29) & t->merge_mask; t->merge[at].left >= 0; at = (at + 1) & t->merge_mask)
        if (t->merge[at].left == left && t->merge[at].right == right) break;
    return &t->merge[at];
}

const merge *merge_of(const tokenizer *t, int32_t left, int32_t right) {
    const merge *m = merge_place(t, left, right);
    return m->left < 0 ? NULL : m;
}

bool tokenizer_merge(tokenizer *t, slice left, slice right, problem *why) {
    if (t->merges == t->merge_room) return refuse(why, "there are more merges than were counted");
    const int32_t rank = t->merges++;
    if (left.size + right.size > LONGEST) return refuse(why, "a merge of %zu bytes", left.size + right.size);
    uint8_t *both = malloc(left.size + right.size + 1);
    if (!both) return refuse(why, "out of memory");
    const size_t first = unspell(left, both), second = unspell(right, both + first);
    const char *bytes = (const char *)both;
    const int32_t a = token_of(t, (slice){ bytes, first }), b = token_of(t, (slice){ bytes + first, second }),
                  sum = token_of(t, (slice){ bytes, first + second });
    free(both);
    if (a < 0 || b < 0 || sum < 0)
        return refuse(why, "the merge of \"%.*s\" and \"%.*s\" is not of tokens", SHOWN(left), SHOWN(right));
    merge *m = merge_place(t, a, b);
    if (m->left < 0) *m = (merge){ a, b, sum, rank };
    return true;
}
