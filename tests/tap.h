/* SPDX-License-Identifier: Apache-2.0 */
/* Test programs without Criterion, which neither ThreadSanitizer nor fork() goes with: the Test Anything Protocol. */
#ifndef TRINE_TESTS_TAP_H
#define TRINE_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_count, tap_failures;

__attribute__((format(printf, 2, 3))) static inline bool tap(bool good, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s %d - ", good ? "ok" : "not ok", ++tap_count);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
    tap_failures += !good;
    return good;
}

/* Prints the plan, and returns the exit status. */
static inline int tap_end(void) {
    printf("1..%d\n", tap_count);
    return tap_failures != 0;
}

static inline int tap_skip_all(const char *reason) {
    printf("1..0 # SKIP %s\n", reason);
    return 0;
}

#endif
