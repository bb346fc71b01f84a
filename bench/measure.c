/* SPDX-License-Identifier: Apache-2.0 */
/* Times calls: sets of fresh tensors in rotation, samples until the time is spent, quartiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { FEWEST_SAMPLES = 5, MOST_CALLS = 1 << 16, MOST_SETS = 4096, STAGE = 4 << 20 };

/* ---------------------------------------------------------------------------------------------------------- filling */

static uint32_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

/* The value of symbol `name` of a fill "ids v", "places v" or the like, 1 if there is none. */
static int64_t fill_symbol(const trine_case *c, const char *fill) {
    const char *space = strchr(fill, ' ');
    const int symbol = space ? trine_plan_find_symbol(c->plan, space + 1) : -1;
    return symbol < 0 ? 1 : c->dim[symbol];
}

/* What each of `count` sequences has, of a fill "lengths SIZE TENSOR". */
static int64_t whole_length(const trine_case *c, const char *fill, int64_t count) {
    char offsets[64] = "";
    sscanf(fill, "lengths %*63s %63s", offsets);
    const int other = trine_plan_find_tensor(c->plan, offsets);
    const int64_t all = trine_plan_fill_size(c->plan, fill, c->dim);
    return other >= 0 && c->present >> other & 1 && count > 0 ? all / count : all;
}

/* Slot `i` of a fill "slots SIZE": all of them once, in no order, before any comes again. */
static double slot_value(const trine_case *c, const char *fill, int64_t i) {
    enum { PRIME = 1000003 };
    const int64_t all = trine_plan_fill_size(c->plan, fill, c->dim);
    return all > 0 ? (double)(i % all * PRIME % all) : -1;
}

/* Element `i` of a fill "blocks SIZE PARAM": likewise. */
static double block_value(const trine_case *c, const char *fill, int64_t i) {
    enum { PRIME = 1000003 };
    char param[64] = "";
    sscanf(fill, "blocks %*63s %63s", param);
    const int64_t all = trine_plan_fill_size(c->plan, fill, c->dim),
                  size = (int64_t)trine_param_get(c->plan, trine_plan_find_param(c->plan, param), c->args);
    const int64_t blocks = size > 0 ? (all + size - 1) / size : 0;
    return blocks > 0 ? (double)(i % blocks * PRIME % blocks) : -1;
}

/* Element `i` of a fill "lists SYMBOL" whose rows have `row` elements: all lists have the same length. */
static double list_value(const trine_case *c, const char *fill, int64_t i, int64_t row) {
    return row > 1 ? (double)(fill_symbol(c, fill) * (i % row) / (row - 1)) : 0;
}

/* Of a fill "ascending SIZE". */
static double ascending_value(const trine_case *c, const char *fill, int64_t i, int64_t count) {
    return floor((double)trine_plan_fill_size(c->plan, fill, c->dim) * ((double)i + 0.5) / (double)count);
}

/* Is it the place that says what an element is? */
static bool fill_ordered(const char *fill) {
    return fill && (strncmp(fill, "offsets ", 8) == 0 || strncmp(fill, "slots ", 6) == 0 ||
                    strncmp(fill, "ascending ", 10) == 0 || strncmp(fill, "lists ", 6) == 0 ||
                    strncmp(fill, "blocks ", 7) == 0);
}

/* Element `i` of `count`. Derived inputs (statistics of a forward pass) are positive and of size 1: nothing overflows
 * or becomes subnormal, which is all that matters to a time; integers among them bench_derive() makes anew. */
static double fill_value(const trine_case *c, int index, int64_t i, int64_t count, uint64_t *state) {
    const trine_spec_tensor *t = c->plan->tensor[index].spec;
    const trine_tensor *tensor = &c->tensor[index];
    const trine_dtype dtype = tensor->dtype;
    const double unit = next_random(state) * 0x1p-32;
    if (t->fill && (strncmp(t->fill, "ids ", 4) == 0 || strncmp(t->fill, "places ", 7) == 0))
        return floor(unit * (double)fill_symbol(c, t->fill));
    if (t->fill && strncmp(t->fill, "slots ", 6) == 0) return slot_value(c, t->fill, i);
    if (t->fill && strncmp(t->fill, "ascending ", 10) == 0) return ascending_value(c, t->fill, i, count);
    if (t->fill && strcmp(t->fill, "sparse") == 0 && unit < 0.5) return 0;
    if (t->fill && strncmp(t->fill, "blocks ", 7) == 0) return block_value(c, t->fill, i);
    if (t->fill && strncmp(t->fill, "lists ", 6) == 0)
        return list_value(c, t->fill, i, tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1);
    if (t->fill && strncmp(t->fill, "offsets ", 8) == 0)
        return count > 1 ? (double)(fill_symbol(c, t->fill) * i / (count - 1)) : 0;
    if (t->fill && strncmp(t->fill, "lengths ", 8) == 0) return (double)whole_length(c, t->fill, count);
    if (t->fill && (strncmp(t->fill, "positive", 8) == 0 || strcmp(t->fill, "derived") == 0)) return 0.5 + unit;
    if (t->fill && strcmp(t->fill, "decay saved") == 0) return -unit;
    if (t->fill && strcmp(t->fill, "rate saved") == 0) return unit;
    if (t->fill && strcmp(t->fill, "key saved") == 0)
        return (2 * unit - 1) * sqrt(3 / (double)tensor->shape[tensor->rank - 1]);
    if (dtype == TRINE_E8M0) return 0.5 + unit;
    if (dtype >> 8 <= 1) return dtype >> 8 == 1 ? floor(unit * 2) : floor(unit * 255) - 127;
    return 2 * unit - 1;
}

/* Writes a tensor's data: values in order for indices and offsets, else one block of random values over and over, each
 * time begun elsewhere. */
static bool fill_tensor(const trine_case *c, int index, trine_queue *queue, char *memory, size_t bytes,
                        uint64_t *state) {
    const trine_spec_tensor *t = c->plan->tensor[index].spec;
    const trine_dtype dtype = c->tensor[index].dtype;
    const size_t size = trine_dtype_size(dtype);
    const int64_t count = (int64_t)(bytes / size);
    const int64_t block = count < STAGE / 8 ? count : STAGE / 8; /* at most STAGE bytes */
    const bool ordered = fill_ordered(t->fill);
    char *stage = malloc(block ? (size_t)block * size : 1);
    if (stage == NULL) return false;
    bool ok = true;
    for (int64_t at = 0; at < count && ok;) {
        if (at == 0 || ordered)
            for (int64_t i = 0; i < block && at + i < count; i++)
                trine_store(stage, dtype, i, fill_value(c, index, at + i, count, state));
        const int64_t skip = at == 0 || ordered ? 0 : next_random(state) % (uint32_t)block;
        const int64_t length = count - at < block - skip ? count - at : block - skip;
        ok = trine_memory_write(queue, memory + (size_t)at * size, stage + (size_t)skip * size,
                                (size_t)length * size) == TRINE_OK;
        at += length;
    }
    free(stage);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------- sets */

static size_t tensor_bytes(const trine_tensor *t) {
    const int64_t count = trine_tensor_count(t);
    return count < 0 ? SIZE_MAX : (size_t)count * trine_dtype_size(t->dtype);
}

static bool make_set(const bench_sets *sets, trine_case *set, uint64_t *state) {
    for (int i = 0; i < set->plan->tensors; i++) {
        if (!(set->present >> i & 1)) continue;
        const size_t bytes = tensor_bytes(&set->tensor[i]);
        if (trine_memory_alloc(sets->queue, bytes ? bytes : 1, &set->tensor[i].data) != TRINE_OK) return false;
        if (!fill_tensor(set, i, sets->queue, set->tensor[i].data, bytes, state)) return false;
    }
    return bench_derive(set, sets->queue);
}

bool bench_sets_make(bench_sets *sets, const trine_case *c, trine_queue *queue, const bench_plan *plan, char *error,
                     size_t error_size) {
    *sets = (bench_sets){ .c = c, .queue = queue };
    double bytes = 0;
    for (int i = 0; i < c->plan->tensors; i++)
        if (c->present >> i & 1) bytes += (double)tensor_bytes(&c->tensor[i]);
    const double most = (double)plan->memory;
    if (bytes > most) {
        snprintf(error, error_size, "needs %.3g GiB of memory, %.3g may be used", bytes / 0x1p30, most / 0x1p30);
        return false;
    }
    double want = bytes > 0 ? ceil(2 * (double)plan->last_level / bytes) + 1 : 1;
    if (bytes > 2 * (double)plan->last_level) want = 1;
    if (want * bytes > most) want = floor(most / bytes);
    sets->count = want < 1 ? 1 : want > MOST_SETS ? MOST_SETS : (int)want;
    sets->set = calloc((size_t)sets->count, sizeof *sets->set);
    uint64_t state = 1;
    for (int s = 0; sets->set && s < sets->count; s++) {
        sets->set[s] = *c;
        trine_case_link(&sets->set[s]);
        if (make_set(sets, &sets->set[s], &state)) continue;
        snprintf(error, error_size, "%s", trine_error_message());
        bench_sets_free(sets);
        return false;
    }
    if (sets->set == NULL) snprintf(error, error_size, "out of memory");
    return sets->set != NULL;
}

void bench_sets_free(bench_sets *sets) {
    for (int s = 0; sets->set && s < sets->count; s++)
        for (int i = 0; i < TRINE_MAX_TENSORS; i++)
            if (sets->set[s].tensor[i].data) trine_memory_free(sets->queue, sets->set[s].tensor[i].data);
    free(sets->set);
    sets->set = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- timing */

/* A number of calls that are waited for together. */
typedef struct {
    bool (*call)(void *context, int64_t i);
    bool (*finish)(void *context);
    void *context;
    int64_t turn;
    int calls;
} batch;

/* The seconds that a batch takes; negative if a call failed. */
static double time_batch(batch *b) {
    const double start = bench_now();
    for (int i = 0; i < b->calls; i++)
        if (!b->call(b->context, b->turn++)) return -1;
    if (b->finish && !b->finish(b->context)) return -1;
    return bench_now() - start;
}

bool bench_time(bool (*call)(void *context, int64_t i), bool (*finish)(void *context), void *context,
                const bench_plan *plan, bench_result *result) {
    batch b = { call, finish, context, .calls = 1 };
    const double enough = plan->batch > 0 ? plan->batch : 50e-6;
    /* The first call warms up. */
    if (time_batch(&b) < 0) return false;
    for (;; b.calls *= 2) {
        /* Batches grow until one takes so long that reading the clock, and waiting for a device, does not count. */
        for (;; b.calls *= 2) {
            const double seconds = time_batch(&b);
            if (seconds < 0) return false;
            if (seconds >= enough || b.calls >= MOST_CALLS) break;
        }
        result->samples = 0;
        const double begin = bench_now();
        while (result->samples < BENCH_MOST_SAMPLES &&
               (result->samples < FEWEST_SAMPLES || bench_now() - begin < plan->seconds)) {
            const double seconds = time_batch(&b);
            if (seconds < 0) return false;
            result->sample[result->samples++] = seconds / b.calls;
        }
        result->median = bench_quantile(result->sample, result->samples, 0.5);
        /* Where something else held the one that took enough, most take less, and larger ones are measured instead. */
        if (result->median * b.calls >= enough / 2 || b.calls >= MOST_CALLS) break;
    }
    result->batch = b.calls;
    result->low = bench_quantile(result->sample, result->samples, 0.25);
    result->high = bench_quantile(result->sample, result->samples, 0.75);
    return true;
}

static bool run_set(void *context, int64_t i) {
    const bench_sets *sets = context;
    const trine_case *set = &sets->set[i % sets->count];
    return trine_run(sets->queue, set->plan->op, set->args) == TRINE_OK;
}

static bool wait_queue(void *context) { return trine_queue_wait(((const bench_sets *)context)->queue) == TRINE_OK; }

bool bench_time_sets(bench_sets *sets, const bench_plan *plan, bench_result *result) {
    return bench_time(run_set, wait_queue, sets, plan, result) &&
           (plan->meter == NULL || bench_energy(run_set, wait_queue, sets, plan->meter, result));
}

bool bench_case(trine_queue *queue, const trine_case *c, const bench_plan *plan, bench_result *result, char *error,
                size_t error_size) {
    static trine_explanation why;
    bench_sets sets;
    if (trine_explain(queue, c->plan->op, c->args, &why) != TRINE_OK) {
        snprintf(error, error_size, "%s", trine_error_message());
        return false;
    }
    if (why.chosen < 0) {
        snprintf(error, error_size, "no kernel takes it: %s",
                 why.count && why.candidate[0].refused ? why.candidate[0].refused : "there is none");
        return false;
    }
    snprintf(result->op, sizeof result->op, "%s", c->plan->spec->name);
    snprintf(result->kernel, sizeof result->kernel, "%s", why.candidate[why.chosen].kernel);
    trine_case_text(c, result->text, sizeof result->text);
    bench_work(c, result);
    if (!bench_sets_make(&sets, c, queue, plan, error, error_size)) return false;
    result->sets = sets.count;
    const bool ok = bench_time_sets(&sets, plan, result);
    if (!ok) snprintf(error, error_size, "%s", trine_error_message());
    bench_sets_free(&sets);
    return ok;
}

/* --------------------------------------------------------------------------------------------------------- dispatch */

double bench_nanoseconds(bool (*call)(void *context), bool (*finish)(void *context), void *context) {
    enum { CALLS = 256, ROUNDS = 101 }; /* so few that a device's queue takes them without waiting */
    /* seconds: of all rounds but the last, and of a call so slow that one shows it */
    const double longest = 2, slow = 1e-3;
    if (!call(context) || !finish(context)) return -1; /* the first may load code */
    const double begin = bench_now();
    if (!call(context) || !finish(context)) return -1;
    const int calls = bench_now() - begin < slow ? CALLS : 1;
    double round[ROUNDS];
    int rounds = 0;
    do {
        const double start = bench_now();
        for (int i = 0; i < calls; i++)
            if (!call(context)) return -1;
        round[rounds++] = 1e9 * (bench_now() - start) / calls;
        if (!finish(context)) return -1;
    } while (rounds < ROUNDS && bench_now() - begin < longest);
    return bench_quantile(round, rounds, 0.5);
}

typedef struct costed {
    trine_queue *queue;
    trine_op op;
    const void *args;
} costed;

static bool run_costed(void *context) {
    const costed *c = context;
    return trine_run(c->queue, c->op, c->args) == TRINE_OK;
}

static bool ask_workspace(void *context) {
    const costed *c = context;
    size_t bytes;
    return trine_workspace(c->queue, c->op, c->args, &bytes) == TRINE_OK;
}

static bool finish_costed(void *context) { return trine_queue_wait(((const costed *)context)->queue) == TRINE_OK; }

double bench_call_cost(trine_queue *queue, trine_op op, const void *args) {
    costed c = { queue, op, args };
    return bench_nanoseconds(run_costed, finish_costed, &c);
}

bool bench_dispatch(trine_queue *queue, double *empty_out, double *tiny_out, double *workspace_out) {
    void *memory;
    if (trine_memory_alloc(queue, 256, &memory) != TRINE_OK) return false;
    const float one = 1;
    bool ok = trine_memory_write(queue, memory, &one, sizeof one) == TRINE_OK;
    for (int64_t n = 0; n < 2 && ok; n++) {
        const trine_tensor x = trine_tensor_2d(memory, TRINE_F32, n, 1),
                           y = trine_tensor_2d((char *)memory + 128, TRINE_F32, n, 1);
        const trine_rms_norm_args args = { TRINE_ARGS(rms_norm), .x = &x, .y = &y };
        *(n ? tiny_out : empty_out) = bench_call_cost(queue, TRINE_OP_RMS_NORM, &args);
        if (n)
            *workspace_out =
                bench_nanoseconds(ask_workspace, finish_costed, &(costed){ queue, TRINE_OP_RMS_NORM, &args });
        ok = (n ? *tiny_out : *empty_out) >= 0;
    }
    trine_memory_free(queue, memory);
    return ok;
}
