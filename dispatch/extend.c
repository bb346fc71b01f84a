/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels from elsewhere: modules that add them to the devices of another backend.
 * All of a module's are added, or none, with the reason. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <trine/ops.h>

#include "dispatch.h"

enum { NAME_SIZE = sizeof((trine_queue *)0)->kernel };

/* ------------------------------------------------------------------------------------------------------------- whom */

/* The backend that a module extends; NULL, with the module refused, if there is none. */
static const trine_backend *find_backend(const trine *lib, trine_module_entry *entry) {
    const char *name = entry->extends->extends;
    for (int i = 0; i < lib->modules; i++) {
        const trine_module_entry *other = &lib->module[i];
        if (other->info.name == NULL || strcmp(other->info.name, name) != 0 || other == entry) continue;
        if (other->backend != NULL) return other->backend;
        if (other->extends != NULL)
            trine_module_refuse(entry, "extends \"%.64s\", which brings no devices", name);
        else
            trine_module_refuse(entry, "extends \"%.64s\", which was refused: %.350s", name, other->reason);
        return NULL;
    }
    trine_module_refuse(entry, "extends \"%.64s\", but there is no such backend", name);
    return NULL;
}

static bool takes(const trine *lib, int device, const trine_backend *backend, const trine_extension_row *row) {
    return lib->device[device].backend == backend && (row->takes == NULL || row->takes(lib->device[device].device));
}

static int count_of(const trine_kernel *list) {
    int count = 0;
    while (list != NULL && list[count].name != NULL) count++;
    return count;
}

static bool has(const trine_kernel *list, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- what */

/* A name that TRINE_KERNEL and the columns of a tuning cache can hold. */
static bool good_name(const char *name) {
    const char *at = name;
    while (isgraph((unsigned char)*at)) at++;
    return at > name && *at == 0 && at - name < NAME_SIZE;
}

/* The kernels of a row by themselves: nothing beyond the last that may be is looked at. */
static bool check_kernels(trine_module_entry *entry, const char *op, const trine_kernel *kernels) {
    if (kernels == NULL || kernels->name == NULL) return trine_module_refuse(entry, "a row of %s has no kernels", op);
    for (int i = 0; kernels[i].name != NULL; i++) {
        const char *name = kernels[i].name;
        if (i == TRINE_MAX_CANDIDATES)
            return trine_module_refuse(entry, "more than %d kernels of %s", TRINE_MAX_CANDIDATES, op);
        if (!good_name(name))
            return trine_module_refuse(entry, "kernel %d of %s has no name of 1 to %d printable characters", i, op,
                                       NAME_SIZE - 1);
        if (kernels[i].launch == NULL) return trine_module_refuse(entry, "kernel \"%s\" of %s has no launch", name, op);
        if (has(kernels, i, name)) return trine_module_refuse(entry, "kernel \"%s\" of %s stands twice", name, op);
    }
    return true;
}

/* And beside what a device has. */
static bool check_beside(trine_module_entry *entry, const char *op, const trine_kernel *kernels,
                         const trine_kernel *list) {
    const int count = count_of(list), added = count_of(kernels);
    for (int i = 0; i < added; i++)
        if (has(list, count, kernels[i].name))
            return trine_module_refuse(entry, "kernel \"%s\" of %s: the name is already taken", kernels[i].name, op);
    return count + added <= TRINE_MAX_CANDIDATES ||
           trine_module_refuse(entry, "with its %d kernels %s would have more than %d", added, op,
                               TRINE_MAX_CANDIDATES);
}

static bool check_row(const trine *lib, trine_module_entry *entry, const trine_backend *backend,
                      const trine_extension_row *row) {
    if (row->op <= TRINE_OP_NONE || row->op >= TRINE_OP_COUNT)
        return trine_module_refuse(entry, "there is no op %d", (int)row->op);
    const char *op = trine_specs[row->op]->name;
    if (row->op_hash != trine_op_hash(row->op))
        return trine_module_refuse(entry, "%s has the specification %016" PRIx64 ", its kernels are for %016" PRIx64,
                                   op, trine_op_hash(row->op), row->op_hash);
    if (!check_kernels(entry, op, row->kernels)) return false;
    for (int d = 0; d < lib->devices; d++)
        if (takes(lib, d, backend, row) && !check_beside(entry, op, row->kernels, trine_kernels(lib, d, row->op)))
            return false;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- adding */

/* Behind those of modules that came first, before the backend's own. */
static trine_status add_kernels(trine *lib, int device, const trine_extension_row *row) {
    const trine_kernel *before = trine_kernels(lib, device, row->op);
    const int count = count_of(before), more = count_of(row->kernels), first = lib->device[device].added[row->op];
    trine_kernel *list = calloc((size_t)(count + more + 1), sizeof *list);
    if (list == NULL)
        return trine_fail(TRINE_ERR_MEMORY, "trine_open: out of memory for kernels of %s", trine_specs[row->op]->name);
    for (int i = 0; i < count; i++) list[i < first ? i : i + more] = before[i];
    memcpy(list + first, row->kernels, (size_t)more * sizeof *list);
    free(lib->device[device].list[row->op]);
    lib->device[device].list[row->op] = list;
    lib->device[device].added[row->op] += more;
    return TRINE_OK;
}

/* Takes back what was added of the first `rows` rows. Their kernels are the last that were added. */
static void remove_rows(trine *lib, const trine_backend *backend, const trine_extension *extension, int rows) {
    for (int i = rows - 1; i >= 0; i--)
        for (int d = 0; d < lib->devices; d++) {
            const trine_extension_row *row = &extension->row[i];
            if (!takes(lib, d, backend, row)) continue;
            trine_kernel *list = lib->device[d].list[row->op];
            const int more = count_of(row->kernels), first = lib->device[d].added[row->op] -= more;
            memmove(list + first, list + first + more, (size_t)(count_of(list) - first - more + 1) * sizeof *list);
        }
}

static trine_status add_rows(trine *lib, trine_module_entry *entry, const trine_backend *backend,
                             const trine_extension *extension) {
    for (int i = 0; i < extension->rows; i++) {
        const trine_extension_row *row = &extension->row[i];
        if (!check_row(lib, entry, backend, row)) {
            remove_rows(lib, backend, extension, i);
            entry->info.kernels = 0;
            return TRINE_OK;
        }
        bool taken = false;
        for (int d = 0; d < lib->devices; d++) {
            if (!takes(lib, d, backend, row)) continue;
            const trine_status status = add_kernels(lib, d, row);
            if (status != TRINE_OK) return status;
            taken = true;
        }
        entry->info.kernels += taken ? count_of(row->kernels) : 0;
    }
    if (entry->info.kernels == 0)
        trine_module_refuse(entry, "none of its kernels is for a device of \"%.64s\"", backend->name);
    return TRINE_OK;
}

static trine_status extend(trine *lib, trine_module_entry *entry) {
    char reason[sizeof entry->reason] = "";
    const trine_backend *backend = find_backend(lib, entry);
    if (backend == NULL) return TRINE_OK;
    const trine_extension *extension = entry->extends->extend(&lib->host, reason, sizeof reason);
    reason[sizeof reason - 1] = 0;
    if (extension == NULL)
        trine_module_refuse(entry, "%s", reason[0] ? reason : "its extend failed and gave no reason");
    else if (extension->struct_size < sizeof *extension)
        trine_module_refuse(entry, "its extension has %zu bytes, this library's %zu", extension->struct_size,
                            sizeof *extension);
    else if (extension->rows < 0 || (extension->rows > 0 && extension->row == NULL))
        trine_module_refuse(entry, "its extension has %d rows", extension->rows);
    else
        return add_rows(lib, entry, backend, extension);
    return TRINE_OK;
}

/* Behind a backend's own kernels of an op those that are made of other ops. */
static trine_status add_composed(trine *lib, int device, trine_op op) {
    const trine_kernel *own = lib->device[device].backend->kernels(lib->device[device].device, op),
                       *composed = trine_composed_kernels(op);
    if (own == NULL || composed == NULL) return TRINE_OK;
    const int count = count_of(own), more = count_of(composed);
    trine_kernel *list = calloc((size_t)(count + more + 1), sizeof *list);
    if (list == NULL)
        return trine_fail(TRINE_ERR_MEMORY, "trine_open: out of memory for kernels of %s", trine_specs[op]->name);
    memcpy(list, own, (size_t)count * sizeof *list);
    memcpy(list + count, composed, (size_t)more * sizeof *list);
    lib->device[device].list[op] = list;
    return TRINE_OK;
}

trine_status trine_extend(trine *lib) {
    for (int d = 0; d < lib->devices; d++)
        for (int op = TRINE_OP_NONE + 1; op < TRINE_OP_COUNT; op++) {
            const trine_status status = add_composed(lib, d, (trine_op)op);
            if (status != TRINE_OK) return status;
        }
    for (int i = 0; i < lib->modules; i++) {
        if (lib->module[i].extends == NULL) continue;
        const trine_status status = extend(lib, &lib->module[i]);
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

void trine_extend_free(trine *lib) {
    for (int d = 0; d < lib->devices; d++)
        for (int op = 0; op < TRINE_OP_COUNT; op++) free(lib->device[d].list[op]);
}

trine_status trine_launch_code(const trine_call *call, const trine_code *code, const trine_launch *launch) {
    const char *op = call->plan->spec->name;
    if (call->backend->launch == NULL)
        return trine_fail(TRINE_ERR_UNSUPPORTED, "%s: devices of %s take no code from elsewhere", op,
                          call->backend->name);
    if (code->image == NULL || code->function == NULL)
        return trine_fail(TRINE_ERR_INTERNAL, "%s: code from elsewhere has no image, or no function", op);
    for (int i = 0; i < 3; i++)
        if (launch->blocks[i] == 0 || launch->threads[i] == 0) return TRINE_OK;
    return call->backend->launch(call, code, launch);
}
