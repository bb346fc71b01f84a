/* SPDX-License-Identifier: Apache-2.0 */
/* The sources that are written of chains, many of them random, are taken by NVRTC for each architecture; nothing is
 * run. Speaks TAP. With SOURCES=DIRECTORY in the environment they are written there too. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backends/simt/chain/chain_source.h"
#include "backends/simt/core/compile.h"
#include "spec/chain/parse.h"
#include "tests/tap.h"

enum { RANDOM = 24, SOURCE_SIZE = 1 << 18 };

static const char *const archs[] = { "sm_80", "sm_90a", "sm_100", "sm_120" };
enum { ARCHS = sizeof archs / sizeof archs[0] };

static const char *const texts[] = {
    "y0 = x0",
    "y0 = 2; y1 = x0 != x1",
    "y0 = max_row(x0)",
    "t = x0 + x1; m = max_row(t); e = exp(t - m); y0 = e / sum_row(e)",
    "m = mean_row(x0); c = x0 - m; y0 = c * rsqrt(mean_row(c * c) + 0.00001) * x1 + x2; y1 = m",
    "y0 = min_row(x0) + max_row(x1) * sum_row(x2 * x3) - x4; y1 = x5; y2 = x6; y3 = x7",
    "y0 = abs(x0) + sqrt(x1) + rsqrt(x0) + log(x1) + tanh(x0) + erf(x1); y1 = gelu(x0) + gelu_tanh(x1) + relu(x0)",
    "y0 = floor(x0) + bf16(x1) + f16(x0) + select(x0 < x1, silu(x0), sigmoid(x1)) + fma(x0, x1, -x0); y1 = x0 <= x1",
    "r0 = 3; y0 = x0 / x1",
    "m = max_row(x0); e = exp(x0 - m); s = sum_row(e * e); y0 = e / s; y1 = tanh(e); r0 = m + log(s); r1 = s / 3",
    "a = sum_row(x0); b = sum_row(x0 * a); c = sum_row(x0 * b); d = sum_row(x0 * c); y0 = x0 * d",
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static uint64_t state = 88172645463325252u;
static unsigned below(unsigned n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % n;
}

/* ------------------------------------------------------------------------------------------------- random programs */

typedef struct line {
    char text[CHAIN_TEXT + 1];
    size_t length;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *l, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t room = sizeof l->text - l->length;
    const int length = vsnprintf(l->text + l->length, room, format, arguments);
    l->length += (size_t)length < room ? (size_t)length : room - 1;
    va_end(arguments);
}

static void add_expression(line *l, int depth, bool rows) {
    static const char *const unary[] = { "abs",  "sqrt", "rsqrt", "exp",  "log",  "tanh", "erf",      "sigmoid",
                                         "silu", "gelu", "floor", "relu", "bf16", "f16",  "gelu_tanh" };
    static const char *const binary[] = { "+", "-", "*", "/" };
    static const char *const reductions[] = { "sum_row", "mean_row", "max_row", "min_row" };
    if (depth == 0) {
        if (below(4) == 0)
            add(l, "%u.%u", below(9), below(10));
        else
            add(l, "x%u", below(CHAIN_INPUTS));
        return;
    }
    const unsigned kind = below(rows ? 6 : 5);
    if (kind == 0) {
        add(l, "%s(", unary[below(sizeof unary / sizeof unary[0])]);
        add_expression(l, depth - 1, rows);
    } else if (kind == 1) {
        add(l, "select(x%u < x%u, ", below(CHAIN_INPUTS), below(CHAIN_INPUTS));
        add_expression(l, depth - 1, rows);
        add(l, ", ");
        add_expression(l, depth - 1, rows);
    } else if (kind == 2) {
        add(l, "fma(x%u, 0.5, ", below(CHAIN_INPUTS));
        add_expression(l, depth - 1, rows);
    } else if (kind == 5) {
        add(l, "%s(", reductions[below(4)]);
        add_expression(l, depth - 1, rows);
    } else {
        add(l, "(");
        add_expression(l, depth - 1, rows);
        add(l, " %s ", binary[below(4)]);
        add_expression(l, depth - 1, rows);
    }
    add(l, ")");
}

/* A program that fits. */
static void draw_program(bool wide, chain_program *program_out) {
    line l;
    chain_graph graph;
    do {
        l.length = 0;
        const bool rows = below(2);
        for (unsigned i = 0, outputs = 1 + below(CHAIN_OUTPUTS); i < outputs; i++) {
            add(&l, "%sy%u = ", i > 0 ? "; " : "", i);
            add_expression(&l, 1 + (int)below(3), rows);
        }
        for (unsigned i = 0; rows && i < below(CHAIN_ROW_OUTPUTS + 1); i++) {
            add(&l, "; r%u = max_row(", i);
            add_expression(&l, 1, false);
            add(&l, ")");
        }
    } while (!trine_chain_parse(l.text, wide, &graph, NULL, 0) || !trine_chain_compile(&graph, program_out, NULL, 0));
}

static void draw_layout(const chain_program *program, chain_layout *l) {
    static const uint16_t types[] = { TRINE_F32, TRINE_BF16, TRINE_F16, TRINE_I8, TRINE_U8, TRINE_I32 };
    static const uint16_t wide_types[] = { TRINE_F64, TRINE_F32, TRINE_I32 };
    static const uint16_t groups[] = { 8, 32, 64, 128, 512 };
    memset(l, 0, sizeof *l);
    const uint32_t set = (uint32_t)program->inputs | (uint32_t)program->outputs << CHAIN_INPUTS;
    l->outer = (uint8_t)below(CHAIN_AROUND + 1);
    l->length = (uint8_t)(!chain_by_rows(program) && below(3) == 0 ? 1 : (below(2) ? 4 : 8) / (program->wide ? 2 : 1));
    l->units = (uint8_t)(1 << below(program->steps > 24 ? 2 : 3));
    l->vectors = (uint8_t)(1 << below(program->steps > 40 ? 1 : 3));
    l->whole = below(2);
    l->pieces = below(2);
    l->many = below(4) == 0;
    l->group = chain_by_rows(program) ? groups[below(5)] : 0;
    l->threads = l->group <= 32 ? 256 : l->group;
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        if (!(set >> t & 1) || (t >= CHAIN_INPUTS && below(8) == 0)) continue;
        const bool of_row = t >= CHAIN_ROW_VIEWS;
        l->type[t] = program->wide ? wide_types[below(t == 0 ? 3 : 2)] : types[of_row ? 0 : below(t == 0 ? 6 : 3)];
        l->place[t] = of_row || (t < CHAIN_INPUTS && below(4) == 0) ? CHAIN_STILL : CHAIN_ALONG;
    }
}

/* ----------------------------------------------------------------------------------------------------- compiling */

static struct {
    int (*CreateProgram)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*CompileProgram)(void *, int, const char *const *);
    int (*DestroyProgram)(void **);
    int (*GetProgramLogSize)(void *, size_t *);
    int (*GetProgramLog)(void *, char *);
    int (*GetCUBINSize)(void *, size_t *);
} nvrtc;

static bool find_nvrtc(void) {
    void *library = NULL;
    for (const char *const *name = simt_compiler_of_vendor.libraries; library == NULL && *name != NULL; name++)
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
#define FIND(name) *(void **)&nvrtc.name = dlsym(library, "nvrtc" #name)
    FIND(CreateProgram);
    FIND(CompileProgram);
    FIND(DestroyProgram);
    FIND(GetProgramLogSize);
    FIND(GetProgramLog);
    FIND(GetCUBINSize);
#undef FIND
    return nvrtc.CreateProgram && nvrtc.CompileProgram && nvrtc.GetCUBINSize;
}

static void print_log(void *program) {
    size_t size = 0;
    nvrtc.GetProgramLogSize(program, &size);
    char *log = calloc(1, size + 1), *rest = log;
    nvrtc.GetProgramLog(program, log);
    for (char *at; (at = strsep(&rest, "\n")) != NULL;) printf("# %s\n", at);
    free(log);
}

static bool compiles(const char *source, const char *arch) {
    static const char *const header[] = { "fetch.h" };
    const char *options[16];
    char arch_option[64];
    int count = 0;
    void *program;
    snprintf(arch_option, sizeof arch_option, "%s%s", simt_compiler_of_vendor.arch_option, arch);
    options[count++] = arch_option;
    for (const char *const *o = simt_compiler_of_vendor.options; *o != NULL; o++) options[count++] = *o;
    if (nvrtc.CreateProgram(&program, source, "chain", 1, &simt_compiler_of_vendor.vocabulary, header) != 0)
        return false;
    size_t size = 0;
    const bool made =
        nvrtc.CompileProgram(program, count, options) == 0 && nvrtc.GetCUBINSize(program, &size) == 0 && size > 0;
    if (!made) print_log(program);
    nvrtc.DestroyProgram(&program);
    return made;
}

static void keep(const char *source, int number) {
    const char *directory = getenv("SOURCES");
    char path[512];
    if (directory == NULL) return;
    snprintf(path, sizeof path, "%s/%d.cu", directory, number);
    FILE *file = fopen(path, "w");
    if (file == NULL) return;
    fputs(source, file);
    fclose(file);
}

int main(void) {
    static char source[SOURCE_SIZE];
    if (!find_nvrtc()) return tap_skip_all("there is no NVRTC");
    for (int i = 0; i < TEXTS + RANDOM; i++) {
        chain_graph graph;
        chain_program program;
        chain_layout layout;
        if (i >= TEXTS)
            draw_program(i % 2, &program);
        else if (!trine_chain_parse(texts[i], i % 2, &graph, NULL, 0) ||
                 !trine_chain_compile(&graph, &program, NULL, 0)) {
            tap(false, "\"%s\" is a program", texts[i]);
            continue;
        }
        draw_layout(&program, &layout);
        const size_t length = chain_source(&program, &layout, source, sizeof source);
        keep(source, i);
        const char *arch = archs[i % ARCHS];
        tap(length < sizeof source && compiles(source, arch), "program %d of %s for %s: %d steps, %d phases, group %d",
            i, program.wide ? "f64" : "f32", arch, program.steps, program.phases, layout.group);
    }
    return tap_end();
}
