/* SPDX-License-Identifier: Apache-2.0 */
/* trine-peers: other libraries on the specification's cases, beside trine in the same run. */
#include <locale.h>
#include <string.h>

#include "bench/bench.h"
#include "peers.h"
#include "tools/options.h"

static const peer *const peers[] = {
#ifdef PEER_OPENBLAS
    &peer_openblas,
#endif
#ifdef PEER_ONEDNN
    &peer_onednn,
#endif
#ifdef PEER_CUBLASLT
    &peer_cublaslt,
#endif
#ifdef PEER_CUDNN
    &peer_cudnn,
#endif
};

enum { PEERS = sizeof peers / sizeof peers[0], ROUNDS = 5 };

/* Is `name` a word of `list`? */
static bool word_of(const char *name, const char *list) {
    for (const char *at = list; *at;) {
        const size_t length = strcspn(at, " ");
        if (strlen(name) == length && memcmp(name, at, length) == 0) return true;
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

bool peer_plain(const trine_case *c, const char *params, const char *tensors) {
    for (int i = 0; i < c->plan->params; i++)
        if ((c->set >> i & 1) && !word_of(c->plan->spec->params[i].name, params)) return false;
    for (int i = 0; i < c->plan->tensors; i++)
        if ((c->present >> i & 1) && (c->plan->tensor[i].spec->flags & OPTIONAL) &&
            !word_of(c->plan->tensor[i].spec->name, tensors))
            return false;
    return true;
}

typedef struct turn {
    const peer *peer;
    void *state;
    const bench_sets *sets;
} turn;

static bool call_peer(void *context, int64_t i) {
    const turn *t = context;
    return t->peer->call(t->state, &t->sets->set[i % t->sets->count]);
}

static bool finish_peer(void *context) {
    const turn *t = context;
    return t->peer->finish == NULL || t->peer->finish(t->state);
}

/* Does a peer work on a device of ours? "cuda" does on "cuda:0". */
static bool works_on(const peer *p, const char *device) {
    const size_t length = strlen(p->device);
    return strncmp(p->device, device, length) == 0 && (device[length] == 0 || device[length] == ':');
}

/* Seconds of a call in each round; 0: it fails. */
typedef struct rounds {
    double seconds[ROUNDS];
} rounds;

/* Each library in its turn, trine first, round after round: what a machine's clock does meanwhile, it does to all of
 * them. */
static void take_turns(bench_sets *sets, void *const *state, const bench_plan *plan, rounds *ours, rounds *theirs) {
    static bench_result result;
    bench_plan part = *plan;
    part.seconds /= ROUNDS;
    for (int round = 0; round < ROUNDS; round++) {
        ours->seconds[round] = bench_time_sets(sets, &part, &result) ? result.median : 0;
        for (int i = 0; i < PEERS; i++) {
            turn t = { peers[i], state[i], sets };
            theirs[i].seconds[round] =
                state[i] && bench_time(call_peer, finish_peer, &t, &part, &result) ? result.median : 0;
        }
    }
}

static double median(const rounds *r) { return bench_quantile(r->seconds, ROUNDS, 0.5); }

/* The median of the rounds' ratios. */
static double ratio(const rounds *theirs, const rounds *ours) {
    rounds each;
    for (int i = 0; i < ROUNDS; i++) each.seconds[i] = theirs->seconds[i] / ours->seconds[i];
    return median(&each);
}

static void print_cell(const bench_result *work, double seconds) {
    if (seconds == 0)
        printf(" %17s", "-");
    else if (work->flops / work->bytes > 16)
        printf(" %9.1f GFLOP/s", work->flops / seconds / 1e9);
    else
        printf(" %12.1f GB/s", work->bytes / seconds / 1e9);
}

static void print_row(const bench_result *work, const rounds *ours, const rounds *theirs) {
    print_cell(work, median(ours));
    for (int i = 0; i < PEERS; i++) {
        print_cell(work, median(&theirs[i]));
        if (median(&theirs[i]) > 0 && median(ours) > 0)
            printf(" (%.2f)", ratio(&theirs[i], ours));
        else
            printf("       ");
    }
    putchar('\n');
}

/* A line of each library for programs: the case's number, the library's name, the seconds of a call of trine, its
 * own. */
static void print_lines(int number, const rounds *ours, const rounds *theirs) {
    for (int i = 0; i < PEERS; i++)
        if (median(ours) > 0 && median(&theirs[i]) > 0)
            printf("%d\t%s\t%.9g\t%.9g\n", number, peers[i]->name, median(ours),
                   median(ours) * ratio(&theirs[i], ours));
    fflush(stdout);
}

/* Does a peer take the case? If so, a line of it; number: of the case, for programs, or -1. */
static bool compare(trine_queue *queue, const char *device, trine_op op, const char *text, int threads,
                    const bench_plan *plan, int number) {
    static trine_case c;
    static bench_result work;
    char error[320];
    void *state[PEERS];
    bool any = false;
    trine_case_init(&c, op);
    if (!trine_case_parse(&c, text, error, sizeof error) || !trine_case_finish(&c, error, sizeof error)) {
        if (number < 0) printf("%-18s %.*s: %s\n", c.plan->spec->name, (int)strcspn(text, ":"), text, error);
        return true;
    }
    for (int i = 0; i < PEERS; i++)
        any |= (state[i] = works_on(peers[i], device) ? peers[i]->open(&c, threads) : NULL) != NULL;
    if (!any) return false;
    if (number < 0) printf("%-18s %-26.*s", c.plan->spec->name, (int)strcspn(text, ":"), text);
    bench_sets sets;
    rounds ours = { 0 }, theirs[PEERS] = { 0 };
    bench_work(&c, &work);
    if (bench_sets_make(&sets, &c, queue, plan, error, sizeof error)) {
        take_turns(&sets, state, plan, &ours, theirs);
        bench_sets_free(&sets);
    }
    if (number >= 0)
        print_lines(number, &ours, theirs);
    else
        print_row(&work, &ours, theirs);
    for (int i = 0; i < PEERS; i++)
        if (state[i]) peers[i]->close(state[i]);
    fflush(stdout);
    return true;
}

/* What a call costs the host beside a launch that does nothing: of an op with one element, whose arguments are many. */
static int compare_launch(trine_queue *queue) {
    double bare = -1, empty, tiny, workspace;
#ifdef PEER_CUBLASLT
    bare = peer_launch_nanoseconds();
#endif
    if (bare < 0) return failure("there is no launch to compare with");
    if (!bench_dispatch(queue, &empty, &tiny, &workspace)) return failure("%s", trine_error_message());
    printf("a bare cuLaunchKernel: %.0f ns; a call of rms_norm with one element: %.0f ns, %.2f x and %.0f ns more; "
           "without the launch: %.0f ns\n",
           bare, tiny, tiny / bare, tiny - bare, empty);
    return 0;
}

typedef struct run {
    trine_queue *queue;
    const char *device, *op;
    int threads, alone, cases;
    bool lines;
    bench_plan plan;
} run;

static void compare_one(void *context, trine_op op, const char *text) {
    run *r = context;
    if (r->op == NULL || strcmp(r->op, trine_op_name(op)) == 0)
        r->alone += !compare(r->queue, r->device, op, text, r->threads, &r->plan, r->lines ? r->cases : -1);
    r->cases++;
}

static void compare_specified(run *r) {
    for (int op = 1; op < TRINE_OP_COUNT; op++)
        for (int i = 0; i < TRINE_MAX_STRINGS && trine_specs[op]->cases[i]; i++)
            compare_one(r, (trine_op)op, trine_specs[op]->cases[i]);
}

int main(int argc, char **argv) {
    setlocale(LC_NUMERIC, "C"); /* what is preloaded may have taken another */
    int64_t threads = 0;
    bool launch = false, lines = false;
    const char *device = "cpu", *op = NULL, *cases = NULL;
    bench_plan plan = { .seconds = 0.5 };
    const option_row rows[] = {
        OPTION_TEXT("device", &device, "NAME", "the device (default: cpu)"),
        OPTION_INTEGER("threads", &threads, 1, 4096, "N", "threads of every library (default: all cores)"),
        OPTION_NUMBER("time", &plan.seconds, 0.001, 3600, "SECONDS", "time for each library on a case (default: 0.5)"),
        OPTION_TEXT("op", &op, "NAME", "only this op"),
        OPTION_TEXT("cases", &cases, "FILE",
                    "these cases, an op and a case on each line, instead of the specification's"),
        OPTION_FLAG("lines", &lines,
                    "for programs: a line for each case and library with tabs between the case's number, the "
                    "library's name, trine's seconds and its own"),
        OPTION_FLAG("launch", &launch, "only compare what a call costs the host with a bare launch, on a CUDA device"),
        { 0 },
    };
    const option_set set = { "trine-peers [options]",
                             "Times OpenBLAS, oneDNN, cuBLASLt and cuDNN on the specification's cases, beside trine, "
                             "in turns. In parentheses: how many times faster trine is.",
                             rows };
    const int words = options_parse(&set, argc, argv, NULL, 0);
    if (words < 0) return options_status(words);
    trine *lib;
    trine_queue *queue;
    trine_device_info_t info;
    const trine_queue_options options = { .struct_size = sizeof options, .threads = (int32_t)threads };
    if (trine_open(NULL, &lib) != TRINE_OK) return failure("%s", trine_error_message());
    const int number = trine_device_find(lib, device);
    if (number < 0) return failure("there is no device \"%s\"", device);
    if (trine_queue_open(lib, number, &options, &queue) != TRINE_OK ||
        trine_device_info(lib, number, &info) != TRINE_OK)
        return failure("%s", trine_error_message());
    if (threads == 0) threads = info.units;
    plan.last_level = info.cache[2];
    plan.memory = info.memory / 4;
    const bool cpu = strcmp(info.name, "cpu") == 0;
    if (!cpu) plan.batch = 5e-3;
    if (launch) return compare_launch(queue);
    if (!lines) {
        printf("%s, %s, %d %s\n%-18s %-26s %17s", info.model, info.arch, (int)threads, cpu ? "threads" : "units", "op",
               "case", "trine");
        for (int i = 0; i < PEERS; i++) printf(" %17s       ", peers[i]->name);
        putchar('\n');
    }
    run all = { .queue = queue, .device = device, .op = op, .threads = (int)threads, .lines = lines, .plan = plan };
    char error[320];
    int status = 0;
    if (cases == NULL)
        compare_specified(&all);
    else if (!bench_read_cases(cases, compare_one, &all, error, sizeof error))
        status = failure("%s", error);
    if (all.alone > 0 && !lines) printf("cases that none of these libraries takes: %d\n", all.alone);
    trine_queue_close(queue);
    trine_close(lib);
    return status;
}
