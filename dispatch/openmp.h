/* SPDX-License-Identifier: Apache-2.0 */
/* What an OpenMP runtime of the program says, if it has one: the library neither needs nor starts it. */
#ifndef TRINE_OPENMP_H
#define TRINE_OPENMP_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Looks for a runtime that was loaded since. */
void trine_openmp_find(void);

/* Is the calling thread in a parallel region? */
bool trine_openmp_in_parallel(void);

/* The CPUs of all places, which OMP_PLACES and OMP_PROC_BIND give; false if there are none. */
bool trine_openmp_cpus(cpu_set_t *set, size_t size);

#endif
