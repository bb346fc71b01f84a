/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding a tensor, a part at a time. */
#include <stdlib.h>

#include "weights.h"

enum { PART = 1 << 20 }; /* elements: whole blocks of every type */

bool weights_write(trine_queue *queue, const stored *from, trine_dtype type, void *to, problem *why) {
    const storage *s = from->type;
    const size_t size = trine_dtype_size(type);
    int64_t count;
    if (!stored_size(from, &count, NULL)) return refuse(why, "%.*s is out of range", SHOWN(from->name));
    float *part = malloc(PART * sizeof *part);
    uint16_t *narrow = malloc(PART * sizeof *narrow);
    bool good = (part && narrow) || refuse(why, "out of memory");
    for (int64_t i = 0; good && i < count; i += PART) {
        const int64_t n = count - i < PART ? count - i : PART;
        s->decode(from->data + i / s->block * s->bytes, n / s->block, part);
        for (int64_t k = 0; type == TRINE_BF16 && k < n; k++) narrow[k] = storage_bf16(part[k]);
        const void *data = type == TRINE_BF16 ? (const void *)narrow : part;
        good = trine_memory_write(queue, (char *)to + (size_t)i * size, data, (size_t)n * size) == TRINE_OK ||
               refuse(why, "%s", trine_error_message());
    }
    free(part);
    free(narrow);
    return good;
}
