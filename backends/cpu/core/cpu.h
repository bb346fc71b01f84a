/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the CPU backend share: their list, their threads, their cache sizes. */
#ifndef TRINE_CPU_H
#define TRINE_CPU_H

#include <omp.h>

#include "backends/backend.h"

typedef struct cpu_device {
    int threads;        /* physical cores of the process's cpuset */
    int64_t l1, l2, l3; /* bytes; L1d and L2 of one core */
} cpu_device;

typedef struct cpu_queue {
    int threads;
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

/* 1 in a process forked from one that used the library: OpenMP's threads are gone there. */
extern int trine_cpu_forked;

static inline const cpu_device *cpu_of(const trine_call *call) { return (const cpu_device *)call->device; }

/* Threads worth using for `tasks` independent tasks that touch `bytes` in all: one per 32 KiB at most, since starting a team costs microseconds;
 * one if the caller is itself in a parallel region, or in a forked child. */
static inline int cpu_team(const trine_call *call, int64_t tasks, int64_t bytes) {
    int64_t team = ((const cpu_queue *)call->queue)->threads;
    if (team > tasks) team = tasks;
    if (team > bytes / 32768) team = bytes / 32768;
    if (team < 1 || omp_in_parallel() || trine_cpu_forked) team = 1;
    return (int)team;
}

/* The share [first, last) of `n` items for a thread of a team. */
static inline void cpu_share(int64_t n, int thread, int team, int64_t *first, int64_t *last) {
    *first = n * thread / team;
    *last = n * (thread + 1) / team;
}

/* Runs body(context, thread, team) on every thread of a team. A team of one is a plain call: entering a parallel region costs most of a
 * microsecond even then. */
static inline void cpu_parallel(int team, void (*body)(const void *context, int thread, int team), const void *context) {
    if (team == 1) {
        body(context, 0, 1);
        return;
    }
#pragma omp parallel num_threads(team)
    body(context, omp_get_thread_num(), omp_get_num_threads());
}

/* In such a body, whose team of one may be a thread of the caller's own team: waits for the team; and takes the next of its tasks. */
static inline void cpu_barrier(int team) {
    if (team == 1) return;
#pragma omp barrier
}
static inline int64_t cpu_take(int64_t *next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }

static inline int64_t cpu_round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

#endif
