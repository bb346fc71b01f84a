/* SPDX-License-Identifier: Apache-2.0 */
/* Threads at once. */
#include "team.h"

#ifdef _OPENMP
#include <omp.h>

void bench_team_run(int threads, void (*body)(void *data, int number, int all), void *data) {
#pragma omp parallel num_threads(threads)
    body(data, omp_get_thread_num(), omp_get_num_threads());
}
#else
#include <pthread.h>
#include <stdlib.h>

typedef struct member {
    pthread_t thread;
    void (*body)(void *data, int number, int all);
    void *data;
    const int *all; /* 0 until the last has been made */
    int number;
} member;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t made = PTHREAD_COND_INITIALIZER;

static void *member_main(void *argument) {
    const member *m = argument;
    pthread_mutex_lock(&lock);
    while (*m->all == 0) pthread_cond_wait(&made, &lock);
    pthread_mutex_unlock(&lock);
    m->body(m->data, m->number, *m->all);
    return NULL;
}

void bench_team_run(int threads, void (*body)(void *data, int number, int all), void *data) {
    member *others = threads > 1 ? calloc((size_t)threads, sizeof *others) : NULL;
    int all = 0, count = 1;
    for (; others != NULL && count < threads; count++) {
        others[count] = (member){ .body = body, .data = data, .all = &all, .number = count };
        if (pthread_create(&others[count].thread, NULL, member_main, &others[count]) != 0) break;
    }
    pthread_mutex_lock(&lock);
    all = count;
    pthread_cond_broadcast(&made);
    pthread_mutex_unlock(&lock);
    body(data, 0, count);
    for (int i = 1; i < count; i++) pthread_join(others[i].thread, NULL);
    free(others);
}
#endif
