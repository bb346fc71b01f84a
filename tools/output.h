/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the command writes: a regular one takes its name once it is whole, so that what had the name before is
 * never lost to a half-written one. */
#ifndef TRINE_TOOLS_OUTPUT_H
#define TRINE_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct output {
    const char *path; /* as the user wrote it */
    /* a regular file, links followed, and the file beside it that is written; NULL: `path` is written directly */
    char *target, *temporary;
    FILE *file; /* NULL: not open */
} output;

/* Opens an output. "-" and /dev/stdout are standard output; a pipe or a device is written directly; a regular file is
 * written beside its place, under another name, which a signal that ends the process removes. False, with the reason in
 * `error`, if there could be no such file. */
bool output_open(output *o, const char *path, char *error, size_t error_size);
/* Is it standard output, where other text is then out of place? */
bool output_is_stdout(const output *o);
/* Ends writing; a regular file still has its other name. False, with the reason in `error`, if not all was written. */
bool output_finish(output *o, char *error, size_t error_size);
/* Gives a finished file its name. */
bool output_commit(output *o, char *error, size_t error_size);
/* Closes what is open, and removes a file that was not committed. */
void output_discard(output *o);

#endif
