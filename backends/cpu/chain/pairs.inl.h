/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of a chain's steps on numbers of the type REAL. */

INLINE VECTOR NAME(pair_first)(int first, VECTOR a, VECTOR b) {
    return first == 0 ? a + b : first == 1 ? a - b : a * b;
}
INLINE VECTOR NAME(pair_value)(int pair, VECTOR a, VECTOR b, VECTOR c) {
    const VECTOR r = NAME(pair_first)(pair / PAIR_SECONDS, a, b);
    switch (pair % PAIR_SECONDS) {
    case PAIR_ADD: return r + c;
    case PAIR_SUB: return r - c;
    case PAIR_FROM: return c - r;
    case PAIR_MUL: return r * c;
    default: return NAME(relu)(r);
    }
}

/* `pair` is a constant; operands that are the same for all elements are read once. */
INLINE void NAME(pair_loop)(int pair, NAME(chain_value) x, NAME(chain_value) y, NAME(chain_value) z, REAL *to,
                            int count) {
    const VECTOR first = *(const VECTOR_ANY *)x.at, second = *(const VECTOR_ANY *)y.at,
                 third = *(const VECTOR_ANY *)z.at;
#define PAIR_LOOP(A, B, C) \
    do { \
        _Pragma("GCC unroll 4") \
        for (int i = 0; i < count; i += LANES) *(VECTOR *)(to + i) = NAME(pair_value)(pair, A, B, C); \
    } while (0)
    if (x.step != 0 && y.step != 0 && z.step != 0)
        PAIR_LOOP(CHAIN_VECTOR(x), CHAIN_VECTOR(y), CHAIN_VECTOR(z));
    else if (x.step != 0 && y.step != 0)
        PAIR_LOOP(CHAIN_VECTOR(x), CHAIN_VECTOR(y), third);
    else if (x.step != 0 && z.step != 0)
        PAIR_LOOP(CHAIN_VECTOR(x), second, CHAIN_VECTOR(z));
    else if (x.step != 0)
        PAIR_LOOP(CHAIN_VECTOR(x), second, third);
    else
        PAIR_LOOP(first, CHAIN_ANY(y), CHAIN_ANY(z));
#undef PAIR_LOOP
}

static void NAME(chain_do_pair)(const NAME(chain_space) * s, const chain_step *step, REAL *to, int vectors) {
    const NAME(chain_value) x = s->value[step->a], y = s->value[step->b], z = s->value[step->c];
    const int count = vectors * LANES;
#define PAIRS(first) \
    PAIR(first, PAIR_ADD) PAIR(first, PAIR_SUB) PAIR(first, PAIR_FROM) PAIR(first, PAIR_MUL) PAIR(first, PAIR_RELU)
#define PAIR(first, second) \
    case CHAIN_PAIR + PAIR_SECONDS *(first) + (second): \
        NAME(pair_loop)(PAIR_SECONDS * (first) + (second), x, y, z, to, count); \
        break;
    switch (step->op) {
        PAIRS(0)
        PAIRS(1)
        PAIRS(2)
    default: break;
    }
#undef PAIR
#undef PAIRS
}
