/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: a checkpoint of any bytes, as it is and with its checksum made right, so that what lies behind that is
 * reached. What is accepted is written back as the very same bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/gpt/checkpoint.h"
#include "examples/gpt/data.h"

static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void remove_file(void) { unlink(path); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    snprintf(path, sizeof path, "%s/trine-fuzz-checkpoint-%ld", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (long)getpid());
    atexit(remove_file);
    return 0;
}

static void parse(const uint8_t *bytes, size_t size) {
    gpt_checkpoint c;
    char error[256] = "";
    if (!gpt_checkpoint_parse(&c, bytes, size, error, sizeof error)) {
        if (error[0] == 0 || c.state != NULL || c.history.train != NULL) abort();
        return;
    }
    size_t written;
    if (!gpt_checkpoint_save(&c, path, error, sizeof error)) abort();
    uint8_t *again = gpt_read_file(path, 1 << 30, &written);
    if (again == NULL || written != size || memcmp(again, bytes, size) != 0) abort();
    free(again);
    gpt_checkpoint_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse(data, size);
    if (size < 8) return 0;
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) return 0;
    memcpy(bytes, data, size);
    uint64_t hash = gpt_hash(GPT_HASH_START, bytes, size - 8);
    for (int i = 0; i < 8; i++, hash >>= 8) bytes[size - 8 + (size_t)i] = (uint8_t)hash;
    parse(bytes, size);
    free(bytes);
    return 0;
}
