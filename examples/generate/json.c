/* SPDX-License-Identifier: Apache-2.0 */
/* The parser makes nodes in the order of the text. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "unicode.h"

enum { DEPTH = 64 };

typedef struct parser {
    json *j;
    const char *start, *at, *end;
    problem *why;
} parser;

static bool wrong(parser *p, const char *what) {
    return refuse(p->why, "not JSON: %s at byte %zu", what, (size_t)(p->at - p->start));
}

static void skip_space(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t')) p->at++;
}

static bool next_is(parser *p, char c) {
    skip_space(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* Adds a node, whose place is told; -1 without memory. */
static int32_t add_node(parser *p, json_type type) {
    json *j = p->j;
    if (j->nodes == j->room) {
        const int64_t room = j->room ? 2 * (int64_t)j->room : 1024;
        json_node *more = room <= INT_MAX ? realloc(j->node, (size_t)room * sizeof *more) : NULL;
        if (!more) return refuse(p->why, "out of memory"), -1;
        j->node = more;
        j->room = (int32_t)room;
    }
    j->node[j->nodes] = (json_node){ .type = type, .after = j->nodes + 1 };
    return j->nodes++;
}

/* ---------------------------------------------------------------------------------------------------------- strings */

static bool hex4(parser *p, uint32_t *out) {
    *out = 0;
    if (p->end - p->at < 4) return wrong(p, "an escape ends early");
    for (int i = 0; i < 4; i++) {
        const char c = *p->at++;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return wrong(p, "an escape has no number");
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* \uXXXX, or two of them for a character beyond 16 bits. Half of such a pair alone becomes U+FFFD. */
static bool unicode_escape(parser *p, uint32_t *out) {
    uint32_t low;
    if (!hex4(p, out)) return false;
    if (*out >> 11 != 27) return true; /* no surrogate */
    const char *second = p->at;
    if (*out < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
        p->at += 2;
        if (!hex4(p, &low)) return false;
        if (low >> 10 == 55) {
            *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
            return true;
        }
    }
    p->at = second;
    *out = 0xfffd;
    return true;
}

static bool escape(parser *p) {
    static const char name[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
    json *j = p->j;
    if (p->at == p->end) return wrong(p, "a string has no end");
    const char c = *p->at++;
    const char *known = c ? strchr(name, c) : NULL;
    uint32_t character;
    if (known) {
        j->unescaped[j->unescaped_size++] = value[known - name];
        return true;
    }
    if (c != 'u') return wrong(p, "an unknown escape");
    if (!unicode_escape(p, &character)) return false;
    j->unescaped_size += unicode_put(character, (uint8_t *)j->unescaped + j->unescaped_size);
    return true;
}

/* From after the first quotation mark on. What an escape stands for is shorter than it, so that a copy of the text has
 * room for all. */
static bool parse_string(parser *p) {
    json *j = p->j;
    const int32_t node = add_node(p, JSON_STRING);
    if (node < 0) return false;
    const char *start = p->at;
    const size_t copy = j->unescaped_size;
    bool escaped = false;
    for (; p->at < p->end && *p->at != '"';) {
        const char c = *p->at++;
        if ((unsigned char)c < ' ') return wrong(p, "a string has a control character");
        if (c == '\\' && !escaped) {
            escaped = true;
            memcpy(j->unescaped + copy, start, (size_t)(p->at - 1 - start));
            j->unescaped_size += (size_t)(p->at - 1 - start);
        }
        if (c != '\\' && escaped) j->unescaped[j->unescaped_size++] = c;
        if (c == '\\' && !escape(p)) return false;
    }
    if (p->at == p->end) return wrong(p, "a string has no end");
    j->node[node].text =
        escaped ? (slice){ j->unescaped + copy, j->unescaped_size - copy } : (slice){ start, (size_t)(p->at - start) };
    p->at++;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- values */

static bool parse_value(parser *p, int depth);

static bool parse_members(parser *p, int32_t node, char close, int depth) {
    if (depth == 0) return wrong(p, "too many arrays within arrays");
    for (bool first = true; !next_is(p, close); first = false) {
        if (!first && !next_is(p, ',')) return wrong(p, "a comma is missing");
        if (close == '}') {
            if (!next_is(p, '"') || !parse_string(p)) return wrong(p, "a name is missing");
            if (!next_is(p, ':')) return wrong(p, "a colon is missing");
        }
        if (!parse_value(p, depth - 1)) return false;
    }
    p->j->node[node].after = p->j->nodes;
    return true;
}

static bool parse_word(parser *p) {
    static const struct {
        const char *word;
        json_type type;
    } words[] = { { "null", JSON_NULL }, { "false", JSON_FALSE }, { "true", JSON_TRUE } };
    const char *start = p->at;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i].word);
        if ((size_t)(p->end - p->at) < n || memcmp(p->at, words[i].word, n) != 0) continue;
        p->at += n;
        return add_node(p, words[i].type) >= 0;
    }
    while (p->at < p->end && *p->at && strchr("+-.0123456789eE", *p->at)) p->at++;
    if (p->at == start) return wrong(p, "a value is missing");
    const int32_t node = add_node(p, JSON_NUMBER);
    if (node >= 0) p->j->node[node].text = (slice){ start, (size_t)(p->at - start) };
    return node >= 0;
}

static bool parse_value(parser *p, int depth) {
    if (next_is(p, '"')) return parse_string(p);
    const bool object = next_is(p, '{');
    if (!object && !next_is(p, '[')) return parse_word(p);
    const int32_t node = add_node(p, object ? JSON_OBJECT : JSON_ARRAY);
    return node >= 0 && parse_members(p, node, object ? '}' : ']', depth);
}

bool json_parse(json *j, slice text, problem *why) {
    *j = (json){ .unescaped = malloc(text.size + 1) };
    parser p = { j, text.bytes, text.bytes, text.bytes + text.size, why };
    bool good = j->unescaped ? parse_value(&p, DEPTH) : refuse(why, "out of memory");
    skip_space(&p);
    if (good && p.at != p.end) good = wrong(&p, "something follows the end");
    if (!good) json_free(j);
    return good;
}

void json_free(json *j) {
    free(j->node);
    free(j->unescaped);
    *j = (json){ 0 };
}

/* ---------------------------------------------------------------------------------------------------------- reading */

int32_t json_member(const json *j, int32_t object, const char *name) {
    if (object < 0 || object >= j->nodes || j->node[object].type != JSON_OBJECT) return -1;
    const slice wanted = slice_of(name);
    for (int32_t i = object + 1; i < j->node[object].after; i = j->node[i + 1].after)
        if (slice_same(j->node[i].text, wanted)) return j->node[i + 1].type == JSON_NULL ? -1 : i + 1;
    return -1;
}

/* digits, a fraction, an exponent: as a power of ten times up to 18 digits, which doubles hold to 1e-15. */
static bool number_of(slice s, double *out) {
    if (s.size > 400) return false;
    const char *at = s.bytes, *end = at + s.size;
    const bool negative = at < end && *at == '-';
    double value = 0;
    int digits = 0, power = 0, exponent = 0;
    bool point = false;
    for (at += negative; at < end && ((*at >= '0' && *at <= '9') || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        if (digits < 18) value = value * 10 + (*at - '0');
        power += (digits >= 18) - point;
        digits += digits > 0 || *at != '0' ? 1 : 0;
    }
    if (at == s.bytes + negative) return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        const bool less = ++at < end && *at == '-';
        at += at < end && (*at == '-' || *at == '+');
        if (at == end) return false;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            exponent = exponent < 10000 ? exponent * 10 + *at - '0' : exponent;
        power += less ? -exponent : exponent;
    }
    *out = (negative ? -value : value) * pow(10, power);
    return at == end;
}

bool json_index(const json *j, int32_t node, uint64_t *out) {
    const slice s = j->node[node].text;
    *out = 0;
    if (j->node[node].type != JSON_NUMBER || s.size > 18) return false;
    for (size_t i = 0; i < s.size; i++) {
        if (s.bytes[i] < '0' || s.bytes[i] > '9') return false;
        *out = *out * 10 + (uint64_t)(s.bytes[i] - '0');
    }
    return true;
}

static bool wrong_type(const char *name, problem *why) {
    return refuse(why, "%s is not of the type it should be", name);
}

bool json_whole(const json *j, int32_t object, const char *name, int64_t *out, problem *why) {
    const int32_t node = json_member(j, object, name);
    uint64_t value;
    if (node < 0) return true;
    if (!json_index(j, node, &value)) return wrong_type(name, why);
    *out = (int64_t)value;
    return true;
}

bool json_number(const json *j, int32_t object, const char *name, double *out, problem *why) {
    const int32_t node = json_member(j, object, name);
    if (node < 0) return true;
    return (j->node[node].type == JSON_NUMBER && number_of(j->node[node].text, out)) || wrong_type(name, why);
}

bool json_text(const json *j, int32_t object, const char *name, slice *out, problem *why) {
    const int32_t node = json_member(j, object, name);
    if (node < 0) return true;
    if (j->node[node].type != JSON_STRING) return wrong_type(name, why);
    *out = j->node[node].text;
    return true;
}

bool json_flag(const json *j, int32_t object, const char *name, bool *out, problem *why) {
    const int32_t node = json_member(j, object, name);
    if (node < 0) return true;
    if (j->node[node].type != JSON_TRUE && j->node[node].type != JSON_FALSE) return wrong_type(name, why);
    *out = j->node[node].type == JSON_TRUE;
    return true;
}
