/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, with a point before the fraction whatever locale the program has chosen: tables, caches, options,
 * JSON and messages are read and written through these. They behave as the functions of <stdlib.h> and <stdio.h> do in
 * the locale "C", and leave the program's locale alone. */
#ifndef TRINE_NUMBER_H
#define TRINE_NUMBER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

double trine_strtod(const char *text, char **end_out);
float trine_strtof(const char *text, char **end_out);

int trine_vsnprintf(char *out, size_t size, const char *format, va_list list) __attribute__((format(printf, 3, 0)));
int trine_snprintf(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int trine_fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
