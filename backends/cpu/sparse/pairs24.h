/* SPDX-License-Identifier: Apache-2.0 */
/* Two of each four elements: which are kept, and loops over the parts of rows of a matrix. */
#ifndef TRINE_CPU_PAIRS24_H
#define TRINE_CPU_PAIRS24_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

enum { PART24 = 1024 /* columns of a task */, WORK24 = 4 /* bytes that the work on one stands for */ };

/* A number that grows with the size of element i; that of NaN is the largest. */
INLINE uint32_t key24(const void *data, int64_t i, trine_dtype type) {
    if (type == TRINE_I8) {
        const int x = ((const int8_t *)data)[i];
        return (uint32_t)(x < 0 ? -x : x);
    }
    const uint32_t infinite = type == TRINE_F32    ? 0x7f800000u
                              : type == TRINE_BF16 ? 0x7f80u
                                                   : 0x7c00u,
                   bits = type == TRINE_F32 ? ((const uint32_t *)data)[i] & 0x7fffffffu
                                            : ((const uint16_t *)data)[i] & 0x7fffu;
    return bits > infinite ? infinite + 1 : bits;
}

/* Elements i .. i+3, a bit for each that is kept: the two with the largest keys, of equals the first. */
INLINE int kept24(const void *data, int64_t i, trine_dtype type) {
    const uint32_t a = key24(data, i, type), b = key24(data, i + 1, type), c = key24(data, i + 2, type),
                   d = key24(data, i + 3, type);
    const int ab = a >= b, ac = a >= c, ad = a >= d, bc = b >= c, bd = b >= d, cd = c >= d;
    return (ab + ac + ad >= 2) | (1 - ab + bc + bd >= 2) << 1 | (2 - ac - bc + cd >= 2) << 2 |
           (3 - ad - bd - cd >= 2) << 3;
}

/* The places of the two bits of such a set. */
INLINE int first24(int kept) { return __builtin_ctz((unsigned)kept); }
INLINE int second24(int kept) { return 31 - __builtin_clz((unsigned)kept); }

/* Row i of a tensor; NULL if it is absent. */
static inline void *row24(const trine_call *call, int tensor, int64_t i) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? (char *)t->data + i * t->stride[0] * (int64_t)trine_dtype_size(t->dtype) : NULL;
}

static inline int64_t parts24(int64_t n) { return (n + PART24 - 1) / PART24; }

static inline trine_status run24(const trine_call *call, int64_t r, int64_t n, cpu_body *body) {
    const int64_t tasks = r * parts24(n);
    cpu_shares(call, cpu_team(call, tasks, r * n * WORK24), tasks, body, call);
    return TRINE_OK;
}

/* Body(..., T) with T a constant equal to `dtype`. */
#define FOR_TYPE24(dtype, body, ...) \
    do { \
        switch (dtype) { \
        case TRINE_F32: body(__VA_ARGS__, TRINE_F32); break; \
        case TRINE_BF16: body(__VA_ARGS__, TRINE_BF16); break; \
        case TRINE_F16: body(__VA_ARGS__, TRINE_F16); break; \
        default: body(__VA_ARGS__, TRINE_I8); break; \
        } \
    } while (0)

INLINE int size24(trine_dtype type) { return type == TRINE_F32 ? 4 : type == TRINE_I8 ? 1 : 2; }

#endif
