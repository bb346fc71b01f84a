/* SPDX-License-Identifier: Apache-2.0 */
/* From a line of disassembly to an instruction. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

/* -------------------------------------------------------------------------------------------------------- modifiers */

static bool set_offset(instruction *in, const char *value) {
    return in->offset = (int32_t)strtol(value, NULL, 0), true;
}
static bool set_offset1(instruction *in, const char *value) {
    return in->offset1 = (int32_t)strtol(value, NULL, 0), true;
}
static bool set_omod(instruction *in, const char *value) { return in->omod = (int8_t)(value[0] == '2' ? 1 : 2), true; }
static bool set_div(instruction *in, const char *value) { return in->omod = -1, value[0] == '2'; }
static bool set_row_mask(instruction *in, const char *value) {
    return in->row_mask = (uint8_t)strtol(value, NULL, 0), true;
}
static bool set_bank_mask(instruction *in, const char *value) {
    return in->bank_mask = (uint8_t)strtol(value, NULL, 0), true;
}
static bool set_bound(instruction *in, const char *value) { return in->bound_control = true, value[0] != 0; }
static bool set_cbsz(instruction *in, const char *value) { return in->cbsz = (uint8_t)atoi(value), true; }
static bool set_abid(instruction *in, const char *value) { return in->abid = (uint8_t)atoi(value), true; }
static bool set_blgp(instruction *in, const char *value) { return in->blgp = (uint8_t)atoi(value), true; }
static bool set_bitop(instruction *in, const char *value) { return in->bitop3 = (uint8_t)strtol(value, NULL, 0), true; }

static bool set_quad(instruction *in, const char *value) {
    in->dpp = DPP_QUAD_PERM;
    for (int i = 0; i < 4; i++) in->dpp_control[i] = (uint8_t)(value[1 + 2 * i] - '0');
    return true;
}

/* "[1,0,...]" over the sources; the one after them, if any, is the destination's. */
static bool set_list(instruction *in, const char *value, size_t member) {
    const int sources = in->operands - in->destinations;
    int i = 0;
    for (const char *at = value + 1; *at && *at != ']'; at++) {
        if (*at != '0' && *at != '1') continue;
        const bool on = *at == '1';
        if (i < sources)
            *(bool *)((char *)&in->operand[in->destinations + i] + member) = on;
        else if (i == sources && member == offsetof(operand, high))
            in->destination_high = on;
        else if (on)
            return false;
        i++;
    }
    return true;
}
static bool set_op_sel(instruction *in, const char *value) { return set_list(in, value, offsetof(operand, high)); }
static bool set_op_sel_hi(instruction *in, const char *value) {
    return set_list(in, value, offsetof(operand, high_high));
}
static bool set_neg_lo(instruction *in, const char *value) { return set_list(in, value, offsetof(operand, negate)); }
static bool set_neg_hi(instruction *in, const char *value) {
    return set_list(in, value, offsetof(operand, negate_high));
}

static int selection(const char *value) {
    static const char *const names[] = { "DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1" };
    for (int i = 0; i < 7; i++)
        if (strcmp(value, names[i]) == 0) return i;
    return -1;
}
static bool set_destination(instruction *in, const char *value) {
    return in->destination_select = (uint8_t)selection(value), selection(value) >= 0;
}
static bool set_unused(instruction *in, const char *value) {
    in->destination_unused = strstr(value, "PRESERVE") ? UNUSED_PRESERVE
                             : strstr(value, "SEXT")   ? UNUSED_SEXT
                                                       : UNUSED_PAD;
    return true;
}
static bool set_source0(instruction *in, const char *value) {
    return in->operand[in->destinations].select = (uint8_t)selection(value), selection(value) >= 0;
}
static bool set_source1(instruction *in, const char *value) {
    return in->operand[in->destinations + 1].select = (uint8_t)selection(value), selection(value) >= 0;
}

static bool set_glc(instruction *in, const char *value) { return in->glc = true, value[0] == 0; }
static bool set_sc1(instruction *in, const char *value) { return in->sc1 = true, value[0] == 0; }
static bool set_clamp(instruction *in, const char *value) { return in->clamp = true, value[0] == 0; }
static bool set_offen(instruction *in, const char *value) { return in->offen = true, value[0] == 0; }
static bool set_idxen(instruction *in, const char *value) { return in->idxen = true, value[0] == 0; }
static bool set_lds(instruction *in, const char *value) { return in->to_lds = true, value[0] == 0; }
static bool set_gds(instruction *in, const char *value) { return in->gds = true, value[0] == 0; }
static bool ignore(instruction *in, const char *value) { return (void)in, (void)value, true; }

/* "name", or "name:value". */
static const struct modifier {
    const char *name;
    bool (*set)(instruction *in, const char *value);
} modifiers[] = {
    { "offset", set_offset },
    { "offset0", set_offset },
    { "offset1", set_offset1 },
    { "mul", set_omod },
    { "div", set_div },
    { "row_mask", set_row_mask },
    { "bank_mask", set_bank_mask },
    { "bound_ctrl", set_bound },
    { "cbsz", set_cbsz },
    { "abid", set_abid },
    { "blgp", set_blgp },
    { "quad_perm", set_quad },
    { "op_sel", set_op_sel },
    { "op_sel_hi", set_op_sel_hi },
    { "neg_lo", set_neg_lo },
    { "neg_hi", set_neg_hi },
    { "neg", set_neg_lo },
    { "dst_sel", set_destination },
    { "dst_unused", set_unused },
    { "src0_sel", set_source0 },
    { "src1_sel", set_source1 },
    { "bitop3", set_bitop },
    { "glc", set_glc },
    { "sc0", set_glc },
    { "sc1", set_sc1 },
    { "slc", ignore },
    { "nt", ignore },
    { "clamp", set_clamp },
    { "offen", set_offen },
    { "idxen", set_idxen },
    { "lds", set_lds },
    { "gds", set_gds },
};

static const struct {
    const char *name;
    dpp_kind kind;
} dpp_names[] = {
    { "row_shl", DPP_ROW_SHL },           { "row_shr", DPP_ROW_SHR },       { "row_ror", DPP_ROW_ROR },
    { "wave_shl", DPP_WAVE_SHL },         { "wave_rol", DPP_WAVE_ROL },     { "wave_shr", DPP_WAVE_SHR },
    { "wave_ror", DPP_WAVE_ROR },         { "row_mirror", DPP_ROW_MIRROR }, { "row_half_mirror", DPP_ROW_HALF_MIRROR },
    { "row_newbcast", DPP_ROW_NEWBCAST }, { "row_bcast", DPP_ROW_BCAST15 },
};

typedef enum outcome { NOT_ONE, DONE, WRONG } outcome;

static outcome apply_modifier(instruction *in, const char *token) {
    const size_t length = strcspn(token, ":");
    const char *value = token[length] ? token + length + 1 : "";
    for (size_t i = 0; i < sizeof modifiers / sizeof modifiers[0]; i++)
        if (strlen(modifiers[i].name) == length && strncmp(modifiers[i].name, token, length) == 0)
            return modifiers[i].set(in, value) ? DONE : WRONG;
    for (size_t i = 0; i < sizeof dpp_names / sizeof dpp_names[0]; i++) {
        if (strlen(dpp_names[i].name) != length || strncmp(dpp_names[i].name, token, length) != 0) continue;
        in->dpp = dpp_names[i].kind;
        in->dpp_control[0] = (uint8_t)atoi(value);
        if (in->dpp == DPP_ROW_BCAST15 && in->dpp_control[0] == 31) in->dpp = DPP_ROW_BCAST31;
        return DONE;
    }
    return NOT_ONE;
}

/* "vmcnt(3)", "lgkmcnt(0)", "expcnt(7)", or the whole immediate as a number. */
static bool apply_wait(instruction *in, const char *token) {
    const char *open = strchr(token, '(');
    const long value = strtol(open ? open + 1 : token, NULL, 0);
    if (strncmp(token, "vmcnt(", 6) == 0) {
        in->wait_vm = (uint16_t)value;
    } else if (strncmp(token, "lgkmcnt(", 8) == 0) {
        in->wait_lgkm = (uint16_t)value;
    } else if (isdigit((unsigned char)token[0])) {
        in->wait_vm = (uint16_t)((value & 15) | (value >> 10 & 48));
        in->wait_lgkm = value >> 8 & 15;
    } else {
        return strncmp(token, "expcnt(", 7) == 0;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------- signatures */

/* Gives each operand its type; false if their number or width is not what the signature says. */
static bool apply_signature(instruction *in, const char *signature) {
    const char *equals = strchr(signature, '=');
    const bool accumulates = equals > signature && equals[-1] == '+';
    int i = 0;
    for (const char *at = signature; *at;) {
        const size_t length = strcspn(at, " ");
        const char *word = at;
        at += length + (at[length] == ' ');
        if (memchr(word, '=', length) != NULL) {
            in->destinations = i;
            continue;
        }
        const value_type *type = type_named(word, length);
        if (type->class == CLASS_MASK && i == in->operands && i < MAX_OPERANDS) {
            in->operand[in->operands++] =
                (operand){ .kind = OPERAND_SGPR, .index = VCC, .words = 2, .high_high = true };
        }
        if (i >= in->operands || !operand_bind(&in->operand[i], type)) return false;
        i++;
    }
    if (accumulates) {
        in->operand[i] = in->operand[0];
        in->operand[i].negate = in->operand[i].absolute = in->operand[i].high = false;
        in->operands = ++i;
    }
    in->sources = i - in->destinations;
    return i == in->operands;
}

/* Where a row reads its operands itself. */
static bool bind_constants(instruction *in) {
    for (int i = 0; i < in->operands; i++)
        if (in->operand[i].kind == OPERAND_CONSTANT && !operand_bind(&in->operand[i], type_named("b32", 3)))
            return false;
    return true;
}

static int destinations_of(const char *signature) {
    int count = 0;
    for (const char *at = signature; *at && *at != '=' && *at != '+'; at += strcspn(at, " "), at += strspn(at, " "))
        count++;
    return count;
}

static void find_plain(instruction *in) {
    for (int i = 0; i < in->operands; i++) {
        operand *o = &in->operand[i];
        const bool moved = in->dpp != DPP_NONE && i == in->destinations;
        const bool packed = o->type != NULL && o->type->packed;
        const bool special = o->type != NULL && (o->type->mix || o->type->class == CLASS_MASK);
        o->plain = o->kind == OPERAND_VGPR && !o->negate && !o->absolute && !o->negate_high && !o->extend && !o->high &&
                   o->select == SELECT_DWORD && !moved && !special && (!packed || o->high_high);
    }
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

/* The next token of *at, in `token`: up to a comma or space that is in no bracket. False at the end. */
static bool next_token(const char **at, char *token, size_t size) {
    const char *p = *at + strspn(*at, " \t,");
    size_t length = 0;
    for (int depth = 0; p[length] && (depth > 0 || strchr(" \t,", p[length]) == NULL); length++)
        depth += (p[length] == '[' || p[length] == '(') - (p[length] == ']' || p[length] == ')');
    *at = p + length;
    if (length == 0 || length >= size) return false;
    memcpy(token, p, length);
    token[length] = 0;
    return true;
}

static bool decode_tokens(instruction *in, const row *r, const char *at) {
    char token[96];
    /* op_sel_hi is off unless written */
    const bool mixed = r->signature != NULL && strstr(r->signature, "mix") != NULL;
    while (next_token(&at, token, sizeof token)) {
        const outcome modifier = apply_modifier(in, token);
        if (modifier == WRONG) return false;
        if (modifier == DONE) continue;
        if (r->kind == CDNA_WAIT) {
            if (!apply_wait(in, token)) return false;
        } else {
            if (in->operands == MAX_OPERANDS || !operand_parse(token, &in->operand[in->operands])) return false;
            in->operand[in->operands++].high_high = !mixed;
        }
    }
    return true;
}

void decode(const char *text, uint32_t word, instruction *in) {
    const size_t length = strcspn(text, " ");
    const row *r = row_find(text, length);
    in->row = NULL;
    in->row_mask = in->bank_mask = 15;
    in->wait_vm = in->wait_lgkm = UINT16_MAX;
    in->target = -1;
    if (r == NULL) return;
    in->destinations = r->signature ? destinations_of(r->signature) : r->kind == CDNA_MATRIX;
    if (!decode_tokens(in, r, text + length) || in->gds) return;
    if (r->flags & ROW_RAW_OFFSET) in->offset = (int32_t)(word & 0xffff);
    if (r->flags & ROW_TRUTH_TABLE && in->operands < MAX_OPERANDS)
        in->operand[in->operands++] =
            (operand){ .kind = OPERAND_CONSTANT, .value = in->bitop3, .written = WRITTEN_HEX };
    if (r->signature ? !apply_signature(in, r->signature) : !bind_constants(in)) return;
    if (in->clamp && r->signature && in->operand[0].type->class != CLASS_FLOAT) return;
    find_plain(in);
    in->row = r;
}
