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

/* --------------------------------------------------------------------------------------------- what elements keep */

enum { KEPT_MOST = 2, KEPT_ELEMENTS = 32 /* that a thread keeps in all, half of them in f64 */ };

/* A value of an element: what it is made of, other values by their number, what is the row's from UNIFORM on. */
enum { UNIFORM = CHAIN_STEPS };
typedef struct value {
    int op, from[3];
    int phase; /* the first that computes it */
} value;

/* Of rows in registers: which values phases compute again, and could keep. */
typedef struct keeping {
    int number[CHAIN_STEPS]; /* of a step's value */
    value value[CHAIN_STEPS];
    int values, kept[KEPT_MOST], count;
    bool needed[CHAIN_STEPS]; /* steps, where values are kept */
} keeping;

static bool is_sink(const chain_step *s) { return s->op == CHAIN_STORE || chain_reduces(s->op); }
static bool costs_much(int op) { return (op >= CHAIN_SQRT && op <= CHAIN_GELU_TANH) || op == CHAIN_DIV; }
static int kept_place(const keeping *k, int number) {
    for (int i = 0; i < k->count; i++)
        if (k->kept[i] == number) return i;
    return -1;
}

static int number_of(keeping *k, const chain_step *s, const int *in_register, int phase) {
    const uint8_t place[] = { s->a, s->b, s->c };
    value v = { .op = s->op, .phase = phase };
    if (s->op == CHAIN_LOAD) v.from[0] = s->a;
    for (int i = 0; i < chain_operands(s->op); i++)
        v.from[i] = place[i] < CHAIN_ROW ? in_register[place[i]] : UNIFORM + place[i];
    for (int i = 0; i < k->values; i++)
        if (k->value[i].op == v.op && memcmp(k->value[i].from, v.from, sizeof v.from) == 0) return i;
    k->value[k->values] = v;
    return k->values++;
}

/* Whatever a phase computes and an earlier one did is kept, if it costs much and there is room; what only that is made
 * of is then not needed. */
static void keep_of_phase(keeping *k, const chain_program *program, int phase, int most) {
    bool wanted[CHAIN_STEPS + 1] = { false }; /* values */
    for (int i = program->phase[phase].end - 1; i >= program->phase[phase].first; i--) {
        const chain_step *s = &program->step[i];
        const int number = k->number[i];
        k->needed[i] = is_sink(s) || wanted[number];
        if (!k->needed[i]) continue;
        if (!is_sink(s) && k->value[number].phase < phase && costs_much(s->op)) {
            if (kept_place(k, number) < 0 && k->count < most) k->kept[k->count++] = number;
            if (kept_place(k, number) >= 0) continue;
        }
        if (is_sink(s)) wanted[number] = true;
        for (int j = 0; !is_sink(s) && j < chain_operands(s->op); j++)
            if (k->value[number].from[j] < UNIFORM) wanted[k->value[number].from[j]] = true;
    }
}

static void find_kept(keeping *k, const chain_program *program, const chain_layout *l) {
    const int room = KEPT_ELEMENTS / (l->vectors * l->length * (program->wide ? 2 : 1)),
              most = l->group == 0 || l->pieces ? 0
                     : room < KEPT_MOST         ? room
                                                : KEPT_MOST;
    k->values = k->count = 0;
    for (int p = 0; p < program->phases; p++) {
        int in_register[CHAIN_REGISTERS] = { 0 };
        for (int i = program->phase[p].first; i < program->phase[p].end; i++) {
            const chain_step *s = &program->step[i];
            /* of a sink, the number of what goes there */
            k->number[i] = !is_sink(s)        ? number_of(k, s, in_register, p)
                           : s->a < CHAIN_ROW ? in_register[s->a]
                                              : CHAIN_STEPS;
            if (!is_sink(s)) in_register[s->to] = k->number[i];
        }
        keep_of_phase(k, program, p, most);
    }
}

/* ----------------------------------------------------------------------------------------------------------- steps */

static const char *type_name(uint16_t type) { return trine_dtype_name(type); }

/* What is the row's. */
static void put_operand(writer *w, int place) {
    if (place < CHAIN_CONSTANT)
        put(w, "row[%d]", place - CHAIN_ROW);
    else
        put(w, "p.numbers.CHAIN_NUMBERS[%d]", place - CHAIN_CONSTANT);
}

/* The value of a step on the row. */
static void put_value(writer *w, const chain_step *s) {
    const int operands = chain_operands(s->op);
    const uint8_t place[] = { s->a, s->b, s->c };
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

/* Of what elements of the phase are divided by. */
static void put_inverses(writer *w, const chain_program *program, const chain_phase *phase) {
    uint64_t there = 0;
    for (int i = phase->first; i < phase->end; i++) {
        const chain_step *s = &program->step[i];
        if (s->op != CHAIN_DIV || s->b < CHAIN_ROW || (there >> (s->b - CHAIN_ROW) & 1)) continue;
        there |= UINT64_C(1) << (s->b - CHAIN_ROW);
        put(w, "row[CHAIN_SCALES + %d] = chain_scale(", s->b - CHAIN_ROW);
        put_operand(w, s->b);
        put(w, ");\nrow[CHAIN_INVERSES + %d] = 1.0f / (", s->b - CHAIN_ROW);
        put_operand(w, s->b);
        put(w, " * row[CHAIN_SCALES + %d]);\n", s->b - CHAIN_ROW);
    }
}

static void put_row_steps(writer *w, const chain_program *program, const chain_phase *phase) {
    put(w, "static DEVICE void row_steps(const chain_job &p, real (&row)[CHAIN_KNOWN]) {\n");
    for (int i = phase->row; i < phase->first; i++) {
        const chain_step *s = &program->step[i];
        if (s->op == CHAIN_STORE_ROW) continue;
        put(w, "row[%d] = ", s->to - (s->to >= CHAIN_ROW ? CHAIN_ROW : 0));
        if (s->op == CHAIN_OVER_N) {
            put_operand(w, s->a);
            put(w, " / (real)p.n;\n");
        } else {
            put_value(w, s);
        }
    }
    put_inverses(w, program, phase);
    put(w, "}\n");
}

/* What the row's outputs get, by one thread. */
static void put_row_stores(writer *w, const chain_program *program, const chain_phase *phase, const chain_layout *l) {
    put(w,
        "static DEVICE void store_row(const chain_job &p, const chain_place &u, const real (&row)[CHAIN_KNOWN]) {\n");
    for (int i = phase->row; i < phase->first; i++) {
        const chain_step *s = &program->step[i];
        if (s->op != CHAIN_STORE_ROW || l->place[CHAIN_ROW_VIEWS + s->to] == CHAIN_ABSENT) continue;
        put(w, "chain_store_row<%d>(p, u, ", CHAIN_ROW_VIEWS + s->to);
        put_operand(w, s->a);
        put(w, ");\n");
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
    put(w, "static DEVICE void start(real (&s)[REDUCTIONS]) {\n");
    for (int i = phase->first, j = 0; i < phase->end; i++)
        if (chain_reduces(program->step[i].op)) put(w, "s[%d] = %s;\n", j++, beginning(program->step[i].op));
    put(w, "}\nstatic DEVICE real combine(int j, real a, real b) {\nswitch (j) {\n");
    for (int i = phase->first, j = 0; i < phase->end; i++)
        if (chain_reduces(program->step[i].op)) put(w, "case %d: return %s;\n", j++, combination(program->step[i].op));
    put(w, "}\nreturn 0;\n}\n");
    put(w, "static DEVICE void keep(const real (&s)[REDUCTIONS], real (&row)[CHAIN_KNOWN]) {\n");
    for (int i = phase->first, j = 0; i < phase->end; i++) {
        const chain_step *s = &program->step[i];
        if (chain_reduces(s->op)) put(w, "row[%d] = s[%d];\n", s->to - (s->to >= CHAIN_ROW ? CHAIN_ROW : 0), j++);
    }
    put(w, "}\n");
}

/* Which values of a phase are products that one sum or difference alone wants: they are a part of that. */
static void find_inside(const chain_phase *phase, const chain_program *program, const keeping *k, bool *inside) {
    int uses[CHAIN_STEPS + 1] = { 0 };
    memset(inside, 0, CHAIN_STEPS * sizeof *inside);
    for (int i = phase->first; i < phase->end; i++) {
        const value *v = &k->value[k->number[i]];
        if (!k->needed[i]) continue;
        if (is_sink(&program->step[i])) uses[k->number[i]]++;
        for (int j = 0; !is_sink(&program->step[i]) && j < chain_operands(v->op); j++)
            if (v->from[j] < UNIFORM) uses[v->from[j]]++;
    }
    for (int i = phase->first; i < phase->end; i++) {
        const value *v = &k->value[k->number[i]];
        if (!k->needed[i] || is_sink(&program->step[i]) || (v->op != CHAIN_ADD && v->op != CHAIN_SUB)) continue;
        for (int j = 0; j < 2; j++) {
            const int of = v->from[j];
            if (of >= UNIFORM || k->value[of].op != CHAIN_MUL || uses[of] != 1 || kept_place(k, of) >= 0) continue;
            inside[of] = true;
            break;
        }
    }
}

static void put_from(writer *w, int from, bool negative) {
    put(w, negative ? "-" : "");
    if (from < UNIFORM)
        put(w, "v%d", from);
    else
        put_operand(w, from - UNIFORM);
}

/* A sum or difference with a product inside, which is its operand number `which`. */
static void put_fused(writer *w, const keeping *k, const value *v, int which) {
    const value *product = &k->value[v->from[which]];
    put(w, "fused(");
    put_from(w, product->from[0], v->op == CHAIN_SUB && which == 1);
    put(w, ", ");
    put_from(w, product->from[1], false);
    put(w, ", ");
    put_from(w, v->from[1 - which], v->op == CHAIN_SUB && which == 0);
    put(w, ");\n");
}

static void put_element_value(writer *w, const keeping *k, const value *v, const bool *inside) {
    if (v->op == CHAIN_LOAD) {
        put(w, "x[%d];\n", v->from[0]);
        return;
    }
    for (int j = 0; j < chain_operands(v->op); j++)
        if (v->from[j] < UNIFORM && inside[v->from[j]]) {
            put_fused(w, k, v, j);
            return;
        }
    if (v->op == CHAIN_DIV && v->from[1] >= UNIFORM) {
        const int place = v->from[1] - UNIFORM - CHAIN_ROW;
        put(w, "chain_quotient(");
        put_from(w, v->from[0], false);
        put(w, ", row[CHAIN_SCALES + %d], row[CHAIN_INVERSES + %d]);\n", place, place);
        return;
    }
    put(w, "chain_do(%d", v->op);
    for (int i = 0; i < 3; i++) {
        put(w, ", ");
        if (i < chain_operands(v->op))
            put_from(w, v->from[i], false);
        else
            put(w, "0");
    }
    put(w, ", 1);\n");
}

static void put_element(writer *w, const chain_program *program, int number, const keeping *k, int results) {
    const chain_phase *phase = &program->phase[number];
    bool inside[CHAIN_STEPS];
    find_inside(phase, program, k, inside);
    put(w,
        "static DEVICE void element(const chain_job &p, const real (&row)[CHAIN_KNOWN], const real "
        "(&x)[CHAIN_INPUTS], real (&y)[%d], real (&kept)[%d]) {\n",
        results, k->count > 0 ? k->count : 1);
    for (int i = phase->first, j = 0; i < phase->end; i++) {
        const chain_step *s = &program->step[i];
        const int of = k->number[i];
        if (!k->needed[i] || (!is_sink(s) && inside[of])) continue;
        const int kept = is_sink(s) ? -1 : kept_place(k, of);
        if (is_sink(s)) {
            put(w, "y[%d] = ", s->op == CHAIN_STORE ? s->to : j++);
            put_from(w, s->a < CHAIN_ROW ? of : UNIFORM + s->a, false);
            put(w, ";\n");
        } else if (kept >= 0 && k->value[of].phase < number) {
            put(w, "const real v%d = kept[%d];\n", of, kept);
        } else {
            put(w, "const real v%d = ", of);
            put_element_value(w, k, &k->value[of], inside);
            if (kept >= 0) put(w, "kept[%d] = v%d;\n", kept, of);
        }
    }
    put(w, "}\n");
}

static void put_phase(writer *w, const chain_program *program, int number, const chain_layout *l, const keeping *k) {
    const chain_phase *phase = &program->phase[number];
    int reductions = 0;
    for (int i = phase->first; i < phase->end; i++) reductions += chain_reduces(program->step[i].op);
    put(w, "template <> struct chain_code<%d> {\n", number);
    put_row_steps(w, program, phase);
    if (number == program->phases - 1) put_row_stores(w, program, phase, l);
    if (reductions > 0) put_reductions(w, program, phase, reductions);
    put_element(w, program, number, k, reductions > 0 ? reductions : (int)CHAIN_OUTPUTS);
    put(w, "};\n");
}

static void put_shape(writer *w, const chain_program *program, const chain_layout *l, int kept) {
    put(w,
        "struct shape {\nstatic constexpr bool WHOLE = %d, PIECES = %d, MANY = %d;\nenum { FIRST, PHASES = %d, THREADS "
        "= %d, GROUP = %d, VECTORS = %d, OUTER = %d, LENGTH = %d, UNITS = %d, KEPT = %d };\n",
        l->whole, l->pieces, l->many, program->phases, l->threads, l->group, l->vectors, l->outer, l->length, l->units,
        kept > 0 ? kept : 1);
    put(w, "static constexpr DEVICE int place(int i) {\nreturn ");
    for (int t = 0; t < CHAIN_VIEWS; t++)
        if (l->place[t] != CHAIN_ABSENT) put(w, "i == %d ? %d : ", t, l->place[t]);
    put(w, "%d;\n}\n};\n", CHAIN_ABSENT);
}

size_t chain_source(const chain_program *program, const chain_layout *l, char *text_out, size_t size) {
    writer w = { text_out, size, 0 };
    keeping k;
    find_kept(&k, program, l);
    put(&w, "#define CHAIN_REAL %s\n#define CHAIN_NUMBERS %s\n#include <fetch.h>\n%s",
        program->wide ? "double" : "float", program->wide ? "f64" : "f32", trine_chain_text);
    for (int t = 0; t < CHAIN_VIEWS; t++)
        if (l->place[t] != CHAIN_ABSENT)
            put(&w, "template <> struct chain_tensor<%d> {\nusing type = %s;\n};\n", t, type_name(l->type[t]));
    put_shape(&w, program, l, k.count);
    for (int i = 0; i < program->phases; i++) put_phase(&w, program, i, l, &k);
    if (l->many)
        put(&w, "ENTRY(" CHAIN_ENTRY ", %d, chain_list_job) { chain_many<shape>(p); }\n}\n", l->threads);
    else
        put(&w, "ENTRY_ASKING(" CHAIN_ENTRY ", %d, 1, chain_job) { %s<shape>(p, block_index()); }\n}\n", l->threads,
            l->group == 0 ? "chain_walk" : "chain_over_rows");
    return w.length;
}
