/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that find each other by memory which they had before they were forked. */
#include "ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4096 }; /* bytes that a rank gathers at most */

/* What all ranks have mapped. */
typedef struct meeting {
    int ranks;
    _Atomic int arrived, failed;
    char bytes[TRINE_MAX_RANKS][ROOM];
} meeting;

typedef struct member {
    meeting *all;
    int rank, waits; /* how often it has waited */
} member;

/* Until all have come as often; false if one has ended before. */
static bool wait_for_all(member *m) {
    const int least = ++m->waits * m->all->ranks;
    atomic_fetch_add(&m->all->arrived, 1);
    while (atomic_load(&m->all->arrived) < least) {
        if (atomic_load(&m->all->failed)) return false;
        usleep(200);
    }
    return true;
}

static int gather(void *context, const void *mine, void *all, size_t bytes) {
    member *m = context;
    if (bytes > ROOM) return E2BIG;
    memcpy(m->all->bytes[m->rank], mine, bytes);
    if (!wait_for_all(m)) return ESRCH;
    for (int r = 0; r < m->all->ranks; r++) memcpy((char *)all + (size_t)r * bytes, m->all->bytes[r], bytes);
    return wait_for_all(m) ? 0 : ESRCH;
}

static void live(meeting *all, int rank, gpt_life *life, void *context, pid_t parent) {
    member m = { .all = all, .rank = rank };
    const trine_bootstrap bootstrap = { gather, &m };
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody would wait for it */
    if (getppid() != parent) _exit(1);
    exit(life(context, rank, &bootstrap));
}

/* Those that have not ended; 0: a place of one that has. A signal to this process is for all of them. */
static pid_t running[TRINE_MAX_RANKS];
static void pass_on(int signal_number) {
    for (int i = 0; i < TRINE_MAX_RANKS; i++)
        if (running[i] > 0) kill(running[i], signal_number);
}

static void has_ended(pid_t pid) {
    for (int i = 0; i < TRINE_MAX_RANKS; i++)
        if (running[i] == pid) running[i] = 0;
}

/* The status of a process that has ended, as a shell has it. */
static int status_of(int ended) { return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended); }

int gpt_ranks_run(int ranks, gpt_life *life, void *context) {
    const pid_t parent = getpid();
    int status = 0, started = 0;
    meeting *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return perror("memory of the ranks"), 1;
    all->ranks = ranks;
    fflush(NULL); /* or each of them would print what is left */
    for (pid_t pid = 0; started < ranks && pid >= 0; started += pid > 0) {
        if ((pid = fork()) == 0) live(all, started, life, context, parent);
        running[started] = pid > 0 ? pid : 0;
    }
    void (*const by_int)(int) = signal(SIGINT, pass_on), (*const by_term)(int) = signal(SIGTERM, pass_on);
    if (started < ranks) perror("processes for the ranks"), atomic_store(&all->failed, status = 1);
    while (started > 0) {
        int ended = 0;
        const pid_t pid = wait(&ended);
        if (pid < 0 && errno != EINTR) break;
        if (pid < 0) continue;
        has_ended(pid);
        started--;
        if (status_of(ended) == 0) continue;
        if (status == 0) status = status_of(ended);
        atomic_store(&all->failed, 1);
    }
    signal(SIGINT, by_int);
    signal(SIGTERM, by_term);
    munmap(all, sizeof *all);
    return status;
}
