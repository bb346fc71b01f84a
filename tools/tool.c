/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands share: opening a queue, finding ops and cases. */
#include "tool.h"

#include <string.h>

int target_open(target *t, const char *command) {
    const trine_options options = { .struct_size = sizeof options, .isa = t->isa };
    const trine_status opened = trine_open(&options, &t->lib);
    if (opened != TRINE_OK) return opened == TRINE_ERR_ARGUMENT ? usage_error(command, "%s", trine_error_message()) : failure("%s", trine_error_message());
    int device = TRINE_BEST_DEVICE;
    if (t->device && (device = trine_device_find(t->lib, t->device)) < 0) {
        const char *names[64];
        trine_device_info_t info;
        int count = 0;
        for (int i = 0; i < trine_device_count(t->lib) && count < 63; i++)
            if (trine_device_info(t->lib, i, &info) == TRINE_OK) names[count++] = info.name;
        names[count] = NULL;
        const char *near = nearest_name(t->device, names);
        if (near)
            usage_error(command, "no device \"%s\"; did you mean \"%s\"?", t->device, near);
        else
            usage_error(command, "no device \"%s\"; trine info lists them", t->device);
        target_close(t);
        return 2;
    }
    const trine_queue_options queue = { .struct_size = sizeof queue, .threads = (int32_t)t->threads, .kernel = t->kernel };
    if (trine_queue_open(t->lib, device, &queue, &t->queue) == TRINE_OK && trine_device_info(t->lib, trine_queue_device(t->queue), &t->info) == TRINE_OK)
        return 0;
    failure("%s", trine_error_message());
    target_close(t);
    return 1;
}

void target_close(target *t) {
    trine_queue_close(t->queue);
    trine_close(t->lib);
    t->queue = NULL;
    t->lib = NULL;
}

trine_op find_op(const char *command, const char *name) {
    const char *names[TRINE_OP_COUNT];
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        names[op - 1] = trine_specs[op]->name;
        if (strcmp(names[op - 1], name) == 0) return (trine_op)op;
    }
    names[TRINE_OP_COUNT - 1] = NULL;
    const char *near = nearest_name(name, names);
    if (near)
        usage_error(command, "no op \"%s\"; did you mean \"%s\"?", name, near);
    else
        usage_error(command, "no op \"%s\"; trine spec lists them", name);
    return TRINE_OP_NONE;
}

int tables_ok(void) { return trine_plan_error() ? failure("malformed specification: %s", trine_plan_error()) : 0; }

const char *find_case(const trine_spec *spec, const char *name) {
    for (int i = 0; i < TRINE_MAX_STRINGS && spec->cases[i]; i++)
        if (strncmp(spec->cases[i], name, strlen(name)) == 0) return spec->cases[i];
    return NULL;
}

int make_case(const char *command, trine_case *c, trine_op op, const char *named, const char *dims, const char *types) {
    char error[256];
    const trine_spec *spec = trine_specs[op];
    trine_case_init(c, op);
    if (named) {
        const char *text = find_case(spec, named);
        if (text == NULL) return usage_error(command, "%s has no case \"%s\"; trine spec %s lists them", spec->name, named, spec->name);
        if (!trine_case_parse(c, text, error, sizeof error)) return failure("%s: case \"%s\": %s", spec->name, text, error);
    }
    if (types && named) memset(c->type, 0, sizeof c->type);
    if ((types && !trine_case_parse(c, types, error, sizeof error)) || (dims && !trine_case_parse(c, dims, error, sizeof error)) ||
        !trine_case_finish(c, error, sizeof error))
        return usage_error(command, "%s", error);
    return 0;
}
