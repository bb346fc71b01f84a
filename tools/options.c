/* SPDX-License-Identifier: Apache-2.0 */
/* Reads command lines by option tables; reports mistakes with the nearest name. */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/dispatch.h"
#include "spec/number.h"

int usage_error(const char *command, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("trine: ", stderr);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\nTry \"trine%s%s --help\".\n", *command ? " " : "", command);
    return 2;
}

int failure(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("trine: ", stderr);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return 1;
}

const char *nearest_name(const char *name, const char *const *list) {
    const char *best = NULL;
    int least = (int)strlen(name) / 3 + 2;
    for (; list && *list; list++) {
        const int d = trine_word_distance(name, strlen(name), *list, strlen(*list));
        if (d < least) {
            least = d;
            best = *list;
        }
    }
    return best;
}

bool parse_integer(const char *text, int64_t min, int64_t max, int64_t *value_out) {
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < min || value > max) return false;
    *value_out = value;
    return true;
}

bool parse_number(const char *text, double min, double max, double *value_out) {
    char *end;
    const double value = trine_strtod(text, &end);
    if (end == text || *end || !(value >= min && value <= max)) return false;
    *value_out = value;
    return true;
}

static void help(const option_set *set) {
    printf("usage: %s\n%s\n\noptions:\n", set->usage, set->about);
    for (const option_row *row = set->rows; row->kind != OPTION_END; row++) {
        char left[80];
        const char *format = row->argument == NULL ? "--%s" : row->kind == OPTION_MAYBE_KIND ? "--%s [%s]" : "--%s %s";
        snprintf(left, sizeof left, format, row->name, row->argument);
        printf("  %-24s  %s\n", left, row->help);
    }
    printf("  %-24s  %s\n", "--help", "print this and exit");
}

static const option_row *find_row(const option_set *set, const char *name) {
    for (const option_row *row = set->rows; row->kind != OPTION_END; row++)
        if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

/* The subcommand in a usage line "trine run OP [options]": "run". */
static const char *command_of(const option_set *set, char *name, size_t size) {
    const char *space = strchr(set->usage, ' ');
    const size_t length = space ? strcspn(space + 1, " ") : 0;
    snprintf(name, size, "%.*s", (int)length, space ? space + 1 : "");
    return name;
}

static int unknown(const option_set *set, const char *command, const char *name) {
    const char *names[128];
    int count = 0;
    for (const option_row *row = set->rows; row->kind != OPTION_END && count < 100; row++) names[count++] = row->name;
    names[count++] = "help";
    names[count] = NULL;
    const char *near = nearest_name(name, names);
    if (near == NULL)
        usage_error(command, "unknown option --%s", name);
    else
        usage_error(command, "unknown option --%s; did you mean --%s?", name, near);
    return OPTIONS_WRONG;
}

static int64_t integer_limit(double limit) { return limit >= 0x1p63 ? INT64_MAX : (int64_t)limit; }

static int set_value(const option_row *row, const char *command, const char *value) {
    switch (row->kind) {
    case OPTION_TEXT_KIND:
    case OPTION_MAYBE_KIND: *(const char **)row->value = value; return 0;
    case OPTION_INTEGER_KIND:
        if (parse_integer(value, integer_limit(row->min), integer_limit(row->max), row->value)) return 0;
        usage_error(command, "--%s %s: not an integer from %" PRId64 " to %" PRId64, row->name, value,
                    integer_limit(row->min), integer_limit(row->max));
        return OPTIONS_WRONG;
    default:
        if (parse_number(value, row->min, row->max, row->value)) return 0;
        usage_error(command, "--%s %s: not a number from %g to %g", row->name, value, row->min, row->max);
        return OPTIONS_WRONG;
    }
}

/* Takes the option at argv[*at]; moves *at to its last word. */
static int take(const option_set *set, const char *command, int argc, char **argv, int *at) {
    char name[64];
    const char *word = argv[*at] + 2;
    const size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;
    if (length >= sizeof name) return unknown(set, command, word);
    memcpy(name, word, length);
    name[length] = 0;
    const option_row *row = find_row(set, name);
    if (row && row->kind == OPTION_FLAG_KIND) {
        if (value) {
            usage_error(command, "--%s takes no argument", name);
            return OPTIONS_WRONG;
        }
        *(bool *)row->value = true;
        return 0;
    }
    const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
    if (row && row->kind == OPTION_MAYBE_KIND && value == NULL && (next == NULL || (next[0] == '-' && next[1]))) {
        *(const char **)row->value = "-";
        return 0;
    }
    if (row == NULL) return unknown(set, command, name);
    if (value == NULL && next == NULL) {
        usage_error(command, "--%s needs an argument", name);
        return OPTIONS_WRONG;
    }
    if (value == NULL) {
        value = next;
        ++*at;
    }
    return set_value(row, command, value);
}

int options_parse(const option_set *set, int argc, char **argv, const char **words_out, int most) {
    char command[32];
    command_of(set, command, sizeof command);
    int words = 0;
    bool ended = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (!ended && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            help(set);
            return OPTIONS_HELP;
        } else if (!ended && strncmp(word, "--", 2) == 0) {
            if (take(set, command, argc, argv, &i) < 0) return OPTIONS_WRONG;
        } else if (!ended && word[0] == '-' && word[1]) {
            usage_error(command, "unknown option %s", word);
            return OPTIONS_WRONG;
        } else if (words == most) {
            usage_error(command, "unexpected argument \"%s\"", word);
            return OPTIONS_WRONG;
        } else {
            words_out[words++] = word;
        }
    }
    return words;
}
