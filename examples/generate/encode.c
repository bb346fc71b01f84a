/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder: a text is cut at special tokens, then into pieces, and in each piece bytes are merged. Which pair is
 * next is told by a heap, so that the time is that of sorting, however long a piece is. */
#include <stdlib.h>

#include "tokenizer_parts.h"

/* What is left of a piece at one of its bytes; neighbours are -1 at the ends. */
typedef struct node {
    int32_t id; /* -1: merged into the one before */
    int32_t before, next;
} node;

typedef struct candidate {
    int32_t rank, at; /* the left one's place */
    int32_t left, right;
} candidate;

typedef struct encoder {
    const tokenizer *t;
    node *node;
    candidate *heap; /* room for 3 of each node */
    int64_t room, heaped;
} encoder;

static bool sooner(const candidate *a, const candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_add(encoder *e, candidate c) {
    int64_t i = e->heaped++;
    for (; i > 0 && sooner(&c, &e->heap[(i - 1) / 2]); i = (i - 1) / 2) e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = c;
}

static candidate heap_take(encoder *e) {
    const candidate top = e->heap[0], last = e->heap[--e->heaped];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < e->heaped; i = child) {
        child += child + 1 < e->heaped && sooner(&e->heap[child + 1], &e->heap[child]);
        if (!sooner(&e->heap[child], &last)) break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = last;
    return top;
}

/* Makes the pair that begins at a node a candidate, if it merges. */
static void consider(encoder *e, int32_t at) {
    if (at < 0 || e->node[at].next < 0) return;
    const int32_t left = e->node[at].id, right = e->node[e->node[at].next].id;
    const merge *m = merge_of(e->t, left, right);
    if (m) heap_add(e, (candidate){ m->rank, at, left, right });
}

static bool still_there(const encoder *e, const candidate *c) {
    const node *n = &e->node[c->at];
    return n->id == c->left && n->next >= 0 && e->node[n->next].id == c->right;
}

static void join(encoder *e, int32_t at) {
    node *n = &e->node[at], *right = &e->node[n->next];
    n->id = merge_of(e->t, n->id, right->id)->sum;
    right->id = -1;
    n->next = right->next;
    if (n->next >= 0) e->node[n->next].before = at;
    consider(e, n->before);
    consider(e, at);
}

static bool encoder_reserve(encoder *e, size_t size, problem *why) {
    if ((int64_t)size <= e->room) return true;
    if (size > 1 << 28) return refuse(why, "the text has a word of %zu bytes", size);
    free(e->node);
    free(e->heap);
    e->room = (int64_t)size * 2;
    e->node = malloc((size_t)e->room * sizeof *e->node);
    e->heap = malloc((size_t)e->room * 3 * sizeof *e->heap);
    return (e->node && e->heap) || refuse(why, "out of memory");
}

static bool encode_piece(encoder *e, slice piece, token_list *list, problem *why) {
    const tokenizer *t = e->t;
    const int32_t whole = t->whole ? token_of(t, piece) : -1;
    if (whole >= 0) return token_list_add(list, whole, why);
    if (!encoder_reserve(e, piece.size, why)) return false;
    int32_t count = 0;
    for (size_t i = 0; i < piece.size; i++) {
        const int32_t id = t->of_byte[(uint8_t)piece.bytes[i]];
        if (id < 0) continue;
        e->node[count] = (node){ id, count - 1, count + 1 };
        count++;
    }
    if (count == 0) return true;
    e->node[count - 1].next = -1;
    for (int32_t i = 0; i < count; i++) consider(e, i);
    while (e->heaped > 0) {
        const candidate c = heap_take(e);
        if (still_there(e, &c)) join(e, c.at);
    }
    for (int32_t i = 0; i >= 0; i = e->node[i].next)
        if (!token_list_add(list, e->node[i].id, why)) return false;
    return true;
}

static bool encode_plain(encoder *e, const uint8_t *at, const uint8_t *end, token_list *list, problem *why) {
    split s = split_begin(e->t->kind, (slice){ (const char *)at, (size_t)(end - at) });
    for (slice piece; split_next(&s, &piece);)
        if (!encode_piece(e, piece, list, why)) return false;
    return true;
}

bool tokenizer_encode(const tokenizer *t, slice text, bool control, token_list *list, problem *why) {
    encoder e = { .t = t };
    const uint8_t *at = (const uint8_t *)text.bytes, *end = at + text.size, *plain = at;
    bool good = true;
    while (good && at < end) {
        const int32_t id = special_at(t, at, (size_t)(end - at), control);
        if (id < 0) {
            at++;
            continue;
        }
        good = encode_plain(&e, plain, at, list, why) && token_list_add(list, id, why);
        at += t->token[id].size;
        plain = at;
    }
    good = good && encode_plain(&e, plain, end, list, why);
    free(e.node);
    free(e.heap);
    return good;
}

bool token_list_add(token_list *list, int32_t id, problem *why) {
    if (list->count == list->room) {
        const int64_t room = list->room ? 2 * list->room : 256;
        int32_t *more = realloc(list->id, (size_t)room * sizeof *more);
        if (!more) return refuse(why, "out of memory");
        list->id = more;
        list->room = room;
    }
    list->id[list->count++] = id;
    return true;
}

void token_list_free(token_list *list) {
    free(list->id);
    *list = (token_list){ 0 };
}
