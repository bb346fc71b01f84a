/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors to device memory, a part at a time: decoded, or taken apart. */
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

static int64_t groups_of(const matrix *m) { return m->rows * (m->columns / m->packing->group); }

size_t matrix_code_bytes(const matrix *m) {
    return (size_t)(groups_of(m) * (m->packing->group * m->packing->bits / 8));
}

size_t matrix_scale_bytes(const matrix *m) { return (size_t)groups_of(m) * (m->packing->wide ? 4 : 2); }

bool matrix_write(trine_queue *queue, const stored *from, const matrix *to, int64_t first, problem *why) {
    const storage *s = from->type;
    const packing *p = to->packing;
    const int64_t size = p->wide ? 4 : 2, group_bytes = p->group * p->bits / 8;
    int64_t count;
    if (!stored_size(from, &count, NULL)) return refuse(why, "%.*s is out of range", SHOWN(from->name));
    const size_t most = PART / (size_t)p->group;
    uint8_t *codes = malloc(most * (size_t)group_bytes), *scales = malloc(most * (size_t)size),
            *mins = malloc(most * (size_t)size);
    bool good = (codes && scales && mins) || refuse(why, "out of memory");
    for (int64_t i = 0; good && i < count; i += PART) {
        const int64_t n = count - i < PART ? count - i : PART, groups = n / p->group,
                      at = (first * to->columns + i) / p->group;
        p->pack(from->data + i / s->block * s->bytes, n / s->block, codes, scales, mins);
        good =
            (trine_memory_write(queue, (char *)to->data + at * group_bytes, codes, (size_t)(groups * group_bytes)) ==
                 TRINE_OK &&
             trine_memory_write(queue, (char *)to->scales + at * size, scales, (size_t)(groups * size)) == TRINE_OK &&
             (!p->mins ||
              trine_memory_write(queue, (char *)to->mins + at * size, mins, (size_t)(groups * size)) == TRINE_OK)) ||
            refuse(why, "%s", trine_error_message());
    }
    free(codes);
    free(scales);
    free(mins);
    return good;
}
