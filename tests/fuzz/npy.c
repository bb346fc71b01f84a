/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: a .npy file of any bytes, read and converted to every element type. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/npy.h"

static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void remove_file(void) { unlink(path); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    snprintf(path, sizeof path, "%s/trine-fuzz-npy-%ld", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (long)getpid());
    atexit(remove_file);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const trine_dtype types[] = { TRINE_I8,  TRINE_I32, TRINE_I64,  TRINE_U8,   TRINE_U32,      TRINE_F16,
                                         TRINE_F32, TRINE_F64, TRINE_BF16, TRINE_E4M3, TRINE_E5M2FNUZ, TRINE_E8M0 };
    char error[512] = "";
    npy n;
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
    if (!npy_read(path, &n, error, sizeof error)) {
        if (error[0] == 0) abort();
        return 0;
    }
    if (n.count < 0 || n.rank < 0 || n.rank > TRINE_MAX_RANK) abort();
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int row_major = 0; row_major <= 1; row_major++) {
            void *out = malloc((size_t)n.count * trine_dtype_size(types[i]) + 1);
            error[0] = 0;
            if (out != NULL && !npy_convert(&n, types[i], row_major != 0, out, error, sizeof error) && error[0] == 0)
                abort();
            free(out);
        }
    npy_free(&n);
    return 0;
}
