/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes .npy files; trusts nothing a file says about itself. Format: NumPy enhancement proposal 1. */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "spec/spec.h"

enum { LONGEST_HEADER = 1 << 20, FIRST_PIECE = 1 << 20 };
enum { LITTLE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

__attribute__((format(printf, 3, 4))) static bool wrong(char *error, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error, size, format, list);
    va_end(list);
    return false;
}

/* ----------------------------------------------------------------------------------------------------------- header */

static void skip_space(const char **at) { *at += strspn(*at, " \t\r\n"); }

static bool skip_char(const char **at, char c) {
    skip_space(at);
    if (**at != c) return false;
    ++*at;
    return true;
}

/* A quoted word. */
static bool read_word(const char **at, char *word, size_t size) {
    skip_space(at);
    const char quote = **at;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(++*at, quote);
    if (end == NULL || (size_t)(end - *at) >= size) return false;
    memcpy(word, *at, (size_t)(end - *at));
    word[end - *at] = 0;
    *at = end + 1;
    return true;
}

/* "<f4". */
static bool read_descr(const char **at, npy *n) {
    char word[16];
    if (!read_word(at, word, sizeof word) || word[0] == 0 || strchr("<>|=", word[0]) == NULL) return false;
    n->swapped = word[0] == (LITTLE ? '>' : '<');
    n->kind = word[1];
    char *end;
    const long size = strtol(word + 2, &end, 10);
    if (*end || word[1] == 0 || word[2] == 0) return false;
    const char *sizes = n->kind == 'b'                     ? "1"
                        : n->kind == 'i' || n->kind == 'u' ? "1248"
                        : n->kind == 'f'                   ? "1248"
                        : n->kind == 'V'                   ? "12"
                                                           : "";
    if (size < 1 || size > 8 || strchr(sizes, '0' + (int)size) == NULL) return false;
    if (n->kind == 'f' && size == 1) n->kind = 'V'; /* how ml_dtypes' f8 are written */
    n->size = (int)size;
    return true;
}

static bool read_shape(const char **at, npy *n) {
    if (!skip_char(at, '(')) return false;
    while (!skip_char(at, ')')) {
        char *end;
        errno = 0;
        const long long length = strtoll(*at, &end, 10);
        if (end == *at || errno || length < 0 || n->rank == TRINE_MAX_RANK) return false;
        *at = *end == 'L' ? end + 1 : end; /* Python 2 wrote long integers so */
        n->shape[n->rank++] = length;
        if (!skip_char(at, ',')) {
            if (!skip_char(at, ')')) return false;
            break;
        }
    }
    return true;
}

/* "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }". */
static bool read_dictionary(const char *at, npy *n, const char **culprit) {
    bool descr = false, order = false, shape = false;
    *culprit = "the dictionary";
    if (!skip_char(&at, '{')) return false;
    while (!skip_char(&at, '}')) {
        char key[32];
        *culprit = "a key";
        if (!read_word(&at, key, sizeof key) || !skip_char(&at, ':')) return false;
        if (strcmp(key, "descr") == 0) {
            *culprit = "descr (element types are bool, integers and f2, f4, f8)";
            descr = read_descr(&at, n);
            if (!descr) return false;
        } else if (strcmp(key, "fortran_order") == 0) {
            *culprit = "fortran_order";
            skip_space(&at);
            n->fortran = strncmp(at, "True", 4) == 0;
            if (!n->fortran && strncmp(at, "False", 5) != 0) return false;
            at += n->fortran ? 4 : 5;
            order = true;
        } else if (strcmp(key, "shape") == 0) {
            *culprit = "shape (at most 8 dimensions)";
            shape = n->rank == 0 && read_shape(&at, n);
            if (!shape) return false;
        } else {
            return false;
        }
        *culprit = "the dictionary";
        if (!skip_char(&at, ',')) {
            if (!skip_char(&at, '}')) return false;
            break;
        }
    }
    *culprit = "the dictionary (descr, fortran_order and shape are needed)";
    return descr && order && shape;
}

static bool read_header(FILE *file, const char *path, npy *n, char *error, size_t size) {
    unsigned char head[12];
    if (fread(head, 1, 10, file) != 10 || memcmp(head, "\x93NUMPY", 6) != 0)
        return wrong(error, size, "%s: not a .npy file", path);
    uint32_t length = head[8] | (uint32_t)head[9] << 8;
    if (head[6] == 2 || head[6] == 3) {
        if (fread(head + 10, 1, 2, file) != 2) return wrong(error, size, "%s: truncated in its header", path);
        length |= (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
    } else if (head[6] != 1) {
        return wrong(error, size, "%s: version %d.%d of the format is not known", path, head[6], head[7]);
    }
    if (length > LONGEST_HEADER) return wrong(error, size, "%s: its header claims %u bytes", path, length);
    char *text = malloc((size_t)length + 1);
    if (text == NULL) return wrong(error, size, "%s: out of memory", path);
    text[fread(text, 1, length, file)] = 0;
    const char *culprit;
    const bool ok = strlen(text) == length && read_dictionary(text, n, &culprit);
    if (strlen(text) != length)
        wrong(error, size, "%s: truncated in its header", path);
    else if (!ok)
        wrong(error, size, "%s: its header is malformed or unsupported at %s: %.120s", path, culprit, text);
    free(text);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------- data */

/* Reads `bytes` bytes of data. Memory is taken for `room` of them at first, and twice as much whenever that is full:
 * what a pipe claims to hold is not known. */
static bool read_bytes(FILE *file, const char *path, npy *n, int64_t bytes, int64_t room, char *error, size_t size) {
    int64_t have = 0;
    for (bool all = false; !all; room *= 2) {
        if (room >= bytes) room = bytes, all = true;
        unsigned char *grown = realloc(n->data, room ? (size_t)room : 1);
        if (grown == NULL) {
            npy_free(n);
            return wrong(error, size, "%s: out of memory: %" PRId64 " bytes", path, room);
        }
        n->data = grown;
        have += (int64_t)fread(n->data + have, 1, (size_t)(room - have), file);
        if (have == room) continue;
        npy_free(n);
        if (ferror(file)) return wrong(error, size, "%s: %s", path, strerror(errno));
        return wrong(error, size, "%s: truncated: its shape needs %" PRId64 " bytes of data, it has %" PRId64, path,
                     bytes, have);
    }
    return true;
}

static bool read_data(FILE *file, const char *path, npy *n, char *error, size_t size) {
    n->count = 1;
    for (int k = 0; k < n->rank; k++) /* strides must not overflow either, hence the product without zeros first */
        if (n->shape[k] && __builtin_mul_overflow(n->count, n->shape[k], &n->count))
            return wrong(error, size, "%s: its shape overflows", path);
    for (int k = 0; k < n->rank; k++)
        if (n->shape[k] == 0) n->count = 0;
    int64_t bytes;
    struct stat status;
    if (__builtin_mul_overflow(n->count, (int64_t)n->size, &bytes))
        return wrong(error, size, "%s: its shape overflows", path);
    if (fstat(fileno(file), &status) != 0) return wrong(error, size, "%s: %s", path, strerror(errno));
    const int64_t left = S_ISREG(status.st_mode) ? (int64_t)status.st_size - ftell(file) : INT64_MAX;
    if (left < bytes)
        return wrong(error, size, "%s: truncated: its shape needs %" PRId64 " bytes of data, it has %" PRId64, path,
                     bytes, left);
    return read_bytes(file, path, n, bytes, S_ISREG(status.st_mode) ? bytes : FIRST_PIECE, error, size);
}

bool npy_read(const char *path, npy *npy_out, char *error, size_t error_size) {
    *npy_out = (npy){ 0 };
    FILE *file = fopen(path, "rb");
    if (file == NULL) return wrong(error, error_size, "%s: %s", path, strerror(errno));
    const bool ok =
        read_header(file, path, npy_out, error, error_size) && read_data(file, path, npy_out, error, error_size);
    fclose(file);
    return ok;
}

void npy_free(npy *n) {
    free(n->data);
    n->data = NULL;
}

trine_dtype npy_dtype(const npy *n) {
    static const struct {
        char kind;
        int size;
        trine_dtype dtype;
    } table[] = { { 'i', 1, TRINE_I8 },  { 'i', 2, TRINE_I16 }, { 'i', 4, TRINE_I32 },
                  { 'i', 8, TRINE_I64 }, { 'u', 1, TRINE_U8 },  { 'u', 4, TRINE_U32 },
                  { 'f', 2, TRINE_F16 }, { 'f', 4, TRINE_F32 }, { 'f', 8, TRINE_F64 } };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == n->kind && table[i].size == n->size) return table[i].dtype;
    return TRINE_NONE;
}

const char *npy_type_name(const npy *n) {
    const trine_dtype dtype = npy_dtype(n);
    if (dtype != TRINE_NONE) return trine_dtype_name(dtype);
    return n->kind == 'b' ? "bool" : n->kind == 'u' ? (n->size == 2 ? "u16" : "u64") : "bits";
}

int64_t npy_stride(const npy *n, int k) {
    int64_t stride = 1;
    if (n->fortran)
        for (int i = 0; i < k; i++) stride *= n->shape[i];
    else
        for (int i = n->rank - 1; i > k; i--) stride *= n->shape[i];
    return stride;
}

/* ------------------------------------------------------------------------------------------------------- conversion */

typedef struct value {
    bool integer;
    int64_t i; /* of an integer; a u64 above INT64_MAX counts as a float */
    double f;
} value;

static value element(const npy *n, int64_t index) {
    unsigned char bytes[8];
    const unsigned char *at = n->data + index * n->size;
    for (int b = 0; b < n->size; b++) bytes[b] = at[n->swapped ? n->size - 1 - b : b];
    uint64_t bits = 0;
    for (int b = 0; b < n->size; b++) bits = bits << 8 | bytes[LITTLE ? n->size - 1 - b : b];
    value v = { .integer = n->kind != 'f' };
    if (n->kind == 'f') {
        v.f = trine_load(bytes, n->size == 2 ? TRINE_F16 : n->size == 4 ? TRINE_F32 : TRINE_F64, 0);
    } else if (n->kind == 'i') {
        v.i = (int64_t)(bits << (64 - 8 * n->size)) >> (64 - 8 * n->size);
        v.f = (double)v.i;
    } else {
        v.integer = bits <= INT64_MAX;
        v.i = (int64_t)bits;
        v.f = n->kind == 'b' ? bits != 0 : (double)bits;
    }
    return v;
}

/* The range of an integer type; false for a floating-point one. */
static bool integer_range(trine_dtype dtype, int64_t *min, int64_t *max) {
    const int code = dtype >> 8, bits = dtype & 0xff;
    if (code > 1) return false;
    *min = code == 1 ? 0 : bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
    *max = bits == 64 ? INT64_MAX : (INT64_C(1) << (code == 1 ? bits : bits - 1)) - 1;
    return true;
}

static void store_integer(void *out, trine_dtype dtype, int64_t index, int64_t v) {
    const size_t size = trine_dtype_size(dtype);
    memcpy((char *)out + (size_t)index * size, (const char *)&v + (LITTLE ? 0 : sizeof v - size), size);
}

static bool convert_element(const value *v, trine_dtype dtype, int64_t at, void *out) {
    int64_t min, max;
    if (!integer_range(dtype, &min, &max)) {
        trine_store(out, dtype, at, v->f);
        return true;
    }
    if (v->integer ? v->i < min || v->i > max : v->f != floor(v->f) || !(fabs(v->f) < 0x1p63)) return false;
    const int64_t whole = v->integer ? v->i : (int64_t)v->f;
    if (whole < min || whole > max) return false;
    store_integer(out, dtype, at, whole);
    return true;
}

/* Where element `index` of the file's order is in row-major order. */
static int64_t row_major_place(const npy *n, int64_t index) {
    int64_t place = 0, coordinate[TRINE_MAX_RANK];
    for (int k = 0; k < n->rank; k++) {
        coordinate[k] = index % n->shape[k];
        index /= n->shape[k];
    }
    for (int k = 0; k < n->rank; k++) place = place * n->shape[k] + coordinate[k];
    return place;
}

bool npy_convert(const npy *n, trine_dtype dtype, bool row_major, void *out, char *error, size_t error_size) {
    const bool reorder = n->fortran && row_major && n->rank > 1;
    const bool bits = n->kind == 'V' && (int)trine_dtype_size(dtype) == n->size && dtype >> 8 > 2;
    if (n->kind == 'V' && !bits)
        return wrong(error, error_size,
                     "its elements are %d bytes of bits without a meaning, not values to convert to %s", n->size,
                     trine_dtype_name(dtype));
    if (!reorder && !n->swapped && (bits || npy_dtype(n) == dtype)) {
        memcpy(out, n->data, (size_t)n->count * (size_t)n->size);
        return true;
    }
    for (int64_t i = 0; i < n->count; i++) {
        const value v = element(n, i);
        const int64_t at = reorder ? row_major_place(n, i) : i;
        if (bits)
            store_integer(out, dtype, at, v.i);
        else if (!convert_element(&v, dtype, at, out))
            return wrong(error, error_size, "element %" PRId64 " is %.17g, which is no %s", i, v.f,
                         trine_dtype_name(dtype));
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

trine_dtype npy_written(trine_dtype dtype) { return dtype >> 8 > 2 ? TRINE_F32 : dtype; }

/* Without the order of bytes, which is this machine's. */
static const char *descr_of(trine_dtype dtype) {
    switch (dtype) {
    case TRINE_I8: return "i1";
    case TRINE_I16: return "i2";
    case TRINE_I32: return "i4";
    case TRINE_I64: return "i8";
    case TRINE_U8: return "u1";
    case TRINE_U32: return "u4";
    case TRINE_F16: return "f2";
    case TRINE_F64: return "f8";
    default: return "f4";
    }
}

static bool write_widened(FILE *file, const void *data, trine_dtype dtype, int64_t count) {
    float block[1024];
    for (int64_t i = 0; i < count;) {
        size_t length = 0;
        for (; length < 1024 && i < count; i++) block[length++] = (float)trine_load(data, dtype, i);
        /* cppcheck-suppress uninitvar */
        if (fwrite(block, sizeof *block, length, file) != length) return false;
    }
    return true;
}

bool npy_write(FILE *file, const void *data, trine_dtype dtype, int rank, const int64_t *shape) {
    char head[512] = "\x93NUMPY\x01";
    int length = 10 + snprintf(head + 10, sizeof head - 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                               trine_dtype_size(npy_written(dtype)) == 1 ? '|'
                               : LITTLE                                  ? '<'
                                                                         : '>',
                               descr_of(dtype));
    int64_t count = 1;
    for (int k = 0; k < rank; k++) {
        length += snprintf(head + length, sizeof head - (size_t)length, "%" PRId64 "%s", shape[k],
                           rank == 1      ? ","
                           : k + 1 < rank ? ", "
                                          : "");
        count *= shape[k];
    }
    length += snprintf(head + length, sizeof head - (size_t)length, "), }");
    while ((length + 1) % 64) head[length++] = ' ';
    head[length++] = '\n';
    head[8] = (char)((length - 10) & 0xff);
    head[9] = (char)((length - 10) >> 8);
    if (fwrite(head, 1, (size_t)length, file) != (size_t)length) return false;
    if (npy_written(dtype) != dtype) return write_widened(file, data, dtype, count);
    return fwrite(data, trine_dtype_size(dtype), (size_t)count, file) == (size_t)count;
}
