/* SPDX-License-Identifier: Apache-2.0 */
/* The types in which files hold the elements of tensors, and what they stand for in f32. */
#ifndef GENERATE_STORAGE_H
#define GENERATE_STORAGE_H

#include <stdint.h>

#include "file.h"
#include "packing.h"

/* Elements are stored in blocks, which numbers as F32 fill alone. */
typedef struct storage {
    const char *name;
    uint32_t gguf;        /* the type's number in a GGUF file */
    int32_t block, bytes; /* elements of a block, and bytes that it takes */
    void (*decode)(const uint8_t *data, int64_t blocks, float *out);
    const packing *packing; /* NULL: elements are numbers */
} storage;

/* NULL where the program does not know the type. */
const storage *storage_numbered(uint32_t gguf);
const storage *storage_named(slice name);

/* The table's row, NULL past its end. */
const storage *storage_row(int row);

/* A tensor as it lies in a file. */
typedef struct stored {
    slice name;
    const storage *type;
    int32_t rank;
    int64_t shape[4]; /* the last dimension's elements are side by side */
    const uint8_t *data;
    bool used; /* by the model */
} stored;

/* Its elements; bytes_out may be NULL. False where its last dimension is not of whole blocks, or the sizes overflow. */
bool stored_size(const stored *s, int64_t *count_out, uint64_t *bytes_out);

/* An f16 as it lies in memory. Of a block of Q4_K part 0 to 7, whose elements are code scale - less. And of one of Q6_K
 * element 0 to 255 by its scale, -32 to 31. */
typedef struct storage_part {
    float scale, less;
} storage_part;
float storage_half(const uint8_t *at);
storage_part storage_q4_k_part(const uint8_t *block, int part);
int storage_q6_k_code(const uint8_t *block, int i);

/* To bf16, rounded to nearest even. NaN stays NaN. */
uint16_t storage_bf16(float x);

#endif
