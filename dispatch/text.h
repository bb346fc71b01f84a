/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows as far as its storage reaches. */
#ifndef TRINE_DISPATCH_TEXT_H
#define TRINE_DISPATCH_TEXT_H

#include <stdarg.h>
#include <stdio.h>

#include "spec/number.h"

typedef struct text {
    char *storage;
    size_t size, used; /* used >= size: cut off */
} text;

static inline text text_begin(char *storage, size_t size) {
    if (size > 0) storage[0] = 0;
    return (text){ storage, size, 0 };
}

__attribute__((format(printf, 2, 3))) static inline void text_add(text *t, const char *format, ...) {
    if (t->used >= t->size) return;
    va_list arguments;
    va_start(arguments, format);
    const int length = trine_vsnprintf(t->storage + t->used, t->size - t->used, format, arguments);
    va_end(arguments);
    t->used = length < 0 ? t->size : t->used + (size_t)length;
}

/* What stands between two words. */
static inline const char *text_gap(const text *t, const char *gap) { return t->used > 0 ? gap : ""; }

#endif
