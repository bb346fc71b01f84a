/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: a vocabulary and a text of any bytes. The first byte says how texts are cut and how many lines are merges,
 * a left and a right token with a space between; the rest is the text. Its tokens spell the text again, and are those
 * of merging the slow way. */
#include <stdlib.h>
#include <string.h>

#include "examples/generate/tokenizer_parts.h"
#include "examples/generate/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MERGES = 64 };

/* A letter of the byte alphabet for each byte, in the order of bytes. */
static size_t letter(int byte, uint8_t *out) {
    const bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    static int rank[256];
    int next = 256;
    for (int i = 0; i < 256 && rank[255] == 0; i++) rank[i] = (i > 32 && i < 127) || (i > 160 && i != 173) ? i : next++;
    return unicode_put((uint32_t)(prints ? byte : rank[byte]), out);
}

static bool make_vocabulary(tokenizer *t, const split_kind *kind, const slice *pair, int pairs) {
    problem why = { 0 };
    if (!tokenizer_open(t, kind, 256 + MERGES + 1, MERGES, 1 << 16, &why)) abort();
    for (int i = 0; i < 256; i++) {
        uint8_t spelled[4];
        const size_t n = letter(i, spelled);
        if (!tokenizer_add(t, (slice){ (const char *)spelled, n }, TOKEN_TEXT, &why)) abort();
        if (t->of_byte[i] != i) abort();
    }
    for (int i = 0; i < pairs; i++) {
        uint8_t both[128];
        memcpy(both, pair[2 * i].bytes, pair[2 * i].size);
        if (pair[2 * i + 1].size > 0) memcpy(both + pair[2 * i].size, pair[2 * i + 1].bytes, pair[2 * i + 1].size);
        const slice sum = { (const char *)both, pair[2 * i].size + pair[2 * i + 1].size };
        if (!tokenizer_add(t, sum, TOKEN_TEXT, &why)) abort();
    }
    if (!tokenizer_add(t, slice_of("<|x|>"), TOKEN_USER, &why) || !tokenizer_add_end(t, &why)) abort();
    for (int i = 0; i < pairs; i++) {
        why.text[0] = 0;
        if (!tokenizer_merge(t, pair[2 * i], pair[2 * i + 1], &why) && why.text[0] == 0) abort();
    }
    return true;
}

/* The tokens of a piece by looking for the first pair of the least rank, again and again. */
static int64_t merge_slowly(const tokenizer *t, slice piece, int32_t *id) {
    int64_t count = (int64_t)piece.size;
    const int32_t whole = t->whole ? token_of(t, piece) : -1;
    if (whole >= 0) return *id = whole, 1;
    for (int64_t i = 0; i < count; i++) id[i] = t->of_byte[(uint8_t)piece.bytes[i]];
    for (;;) {
        const merge *best = NULL;
        int64_t at = 0;
        for (int64_t i = 0; i + 1 < count; i++) {
            const merge *m = merge_of(t, id[i], id[i + 1]);
            if (m && (!best || m->rank < best->rank)) best = m, at = i;
        }
        if (!best) return count;
        id[at] = best->sum;
        memmove(id + at + 1, id + at + 2, (size_t)(count - at - 2) * sizeof *id);
        count--;
    }
}

static void check(const tokenizer *t, slice text) {
    token_list list = { 0 };
    problem why = { 0 };
    if (!tokenizer_encode(t, text, false, &list, &why)) abort();
    size_t at = 0;
    for (int64_t i = 0; i < list.count; i++) {
        const slice s = tokenizer_text(t, list.id[i]);
        if (s.size > text.size - at || memcmp(text.bytes + at, s.bytes, s.size) != 0) abort();
        at += s.size;
    }
    if (at != text.size) abort();
    int32_t *slow = malloc((text.size + 1) * sizeof *slow);
    int64_t count = 0;
    split s = split_begin(t->kind, text);
    for (slice piece; slow && split_next(&s, &piece);) {
        if (piece.size == 0) abort();
        count += merge_slowly(t, piece, slow + count);
    }
    const bool special = text.size > 0 && memmem(text.bytes, text.size, "<|x|>", 5) != NULL;
    if (slow && count > 0 && !special &&
        (count != list.count || memcmp(slow, list.id, (size_t)count * sizeof *slow) != 0))
        abort();
    free(slow);
    token_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const kinds[] = { "smollm", "gpt-2", "llama-bpe" };
    slice pair[2 * MERGES];
    int pairs = 0;
    if (size < 1 || size > 4096) return 0;
    const char *at = (const char *)data + 1, *end = (const char *)data + size;
    for (int wanted = data[0] / 3; pairs < wanted && pairs < MERGES; pairs++) {
        const char *line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL,
                   *space = line ? memchr(at, ' ', (size_t)(line - at)) : NULL;
        if (!space || space - at > 60 || line - space > 60) break;
        pair[2 * pairs] = (slice){ at, (size_t)(space - at) };
        pair[2 * pairs + 1] = (slice){ space + 1, (size_t)(line - space - 1) };
        at = line + 1;
    }
    tokenizer t;
    make_vocabulary(&t, split_kind_named(slice_of(kinds[data[0] % 3])), pair, pairs);
    check(&t, (slice){ at, (size_t)(end - at) });
    tokenizer_free(&t);
    return 0;
}
