/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a program as C++ in straight lines, below the body that all compiled chains share. */
#include "chain_source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const char trine_chain_text[]; /* chain_body.h and what it includes */

typedef struct writer {
    char *out;
    size_t size, length;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const bool room = w->length < w->size;
    w->length += (size_t)vsnprintf(room ? w->out + w->length : NULL, room ? w->size - w->length : 0, format, arguments);
    va_end(arguments);
}

static const char *type_name(uint16_t type) { return trine_dtype_name(type); }

static void put_operand(writer *w, int place) {
    if (place < CHAIN_ROW)
        put(w, "r%d", place);
    else if (place < CHAIN_CONSTANT)
        put(w, "row[%d]", place - CHAIN_ROW);
    else
        put(w, "p.constant[%d]", place - CHAIN_CONSTANT);
}

/* A step's value. */
static void put_value(writer *w, const chain_step *s) {
    const int operands = chain_operands(s->op);
    const uint8_t place[] = { s->a, s->b, s->c };
    if (s->op == CHAIN_LOAD) {
        put(w, "x[%d];\n", s->a);
        return;
    }
    put(w, "chain_do(%d", s->op);
    for (int i = 0; i < 3; i++) {
        put(w, ", ");
        if (i < operands)
            put_operand(w, place[i]);
        else
            put(w, "0");
    }
    put(w, ", 1);\n");
}

static void put_row_steps(writer *w, const chain_program *program, const chain_phase *phase) {
    put(w, "static DEVICE void row_steps(const chain_job &p, float (&row)[CHAIN_ROW_VALUES]) {\n");
    for (int i = phase->row; i < phase->first; i++) {
        const chain_step *s = &program->step[i];
        put(w, "row[%d] = ", s->to - (s->to >= CHAIN_ROW ? CHAIN_ROW : 0));
        if (s->op == CHAIN_OVER_N) {
            put_operand(w, s->a);
            put(w, " / (float)p.n;\n");
        } else {
            put_value(w, s);
        }
    }
    put(w, "}\n");
}

static const char *combination(int op) {
    return op == CHAIN_SUM_ROW ? "a + b" : op == CHAIN_MAX_ROW ? "chain_larger(a, b)" : "chain_smaller(a, b)";
}
static const char *beginning(int op) {
    return op == CHAIN_SUM_ROW ? "0" : op == CHAIN_MAX_ROW ? "-infinity()" : "infinity()";
}

/* What its reductions begin with, how they go on, and where they end. */
static void put_reductions(writer *w, const chain_program *program, const chain_phase *phase, int count) {
    put(w, "static constexpr int REDUCTIONS = %d;\n", count);
    put(w, "static DEVICE void start(float (&s)[REDUCTIONS]) {\n");
    for (int i = phase->first, j = 0; i < phase->end; i++)
        if (chain_reduces(program->step[i].op)) put(w, "s[%d] = %s;\n", j++, beginning(program->step[i].op));
    put(w, "}\nstatic DEVICE float combine(int j, float a, float b) {\nswitch (j) {\n");
    for (int i = phase->first, j = 0; i < phase->end; i++)
        if (chain_reduces(program->step[i].op)) put(w, "case %d: return %s;\n", j++, combination(program->step[i].op));
    put(w, "}\nreturn 0;\n}\n");
    put(w, "static DEVICE void keep(const float (&s)[REDUCTIONS], float (&row)[CHAIN_ROW_VALUES]) {\n");
    for (int i = phase->first, j = 0; i < phase->end; i++) {
        const chain_step *s = &program->step[i];
        if (chain_reduces(s->op)) put(w, "row[%d] = s[%d];\n", s->to - (s->to >= CHAIN_ROW ? CHAIN_ROW : 0), j++);
    }
    put(w, "}\n");
}

static void put_element(writer *w, const chain_program *program, const chain_phase *phase, int results) {
    put(w,
        "static DEVICE void element(const chain_job &p, const float (&row)[CHAIN_ROW_VALUES], const float "
        "(&x)[CHAIN_INPUTS], float (&y)[%d]) {\n",
        results);
    uint32_t written = 0;
    for (int i = phase->first; i < phase->end; i++) {
        const chain_step *s = &program->step[i];
        if (s->op != CHAIN_STORE && !chain_reduces(s->op)) written |= 1u << s->to;
    }
    for (int r = 0; r < CHAIN_REGISTERS; r++)
        if (written >> r & 1) put(w, "float r%d;\n", r);
    for (int i = phase->first, j = 0; i < phase->end; i++) {
        const chain_step *s = &program->step[i];
        if (s->op == CHAIN_STORE || chain_reduces(s->op)) {
            put(w, "y[%d] = ", s->op == CHAIN_STORE ? s->to : j++);
            put_operand(w, s->a);
            put(w, ";\n");
        } else {
            put(w, "r%d = ", s->to);
            put_value(w, s);
        }
    }
    put(w, "}\n");
}

static void put_phase(writer *w, const chain_program *program, int number) {
    const chain_phase *phase = &program->phase[number];
    int reductions = 0;
    for (int i = phase->first; i < phase->end; i++) reductions += chain_reduces(program->step[i].op);
    put(w, "template <> struct chain_code<%d> {\n", number);
    put_row_steps(w, program, phase);
    if (reductions > 0) put_reductions(w, program, phase, reductions);
    put_element(w, program, phase, reductions > 0 ? reductions : (int)CHAIN_OUTPUTS);
    put(w, "};\n");
}

static void put_shape(writer *w, const chain_program *program, const chain_layout *l) {
    put(w,
        "struct shape {\nstatic constexpr bool WHOLE = %d, PIECES = %d;\nenum { FIRST, PHASES = %d, THREADS = %d, "
        "GROUP = "
        "%d, VECTORS = %d, OUTER = %d, LENGTH = %d, UNITS = %d };\n",
        l->whole, l->pieces, program->phases, l->threads, l->group, l->vectors, l->outer, l->length, l->units);
    put(w, "static constexpr DEVICE int place(int i) {\nreturn ");
    for (int t = 0; t < CHAIN_VIEWS; t++)
        if (l->place[t] != CHAIN_ABSENT) put(w, "i == %d ? %d : ", t, l->place[t]);
    put(w, "%d;\n}\n};\n", CHAIN_ABSENT);
}

size_t chain_source(const chain_program *program, const chain_layout *l, char *text_out, size_t size) {
    writer w = { text_out, size, 0 };
    put(&w, "#include <target.h>\n%s", trine_chain_text);
    for (int t = 0; t < CHAIN_VIEWS; t++)
        if (l->place[t] != CHAIN_ABSENT)
            put(&w, "template <> struct chain_tensor<%d> {\nusing type = %s;\n};\n", t, type_name(l->type[t]));
    put_shape(&w, program, l);
    for (int i = 0; i < program->phases; i++) put_phase(&w, program, i);
    put(&w, "ENTRY(" CHAIN_ENTRY ", %d, chain_job) { %s<shape>(p); }\n}\n", l->threads,
        l->group == 0 ? "chain_walk" : "chain_over_rows");
    return w.length;
}
