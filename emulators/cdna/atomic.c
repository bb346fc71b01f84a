/* SPDX-License-Identifier: Apache-2.0 */
/* The read-modify-write operations of memory and LDS. Workgroups run in parallel, so they are atomic on the host
 * too. */
#include "machine.h"
#include "number.h"

typedef uint64_t operation_function(uint64_t memory, uint64_t data, uint64_t data2);

struct atomic {
    const char *name;
    uint32_t bytes;
    int data_words;
    operation_function *apply;
};

#define OPERATION(name, value) \
    static uint64_t name(uint64_t m, uint64_t d, uint64_t e) { \
        (void)m, (void)d, (void)e; \
        return value; \
    }
OPERATION(swap, d)
OPERATION(compare_swap, m == e ? d : m)
OPERATION(add, m + d)
OPERATION(subtract, m - d)
OPERATION(reverse_subtract, d - m)
OPERATION(and, (m & d))
OPERATION(or, m | d)
OPERATION(xor, m ^ d)
OPERATION(umin, m < d ? m : d)
OPERATION(umax, m > d ? m : d)
OPERATION(smin_32, (int32_t)m < (int32_t)d ? m : d)
OPERATION(smax_32, (int32_t)m > (int32_t)d ? m : d)
OPERATION(smin_64, (int64_t)m < (int64_t)d ? m : d)
OPERATION(smax_64, (int64_t)m > (int64_t)d ? m : d)
OPERATION(increment, m >= d ? 0 : m + 1)
OPERATION(decrement, m == 0 || m > d ? d : m - 1)
OPERATION(add_f32, float_bits(bits_float((uint32_t)m) + bits_float((uint32_t)d)))
OPERATION(min_f32, float_bits(fminf(bits_float((uint32_t)m), bits_float((uint32_t)d))))
OPERATION(max_f32, float_bits(fmaxf(bits_float((uint32_t)m), bits_float((uint32_t)d))))
OPERATION(add_f64, double_bits(bits_double(m) + bits_double(d)))
OPERATION(min_f64, double_bits(fmin(bits_double(m), bits_double(d))))
OPERATION(max_f64, double_bits(fmax(bits_double(m), bits_double(d))))
#define HALF(to, from, m, d, shift) ((uint64_t)to(from((uint16_t)(m >> shift)) + from((uint16_t)(d >> shift))) << shift)
OPERATION(add_pk_f16, HALF(float_half, half_float, m, d, 0) | HALF(float_half, half_float, m, d, 16))
OPERATION(add_pk_bf16, HALF(float_bfloat, bfloat_float, m, d, 0) | HALF(float_bfloat, bfloat_float, m, d, 16))

#define BOTH(name, narrow, wide) \
    { name, 4, 1, narrow }, { name "_x2", 8, 2, wide }
static const atomic operations[] = {
    BOTH("swap", swap, swap),
    { "cmpswap", 4, 2, compare_swap },
    { "cmpswap_x2", 8, 4, compare_swap },
    BOTH("add", add, add),
    BOTH("sub", subtract, subtract),
    BOTH("rsub", reverse_subtract, reverse_subtract),
    BOTH("smin", smin_32, smin_64),
    BOTH("umin", umin, umin),
    BOTH("smax", smax_32, smax_64),
    BOTH("umax", umax, umax),
    BOTH("and", and, and),
    BOTH("or", or, or),
    BOTH("xor", xor, xor),
    BOTH("inc", increment, increment),
    BOTH("dec", decrement, decrement),
    { "add_f32", 4, 1, add_f32 },
    { "min_f32", 4, 1, min_f32 },
    { "max_f32", 4, 1, max_f32 },
    { "pk_add_f16", 4, 1, add_pk_f16 },
    { "pk_add_bf16", 4, 1, add_pk_bf16 },
    { "add_f64", 8, 2, add_f64 },
    { "min_f64", 8, 2, min_f64 },
    { "max_f64", 8, 2, max_f64 },
};

const atomic *atomic_named(const char *name) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i].name, name) == 0) return &operations[i];
    return NULL;
}

uint32_t atomic_bytes(const atomic *operation) { return operation->bytes; }
int atomic_data_words(const atomic *operation) { return operation->data_words; }

void atomic_apply(const atomic *operation, void *memory, const uint32_t *data, uint32_t *old) {
    if (operation->bytes == 4) {
        uint32_t before = __atomic_load_n((uint32_t *)memory, __ATOMIC_RELAXED), after;
        do after = (uint32_t)operation->apply(before, data[0], operation->data_words == 2 ? data[1] : 0);
        while (!__atomic_compare_exchange_n((uint32_t *)memory, &before, after, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED));
        old[0] = before;
        return;
    }
    const uint64_t first = (uint64_t)data[1] << 32 | data[0],
                   second = operation->data_words == 4 ? (uint64_t)data[3] << 32 | data[2] : 0;
    uint64_t before = __atomic_load_n((uint64_t *)memory, __ATOMIC_RELAXED), after;
    do after = operation->apply(before, first, second);
    while (!__atomic_compare_exchange_n((uint64_t *)memory, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    old[0] = (uint32_t)before;
    old[1] = (uint32_t)(before >> 32);
}
