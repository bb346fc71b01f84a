/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a machine: which addresses exist. */
#include <stdlib.h>
#include <string.h>

#include "machine.h"

static const char *const chip_names[CDNA_CHIPS] = { "gfx90a", "gfx942", "gfx950" };

const char *cdna_chip_name(cdna_chip chip) { return chip_names[chip]; }

bool cdna_chip_parse(const char *name, cdna_chip *chip_out) {
    for (int i = 0; i < CDNA_CHIPS; i++) {
        if (strcmp(name, chip_names[i]) != 0) continue;
        *chip_out = (cdna_chip)i;
        return true;
    }
    return false;
}

cdna_chip cdna_machine_chip(const cdna_machine *machine) { return machine->chip; }

cdna_machine *cdna_open(cdna_chip chip) {
    cdna_machine *machine = calloc(1, sizeof *machine);
    if (machine == NULL) return NULL;
    machine->chip = chip;
    pthread_mutex_init(&machine->lock, NULL);
    return machine;
}

void cdna_close(cdna_machine *machine) {
    if (machine == NULL) return;
    while (machine->objects) cdna_object_unload(machine, machine->objects);
    for (int i = 0; i < machine->allocations; i++) free(machine->allocation[i].base);
    free(machine->allocation);
    pthread_mutex_destroy(&machine->lock);
    free(machine);
}

static bool insert_locked(cdna_machine *machine, allocation a) {
    if (machine->allocations == machine->room) {
        const int room = machine->room ? 2 * machine->room : 16;
        allocation *grown = realloc(machine->allocation, (size_t)room * sizeof *grown);
        if (grown == NULL) return false;
        machine->allocation = grown;
        machine->room = room;
    }
    int at = machine->allocations++;
    for (; at > 0 && machine->allocation[at - 1].start > a.start; at--)
        machine->allocation[at] = machine->allocation[at - 1];
    machine->allocation[at] = a;
    return true;
}

static bool insert(cdna_machine *machine, allocation a) {
    a.device = ANY_DEVICE;
    pthread_mutex_lock(&machine->lock);
    const bool inserted = insert_locked(machine, a);
    pthread_mutex_unlock(&machine->lock);
    return inserted;
}

bool cdna_memory_register(cdna_machine *machine, void *memory, size_t bytes, bool writable) {
    return insert(machine,
                  (allocation){ .start = memory, .end = (unsigned char *)memory + bytes, .writable = writable });
}

void *cdna_memory_alloc(cdna_machine *machine, size_t bytes) {
    enum { MARGIN = 4096 };
    unsigned char *base = malloc(bytes + 2 * MARGIN);
    if (base == NULL) return NULL;
    unsigned char *start = base + MARGIN - (uintptr_t)base % 256;
    if (!insert(machine, (allocation){ .start = start, .end = start + bytes, .writable = true, .base = base })) {
        free(base);
        return NULL;
    }
    return start;
}

static allocation *find(const cdna_machine *machine, const void *memory) {
    int first = 0, end = machine->allocations;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if ((uintptr_t)machine->allocation[middle].start < (uintptr_t)memory)
            first = middle + 1;
        else
            end = middle;
    }
    return first < machine->allocations && machine->allocation[first].start == memory ? &machine->allocation[first]
                                                                                      : NULL;
}

bool cdna_memory_free(cdna_machine *machine, void *memory) {
    pthread_mutex_lock(&machine->lock);
    allocation *a = find(machine, memory);
    if (a != NULL) {
        free(a->base);
        memmove(a, a + 1, (size_t)(&machine->allocation[machine->allocations] - (a + 1)) * sizeof *a);
        machine->allocations--;
    }
    pthread_mutex_unlock(&machine->lock);
    return a != NULL;
}

void cdna_memory_place(cdna_machine *machine, void *memory, int device, cdna_use use) {
    pthread_mutex_lock(&machine->lock);
    allocation *a = find(machine, memory);
    if (a != NULL) {
        a->device = device;
        a->use = use;
    }
    pthread_mutex_unlock(&machine->lock);
}

bool cdna_memory_reach(cdna_machine *machine, int device, int other) {
    pthread_mutex_lock(&machine->lock);
    const bool before = machine->reach[device] >> other & 1;
    machine->reach[device] |= UINT32_C(1) << other;
    pthread_mutex_unlock(&machine->lock);
    return !before;
}

void cdna_memory_share(cdna_machine *machine) { machine->shares = true; }

bool cdna_memory_contains(const cdna_machine *machine, const void *address, size_t bytes) {
    for (int i = 0; i < machine->allocations; i++) {
        const allocation *a = &machine->allocation[i];
        if ((const unsigned char *)address >= a->start && (const unsigned char *)address <= a->end)
            return bytes <= (size_t)(a->end - (const unsigned char *)address);
    }
    return false;
}
