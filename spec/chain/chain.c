/* SPDX-License-Identifier: Apache-2.0 */
/* chain: the table and the reference. */
#include <trine/chain.h>

#include "compiler.h"
#include "errors.h"
#include "memo.h"
#include "parser.h"
#include "spec/plan.h"

#define ARGS trine_chain_args

/* The tensors' places: x0 and on, y0 and on behind them, then r0 and on. */
#define INPUT(i) (i)
#define OUTPUT(i) (CHAIN_INPUTS + (i))

static void tell(const chain_program *p, char *text, size_t size) {
    trine_snprintf(text, size,
                   "program: %d pass%s over %s; steps: %d; registers of an element: %d; values of a row: %d", p->phases,
                   p->phases == 1 ? "" : "es", p->phases == 1 ? "memory" : "each row, the first from memory", p->steps,
                   p->registers, p->row_values);
}

static bool check(const void *args, uint32_t present, char *text, size_t size) {
    static const char name[] = "program: ";
    const char *source = ((const ARGS *)args)->program;
    chain_program program;
    const size_t used = size < sizeof name ? 0 : sizeof name - 1;
    if (used > 0) memcpy(text, name, used + 1);
    char *error = used > 0 ? text + used : NULL;
    if (!trine_chain_program_of(source, &program, error, used > 0 ? size - used : 0)) return false;
    for (int i = 0; i < CHAIN_INPUTS; i++)
        if ((program.inputs >> i & 1) && !(present >> INPUT(i) & 1)) {
            if (size > 0) trine_snprintf(text, size, "program: it reads x%d, which is NULL", i);
            return false;
        }
    for (int i = 0; i < CHAIN_OUTPUTS + CHAIN_ROW_OUTPUTS; i++)
        if (!(program.outputs >> i & 1) && (present >> OUTPUT(i) & 1)) {
            const bool row = i >= CHAIN_OUTPUTS;
            if (size > 0)
                trine_snprintf(text, size, "program: it does not set %c%d, which is given", row ? 'r' : 'y',
                               row ? i - CHAIN_OUTPUTS : i);
            return false;
        }
    if (size > 0) tell(&program, text, size);
    return true;
}

/* What the reference walks over: a row, phase by phase, as the program's steps do, but by the graph. */
typedef struct walk {
    const trine_ref *ref;
    const chain_graph *graph;
    double n;
    chain_real value[CHAIN_NODES]; /* those of the row stay from phase to phase */
} walk;

/* Inputs are read exactly, but of i32 what f32 does not have. */
static chain_real input_at(const walk *w, int input, int64_t element) {
    const double x = w->ref->value[INPUT(input)][element];
    const bool wide = trine_plan_dtype(w->ref->plan, INPUT(input), w->ref->type) == TRINE_I32;
    return (chain_real){ x, wide && fabs(x) > 0x1p24 ? U * fabs(x) : 0 };
}

static void evaluate(walk *w, int i, int64_t element) {
    const chain_node *n = &w->graph->node[i];
    const chain_real a = w->value[n->a], b = w->value[n->b], c = w->value[n->c];
    chain_real *y = &w->value[i];
    switch (n->op) {
    case CHAIN_NUMBER: *y = (chain_real){ n->number, 0 }; break;
    case CHAIN_LOAD: *y = input_at(w, n->a, element); break;
    case CHAIN_ADD:
    case CHAIN_SUB:
    case CHAIN_MUL:
    case CHAIN_DIV:
    case CHAIN_MIN:
    case CHAIN_MAX: *y = real_arithmetic(n->op, a, b); break;
    case CHAIN_LT:
    case CHAIN_LE:
    case CHAIN_EQ:
    case CHAIN_NE: *y = real_compare(n->op, a, b); break;
    case CHAIN_FMA: *y = real_fused(a, b, c); break;
    case CHAIN_SELECT: *y = real_select(a, b, c); break;
    /* the length rounded, and a division */
    case CHAIN_OVER_N: *y = real_rounded(real_arithmetic(CHAIN_DIV, a, (chain_real){ w->n, 0 }), 1, 0); break;
    default: *y = real_function(n->op, a);
    }
}

/* Outputs first .. end-1, which have the element. */
static void store(const walk *w, int first, int end, int64_t element) {
    for (int i = first; i < end; i++) {
        if (w->graph->output[i] < 0 || w->ref->value[OUTPUT(i)] == NULL) continue;
        const chain_real y = w->value[w->graph->output[i]];
        w->ref->value[OUTPUT(i)][element] = y.v;
        w->ref->magnitude[OUTPUT(i)][element] = real_known(y) ? y.off / U : INFINITY;
    }
}

/* A phase over the row that begins at `first`: values of the row before it, then those of each element that can be had,
 * then what they reduce to. */
static void phase_of(walk *w, int phase, bool last, int64_t first, int64_t n) {
    const chain_graph *g = w->graph;
    chain_reduction reduction[CHAIN_NODES];
    for (int i = 0; i < g->count; i++) {
        if (g->node[i].row && !chain_reduces(g->node[i].op) && g->node[i].phase == phase) evaluate(w, i, 0);
        reduction[i] = chain_nothing;
    }
    for (int64_t j = first; j < first + n; j++) {
        for (int i = 0; i < g->count; i++) {
            const chain_node *node = &g->node[i];
            if (!node->row && node->phase <= phase) evaluate(w, i, j);
            if (chain_reduces(node->op) && node->phase == phase + 1)
                real_reduce(&reduction[i], w->value[node->a], node->op == CHAIN_MIN_ROW);
        }
        if (last) store(w, 0, CHAIN_OUTPUTS, j);
    }
    for (int i = 0; i < g->count; i++) {
        const chain_node *node = &g->node[i];
        if (!chain_reduces(node->op) || node->phase != phase + 1) continue;
        w->value[i] = node->op == CHAIN_SUM_ROW ? real_sum_of(&reduction[i], w->n)
                                                : real_most_of(&reduction[i], node->op == CHAIN_MIN_ROW);
    }
}

/* Bound: errors.h, step by step. What that says is the magnitude, in unit roundoffs, with a coefficient of 1. It is
 * infinite where nothing is known, as is one beyond the largest of f32: what is off by 2^104 or more. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t rows = ref->dim[0] * ref->dim[1] * ref->dim[2], n = ref->dim[3];
    chain_graph graph;
    int phases = 1;
    if (!trine_chain_parse(args->program, &graph, NULL, 0)) return;
    for (int i = 0; i < graph.count; i++)
        if (graph.node[i].phase >= phases) phases = graph.node[i].phase + 1;
    walk w = { .ref = ref, .graph = &graph, .n = (double)n };
    for (int64_t row = 0; row < rows; row++) {
        for (int k = 0; k < phases; k++) phase_of(&w, k, k == phases - 1, row * n, n);
        store(&w, CHAIN_OUTPUTS, CHAIN_OUTPUTS + CHAIN_ROW_OUTPUTS, row);
    }
}

#define ANY "f32|bf16|f16"

const trine_spec trine_spec_chain = {
    SPEC(chain),
    .summary = "A short program on elements and rows, run as one kernel",
    .formula = "y0, y1, y2, y3, r0, r1 = program(x0, ..., x7), each step in f32, as \"t = x0 + x1; m = max_row(t); e = "
               "exp(t - "
               "m); y0 = e / sum_row(e)\"",
    .source = "Wahib and Maruyama 2014; Shi et al. 2023 (Welder)",
    .tensors = { TENSOR(x0, IN | BROADCAST, "A", SHAPE),
                 TENSOR(x1, IN | OPTIONAL | BROADCAST, "B", SHAPE, .fill = "positive often"),
                 TENSOR(x2, IN | OPTIONAL | BROADCAST, "C", SHAPE),
                 TENSOR(x3, IN | OPTIONAL | BROADCAST, "C", SHAPE, .fill = "unit"),
                 TENSOR(x4, IN | OPTIONAL | BROADCAST, "C", SHAPE), TENSOR(x5, IN | OPTIONAL | BROADCAST, "C", SHAPE),
                 TENSOR(x6, IN | OPTIONAL | BROADCAST, "C", SHAPE), TENSOR(x7, IN | OPTIONAL | BROADCAST, "C", SHAPE),
                 TENSOR(y0, OUT, "T", SHAPE, .terms = "1"), TENSOR(y1, OUT | OPTIONAL, "T", SHAPE, .terms = "1"),
                 TENSOR(y2, OUT | OPTIONAL, "T", SHAPE, .terms = "1"),
                 TENSOR(y3, OUT | OPTIONAL, "T", SHAPE, .terms = "1"),
                 TENSOR(r0, OUT | OPTIONAL | ANY_STRIDE, "R", "[p] [q] [r]", .terms = "1"),
                 TENSOR(r1, OUT | OPTIONAL | ANY_STRIDE, "R", "[p] [q] [r]", .terms = "1") },
    .params = { PARAM(program, TEXT, .min = 1,
                      .values =
                          "y0=x0 y0=-x0*2+0.5 y0=relu(x0);y1=x0<0 y0=exp(x0)-1 y0=log(x0)*sqrt(x0) "
                          "y0=gelu_tanh(x0+x1)+x2 y0=select(x0>x1,x0/x1,bf16(x1)) "
                          "y0=fma(x0,x1,x2);y1=min(x0,max(x1,x2));y2=floor(x0*3) "
                          "t=x0+x1;m=max_row(t);e=exp(t-m);y0=e/sum_row(e) "
                          "y0=x0*rsqrt(mean_row(x0*x0)+1e-6)*x1 "
                          "m=mean_row(x0);c=x0-m;y0=c*rsqrt(mean_row(c*c)+0.00001)*x1+x2;y1=m "
                          "y0=silu(x0)*x1;y1=sigmoid(x0);y2=tanh(x1);y3=erf(x0)+gelu(x0) "
                          "a=abs(x0);m=min_row(x1);b=x1-m;y0=a*rsqrt(b+1)+f16(x0)*x3;y1=a!=b;y2=(a<=b)*x3;y3=a==x3;"
                          "r0=m;r1=rsqrt(m*m+1) "
                          "s=sum_row(x0*x1);y0=x0-s*x1 y0=max(max(x0,x1),max(x2,x3)) "
                          "y0=x0+x1;y0=y0+x2;y0=y0+x3;y0=y0+x4;y0=y0*x5+x6*x7 "
                          "y0=((x0<x1)+(x0>=x1))*x0;y1=1-sqrt(abs(x1)) "
                          "m=max_row(x0);s=sum_row(exp(x0-m));y0=exp(x0-m)/s;r0=m+log(s) "
                          "r0=mean_row(x0);r1=rsqrt(mean_row(x0*x0)+1);y0=(x0-r0)*r1 y0=x0*2;r0=0.5",
                      .doc = "statements, \"y0 = x0 + x1\"") },
    .types = { "A=" ANY "|i8|u8|i32 B=" ANY " C=" ANY " T=" ANY " R=f32" },
    .alias = { "y0=x0", "y0=x1", "y0=x2", "y0=x3", "y1=x0", "y1=x1", "y1=x2", "y1=x3", "y2=x0", "y2=x1", "y2=x2",
               "y2=x3", "y3=x0", "y3=x1", "y3=x2", "y3=x3" },
    .flops = "10*p*q*r*n",
    .independent = "r",
    .sizes = { "p: 1 2", "q: 1 3", "r: 1 0 2 5 67", "n: 0 1 3 8 17 64 251 1000 1030 2049" },
    .cases = { "gated residual: A=f32 B=f32 C=f32 T=f32 r=4096 n=4096 +x1 +x2 program=y0=gelu_tanh(x0)*x1+x2",
               "ten steps: A=f32 T=f32 r=4096 n=4096 "
               "program=a=x0*1.5+0.5;b=max(a,0.1*a);c=b*b-x0;y0=select(c>2,2,c)*0.25-0.125",
               "ten steps bf16: A=bf16 T=bf16 r=4096 n=4096 "
               "program=a=x0*1.5+0.5;b=max(a,0.1*a);c=b*b-x0;y0=select(c>2,2,c)*0.25-0.125",
               "softmax of a sum: A=f32 B=f32 T=f32 r=4096 n=4096 +x1 "
               "program=t=x0+x1;e=exp(t-max_row(t));y0=e/sum_row(e)",
               "rms_norm: A=bf16 B=bf16 T=bf16 r=8192 n=4096 x1=broadcast "
               "program=y0=x0*rsqrt(mean_row(x0*x0)+1e-6)*x1",
               "in cache: A=f32 T=f32 r=64 n=1024 program=y0=silu(x0)*0.5" },
    .reference = reference,
    .check = check,
};
