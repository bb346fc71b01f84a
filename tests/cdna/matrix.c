/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix instructions: D = A B + C over all 64 lanes, whatever EXEC is.
 *
 * Where elements are, for M = N = size and several blocks (ROCm's amd_matrix_instruction_calculator, commit 2ef9189): with e = depth size blocks / 64,
 *     A[i][k], B[k][i] of block b: element k mod e of lane i + b size + (k / e) size blocks;
 * with rows in runs of h (4; 1 for f64), R = 64 / size runs of a block in a register, P = max(1, 64 h / size^2) blocks in one,
 *     C[i][j], D[i][j] of block b: element b size^2 / 64 + (i / (h R)) h + i mod h of lane j + (b mod P) size + ((i / h) mod R) P size.
 * Products are exact and are added in f32 in the order of k; hardware's order and its inner width are not published. */
#include "machine.h"
#include "number.h"

typedef enum element { F32, F64, F16, BF16, XF32, I8, I32, FP8, BF8, CHOSEN, FP6, BF6, FP4, ELEMENTS } element;
static const int element_bits[ELEMENTS] = { 32, 64, 16, 16, 32, 8, 32, 8, 8, 8, 6, 6, 4 };

typedef struct matrix {
    int size, depth, blocks;
    element a, b, result;
} matrix;

enum { MOST = 64 * 32 }; /* elements of A or B: 64 lanes of at most 32 */

/* ------------------------------------------------------------------------------------------------------------------- inputs */

static element chosen_format(wave *w, int selector) {
    static const element formats[] = { FP8, BF8, FP6, BF6, FP4 };
    if (selector >= 5) stop(w, -1, "matrix format %d is none", selector);
    return formats[selector];
}

static uint32_t raw_element(const wave *w, int first, int lane, int index, int bits) {
    const int at = index * bits, word = at / 32, shift = at % 32;
    uint64_t pair = w->v[first + word][lane];
    if (shift + bits > 32) pair |= (uint64_t)w->v[first + word + 1][lane] << 32;
    return (uint32_t)(pair >> shift & ((UINT64_C(1) << bits) - 1));
}

static float input_float(const wave *w, element type, uint32_t raw) {
    const bool ocp = w->group->machine->chip == CDNA_GFX950, flushes = w->group->machine->chip == CDNA_GFX90A;
    switch (type) {
    case F16: return flushes && (raw & 0x7c00) == 0 ? 0 : half_float((uint16_t)raw);
    case BF16: return flushes && (raw & 0x7f80) == 0 ? 0 : bfloat_float((uint16_t)raw);
    case XF32: return isnan(bits_float(raw)) ? NAN : bits_float((raw + 0xfff + (raw >> 13 & 1)) & ~UINT32_C(0x1fff));
    case FP8: return minifloat_float(ocp ? &minifloat_e4m3 : &minifloat_e4m3fnuz, raw);
    case BF8: return minifloat_float(ocp ? &minifloat_e5m2 : &minifloat_e5m2fnuz, raw);
    case FP6: return minifloat_float(&minifloat_e2m3, raw);
    case BF6: return minifloat_float(&minifloat_e3m2, raw);
    case FP4: return minifloat_float(&minifloat_e2m1, raw);
    case I8: return (float)(int8_t)raw;
    default: return bits_float(raw);
    }
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

static int registers_of(const matrix *m, element type) { return (m->depth * m->size * m->blocks * element_bits[type] / 64 + 31) / 32; }

static bool check_source(wave *w, const matrix *m, const source *s) {
    bool defined = true;
    const int words = registers_of(m, s->type);
    if (s->operand->kind != OPERAND_VGPR || s->operand->words != words) stop(w, -1, "this matrix instruction takes %d registers of its inputs", words);
    for (int i = 0; i < words; i++) {
        check_register(w, s->operand->index + i, false, -1);
        defined &= w->defined[s->operand->index + i] == UINT64_MAX;
    }
    if (s->scale && s->scale->kind == OPERAND_VGPR) {
        check_register(w, s->scale->index, false, -1);
        defined &= w->defined[s->scale->index] == UINT64_MAX;
    }
    return defined;
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

/* values[(b size + i) depth + k]. */
static void read_source(const wave *w, const matrix *m, const source *s, float *values) {
    for (int b = 0; b < m->blocks; b++) {
        const int block = (b >> s->cbsz << s->cbsz) + s->abid;
        for (int i = 0; i < m->size; i++) {
            for (int k = 0; k < m->depth; k++) {
                int lane, index;
                locate(m, block, i, k, &lane, &index);
                lane = blgp_lane(s->blgp, lane);
                const float x = input_float(w, s->type, raw_element(w, s->operand->index, lane, index, element_bits[s->type]));
                values[(b * m->size + i) * m->depth + k] = s->scale ? x * scale_of(w, s, lane) : x;
            }
        }
    }
}

static double read_double(const wave *w, const source *s, int lane) {
    const double x = bits_double((uint64_t)w->v[s->operand->index + 1][lane] << 32 | w->v[s->operand->index][lane]);
    return s->operand->negate ? -x : x;
}

/* ------------------------------------------------------------------------------------------------------------------ results */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

/* acc[j] += sum_k a[k] bt[j][k], with bt turned to b[k][j] for the sake of wide vectors. */
WIDE static void accumulate(float *acc, const float *a, const float *b, int depth, int size) {
    for (int k = 0; k < depth; k++)
        for (int j = 0; j < size; j++) acc[j] += a[k] * b[k * size + j];
}

WIDE static void accumulate_integers(int32_t *acc, const float *a, const float *b, int depth, int size) {
    for (int k = 0; k < depth; k++)
        for (int j = 0; j < size; j++) acc[j] += (int32_t)a[k] * (int32_t)b[k * size + j];
}

static void place(const matrix *m, int b, int i, int *register_out, int *lane_out) {
    const int h = m->result == F64 ? 1 : 4, runs = LANES / m->size, packed = LANES * h / (m->size * m->size) > 1 ? LANES * h / (m->size * m->size) : 1;
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
    float left[MOST], right[MOST], turned[MOST];
    read_source(w, m, a, left);
    read_source(w, m, b, right);
    const bool flushes = w->group->machine->chip == CDNA_GFX90A && (a->type == F16 || a->type == BF16);
    for (int block = 0; block < m->blocks; block++) {
        const float *const of_block = right + block * m->size * m->depth;
        for (int j = 0; j < m->size; j++)
            for (int k = 0; k < m->depth; k++) turned[k * m->size + j] = of_block[j * m->depth + k];
        for (int i = 0; i < m->size; i++) {
            int r, first;
            place(m, block, i, &r, &first);
            const float *row = left + (block * m->size + i) * m->depth;
            if (m->result == I32) {
                accumulate_integers((int32_t *)&d[r][first], row, turned, m->depth, m->size);
                continue;
            }
            float acc[32];
            memcpy(acc, &d[r][first], (size_t)m->size * sizeof *acc);
            accumulate(acc, row, turned, m->depth, m->size);
            for (int j = 0; flushes && j < m->size; j++) acc[j] = fabsf(acc[j]) < 0x1p-126f ? copysignf(0, acc[j]) : acc[j];
            memcpy(&d[r][first], acc, (size_t)m->size * sizeof *acc);
        }
    }
}

/* C into d: registers, or one constant for all. */
static uint64_t read_addend(wave *w, const matrix *m, const operand *c, lanes *d, int words) {
    if (c->kind == OPERAND_CONSTANT) {
        const bool wide = m->result == F64;
        const uint64_t value = !wide ? c->value : c->written == WRITTEN_FLOAT ? double_bits(c->real) : c->value;
        for (int i = 0; i < words; i++)
            for (int l = 0; l < LANES; l++) d[i][l] = (uint32_t)(wide && i % 2 ? value >> 32 : value);
        return UINT64_MAX;
    }
    if (c->kind != OPERAND_VGPR || c->words != words) stop(w, -1, "this matrix instruction adds to %d registers", words);
    uint64_t defined = UINT64_MAX;
    for (int i = 0; i < words; i++) {
        check_register(w, c->index + i, false, -1);
        defined &= w->defined[c->index + i];
    }
    memcpy(d, &w->v[c->index], (size_t)words * sizeof *d);
    return defined;
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
    if (wide && (in->cbsz || in->blgp || in->operand[3].negate)) stop(w, -1, "CBSZ and BLGP of f64, and the negation of C, are not known");
    lanes d[32];
    const bool inputs = check_source(w, m, &a) & check_source(w, m, &b);
    const uint64_t defined = read_addend(w, m, &in->operand[3], d, words);
    if (wide)
        multiply_doubles(w, m, &a, &b, d);
    else
        multiply(w, m, &a, &b, d);
    commit(w, in->operand[0].index, words, (const lanes *)d, UINT64_MAX, inputs ? defined : 0);
    w->group->profile.matrix_operations += 2ull * (unsigned)(m->size * m->size * m->depth * m->blocks);
}

#define F32_NAME "f32"
#define F16_NAME "f16"
#define F64_NAME "f64"
#define I8_NAME "i8"
#define I32_NAME "i32"
#define MATRIX(name, size, depth, blocks, a, b, result) \
    { name, NULL, execute_matrix, { .data = &(const matrix){ size, depth, blocks, a, b, result } }, ROW_LANES_FREE, CDNA_MATRIX },
const row matrix_rows[] = {
#include "matrix.def"
    { 0 }
};
