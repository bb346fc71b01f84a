/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of energy, over files like those of the kernel and libraries like the vendors', and joules of a call. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "tests/tap.h"
#include "tools/meter.h"

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) tap(false, "%s can be written", path);
}

/* A zone in the current folder. */
static void zone(const char *name, const char *what, const char *used) {
    char path[128];
    snprintf(path, sizeof path, "class/powercap/%s", name);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "class/powercap/%s/name", name);
    write_text(path, what);
    snprintf(path, sizeof path, "class/powercap/%s/max_energy_range_uj", name);
    write_text(path, "1000000\n");
    snprintf(path, sizeof path, "class/powercap/%s/energy_uj", name);
    write_text(path, used);
}

static const char *const zones[] = { "intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1",
                                     "intel-rapl:1", "intel-rapl:2",   "intel-rapl-mmio:0" };

static void check_rapl(void) {
    bool right;
    static const char *const files[] = { "name", "max_energy_range_uj", "energy_uj" };
    const trine_device_info_t cpu = { .name = "cpu" };
    char why[512], path[128];
    double joules = -1;
    meter m;
    right = !meter_open(&m, &cpu, ".", why, sizeof why) && strstr(why, "no package of RAPL");
    tap(right, "no counter: %s", why);
    mkdir("class", 0700);
    mkdir("class/powercap", 0700);
    zone(zones[0], "package-0\n", "900000\n");
    zone(zones[1], "core\n", "1\n");
    zone(zones[2], "dram\n", "3000\n");
    zone(zones[3], "package-1\n", "10\n");
    zone(zones[4], "psys\n", "7\n");
    zone(zones[5], "package-0\n", "5\n");
    right = meter_open(&m, &cpu, ".", why, sizeof why) && meter_read(&m, &joules) && joules == 0 && m.zones == 3;
    tap(right, "packages and memory are counted, %d zones", m.zones);
    zone(zones[1], "core\n", "500000\n");
    zone(zones[2], "dram\n", "4000\n");
    zone(zones[3], "package-1\n", "200010\n");
    zone(zones[4], "psys\n", "900000\n");
    right = meter_read(&m, &joules) && fabs(joules - 0.201) < 1e-9;
    tap(right, "%.6f joules", joules);
    zone(zones[0], "package-0\n", "100000\n");
    right = meter_read(&m, &joules) && fabs(joules - 0.401) < 1e-9;
    tap(right, "%.6f joules after a counter has wrapped", joules);
    zone(zones[0], "package-0\n", "none\n");
    right = !meter_read(&m, &joules);
    tap(right, "a counter that has gone");
    right = !meter_open(&m, &cpu, ".", why, sizeof why) && strstr(why, "energy_uj");
    tap(right, "no counter: %s", why);
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        for (size_t j = 0; j < sizeof files / sizeof files[0]; j++) {
            snprintf(path, sizeof path, "class/powercap/%s/%s", zones[i], files[j]);
            unlink(path);
        }
        snprintf(path, sizeof path, "class/powercap/%s", zones[i]);
        rmdir(path);
    }
    rmdir("class/powercap");
    rmdir("class");
}

static void check_vendor(const char *name, const char *by) {
    bool right;
    trine_device_info_t device = { .name = name, .pci = "0000:65:00.0" };
    char why[512] = "";
    double first = 0, second = 0;
    meter m;
    right = meter_open(&m, &device, ".", why, sizeof why) && !strcmp(m.name, by) && meter_read(&m, &first) &&
            meter_read(&m, &second) && fabs(second - first - 1) < 1e-6;
    tap(right, "%s: %.6f joules more by %s%s", name, second - first, by, why);
    device.pci = "0000:66:00.0";
    right = !meter_open(&m, &device, ".", why, sizeof why);
    tap(right, "no counter: %s", why);
    device.pci = NULL;
    right = !meter_open(&m, &device, ".", why, sizeof why);
    tap(right, "no counter: %s", why);
    device.emulated = 1;
    right = !meter_open(&m, &device, ".", why, sizeof why) && strstr(why, "emulated");
    tap(right, "no counter: %s", why);
}

/* A device whose calls take a joule, or nothing, and whose counter moves at every 1000th. */
static double used;
static bool call(void *context, int64_t i) {
    used += *(double *)context;
    return i < 0 || i < INT64_MAX;
}
static bool count(void *context, double *joules_out) {
    (void)context;
    *joules_out = 1000 * floor(used / 1000);
    return true;
}
static bool gone(void *context, double *joules_out) { return (void)context, (void)joules_out, false; }

static void check_calls(void) {
    bool right;
    bench_result r = { .batch = 7 };
    const bench_meter meter = { .read = count, .name = "a counter", .grams = 3.6e6 };
    double one = 1;
    const double begin = bench_now();
    right = bench_energy(call, NULL, &one, &meter, &r) && fabs(r.joules - 1) < 1e-3 && r.watts > 0;
    tap(right, "%.6f joules a call, %.3g W", r.joules, r.watts);
    right = bench_now() - begin >= 1;
    tap(right, "in a second or more");
    char line[128] = "";
    FILE *text = fmemopen(line, sizeof line, "w");
    if (text) bench_print_energy(text, &r, &meter);
    if (text) fclose(text);
    right = strstr(line, " J a call, ") && strstr(line, " W by a counter, ") && strstr(line, " g of CO2\n");
    tap(right, "a line says so");
    tap(bench_energy(call, NULL, &one, &(bench_meter){ .read = gone, .name = "none" }, &r) && r.joules == 0 &&
            r.watts == 0,
        "no counter, no joules");
}

int main(void) {
    char folder[] = "/tmp/trine-energy-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return tap_skip_all("there is no place in /tmp");
    check_rapl();
    check_vendor("cuda:0", "NVML");
    check_vendor("hip:0", "amd-smi");
    check_calls();
    if (chdir("/") == 0) rmdir(folder);
    return tap_end();
}
