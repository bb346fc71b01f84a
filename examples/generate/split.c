/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of cutting. Models name theirs by a regular expression or by a list of steps; each is a function here, that
 * says how long the first piece of a text is. */
#include <string.h>

#include "split.h"
#include "unicode.h"

/* A text and what is at its beginning. */
typedef struct view {
    const uint8_t *at, *end;
    uint32_t character;
    size_t size; /* of the character, 0 at the end */
    character_class kind;
} view;

static view view_of(const uint8_t *at, const uint8_t *end) {
    view v = { .at = at, .end = end };
    if (at == end) return v;
    v.size = unicode_next(at, (size_t)(end - at), &v.character);
    v.kind = unicode_class(v.character);
    return v;
}

static view after(const view *v) { return view_of(v->at + v->size, v->end); }

static bool is_newline(const view *v) { return v->size > 0 && (v->character == '\n' || v->character == '\r'); }

/* Where a run of one class ends. */
static const uint8_t *run(view v, character_class kind) {
    while (v.size > 0 && v.kind == kind) v = after(&v);
    return v.at;
}

/* 's, 't, 'm, 'd, 're, 've, 'll: bytes of it, 0 for none. */
static size_t contraction(const view *v, bool any_case) {
    static const char *const endings[] = { "s", "t", "m", "d", "re", "ve", "ll" };
    if (v->size == 0 || v->character != '\'') return 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t n = strlen(endings[i]);
        size_t same = 0;
        while (same < n && v->at + 1 + same < v->end &&
               (any_case ? v->at[1 + same] | 32 : v->at[1 + same]) == (uint8_t)endings[i][same])
            same++;
        if (same == n) return 1 + n;
    }
    return 0;
}

/* \s+(?!\S)|\s+ : a run of spaces, but for its last one where more text follows. */
static const uint8_t *spaces(view v) {
    const uint8_t *last = v.at, *first_end = v.at + v.size;
    while (v.size > 0 && v.kind == SPACE) {
        last = v.at;
        v = after(&v);
    }
    return v.size == 0 ? v.at : last < first_end ? first_end : last;
}

/* Each number by itself, and what is between. */
static const uint8_t *digits(view v) {
    if (v.kind == NUMBER) return v.at + v.size;
    while (v.size > 0 && v.kind != NUMBER) v = after(&v);
    return v.at;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static const uint8_t *words_gpt2(view v) {
    const size_t short_form = contraction(&v, false);
    if (short_form) return v.at + short_form;
    const view second = after(&v);
    if (v.character == ' ' && second.size > 0 && second.kind != SPACE) return run(second, second.kind);
    return v.kind == SPACE ? spaces(v) : run(v, v.kind);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)
 * |\s+ */
static const uint8_t *words_llama3(view v) {
    const size_t short_form = contraction(&v, true);
    if (short_form) return v.at + short_form;
    const view second = after(&v);
    if (v.kind == LETTER) return run(v, LETTER);
    if (v.kind != NUMBER && !is_newline(&v) && second.size > 0 && second.kind == LETTER) return run(second, LETTER);
    if (v.kind == NUMBER) {
        for (int i = 0; i < 3 && v.size > 0 && v.kind == NUMBER; i++) v = after(&v);
        return v.at;
    }
    const bool spaced = v.character == ' ' && second.size > 0 && second.kind == OTHER;
    if (v.kind == OTHER || spaced) {
        view rest = v.kind == OTHER ? v : second;
        const uint8_t *end = run(rest, OTHER);
        for (rest = view_of(end, v.end); is_newline(&rest);) rest = after(&rest);
        return rest.at;
    }
    const uint8_t *newline = NULL;
    for (view w = v; w.size > 0 && w.kind == SPACE; w = after(&w))
        if (is_newline(&w)) newline = w.at + w.size;
    return newline ? newline : spaces(v);
}

/* The second pass cuts the pieces of the first, as if each were a text of its own. */
struct split_kind {
    const char *name;
    const uint8_t *(*pass[2])(view);
    bool whole, begun;
};

static const split_kind kinds[] = {
    { "default", { words_gpt2 } },
    { "gpt-2", { words_gpt2 } },
    { "smollm", { digits, words_gpt2 } },
    { "llama-bpe", { words_llama3 }, .whole = true, .begun = true },
    { "llama3", { words_llama3 }, .whole = true, .begun = true },
    { "llama-v3", { words_llama3 }, .whole = true, .begun = true },
};

const split_kind *split_kind_named(slice name) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (slice_is(name, kinds[i].name)) return &kinds[i];
    return NULL;
}

bool split_kind_whole(const split_kind *kind) { return kind->whole; }

bool split_kind_begun(const split_kind *kind) { return kind->begun; }

split split_begin(const split_kind *kind, slice text) {
    const uint8_t *at = (const uint8_t *)text.bytes;
    return (split){ kind, at, at, at + text.size };
}

bool split_next(split *s, slice *piece_out) {
    if (s->at == s->end) return false;
    if (s->at == s->stop) s->stop = s->kind->pass[1] ? s->kind->pass[0](view_of(s->at, s->end)) : s->end;
    const uint8_t *start = s->at;
    s->at = s->kind->pass[s->kind->pass[1] != NULL](view_of(start, s->stop));
    *piece_out = (slice){ (const char *)start, (size_t)(s->at - start) };
    return true;
}
