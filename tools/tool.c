/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands share: opening a queue. */
#include "tool.h"

#include "check/check.h"

int target_open(target *t, const char *command) {
    const trine_options options = { .struct_size = sizeof options, .isa = t->isa };
    const trine_status opened = trine_open(&options, &t->lib);
    if (opened != TRINE_OK)
        return opened == TRINE_ERR_ARGUMENT ? usage_error(command, "%s", trine_error_message())
                                            : failure("%s", trine_error_message());
    int device = TRINE_BEST_DEVICE;
    if (t->device && (device = trine_device_find(t->lib, t->device)) < 0) {
        const char *names[64];
        trine_device_info_t info;
        int count = 0;
        for (int i = 0; i < trine_device_count(t->lib) && count < 63; i++)
            if (trine_device_info(t->lib, i, &info) == TRINE_OK) names[count++] = info.name;
        names[count] = NULL;
        char text[512];
        const char *near = nearest_name(t->device, names);
        check_no_device(t->lib, t->device, text, sizeof text);
        if (near)
            usage_error(command, "%s; did you mean \"%s\"?", text, near);
        else
            usage_error(command, "%s; trine info lists them", text);
        target_close(t);
        return 2;
    }
    const trine_queue_options queue = { .struct_size = sizeof queue,
                                        .threads = (int32_t)t->threads,
                                        .kernel = t->kernel,
                                        .sm_count = (int32_t)t->sm_count };
    if (trine_queue_open(t->lib, device, &queue, &t->queue) == TRINE_OK &&
        trine_device_info(t->lib, trine_queue_device(t->queue), &t->info) == TRINE_OK)
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

int tables_ok(void) { return trine_plan_error() ? failure("malformed specification: %s", trine_plan_error()) : 0; }
