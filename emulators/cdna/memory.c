/* SPDX-License-Identifier: Apache-2.0 */
/* Vector memory: loads, stores and atomics of the global, flat, scratch and buffer spaces, and loads straight to
 * LDS. */
#include <string.h>

#include "machine.h"

typedef enum widening { WHOLE, ZERO_EXTEND, SIGN_EXTEND, LOW_HALF, HIGH_HALF, SIGN_LOW_HALF, SIGN_HIGH_HALF } widening;

typedef struct memory_operation {
    space where;
    uint32_t bytes;
    widening widening;
    const char *atomic;
} memory_operation;

/* ----------------------------------------------------------------------------------------------------------- access */

static const allocation *search(const cdna_machine *machine, uint64_t address) {
    int low = 0, high = machine->allocations;
    while (low < high) {
        const int middle = (low + high) / 2;
        if ((uint64_t)(uintptr_t)machine->allocation[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low < machine->allocations && (uint64_t)(uintptr_t)machine->allocation[low].start <= address
               ? &machine->allocation[low]
               : NULL;
}

/* Does an access go to where other devices see it and nothing of theirs is missed (LLVM User Guide for AMDGPU, memory
 * models, monotonic atomics of the system's scope)? On gfx90a stores do, and atomics. */
static bool passes_caches(const wave *w) {
    const instruction *in = w->current;
    if (w->group->machine->chip == CDNA_GFX90A)
        return in->row->kind == CDNA_LOAD ? in->glc : in->row->kind != CDNA_SCALAR_LOAD;
    return in->sc1 && (in->glc || in->row->kind == CDNA_ATOMIC);
}

/* Memory that peers write, or that a peer has, or the host. */
static void check_peers(wave *w, int lane, const allocation *a, uint64_t address, uint32_t bytes) {
    const group *g = w->group;
    const int device = g->options->device;
    const unsigned long long at = address;
    if (a->device != ANY_DEVICE && a->device != device) {
        if (!(g->machine->reach[device] >> a->device & 1))
            stop(w, lane, "0x%llx is memory of device %d, which device %d was not let reach", at, a->device, device);
        if (a->use != CDNA_FOR_PEERS)
            stop(w, lane, "0x%llx is memory of device %d that its caches keep, and is not seen by device %d", at,
                 a->device, device);
    }
    const cdna_kind kind = w->current->row->kind;
    if (a->use == CDNA_INCOHERENT && (kind == CDNA_LOAD || kind == CDNA_STORE) && passes_caches(w) &&
        (g->machine->chip != CDNA_GFX90A || kind == CDNA_LOAD))
        stop(w, lane, "0x%llx is memory of the host that is not coherent", at);
    if (a->use != CDNA_FOR_PEERS) return;
    if (bytes > 8 || address % bytes != 0)
        stop(w, lane, "%u bytes at 0x%llx, which peers reach, need not arrive at once", bytes, at);
    if (!passes_caches(w))
        stop(w, lane, "0x%llx is memory that peers reach, and this is not of the system's scope: a cache may keep it",
             at);
}

void *memory_at(wave *w, int lane, uint64_t address, uint32_t bytes, bool write) {
    group *g = w->group;
    const allocation *a = g->recent;
    if (a == NULL || address < (uint64_t)(uintptr_t)a->start || address + bytes > (uint64_t)(uintptr_t)a->end)
        a = search(g->machine, address);
    if (a == NULL && g->machine->shares) return (void *)(uintptr_t)address;
    if (a == NULL)
        stop(w, lane, "%s of %u bytes at 0x%llx, which is in no allocation", write ? "a store" : "a load", bytes,
             (unsigned long long)address);
    /* cppcheck-suppress nullPointerRedundantCheck ; stop() does not return */
    if (address + bytes > (uint64_t)(uintptr_t)a->end)
        stop(w, lane, "%s of %u bytes at 0x%llx ends beyond its allocation of %zu bytes, in which it starts at %llu",
             write ? "a store" : "a load", bytes, (unsigned long long)address, (size_t)(a->end - a->start),
             (unsigned long long)(address - (uint64_t)(uintptr_t)a->start));
    if (write && !a->writable) stop(w, lane, "a store at 0x%llx, which is read-only", (unsigned long long)address);
    if (a->use != CDNA_ANY_USE || (a->device != ANY_DEVICE && a->device != g->options->device))
        check_peers(w, lane, a, address, bytes);
    g->recent = a;
    return (void *)(uintptr_t)address;
}

void *access_at(wave *w, space where, const lane_access *a, int lane, uint32_t bytes, bool write) {
    const uint64_t address = a->address[lane];
    if (a->private >> lane & 1) return scratch_at(w, lane, address, bytes);
    if (where == SPACE_FLAT && address >> 32 == SHARED_APERTURE >> 32) {
        lds_touch(w, lane, (uint32_t)address, bytes, bytes < 16 ? bytes : 16, write ? LDS_WRITE : LDS_READ);
        if (!write && !lds_defined(w, (uint32_t)address, bytes))
            stop(w, lane, "LDS at %u is uninitialised", (uint32_t)address);
        if (write) lds_define(w, (uint32_t)address, bytes, true);
        return w->group->lds + (uint32_t)address;
    }
    return memory_at(w, lane, address, bytes, write);
}

enum { SEGMENT = 64 }; /* bytes of one transaction */

void count_access(wave *w, const lane_access *a, uint32_t bytes, bool write) {
    cdna_profile *p = &w->group->profile;
    uint64_t seen[2 * LANES];
    int segments = 0;
    const uint64_t mask = a->mask & ~a->private;
    const int active = __builtin_popcountll(mask);
    if (active == 0) return;
    for (int l = 0; l < LANES; l++) {
        if (!(mask >> l & 1)) continue;
        for (uint64_t segment = a->address[l] / SEGMENT; segment <= (a->address[l] + bytes - 1) / SEGMENT; segment++) {
            int i = segments - 1;
            while (i >= 0 && seen[i] != segment) i--;
            if (i < 0) seen[segments++] = segment;
        }
    }
    *(write ? &p->stored : &p->loaded) += (uint64_t)active * bytes;
    p->transactions += (uint64_t)segments;
    p->ideal += ((uint64_t)active * bytes + SEGMENT - 1) / SEGMENT;
    p->narrow += bytes < 16;
}

/* As one access, where the device makes one of it: others may look meanwhile. */
static void move(void *to, const void *from, uint32_t bytes) {
    const bool aligned = ((uintptr_t)to | (uintptr_t)from) % bytes == 0;
    if (bytes == 8 && aligned)
        __atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    else if (bytes == 4 && aligned)
        __atomic_store_n((uint32_t *)to, __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    else
        memcpy(to, from, bytes);
}

/* ------------------------------------------------------------------------------------------------------------ loads */

static uint32_t widen(uint32_t value, uint32_t bytes, widening how, uint32_t old) {
    const int spare = 32 - 8 * (int)bytes;
    const uint32_t extended = how == SIGN_EXTEND || how == SIGN_LOW_HALF || how == SIGN_HIGH_HALF
                                  ? (uint32_t)((int32_t)(value << spare) >> spare)
                                  : value;
    switch (how) {
    case LOW_HALF:
    case SIGN_LOW_HALF: return (old & 0xffff0000) | (extended & 0xffff);
    case HIGH_HALF:
    case SIGN_HIGH_HALF: return (old & 0xffff) | extended << 16;
    default: return extended;
    }
}

static void load_lanes(wave *w, const memory_operation *m, const lane_access *a, lanes *value, const lanes *old) {
    const uint32_t words = (m->bytes + 3) / 4;
    for (uint64_t rest = a->mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        _Alignas(8) uint32_t data[4] = { 0 };
        move(data, access_at(w, m->where, a, l, m->bytes, false), m->bytes);
        if (m->widening != WHOLE) data[0] = widen(data[0], m->bytes, m->widening, old[0][l]);
        for (uint32_t i = 0; i < words; i++) value[i][l] = data[i];
    }
    for (uint64_t rest = a->dropped; rest; rest &= rest - 1)
        for (uint32_t i = 0; i < words; i++)
            value[i][__builtin_ctzll(rest)] =
                m->widening == WHOLE ? 0 : widen(0, m->bytes, m->widening, old[0][__builtin_ctzll(rest)]);
}

/* For each word of a load, the lanes where it is defined: of other memory than scratch all is. */
static void find_defined(wave *w, const lane_access *a, uint32_t bytes, uint64_t defined[4]) {
    for (int i = 0; i < 4; i++) defined[i] = UINT64_MAX;
    for (uint64_t rest = a->private; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        for (uint32_t from = 0; from < bytes; from += 4) {
            if (scratch_defined(w, l, a->address[l] + from, bytes < 4 ? bytes : 4)) continue;
            defined[from / 4] &= ~(UINT64_C(1) << l);
            w->loaded_nothing = w->current;
        }
    }
}

/* The counter of an access; flat ones may be of LDS too, and return in any order. */
static uint32_t issue_access(wave *w, const memory_operation *m) {
    if (m->where == SPACE_FLAT) issue(w, COUNTER_LGKM, true);
    return issue(w, COUNTER_VM, m->where == SPACE_FLAT);
}

static void execute_load(wave *w, const instruction *in) {
    const memory_operation *m = in->row->data;
    const operand *to = &in->operand[0];
    lanes value[4];
    lane_access a;
    uint64_t defined[4];
    const int words = (int)(m->bytes + 3) / 4;
    if (to->words != words) stop(w, -1, "the destination is %d registers", words);
    address_of(w, in, m->where, &in->operand[1], m->bytes, &a);
    if (m->widening >= LOW_HALF) check_register(w, to->index, false, COUNTER_VM);
    load_lanes(w, m, &a, value, (const lanes *)&w->v[to->index]);
    find_defined(w, &a, m->bytes, defined);
    count_access(w, &a, m->bytes, false);
    const uint32_t sequence = issue_access(w, m);
    for (int i = 0; i < words; i++)
        commit_later(w, to->index + i, 1, (const lanes *)&value[i], a.mask | a.dropped, defined[i], COUNTER_VM,
                     sequence);
}

/* To LDS at M0 + offset + lane x bytes. */
static void load_to_lds(wave *w, const instruction *in, const memory_operation *m, const operand *vaddr) {
    static const operand m0 = { .kind = OPERAND_SGPR, .index = M0, .words = 1 };
    lane_access a;
    const uint32_t start = (uint32_t)demand_scalar(w, &m0, 1, "M0") + (uint32_t)in->offset;
    const uint32_t slot = m->bytes < 4 ? 4 : m->bytes;
    address_of(w, in, m->where, vaddr, m->bytes, &a);
    for (uint64_t rest = a.mask | a.dropped; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        const uint32_t to = start + (uint32_t)l * slot;
        uint32_t data[4] = { 0 };
        if (a.mask >> l & 1) memcpy(data, access_at(w, m->where, &a, l, m->bytes, false), m->bytes);
        lds_touch(w, l, to, slot, 4, LDS_FLIGHT);
        lds_define(w, to, slot, !(a.private >> l & 1) || scratch_defined(w, l, a.address[l], m->bytes));
        memcpy(w->group->lds + to, data, slot);
    }
    count_access(w, &a, m->bytes, false);
    w->group->profile.lds_phases += LANES * slot / 128;
    lds_fly(w, start, LANES * slot, issue_access(w, m));
}

static void execute_load_to_lds(wave *w, const instruction *in) { load_to_lds(w, in, in->row->data, &in->operand[0]); }

static void execute_buffer_load(wave *w, const instruction *in) {
    if (in->to_lds)
        load_to_lds(w, in, in->row->data, &in->operand[0]);
    else
        execute_load(w, in);
}

/* ----------------------------------------------------------------------------------------------------------- stores */

/* What goes to scratch may be uninitialised: it is then, there. */
static void define_stored(wave *w, const lane_access *a, const operand *from, uint32_t bytes) {
    for (uint64_t rest = a->private; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        for (uint32_t to = 0; to < bytes; to += 4)
            scratch_define(w, l, a->address[l] + to, bytes < 4 ? bytes : 4, w->defined[from->index + to / 4] >> l & 1);
    }
}

static void execute_store(wave *w, const instruction *in) {
    const memory_operation *m = in->row->data;
    const bool address_first = m->where != SPACE_BUFFER;
    const operand *from = &in->operand[address_first], *vaddr = &in->operand[!address_first];
    lane_access a;
    if (from->kind != OPERAND_VGPR || from->words != (int)(m->bytes + 3) / 4)
        stop(w, -1, "the data is %u registers", (m->bytes + 3) / 4);
    address_of(w, in, m->where, vaddr, m->bytes, &a);
    const lanes *data = demand(w, from, a.mask & ~a.private, "stored data");
    for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        _Alignas(8) uint32_t value[4];
        for (uint32_t i = 0; i < (m->bytes + 3) / 4; i++) value[i] = data[i][l];
        if (m->widening == HIGH_HALF) value[0] >>= 16;
        move(access_at(w, m->where, &a, l, m->bytes, true), value, m->bytes);
    }
    define_stored(w, &a, from, m->bytes);
    count_access(w, &a, m->bytes, true);
    issue_access(w, m);
}

static void execute_atomic(wave *w, const instruction *in) {
    const memory_operation *m = in->row->data;
    const atomic *operation = atomic_named(m->atomic);
    const uint32_t bytes = atomic_bytes(operation);
    const bool buffer = m->where == SPACE_BUFFER, returns = in->glc;
    const operand *from = &in->operand[buffer ? 0 : 1 + returns], *vaddr = &in->operand[buffer ? 1 : returns];
    const int words = (int)bytes / 4;
    lanes old[2];
    lane_access a;
    if (from->words != atomic_data_words(operation))
        stop(w, -1, "the data is %d registers", atomic_data_words(operation));
    address_of(w, in, m->where, vaddr, bytes, &a);
    const lanes *data = demand(w, from, a.mask, "the data of an atomic");
    for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctzll(rest);
        uint32_t value[4], before[2] = { 0 };
        for (int i = 0; i < from->words; i++) value[i] = data[i][l];
        if (a.address[l] % bytes)
            stop(w, l, "an atomic of %u bytes at 0x%llx", bytes, (unsigned long long)a.address[l]);
        void *memory = access_at(w, m->where, &a, l, bytes, true);
        if (a.private >> l & 1 && !scratch_defined(w, l, a.address[l], bytes))
            stop(w, l, "an atomic on scratch at %llu, which is uninitialised", (unsigned long long)a.address[l]);
        atomic_apply(operation, memory, value, before);
        for (int i = 0; i < words; i++) old[i][l] = before[i];
    }
    count_access(w, &a, bytes, true);
    const uint32_t sequence = issue_access(w, m);
    if (returns)
        commit_later(w, in->operand[0].index, words, (const lanes *)old, a.mask, UINT64_MAX, COUNTER_VM, sequence);
}

/* ------------------------------------------------------------------------------------------------------------ table */

#define ROW(space_name, where, name, execute, kind, bytes, wide, atomic) \
    { space_name name, NULL, execute, { .data = &(const memory_operation){ where, bytes, wide, atomic } }, 0, kind },
#define SPACES(name, execute, buffer_execute, kind, bytes, widening, atomic) \
    ROW("global_", SPACE_GLOBAL, name, execute, kind, bytes, widening, atomic) \
    ROW("flat_", SPACE_FLAT, name, execute, kind, bytes, widening, atomic) \
    ROW("scratch_", SPACE_SCRATCH, name, execute, kind, bytes, widening, atomic) \
    ROW("buffer_", SPACE_BUFFER, name, buffer_execute, kind, bytes, widening, atomic)
#define LOADS(name, bytes, widening) \
    SPACES("load_" name, execute_load, execute_buffer_load, CDNA_LOAD, bytes, widening, NULL)
#define LOADS_TO_LDS(name, bytes) \
    ROW("global_", SPACE_GLOBAL, "load_lds_" name, execute_load_to_lds, CDNA_LOAD, bytes, WHOLE, NULL)
#define STORES(name, bytes, widening) \
    SPACES("store_" name, execute_store, execute_store, CDNA_STORE, bytes, widening, NULL)
#define ATOMICS(name) SPACES("atomic_" name, execute_atomic, execute_atomic, CDNA_ATOMIC, 0, WHOLE, name)
#define ATOMICS_BOTH(name) ATOMICS(name) ATOMICS(name "_x2")

const row memory_rows[] = {
#include "memory.def"
    { 0 }
};
