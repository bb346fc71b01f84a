/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a file into device memory. */
#ifndef GENERATE_WEIGHTS_H
#define GENERATE_WEIGHTS_H

#include <trine/trine.h>

#include "storage.h"

/* Decodes a tensor to f32 or bf16 and writes it to device memory. */
bool weights_write(trine_queue *queue, const stored *from, trine_dtype type, void *to, problem *why);

/* A matrix [rows, columns] in device memory. */
typedef struct matrix {
    int64_t rows, columns;
    const packing *packing;     /* NULL: `data` is numbers of the model's type; otherwise codes, by groups in a row */
    void *data, *scales, *mins; /* the last two of codes alone */
} matrix;

/* The bytes of a matrix's codes, and of its scales, or its mins. */
size_t matrix_code_bytes(const matrix *m);
size_t matrix_scale_bytes(const matrix *m);

/* Writes a tensor of that packing to the rows of a matrix from `first` on. */
bool matrix_write(trine_queue *queue, const stored *from, const matrix *to, int64_t first, problem *why);

#endif
