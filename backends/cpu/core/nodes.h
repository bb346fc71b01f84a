/* SPDX-License-Identifier: Apache-2.0 */
/* How the threads of a pool are spread over NUMA nodes. Each keeps to the CPUs of one: the first threads to the first
 * node's, as many as it has cores, and so on. The thread that calls is the first, and stays where it is.
 *
 * A team is always the first threads that are free, in their order: in each call the same node has the same share, and
 * memory that a thread is the first to touch is its node's. */
#ifndef TRINE_CPU_NODES_H
#define TRINE_CPU_NODES_H

#include "backends/places.h"
#include "pool.h"

/* Where thread `number` is, the caller's being 0: the index of a node. */
int trine_cpu_pool_node(const trine_places *places, int number);

/* On how many nodes the pool's threads are. */
int trine_cpu_pool_nodes(const cpu_pool *pool);

#endif
