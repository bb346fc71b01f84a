/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the CPU backend. They are made when first needed, kept for the life of the process, and shared by all
 * queues whose threads run on the same CPUs.
 *
 * A job is handed out in pieces, and nothing waits for a thread that has not begun one: where the threads of other
 * programs hold a core, or no thread could be made, the others do its pieces. */
#ifndef TRINE_CPU_POOL_H
#define TRINE_CPU_POOL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does items [first, last) of a job. No two that run at once have the same `thread`, which is less than the team. */
typedef void cpu_body(const void *context, int64_t first, int64_t last, int thread);

typedef struct cpu_pool cpu_pool;

/* The pool of the CPUs that `cpus` names, `size` bytes; NULL if there is no memory. */
cpu_pool *trine_cpu_pool(const cpu_set_t *cpus, size_t size);

/* Runs the body for n items on at most `team` threads, the caller among them; at once if pool is NULL. `in_turn`: each
 * thread takes the next item whenever it is free; else it begins with a share of its own, in a few pieces, so that in
 * each call the same thread is at the same items. */
void trine_cpu_pool_run(cpu_pool *pool, int team, int64_t n, bool in_turn, cpu_body *body, const void *context);

#endif
