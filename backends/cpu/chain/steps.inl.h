/* SPDX-License-Identifier: Apache-2.0 */
/* A chain's steps over vectors of numbers of the type REAL. */

/* Where an operand is: a vector of it every `step` numbers, 0 for a value of the row. */
typedef struct NAME(chain_value) {
    const REAL *at;
    int step;
} NAME(chain_value);

/* All operands; those of the row and numbers are vectors of the same. */
typedef struct NAME(chain_space) {
    NAME(chain_value) value[CHAIN_CONSTANT + CHAIN_CONSTANTS];
    VECTOR row[CHAIN_ROW_VALUES], constant[CHAIN_CONSTANTS];
    REAL n; /* the row's length */
} NAME(chain_space);

static void NAME(chain_do)(const NAME(chain_space) * s, const chain_step *step, REAL *to, int vectors) {
    const NAME(chain_value) x = s->value[step->a], y = s->value[step->b], z = s->value[step->c];
    const int count = vectors * LANES, operands = chain_operands(step->op);
    const VECTOR first = *(const VECTOR_ANY *)x.at, second = *(const VECTOR_ANY *)(operands > 1 ? y.at : x.at);
    switch (step->op) {
    case CHAIN_NEG: CHAIN_UNARY(-a);
    case CHAIN_ABS: CHAIN_UNARY(NAME(abs)(a));
    case CHAIN_SQRT: CHAIN_UNARY(NAME(sqrt)(a));
    case CHAIN_RSQRT: CHAIN_UNARY((REAL)1 / NAME(sqrt)(a));
    case CHAIN_EXP: CHAIN_LONG(NAME(exp)(a));
    case CHAIN_LOG: CHAIN_LONG(NAME(log)(a));
    case CHAIN_TANH: CHAIN_LONG(NAME(tanh)(a));
    case CHAIN_ERF: CHAIN_LONG(NAME(erf)(a));
    case CHAIN_SIGMOID: CHAIN_LONG(NAME(sigmoid)(a));
    case CHAIN_SILU: CHAIN_LONG(NAME(silu)(a));
    case CHAIN_GELU: CHAIN_LONG(NAME(gelu)(a));
    case CHAIN_GELU_TANH: CHAIN_LONG(NAME(gelu_tanh)(a));
    case CHAIN_RELU: CHAIN_UNARY(NAME(relu)(a));
    case CHAIN_FLOOR: CHAIN_UNARY(NAME(floor)(a));
    case CHAIN_TO_F32: CHAIN_UNARY(NAME(to_f32)(a));
    case CHAIN_TO_BF16: CHAIN_UNARY(NAME(to_bf16)(a));
    case CHAIN_TO_F16: CHAIN_UNARY(NAME(to_f16)(a));
    case CHAIN_ADD: CHAIN_BINARY(a + b);
    case CHAIN_SUB: CHAIN_BINARY(a - b);
    case CHAIN_MUL: CHAIN_BINARY(a * b);
    case CHAIN_DIV: CHAIN_BINARY(a / b);
    case CHAIN_MIN: CHAIN_BINARY(NAME(smaller)(a, b));
    case CHAIN_MAX: CHAIN_BINARY(NAME(larger)(a, b));
    case CHAIN_LT: CHAIN_BINARY(NAME(one)(a < b));
    case CHAIN_LE: CHAIN_BINARY(NAME(one)(a <= b));
    case CHAIN_EQ: CHAIN_BINARY(NAME(one)(a == b));
    case CHAIN_NE: CHAIN_BINARY(NAME(one)(a != b));
    case CHAIN_FMA: CHAIN_TERNARY(NAME(multiply_add)(a, b, c));
    case CHAIN_SELECT: CHAIN_TERNARY(NAME(choose)(a != (VECTOR){ 0 }, b, c));
    case CHAIN_OVER_N: CHAIN_UNARY(a / s->n);
    default: break;
    }
}

static inline REAL NAME(chain_nothing)(int op) {
    return op == CHAIN_SUM_ROW ? 0 : (REAL)(op == CHAIN_MAX_ROW ? -INFINITY : INFINITY);
}

INLINE VECTOR NAME(chain_combine)(int op, VECTOR all, VECTOR x) {
    return op == CHAIN_SUM_ROW ? all + x : op == CHAIN_MAX_ROW ? NAME(larger)(all, x) : NAME(smaller)(all, x);
}

/* Of two results. */
static inline REAL NAME(chain_join)(int op, REAL a, REAL b) {
    if (op == CHAIN_SUM_ROW) return a + b;
    if (a != a || b != b) return (REAL)NAN;
    return (op == CHAIN_MAX_ROW ? a > b : a < b) ? a : b;
}

/* `reduced` with the first `count` elements of an operand; `op` is a constant. */
INLINE REAL NAME(chain_reduce_as)(int op, REAL reduced, NAME(chain_value) a, int count) {
    const VECTOR none = NAME(set)(NAME(chain_nothing)(op));
    VECTOR acc[ROW_ACC];
    for (int k = 0; k < ROW_ACC; k++) acc[k] = none;
    LANES_EACH(LANES, count, j, k, m,
               acc[k] = NAME(chain_combine)(
                   op, acc[k], NAME(masked)(*(const VECTOR_ANY *)(a.at + j / LANES * a.step), m, none[0])));
    for (int half = ROW_ACC / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) acc[k] = NAME(chain_combine)(op, acc[k], acc[k + half]);
    if (op == CHAIN_SUM_ROW) return reduced + NAME(all_sum)(acc[0]);
    if (NAME(has_nan)(acc[0])) return (REAL)NAN;
    return NAME(chain_join)(op, reduced, op == CHAIN_MAX_ROW ? NAME(all_largest)(acc[0]) : -NAME(all_largest)(-acc[0]));
}
static REAL NAME(chain_reduce)(int op, REAL reduced, NAME(chain_value) a, int count) {
    if (op == CHAIN_SUM_ROW) return NAME(chain_reduce_as)(CHAIN_SUM_ROW, reduced, a, count);
    if (op == CHAIN_MAX_ROW) return NAME(chain_reduce_as)(CHAIN_MAX_ROW, reduced, a, count);
    return NAME(chain_reduce_as)(CHAIN_MIN_ROW, reduced, a, count);
}
