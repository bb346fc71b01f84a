/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: format versions 1 to 3, either byte order and element order. */
#ifndef TRINE_TOOLS_NPY_H
#define TRINE_TOOLS_NPY_H

#include <stdbool.h>
#include <stdio.h>

#include <trine/trine.h>

typedef struct npy {
    char kind;    /* NumPy's: 'b' bool, 'i', 'u', 'f', or 'V' for bits without a meaning */
    int size;     /* bytes of an element */
    bool swapped; /* its bytes are in the other order than this machine's */
    bool fortran; /* first index fastest */
    int rank;
    int64_t shape[TRINE_MAX_RANK];
    int64_t count;
    unsigned char *data; /* count * size bytes as in the file */
} npy;

/* Reads a file; false, with a message that names it in `error`, if it is not a .npy file of numbers with at most
 * TRINE_MAX_RANK dimensions. */
bool npy_read(const char *path, npy *npy_out, char *error, size_t error_size);
void npy_free(npy *n);

/* The element type that has the very values of the file's, TRINE_NONE if trine has none (bool, u16, bits). */
trine_dtype npy_dtype(const npy *n);

/* What NumPy calls the file's element type, in short: "f64", "u16", "bool". */
const char *npy_type_name(const npy *n);

/* The stride of dimension `k`, in elements, in the file's own order. */
int64_t npy_stride(const npy *n, int k);

/* Writes all elements to `out`, converted to `dtype`: in the file's order, or row-major. A float becomes an integer
 * only if it is one; a value out of an integer type's range is an error; bits without a meaning ('V', as NumPy writes
 * bf16 and f8 of ml_dtypes) are taken as they are by a type of their size. */
bool npy_convert(const npy *n, trine_dtype dtype, bool row_major, void *out, char *error, size_t error_size);

/* Writes a dense row-major array; false if the file takes not all of it. bf16 and f8 are written as f32, exactly: the
 * type that npy_written() says. */
bool npy_write(FILE *file, const void *data, trine_dtype dtype, int rank, const int64_t *shape);
trine_dtype npy_written(trine_dtype dtype);

#endif
