/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: arguments, the workgroups over the threads of the host, and the comparison of two wave orders. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { PACKET = 64 }; /* bytes of a dispatch packet */

static uint64_t hidden_value(const cdna_grid *grid, const char *kind) {
    const size_t length = strlen(kind);
    const int axis = length > 2 && kind[length - 2] == '_' && kind[length - 1] >= 'x' && kind[length - 1] <= 'z'
                         ? kind[length - 1] - 'x'
                         : 0;
    if (strncmp(kind, "hidden_block_count_", 19) == 0) return grid->workgroups[axis];
    if (strncmp(kind, "hidden_group_size_", 18) == 0) return grid->workgroup[axis];
    if (strcmp(kind, "hidden_grid_dims") == 0)
        return grid->workgroups[2] * grid->workgroup[2] > 1 ? 3 : grid->workgroups[1] * grid->workgroup[1] > 1 ? 2 : 1;
    if (strcmp(kind, "hidden_dynamic_lds_size") == 0) return grid->dynamic_lds;
    if (strcmp(kind, "hidden_shared_base") == 0) return SHARED_APERTURE >> 32;
    if (strcmp(kind, "hidden_private_base") == 0) return PRIVATE_APERTURE >> 32;
    return 0;
}

/* What a launch sees of the machine, besides its arguments: memory that others get meanwhile is none of its. False
 * without memory. */
static bool copy_machine(cdna_machine *machine, cdna_machine *copy_out) {
    pthread_mutex_lock(&machine->lock);
    const size_t bytes = (size_t)machine->allocations * sizeof *machine->allocation;
    *copy_out = *machine;
    copy_out->allocation = malloc(bytes + 1);
    if (copy_out->allocation != NULL && bytes > 0) memcpy(copy_out->allocation, machine->allocation, bytes);
    pthread_mutex_unlock(&machine->lock);
    return copy_out->allocation != NULL;
}

/* The kernarg segment, and behind it the dispatch packet. */
static unsigned char *make_arguments(const cdna_kernel *kernel, const cdna_grid *grid, const void *arguments,
                                     size_t bytes) {
    const size_t size = (kernel->kernarg_size + 63) / 64 * 64;
    unsigned char *block = aligned_alloc(64, size + PACKET);
    if (block == NULL) return NULL;
    memset(block, 0, size + PACKET);
    memcpy(block, arguments, bytes < kernel->kernarg_size ? bytes : kernel->kernarg_size);
    for (int i = 0; i < kernel->arguments; i++) {
        const struct cdna_argument *a = &kernel->argument[i];
        if (strncmp(a->kind, "hidden_", 7) != 0 || a->offset + a->size > kernel->kernarg_size || a->size > 8) continue;
        const uint64_t value = hidden_value(grid, a->kind);
        memcpy(block + a->offset, &value, a->size);
    }
    unsigned char *packet = block + size;
    for (int i = 0; i < 3; i++) {
        const uint16_t workgroup = (uint16_t)grid->workgroup[i];
        const uint32_t items = grid->workgroups[i] * grid->workgroup[i];
        memcpy(packet + 4 + 2 * i, &workgroup, sizeof workgroup);
        memcpy(packet + 12 + 4 * i, &items, sizeof items);
    }
    return block;
}

static bool check_launch(const cdna_machine *machine, const cdna_kernel *kernel, const cdna_grid *grid, size_t bytes,
                         cdna_failure *failure) {
    const uint64_t items = (uint64_t)grid->workgroup[0] * grid->workgroup[1] * grid->workgroup[2],
                   waves = (items + LANES - 1) / LANES;
    const uint32_t lds = kernel->lds_size + grid->dynamic_lds,
                   most_lds = machine->chip == CDNA_GFX950 ? 160 * 1024 : 64 * 1024;
    const uint32_t registers = kernel->vgprs + kernel->agprs;
    uint32_t explicit_bytes = 0;
    for (int i = 0; i < kernel->arguments; i++) {
        const struct cdna_argument *a = &kernel->argument[i];
        if (strncmp(a->kind, "hidden_", 7) != 0 && a->offset + a->size > explicit_bytes)
            explicit_bytes = a->offset + a->size;
    }
    const char *what = NULL;
    if (items == 0 || items > 1024 || (kernel->max_workgroup && items > kernel->max_workgroup))
        what = "the workgroup is empty or larger than the kernel was compiled for";
    if (lds > most_lds) what = "the workgroup wants more LDS than the chip has";
    if ((waves + 3) / 4 * registers > 512) what = "the registers of a SIMD do not suffice for the workgroup";
    if (bytes < explicit_bytes) what = "the kernel takes more arguments than were given";
    for (int i = 0; i < 3; i++)
        if (grid->workgroups[i] == 0) what = "the grid is empty";
    if (what)
        snprintf(failure->message, sizeof failure->message, "kernel %s cannot be launched: %s", kernel->name, what);
    return what == NULL;
}

/* ---------------------------------------------------------------------------------------------------------- threads */

static void group_close(group *g) {
    for (int i = 0; g->wave && i < g->waves; i++) free(g->wave[i].scratch);
    free(g->wave);
    free(g->lds);
    free(g->cell);
    free(g->profile.executed);
    free(g->profile.waited);
}

static bool group_open(group *g) {
    const uint32_t items = g->grid->workgroup[0] * g->grid->workgroup[1] * g->grid->workgroup[2];
    g->waves = (int)((items + LANES - 1) / LANES);
    g->lds_size = g->kernel->lds_size + g->grid->dynamic_lds;
    g->vgprs = (int)g->kernel->vgprs;
    g->agprs = (int)g->kernel->agprs;
    g->wave = calloc((size_t)g->waves, sizeof *g->wave);
    g->lds = malloc(g->lds_size + 64);
    g->cell = malloc((g->lds_size / 4 + 1) * sizeof *g->cell);
    bool ok = g->wave && g->lds && g->cell;
    for (int i = 0; ok && i < g->waves; i++) ok = scratch_open(&g->wave[i], g->kernel->private_size);
    return ok;
}

static void add_profile(cdna_profile *to, const cdna_profile *from, int instructions) {
    if (to == NULL) return;
    to->workgroups += from->workgroups;
    to->waves += from->waves;
    for (int i = 0; i < CDNA_KINDS; i++) to->instructions[i] += from->instructions[i];
    to->loaded += from->loaded;
    to->stored += from->stored;
    to->transactions += from->transactions;
    to->ideal += from->ideal;
    to->narrow += from->narrow;
    to->lds_bytes += from->lds_bytes;
    to->lds_accesses += from->lds_accesses;
    to->lds_phases += from->lds_phases;
    to->lds_conflicts += from->lds_conflicts;
    to->matrix_operations += from->matrix_operations;
    for (int i = 0; to->executed && from->executed && i < instructions; i++) to->executed[i] += from->executed[i];
    for (int i = 0; to->waited && from->waited && i < instructions; i++) to->waited[i] += from->waited[i];
}

typedef struct launch {
    group first; /* what each thread's workgroup starts from */
    cdna_profile *profile;
    cdna_failure *failure;
    uint64_t groups;
    bool failed;
} launch;

/* One thread's share of the workgroups. */
static void run_share(launch *run) {
    group g = run->first;
    cdna_failure failure = { "no memory for a workgroup" };
    g.failure = &failure;
    const size_t counters = (size_t)g.object->instructions;
    bool ok = group_open(&g);
    if (ok && run->profile && run->profile->executed)
        ok = (g.profile.executed = calloc(counters, sizeof(uint64_t))) != NULL;
    if (ok && run->profile && run->profile->waited)
        ok = (g.profile.waited = calloc(counters, sizeof(uint64_t))) != NULL;
    const uint32_t *size = g.grid->workgroups;
#pragma omp for schedule(dynamic)
    for (uint64_t i = 0; i < run->groups; i++) {
        const uint64_t number = g.options->order == CDNA_REVERSE ? run->groups - 1 - i : i;
        g.id[0] = (uint32_t)(number % size[0]);
        g.id[1] = (uint32_t)(number / size[0] % size[1]);
        g.id[2] = (uint32_t)(number / size[0] / size[1]);
        bool given_up;
#pragma omp atomic read
        given_up = run->failed;
        if (given_up) continue;
        ok = ok && group_run(&g);
        if (ok) continue;
#pragma omp critical(cdna_failure)
        {
            if (!run->failed) *run->failure = failure;
            run->failed = true;
        }
    }
#pragma omp critical(cdna_failure)
    add_profile(run->profile, &g.profile, g.object->instructions);
    group_close(&g);
}

bool cdna_launch(cdna_machine *machine, const cdna_kernel *kernel, const cdna_grid *grid, const void *arguments,
                 size_t bytes, const cdna_options *options, cdna_profile *profile, cdna_failure *failure) {
    static const cdna_options plain = { .trace_wave = -1 };
    const cdna_options *how = options ? options : &plain;
    failure->message[0] = 0;
    if (!check_launch(machine, kernel, grid, bytes, failure)) return false;
    unsigned char *block = make_arguments(kernel, grid, arguments, bytes);
    const size_t size = (kernel->kernarg_size + 63) / 64 * 64;
    if (block == NULL || !cdna_memory_register(machine, block, size + PACKET, false)) {
        free(block);
        snprintf(failure->message, sizeof failure->message, "no memory for the arguments of kernel %s", kernel->name);
        return false;
    }
    cdna_machine seen;
    if (!copy_machine(machine, &seen)) {
        cdna_memory_free(machine, block);
        free(block);
        snprintf(failure->message, sizeof failure->message, "no memory to launch kernel %s", kernel->name);
        return false;
    }
    launch run = { .first = { .machine = &seen,
                              .kernel = kernel,
                              .object = kernel->object,
                              .grid = grid,
                              .options = how,
                              .kernarg = (uint64_t)(uintptr_t)block,
                              .packet = (uint64_t)(uintptr_t)(block + size) },
                   .profile = profile,
                   .failure = failure,
                   .groups = (uint64_t)grid->workgroups[0] * grid->workgroups[1] * grid->workgroups[2] };
    const int threads = how->trace ? 1 : how->threads > 0 ? how->threads : omp_get_max_threads();
#pragma omp parallel num_threads(run.groups < (uint64_t)threads ? (int)run.groups : threads)
    run_share(&run);
    if (profile) profile->launches++;
    cdna_memory_free(machine, block);
    free(seen.allocation);
    free(block);
    return !run.failed;
}

/* ------------------------------------------------------------------------------------------------------ both orders */

/* Copies of all writable memory; NULL if there is no room. */
static unsigned char **copy_memory(const cdna_machine *machine) {
    unsigned char **copy = calloc((size_t)machine->allocations + 1, sizeof *copy);
    for (int i = 0; copy && i < machine->allocations; i++) {
        const allocation *a = &machine->allocation[i];
        if (!a->writable) continue;
        copy[i] = malloc((size_t)(a->end - a->start) + 1);
        if (copy[i] == NULL) abort();
        memcpy(copy[i], a->start, (size_t)(a->end - a->start));
    }
    return copy;
}

static void free_copy(const cdna_machine *machine, unsigned char **copy) {
    for (int i = 0; i < machine->allocations; i++) free(copy[i]);
    free(copy);
}

static bool same_memory(const cdna_machine *machine, const cdna_kernel *kernel, unsigned char *const *copy,
                        cdna_failure *failure) {
    for (int i = 0; i < machine->allocations; i++) {
        const allocation *a = &machine->allocation[i];
        for (size_t at = 0; copy[i] && at < (size_t)(a->end - a->start); at++) {
            if (copy[i][at] == a->start[at]) continue;
            snprintf(failure->message, sizeof failure->message,
                     "kernel %s: the order of its waves changes byte %zu of the allocation of %zu bytes at %p",
                     kernel->name, at, (size_t)(a->end - a->start), (void *)a->start);
            return false;
        }
    }
    return true;
}

bool cdna_launch_both(cdna_machine *machine, const cdna_kernel *kernel, const cdna_grid *grid, const void *arguments,
                      size_t bytes, const cdna_options *options, cdna_profile *profile, cdna_failure *failure) {
    cdna_options how = options ? *options : (cdna_options){ .trace_wave = -1 };
    unsigned char **before = copy_memory(machine);
    how.order = CDNA_FORWARD;
    bool ok = cdna_launch(machine, kernel, grid, arguments, bytes, &how, profile, failure);
    if (ok) {
        unsigned char **after = copy_memory(machine);
        for (int i = 0; i < machine->allocations; i++)
            if (before[i])
                memcpy(machine->allocation[i].start, before[i],
                       (size_t)(machine->allocation[i].end - machine->allocation[i].start));
        how.order = CDNA_REVERSE;
        how.trace = NULL;
        ok = cdna_launch(machine, kernel, grid, arguments, bytes, &how, NULL, failure) &&
             same_memory(machine, kernel, after, failure);
        free_copy(machine, after);
    }
    free_copy(machine, before);
    return ok;
}
