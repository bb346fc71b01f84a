/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine is made of: cores of the process's cpuset, cache sizes, memory, and the NUMA node of a PCI
 * device. */
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/places.h"
#include "cgroup.h"
#include "dispatch.h"
#include "openmp.h"

enum { CPUS = PLACES_CPUS };

/* With OMP_PROC_BIND the calling thread is bound to one place already, and the process's CPUs are those of all
 * places. */
bool trine_topology_cpus(cpu_set_t *set, size_t size) {
    if (trine_openmp_cpus(set, size)) return true;
    memset(set, 0, size);
    return sched_getaffinity(0, size, set) == 0;
}

/* No more than the process's quota of this machine's time. */
static void limit_cores(trine_host *host) {
    const int quota = trine_cgroup_cpus("");
    if (quota > 0 && host->cores > quota) host->cores = quota;
}

/* ------------------------------------------------------------------------------------------------------------- /sys */

static long read_number(const char *path, long otherwise) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return otherwise;
    long value;
    if (fscanf(file, "%ld", &value) != 1) value = otherwise;
    fclose(file);
    return value;
}

/* Cores of `set`: its CPUs that are the first of their core's siblings in it. */
static int count_cores(const cpu_set_t *set, size_t size) {
    int cores = 0;
    for (int cpu = 0; cpu < CPUS; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, size, set)) continue;
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        FILE *file = fopen(path, "re");
        bool first = true;
        int low, high;
        while (file != NULL && fscanf(file, "%d", &low) == 1) {
            high = low;
            int mark = fgetc(file);
            if (mark == '-') {
                if (fscanf(file, "%d", &high) != 1) break;
                mark = fgetc(file);
            }
            for (int i = low; i <= high && i < cpu; i++)
                if (i >= 0 && CPU_ISSET_S((size_t)i, size, set)) first = false;
            if (mark != ',') break;
        }
        if (file != NULL) fclose(file);
        cores += first;
    }
    return cores;
}

/* The size of a cache, 1 to 3, of data; 0 if it is not known. */
static int64_t cache_size(int level) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
    static const int names[] = { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE };
    return sysconf(names[level - 1]);
#else
    for (int index = 0; index < 8; index++) {
        char path[96], type = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        if (read_number(path, 0) != level) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        FILE *file = fopen(path, "re");
        if (file == NULL) continue;
        if (fscanf(file, "%c", &type) != 1) type = 0;
        fclose(file);
        if (type == 'I') continue; /* of instructions */
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        return (int64_t)read_number(path, 0) * 1024; /* "32K" */
    }
    return 0;
#endif
}

static void read_system(trine_host *host) {
    cpu_set_t *set = CPU_ALLOC(CPUS);
    const size_t size = CPU_ALLOC_SIZE(CPUS);
    if (set != NULL && trine_topology_cpus(set, size)) host->cores = count_cores(set, size);
    CPU_FREE(set);
    limit_cores(host);
    for (int level = 1; level <= 3; level++) host->cache[level - 1] = cache_size(level);
    host->memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static bool valid_bus_id(const char *bus_id) {
    for (const char *at = bus_id; *at; at++)
        if (!isxdigit((unsigned char)*at) && strchr(":.", *at) == NULL) return false;
    return strlen(bus_id) >= 7 && strlen(bus_id) < 32; /* "65:00.0" */
}

static int numa_of_pci_system(const char *bus_id) {
    char path[128], name[40];
    snprintf(name, sizeof name, "%s%s", strlen(bus_id) == 7 ? "0000:" : "", bus_id);
    for (char *at = name; *at; at++) *at = (char)tolower((unsigned char)*at);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", name);
    return (int)read_number(path, -1);
}

/* ------------------------------------------------------------------------------------------------------------ hwloc */

#ifdef TRINE_HWLOC
#include <hwloc.h>

/* Is there what hwloc reads? Where /sys is empty, as in some containers, it would print that it found nothing. */
static bool has_source(void) {
    static const char *const variables[] = { "HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH" };
    static const char *const directories[] = { "/sys/bus/cpu/devices", "/sys/devices/system/cpu" };
    static const char *const files[] = { "package_cpus", "core_cpus", "core_siblings", "thread_siblings" };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (getenv(variables[i]) != NULL) return true;
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
        for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
            char path[96];
            snprintf(path, sizeof path, "%s/cpu0/topology/%s", directories[i], files[k]);
            if (access(path, R_OK) == 0) return true;
        }
    return false;
}

/* A loaded topology with the PCI devices if `io`. hwloc's components for vendor libraries are not asked: they would
 * start drivers, and the backends know their devices better. */
static bool load(hwloc_topology_t *topology, bool io) {
    static const char *const vendors[] = { "cuda", "nvml", "rsmi", "levelzero", "opencl", "gl" };
    if (!has_source() || hwloc_topology_init(topology) != 0) return false;
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        hwloc_topology_set_components(*topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, vendors[i]);
    hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (io) hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(*topology) == 0) return true;
    hwloc_topology_destroy(*topology);
    return false;
}

static void read_caches(hwloc_obj_t core, trine_host *host) {
    for (hwloc_obj_t o = core; o != NULL; o = o->parent) {
        if (!hwloc_obj_type_is_dcache(o->type)) continue;
        const unsigned level = o->attr->cache.depth;
        if (level <= 2) host->cache[level - 1] = (int64_t)o->attr->cache.size;
        host->cache[2] = (int64_t)o->attr->cache.size;
    }
}

static bool read_hwloc(trine_host *host) {
    hwloc_topology_t topology;
    cpu_set_t *set = CPU_ALLOC(CPUS);
    const size_t size = CPU_ALLOC_SIZE(CPUS);
    const bool here = set != NULL && trine_topology_cpus(set, size);
    if (!load(&topology, false)) {
        CPU_FREE(set);
        return false;
    }
    /* A topology read from a file, or made up (HWLOC_XMLFILE, HWLOC_SYNTHETIC), is not bounded by this machine's
     * CPUs. */
    const bool bounded = here && hwloc_topology_is_thissystem(topology);
    hwloc_obj_t core = NULL, first = NULL;
    while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != NULL) {
        bool usable = !bounded;
        int cpu = -1;
        while (!usable && (cpu = hwloc_bitmap_next(core->cpuset, cpu)) >= 0)
            usable = cpu < CPUS && CPU_ISSET_S((size_t)cpu, size, set);
        if (!usable) continue;
        host->cores++;
        if (first == NULL) first = core;
    }
    if (first != NULL) read_caches(first, host);
    if (bounded) limit_cores(host);
    host->memory = (int64_t)hwloc_get_root_obj(topology)->total_memory;
    hwloc_topology_destroy(topology);
    CPU_FREE(set);
    return first != NULL;
}

/* A CPU of two nodes, as where one is of faster memory, is the first's. */
static void read_places(hwloc_topology_t topology, trine_places *places) {
    hwloc_obj_t node = NULL, core = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != NULL) {
        bool any = false;
        for (int cpu = hwloc_bitmap_first(node->cpuset); cpu >= 0 && cpu < CPUS;
             cpu = hwloc_bitmap_next(node->cpuset, cpu)) {
            if (places->of_cpu[cpu] >= 0) continue;
            places->of_cpu[cpu] = (int8_t)places->nodes;
            any = true;
        }
        if (!any) continue;
        places->os[places->nodes] = (int)node->os_index;
        places->memory[places->nodes] = (int64_t)node->attr->numanode.local_memory;
        if (++places->nodes == PLACES_NODES) break;
    }
    cpu_set_t *set = CPU_ALLOC(CPUS);
    const size_t size = CPU_ALLOC_SIZE(CPUS);
    const bool bounded = set != NULL && trine_topology_cpus(set, size) && hwloc_topology_is_thissystem(topology);
    while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != NULL) {
        int cpu = hwloc_bitmap_first(core->cpuset);
        while (bounded && cpu >= 0 && cpu < CPUS && !CPU_ISSET_S((size_t)cpu, size, set))
            cpu = hwloc_bitmap_next(core->cpuset, cpu);
        if (cpu >= 0 && cpu < CPUS && places->of_cpu[cpu] >= 0) places->cores[places->of_cpu[cpu]]++;
    }
    CPU_FREE(set);
}

/* Leaves those that have cores. */
static void drop_empty(trine_places *places) {
    int kept = 0;
    for (int k = 0; k < places->nodes; k++) {
        const int to = places->cores[k] > 0 ? kept : -1;
        for (int cpu = 0; cpu < CPUS; cpu++)
            if (places->of_cpu[cpu] == k) places->of_cpu[cpu] = (int8_t)to;
        if (to < 0) continue;
        places->os[to] = places->os[k];
        places->cores[to] = places->cores[k];
        places->memory[to] = places->memory[k];
        kept++;
    }
    places->nodes = kept;
}

void trine_topology_places(trine_places *places_out) {
    hwloc_topology_t topology;
    *places_out = (trine_places){ 0 };
    memset(places_out->of_cpu, -1, sizeof places_out->of_cpu);
    if (!load(&topology, false)) return;
    if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) <= PLACES_NODES) read_places(topology, places_out);
    hwloc_topology_destroy(topology);
    drop_empty(places_out);
}

static int numa_of_pci_hwloc(const char *bus_id) {
    hwloc_topology_t topology;
    if (!load(&topology, true)) return -1;
    int node = -1;
    hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology, bus_id);
    hwloc_obj_t near = device ? hwloc_get_non_io_ancestor_obj(topology, device) : NULL;
    /* Under the whole machine it is near every node, thus near none. */
    if (near != NULL && near->nodeset != NULL && hwloc_bitmap_weight(near->nodeset) == 1)
        node = hwloc_bitmap_first(near->nodeset);
    hwloc_topology_destroy(topology);
    return node;
}
#else
static bool read_hwloc(trine_host *host) {
    (void)host;
    return false;
}

void trine_topology_places(trine_places *places_out) {
    *places_out = (trine_places){ 0 };
    memset(places_out->of_cpu, -1, sizeof places_out->of_cpu);
}

static int numa_of_pci_hwloc(const char *bus_id) {
    (void)bus_id;
    return -1;
}
#endif

/* ------------------------------------------------------------------------------------------------------------- both */

trine_status trine_topology_read(trine_host *host) {
    trine_host system = { 0 };
    read_system(&system);
    host->cores = 0;
    host->memory = host->cache[0] = host->cache[1] = host->cache[2] = 0;
    if (!read_hwloc(host)) host->cores = system.cores;
    /* Where neither knows: what the smallest server core of the last ten years has. */
    static const int64_t least[3] = { 32 << 10, 256 << 10, 1 << 20 };
    for (int i = 0; i < 3; i++) {
        if (host->cache[i] <= 0) host->cache[i] = system.cache[i];
        if (host->cache[i] <= 0) host->cache[i] = least[i];
    }
    if (host->cache[2] < host->cache[1]) host->cache[2] = host->cache[1];
    if (host->memory <= 0) host->memory = system.memory;
    if (host->cores < 1) host->cores = 1;
    return TRINE_OK;
}

int trine_topology_numa_of_pci(const char *bus_id) {
    if (bus_id == NULL || !valid_bus_id(bus_id)) return -1;
    const int node = numa_of_pci_hwloc(bus_id);
    return node >= 0 ? node : numa_of_pci_system(bus_id);
}
