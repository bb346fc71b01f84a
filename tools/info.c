/* SPDX-License-Identifier: Apache-2.0 */
/* trine info: devices, topology, backends and modules with the reason for each one refused, variables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/places.h"
#include "bench/bench.h"
#include "dispatch/dispatch.h"
#include "nvml.h"
#include "tool.h"

static void print_device(int index, const trine_device_info_t *d) {
    char memory[32], cache[3][32];
    printf("  %d %-8s %s, %s, %d units%s\n", index, d->name, d->model ? d->model : "unknown", d->arch ? d->arch : "?",
           d->units, d->emulated ? ", EMULATED: its speed means nothing" : "");
    printf("    memory %s, cache L1d %s, L2 %s, last level %s\n",
           bench_bytes_text((double)d->memory, memory, sizeof memory),
           bench_bytes_text((double)d->cache[0], cache[0], 32), bench_bytes_text((double)d->cache[1], cache[1], 32),
           bench_bytes_text((double)d->cache[2], cache[2], 32));
    if (d->numa_node >= 0 || d->pci) {
        printf("   ");
        if (d->pci) printf(" PCI %s", d->pci);
        if (d->numa_node >= 0) printf(" NUMA node %d", d->numa_node);
        putchar('\n');
    }
    nvml_device managed;
    if (nvml_ask(d->pci, &managed))
        printf("    driver %s, clock %u of %u MHz, memory clock %u MHz, power %.0f of %.0f W, persistence mode %s\n",
               managed.driver, managed.clock, managed.most_clock, managed.memory_clock, managed.power,
               managed.power_limit, managed.persistent ? "on" : "off");
}

/* As backends/cpu/core/nodes.h says. */
static void print_nodes(void) {
    static trine_places places;
    char memory[32];
    trine_topology_places(&places);
    for (int k = 0, first = 0; k < places.nodes; first += places.cores[k++]) {
        printf("    NUMA node %d: %d cores, memory %s, threads %d to %d\n", places.os[k], places.cores[k],
               bench_bytes_text((double)places.memory[k], memory, sizeof memory), first, first + places.cores[k] - 1);
    }
}

static void print_use(const trine_backend_info_t *b) {
    const int count = b->extends ? b->kernels : b->devices;
    if (b->extends) printf(", extends %s", b->extends);
    printf(", %d %s%s\n", count, b->extends ? "kernel" : "device", count == 1 ? "" : "s");
}

static void print_text(const trine *lib) {
    printf("trine %s, ABI %d, specification %016" PRIx64 ", %d ops\n\ndevices\n", TRINE_VERSION, TRINE_ABI,
           trine_spec_hash(), TRINE_OP_COUNT - 1);
    trine_device_info_t device;
    for (int i = 0; i < trine_device_count(lib); i++)
        if (trine_device_info(lib, i, &device) == TRINE_OK) {
            print_device(i, &device);
            if (strcmp(device.name, "cpu") == 0) print_nodes();
        }
    printf("\nbackends\n");
    trine_backend_info_t backend;
    for (int i = 0; i < trine_backend_count(lib); i++) {
        if (trine_backend_info(lib, i, &backend) != TRINE_OK) continue;
        printf("  %-8s ", backend.name);
        if (backend.refused && !backend.path) {
            printf("%s\n", backend.refused);
            continue;
        }
        printf("%s", backend.path ? backend.path : "built in");
        if (backend.version) printf(", version %s", backend.version);
        if (backend.refused)
            printf(", refused: %s\n", backend.refused);
        else
            print_use(&backend);
    }
    printf("\nenvironment\n");
    for (const trine_env_entry *e = trine_env_list; e->name; e++) {
        const char *value = getenv(e->name);
        if (value)
            printf("  %s=%s\n", e->name, value);
        else
            printf("  %-15s not set: %s\n", e->name, e->doc);
    }
}

static void print_json(const trine *lib) {
    printf("{\n  \"version\": \"%s\",\n  \"abi\": %d,\n  \"specification\": \"%016" PRIx64
           "\",\n  \"ops\": %d,\n  \"devices\": [",
           TRINE_VERSION, TRINE_ABI, trine_spec_hash(), TRINE_OP_COUNT - 1);
    trine_device_info_t d;
    for (int i = 0; i < trine_device_count(lib); i++) {
        if (trine_device_info(lib, i, &d) != TRINE_OK) continue;
        printf("%s\n    {", i ? "," : "");
        bench_json_member(stdout, " ", "name", d.name);
        bench_json_member(stdout, ", ", "model", d.model);
        bench_json_member(stdout, ", ", "arch", d.arch);
        bench_json_member(stdout, ", ", "pci", d.pci);
        nvml_device managed;
        if (nvml_ask(d.pci, &managed)) {
            bench_json_member(stdout, ", ", "driver", managed.driver);
            printf(", \"clock\": %u, \"most_clock\": %u, \"memory_clock\": %u, \"power\": %.3f, \"power_limit\": %.3f, "
                   "\"persistence\": %s",
                   managed.clock, managed.most_clock, managed.memory_clock, managed.power, managed.power_limit,
                   managed.persistent ? "true" : "false");
        }
        printf(", \"units\": %d, \"numa_node\": %d, \"memory\": %" PRId64 ", \"cache\": [%" PRId64 ", %" PRId64
               ", %" PRId64 "], \"emulated\": %s }",
               d.units, d.numa_node, d.memory, d.cache[0], d.cache[1], d.cache[2], d.emulated ? "true" : "false");
    }
    printf("\n  ],\n  \"backends\": [");
    trine_backend_info_t b;
    for (int i = 0; i < trine_backend_count(lib); i++) {
        if (trine_backend_info(lib, i, &b) != TRINE_OK) continue;
        printf("%s\n    {", i ? "," : "");
        bench_json_member(stdout, " ", "name", b.name);
        bench_json_member(stdout, ", ", "path", b.path);
        bench_json_member(stdout, ", ", "version", b.version);
        bench_json_member(stdout, ", ", "refused", b.refused);
        bench_json_member(stdout, ", ", "extends", b.extends);
        printf(", \"devices\": %d, \"kernels\": %d }", b.devices, b.kernels);
    }
    printf("\n  ],\n  \"environment\": {");
    for (const trine_env_entry *e = trine_env_list; e->name; e++) {
        printf("%s\n    \"%s\": ", e == trine_env_list ? "" : ",", e->name);
        bench_json_text(stdout, getenv(e->name));
    }
    printf("\n  }\n}\n");
}

int trine_tool_info(int argc, char **argv) {
    bool json = false;
    const option_row rows[] = { OPTION_FLAG("json", &json, "print JSON"), { 0 } };
    const option_set set = {
        "trine info [--json]",
        "Prints the devices, the backends tried with the reason for each one refused, and the variables that are set.",
        rows
    };
    const int words = options_parse(&set, argc, argv, NULL, 0);
    if (words < 0) return options_status(words);
    trine *lib;
    if (trine_open(NULL, &lib) != TRINE_OK) return failure("%s", trine_error_message());
    (json ? print_json : print_text)(lib);
    trine_close(lib);
    return 0;
}
