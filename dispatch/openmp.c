/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenMP runtime of the program, found where it is loaded, in whatever scope. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "openmp.h"

typedef struct runtime {
    int (*in_parallel)(void);
    int (*places)(void);
    int (*place_size)(int place);
    void (*place_ids)(int place, int *ids);
} runtime;

static runtime found;

/* In the program's own scope, or among what it loaded for a plugin; the handle of such a runtime stays open, so that it
 * stays loaded. */
static bool find_handle(void **handle_out) {
    static const char *const names[] = { "libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so" };
    *handle_out = RTLD_DEFAULT;
    if (dlsym(RTLD_DEFAULT, "omp_in_parallel") != NULL) return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((*handle_out = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD)) != NULL) return true;
    return false;
}

static void find_function(void *handle, const char *name, void *pointer) {
    void *function = dlsym(handle, name);
    __atomic_store_n((void **)pointer, function, __ATOMIC_RELEASE);
}

void trine_openmp_find(void) {
    if (__atomic_load_n(&found.in_parallel, __ATOMIC_ACQUIRE) != NULL) return;
    void *handle;
    if (!find_handle(&handle)) return;
    find_function(handle, "omp_get_num_places", &found.places);
    find_function(handle, "omp_get_place_num_procs", &found.place_size);
    find_function(handle, "omp_get_place_proc_ids", &found.place_ids);
    find_function(handle, "omp_in_parallel", &found.in_parallel);
}

bool trine_openmp_in_parallel(void) {
    int (*const in_parallel)(void) = __atomic_load_n(&found.in_parallel, __ATOMIC_ACQUIRE);
    return in_parallel != NULL && in_parallel() != 0;
}

bool trine_openmp_cpus(cpu_set_t *set, size_t size) {
    trine_openmp_find();
    if (__atomic_load_n(&found.in_parallel, __ATOMIC_ACQUIRE) == NULL || !found.places || !found.place_size ||
        !found.place_ids)
        return false;
    memset(set, 0, size);
    const int places = found.places();
    for (int p = 0; p < places; p++) {
        const int count = found.place_size(p);
        int *ids = calloc((size_t)count + 1, sizeof *ids);
        if (ids == NULL) return false;
        found.place_ids(p, ids);
        for (int i = 0; i < count; i++)
            if (ids[i] >= 0 && (size_t)ids[i] < 8 * size) CPU_SET_S((size_t)ids[i], size, set);
        free(ids);
    }
    return places > 0;
}
