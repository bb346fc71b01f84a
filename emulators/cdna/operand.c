/* SPDX-License-Identifier: Apache-2.0 */
/* Operands: registers and constants as llvm-objdump writes them, and the types that instructions give them. */
#include <ctype.h>
#include <stdlib.h>

#include "machine.h"
#include "number.h"
#include "spec/number.h"

static const value_type types[] = {
    { "b32", 1, 32, CLASS_BITS, false, false },    { "u32", 1, 32, CLASS_BITS, false, false },
    { "i32", 1, 32, CLASS_SIGNED, false, false },  { "f32", 1, 32, CLASS_FLOAT, false, false },
    { "b64", 2, 64, CLASS_BITS, false, false },    { "u64", 2, 64, CLASS_BITS, false, false },
    { "i64", 2, 64, CLASS_SIGNED, false, false },  { "f64", 2, 64, CLASS_FLOAT, false, false },
    { "b16", 1, 16, CLASS_BITS, false, false },    { "u16", 1, 16, CLASS_BITS, false, false },
    { "i16", 1, 16, CLASS_SIGNED, false, false },  { "f16", 1, 16, CLASS_FLOAT, false, false },
    { "pk_u16", 1, 16, CLASS_BITS, true, false },  { "pk_i16", 1, 16, CLASS_SIGNED, true, false },
    { "pk_f16", 1, 16, CLASS_FLOAT, true, false }, { "pk_f32", 2, 32, CLASS_FLOAT, true, false },
    { "pk_b32", 2, 32, CLASS_BITS, true, false },  { "mix", 1, 32, CLASS_FLOAT, false, true },
    { "m", 2, 64, CLASS_MASK, false, false },      { "ki", 1, 16, CLASS_SIGNED, false, false },
    { "ku", 1, 16, CLASS_BITS, false, false },     { "b96", 3, 32, CLASS_BITS, false, false },
    { "b128", 4, 32, CLASS_BITS, false, false },   { "b192", 6, 32, CLASS_BITS, false, false },
    { "b256", 8, 32, CLASS_BITS, false, false },
};

const value_type *type_named(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0) return &types[i];
    return NULL;
}

static const struct {
    const char *name;
    uint16_t index;
    uint8_t words;
} named[] = {
    { "vcc", VCC, 2 },
    { "vcc_lo", VCC, 1 },
    { "vcc_hi", VCC + 1, 1 },
    { "exec", EXEC, 2 },
    { "exec_lo", EXEC, 1 },
    { "exec_hi", EXEC + 1, 1 },
    { "m0", M0, 1 },
    { "flat_scratch", 102, 2 },
    { "flat_scratch_lo", 102, 1 },
    { "flat_scratch_hi", 103, 1 },
    { "src_shared_base", SHARED_BASE, 2 },
    { "src_shared_limit", SHARED_BASE + 1, 2 },
    { "src_private_base", SHARED_BASE + 2, 2 },
    { "src_private_limit", SHARED_BASE + 3, 2 },
    { "src_vccz", VCCZ, 1 },
    { "src_execz", EXECZ, 1 },
    { "src_scc", SCC, 1 },
};

/* "v7", "v[4:7]" and their kin with another first letter. */
static bool parse_register(const char *token, operand *o) {
    static const struct {
        const char *prefix;
        operand_kind kind;
        int first, count;
    } files[] = { { "v", OPERAND_VGPR, 0, 256 },
                  { "a", OPERAND_VGPR, FIRST_AGPR, 256 },
                  { "s", OPERAND_SGPR, 0, 102 },
                  { "ttmp", OPERAND_SGPR, TTMP, 16 } };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const size_t length = strlen(files[i].prefix);
        if (strncmp(token, files[i].prefix, length) != 0) continue;
        const bool range = token[length] == '[';
        const char *at = token + length + range;
        if (!isdigit((unsigned char)*at)) continue;
        char *end;
        const long first = strtol(at, &end, 10), last = range && *end == ':' ? strtol(end + 1, &end, 10) : first;
        if (range && *end++ != ']') return false;
        if (*end != 0 || last < first || last >= files[i].count) return false;
        o->kind = files[i].kind;
        o->index = (uint16_t)(files[i].first + first);
        o->words = (uint8_t)(last - first + 1);
        return true;
    }
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (strcmp(token, named[i].name) != 0) continue;
        o->kind = OPERAND_SGPR;
        o->index = named[i].index;
        o->words = named[i].words;
        return true;
    }
    return false;
}

static bool parse_number(const char *token, operand *o) {
    char *end;
    const bool hex = strncmp(token + (token[0] == '-'), "0x", 2) == 0;
    o->kind = OPERAND_CONSTANT;
    if (strchr(token, '.') != NULL && !hex) {
        o->written = WRITTEN_FLOAT;
        o->real = trine_strtod(token, &end);
    } else {
        o->written = hex ? WRITTEN_HEX : WRITTEN_DECIMAL;
        o->value = strtoull(token, &end, hex ? 16 : 10); /* of a negative number: its two's complement */
    }
    return end != token && *end == 0;
}

/* Takes off what `o` notes: a sign, bars, and the words for them. */
static void strip_modifiers(char *text, operand *o) {
    static const char *const words[] = { "neg(", "abs(", "sext(" };
    for (bool found = true; found;) {
        found = false;
        const size_t length = strlen(text);
        if (text[0] == '-' && !isdigit((unsigned char)text[1])) {
            o->negate = found = true;
            memmove(text, text + 1, length);
        } else if (text[0] == '|' && length > 2 && text[length - 1] == '|') {
            o->absolute = found = true;
            text[length - 1] = 0;
            memmove(text, text + 1, length - 1);
        }
        for (int i = 0; i < 3; i++) {
            const size_t prefix = strlen(words[i]);
            if (strncmp(text, words[i], prefix) != 0 || text[length - 1] != ')') continue;
            *(i == 0 ? &o->negate : i == 1 ? &o->absolute : &o->extend) = found = true;
            text[length - 1] = 0;
            memmove(text, text + prefix, length - prefix);
            break;
        }
    }
}

/* A literal whose value is an inline constant's is written lit(0x0). */
static void strip_literal(char *text) {
    const size_t length = strlen(text);
    if (strncmp(text, "lit(", 4) != 0 || text[length - 1] != ')') return;
    text[length - 1] = 0;
    memmove(text, text + 4, length - 4);
}

bool operand_parse(const char *token, operand *o) {
    char text[64];
    *o = (operand){ .high_high = true };
    if (strlen(token) >= sizeof text) return false;
    strcpy(text, token);
    strip_modifiers(text, o);
    strip_literal(text);
    if (strcmp(text, "off") == 0) {
        o->kind = OPERAND_OFF;
        return true;
    }
    if (parse_register(text, o)) return true;
    if ((isdigit((unsigned char)text[0]) || text[0] == '-') && parse_number(text, o)) return true;
    o->kind = OPERAND_NAME;
    return true;
}

/* Inline integers stand for their bits, also where a float is expected; 32-bit literals are the high half of an f64. */
static void bind_constant(operand *o, const value_type *type) {
    const int bits = type->bits;
    if (o->written == WRITTEN_FLOAT) {
        const bool half = bits == 16 || (type->mix && o->high_high);
        /* The inline constant 1/(2 pi) is printed short. */
        const double real = fabs(fabs(o->real) - 0.15915494) < 1e-7 ? copysign(0.15915494309189532, o->real) : o->real;
        o->value = bits == 64 ? double_bits(real) : half ? float_half((float)real) : float_bits((float)real);
    } else if (o->written == WRITTEN_HEX && bits == 64 && o->value <= UINT32_MAX) {
        if (type->class == CLASS_FLOAT)
            o->value <<= 32;
        else if (type->class == CLASS_SIGNED)
            o->value = (uint64_t)(int64_t)(int32_t)o->value;
    } else if (type->bits == 16 && !type->packed) {
        o->value = type->class == CLASS_SIGNED ? (uint64_t)(int64_t)(int16_t)o->value : o->value & 0xffff;
    } else if (bits == 32) {
        o->value = type->class == CLASS_SIGNED ? (uint64_t)(int64_t)(int32_t)o->value : (uint32_t)o->value;
    } else if (type->packed && o->written == WRITTEN_DECIMAL) {
        o->value &= 0xffff;
    }
}

bool operand_bind(operand *o, const value_type *type) {
    o->type = type;
    if (o->kind == OPERAND_CONSTANT) {
        bind_constant(o, type);
        return true;
    }
    return (o->kind == OPERAND_VGPR || o->kind == OPERAND_SGPR) && o->words == type->words;
}
