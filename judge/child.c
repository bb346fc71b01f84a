/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with limits, in which the kernel runs. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "judge.h"
#include "child.h"

static void limit(int resource, rlim_t most) {
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) return;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most) most = now.rlim_max;
    now.rlim_cur = now.rlim_max = most;
    setrlimit(resource, &now);
}

void judge_limit(const judge_options *options, double seconds, double bytes) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, (rlim_t)1 << 30);
    limit(RLIMIT_CPU, (rlim_t)(seconds * (double)sysconf(_SC_NPROCESSORS_ONLN)) + 1);
    if (options->memory > 0 && strcmp(options->device, "cpu") == 0)
        limit(RLIMIT_DATA, (rlim_t)((double)options->memory + bytes));
}

void judge_end_words(int status, char *words, size_t size) {
    if (WIFSIGNALED(status))
        snprintf(words, size, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(words, size, "the process exited with status %d", WEXITSTATUS(status));
}

bool judge_apart(const judge_options *options, double seconds, void (*work)(void *context), void *context, char *reason,
                 size_t size) {
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        snprintf(reason, size, "no process could be started: %s", strerror(errno));
        return false;
    }
    if (child == 0) {
        judge_limit(options, seconds, 0);
        work(context);
        fflush(NULL);
        _exit(0);
    }
    setpgid(child, child);
    bool done = false;
    for (double waited = 0; !done && waited < seconds; waited += 0.005) {
        done = waitpid(child, &status, WNOHANG) == child;
        if (!done) usleep(5000);
    }
    kill(-child, SIGKILL); /* and what it has started */
    if (!done) {
        waitpid(child, &status, 0);
        snprintf(reason, size, "still running after %.0f s", seconds);
        return false;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    judge_end_words(status, reason, size);
    return false;
}
