/* SPDX-License-Identifier: Apache-2.0 */
/* Threads at once, of OpenMP where the build has it. */
#ifndef TRINE_BENCH_TEAM_H
#define TRINE_BENCH_TEAM_H

/* Calls body(data, number, all) on `threads` threads; `all`: how many there are, fewer where no more could be made. The
 * caller's is number 0. */
void bench_team_run(int threads, void (*body)(void *data, int number, int all), void *data);

#endif
