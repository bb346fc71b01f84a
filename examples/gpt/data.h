/* SPDX-License-Identifier: Apache-2.0 */
/* The text to train on: a file, or all sources and documents below a directory. */
#ifndef GPT_DATA_H
#define GPT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpt_data {
    uint8_t *train, *held_out; /* every tenth block of 1024 bytes is held out */
    int64_t train_size, held_out_size;
    int64_t files;
    uint64_t hash; /* of the whole text */
} gpt_data;

/* Reads `path`. Of a directory: files with the extensions of sources and documents, in the order of their names; hidden
 * files, build directories, links, files above 1 MiB and files with NUL bytes are passed over. Fails with a message if
 * a file cannot be read or there is less text than `least` bytes in either part. */
bool gpt_data_load(gpt_data *data, const char *path, int64_t least, char *error_out, size_t error_size);
void gpt_data_free(gpt_data *data);

/* FNV-1a, 64 bits. Start with GPT_HASH_START. */
#define GPT_HASH_START 0xcbf29ce484222325u
uint64_t gpt_hash(uint64_t hash, const void *bytes, size_t size);

/* The whole of a file, to be freed; NULL and errno on failure. Files above `limit` bytes fail with EFBIG. */
uint8_t *gpt_read_file(const char *path, int64_t limit, size_t *size_out);

#endif
