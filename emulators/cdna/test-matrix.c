/* SPDX-License-Identifier: Apache-2.0 */
/* Every dense matrix instruction of each chip: inputs are laid out, and results read back, by the formulas that ROCm's
 * amd_matrix_instruction_calculator (commit 2ef9189) prints for the registers of each instruction; gfx950's own shapes
 * follow the same rule with more elements per lane, as Composable Kernel's constants for them do. Values are small
 * integers, so that every order of additions gives the same sum. */
#include "number.h"
#include "toolchain.h"

typedef enum type { T_F32, T_XF32, T_F64, T_F16, T_BF16, T_I8, T_FP8, T_BF8 } type;
static const int type_bits[] = { 32, 32, 64, 16, 16, 8, 8, 8 };

typedef struct position {
    int i, j, block; /* for inputs j is k */
} position;

/* Element q of lane l of A (or B, with j for i): one block, K elements spread over 64 / size groups of lanes. */
static position one_block_input(int size, int e, int l, int q) { return (position){ l % size, e * (l / size) + q, 0 }; }
/* Several blocks: each group of lanes is a block. */
static position blocks_input(int size, int e, int l, int q) { return (void)e, (position){ l % size, q, l / size }; }
/* f64 4x4x4: 4 blocks of 4 lanes, then k. */
static position f64_4x4_input(int size, int e, int l, int q) {
    return (void)size, (void)e, (void)q, (position){ l % 4, l / 16, l / 4 % 4 };
}

/* Register r of lane l of C and D. */
static position result_32x32(int r, int l) { return (position){ 8 * (r / 4) + 4 * (l / 32) + r % 4, l % 32, 0 }; }
static position result_16x16(int r, int l) { return (position){ 4 * (l / 16) + r, l % 16, 0 }; }
static position result_32x32_2(int r, int l) {
    return (position){ 8 * (r % 16 / 4) + 4 * (l / 32) + r % 4, l % 32, r / 16 };
}
static position result_16x16_4(int r, int l) { return (position){ 4 * (l / 16) + r % 4, l % 16, r / 4 }; }
static position result_4x4_16(int r, int l) { return (position){ r, l % 4, l / 4 }; }
static position result_f64_16x16(int r, int l) { return (position){ 4 * r + l / 16, l % 16, 0 }; }
static position result_f64_4x4(int r, int l) { return (void)r, (position){ l / 16, l % 4, l / 4 % 4 }; }

typedef struct matrix_case {
    const char *name;
    unsigned chips; /* set of cdna_chip */
    int size, depth, blocks;
    type a, b;
    position (*input)(int size, int e, int l, int q);
    position (*result)(int r, int l);
    const char *modifiers;
} matrix_case;

enum { A = 1 << CDNA_GFX90A, B = 1 << CDNA_GFX942, C = 1 << CDNA_GFX950 };

static const matrix_case cases[] = {
    { "v_mfma_f32_32x32x1f32", A, 32, 1, 2, T_F32, T_F32, blocks_input, result_32x32_2 },
    { "v_mfma_f32_16x16x1f32", A, 16, 1, 4, T_F32, T_F32, blocks_input, result_16x16_4 },
    { "v_mfma_f32_4x4x1f32", A, 4, 1, 16, T_F32, T_F32, blocks_input, result_4x4_16 },
    { "v_mfma_f32_32x32x2f32", A, 32, 2, 1, T_F32, T_F32, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x4f32", A, 16, 4, 1, T_F32, T_F32, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x4f16", A, 32, 4, 2, T_F16, T_F16, blocks_input, result_32x32_2 },
    { "v_mfma_f32_16x16x4f16", A, 16, 4, 4, T_F16, T_F16, blocks_input, result_16x16_4 },
    { "v_mfma_f32_4x4x4f16", A, 4, 4, 16, T_F16, T_F16, blocks_input, result_4x4_16 },
    { "v_mfma_f32_32x32x8f16", A, 32, 8, 1, T_F16, T_F16, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x16f16", A, 16, 16, 1, T_F16, T_F16, one_block_input, result_16x16 },
    { "v_mfma_i32_32x32x4i8", A, 32, 4, 2, T_I8, T_I8, blocks_input, result_32x32_2 },
    { "v_mfma_i32_16x16x4i8", A, 16, 4, 4, T_I8, T_I8, blocks_input, result_16x16_4 },
    { "v_mfma_i32_4x4x4i8", A, 4, 4, 16, T_I8, T_I8, blocks_input, result_4x4_16 },
    { "v_mfma_i32_32x32x8i8", A, 32, 8, 1, T_I8, T_I8, one_block_input, result_32x32 },
    { "v_mfma_i32_16x16x16i8", A, 16, 16, 1, T_I8, T_I8, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x2bf16", A, 32, 2, 2, T_BF16, T_BF16, blocks_input, result_32x32_2 },
    { "v_mfma_f32_16x16x2bf16", A, 16, 2, 4, T_BF16, T_BF16, blocks_input, result_16x16_4 },
    { "v_mfma_f32_4x4x2bf16", A, 4, 2, 16, T_BF16, T_BF16, blocks_input, result_4x4_16 },
    { "v_mfma_f32_32x32x4bf16", A, 32, 4, 1, T_BF16, T_BF16, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x8bf16", A, 16, 8, 1, T_BF16, T_BF16, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x4bf16_1k", A, 32, 4, 2, T_BF16, T_BF16, blocks_input, result_32x32_2 },
    { "v_mfma_f32_16x16x4bf16_1k", A, 16, 4, 4, T_BF16, T_BF16, blocks_input, result_16x16_4 },
    { "v_mfma_f32_4x4x4bf16_1k", A, 4, 4, 16, T_BF16, T_BF16, blocks_input, result_4x4_16 },
    { "v_mfma_f32_32x32x8bf16_1k", A, 32, 8, 1, T_BF16, T_BF16, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x16bf16_1k", A, 16, 16, 1, T_BF16, T_BF16, one_block_input, result_16x16 },
    { "v_mfma_f64_16x16x4f64", A, 16, 4, 1, T_F64, T_F64, one_block_input, result_f64_16x16 },
    { "v_mfma_f64_4x4x4f64", A, 4, 4, 4, T_F64, T_F64, f64_4x4_input, result_f64_4x4 },

    { "v_mfma_f32_32x32x1_2b_f32", B | C, 32, 1, 2, T_F32, T_F32, blocks_input, result_32x32_2 },
    { "v_mfma_f32_16x16x1_4b_f32", B | C, 16, 1, 4, T_F32, T_F32, blocks_input, result_16x16_4 },
    { "v_mfma_f32_4x4x1_16b_f32", B | C, 4, 1, 16, T_F32, T_F32, blocks_input, result_4x4_16 },
    { "v_mfma_f32_32x32x2_f32", B | C, 32, 2, 1, T_F32, T_F32, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x4_f32", B | C, 16, 4, 1, T_F32, T_F32, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x4_2b_f16", B | C, 32, 4, 2, T_F16, T_F16, blocks_input, result_32x32_2 },
    { "v_mfma_f32_16x16x4_4b_f16", B | C, 16, 4, 4, T_F16, T_F16, blocks_input, result_16x16_4 },
    { "v_mfma_f32_4x4x4_16b_f16", B | C, 4, 4, 16, T_F16, T_F16, blocks_input, result_4x4_16 },
    { "v_mfma_f32_32x32x8_f16", B | C, 32, 8, 1, T_F16, T_F16, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x16_f16", B | C, 16, 16, 1, T_F16, T_F16, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x4_2b_bf16", B | C, 32, 4, 2, T_BF16, T_BF16, blocks_input, result_32x32_2 },
    { "v_mfma_f32_16x16x4_4b_bf16", B | C, 16, 4, 4, T_BF16, T_BF16, blocks_input, result_16x16_4 },
    { "v_mfma_f32_4x4x4_16b_bf16", B | C, 4, 4, 16, T_BF16, T_BF16, blocks_input, result_4x4_16 },
    { "v_mfma_f32_32x32x8_bf16", B | C, 32, 8, 1, T_BF16, T_BF16, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x16_bf16", B | C, 16, 16, 1, T_BF16, T_BF16, one_block_input, result_16x16 },
    { "v_mfma_i32_32x32x4_2b_i8", B | C, 32, 4, 2, T_I8, T_I8, blocks_input, result_32x32_2 },
    { "v_mfma_i32_16x16x4_4b_i8", B | C, 16, 4, 4, T_I8, T_I8, blocks_input, result_16x16_4 },
    { "v_mfma_i32_4x4x4_16b_i8", B | C, 4, 4, 16, T_I8, T_I8, blocks_input, result_4x4_16 },
    { "v_mfma_i32_32x32x16_i8", B | C, 32, 16, 1, T_I8, T_I8, one_block_input, result_32x32 },
    { "v_mfma_i32_16x16x32_i8", B | C, 16, 32, 1, T_I8, T_I8, one_block_input, result_16x16 },
    { "v_mfma_f32_16x16x8_xf32", B, 16, 8, 1, T_XF32, T_XF32, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x4_xf32", B, 32, 4, 1, T_XF32, T_XF32, one_block_input, result_32x32 },
    { "v_mfma_f64_16x16x4_f64", B | C, 16, 4, 1, T_F64, T_F64, one_block_input, result_f64_16x16 },
    { "v_mfma_f64_4x4x4_4b_f64", B | C, 4, 4, 4, T_F64, T_F64, f64_4x4_input, result_f64_4x4 },
    { "v_mfma_f32_16x16x32_fp8_fp8", B | C, 16, 32, 1, T_FP8, T_FP8, one_block_input, result_16x16 },
    { "v_mfma_f32_16x16x32_fp8_bf8", B | C, 16, 32, 1, T_FP8, T_BF8, one_block_input, result_16x16 },
    { "v_mfma_f32_16x16x32_bf8_fp8", B | C, 16, 32, 1, T_BF8, T_FP8, one_block_input, result_16x16 },
    { "v_mfma_f32_16x16x32_bf8_bf8", B | C, 16, 32, 1, T_BF8, T_BF8, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x16_fp8_fp8", B | C, 32, 16, 1, T_FP8, T_FP8, one_block_input, result_32x32 },
    { "v_mfma_f32_32x32x16_fp8_bf8", B | C, 32, 16, 1, T_FP8, T_BF8, one_block_input, result_32x32 },
    { "v_mfma_f32_32x32x16_bf8_fp8", B | C, 32, 16, 1, T_BF8, T_FP8, one_block_input, result_32x32 },
    { "v_mfma_f32_32x32x16_bf8_bf8", B | C, 32, 16, 1, T_BF8, T_BF8, one_block_input, result_32x32 },

    { "v_mfma_f32_16x16x32_f16", C, 16, 32, 1, T_F16, T_F16, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x16_f16", C, 32, 16, 1, T_F16, T_F16, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x32_bf16", C, 16, 32, 1, T_BF16, T_BF16, one_block_input, result_16x16 },
    { "v_mfma_f32_32x32x16_bf16", C, 32, 16, 1, T_BF16, T_BF16, one_block_input, result_32x32 },
    { "v_mfma_i32_16x16x64_i8", C, 16, 64, 1, T_I8, T_I8, one_block_input, result_16x16 },
    { "v_mfma_i32_32x32x32_i8", C, 32, 32, 1, T_I8, T_I8, one_block_input, result_32x32 },
    { "v_mfma_f32_16x16x128_f8f6f4", C, 16, 128, 1, T_FP8, T_FP8, one_block_input, result_16x16 },
    { "v_mfma_f32_16x16x128_f8f6f4", C, 16, 128, 1, T_FP8, T_BF8, one_block_input, result_16x16, "blgp:1" },
    { "v_mfma_f32_16x16x128_f8f6f4", C, 16, 128, 1, T_BF8, T_FP8, one_block_input, result_16x16, "cbsz:1" },
    { "v_mfma_f32_16x16x128_f8f6f4", C, 16, 128, 1, T_BF8, T_BF8, one_block_input, result_16x16, "cbsz:1 blgp:1" },
    { "v_mfma_f32_32x32x64_f8f6f4", C, 32, 64, 1, T_FP8, T_FP8, one_block_input, result_32x32 },
    { "v_mfma_f32_32x32x64_f8f6f4", C, 32, 64, 1, T_BF8, T_FP8, one_block_input, result_32x32, "cbsz:1" },
};
enum { CASES = sizeof cases / sizeof cases[0], MOST_WORDS = 32 };

static int elements_of(const matrix_case *m) { return m->depth * m->size * m->blocks / 64; }
static int input_words(const matrix_case *m, type t) { return (elements_of(m) * type_bits[t] + 31) / 32; }
static int result_elements(const matrix_case *m) { return m->size * m->size * m->blocks / 64; }
static int result_words(const matrix_case *m) { return result_elements(m) * (m->a == T_F64 ? 2 : 1); }

/* ------------------------------------------------------------------------------------------------------ the kernels */

static void registers(char *out, size_t size, int first, int words) {
    if (words == 1)
        snprintf(out, size, "v%d", first);
    else
        snprintf(out, size, "v[%d:%d]", first, first + words - 1);
}

/* Each lane loads its words of A to v10.., B to v20.., C to v32.., and stores D. */
static void append_case(FILE *file, const char *chip, const matrix_case *m, const char *name) {
    char body[16384], a[16], b[16], c[16];
    size_t at = 0;
    const int words[3] = { input_words(m, m->a), input_words(m, m->b), result_words(m) }, first[3] = { 10, 20, 32 };
    at += (size_t)snprintf(body + at, sizeof body - at,
                           "s_load_dwordx8 s[8:15], s[0:1], 0x0\nv_lshlrev_b32 v0, 2, v0\ns_waitcnt lgkmcnt(0)\n");
    for (int matrix = 0; matrix < 3; matrix++) {
        at += (size_t)snprintf(body + at, sizeof body - at, "v_mov_b32 v1, v0\n");
        for (int i = 0; i < words[matrix]; i++)
            at += (size_t)snprintf(body + at, sizeof body - at,
                                   "global_load_dword v%d, v1, s[%d:%d]\nv_add_u32 v1, 0x100, v1\n", first[matrix] + i,
                                   8 + 2 * matrix, 9 + 2 * matrix);
    }
    registers(a, sizeof a, first[0], words[0]);
    registers(b, sizeof b, first[1], words[1]);
    registers(c, sizeof c, first[2], words[2]);
    at +=
        (size_t)snprintf(body + at, sizeof body - at, "s_waitcnt vmcnt(0)\n%s %s, %s, %s, %s %s\ns_nop 15\ns_nop 15\n",
                         m->name, c, a, b, c, m->modifiers ? m->modifiers : "");
    for (int i = 0; i < words[2]; i++)
        at += (size_t)snprintf(body + at, sizeof body - at,
                               "global_store_dword v0, v%d, s[14:15]\nv_add_u32 v0, 0x100, v0\n", first[2] + i);
    append_kernel(file, chip, name, body);
}

static char *source_of(cdna_chip chip) {
    char *text = NULL, names[CASES][16];
    const char *list[CASES];
    size_t size;
    int count = 0;
    FILE *file = open_memstream(&text, &size);
    for (int i = 0; i < CASES; i++) {
        if (!(cases[i].chips >> chip & 1)) continue;
        snprintf(names[count], sizeof names[count], "case%d", i);
        append_case(file, cdna_chip_name(chip), &cases[i], names[count]);
        list[count] = names[count];
        count++;
    }
    append_metadata(file, cdna_chip_name(chip), list, count);
    fclose(file);
    return text;
}

/* ------------------------------------------------------------------------------------------------------- the values */

static uint64_t encode(cdna_chip chip, type t, int value) {
    const bool ocp = chip == CDNA_GFX950;
    switch (t) {
    case T_F64: return double_bits(value);
    case T_F16: return float_half((float)value);
    case T_BF16: return float_bfloat((float)value);
    case T_I8: return (uint8_t)value;
    case T_FP8: return float_minifloat(ocp ? &minifloat_e4m3 : &minifloat_e4m3fnuz, (float)value, false);
    case T_BF8: return float_minifloat(ocp ? &minifloat_e5m2 : &minifloat_e5m2fnuz, (float)value, false);
    default: return float_bits((float)value);
    }
}

static void put(uint32_t (*words)[64], int bits, int l, int q, uint64_t code) {
    if (bits == 64) {
        words[2 * q][l] = (uint32_t)code;
        words[2 * q + 1][l] = (uint32_t)(code >> 32);
    } else {
        words[q * bits / 32][l] |= (uint32_t)code << q * bits % 32;
    }
}

static uint64_t encode_result(const matrix_case *m, int value) {
    return m->a == T_F64 ? double_bits(value) : m->a == T_I8 ? (uint32_t)value : float_bits((float)value);
}

static bool check_case(bench *b, cdna_chip chip, int which) {
    const matrix_case *m = &cases[which];
    static int left[16][32][128], right[16][32][128], addend[16][32][32];
    uint32_t(*memory[4])[64];
    char name[16];
    snprintf(name, sizeof name, "case%d", which);
    for (int i = 0; i < 4; i++) {
        memory[i] = cdna_memory_alloc(b->machine, sizeof(uint32_t[MOST_WORDS][64]));
        memset(memory[i], 0, sizeof(uint32_t[MOST_WORDS][64]));
    }
    const int e = elements_of(m), result_bits = m->a == T_F64 ? 64 : 32;
    for (int l = 0; l < 64; l++) {
        for (int q = 0; q < e; q++) {
            const position p = m->input(m->size, e, l, q);
            const int x = (int)(random_bits() % 7) - 3, y = (int)(random_bits() % 7) - 3;
            left[p.block][p.i][p.j] = x;
            right[p.block][p.i][p.j] = y;
            put(memory[0], type_bits[m->a], l, q, encode(chip, m->a, x));
            put(memory[1], type_bits[m->b], l, q, encode(chip, m->b, y));
        }
        for (int r = 0; r < result_elements(m); r++) {
            const position p = m->result(r, l);
            addend[p.block][p.i][p.j] = (int)(random_bits() % 201) - 100;
            put(memory[2], result_bits, l, r, encode_result(m, addend[p.block][p.i][p.j]));
        }
    }
    bool good = bench_run(b, name, 1, 64, memory, sizeof memory);
    if (!good) printf("# %s\n", b->failure.message);
    for (int l = 0; good && l < 64; l++) {
        for (int r = 0; good && r < result_elements(m); r++) {
            const position p = m->result(r, l);
            int sum = addend[p.block][p.i][p.j];
            for (int k = 0; k < m->depth; k++) sum += left[p.block][p.i][k] * right[p.block][p.j][k];
            const uint64_t want = encode_result(m, sum);
            const uint64_t got =
                result_bits == 64 ? (uint64_t)memory[3][2 * r + 1][l] << 32 | memory[3][2 * r][l] : memory[3][r][l];
            good = got == want;
            if (!good)
                printf("# D[%d][%d] of block %d, register %d of lane %d: 0x%llx, not 0x%llx\n", p.i, p.j, p.block, r, l,
                       (unsigned long long)got, (unsigned long long)want);
        }
    }
    for (int i = 0; i < 4; i++) cdna_memory_free(b->machine, memory[i]);
    return good;
}

int main(void) {
    for (int chip = 0; chip < CDNA_CHIPS; chip++) {
        const char *name = cdna_chip_name((cdna_chip)chip);
        if (!chip_builds(name)) {
            tap(true, "%s # SKIP this clang does not know it", name);
            continue;
        }
        bench b;
        char *source = source_of((cdna_chip)chip);
        if (!tap(bench_open(&b, (cdna_chip)chip, false, source), "%s: the kernels assemble and load", name)) continue;
        for (int i = 0; i < CASES; i++)
            if (cases[i].chips >> chip & 1)
                tap(check_case(&b, (cdna_chip)chip, i), "%s: %s %s", name, cases[i].name,
                    cases[i].modifiers ? cases[i].modifiers : "");
        free(source);
        cdna_close(b.machine);
    }
    return tap_end();
}
