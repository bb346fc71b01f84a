/* SPDX-License-Identifier: Apache-2.0 */
/* The snippets of instructions.def on each chip, against what the host computes. */
#include <math.h>

#include "number.h"
#include "toolchain.h"

#define MASK UINT64_C(0x5555aaaaf0f0c3c3)

/* What a case may look at. */
typedef struct view {
    const uint32_t *x, *y, *z; /* a, b, c of all lanes */
    const uint32_t *got;       /* the word under test */
    cdna_chip chip;
} view;

typedef uint64_t expect_function(const view *view, int l);

#define DOUBLE(value) double_bits(value)
#define HALF(word, h) half_float((uint16_t)((word) >> 16 * (h)))
#define FLUSH(value) flush_subnormal(value)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define DOT4(a, b) dot4(a, b)
#define FP8 (view->chip == CDNA_GFX950 ? &minifloat_e4m3 : &minifloat_e4m3fnuz)
#define MINIFLOAT(value) float_minifloat(FP8, value, false)
#define MINIFLOAT_OF(code) minifloat_float(FP8, code)

#define TURNED(n) (uint64_t)((l & 2 ? y : x)[(l / 16 * 16 + l % 16 / 4 + 4 * (n)) ^ 8] >> 16 * (l & 1) & 0xffff)

static float flush_subnormal(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

static uint32_t dot4(uint32_t a, uint32_t b) {
    int32_t sum = 0;
    for (int i = 0; i < 32; i += 8) sum += (int8_t)(a >> i) * (int8_t)(b >> i);
    return (uint32_t)sum;
}

/* How a result is compared: bit for bit, or as one or two floats, any NaN being any other, and the zeros equal. */
typedef enum comparison { ONE_WORD, TWO_WORDS, ONE_FLOAT, TWO_FLOATS, TWO_HALVES } comparison;

typedef struct instruction_case {
    const char *text;
    comparison how;
    enum { EVERYWHERE, FROM_GFX942, ON_GFX90A, ON_GFX950 } where;
    expect_function *expect;
} instruction_case;

#define CONCATENATE_(a, b) a##b
#define CONCATENATE(a, b) CONCATENATE_(a, b)
#define LATER(kind, ...) kind(__VA_ARGS__)
#define EARLIER(kind, ...) kind(__VA_ARGS__)
#define ONLY_GFX950(kind, ...) kind(__VA_ARGS__)
#define FUNCTION(value) \
    static uint64_t CONCATENATE(expect_, __LINE__)(const view *view, int l) { \
        const uint32_t *const x = view->x, *const y = view->y, *const z = view->z, *const got = view->got; \
        const uint32_t a = x[l], b = y[l], c = z[l]; \
        const float A = bits_float(a), B = bits_float(b), C = bits_float(c); \
        const double AD = bits_double((uint64_t)b << 32 | a), BD = bits_double((uint64_t)c << 32 | b); \
        (void)x, (void)y, (void)z, (void)got, (void)a, (void)b, (void)c, (void)A, (void)B, (void)C, (void)AD, \
            (void)BD; \
        return value; \
    }
#define WORD(text, value) FUNCTION((uint32_t)(value))
#define PAIR(text, value) FUNCTION(value)
#define FLOAT(text, value) FUNCTION(float_bits(value))
#define FLOATS(text, low, high) FUNCTION(float_bits(low) | (uint64_t)float_bits(high) << 32)
#define HALVES(text, low, high) FUNCTION(float_half(low) | (uint32_t)float_half(high) << 16)
#include "instructions.def"
#undef WORD
#undef PAIR
#undef FLOAT
#undef FLOATS
#undef HALVES
#undef LATER
#undef EARLIER
#undef ONLY_GFX950

#define LATER(kind, ...) CONCATENATE(kind, _)(FROM_GFX942, __VA_ARGS__)
#define EARLIER(kind, ...) CONCATENATE(kind, _)(ON_GFX90A, __VA_ARGS__)
#define ONLY_GFX950(kind, ...) CONCATENATE(kind, _)(ON_GFX950, __VA_ARGS__)
#define CASE(how, where, text) { text, how, where, CONCATENATE(expect_, __LINE__) },
#define WORD_(where, text, value) CASE(ONE_WORD, where, text)
#define PAIR_(where, text, value) CASE(TWO_WORDS, where, text)
#define FLOAT_(where, text, value) CASE(ONE_FLOAT, where, text)
#define WORD(text, value) WORD_(EVERYWHERE, text, value)
#define PAIR(text, value) PAIR_(EVERYWHERE, text, value)
#define FLOAT(text, value) FLOAT_(EVERYWHERE, text, value)
#define FLOATS(text, low, high) CASE(TWO_FLOATS, EVERYWHERE, text)
#define HALVES(text, low, high) CASE(TWO_HALVES, EVERYWHERE, text)
static const instruction_case cases[] = {
#include "instructions.def"
};
enum { CASES = sizeof cases / sizeof cases[0], GROUPS = 16 };

static bool is_on(const instruction_case *k, cdna_chip chip) {
    static const unsigned chips[] = { [EVERYWHERE] = 7, [FROM_GFX942] = 6, [ON_GFX90A] = 1, [ON_GFX950] = 4 };
    return chips[k->where] >> chip & 1;
}

/* ------------------------------------------------------------------------------------------------------ the kernels */

static const char before[] = "s_load_dwordx8 s[8:15], s[0:1], 0x0\n"
                             "s_load_dwordx2 s[28:29], s[0:1], 0x20\n"
                             "s_lshl_b32 s3, s2, 8\n"
                             "v_lshlrev_b32 v8, 2, v0\n"
                             "v_add_u32 v9, s3, v8\n"
                             "s_waitcnt lgkmcnt(0)\n"
                             "global_load_dword v1, v9, s[8:9]\n"
                             "global_load_dword v2, v9, s[10:11]\n"
                             "global_load_dword v3, v9, s[12:13]\n"
                             "v_lshl_add_u32 v100, s3, 1, v8\n"
                             "s_lshl_b32 s3, s3, 2\n"
                             "s_add_u32 s28, s28, s3\n"
                             "s_addc_u32 s29, s29, 0\n"
                             "s_waitcnt vmcnt(0)\n"
                             "v_mov_b32 v4, v1\nv_mov_b32 v5, v2\nv_mov_b32 v6, v2\nv_mov_b32 v7, v3\nv_mov_b32 v10, "
                             "v3\nv_mov_b32 v9, 0\nv_mov_b32 v11, 0\n"
                             "v_readfirstlane_b32 s20, v1\nv_readfirstlane_b32 s21, v2\nv_readfirstlane_b32 s22, v3\n"
                             "s_mov_b32 s24, s20\ns_mov_b32 s25, s21\n"
                             "s_mov_b32 s26, 0xf0f0c3c3\ns_mov_b32 s27, 0x5555aaaa\ns_mov_b64 vcc, s[26:27]\n"
                             "s_nop 4\n";
static const char after[] =
    "\ns_nop 4\nglobal_store_dword v100, v10, s[14:15]\nglobal_store_dword v100, v11, s[14:15] offset:256\n";

static char *source_of(cdna_chip chip) {
    char *text = NULL, names[CASES][16], body[4096];
    const char *list[CASES];
    size_t size;
    int count = 0;
    FILE *file = open_memstream(&text, &size);
    for (int i = 0; i < CASES; i++) {
        if (!is_on(&cases[i], chip)) continue;
        snprintf(names[count], sizeof names[count], "case%d", i);
        snprintf(body, sizeof body, "%s%s%s", before, cases[i].text, after);
        append_kernel(file, cdna_chip_name(chip), names[count], body);
        list[count] = names[count];
        count++;
    }
    append_metadata(file, cdna_chip_name(chip), list, count);
    fclose(file);
    return text;
}

/* ------------------------------------------------------------------------------------------------------- the values */

/* Anything but a signalling NaN: floats of middling size, small integers, special values, raw bits. */
static uint32_t quiet(uint32_t bits) { return isnan(bits_float(bits)) ? bits | 0x400000 : bits; }
static uint32_t interesting(void) {
    static const float special[] = { 0,         -0.0f,           1,    -1,   INFINITY, -INFINITY, NAN, 0x1p-149f,
                                     0x1p-126f, 0x1.fffffep127f, 0.5f, -2.5f };
    const uint32_t bits = random_bits();
    switch (bits >> 28 & 3) {
    case 0: return float_bits(ldexpf((float)(int32_t)random_bits(), -31 + (int)(bits % 9)));
    case 1: return quiet(bits % 129 - 64);
    case 2: return float_bits(special[bits % 12]);
    default: return quiet(random_bits());
    }
}

static bool same_float(uint32_t got, uint32_t want) {
    const float x = bits_float(got), y = bits_float(want);
    return x == y || (isnan(x) && isnan(y));
}
static bool same_half(uint32_t got, uint32_t want) {
    return same_float(float_bits(half_float((uint16_t)got)), float_bits(half_float((uint16_t)want)));
}

static bool same(comparison how, const uint32_t got[2], uint64_t want) {
    const uint32_t low = (uint32_t)want, high = (uint32_t)(want >> 32);
    const double wide_got = bits_double((uint64_t)got[1] << 32 | got[0]), wide_want = bits_double(want);
    switch (how) {
    case ONE_WORD: return got[0] == low;
    case TWO_WORDS: return (got[0] == low && got[1] == high) || (isnan(wide_got) && isnan(wide_want));
    case ONE_FLOAT: return same_float(got[0], low);
    case TWO_FLOATS: return same_float(got[0], low) && same_float(got[1], high);
    default: return same_half(got[0], low) && same_half(got[0] >> 16, low >> 16);
    }
}

typedef struct buffers {
    uint32_t (*a)[64], (*b)[64], (*c)[64], (*out)[2][64], (*area)[256];
} buffers;

static bool check_case(bench *bench, cdna_chip chip, const buffers *m, int which) {
    const instruction_case *k = &cases[which];
    char name[16];
    snprintf(name, sizeof name, "case%d", which);
    for (int g = 0; g < GROUPS; g++) {
        memset(m->area[g], 0xa5, sizeof m->area[g]);
        memcpy(m->area[g], m->a[g], sizeof m->a[g]);
    }
    memset(m->out, 0xa5, sizeof *m->out * GROUPS);
    if (!bench_run(bench, name, GROUPS, 64, m, sizeof *m)) {
        printf("# %s\n", bench->failure.message);
        return false;
    }
    for (int g = 0; g < GROUPS; g++) {
        for (int l = 0; l < 64; l++) {
            const uint32_t got[2] = { m->out[g][0][l], m->out[g][1][l] };
            const view view = { m->a[g], m->b[g], m->c[g], got, chip };
            const uint64_t want = k->expect(&view, l);
            if (same(k->how, got, want)) continue;
            printf("# lane %d, a 0x%x, b 0x%x, c 0x%x: 0x%x 0x%x, not 0x%llx\n", l, m->a[g][l], m->b[g][l], m->c[g][l],
                   got[0], got[1], (unsigned long long)want);
            return false;
        }
    }
    return true;
}

static void check_chip(cdna_chip chip) {
    const char *name = cdna_chip_name(chip);
    bench b;
    char *source = source_of(chip);
    if (!tap(bench_open(&b, chip, false, source), "%s: the snippets assemble and load", name)) return;
    const buffers m = { cdna_memory_alloc(b.machine, sizeof *m.a * GROUPS),
                        cdna_memory_alloc(b.machine, sizeof *m.b * GROUPS),
                        cdna_memory_alloc(b.machine, sizeof *m.c * GROUPS),
                        cdna_memory_alloc(b.machine, sizeof *m.out * GROUPS),
                        cdna_memory_alloc(b.machine, sizeof *m.area * GROUPS) };
    for (int i = 0; i < GROUPS * 64; i++) {
        m.a[i / 64][i % 64] = interesting();
        m.b[i / 64][i % 64] = interesting();
        m.c[i / 64][i % 64] = interesting();
    }
    for (int i = 0; i < CASES; i++) {
        if (!is_on(&cases[i], chip)) continue;
        const int length = (int)strcspn(cases[i].text, "\n");
        tap(check_case(&b, chip, &m, i), "%s: %.*s%s", name, length, cases[i].text,
            cases[i].text[length] ? " ..." : "");
    }
    free(source);
    cdna_close(b.machine);
}

int main(void) {
    for (int chip = 0; chip < CDNA_CHIPS; chip++) {
        if (chip_builds(cdna_chip_name((cdna_chip)chip)))
            check_chip((cdna_chip)chip);
        else
            tap(true, "%s # SKIP this clang does not know it", cdna_chip_name((cdna_chip)chip));
    }
    return tap_end();
}
