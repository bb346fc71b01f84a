/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix instructions: D = A B + C over all 64 lanes, whatever EXEC is.
 *
 * Where elements are, for M = N = size and several blocks (ROCm's amd_matrix_instruction_calculator, commit 2ef9189):
 * with e = depth size blocks / 64,
 *     A[i][k], B[k][i] of block b: element k mod e of lane i + b size + (k / e) size blocks;
 * with rows in runs of h (4; 1 for f64), R = 64 / size runs of a block in a register, P = max(1, 64 h / size^2) blocks
 * in one,
 *     C[i][j], D[i][j] of block b: element b size^2 / 64 + (i / (h R)) h + i mod h of lane j + (b mod P) size + ((i /
 *       h) mod R) P size.
 * Products are exact and are added in f32 in the order of k; hardware's order and its inner width are not published. */
#include "machine.h"
#include "number.h"

typedef enum element { F32, F64, F16, BF16, XF32, I8, I32, FP8, BF8, CHOSEN, FP6, BF6, FP4, ELEMENTS } element;
static const int element_bits[ELEMENTS] = { 32, 64, 16, 16, 32, 8, 32, 8, 8, 8, 6, 6, 4 };

typedef struct matrix {
    int size, depth, blocks;
    element a, b, result;
} matrix;

enum { MOST_ELEMENTS = 32 }; /* of A or B in a lane */

/* ----------------------------------------------------------------------------------------------------------- inputs */

static element chosen_format(wave *w, int selector) {
    static const element formats[] = { FP8, BF8, FP6, BF6, FP4 };
    if (selector >= 5) stop(w, -1, "matrix format %d is none", selector);
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; stop() does not return */
    return formats[selector];
}

static uint32_t raw_element(const wave *w, int first, int lane, int index, int bits) {
    const int at = index * bits, word = at / 32, shift = at % 32;
    uint64_t pair = w->v[first + word][lane];
    if (shift + bits > 32) pair |= (uint64_t)w->v[first + word + 1][lane] << 32;
    return (uint32_t)(pair >> shift & ((UINT64_C(1) << bits) - 1));
}

static float round_xf32(uint32_t raw) {
    return isnan(bits_float(raw)) ? NAN : bits_float((raw + 0xfff + (raw >> 13 & 1)) & ~UINT32_C(0x1fff));
}
static float flush_input(float x, float smallest) { return fabsf(x) < smallest ? 0 : x; }

/* values[l] = element at bit `shift` of lane l; smallest: what is below it in magnitude is 0. */
#define CONVERT(name, value) \
    WIDE static void convert_##name(const uint32_t *word, int shift, float smallest, float *values) { \
        for (int l = 0; l < LANES; l++) { \
            const uint32_t raw = word[l] >> shift; \
            values[l] = value; \
        } \
        (void)smallest; \
    }
CONVERT(f32, bits_float(raw))
CONVERT(xf32, round_xf32(raw))
CONVERT(f16, flush_input(half_float((uint16_t)raw), smallest))
CONVERT(bf16, flush_input(bfloat_float((uint16_t)raw), smallest))
CONVERT(i8, (float)(int8_t)raw)

static const minifloat *small_format(cdna_chip chip, element type) {
    const bool ocp = chip == CDNA_GFX950;
    switch (type) {
    case FP8: return ocp ? &minifloat_e4m3 : &minifloat_e4m3fnuz;
    case BF8: return ocp ? &minifloat_e5m2 : &minifloat_e5m2fnuz;
    case FP6: return &minifloat_e2m3;
    case BF6: return &minifloat_e3m2;
    default: return &minifloat_e2m1;
    }
}

/* Formats of 8 bits and less, through a table of their values. */
static void convert_small(const wave *w, element type, int first, int elements, float (*values)[LANES]) {
    const minifloat *format = small_format(w->group->machine->chip, type);
    const int bits = element_bits[type];
    float table[256] = { 0 };
    for (uint32_t code = 0; code < 1u << bits; code++) table[code] = minifloat_float(format, code);
    for (int q = 0; q < elements; q++)
        for (int l = 0; l < LANES; l++) values[q][l] = table[raw_element(w, first, l, q, bits)];
}

static void convert(const wave *w, element type, int first, int elements, float (*values)[LANES]) {
    static void (*const converters[ELEMENTS])(const uint32_t *, int, float, float *) = {
        [F32] = convert_f32, [XF32] = convert_xf32, [F16] = convert_f16, [BF16] = convert_bf16, [I8] = convert_i8
    };
    const int bits = element_bits[type];
    const float smallest = w->group->machine->chip != CDNA_GFX90A ? 0 : type == F16 ? 0x1p-14f : 0x1p-126f;
    if (converters[type] == NULL) {
        convert_small(w, type, first, elements, values);
        return;
    }
    for (int q = 0; q < elements; q++)
        converters[type](w->v[first + q * bits / 32], q * bits % 32, smallest, values[q]);
}

/* The lane that B is read from instead of `lane`. */
static int blgp_lane(int blgp, int lane) {
    switch (blgp) {
    case 0: return lane;
    case 1: return lane & 31;
    case 2: return lane | 32;
    case 3: return (lane + 16) & 63;
    default: return (lane & 15) + 16 * (blgp - 4);
    }
}

typedef struct source {
    const operand *operand, *scale;
    element type;
    int cbsz, abid, blgp;
} source;

static int registers_of(const matrix *m, element type) {
    return (m->depth * m->size * m->blocks * element_bits[type] / 64 + 31) / 32;
}

/* The lanes whose part of the matrix is defined. */
static uint64_t check_source(wave *w, const matrix *m, const source *s) {
    uint64_t defined = UINT64_MAX;
    const int words = registers_of(m, s->type);
    if (s->operand->kind != OPERAND_VGPR || s->operand->words != words)
        stop(w, -1, "this matrix instruction takes %d registers of its inputs", words);
    for (int i = 0; i < words; i++) {
        check_register(w, s->operand->index + i, false, -1);
        defined &= w->defined[s->operand->index + i];
    }
    if (s->scale && s->scale->kind == OPERAND_VGPR) {
        check_register(w, s->scale->index, false, -1);
        defined &= w->defined[s->scale->index];
    }
    return defined == UINT64_MAX || s->blgp == 0 ? defined : 0;
}

/* 2^(code - 127), of the byte that op_sel names. */
static float scale_of(const wave *w, const source *s, int lane) {
    const uint32_t word = s->scale->kind == OPERAND_VGPR ? w->v[s->scale->index][lane] : (uint32_t)s->scale->value;
    const int code = word >> 8 * (s->operand->high + 2 * s->operand->high_high) & 255;
    return code == 255 ? NAN : ldexpf(1, code - 127);
}

/* Where element (i, k) of block b is. */
static void locate(const matrix *m, int b, int i, int k, int *lane_out, int *index_out) {
    const int e = m->depth * m->size * m->blocks / LANES;
    *lane_out = i + b * m->size + k / e * m->size * m->blocks;
    *index_out = k % e;
}

/* values[q][l]: element q of lane l. */
static void read_source(const wave *w, const matrix *m, const source *s, float (*values)[LANES]) {
    const int elements = m->depth * m->size * m->blocks / LANES;
    convert(w, s->type, s->operand->index, elements, values);
    for (int q = 0; s->scale && q < elements; q++)
        for (int l = 0; l < LANES; l++) values[q][l] *= scale_of(w, s, l);
    for (int q = 0; s->blgp && q < elements; q++) {
        float moved[LANES];
        for (int l = 0; l < LANES; l++) moved[l] = values[q][blgp_lane(s->blgp, l)];
        memcpy(values[q], moved, sizeof moved);
    }
}

static double read_double(const wave *w, const source *s, int lane) {
    const double x = bits_double((uint64_t)w->v[s->operand->index + 1][lane] << 32 | w->v[s->operand->index][lane]);
    return s->operand->negate ? -x : x;
}

/* ---------------------------------------------------------------------------------------------------------- results */

/* One term of a row of D: acc[j] += a b[j]. */
#define ACCUMULATE(name, type) \
    WIDE static void name(type *acc, const float *const *a, const float *const *b, int i, int depth, int size) { \
        for (int k = 0; k < depth; k++) { \
            const type x = (type)a[k][i]; \
            for (int j = 0; j < size; j++) acc[j] += x * (type)b[k][j]; \
        } \
    }
ACCUMULATE(accumulate_floats, float)
ACCUMULATE(accumulate_integers, int32_t)

static void place(const matrix *m, int b, int i, int *register_out, int *lane_out) {
    const int h = m->result == F64 ? 1 : 4, runs = LANES / m->size,
              packed = LANES * h / (m->size * m->size) > 1 ? LANES * h / (m->size * m->size) : 1;
    *register_out = b * (m->size * m->size / LANES) + i / (h * runs) * h + i % h;
    *lane_out = b % packed * m->size + i / h % runs * packed * m->size;
}

static void multiply_doubles(const wave *w, const matrix *m, const source *a, const source *b, lanes *d) {
    for (int block = 0; block < m->blocks; block++) {
        for (int i = 0; i < m->size; i++) {
            int r, first, lane, index;
            place(m, block, i, &r, &first);
            for (int j = 0; j < m->size; j++) {
                double sum = bits_double((uint64_t)d[2 * r + 1][first + j] << 32 | d[2 * r][first + j]);
                for (int k = 0; k < m->depth; k++) {
                    locate(m, block, i, k, &lane, &index);
                    const double x = read_double(w, a, lane);
                    locate(m, block, j, k, &lane, &index);
                    sum = fma(x, read_double(w, b, lane), sum);
                }
                d[2 * r][first + j] = (uint32_t)double_bits(sum);
                d[2 * r + 1][first + j] = (uint32_t)(double_bits(sum) >> 32);
            }
        }
    }
}

static void multiply(const wave *w, const matrix *m, const source *a, const source *b, lanes *d) {
    float left[MOST_ELEMENTS][LANES], right[MOST_ELEMENTS][LANES];
    const float *row_of_a[128], *row_of_b[128]; /* by k: where (0, k) of the block is */
    read_source(w, m, a, left);
    read_source(w, m, b, right);
    const bool flushes = w->group->machine->chip == CDNA_GFX90A && (a->type == F16 || a->type == BF16);
    for (int block = 0; block < m->blocks; block++) {
        for (int k = 0; k < m->depth; k++) {
            int lane, index;
            locate(m, (block >> a->cbsz << a->cbsz) + a->abid, 0, k, &lane, &index);
            row_of_a[k] = &left[index][lane];
            locate(m, block, 0, k, &lane, &index);
            row_of_b[k] = &right[index][lane];
        }
        for (int i = 0; i < m->size; i++) {
            int r, first;
            place(m, block, i, &r, &first);
            if (m->result == I32) {
                accumulate_integers((int32_t *)&d[r][first], row_of_a, row_of_b, i, m->depth, m->size);
                continue;
            }
            float acc[32];
            memcpy(acc, &d[r][first], (size_t)m->size * sizeof *acc);
            accumulate_floats(acc, row_of_a, row_of_b, i, m->depth, m->size);
            for (int j = 0; flushes && j < m->size; j++)
                acc[j] = fabsf(acc[j]) < 0x1p-126f ? copysignf(0, acc[j]) : acc[j];
            memcpy(&d[r][first], acc, (size_t)m->size * sizeof *acc);
        }
    }
}

/* C into d: registers, or one constant for all. defined[r]: lanes of register r. */
static void read_addend(wave *w, const matrix *m, const operand *c, lanes *d, uint64_t *defined, int words) {
    const bool wide = m->result == F64;
    if (c->kind == OPERAND_CONSTANT) {
        const uint64_t value =
            wide && c->written == WRITTEN_FLOAT ? double_bits((double)bits_float((uint32_t)c->value)) : c->value;
        for (int i = 0; i < words; i++) {
            defined[i] = UINT64_MAX;
            for (int l = 0; l < LANES; l++) d[i][l] = (uint32_t)(wide && i % 2 ? value >> 32 : value);
        }
        return;
    }
    if (c->kind != OPERAND_VGPR || c->words != words)
        stop(w, -1, "this matrix instruction adds to %d registers", words);
    for (int i = 0; i < words; i++) {
        check_register(w, c->index + i, false, -1);
        defined[i] = w->defined[c->index + i];
    }
    memcpy(d, &w->v[c->index], (size_t)words * sizeof *d);
}

/* An uninitialised row of A spoils that row of D, a column of B that column. */
static void spoil(const matrix *m, uint64_t a, uint64_t b, int cbsz, int abid, uint64_t *defined) {
    const int words = m->result == F64 ? 2 : 1, span = m->size * m->blocks;
    if (a == UINT64_MAX && b == UINT64_MAX) return;
    for (int from = span; from < LANES; from += span) { /* all k of a row or column */
        a &= a >> from | ~(UINT64_MAX >> from);
        b &= b >> from | ~(UINT64_MAX >> from);
    }
    for (int block = 0; block < m->blocks; block++) {
        const uint64_t columns = b >> block * m->size & ((UINT64_C(1) << m->size) - 1);
        const uint64_t rows = a >> ((block >> cbsz << cbsz) + abid) * m->size;
        for (int i = 0; i < m->size; i++) {
            int r, first;
            place(m, block, i, &r, &first);
            const uint64_t kept = ~(((UINT64_C(1) << m->size) - 1) << first) | (rows >> i & 1 ? columns << first : 0);
            for (int word = 0; word < words; word++) defined[words * r + word] &= kept;
        }
    }
}

static void execute_matrix(wave *w, const instruction *in) {
    const matrix *m = in->row->data;
    const bool chosen = m->a == CHOSEN, wide = m->a == F64, scaled = in->operands == 6;
    source a = { &in->operand[1], scaled ? &in->operand[4] : NULL, m->a, in->cbsz, in->abid, 0 };
    source b = { &in->operand[2], scaled ? &in->operand[5] : NULL, m->b, 0, 0, in->blgp };
    if (chosen) {
        a = (source){ a.operand, a.scale, chosen_format(w, in->cbsz), 0, 0, 0 };
        b = (source){ b.operand, b.scale, chosen_format(w, in->blgp), 0, 0, 0 };
    }
    const int words = m->size * m->size * m->blocks / LANES * (wide ? 2 : 1);
    if (in->operands != (scaled ? 6 : 4) || in->operand[0].kind != OPERAND_VGPR || in->operand[0].words != words)
        stop(w, -1, "this matrix instruction writes %d registers", words);
    if (wide && (in->cbsz || in->blgp || in->operand[3].negate))
        stop(w, -1, "CBSZ and BLGP of f64, and the negation of C, are not known");
    lanes d[32];
    uint64_t defined[32];
    const uint64_t left = check_source(w, m, &a), right = check_source(w, m, &b);
    read_addend(w, m, &in->operand[3], d, defined, words);
    spoil(m, left, right, a.cbsz, a.abid, defined);
    if (wide)
        multiply_doubles(w, m, &a, &b, d);
    else
        multiply(w, m, &a, &b, d);
    for (int i = 0; i < words; i++)
        commit(w, in->operand[0].index + i, 1, (const lanes *)&d[i], UINT64_MAX, defined[i]);
    w->group->profile.matrix_operations += 2ull * (unsigned)(m->size * m->size * m->depth * m->blocks);
}

#define F32_NAME "f32"
#define F16_NAME "f16"
#define F64_NAME "f64"
#define I8_NAME "i8"
#define I32_NAME "i32"
#define MATRIX(name, size, depth, blocks, a, b, result) \
    { name, NULL, execute_matrix, { .data = &(const matrix){ size, depth, blocks, a, b, result } }, 0, CDNA_MATRIX },
const row matrix_rows[] = {
#include "matrix.def"
    { 0 }
};
