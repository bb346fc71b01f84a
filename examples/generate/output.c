/* SPDX-License-Identifier: Apache-2.0 */
/* Holding back the beginning of a character until its end has come. */
#include "output.h"
#include "unicode.h"

/* Whether more bytes could make a character of these, which are none yet. */
static bool may_grow(const uint8_t *at, size_t size) {
    static const uint8_t fill[4] = { 0x80, 0x80, 0x80, 0x80 }, high[4] = { 0xbf, 0xbf, 0xbf, 0xbf };
    uint8_t whole[4];
    uint32_t c;
    for (int top = 0; top < 2; top++) {
        for (size_t i = 0; i < 4; i++) whole[i] = i < size ? at[i] : top ? high[i] : fill[i];
        if (unicode_next(whole, 4, &c) > size) return true;
    }
    return false;
}

static void put(output *o, const uint8_t *at, size_t size) {
    uint32_t c;
    uint8_t bytes[4];
    unicode_next(at, size, &c);
    const size_t n = unicode_put(c == UNICODE_INVALID ? 0xfffd : c, bytes);
    fwrite(bytes, 1, n, o->file);
}

/* Prints the characters of what is held, but for a beginning of one, unless it is the end. */
static void drain(output *o, bool end) {
    size_t at = 0;
    while (at < o->holds) {
        uint32_t c;
        const size_t size = unicode_next(o->held + at, o->holds - at, &c);
        if (c == UNICODE_INVALID && !end && may_grow(o->held + at, o->holds - at)) break;
        put(o, o->held + at, size);
        at += size;
    }
    for (size_t i = at; i < o->holds; i++) o->held[i - at] = o->held[i];
    o->holds -= at;
}

void output_add(output *o, slice text) {
    for (size_t i = 0; i < text.size; i++) {
        o->held[o->holds++] = (uint8_t)text.bytes[i];
        drain(o, false);
    }
    fflush(o->file);
}

void output_end(output *o) {
    drain(o, true);
    fflush(o->file);
}
