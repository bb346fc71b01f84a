/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an OpenMP runtime of its own: calls from its parallel regions, and threads that it binds. */
#include <omp.h>
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trine/trine.h>

#include "tap.h"

enum { N = 1 << 20, TEAM = 3 };

static float x[N], y[TEAM][N];

/* Threads of the library in this process. */
static int threads_made(void) {
    DIR *folder = opendir("/proc/self/task");
    int threads = 0;
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[320], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(name, sizeof name, file) != NULL) threads += strcmp(name, "trine\n") == 0;
        if (file != NULL) fclose(file);
    }
    if (folder != NULL) closedir(folder);
    return threads;
}

static bool scale(trine *lib, float *to) {
    trine_queue *queue;
    const trine_tensor from = trine_tensor_1d(x, TRINE_F32, N), t = trine_tensor_1d(to, TRINE_F32, N);
    if (trine_queue_open(lib, 0, &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .threads = 2 },
                         &queue) != TRINE_OK)
        return false;
    const trine_status status =
        trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &from, .y = &t, .alpha = 1.1f });
    trine_queue_close(queue);
    return status == TRINE_OK;
}

/* Its threads are bound to a CPU each by now, but the library has all of them. */
static int bound(const char *units) {
    trine *lib;
    trine_device_info_t info;
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    if (!tap(trine_open(NULL, &lib) == TRINE_OK && trine_device_info(lib, 0, &info) == TRINE_OK, "opened: %s",
             trine_error_message()))
        return tap_end();
    tap(info.units == atoi(units), "%d of %s cores where the first thread is bound to %d CPU(s)", info.units, units,
        CPU_COUNT(&set));
    trine_close(lib);
    return tap_end();
}

int main(int argc, char **argv) {
    alarm(120);
    if (argc > 1) return bound(argv[1]);
    trine *lib;
    trine_device_info_t info;
    int good = 0;
    for (int i = 0; i < N; i++) x[i] = (float)(i % 1000);
    if (trine_open(NULL, &lib) != TRINE_OK || trine_device_info(lib, 0, &info) != TRINE_OK) return 1;
#pragma omp parallel num_threads(TEAM) reduction(+ : good)
    good += scale(lib, y[omp_get_thread_num()]);
    const int inside = threads_made();
    const bool outside = scale(lib, y[0]);
    const bool right = good == TEAM && inside == 0 && outside && memcmp(y[0], y[1], sizeof y[0]) == 0 &&
                       memcmp(y[0], y[2], sizeof y[0]) == 0;
    printf("# in a parallel region %d calls succeed and make %d threads; outside %d\n", good, inside, threads_made());
    fflush(stdout);
    trine_close(lib);
    if (!right) {
        tap(false, "calls from a parallel region run on their own thread, with the same bits");
        return tap_end();
    }
    char units[16];
    snprintf(units, sizeof units, "%d", info.units);
    setenv("OMP_PROC_BIND", "true", 1);
    execv(argv[0], (char *[]){ argv[0], units, NULL });
    return 1;
}
