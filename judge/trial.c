/* SPDX-License-Identifier: Apache-2.0 */
/* The trial: the kernel and trine's run the same calls by turns, each in a process of its own.
 *
 * A round is a number of calls on as many sets of tensors, whose inputs are drawn anew and put where those of the round
 * before were. This process has the clock, and when a round has ended it computes what each output must be: no process
 * of a kernel has it at any time. While one of them runs the other is stopped. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "check/compare.h"
#include "judge.h"
#include "child.h"

enum { MOST_SETS = 4096, LEAST_SETS = 4, DRAWS = 2, WITNESS = 4096 };
enum { LOAD = 'l', RUN = 'r', STORE = 's', DONE = 'd', REFUSED = 'n', FAILED = 'f' };

/* What a case with more operations has drawn anew only once in so many rounds: the reference takes its time. */
static const double costly = 5e7;
enum { SELDOM = 4 };

/* What all three share besides tensors. A kernel may write to all of it: this process takes nothing from it on
 * trust. */
typedef struct common {
    int draw[MOST_SETS];
    char text[2][320];              /* of trine's side, and of the kernel's */
    unsigned char witness[WITNESS]; /* of the last set's first output, as it was when the round ended */
} common;

/* Where everything is, in this process's own memory: inputs of the draws, which draw each set has, and outputs. */
typedef struct board {
    common *common;
    int sets, draw[MOST_SETS];
    unsigned char *input[DRAWS][TRINE_MAX_TENSORS];
    unsigned char *output[TRINE_MAX_TENSORS]; /* of all sets, one behind the other */
    size_t bytes[TRINE_MAX_TENSORS];          /* of a tensor */
    size_t size;                              /* of the memory that is shared */
    /* outputs of each side that were held against the reference of a draw, or NULL: the same bits need not be again */
    unsigned char *held[2][DRAWS][TRINE_MAX_TENSORS];
} board;

static char *text_of(const board *b, bool judged) {
    char *const text = b->common->text[judged];
    text[sizeof b->common->text[0] - 1] = 0;
    return text;
}

/* A process with a kernel. */
typedef struct side {
    const judge_options *options;
    const trine_case *c;
    board *board;
    bool judged;
    pid_t process;
    int ask, answer;
} side;

static bool has(const trine_case *c, int tensor, uint32_t flag) {
    return (c->present >> tensor & 1) && c->plan->tensor[tensor].spec->flags & flag;
}

/* ------------------------------------------------------------------------------------------------ the kernel's side */

typedef struct stand {
    trine *lib;
    trine_queue *queue;
    trine_case *set;
    unsigned char *poison;
} stand;

static bool open_queue(const side *s, stand *t) {
    char backends[64];
    const judge_options *o = s->options;
    const int length = judge_backend_length(o->device);
    snprintf(backends, sizeof backends, "%.*s,judge_%.*s", length, o->device, length, o->device);
    const trine_options options = { .struct_size = sizeof options,
                                    .backends = s->judged ? backends : NULL,
                                    .plugin_path = s->judged ? o->directory : NULL };
    const trine_queue_options queue = { .struct_size = sizeof queue,
                                        .threads = (int32_t)o->threads,
                                        .kernel = s->judged ? JUDGE_KERNEL : NULL };
    return trine_open(&options, &t->lib) == TRINE_OK &&
           trine_queue_open(t->lib, trine_device_find(t->lib, o->device), &queue, &t->queue) == TRINE_OK;
}

/* The sets' tensors, and workspace. False, with the reason, if the kernel does not take the call. */
static bool make_sets(const side *s, stand *t) {
    static trine_explanation why;
    size_t most = 1, workspace = 0;
    trine_case first = *s->c;
    trine_case_link(&first);
    if (trine_explain(t->queue, s->c->plan->op, first.args, &why) != TRINE_OK) return false;
    snprintf(text_of(s->board, s->judged), sizeof s->board->common->text[0], "%s",
             why.chosen >= 0 ? why.candidate[why.chosen].kernel : "");
    for (int i = 0; why.chosen < 0 && i < why.count; i++)
        if (!s->judged || strcmp(why.candidate[i].kernel, JUDGE_KERNEL) == 0)
            snprintf(text_of(s->board, s->judged), sizeof s->board->common->text[0], "%s", why.candidate[i].refused);
    if (why.chosen < 0 || (t->set = calloc((size_t)s->board->sets, sizeof *t->set)) == NULL) return false;
    for (int k = 0; k < s->board->sets; k++) {
        t->set[k] = *s->c;
        trine_case_link(&t->set[k]);
        for (int i = 0; i < s->c->plan->tensors; i++)
            if (has(s->c, i, IN | OUT) &&
                trine_memory_alloc(t->queue, s->board->bytes[i] + 1, &t->set[k].tensor[i].data) != TRINE_OK)
                return false;
    }
    for (int i = 0; i < s->c->plan->tensors; i++)
        if (s->board->bytes[i] > most) most = s->board->bytes[i];
    if ((t->poison = malloc(most)) != NULL) memset(t->poison, 0xff, most);
    return t->poison != NULL && trine_workspace(t->queue, s->c->plan->op, t->set[0].args, &workspace) == TRINE_OK &&
           trine_queue_reserve(t->queue, workspace) == TRINE_OK;
}

static bool load(const side *s, const stand *t) {
    bool ok = true;
    for (int k = 0; k < s->board->sets; k++)
        for (int i = 0; ok && i < s->c->plan->tensors; i++)
            if (has(s->c, i, IN | OUT) && s->board->bytes[i] > 0)
                ok = trine_memory_write(t->queue, t->set[k].tensor[i].data,
                                        has(s->c, i, IN) ? s->board->input[s->board->common->draw[k]][i] : t->poison,
                                        s->board->bytes[i]) == TRINE_OK;
    return ok;
}

static int first_output(const trine_case *c) {
    int i = 0;
    while (!has(c, i, OUT)) i++;
    return i;
}

static size_t witness_bytes(const board *b, const trine_case *c) {
    const size_t bytes = b->bytes[first_output(c)];
    return bytes < WITNESS ? bytes : WITNESS;
}

static bool run(const side *s, const stand *t) {
    const int last = s->board->sets - 1, i = first_output(s->c);
    bool ok = true;
    for (int k = 0; ok && k <= last; k++) ok = trine_run(t->queue, s->c->plan->op, t->set[k].args) == TRINE_OK;
    return ok && trine_queue_wait(t->queue) == TRINE_OK &&
           trine_memory_read(t->queue, s->board->common->witness, t->set[last].tensor[i].data,
                             witness_bytes(s->board, s->c)) == TRINE_OK;
}

static bool store(const side *s, const stand *t) {
    bool ok = true;
    for (int k = s->board->sets - 1; k >= 0; k--)
        for (int i = 0; ok && i < s->c->plan->tensors; i++)
            if (has(s->c, i, OUT) && s->board->bytes[i] > 0)
                ok = trine_memory_read(t->queue, s->board->output[i] + (size_t)k * s->board->bytes[i],
                                       t->set[k].tensor[i].data, s->board->bytes[i]) == TRINE_OK;
    return ok;
}

/* Answers until nobody asks. The process's end frees what it has. */
static void serve(const side *s) {
    stand t = { .lib = NULL };
    char word = 0;
    const bool ready = open_queue(s, &t) && make_sets(s, &t);
    if (!ready && text_of(s->board, s->judged)[0] == 0)
        snprintf(text_of(s->board, s->judged), sizeof s->board->common->text[0], "%s", trine_error_message());
    char answer = ready ? DONE : REFUSED;
    while (write(s->answer, &answer, 1) == 1 && ready && read(s->ask, &word, 1) == 1) {
        const bool ok = word == LOAD ? load(s, &t) : word == RUN ? run(s, &t) : store(s, &t);
        if (!ok) snprintf(text_of(s->board, s->judged), sizeof s->board->common->text[0], "%s", trine_error_message());
        answer = ok ? DONE : FAILED;
    }
}

/* ------------------------------------------------------------------------------------------------- the judge's side */

static bool start(side *s, side *other, char *reason, size_t size) {
    int ask[2], answer[2];
    if (pipe(ask) != 0 || pipe(answer) != 0) {
        snprintf(reason, size, "no pipe: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    s->process = fork();
    if (s->process == 0) {
        judge_limit(s->options, 1e6, (double)s->board->size * 3);
        if (other->process > 0) close(other->ask), close(other->answer);
        close(ask[1]), close(answer[0]);
        s->ask = ask[0], s->answer = answer[1];
        serve(s);
        _exit(0);
    }
    close(ask[0]), close(answer[1]);
    s->ask = ask[1], s->answer = answer[0];
    if (s->process > 0) setpgid(s->process, s->process);
    return s->process > 0;
}

/* To the process and all that it has started. */
static void tell(const side *s, int number) {
    if (s->process > 0) kill(-s->process, number);
}

static void stop(side *s) {
    tell(s, SIGKILL);
    if (s->process > 0) waitpid(s->process, NULL, 0);
    if (s->ask > 0) close(s->ask), close(s->answer);
}

/* Waits for the answer; 0, with the reason, if there is none. */
static char hear(side *s, char *reason, size_t size) {
    struct pollfd wait = { .fd = s->answer, .events = POLLIN };
    char answer = 0, words[200];
    int status = 0, ready;
    do ready = poll(&wait, 1, (int)(1e3 * s->options->timeout));
    while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        snprintf(reason, size, "still running after %.0f s", s->options->timeout);
    } else if (read(s->answer, &answer, 1) != 1) {
        answer = 0;
        waitpid(s->process, &status, 0);
        tell(s, SIGKILL);
        s->process = 0;
        judge_end_words(status, words, sizeof words);
        snprintf(reason, size, "%s", words);
    } else if (answer == FAILED) {
        snprintf(reason, size, "%s", text_of(s->board, s->judged));
    }
    return answer;
}

static bool order(side *s, char word, char *reason, size_t size) {
    return write(s->ask, &word, 1) == 1 && hear(s, reason, size) == DONE;
}

static void forget(board *b) {
    for (int k = 0; k < 2 * DRAWS * TRINE_MAX_TENSORS; k++) free((&b->held[0][0][0])[k]);
    memset(b->held, 0, sizeof b->held);
}

/* The outputs of a set against the reference, unless they are those that have been. */
static bool hold_set(const side *s, const problem *draws, int set, char *text, size_t size) {
    board *b = s->board;
    unsigned char **const held = b->held[s->judged][b->draw[set]];
    outcome y = { { NULL } };
    bool known = true;
    for (int i = 0; i < s->c->plan->tensors; i++) {
        if (!has(s->c, i, OUT)) continue;
        y.output[i] = b->output[i] + (size_t)set * b->bytes[i];
        known = known && held[i] != NULL && memcmp(held[i], y.output[i], b->bytes[i]) == 0;
    }
    if (known) return true;
    if (!compare_reference(&draws[b->draw[set]], &y, text, size)) return false;
    for (int i = 0; i < s->c->plan->tensors; i++)
        if (has(s->c, i, OUT) && held[i] == NULL && (held[i] = malloc(b->bytes[i] + 1)) != NULL)
            memcpy(held[i], y.output[i], b->bytes[i]);
    return true;
}

/* The outputs of all sets, and what the last one was when the round had ended. */
static bool hold(const side *s, const problem *draws, char *reason, size_t size) {
    char text[1024];
    const board *b = s->board;
    const int first = first_output(s->c);
    for (int k = 0; k < b->sets; k++)
        if (!hold_set(s, draws, k, text, sizeof text)) {
            snprintf(reason, size, "call %d of %d in a timed round: %s", k + 1, b->sets, text);
            return false;
        }
    if (memcmp(b->common->witness, b->output[first] + (size_t)(b->sets - 1) * b->bytes[first],
               witness_bytes(b, s->c)) == 0)
        return true;
    snprintf(reason, size, "outputs were still being written when the kernel had ended");
    return false;
}

/* One side's part in a round; its seconds a call. */
static bool take_turn(side *s, problem *draws, bool *referred, double *seconds_out, char *reason, size_t size) {
    tell(s, SIGCONT);
    if (!order(s, LOAD, reason, size)) return false;
    const double begin = bench_now();
    if (!order(s, RUN, reason, size)) return false;
    *seconds_out = (bench_now() - begin) / s->board->sets;
    if (!order(s, STORE, reason, size)) return false;
    tell(s, SIGSTOP);
    for (int q = 0; q < DRAWS && !*referred; q++) problem_reference(&draws[q]);
    *referred = true;
    return hold(s, draws, reason, size);
}

/* The values of a round's inputs, and of which draw each set is. */
static bool draw(const judge_options *o, const trine_case *c, int64_t round, board *b, problem *draws) {
    random_state random = random_of(o->seed, "sets", round);
    forget(b);
    for (int q = 0; q < DRAWS; q++) {
        if (!problem_given(&draws[q], c, o->seed, round * DRAWS + q)) {
            if (q > 0) problem_free(&draws[0]);
            return false;
        }
        for (int i = 0; i < c->plan->tensors; i++)
            if (has(c, i, IN)) memcpy(b->input[q][i], draws[q].operand[i].image, b->bytes[i]);
    }
    for (int k = 0; k < b->sets; k++) b->common->draw[k] = b->draw[k] = (int)random_below(&random, DRAWS);
    return true;
}

/* Shared memory with a place for everything. False if there is none. */
static bool make_board(board *b, const trine_case *c, int64_t last_level) {
    size_t bytes[TRINE_MAX_TENSORS] = { 0 }, all = 0, out = 0;
    for (int i = 0; i < c->plan->tensors; i++) {
        if (!has(c, i, IN | OUT)) continue;
        bytes[i] = (size_t)trine_tensor_count(&c->tensor[i]) * trine_dtype_size(c->tensor[i].dtype);
        all += bytes[i];
        out += has(c, i, OUT) ? bytes[i] : 0;
    }
    double sets = ceil(2 * (double)last_level / fmax((double)all, 1));
    sets = sets > MOST_SETS ? MOST_SETS : sets < LEAST_SETS ? LEAST_SETS : sets;
    memset(b, 0, sizeof *b);
    b->sets = (int)sets;
    b->size = sizeof(common) + DRAWS * all + (size_t)sets * out;
    b->common = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->common == MAP_FAILED) return false;
    unsigned char *at = (unsigned char *)(b->common + 1);
    memcpy(b->bytes, bytes, sizeof bytes);
    for (int i = 0; i < c->plan->tensors; i++) {
        for (int q = 0; q < DRAWS; q++, at += bytes[i]) b->input[q][i] = at;
        if (has(c, i, OUT)) b->output[i] = at, at += (size_t)sets * bytes[i];
    }
    return true;
}

static void summarize(judge_trial *trial) {
    trial->median = bench_quantile(trial->judged, JUDGE_ROUNDS, 0.5);
    trial->trine_median = bench_quantile(trial->trine, JUDGE_ROUNDS, 0.5);
    trial->p = bench_mann_whitney(trial->judged, JUDGE_ROUNDS, trial->trine, JUDGE_ROUNDS);
}

/* The rounds, of which the first only warms up, each side by turns the first. */
static bool run_rounds(side *sides, judge_trial *trial, problem *draws, char *reason, size_t size) {
    const judge_options *o = sides[0].options;
    const trine_case *c = sides[0].c;
    const int rounds = trine_plan_flops(c->plan, c->dim) > costly ? SELDOM : 1;
    bool drawn = false, ok = true, referred = false;
    for (int64_t round = 0; ok && round <= JUDGE_ROUNDS; round++) {
        if (round % rounds == 0) {
            for (int q = 0; drawn && q < DRAWS; q++) problem_free(&draws[q]);
            drawn = ok = draw(o, c, round, sides[0].board, draws);
            referred = false;
            if (!ok) snprintf(reason, size, "there are no such values");
        }
        for (int turn = 0; ok && turn < 2; turn++) {
            side *const s = &sides[(turn + round) % 2];
            double seconds;
            ok = take_turn(s, draws, &referred, &seconds, reason, size);
            if (ok && round > 0) (s->judged ? trial->judged : trial->trine)[round - 1] = seconds;
            if (!ok && !s->judged) {
                char text[512];
                snprintf(text, sizeof text, "%s", reason);
                snprintf(reason, size, "trine's own kernel: %s", text);
            }
        }
    }
    for (int q = 0; drawn && q < DRAWS; q++) problem_free(&draws[q]);
    return ok;
}

bool judge_try(const judge_options *options, const trine_case *c, int64_t last_level, judge_trial *trial, char *reason,
               size_t size) {
    static problem draws[DRAWS];
    static board place;
    board *const b = &place;
    memset(trial, 0, sizeof *trial);
    trine_case_text(c, trial->text, sizeof trial->text);
    if (!make_board(b, c, last_level)) {
        snprintf(reason, size, "out of memory");
        return false;
    }
    prctl(PR_SET_DUMPABLE, 0); /* the others cannot read this process's memory */
    side sides[2] = { { .options = options, .c = c, .board = b, .judged = true },
                      { .options = options, .c = c, .board = b } };
    char answer[2] = { 0, 0 };
    for (int k = 0; k < 2; k++) {
        if (!start(&sides[k], &sides[1 - k], reason, size)) break;
        answer[k] = hear(&sides[k], reason, size);
        tell(&sides[k], SIGSTOP);
    }
    trial->calls = b->sets;
    bool ok = answer[0] != 0 && answer[1] != 0;
    if (ok && answer[0] == REFUSED) snprintf(trial->refused, sizeof trial->refused, "%s", text_of(b, true));
    if (ok && answer[1] == REFUSED) snprintf(trial->refused, sizeof trial->refused, "trine: %.300s", text_of(b, false));
    snprintf(trial->ours, sizeof trial->ours, "%.63s", text_of(b, false));
    if (ok && trial->refused[0] == 0) {
        ok = run_rounds(sides, trial, draws, reason, size);
        if (ok) summarize(trial);
    }
    for (int k = 0; k < 2; k++) stop(&sides[k]);
    forget(b);
    munmap(b->common, b->size);
    return ok;
}
