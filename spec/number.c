/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text in the locale "C", which a thread takes for the time of one conversion. */
#include "number.h"

#include <locale.h>
#include <stdlib.h>

/* The C library's own object, made without memory: never freed, and the same in all threads. */
static locale_t plain(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double trine_strtod(const char *text, char **end_out) { return strtod_l(text, end_out, plain()); }
float trine_strtof(const char *text, char **end_out) { return strtof_l(text, end_out, plain()); }

int trine_vsnprintf(char *out, size_t size, const char *format, va_list list) {
    const locale_t before = uselocale(plain());
    const int length = vsnprintf(out, size, format, list);
    uselocale(before);
    return length;
}

int trine_snprintf(char *out, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int length = trine_vsnprintf(out, size, format, list);
    va_end(list);
    return length;
}

int trine_fprintf(FILE *file, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const locale_t before = uselocale(plain());
    const int length = vfprintf(file, format, list);
    uselocale(before);
    va_end(list);
    return length;
}
