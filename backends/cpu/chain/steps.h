/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of a chain's steps over vectors: what those of floats and of doubles have alike. */
#ifndef TRINE_CPU_CHAIN_STEPS_H
#define TRINE_CPU_CHAIN_STEPS_H

#include "spec/chain/parse.h"
#include "values.h"

/* A step, but loads, stores and reductions, on so many vectors: `expression` of vectors a, b and c. Steps of nothing
 * but vectors, or of one value of the row beside them, have loops that need one index. */
#define CHAIN_LOOP(unroll, A, B, C, expression) \
    do { \
        _Pragma(unroll) \
        for (int i = 0; i < count; i += LANES) { \
            const VECTOR a = A, b ROW_UNUSED = B, c ROW_UNUSED = C; \
            *(VECTOR *)(to + i) = (expression); \
        } \
    } while (0)
#define CHAIN_VECTOR(value) *(const VECTOR_ANY *)((value).at + i)
#define CHAIN_ANY(value) *(const VECTOR_ANY *)((value).at + i / LANES * (value).step)
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

#endif
