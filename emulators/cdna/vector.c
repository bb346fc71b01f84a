/* SPDX-License-Identifier: Apache-2.0 */
/* Vector instructions: sources are fetched with their modifiers, a row's function computes all lanes, and active lanes
 * are committed. */
#include "machine.h"
#include "number.h"

/* ---------------------------------------------------------------------------------------------------------- sources */

static void broadcast(lanes *out, int words, uint64_t value) {
    for (int i = 0; i < words; i++)
        for (int l = 0; l < LANES; l++) out[i][l] = (uint32_t)(value >> 32 * i);
}

static void spread_mask(lanes *out, uint64_t mask) {
    for (int l = 0; l < LANES; l++) out[0][l] = mask >> l & 1;
}

static uint64_t registers_defined(wave *w, const operand *o) {
    uint64_t defined = UINT64_MAX;
    for (int i = 0; i < o->words; i++) {
        check_register(w, o->index + i, false, -1);
        defined &= w->defined[o->index + i];
    }
    return defined;
}

/* Where lane l of a DPP source comes from; -1: from nowhere. */
static int dpp_source(const instruction *in, int l) {
    const int row = l & ~15, at = l & 15, n = in->dpp_control[0];
    switch (in->dpp) {
    case DPP_NONE: return l;
    case DPP_QUAD_PERM: return (l & ~3) | in->dpp_control[l & 3];
    case DPP_ROW_SHL: return at + n < 16 ? l + n : -1;
    case DPP_ROW_SHR: return at >= n ? l - n : -1;
    case DPP_ROW_ROR: return row | ((at + 16 - n) & 15);
    case DPP_WAVE_SHL: return l + 1 < LANES ? l + 1 : -1;
    case DPP_WAVE_ROL: return (l + 1) & 63;
    case DPP_WAVE_SHR: return l - 1;
    case DPP_WAVE_ROR: return (l + 63) & 63;
    case DPP_ROW_MIRROR: return row | (15 - at);
    case DPP_ROW_HALF_MIRROR: return (l & ~7) | (7 - (l & 7));
    case DPP_ROW_BCAST15: return l >= 16 ? row - 1 : -1;
    case DPP_ROW_BCAST31: return l >= 32 ? 31 : -1;
    case DPP_ROW_NEWBCAST: return row | n;
    }
    return -1;
}

static bool row_selected(const instruction *in, int l) {
    return in->row_mask >> (l >> 4) & 1 && in->bank_mask >> (l >> 2 & 3) & 1;
}

/* The lanes that a DPP instruction writes. */
static uint64_t dpp_mask(const wave *w, const instruction *in) {
    const uint64_t exec = exec_of(w);
    uint64_t mask = 0;
    for (int l = 0; l < LANES; l++) {
        const int from = dpp_source(in, l);
        const bool valid = from >= 0 && exec >> from & 1;
        if (row_selected(in, l) && (valid || in->bound_control)) mask |= UINT64_C(1) << l;
    }
    return mask;
}

static void permute(const wave *w, const instruction *in, lanes *value, int words, uint64_t defined[2]) {
    const uint64_t exec = exec_of(w);
    lanes moved;
    for (int i = 0; i < words; i++) {
        uint64_t known = 0;
        for (int l = 0; l < LANES; l++) {
            const int from = dpp_source(in, l);
            const bool valid = from >= 0 && exec >> from & 1;
            moved[l] = valid ? value[i][from] : 0;
            known |= (uint64_t)(!valid || (defined[i] >> from & 1)) << l;
        }
        memcpy(value[i], moved, sizeof moved);
        defined[i] = known;
    }
    if (words == 1) defined[1] = defined[0];
}

static uint32_t selected(uint32_t x, int select, bool extend) {
    if (select == SELECT_DWORD) return x;
    const int bits = select >= SELECT_WORD_0 ? 16 : 8,
              first = select >= SELECT_WORD_0 ? 16 * (select - SELECT_WORD_0) : 8 * (select - SELECT_BYTE_0);
    const uint32_t part = x >> first << (32 - bits);
    return extend ? (uint32_t)((int32_t)part >> (32 - bits)) : part >> (32 - bits);
}

/* op_sel of packed, 16-bit and mixed operands. */
static void choose_halves(const operand *o, lanes *value) {
    const value_type *type = o->type;
    if (type->packed && type->words == 2) {
        lanes low;
        memcpy(low, value[o->high], sizeof low);
        memcpy(value[1], value[o->high_high], sizeof low);
        memcpy(value[0], low, sizeof low);
    } else if (type->packed) {
        for (int l = 0; l < LANES; l++)
            value[0][l] = (value[0][l] >> 16 * o->high & 0xffff) | (value[0][l] >> 16 * o->high_high) << 16;
    } else if (type->mix && o->high_high) {
        for (int l = 0; l < LANES; l++) value[0][l] = float_bits(half_float((uint16_t)(value[0][l] >> 16 * o->high)));
    } else if (type->bits == 16 && o->high) {
        for (int l = 0; l < LANES; l++) value[0][l] >>= 16;
    }
}

static void change_sign(const operand *o, lanes *value) {
    const value_type *type = o->type;
    const bool two_words = type->words == 2 && !type->packed;
    uint32_t *sign_word = value[two_words];
    if (type->packed && type->words == 2) {
        for (int l = 0; l < LANES; l++) {
            value[0][l] ^= (uint32_t)o->negate << 31;
            value[1][l] ^= (uint32_t)o->negate_high << 31;
        }
        return;
    }
    const uint32_t sign = type->bits == 16 ? 0x8000 : 0x80000000, clear = o->absolute ? sign : 0;
    const uint32_t flip = (o->negate ? sign : 0) | (type->packed && o->negate_high ? 0x80000000 : 0);
    for (int l = 0; l < LANES; l++) sign_word[l] = (sign_word[l] & ~clear) ^ flip;
}

/* Of the two words of a value, or twice that of its one. */
static void words_defined(wave *w, const operand *o, uint64_t defined[2]) {
    registers_defined(w, o);
    const bool packed = o->type->packed && o->words == 2;
    defined[0] = w->defined[o->index + (packed && o->high)];
    defined[1] = w->defined[o->index + (packed ? o->high_high : o->words - 1)];
}

/* From the bits of a scalar source that are defined, whether its words are, in all lanes. */
static void scalar_words_defined(const operand *o, uint64_t defined[2]) {
    const uint64_t low = (uint32_t)defined[0] == UINT32_MAX ? UINT64_MAX : 0,
                   high = defined[0] >> 32 == UINT32_MAX ? UINT64_MAX : 0;
    const bool packed = o->type->packed && o->type->words == 2;
    defined[0] = packed && o->high ? high : low;
    defined[1] = packed && !o->high_high ? low : high;
    if (o->type->words == 1) defined[0] = defined[1] = low;
}

const lanes *fetch(wave *w, const instruction *in, int which, lanes *scratch, uint64_t defined[2]) {
    const operand *o = &in->operand[which];
    if (o->kind == OPERAND_VGPR) {
        words_defined(w, o, defined);
        if (o->plain) return (const lanes *)&w->v[o->index];
        memcpy(scratch, &w->v[o->index], (size_t)o->words * sizeof *scratch);
        if (in->dpp != DPP_NONE && which == in->destinations) permute(w, in, scratch, o->words, defined);
    } else {
        const uint64_t value = scalar_fetch(w, o, &defined[0]);
        defined[1] = defined[0];
        if (o->type->class == CLASS_MASK) {
            spread_mask(scratch, value);
            return scratch;
        }
        scalar_words_defined(o, defined);
        broadcast(scratch, o->type->words, value);
        if (o->kind == OPERAND_CONSTANT && o->type->packed && o->type->words == 2)
            memcpy(scratch[1], scratch[0], sizeof(lanes));
    }
    if (o->select != SELECT_DWORD || o->extend)
        for (int l = 0; l < LANES; l++) scratch[0][l] = selected(scratch[0][l], o->select, o->extend);
    choose_halves(o, scratch);
    if (o->negate || o->absolute || o->negate_high) change_sign(o, scratch);
    return scratch;
}

/* ----------------------------------------------------------------------------------------------------- destinations */

const lanes *exec_lanes_of(wave *w) {
    const uint64_t exec = exec_of(w);
    if (exec != w->exec_cached) {
        for (int l = 0; l < LANES; l++) w->exec_lanes[l] = 0 - (uint32_t)(exec >> l & 1);
        w->exec_cached = exec;
    }
    return (const lanes *)&w->exec_lanes;
}

static void write_registers(wave *w, int index, int words, const lanes *value, uint64_t mask, uint64_t defined) {
    lanes other;
    const uint32_t *select = NULL;
    if (mask != UINT64_MAX && mask == exec_of(w)) {
        select = *exec_lanes_of(w);
    } else if (mask != UINT64_MAX) {
        for (int l = 0; l < LANES; l++) other[l] = 0 - (uint32_t)(mask >> l & 1);
        select = other;
    }
    for (int i = 0; i < words; i++) {
        uint32_t *to = w->v[index + i];
        if (select == NULL)
            memcpy(to, value[i], sizeof(lanes));
        else
            for (int l = 0; l < LANES; l++) to[l] = (value[i][l] & select[l]) | (to[l] & ~select[l]);
        w->defined[index + i] = (w->defined[index + i] & ~mask) | (defined & mask);
        w->spilled[index + i] &= ~mask;
    }
}

void commit(wave *w, int index, int words, const lanes *value, uint64_t mask, uint64_t defined) {
    if (mask == 0) return;
    for (int i = 0; i < words; i++) check_register(w, index + i, true, -1);
    write_registers(w, index, words, value, mask, defined);
}

void commit_later(wave *w, int index, int words, const lanes *value, uint64_t mask, uint64_t defined, int counter,
                  uint32_t sequence) {
    if (mask == 0) return;
    for (int i = 0; i < words; i++) {
        check_register(w, index + i, true, counter);
        w->due[index + i] = 2 * sequence + (uint32_t)counter;
    }
    write_registers(w, index, words, value, mask, defined);
}

const lanes *demand(wave *w, const operand *o, uint64_t mask, const char *purpose) {
    const uint64_t missing = mask & ~registers_defined(w, o);
    if (missing)
        stop(w, __builtin_ctzll(missing), "%s is taken from an uninitialised register%s", purpose, origin_of(w));
    return (const lanes *)&w->v[o->index];
}

uint64_t demand_scalar(wave *w, const operand *o, int words, const char *purpose) {
    if (o->kind == OPERAND_CONSTANT) return o->value;
    if (o->kind != OPERAND_SGPR) stop(w, -1, "%s is not a scalar register", purpose);
    uint64_t value = 0;
    for (int i = 0; i < words; i++) {
        check_scalar(w, o->index + i);
        if (w->s_defined[o->index + i] != UINT32_MAX)
            stop(w, -1, "%s is taken from an uninitialised scalar register%s", purpose, origin_of(w));
        value |= (uint64_t)w->s[o->index + i] << 32 * i;
    }
    return value;
}

/* Output modifiers: a power of two, then [0, 1] with NaN as 0. */
static void scale_and_clamp(const instruction *in, const value_type *type, lanes *value) {
    for (int l = 0; l < LANES; l++) {
        for (int h = 0; h < (type->packed ? 2 : 1); h++) {
            const bool words = type->packed && type->words == 2;
            const double x = type->bits == 64   ? bits_double((uint64_t)value[1][l] << 32 | value[0][l])
                             : type->bits == 16 ? (double)half_float((uint16_t)(value[0][l] >> 16 * h))
                                                : (double)bits_float(value[words ? h : 0][l]);
            const double scaled = ldexp(x, in->omod), y = !in->clamp ? scaled : scaled > 0 ? fmin(scaled, 1) : 0;
            if (type->bits == 64) {
                value[0][l] = (uint32_t)double_bits(y);
                value[1][l] = (uint32_t)(double_bits(y) >> 32);
            } else if (type->bits == 16) {
                value[0][l] = (value[0][l] & ~(0xffffu << 16 * h)) | (uint32_t)float_half((float)y) << 16 * h;
            } else {
                value[words ? h : 0][l] = float_bits((float)y);
            }
        }
    }
}

/* A result of part of a register is merged with what the rest of it holds. */
static void place(wave *w, const instruction *in, lanes *value) {
    const uint32_t *old = w->v[in->operand[0].index];
    const int select = in->destination_select;
    uint32_t keep = 0;
    int first = 0;
    if (select != SELECT_DWORD) {
        first = select >= SELECT_WORD_0 ? 16 * (select - SELECT_WORD_0) : 8 * (select - SELECT_BYTE_0);
        const uint32_t part = (select >= SELECT_WORD_0 ? 0xffffu : 0xffu) << first;
        for (int l = 0; l < LANES; l++) {
            value[0][l] = value[0][l] << first & part;
            if (in->destination_unused == UNUSED_SEXT && value[0][l] & (part & ~(part >> 1)))
                value[0][l] |= ~part & ~((1u << first) - 1);
        }
        keep = in->destination_unused == UNUSED_PRESERVE ? ~part : 0;
    } else if (in->row->flags & ROW_MERGES) {
        first = in->destination_high ? 16 : 0;
        keep = in->destination_high ? 0xffff : 0xffff0000;
        for (int l = 0; l < LANES; l++) value[0][l] = value[0][l] << first & ~keep;
    }
    if (keep)
        for (int l = 0; l < LANES; l++) value[0][l] |= old[l] & keep;
}

static void commit_mask(wave *w, const instruction *in, const operand *o, const lanes *value, uint64_t mask,
                        uint64_t defined) {
    uint64_t bits = 0;
    for (int l = 0; l < LANES; l++) bits |= (uint64_t)(value[0][l] & 1) << l;
    mask_commit(w, o->index, bits & mask, defined | ~mask);
    if (in->row->flags & ROW_COMPARES) mask_commit(w, EXEC, bits & mask, defined | ~mask);
}

/* Commits a result whose words may be defined each for itself. */
static void commit_words(wave *w, const operand *o, const lanes *value, uint64_t mask, const uint64_t defined[2]) {
    if (o->kind != OPERAND_VGPR) stop(w, -1, "a scalar register is the destination of a vector instruction");
    if (defined[0] == defined[1]) {
        commit(w, o->index, o->words, value, mask, defined[0]);
        return;
    }
    for (int i = 0; i < o->words; i++) commit(w, o->index + i, 1, &value[i], mask, defined[i]);
}

void execute_vector(wave *w, const instruction *in) {
    const row *r = in->row;
    const uint64_t exec = exec_of(w);
    const lanes *source[4] = { 0 };
    uint64_t known[4][2], defined[2] = { UINT64_MAX, UINT64_MAX };
    for (int i = 0; i < in->sources; i++) {
        source[i] = fetch(w, in, in->destinations + i, w->scratch_lanes[i], known[i]);
        defined[0] &= known[i][0];
        defined[1] &= known[i][1];
    }
    if (r->flags & ROW_SELECTS) {
        uint64_t chosen = 0;
        for (int l = 0; l < LANES; l++) chosen |= (uint64_t)(source[2][0][l] & 1) << l;
        defined[0] = defined[1] = known[2][0] & ((chosen & known[1][0]) | (~chosen & known[0][0]));
    }
    if (r->flags & ROW_PAIRS) defined[0] = defined[1] = known[0][0];
    const uint64_t whole = defined[0] & defined[1];
    if (r->flags & ROW_CARRIES)
        defined[1] = whole;
    else if (!in->operand[0].type->packed && !(r->flags & ROW_BITWISE))
        defined[0] = defined[1] = whole;
    lanes *const result[2] = { w->scratch_lanes[4], w->scratch_lanes[5] };
    r->vector(result, source);
    const uint64_t mask = in->dpp == DPP_NONE ? exec : exec & dpp_mask(w, in);
    for (int i = 0; i < in->destinations; i++) {
        const operand *o = &in->operand[i];
        if (o->type->class == CLASS_MASK) {
            commit_mask(w, in, o, result[i], mask, whole);
            continue;
        }
        if (in->omod || in->clamp) scale_and_clamp(in, o->type, result[i]);
        if (in->destination_select != SELECT_DWORD || r->flags & ROW_MERGES) place(w, in, result[i]);
        commit_words(w, o, (const lanes *)result[i], mask, defined);
    }
}
