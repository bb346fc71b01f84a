/* SPDX-License-Identifier: Apache-2.0 */
/* Branches, barriers, waits, hardware registers, scalar memory, and what has no effect here. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine.h"

typedef enum condition { ALWAYS, SCC_CLEAR, SCC_SET, VCC_ZERO, VCC_NONZERO, EXEC_ZERO, EXEC_NONZERO } condition;

static bool holds(wave *w, condition when) {
    switch (when) {
    case SCC_CLEAR:
    case SCC_SET:
        if (!w->scc_defined) stop(w, -1, "branches on an uninitialised SCC%s", origin_of(w));
        return w->scc == (when == SCC_SET);
    case VCC_ZERO:
    case VCC_NONZERO: {
        const uint64_t vcc = (uint64_t)w->s[VCC + 1] << 32 | w->s[VCC],
                       known = (uint64_t)w->s_defined[VCC + 1] << 32 | w->s_defined[VCC];
        if (known != UINT64_MAX && (vcc & known) == 0) stop(w, -1, "branches on an uninitialised VCC%s", origin_of(w));
        return (vcc == 0) == (when == VCC_ZERO);
    }
    case EXEC_ZERO: return exec_of(w) == 0;
    case EXEC_NONZERO: return exec_of(w) != 0;
    default: return true;
    }
}

static void execute_branch(wave *w, const instruction *in) {
    if (!holds(w, *(const condition *)in->row->data)) return;
    if (in->target < 0) stop(w, -1, "branches to where no instruction starts");
    w->next = in->target;
}

static uint64_t address_after(const wave *w, const instruction *in) {
    return (uint64_t)(uintptr_t)(w->group->object->image + in->pc + in->size);
}

static void jump(wave *w, uint64_t address) {
    const cdna_object *o = w->group->object;
    const uint64_t offset = address - (uint64_t)(uintptr_t)o->image;
    if (offset >= o->image_size || offset % 4 || o->at[offset / 4] < 0)
        stop(w, -1, "jumps to 0x%llx, where no instruction starts", (unsigned long long)address);
    w->next = o->at[offset / 4];
}

static void execute_getpc(wave *w, const instruction *in) {
    scalar_commit(w, in->operand[0].index, 2, address_after(w, in), UINT64_MAX);
}
static void execute_setpc(wave *w, const instruction *in) {
    jump(w, demand_scalar(w, &in->operand[0], 2, "the target of a jump"));
}
static void execute_swappc(wave *w, const instruction *in) {
    const uint64_t target = demand_scalar(w, &in->operand[1], 2, "the target of a jump");
    scalar_commit(w, in->operand[0].index, 2, address_after(w, in), UINT64_MAX);
    jump(w, target);
}

static void execute_barrier(wave *w, const instruction *in) {
    (void)in;
    w->state = WAVE_AT_BARRIER;
}
static void execute_end(wave *w, const instruction *in) {
    (void)in;
    w->state = WAVE_ENDED;
}
static void execute_trap(wave *w, const instruction *in) {
    (void)in;
    stop(w, -1, "the kernel traps");
}
static void execute_wait(wave *w, const instruction *in) {
    const uint32_t before = w->counter[COUNTER_VM].done + w->counter[COUNTER_LGKM].done;
    if (in->wait_vm != UINT16_MAX) wait_for(w, COUNTER_VM, in->wait_vm);
    if (in->wait_lgkm != UINT16_MAX) wait_for(w, COUNTER_LGKM, in->wait_lgkm);
    const bool waited = w->counter[COUNTER_VM].done + w->counter[COUNTER_LGKM].done != before;
    if (w->group->profile.waited) w->group->profile.waited[in->index] += waited;
}
static void execute_nothing(wave *w, const instruction *in) { (void)w, (void)in; }

/* The accelerator die a workgroup is on: they are dealt out in turn over eight. */
static void execute_getreg(wave *w, const instruction *in) {
    const group *g = w->group;
    if (strstr(in->text, "hwreg(HW_REG_XCC_ID") == NULL) stop(w, -1, "this hardware register is not known");
    const uint64_t number =
        g->id[0] + (uint64_t)g->grid->workgroups[0] * (g->id[1] + (uint64_t)g->grid->workgroups[1] * g->id[2]);
    scalar_commit(w, in->operand[0].index, 1, number % 8, UINT64_MAX);
}

static void execute_time(wave *w, const instruction *in) {
    scalar_commit(w, in->operand[0].index, 2, w->executed, UINT64_MAX);
    issue(w, COUNTER_LGKM, true);
}

/* A clock of 100 MHz, which goes on whatever runs. */
static void execute_real_time(wave *w, const instruction *in) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    scalar_commit(w, in->operand[0].index, 2, (uint64_t)t.tv_sec * 100000000 + (uint64_t)t.tv_nsec / 10, UINT64_MAX);
    issue(w, COUNTER_LGKM, true);
}

/* The workgroup's other waves go on, and then other launches. */
static void execute_sleep(wave *w, const instruction *in) {
    (void)in;
    w->yields = true;
    if (w->number == 0) sched_yield();
}

/* ---------------------------------------------------------------------------------------------------- scalar memory */

static void load_scalars(wave *w, const instruction *in, uint64_t address, int words) {
    const int first = in->operand[0].index;
    uint32_t value[16];
    if (in->operand[0].words != words) stop(w, -1, "the destination is %d registers", words);
    memcpy(value, memory_at(w, -1, address & ~UINT64_C(3), 4 * (uint32_t)words, false), 4 * (size_t)words);
    const uint32_t sequence = issue(w, COUNTER_LGKM, true);
    for (int i = 0; i < words; i++) {
        scalar_commit(w, first + i, 1, value[i], UINT64_MAX);
        w->s_due[first + i] = sequence;
    }
    w->group->profile.loaded += 4u * (unsigned)words;
}

static uint64_t scalar_offset(wave *w, const instruction *in) {
    const operand *o = &in->operand[2];
    const uint64_t offset =
        o->kind == OPERAND_CONSTANT ? (uint64_t)(int64_t)(int32_t)o->value : demand_scalar(w, o, 1, "an offset");
    return offset + (uint64_t)(int64_t)in->offset;
}

static void execute_scalar_load(wave *w, const instruction *in) {
    load_scalars(w, in, demand_scalar(w, &in->operand[1], 2, "an address") + scalar_offset(w, in),
                 *(const int *)in->row->data);
}

static void execute_scalar_buffer_load(wave *w, const instruction *in) {
    const int words = *(const int *)in->row->data;
    operand high = in->operand[1];
    high.index += 2;
    const uint64_t base = demand_scalar(w, &in->operand[1], 2, "a buffer descriptor") & 0xffffffffffff,
                   offset = scalar_offset(w, in);
    if (offset + 4 * (uint64_t)words > (uint32_t)demand_scalar(w, &high, 2, "a buffer descriptor"))
        stop(w, -1, "a scalar load beyond its buffer");
    load_scalars(w, in, base + offset, words);
}

/* ------------------------------------------------------------------------------------------------------------ table */

#define BRANCH(name, when) \
    { name, NULL, execute_branch, { .data = &(const condition){ when } }, ROW_JUMPS, CDNA_BRANCH },
#define OTHER(name, execute, kind) { name, NULL, execute, { .data = NULL }, 0, kind },
#define NOTHING(name) OTHER(name, execute_nothing, CDNA_OTHER)
#define SCALAR_LOADS(suffix, count) \
    { "s_load_dword" suffix, NULL, execute_scalar_load, { .data = &(const int){ count } }, 0, CDNA_SCALAR_LOAD }, \
        { "s_buffer_load_dword" suffix,      NULL, execute_scalar_buffer_load, \
          { .data = &(const int){ count } }, 0,    CDNA_SCALAR_LOAD },

const row control_rows[] = {
#include "control.def"
    { 0 }
};
