/* SPDX-License-Identifier: Apache-2.0 */
/* Where cores and memory of the host are: what dispatch reads of the topology for the threads of the CPU backend. No
 * module sees it. */
#ifndef TRINE_PLACES_H
#define TRINE_PLACES_H

#include <stdint.h>

enum { PLACES_NODES = 64, PLACES_CPUS = 8192 }; /* CPUs: Linux's own limit (CONFIG_NR_CPUS) */

/* NUMA nodes that have cores of the process, in the order of their OS numbers. None: they are not known, or more than
 * PLACES_NODES. */
typedef struct trine_places {
    int nodes;
    int os[PLACES_NODES], cores[PLACES_NODES];
    int64_t memory[PLACES_NODES]; /* bytes */
    int8_t of_cpu[PLACES_CPUS];   /* the index of a CPU's node, -1 if it has none */
} trine_places;

/* dispatch/topology.c: as hwloc says now; without it there are none. */
void trine_topology_places(trine_places *places_out);

#endif
