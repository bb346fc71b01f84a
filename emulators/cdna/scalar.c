/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar instructions. Each bit of a scalar register is defined or not, since lane masks live there. */
#include <stdlib.h>

#include "machine.h"

typedef uint32_t b32, u32;
typedef uint64_t b64, u64;
typedef int32_t i32, ki, ku;
typedef int64_t i64;

static uint32_t reverse_u32(uint32_t x) {
    uint32_t result = 0;
    for (int i = 0; i < 32; i++) result |= (x >> i & 1) << (31 - i);
    return result;
}

static uint64_t replicate(uint32_t x) {
    uint64_t result = 0;
    for (int i = 0; i < 32; i++) result |= (uint64_t)(x >> i & 1) * 3 << 2 * i;
    return result;
}

static uint64_t bits(uint64_t x, uint32_t first, uint32_t width, uint32_t size, bool extend) {
    if (width == 0) return 0;
    if (first + width > size) width = size - first;
    const uint64_t value = x >> first & (UINT64_MAX >> (64 - width));
    return extend && value >> (width - 1) & 1 ? value | ~(UINT64_MAX >> (64 - width)) : value;
}

/* --------------------------------------------------------------------------------------------------------- operands */

/* Base and limit of LDS, then of scratch, among flat addresses. */
static const uint64_t apertures[] = { SHARED_APERTURE, SHARED_APERTURE + UINT32_MAX, PRIVATE_APERTURE,
                                      PRIVATE_APERTURE + UINT32_MAX };

uint64_t scalar_fetch(wave *w, const operand *o, uint64_t *defined) {
    *defined = UINT64_MAX;
    if (o->kind == OPERAND_CONSTANT) return o->value;
    if (o->kind == OPERAND_VGPR) stop(w, -1, "a vector register is the source of a scalar instruction");
    if (o->index >= SHARED_BASE && o->index < SHARED_BASE + 4) return apertures[o->index - SHARED_BASE];
    const int words = o->type ? o->type->words : 1;
    check_scalar(w, o->index);
    uint64_t value = w->s[o->index], known = w->s_defined[o->index];
    if (words == 2) {
        check_scalar(w, o->index + 1);
        value |= (uint64_t)w->s[o->index + 1] << 32;
        known |= (uint64_t)w->s_defined[o->index + 1] << 32;
    } else {
        known |= UINT64_C(0xffffffff00000000);
        if (o->type && o->type->class == CLASS_SIGNED) value = (uint64_t)(int64_t)(int32_t)value;
    }
    *defined = known;
    return value;
}

void scalar_commit(wave *w, int index, int words, uint64_t value, uint64_t defined) {
    for (int i = 0; i < words; i++) {
        check_scalar(w, index + i);
        w->s[index + i] = (uint32_t)(value >> 32 * i);
        w->s_defined[index + i] = (uint32_t)(defined >> 32 * i);
        if ((index + i == EXEC || index + i == EXEC + 1) && w->s_defined[index + i] != UINT32_MAX)
            stop(w, -1, "EXEC is made from an uninitialised value%s", origin_of(w));
    }
    w->s[VCCZ] = w->s[VCC] == 0 && w->s[VCC + 1] == 0;
    w->s[EXECZ] = exec_of(w) == 0;
}

void mask_commit(wave *w, int index, uint64_t value, uint64_t defined) { scalar_commit(w, index, 2, value, defined); }

/* ------------------------------------------------------------------------------------------------------ definedness */

static uint64_t result_defined(const row *r, uint64_t a, uint64_t b, const uint64_t *known) {
    if (r->flags & ROW_ANDS) return (known[0] & known[1]) | (known[0] & ~a) | (known[1] & ~b);
    if (r->flags & ROW_ANDS_NOT) return (known[0] & known[1]) | (known[0] & ~a) | (known[1] & b);
    if (r->flags & ROW_ORS) return (known[0] & known[1]) | (known[0] & a) | (known[1] & b);
    const uint64_t all = known[0] & known[1] & known[2];
    return r->flags & ROW_BITWISE || all == UINT64_MAX ? all : 0;
}

void execute_scalar(wave *w, const instruction *in) {
    const row *r = in->row;
    uint64_t value[3] = { 0 }, known[3] = { UINT64_MAX, UINT64_MAX, UINT64_MAX };
    for (int i = 0; i < in->sources; i++) value[i] = scalar_fetch(w, &in->operand[in->destinations + i], &known[i]);
    bool scc = w->scc, scc_known = w->scc_defined;
    const uint64_t result = r->scalar(value[0], value[1], value[2], &scc);
    uint64_t defined = result_defined(r, value[0], value[1], known);
    if (r->flags & ROW_READS_SCC && !scc_known) defined = 0;
    if (r->flags & ROW_SETS_SCC) {
        w->scc = scc;
        w->scc_defined = defined == UINT64_MAX || (in->destinations && (result & defined) != 0);
        w->s[SCC] = scc;
    }
    if (in->destinations) scalar_commit(w, in->operand[0].index, in->operand[0].type->words, result, defined);
}

/* ---------------------------------------------------------------------------------------------- EXEC and its saving */

#define SAVES(name, value) \
    static uint64_t save_##name(uint64_t a, uint64_t b, uint64_t c, bool *scc) { \
        (void)c; \
        const uint64_t r = value; \
        *scc = r != 0; \
        return r; \
    }
SAVES(and, (a & b))
SAVES(or, a | b)
SAVES(xor, a ^ b)
SAVES(andn2, a & ~b)
SAVES(andn1, (~a & b))
SAVES(orn2, a | ~b)
SAVES(orn1, ~a | b)
SAVES(nand, ~(a &b))
SAVES(nor, ~(a | b))
SAVES(xnor, ~(a ^ b))

/* D = EXEC; EXEC = S op EXEC. */
static void save_exec(wave *w, const instruction *in) {
    uint64_t known;
    const uint64_t source = scalar_fetch(w, &in->operand[1], &known), before = exec_of(w);
    if (in->row->flags & ROW_ANDS) known |= ~before;
    const uint64_t after = in->row->scalar(source, before, 0, &w->scc);
    w->scc_defined = true;
    w->s[SCC] = w->scc;
    scalar_commit(w, in->operand[0].index, 2, before, UINT64_MAX);
    scalar_commit(w, EXEC, 2, after, known);
}

/* EXEC = S op EXEC; D = EXEC. */
static void write_exec(wave *w, const instruction *in) {
    uint64_t known;
    const uint64_t source = scalar_fetch(w, &in->operand[1], &known),
                   after = in->row->scalar(source, exec_of(w), 0, &w->scc);
    w->scc_defined = true;
    w->s[SCC] = w->scc;
    scalar_commit(w, EXEC, 2, after, known);
    scalar_commit(w, in->operand[0].index, 2, after, known);
}

/* ------------------------------------------------------------------------------------------------------------ table */

#define HEAD(name) static uint64_t do_##name(uint64_t a_, uint64_t b_, uint64_t c_, bool *scc)
#define S1(name, flags, D, A, value) \
    HEAD(name) { \
        (void)b_, (void)c_, (void)scc; \
        const A a = (A)a_; \
        return (uint64_t)(value); \
    }
#define S2(name, flags, D, A, B, value) \
    HEAD(name) { \
        (void)c_, (void)scc; \
        const A a = (A)a_; \
        const B b = (B)b_; \
        return (uint64_t)(value); \
    }
#define S1C(name, flags, D, A, value, carry) \
    HEAD(name) { \
        (void)b_, (void)c_; \
        const A a = (A)a_; \
        const D r = (D)(value); \
        *scc = carry; \
        return (uint64_t)r; \
    }
#define S2C(name, flags, D, A, B, value, carry) \
    HEAD(name) { \
        (void)c_; \
        const A a = (A)a_; \
        const B b = (B)b_; \
        const D r = (D)(value); \
        *scc = carry; \
        return (uint64_t)r; \
    }
#define S2A(name, flags, D, A, value) S2(name, flags, D, A, D, value)
#define S2AC(name, flags, D, A, value, carry) S2C(name, flags, D, A, D, value, carry)
#define SC_(name, A, B, condition) \
    HEAD(name) { \
        (void)c_; \
        const A a = (A)a_; \
        const A b = (A)b_; \
        *scc = condition; \
        return 0; \
    }
#define SC(name, A, B, condition) SC_(name, A, B, condition)
#include "scalar.def"
#undef S1
#undef S2
#undef S1C
#undef S2C
#undef S2A
#undef S2AC
#undef SC
#undef SC_

#define ROW(name, flags, signature) { #name, signature, execute_scalar, { .scalar = do_##name }, flags, CDNA_SCALAR },
#define ROW_(name, flags, signature) ROW(name, flags, signature)
#define S1(name, flags, D, A, value) ROW(name, flags, #D " = " #A)
#define S2(name, flags, D, A, B, value) ROW(name, flags, #D " = " #A " " #B)
#define S1C(name, flags, D, A, value, carry) ROW(name, (flags) | ROW_SETS_SCC, #D " = " #A)
#define S2C(name, flags, D, A, B, value, carry) ROW(name, (flags) | ROW_SETS_SCC, #D " = " #A " " #B)
#define S2A(name, flags, D, A, value) ROW(name, flags, #D " += " #A)
#define S2AC(name, flags, D, A, value, carry) ROW(name, (flags) | ROW_SETS_SCC, #D " += " #A)
#define SC(name, A, B, condition) ROW_(name, ROW_SETS_SCC, "= " #A " " #B)
#define SAVE(name, flags, execute, operation) \
    { "s_" #name "_b64", "b64 = b64", execute, { .scalar = save_##operation }, flags, CDNA_SCALAR },

const row scalar_rows[] = {
#include "scalar.def"
#include "scalar_exec.def"
    { 0 }
};
