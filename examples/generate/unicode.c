/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates; and classes, by binary search. */
#include "unicode.h"

typedef struct range {
    uint32_t first, last;
} range;

#define LETTERS(first, last) { first, last },
#define NUMBERS(first, last)
#define SPACES(first, last)
static const range letters[] = {
#include "unicode.def"
};
#undef LETTERS
#undef NUMBERS
#define LETTERS(first, last)
#define NUMBERS(first, last) { first, last },
static const range numbers[] = {
#include "unicode.def"
};
#undef NUMBERS
#undef SPACES
#define NUMBERS(first, last)
#define SPACES(first, last) { first, last },
static const range spaces[] = {
#include "unicode.def"
};

size_t unicode_next(const uint8_t *at, size_t left, uint32_t *character_out) {
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const size_t size = at[0] < 0x80   ? 1
                        : at[0] < 0xc0 ? 0
                        : at[0] < 0xe0 ? 2
                        : at[0] < 0xf0 ? 3
                        : at[0] < 0xf8 ? 4
                                       : 0;
    *character_out = UNICODE_INVALID;
    if (size == 0 || size > left) return 1;
    uint32_t c = size == 1 ? at[0] : at[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if (at[i] >> 6 != 2) return 1;
        c = c << 6 | (at[i] & 63);
    }
    if (c < least[size] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 1;
    *character_out = c;
    return size;
}

size_t unicode_put(uint32_t c, uint8_t *out) {
    const size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; c >>= 6) out[i] = (uint8_t)(0x80 | (c & 63));
    out[0] = (uint8_t)(size == 1 ? c : (0xf00u >> size & 0xff) | c);
    return size;
}

static bool among(const range *table, size_t count, uint32_t c) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (table[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && table[low].first <= c;
}

character_class unicode_class(uint32_t c) {
    if (among(letters, sizeof letters / sizeof letters[0], c)) return LETTER;
    if (among(numbers, sizeof numbers / sizeof numbers[0], c)) return NUMBER;
    return among(spaces, sizeof spaces / sizeof spaces[0], c) ? SPACE : OTHER;
}
