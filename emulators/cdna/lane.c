/* SPDX-License-Identifier: Apache-2.0 */
/* Vector instructions that look across lanes or at registers whole, and the conversions of 8-bit floats, which differ
 * from chip to chip. */
#include "machine.h"
#include "number.h"

static void read_lane(wave *w, const instruction *in, int lane) {
    const operand *from = &in->operand[1];
    check_register(w, from->index, false, -1);
    uint64_t defined = 0;
    if (w->defined[from->index] >> lane & 1)
        defined = UINT64_MAX;
    else if (w->spilled[from->index] >> lane & 1)
        defined = w->spilled_defined[from->index][lane];
    scalar_commit(w, in->operand[0].index, 1, w->v[from->index][lane], defined);
}

static void execute_readfirstlane(wave *w, const instruction *in) {
    const uint64_t exec = exec_of(w);
    read_lane(w, in, exec ? __builtin_ctzll(exec) : 0);
}
static void execute_readlane(wave *w, const instruction *in) {
    read_lane(w, in, (int)(demand_scalar(w, &in->operand[2], 1, "a lane") & 63));
}

static void execute_writelane(wave *w, const instruction *in) {
    uint64_t defined;
    const uint32_t value = (uint32_t)scalar_fetch(w, &in->operand[1], &defined);
    const int lane = (int)(demand_scalar(w, &in->operand[2], 1, "a lane") & 63), to = in->operand[0].index;
    lanes all;
    for (int l = 0; l < LANES; l++) all[l] = value;
    commit(w, to, 1, (const lanes *)&all, UINT64_C(1) << lane, (uint32_t)defined == UINT32_MAX ? UINT64_MAX : 0);
    w->spilled[to] |= UINT64_C(1) << lane;
    w->spilled_defined[to][lane] = (uint32_t)defined;
}

static void exchange(wave *w, int a, int lane_a, int b, int lane_b) {
    const uint32_t value = w->v[a][lane_a];
    const uint64_t known_a = w->defined[a] >> lane_a & 1, known_b = w->defined[b] >> lane_b & 1;
    w->v[a][lane_a] = w->v[b][lane_b];
    w->v[b][lane_b] = value;
    w->defined[a] = (w->defined[a] & ~(UINT64_C(1) << lane_a)) | known_b << lane_a;
    w->defined[b] = (w->defined[b] & ~(UINT64_C(1) << lane_b)) | known_a << lane_b;
    w->spilled[a] &= ~(UINT64_C(1) << lane_a);
    w->spilled[b] &= ~(UINT64_C(1) << lane_b);
}

/* Odd rows of the first register with the even rows before them of the second; a row is `size` lanes.
 * 0: each lane with itself. */
static void execute_exchange(wave *w, const instruction *in) {
    const int a = in->operand[0].index, b = in->operand[1].index, size = *(const int *)in->row->data;
    const uint64_t exec = exec_of(w);
    check_register(w, a, true, -1);
    check_register(w, b, true, -1);
    for (int l = 0; l < LANES; l++) {
        if (!(exec >> l & 1)) continue;
        if (size == 0)
            exchange(w, a, l, b, l);
        else if (l / size % 2)
            exchange(w, a, l, b, l - size);
    }
}

/* D0 is the word of S0 that op_sel names, D1 that of S1. */
static void execute_pk_mov(wave *w, const instruction *in) {
    lanes value[2];
    uint64_t defined[2];
    for (int i = 0; i < 2; i++) {
        operand o = in->operand[1 + i];
        if (o.kind == OPERAND_VGPR) {
            check_register(w, o.index + o.high, false, -1);
            defined[i] = w->defined[o.index + o.high];
            memcpy(value[i], w->v[o.index + o.high], sizeof *value);
            continue;
        }
        if (o.kind == OPERAND_SGPR) o.index = (uint16_t)(o.index + o.high);
        o.type = type_named("b32", 3);
        const uint32_t scalar = (uint32_t)scalar_fetch(w, &o, &defined[i]);
        defined[i] = (uint32_t)defined[i] == UINT32_MAX ? UINT64_MAX : 0;
        for (int l = 0; l < LANES; l++) value[i][l] = scalar;
    }
    for (int i = 0; i < 2; i++)
        commit(w, in->operand[0].index + i, 1, (const lanes *)&value[i], exec_of(w), defined[i]);
}

/* ----------------------------------------------------------------------------------------------------- 8-bit floats */

enum { E4M3, E5M2 };

static const minifloat *format_of(const wave *w, const row *r) {
    static const minifloat *const formats[2][2] = { { &minifloat_e4m3fnuz, &minifloat_e5m2fnuz },
                                                    { &minifloat_e4m3, &minifloat_e5m2 } };
    return formats[w->group->machine->chip == CDNA_GFX950][*(const int *)r->data];
}

static void execute_widen(wave *w, const instruction *in) {
    const minifloat *format = format_of(w, in->row);
    uint64_t defined[2];
    const lanes *from = fetch(w, in, 1, w->scratch_lanes[0], defined);
    const int words = in->operand[0].words;
    lanes value[2];
    for (int i = 0; i < words; i++)
        for (int l = 0; l < LANES; l++) value[i][l] = float_bits(minifloat_float(format, from[0][l] >> 8 * i & 255));
    commit(w, in->operand[0].index, words, (const lanes *)value, exec_of(w), defined[0]);
}

/* Two floats into one half of the destination. */
static void execute_narrow(wave *w, const instruction *in) {
    const minifloat *format = format_of(w, in->row);
    uint64_t known[2][2];
    const int to = in->operand[0].index, shift = in->destination_high ? 16 : 0;
    const lanes *a = fetch(w, in, 1, w->scratch_lanes[0], known[0]),
                *b = fetch(w, in, 2, w->scratch_lanes[1], known[1]);
    lanes value;
    check_register(w, to, false, -1);
    for (int l = 0; l < LANES; l++) {
        const uint32_t pair = float_minifloat(format, bits_float(a[0][l]), false) |
                              float_minifloat(format, bits_float(b[0][l]), false) << 8;
        value[l] = (w->v[to][l] & ~(0xffffu << shift)) | pair << shift;
    }
    commit(w, to, 1, (const lanes *)&value, exec_of(w), known[0][0] & known[1][0]);
}

#define LANE(name, execute) { name, NULL, execute, { .data = NULL }, 0, CDNA_VECTOR },
#define EXCHANGE(name, rows) { name, "b32 b32 =", execute_exchange, { .data = &(const int){ rows } }, 0, CDNA_VECTOR },
#define SMALL(name, signature, execute, format) \
    { name, signature, execute, { .data = &(const int){ format } }, 0, CDNA_VECTOR },

const row lane_rows[] = {
#include "lane.def"
    { 0 }
};
