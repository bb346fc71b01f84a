/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options as a table: what they are called, what they set, what --help says. */
#ifndef TRINE_TOOLS_OPTIONS_H
#define TRINE_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_END,
    OPTION_FLAG_KIND,
    OPTION_TEXT_KIND,
    OPTION_MAYBE_KIND,
    OPTION_INTEGER_KIND,
    OPTION_NUMBER_KIND
} option_kind;

typedef struct option_row {
    option_kind kind;
    const char *name;     /* without the dashes */
    void *value;          /* bool, const char *, int64_t or double, by kind */
    double min, max;      /* of a number, inclusive */
    const char *argument; /* what --help calls it */
    const char *help;
} option_row;

#define OPTION_FLAG(name, value, help) { OPTION_FLAG_KIND, name, (bool *){ value }, 0, 0, 0, help }
#define OPTION_TEXT(name, value, argument, help) \
    { OPTION_TEXT_KIND, name, (const char **){ value }, 0, 0, argument, help }
/* The argument may be left out: then `value` becomes "-". */
#define OPTION_MAYBE(name, value, argument, help) \
    { OPTION_MAYBE_KIND, name, (const char **){ value }, 0, 0, argument, help }
#define OPTION_INTEGER(name, value, min, max, argument, help) \
    { OPTION_INTEGER_KIND, name, (int64_t *){ value }, min, max, argument, help }
#define OPTION_NUMBER(name, value, min, max, argument, help) \
    { OPTION_NUMBER_KIND, name, (double *){ value }, min, max, argument, help }

/* A command's options; `usage` is its first line of help, "trine run OP [options]", `about` one sentence. */
typedef struct option_set {
    const char *usage;
    const char *about;
    const option_row *rows;
} option_set;

enum { OPTIONS_HELP = -1, OPTIONS_WRONG = -2 };

/* Reads argv[1..]: sets what the options name, and gathers at most `most` other words in `words_out`. Returns their
 * number; OPTIONS_HELP after --help, which it prints; OPTIONS_WRONG after a message on stderr.
 * "--" ends the options. */
int options_parse(const option_set *set, int argc, char **argv, const char **words_out, int most);

/* The exit status for OPTIONS_HELP and OPTIONS_WRONG: 0 and 2. */
static inline int options_status(int result) { return result == OPTIONS_HELP ? 0 : 2; }

/* Reports a mistake in the command line as "trine: ...", with a pointer to `command` --help, and returns the exit
 * status for it, 2. */
int usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports a failure as "trine: ..." and returns the exit status for it, 1. */
int failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The name of the list nearest to `name`, NULL if none is near; a list ends with NULL. */
const char *nearest_name(const char *name, const char *const *list);

/* The value of a decimal number in [min, max]; false if `text` is anything else. */
bool parse_integer(const char *text, int64_t min, int64_t max, int64_t *value_out);
bool parse_number(const char *text, double min, double max, double *value_out);

#endif
