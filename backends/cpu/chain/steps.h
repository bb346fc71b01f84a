/* SPDX-License-Identifier: Apache-2.0 */
/* A chain's steps over vectors. */
#ifndef TRINE_CPU_CHAIN_STEPS_H
#define TRINE_CPU_CHAIN_STEPS_H

#include "backends/cpu/core/row.h"
#include "backends/cpu/core/vec_math.h"
#include "backends/cpu/elementwise/gelu.h"
#include "spec/chain/parse.h"

/* Where an operand is: a vector of it every `step` floats, 0 for a value of the row. */
typedef struct chain_value {
    const float *at;
    int step;
} chain_value;

/* All operands; those of the row and numbers are vectors of the same. */
typedef struct chain_space {
    chain_value value[CHAIN_CONSTANT + CHAIN_CONSTANTS];
    vf row[CHAIN_ROW_VALUES], constant[CHAIN_CONSTANTS];
    float n; /* the row's length */
} chain_space;

/* In place of NaN, which vmax() and vmin() would not keep from their first operand. */
INLINE vf chain_max(vf a, vf b) { return vsel(a != a, a, vmax(a, b)); }
INLINE vf chain_min(vf a, vf b) { return vsel(a != a, a, vmin(a, b)); }

INLINE vf chain_one(vi mask) { return (vf)(mask & (vi)vset(1.0f)); }

/* Beyond 2^23 all are integers. */
INLINE vf chain_floor(vf x) {
    const vi small = vabs(x) < 0x1p23f;
    const vf t = __builtin_convertvector(__builtin_convertvector(vsel(small, x, vzero()), vi), vf);
    return vsel(small, vcopysign(vabs(t - chain_one(t > x)), x), x);
}

/* x / (1 + e^-v): a factor below 2^-126 may be 0, which spares scaling twice, but -Inf gives NaN. */
INLINE vf chain_gate(vf x, vf v) {
    const vf a = vabs(v);
    vi n;
    const vf p = vexp_reduced(vmax(vset(-87.34f), -a), &n);
    const vf e = vsel(a > 87.34f, vzero(), p * vbits((n + 127) << 23));
    return x * (vsel(v < vzero(), e, vset(1.0f)) / (1.0f + e));
}

INLINE vf chain_bf16(vf x) { return vf_from_bf16(vf_to_bf16(x)); }
INLINE vf chain_f16(vf x) { return vf_from_f16(vf_to_f16(x)); }

/* A step, but loads, stores and reductions, on so many vectors: `expression` of vectors a, b and c. Steps of nothing
 * but vectors, or of one value of the row beside them, have loops that need one index. */
#define CHAIN_LOOP(unroll, A, B, C, expression) \
    do { \
        _Pragma(unroll) \
        for (int i = 0; i < count; i += VL) { \
            const vf a = A, b ROW_UNUSED = B, c ROW_UNUSED = C; \
            *(vf *)(to + i) = (expression); \
        } \
    } while (0)
#define CHAIN_VECTOR(value) *(const vf_any *)((value).at + i)
#define CHAIN_ANY(value) *(const vf_any *)((value).at + i / VL * (value).step)
#define CHAIN_UNARY(expression) \
    if (x.step != 0) \
        CHAIN_LOOP("GCC unroll 4", CHAIN_VECTOR(x), first, first, expression); \
    else \
        CHAIN_LOOP("GCC unroll 1", CHAIN_ANY(x), first, first, expression); \
    break
#define CHAIN_LONG(expression) \
    if (x.step != 0) \
        CHAIN_LOOP("GCC unroll 2", CHAIN_VECTOR(x), first, first, expression); \
    else \
        CHAIN_LOOP("GCC unroll 1", CHAIN_ANY(x), first, first, expression); \
    break
#define CHAIN_BINARY(expression) \
    if (x.step != 0 && y.step != 0) \
        CHAIN_LOOP("GCC unroll 4", CHAIN_VECTOR(x), CHAIN_VECTOR(y), first, expression); \
    else if (x.step != 0) \
        CHAIN_LOOP("GCC unroll 4", CHAIN_VECTOR(x), second, first, expression); \
    else if (y.step != 0) \
        CHAIN_LOOP("GCC unroll 4", first, CHAIN_VECTOR(y), first, expression); \
    else \
        CHAIN_LOOP("GCC unroll 1", first, second, first, expression); \
    break
#define CHAIN_TERNARY(expression) \
    CHAIN_LOOP("GCC unroll 2", CHAIN_ANY(x), CHAIN_ANY(y), CHAIN_ANY(z), expression); \
    break

static void chain_do(const chain_space *s, const chain_step *step, float *to, int vectors) {
    const chain_value x = s->value[step->a], y = s->value[step->b], z = s->value[step->c];
    const int count = vectors * VL, operands = chain_operands(step->op);
    const vf first = *(const vf_any *)x.at, second = *(const vf_any *)(operands > 1 ? y.at : x.at);
    switch (step->op) {
    case CHAIN_NEG: CHAIN_UNARY(-a);
    case CHAIN_ABS: CHAIN_UNARY(vabs(a));
    case CHAIN_SQRT: CHAIN_UNARY(vsqrt(a));
    case CHAIN_RSQRT: CHAIN_UNARY(1.0f / vsqrt(a));
    case CHAIN_EXP: CHAIN_LONG(vexp(a));
    case CHAIN_LOG: CHAIN_LONG(vlog(a));
    case CHAIN_TANH: CHAIN_LONG(vtanh(a));
    case CHAIN_ERF: CHAIN_LONG(verf(a));
    case CHAIN_SIGMOID: CHAIN_LONG(vsigmoid(a));
    case CHAIN_SILU: CHAIN_LONG(chain_gate(a, a));
    case CHAIN_GELU: CHAIN_LONG(vgelu(TRINE_GELU_ERF, a));
    case CHAIN_GELU_TANH: CHAIN_LONG(chain_gate(a, vgelu_argument(a)));
    case CHAIN_RELU: CHAIN_UNARY(vmax(vzero(), a));
    case CHAIN_FLOOR: CHAIN_UNARY(chain_floor(a));
    case CHAIN_TO_BF16: CHAIN_UNARY(chain_bf16(a));
    case CHAIN_TO_F16: CHAIN_UNARY(chain_f16(a));
    case CHAIN_ADD: CHAIN_BINARY(a + b);
    case CHAIN_SUB: CHAIN_BINARY(a - b);
    case CHAIN_MUL: CHAIN_BINARY(a * b);
    case CHAIN_DIV: CHAIN_BINARY(a / b);
    case CHAIN_MIN: CHAIN_BINARY(chain_min(a, b));
    case CHAIN_MAX: CHAIN_BINARY(chain_max(a, b));
    case CHAIN_LT: CHAIN_BINARY(chain_one(a < b));
    case CHAIN_LE: CHAIN_BINARY(chain_one(a <= b));
    case CHAIN_EQ: CHAIN_BINARY(chain_one(a == b));
    case CHAIN_NE: CHAIN_BINARY(chain_one(a != b));
    case CHAIN_FMA: CHAIN_TERNARY(vfma(a, b, c));
    case CHAIN_SELECT: CHAIN_TERNARY(vsel(a != vzero(), b, c));
    case CHAIN_OVER_N: CHAIN_UNARY(a / s->n);
    default: break;
    }
}

static inline float chain_nothing(int op) {
    return op == CHAIN_SUM_ROW ? 0 : op == CHAIN_MAX_ROW ? -INFINITY : INFINITY;
}

INLINE vf chain_combine(int op, vf all, vf x) {
    return op == CHAIN_SUM_ROW ? all + x : op == CHAIN_MAX_ROW ? chain_max(all, x) : chain_min(all, x);
}

/* `reduced` with the first `count` elements of an operand; `op` is a constant. */
INLINE float chain_reduce_as(int op, float reduced, chain_value a, int count) {
    const vf none = vset(chain_nothing(op));
    vf acc[ROW_ACC];
    for (int k = 0; k < ROW_ACC; k++) acc[k] = none;
    ROW_EACH(count, j, k, m,
             acc[k] = chain_combine(op, acc[k], row_mask(*(const vf_any *)(a.at + j / VL * a.step), m, none[0])));
    for (int half = ROW_ACC / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) acc[k] = chain_combine(op, acc[k], acc[k + half]);
    if (op == CHAIN_SUM_ROW) return reduced + vhsum(acc[0]);
    if (vhasnan(acc[0]) || isnan(reduced)) return NAN;
    return op == CHAIN_MAX_ROW ? fmaxf(reduced, vhmax(acc[0])) : fminf(reduced, -vhmax(-acc[0]));
}
static float chain_reduce(int op, float reduced, chain_value a, int count) {
    if (op == CHAIN_SUM_ROW) return chain_reduce_as(CHAIN_SUM_ROW, reduced, a, count);
    if (op == CHAIN_MAX_ROW) return chain_reduce_as(CHAIN_MAX_ROW, reduced, a, count);
    return chain_reduce_as(CHAIN_MIN_ROW, reduced, a, count);
}

#endif
