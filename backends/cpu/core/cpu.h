/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the CPU backend share: their list, their threads, their cache sizes. */
#ifndef TRINE_CPU_H
#define TRINE_CPU_H

#include "backends/backend.h"
#include "pool.h"

typedef struct cpu_device {
    int threads;        /* physical cores of the process's cpuset */
    int64_t l1, l2, l3; /* bytes; L1d and L2 of one core */
} cpu_device;

typedef struct cpu_queue {
    int threads;
    cpu_pool *pool; /* NULL: there was no memory for it */
} cpu_queue;

/* At the end of backends/cpu/<family>/<op>.c, compiled once per level:
 *     CPU_KERNELS(rms_norm) = { { CPU_NAME, refuse, workspace, launch }, { 0 } };  */
#define CPU_PASTE_(op, level) trine_##op##_cpu_##level
#define CPU_PASTE(op, level) CPU_PASTE_(op, level)
#define CPU_STRING_(x) #x
#define CPU_STRING(x) CPU_STRING_(x)
#define CPU_KERNELS(op) \
    extern const trine_kernel CPU_PASTE(op, CPU_LEVEL)[]; \
    const trine_kernel CPU_PASTE(op, CPU_LEVEL)[]
#define CPU_NAME "cpu_" CPU_STRING(CPU_LEVEL) /* the general kernel of a level: "cpu_v3" */
#define CPU_VARIANT(name) CPU_NAME "_" name   /* another one: "cpu_v3_small" */

static inline const cpu_device *cpu_of(const trine_call *call) { return (const cpu_device *)call->device; }

/* Threads worth using for `tasks` independent tasks that touch `bytes` in all: one per 32 KiB at most, since starting a
 * team costs microseconds;
 * one if the caller is itself in a parallel region of OpenMP. */
enum { CPU_TEAM_BYTES = 32768 };
static inline int cpu_team(const trine_call *call, int64_t tasks, int64_t bytes) {
    int64_t team = ((const cpu_queue *)call->queue)->threads;
    if (team > tasks) team = tasks;
    if (team > bytes / CPU_TEAM_BYTES) team = bytes / CPU_TEAM_BYTES;
    if (team > 1 && call->host->in_parallel()) team = 1;
    if (team < 1) team = 1;
    return (int)team;
}

/* The body for n items on a team, in shares or in turn; results must depend neither on who takes an item nor on how
 * many are taken at a time. A team of one is a plain call. */
static inline void cpu_run(const trine_call *call, int team, int64_t n, bool in_turn, cpu_body *body,
                           const void *context) {
    if (team > 1)
        trine_cpu_pool_run(((const cpu_queue *)call->queue)->pool, team, n, in_turn, body, context);
    else if (n > 0)
        body(context, 0, n, 0);
}
static inline void cpu_shares(const trine_call *call, int team, int64_t n, cpu_body *body, const void *context) {
    cpu_run(call, team, n, false, body, context);
}
static inline void cpu_tasks(const trine_call *call, int team, int64_t n, cpu_body *body, const void *context) {
    cpu_run(call, team, n, true, body, context);
}

/* list.c: calls of a list on all threads, each small one by one of them. */
trine_status trine_cpu_launch_list(const trine_kernel *kernel, trine_call *const *calls, int64_t count,
                                   int64_t *failed_out);

/* Where one thread becomes two, if each element along a dimension stands for so many bytes. */
static inline void cpu_team_edge(trine_kernel_edges *edges, int symbol, int64_t bytes) {
    if (bytes > 0) trine_kernel_edge(edges, symbol, (2 * CPU_TEAM_BYTES + bytes - 1) / bytes);
}

static inline int64_t cpu_round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

#endif
