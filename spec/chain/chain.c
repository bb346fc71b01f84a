/* SPDX-License-Identifier: Apache-2.0 */
/* chain: the table and the reference. */
#include <trine/chain.h>

#include "compiler.h"
#include "memo.h"
#include "parser.h"
#include "shape.h"

#define REAL double
#define WIDE false
#define OWN 0x1p-53
#define ROUNDOFF 0x1p-24
#define FLUSHED 0x1p-126
#define SUBNORMAL 0x1p-150
#define MOST 0x1.fffffep127
#include "reference.h"

#define ARGS trine_chain_args
#define SHAPE "[p] [q] [r] n"

static void tell(const chain_program *p, char *text, size_t size) {
    trine_snprintf(text, size,
                   "program: %d pass%s over %s; steps: %d; registers of an element: %d; values of a row: %d%s",
                   p->phases, p->phases == 1 ? "" : "es", p->phases == 1 ? "memory" : "each row, the first from memory",
                   p->steps, p->registers, p->row_values, p->wide ? "; in f64" : "");
}

/* Tensors may be without their views yet, where a case is drawn. */
static bool is_wide(const ARGS *a, uint32_t present) {
    const trine_tensor *const tensor[CHAIN_TENSORS] = { a->x0, a->x1, a->x2, a->x3, a->x4, a->x5, a->x6,
                                                        a->x7, a->y0, a->y1, a->y2, a->y3, a->r0, a->r1 };
    for (int i = 0; i < CHAIN_TENSORS; i++)
        if (present >> i & 1 && tensor[i] != NULL && tensor[i]->dtype == TRINE_F64) return true;
    return false;
}

static bool check(const void *args, uint32_t present, char *text, size_t size) {
    static const char name[] = "program: ";
    const char *source = ((const ARGS *)args)->program;
    chain_program program;
    const size_t used = size < sizeof name ? 0 : sizeof name - 1;
    if (used > 0) memcpy(text, name, used + 1);
    char *error = used > 0 ? text + used : NULL;
    if (!trine_chain_program_of(source, is_wide(args, present), &program, error, used > 0 ? size - used : 0))
        return false;
    for (int i = 0; i < CHAIN_INPUTS; i++)
        if ((program.inputs >> i & 1) && !(present >> CHAIN_INPUT(i) & 1)) {
            if (size > 0) trine_snprintf(text, size, "program: it reads x%d, which is NULL", i);
            return false;
        }
    for (int i = 0; i < CHAIN_OUTPUTS + CHAIN_ROW_OUTPUTS; i++)
        if (!(program.outputs >> i & 1) && (present >> CHAIN_OUTPUT(i) & 1)) {
            const bool row = i >= CHAIN_OUTPUTS;
            if (size > 0)
                trine_snprintf(text, size, "program: it does not set %c%d, which is given", row ? 'r' : 'y',
                               row ? i - CHAIN_OUTPUTS : i);
            return false;
        }
    if (size > 0) tell(&program, text, size);
    return true;
}

/* By the graph, the values of f32 in float64, those of f64 in long double. */
static void reference(trine_ref *ref) {
    for (int i = 0; i < CHAIN_TENSORS; i++)
        if (ref->value[i] != NULL && trine_plan_dtype(ref->plan, i, ref->type) == TRINE_F64) {
            trine_chain_wide_reference(ref);
            return;
        }
    chain_reference(ref);
}

#define ANY "f32|bf16|f16"

const trine_spec trine_spec_chain = {
    SPEC(chain),
    .summary = "A short program on elements and rows, run as one kernel",
    .formula =
        "y0, y1, y2, y3, r0, r1 = program(x0, ..., x7), each step in f32, or f64 if one of them is, as \"t = x0 + "
        "x1; m = max_row(t); e = exp(t - m); y0 = e / sum_row(e)\"",
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
                          "r0=mean_row(x0);r1=rsqrt(mean_row(x0*x0)+1);y0=(x0-r0)*r1 y0=x0*2;r0=0.5 "
                          "y0=f32(x0)*f16(x1)+0.1;y1=f32(x0*x1)",
                      .doc = "statements, \"y0 = x0 + x1\"") },
    /* f64 with f32, and i32: behind the first row all have an f64, in A, T, B, C or R */
    .types = { "A=" ANY "|i8|u8|i32 B=" ANY " C=" ANY " T=" ANY " R=f32",
               "A=f64 B=f64|f32 C=f64|f32 T=f64|f32 R=f64|f32", "A=f32|i32 B=f64|f32 C=f64|f32 T=f64 R=f64|f32",
               "A=f32|i32 B=f64 C=f64|f32 T=f32 R=f64|f32", "A=f32|i32 B=f32 C=f64 T=f32 R=f64|f32",
               "A=f32|i32 B=f32 C=f32 T=f32 R=f64" },
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
               "in cache: A=f32 T=f32 r=64 n=1024 program=y0=silu(x0)*0.5",
               "ten steps f64: A=f64 T=f64 r=4096 n=2048 "
               "program=a=x0*1.5+0.5;b=max(a,0.1*a);c=b*b-x0;y0=select(c>2,2,c)*0.25-0.125",
               "softmax of a sum f64: A=f64 B=f64 T=f64 r=4096 n=2048 +x1 "
               "program=t=x0+x1;e=exp(t-max_row(t));y0=e/sum_row(e)",
               "norms of rows f64: A=f64 T=f64 R=f64 r=4096 n=2048 +r0 "
               "program=s=sum_row(x0*x0);y0=x0*rsqrt(s);r0=sqrt(s)",
               "functions f64: A=f64 T=f64 r=4096 n=2048 program=y0=gelu(x0)+erf(x0)*tanh(x0)" },
    .reference = reference,
    .check = check,
};
