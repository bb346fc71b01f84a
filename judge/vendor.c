/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that `trine bench --peers` knows, on the calls of the trial. They and trine take turns there; what they
 * take beside the judged kernel follows from what trine's took beside both. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "judge.h"
#include "spec/number.h"

static const char seconds_of_each[] = "0.3";

static bool timed(const judge_trial *t) { return t->refused[0] == 0 && t->median > 0; }

/* The trial's calls as lines of a file. */
static bool write_cases(const judge_options *o, const judge_verdict *v, const char *path) {
    FILE *const file = fopen(path, "w");
    if (file == NULL) return false;
    for (int i = 0; i < v->trials; i++)
        if (timed(&v->trial[i])) fprintf(file, "%s %s\n", trine_op_name(o->op), v->trial[i].text);
    return fclose(file) == 0;
}

static void become_peers(const judge_options *o, const char *cases, int out) {
    char threads[32];
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    snprintf(threads, sizeof threads, "%lld", (long long)o->threads);
    setpgid(0, 0);
    dup2(out, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execl(o->peers, "trine-peers", "--device", o->device, "--cases", cases, "--lines", "--time", seconds_of_each,
          o->threads > 0 ? "--threads" : NULL, threads, (char *)NULL);
    _exit(127);
}

/* What it prints until it ends, or for so many seconds; the length. */
static size_t hear(int from, double seconds, char *text, size_t size) {
    const double end = bench_now() + seconds;
    size_t used = 0;
    while (used + 1 < size) {
        struct pollfd wait = { .fd = from, .events = POLLIN };
        const double left = end - bench_now();
        const int ready = left > 0 ? poll(&wait, 1, (int)(1e3 * left) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) break;
        const ssize_t got = read(from, text + used, size - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    text[used] = 0;
    return used;
}

/* The trial that line `number` of the cases is. */
static judge_trial *trial_number(judge_verdict *v, long number) {
    for (int i = 0; i < v->trials; i++)
        if (timed(&v->trial[i]) && number-- == 0) return &v->trial[i];
    return NULL;
}

/* "number, library, seconds of trine's kernel, seconds of its", with tabs between them. */
static bool take_line(judge_verdict *v, const char *line) {
    judge_peer peer = { "", 0, 0 };
    long number;
    int length = 0;
    if (sscanf(line, "%ld\t%31[^\t]\t%n", &number, peer.name, &length) != 2 || length == 0) return false;
    judge_trial *const t = trial_number(v, number);
    char *end;
    if (t == NULL || t->peers == JUDGE_PEERS) return false;
    peer.trine = trine_strtod(line + length, &end);
    if (*end != '\t') return false;
    peer.seconds = trine_strtod(end + 1, &end);
    if (*end != 0 || !(peer.trine > 0) || !(peer.seconds > 0)) return false;
    t->peer[t->peers++] = peer;
    return true;
}

static bool run_peers(const judge_options *o, judge_verdict *v, const char *cases) {
    static char text[16384];
    int pipes[2], lines = 0, status = 0;
    if (pipe(pipes) != 0) return false;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) become_peers(o, cases, pipes[1]);
    close(pipes[1]);
    if (child > 0) {
        setpgid(child, child); /* here too: which of the two comes first is open */
        hear(pipes[0], o->timeout + 30 * v->trials, text, sizeof text);
        kill(-child, SIGKILL);
        waitpid(child, &status, 0);
    }
    close(pipes[0]);
    for (char *at = text, *end; child > 0 && (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = 0;
        lines += take_line(v, at);
    }
    return lines > 0;
}

void judge_peers(const judge_options *options, judge_verdict *v) {
    char cases[] = "/tmp/trine-judge-cases-XXXXXX";
    int any = 0;
    for (int i = 0; i < v->trials; i++) any += timed(&v->trial[i]);
    if (any == 0) return;
    if (options->peers == NULL) {
        snprintf(
            v->alone, sizeof v->alone,
            "there is no trine-peers beside this program, which times other libraries where it was built with some");
        return;
    }
    const int file = mkstemp(cases);
    if (file < 0) {
        snprintf(v->alone, sizeof v->alone, "no file in /tmp: %s", strerror(errno));
        return;
    }
    close(file);
    if (!write_cases(options, v, cases))
        snprintf(v->alone, sizeof v->alone, "%s: %s", cases, strerror(errno));
    else if (!run_peers(options, v, cases))
        snprintf(v->alone, sizeof v->alone,
                 "none of the libraries that trine bench --peers has here takes these calls");
    unlink(cases);
}
