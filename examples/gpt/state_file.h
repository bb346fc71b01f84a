/* SPDX-License-Identifier: Apache-2.0 */
/* A file that holds what memory cannot. */
#ifndef GPT_STATE_FILE_H
#define GPT_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPT_PAGE = 4096 }; /* what places, sizes and addresses are multiples of */

typedef struct gpt_state_file {
    int descriptor;
    bool direct; /* it goes past the page cache */
} gpt_state_file;

/* Makes a file of so many bytes, all of them taken from the disk at once. It loses its name as soon as it is open, so
 * that nothing is left of it whatever ends the program; one that is there already is not touched. Functions that return
 * bool return false with errno. */
bool gpt_state_file_open(gpt_state_file *file, const char *path, int64_t bytes);
bool gpt_state_file_read(const gpt_state_file *file, void *to, size_t bytes, int64_t place);
bool gpt_state_file_write(const gpt_state_file *file, const void *from, size_t bytes, int64_t place);
void gpt_state_file_close(gpt_state_file *file);

#endif
