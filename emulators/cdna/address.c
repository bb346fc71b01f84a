/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of global, flat, scratch and buffer accesses (CDNA3 ISA, chapters 9 and 10). */
#include "machine.h"

static const operand *address_operand(wave *w, const instruction *in, const operand *vaddr, int offset) {
    const operand *o = vaddr + offset;
    if (o >= in->operand + in->operands) stop(w, -1, "an address operand is missing");
    return o;
}

static uint64_t pair_of(const lanes *v, int l) { return (uint64_t)v[1][l] << 32 | v[0][l]; }

/* 64-bit addresses in vector registers, or 32-bit offsets from a scalar pair. */
static void global_addresses(wave *w, const instruction *in, const operand *vaddr, const operand *saddr,
                             lane_access *a) {
    const lanes *v = demand(w, vaddr, a->mask, "an address");
    if (saddr == NULL || saddr->kind == OPERAND_OFF) {
        if (vaddr->words != 2) stop(w, -1, "an address of %d registers", vaddr->words);
        for (int l = 0; l < LANES; l++) a->address[l] = pair_of(v, l) + (uint64_t)(int64_t)in->offset;
        return;
    }
    const uint64_t base = demand_scalar(w, saddr, 2, "an address") + (uint64_t)(int64_t)in->offset;
    for (int l = 0; l < LANES; l++) a->address[l] = base + v[0][l];
}

/* Any space: what lies in the aperture of scratch becomes an address there. */
static void flat_addresses(wave *w, const instruction *in, const operand *vaddr, lane_access *a) {
    global_addresses(w, in, vaddr, NULL, a);
    for (uint64_t rest = a->mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        if (a->address[l] >> 32 != PRIVATE_APERTURE >> 32) continue;
        a->address[l] = (uint32_t)a->address[l];
        a->private |= UINT64_C(1) << l;
    }
}

static void scratch_addresses(wave *w, const instruction *in, const operand *vaddr, const operand *saddr,
                              lane_access *a) {
    const lanes *v = vaddr->kind == OPERAND_OFF ? NULL : demand(w, vaddr, a->mask, "an address");
    const uint32_t base = saddr->kind == OPERAND_OFF ? 0 : (uint32_t)demand_scalar(w, saddr, 1, "an address");
    a->private = a->mask;
    for (int l = 0; l < LANES; l++) a->address[l] = (uint32_t)(base + (v ? v[0][l] : 0) + (uint32_t)in->offset);
}

/* A descriptor's fields, from its four words. */
typedef struct buffer {
    uint64_t base;
    uint32_t stride, records;
    bool per_lane; /* the scratch of gfx90a: ADD_TID_ENABLE */
} buffer;

static buffer buffer_of(wave *w, const operand *o) {
    if (o->words != 4) stop(w, -1, "a buffer descriptor of %d registers", o->words);
    operand high = *o;
    high.index += 2;
    const uint64_t first = demand_scalar(w, o, 2, "a buffer descriptor"),
                   second = demand_scalar(w, &high, 2, "a buffer descriptor");
    return (buffer){ first & 0xffffffffffff, first >> 48 & 0x3fff, (uint32_t)second, second >> 55 & 1 };
}

static void buffer_addresses(wave *w, const instruction *in, const operand *vaddr, uint32_t bytes, lane_access *a) {
    const buffer b = buffer_of(w, address_operand(w, in, vaddr, 1));
    const uint32_t soffset = (uint32_t)demand_scalar(w, address_operand(w, in, vaddr, 2), 1, "a buffer offset");
    const lanes *v = in->offen || in->idxen ? demand(w, vaddr, a->mask, "a buffer offset") : NULL;
    const uint64_t active = a->mask;
    a->private = b.per_lane ? a->mask : 0;
    for (int l = 0; l < LANES; l++) {
        const uint32_t index = in->idxen ? v[0][l] : 0,
                       offset = (in->offen ? v[in->idxen][l] : 0) + (uint32_t)in->offset;
        a->address[l] = (b.per_lane ? 0 : b.base) + soffset + offset + (uint64_t)index * b.stride;
        const bool inside = b.per_lane || (b.stride && in->idxen ? index < b.records && offset + bytes <= b.stride
                                                                 : (uint64_t)offset + bytes + soffset <= b.records);
        if (!inside) a->mask &= ~(UINT64_C(1) << l);
    }
    a->dropped = active & ~a->mask;
}

void address_of(wave *w, const instruction *in, space where, const operand *vaddr, uint32_t bytes, lane_access *a) {
    a->mask = exec_of(w);
    a->dropped = 0;
    a->private = 0;
    switch (where) {
    case SPACE_GLOBAL: global_addresses(w, in, vaddr, &in->operand[in->operands - 1], a); break;
    case SPACE_FLAT: flat_addresses(w, in, vaddr, a); break;
    case SPACE_SCRATCH: scratch_addresses(w, in, vaddr, &in->operand[in->operands - 1], a); break;
    case SPACE_BUFFER: buffer_addresses(w, in, vaddr, bytes, a); break;
    }
}
