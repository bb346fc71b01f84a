/* SPDX-License-Identifier: Apache-2.0 */
/* LDS instructions, and the cross-lane ones that use its hardware. */
#include <string.h>

#include "machine.h"

typedef struct lds_operation {
    uint32_t bytes; /* of one access */
    /* 0: one access; else two, at offset0 and offset1 times this */
    uint32_t stride;
    enum { PLAIN, SIGNED, LOW, HIGH, SIGNED_LOW, SIGNED_HIGH } place; /* of less than a register */
    bool returns;
    const char *atomic;
} lds_operation;

static uint32_t offset_of(const lds_operation *o, const instruction *in, int part) {
    return o->stride ? (uint32_t)(part ? in->offset1 : in->offset) * o->stride : (uint32_t)in->offset;
}

static uint32_t alignment_of(uint32_t bytes) { return bytes == 12 ? 16 : bytes; }

static void count(wave *w, const lds_operation *o, const lanes *address, uint32_t offset, uint64_t mask, bool write) {
    lanes at;
    for (int l = 0; l < LANES; l++) at[l] = address[0][l] + offset;
    lds_conflicts(w, at, mask, o->bytes, write);
    w->group->profile.lds_bytes += (uint64_t)__builtin_popcountll(mask) * o->bytes;
    w->group->profile.lds_accesses++;
}

/* ------------------------------------------------------------------------------------------------- reads and writes */

static uint32_t widen(const lds_operation *o, uint32_t value, uint32_t old) {
    const int spare = 32 - 8 * (int)o->bytes;
    const uint32_t extended = (uint32_t)((int32_t)(value << spare) >> spare);
    switch (o->place) {
    case SIGNED: return extended;
    case LOW: return (old & 0xffff0000) | value;
    case HIGH: return (old & 0xffff) | value << 16;
    case SIGNED_LOW: return (old & 0xffff0000) | (extended & 0xffff);
    case SIGNED_HIGH: return (old & 0xffff) | extended << 16;
    default: return value;
    }
}

/* One access of each lane into value[0..]; the lanes whose bytes are all defined. */
static uint64_t read_part(wave *w, const instruction *in, const lds_operation *o, const lanes *address, int part,
                          lanes *value) {
    const uint32_t offset = offset_of(o, in, part), words = (o->bytes + 3) / 4;
    const uint64_t exec = exec_of(w);
    uint64_t defined = 0;
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        const uint32_t at = address[0][l] + offset;
        uint32_t data[4] = { 0 };
        lds_touch(w, l, at, o->bytes, alignment_of(o->bytes), LDS_READ);
        memcpy(data, w->group->lds + at, o->bytes);
        defined |= (uint64_t)lds_defined(w, at, o->bytes) << l;
        if (o->bytes < 4) data[0] = widen(o, data[0], w->v[in->operand[0].index][l]);
        for (uint32_t i = 0; i < words; i++) value[i][l] = data[i];
    }
    count(w, o, address, offset, exec, false);
    return defined;
}

static void execute_read(wave *w, const instruction *in) {
    const lds_operation *o = in->row->data;
    const int parts = o->stride ? 2 : 1, words = (int)(o->bytes + 3) / 4;
    const uint64_t exec = exec_of(w);
    const lanes *address = demand(w, &in->operand[1], exec, "an address of LDS");
    lanes value[4];
    uint64_t defined = UINT64_MAX;
    if (in->operand[0].words != parts * words) stop(w, -1, "the destination is %d registers", parts * words);
    if (o->place >= LOW) check_register(w, in->operand[0].index, false, COUNTER_LGKM);
    for (int part = 0; part < parts; part++) defined &= read_part(w, in, o, address, part, value + part * words);
    commit_later(w, in->operand[0].index, parts * words, (const lanes *)value, exec, defined, COUNTER_LGKM,
                 issue(w, COUNTER_LGKM, false));
}

/* Of 16 lanes, which read 8 bytes each, the i-th is given 16 bits of each fourth from i / 4 on, at place i % 4: four
 * rows of 16, turned (ROCm, rocm-systems #10175, and LLVM's and Triton's use of it).
 * What becomes of it if lanes are missing is not known. */
static void execute_read_turned(wave *w, const instruction *in) {
    const uint64_t exec = exec_of(w);
    if (exec != UINT64_MAX) stop(w, -1, "a read that turns wants all lanes");
    if (in->operand[0].words != 2) stop(w, -1, "the destination is 2 registers");
    lanes read[2], value[2];
    const uint64_t known =
        read_part(w, in, in->row->data, demand(w, &in->operand[1], exec, "an address of LDS"), 0, read);
    uint64_t defined = UINT64_MAX;
    for (int l = 0; l < LANES; l++) {
        value[0][l] = value[1][l] = 0;
        for (int n = 0; n < 4; n++) {
            const int from = l / 16 * 16 + l % 16 / 4 + 4 * n;
            value[n / 2][l] |= (read[l % 4 / 2][from] >> 16 * (l % 2) & 0xffff) << 16 * (n % 2);
            if (!(known >> from & 1)) defined &= ~(UINT64_C(1) << l);
        }
    }
    commit_later(w, in->operand[0].index, 2, (const lanes *)value, exec, defined, COUNTER_LGKM,
                 issue(w, COUNTER_LGKM, false));
}

static void write_part(wave *w, const instruction *in, const lds_operation *o, const lanes *address, int part) {
    const operand *from = &in->operand[1 + part];
    const uint32_t offset = offset_of(o, in, part), words = (o->bytes + 3) / 4;
    const uint64_t exec = exec_of(w);
    uint64_t defined = UINT64_MAX;
    if (from->kind != OPERAND_VGPR || from->words != (int)words) stop(w, -1, "the data is %u registers", words);
    for (uint32_t i = 0; i < words; i++) {
        check_register(w, from->index + (int)i, false, -1);
        defined &= w->defined[from->index + i];
    }
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        const uint32_t at = address[0][l] + offset;
        uint32_t data[4];
        for (uint32_t i = 0; i < words; i++) data[i] = w->v[from->index + i][l];
        if (o->place == HIGH) data[0] >>= 16;
        lds_touch(w, l, at, o->bytes, alignment_of(o->bytes), LDS_WRITE);
        lds_define(w, at, o->bytes, defined >> l & 1);
        memcpy(w->group->lds + at, data, o->bytes);
    }
    count(w, o, address, offset, exec, true);
}

/* A write is seen by other waves once this one has waited for it and come to a barrier. */
static void unreleased(wave *w, uint32_t sequence) {
    w->lds_sequence[w->epoch % EPOCHS] = sequence;
    w->lds_release[w->epoch % EPOCHS] = UINT32_MAX;
}

static void execute_write(wave *w, const instruction *in) {
    const lds_operation *o = in->row->data;
    const lanes *address = demand(w, &in->operand[0], exec_of(w), "an address of LDS");
    for (int part = 0; part < (o->stride ? 2 : 1); part++) write_part(w, in, o, address, part);
    unreleased(w, issue(w, COUNTER_LGKM, false));
}

static void execute_lds_atomic(wave *w, const instruction *in) {
    const lds_operation *o = in->row->data;
    const atomic *operation = atomic_named(o->atomic);
    const bool exchange = strncmp(o->atomic, "cmpswap", 7) == 0;
    const operand *vaddr = &in->operand[o->returns], *from = vaddr + 1;
    const uint64_t exec = exec_of(w);
    const int words = (int)o->bytes / 4;
    const lanes *address = demand(w, vaddr, exec, "an address of LDS"),
                *data = demand(w, from, exec, "the data of an atomic");
    const lanes *other = exchange ? demand(w, from + 1, exec, "the data of an atomic") : NULL;
    lanes old[2];
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        const uint32_t at = address[0][l] + (uint32_t)in->offset;
        uint32_t value[4], before[2] = { 0 };
        for (int i = 0; i < words; i++) {
            value[i] = exchange ? other[i][l] : data[i][l];
            value[words + i] = data[i][l];
        }
        lds_touch(w, l, at, o->bytes, o->bytes, LDS_ATOMIC);
        if (!lds_defined(w, at, o->bytes)) stop(w, l, "an atomic on LDS at %u, which is uninitialised", at);
        atomic_apply(operation, w->group->lds + at, value, before);
        for (int i = 0; i < words; i++) old[i][l] = before[i];
    }
    count(w, o, address, (uint32_t)in->offset, exec, true);
    const uint32_t sequence = issue(w, COUNTER_LGKM, false);
    unreleased(w, sequence);
    if (o->returns)
        commit_later(w, in->operand[0].index, words, (const lanes *)old, exec, UINT64_MAX, COUNTER_LGKM, sequence);
}

/* ------------------------------------------------------------------------------------------------------- cross-lane */

static void move_lanes(wave *w, const instruction *in, const operand *data, const int *from) {
    const uint64_t exec = exec_of(w);
    check_register(w, data->index, false, -1);
    const uint64_t known = w->defined[data->index];
    lanes value;
    uint64_t defined = 0;
    for (int l = 0; l < LANES; l++) {
        const bool valid = from[l] >= 0 && exec >> from[l] & 1;
        value[l] = valid ? w->v[data->index][from[l]] : 0;
        defined |= (uint64_t)(!valid || (known >> from[l] & 1)) << l;
    }
    commit_later(w, in->operand[0].index, 1, (const lanes *)&value, exec, defined, COUNTER_LGKM,
                 issue(w, COUNTER_LGKM, false));
}

static void execute_swizzle(wave *w, const instruction *in) {
    const uint32_t pattern = (uint32_t)in->offset;
    int from[LANES];
    if (pattern >= 0xc000) stop(w, -1, "this swizzle is not known");
    for (int l = 0; l < LANES; l++) {
        if (pattern & 0x8000)
            from[l] = (l & ~3) | (int)(pattern >> 2 * (l & 3) & 3);
        else
            from[l] =
                (l & 32) | ((((l & 31) & (int)(pattern & 31)) | (int)(pattern >> 5 & 31)) ^ (int)(pattern >> 10 & 31));
    }
    move_lanes(w, in, &in->operand[1], from);
}

static void execute_bpermute(wave *w, const instruction *in) {
    const lanes *address = demand(w, &in->operand[1], exec_of(w), "a lane");
    int from[LANES];
    for (int l = 0; l < LANES; l++) from[l] = (int)((address[0][l] + (uint32_t)in->offset) / 4 % LANES);
    move_lanes(w, in, &in->operand[2], from);
}

static void execute_permute(wave *w, const instruction *in) {
    const uint64_t exec = exec_of(w);
    const lanes *address = demand(w, &in->operand[1], exec, "a lane");
    int from[LANES];
    for (int l = 0; l < LANES; l++) from[l] = -1;
    for (int l = 0; l < LANES; l++)
        if (exec >> l & 1) from[(address[0][l] + (uint32_t)in->offset) / 4 % LANES] = l;
    move_lanes(w, in, &in->operand[2], from);
}

/* ------------------------------------------------------------------------------------------------------------ table */

#define ROW(name, execute, ...) \
    { "ds_" name, NULL, execute, { .data = &(const lds_operation){ __VA_ARGS__ } }, 0, CDNA_LDS },
#define READ(name, ...) ROW("read_" name, execute_read, __VA_ARGS__)
#define WRITE(name, ...) ROW("write_" name, execute_write, __VA_ARGS__)
#define PAIRS(name, bytes) \
    ROW("read2_" name, execute_read, bytes, bytes) \
    ROW("read2st64_" name, execute_read, bytes, 64 * bytes) \
    ROW("write2_" name, execute_write, bytes, bytes) \
    ROW("write2st64_" name, execute_write, bytes, 64 * bytes)
#define ATOMIC_ROWS(name, type, bytes, operation) \
    ROW(name "_" type, execute_lds_atomic, bytes, 0, PLAIN, false, operation) \
    ROW(name "_rtn_" type, execute_lds_atomic, bytes, 0, PLAIN, true, operation)
#define ATOMIC_WIDTHS(name, sign, operation) \
    ATOMIC_ROWS(name, sign "32", 4, operation) ATOMIC_ROWS(name, sign "64", 8, operation "_x2")

const row lds_rows[] = {
#include "lds.def"
    { 0 }
};
