/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes of machines that hwloc makes up, which of them the threads of the CPU device are given, and that they keep
 * to it. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/core/nodes.h"
#include "tap.h"

static trine_places places;

static void read_places(const char *synthetic) {
    setenv("HWLOC_SYNTHETIC", synthetic, 1);
    trine_topology_places(&places);
    unsetenv("HWLOC_SYNTHETIC");
}

/* The nodes of the first threads, a digit each. */
static bool spread(const char *expected) {
    bool good = true;
    for (int i = 0; expected[i]; i++) good &= trine_cpu_pool_node(&places, i) == expected[i] - '0';
    return good;
}

/* CPUs that another thread of a job may use. */
typedef struct seen {
    cpu_set_t other;
    int others;
} seen;

static void look(const void *context, int64_t first, int64_t last, int thread) {
    seen *s = (seen *)(uintptr_t)context;
    (void)first, (void)last;
    if (thread == 0) {
        for (int i = 0; i < 1000 && __atomic_load_n(&s->others, __ATOMIC_ACQUIRE) == 0; i++)
            nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    } else if (__atomic_load_n(&s->others, __ATOMIC_ACQUIRE) == 0) {
        sched_getaffinity(0, sizeof s->other, &s->other);
        __atomic_store_n(&s->others, 1, __ATOMIC_RELEASE);
    }
}

/* A pool of CPUs 0 and 1 on such a machine: what its second thread may use. */
static bool second_thread(const char *synthetic, seen *seen_out) {
    cpu_set_t set, *own;
    const size_t size = CPU_ALLOC_SIZE(PLACES_CPUS) - (synthetic ? 0 : sizeof(long)); /* pools are told apart by it */
    own = CPU_ALLOC(PLACES_CPUS);
    memset(own, 0, CPU_ALLOC_SIZE(PLACES_CPUS));
    sched_getaffinity(0, sizeof set, &set);
    CPU_SET_S(0, size, own);
    CPU_SET_S(1, size, own);
    if (synthetic) setenv("HWLOC_SYNTHETIC", synthetic, 1);
    cpu_pool *pool = trine_cpu_pool(own, size);
    unsetenv("HWLOC_SYNTHETIC");
    CPU_FREE(own);
    *seen_out = (seen){ 0 };
    trine_cpu_pool_run(pool, 2, 64, true, look, seen_out);
    return trine_cpu_pool_nodes(pool) == (synthetic ? 2 : 1) && seen_out->others;
}

int main(void) {
    cpu_set_t set, own;
    seen s;
    alarm(60);
    read_places("node:2 l3:1 core:4 pu:2");
    tap(places.nodes == 2 && places.cores[0] == 4 && places.cores[1] == 4 && places.of_cpu[7] == 0 &&
            places.of_cpu[8] == 1 && places.of_cpu[16] == -1,
        "two nodes of four cores, of two CPUs each");
    tap(spread("000011110000"), "threads fill one node and then the other; more of them begin anew");
    read_places("pack:2 node:2 core:3 pu:1");
    tap(places.nodes == 4 && spread("000111222333"), "four nodes of two packages");
    read_places("core:8 pu:1");
    tap(places.nodes == 1 && spread("00000000"), "one node");
    sched_getaffinity(0, sizeof set, &set);
    if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set)) {
        tap(true, "threads keep to their node # SKIP CPUs 0 and 1 cannot both be used");
        return tap_end();
    }
    const bool two = second_thread("node:2 core:1 pu:1", &s);
    tap(two && CPU_COUNT(&s.other) == 1 && CPU_ISSET(1, &s.other), "the second thread keeps to the second node");
    sched_getaffinity(0, sizeof own, &own);
    tap(CPU_EQUAL(&own, &set), "the thread that calls stays where it is");
    const bool one = second_thread(NULL, &s);
    tap((!one || CPU_COUNT(&s.other) == 2) && s.others, "on one node it may use all CPUs");
    return tap_end();
}
