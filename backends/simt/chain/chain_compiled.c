/* SPDX-License-Identifier: Apache-2.0 */
/* Chains that are compiled at run time: how tensors lie, which code that takes, and what was compiled so far. */
#include "chain_compiled.h"

#include <trine/chain.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/simt/core/compile.h"
#include "backends/simt/core/host.h"
#include "chain_launch.h"
#include "spec/chain/parse.h"
#include "spec/chain/shape.h"
#include "spec/number.h"
#include "spec/places/chain.h"

_Static_assert((int)CHAIN_X0 == 0 && (int)CHAIN_Y0 == (int)CHAIN_INPUTS && (int)CHAIN_R0 == (int)CHAIN_ROW_VIEWS &&
                   (int)CHAIN_VIEWS == (int)CHAIN_TENSORS && (int)CHAIN_AROUND == (int)CHAIN_OUTER,
               "the tensors' numbers are their places");

/* ------------------------------------------------------------------------------------------------- how tensors lie */

/* The tensors that the program uses, by set. */
static uint32_t used(const trine_call *call, const chain_program *program) {
    return call->present & ((uint32_t)program->inputs | (uint32_t)program->outputs << CHAIN_INPUTS);
}

/* Elements of a vector: 16 bytes of an output at most, so that a warp's stores have no gaps. */
static int vector_of(const trine_call *call, const chain_program *program) {
    size_t most = 2;
    for (int t = CHAIN_INPUTS; t < CHAIN_ROW_VIEWS; t++)
        if ((used(call, program) >> t & 1) && trine_dtype_size(call->tensor[t].dtype) > most)
            most = trine_dtype_size(call->tensor[t].dtype);
    return (int)(16 / most);
}

/* Are all vectors of so many elements aligned? */
static bool aligned(const trine_call *call, const chain_layout *l, const chain_job *job, int64_t length) {
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        if (l->place[t] != CHAIN_ALONG) continue;
        const int64_t size = (int64_t)trine_dtype_size(call->tensor[t].dtype), bytes = length * size,
                      align = bytes < 16 ? bytes : 16;
        if ((uintptr_t)call->tensor[t].data % (uintptr_t)align != 0) return false;
        for (int d = 0; d < CHAIN_AROUND; d++)
            if (job->stride[t][d] * size % align != 0) return false;
    }
    return true;
}

/* Units that a thread asks for at a time. On an H200 ten steps took 34.3, 33.0 us of f32 by two, by one; of bf16, whose
 * vectors take twice as long to compute, 19.1, 18.2, 18.0, 19.1 by one, two, four, eight. */
static int units_of(const chain_program *program, int length, int inputs) {
    if (length == 4 || length == 2 || program->steps > 24 || inputs > 2) return 1;
    return length == 8 && inputs < 2 ? 4 : 2;
}

/* A unit is 16 bytes of an output at most, as in walks that are built in. */
static void lay_walk(const trine_call *call, const chain_program *program, chain_layout *l, chain_job *job) {
    const uint32_t set = used(call, program);
    const chain_shape shape = chain_shape_of(call->tensor, set, true);
    const int64_t n = shape.n;
    chain_lie(call, set, &shape, l, job);
    int inputs = 0;
    l->length = (uint8_t)vector_of(call, program);
    for (int t = 0; t < CHAIN_INPUTS; t++) inputs += l->place[t] == CHAIN_ALONG;
    if (n < l->length || !aligned(call, l, job, l->length)) l->length = 1;
    l->units = (uint8_t)units_of(program, l->length, inputs);
    l->threads = SIMT_THREADS;
    const int64_t row_units = simt_blocks(n, l->length);
    job->length = l->length;
    job->row_units = simt_divisor_of(row_units);
    job->units = row_units * job->rows;
    job->whole_units = n % l->length == 0 ? job->units : l->outer == 0 ? n / l->length : 0;
}

static const int groups[] = { 8, 32, 64, 128, 256, 512 };
enum { GROUPS = sizeof groups / sizeof groups[0] };

/* Vectors that a thread may hold: of all inputs 128 bytes, and code for so many elements that compiling stays short. */
static int most_vectors(const trine_call *call, const chain_program *program) {
    const int length = vector_of(call, program);
    int bytes = 0, most = (program->wide ? 16 : 32) / length;
    for (int t = 0; t < CHAIN_INPUTS; t++)
        if (program->inputs >> t & 1) bytes += (int)trine_dtype_size(call->tensor[t].dtype) * length;
    while (most > 1 && (most * bytes > 128 || most * length * program->steps > 768)) most /= 2;
    return most;
}

static void lay_rows(const trine_call *call, const chain_program *program, chain_layout *l, chain_job *job) {
    const uint32_t set = used(call, program);
    const chain_shape shape = chain_shape_of(call->tensor, set, false);
    const int most = most_vectors(call, program), length = vector_of(call, program);
    const int64_t n = shape.n;
    chain_lie(call, set, &shape, l, job);
    int g = 0;
    while (g < GROUPS - 1 && (int64_t)groups[g] * most * length < n) g++;
    l->group = (uint16_t)groups[g];
    l->length = (uint8_t)length;
    l->vectors = (uint8_t)most;
    while (l->vectors > 1 && (int64_t)groups[g] * l->vectors / 2 * length >= n) l->vectors /= 2;
    l->pieces = (int64_t)groups[g] * most * length < n;
    l->whole = n % length == 0 && aligned(call, l, job, length);
    l->threads = (uint16_t)(l->group <= 32 ? (int)SIMT_THREADS : l->group);
}

/* The beginning of the first two inputs that are read element by element. */
static simt_ahead_two ahead_of(const trine_call *call, const chain_layout *l) {
    int input[2], count = 0;
    for (int t = 0; t < CHAIN_INPUTS && count < 2; t++)
        if (l->place[t] == CHAIN_ALONG) input[count++] = t;
    if (count == 2) return simt_ahead_of_two(call, input[0], input[1]);
    return (simt_ahead_two){ { count == 1 ? simt_ahead_of(call, input[0]) : (simt_ahead){ NULL, 0, 0 } } };
}

static void lay_out(const trine_call *call, const chain_program *program, chain_layout *l, chain_job *job) {
    memset(l, 0, sizeof *l); /* padding too: layouts are compared by bytes */
    memset(job, 0, sizeof *job);
    job->numbers = chain_constants_of(program);
    if (chain_by_rows(program))
        lay_rows(call, program, l, job);
    else
        lay_walk(call, program, l, job);
    job->ahead = ahead_of(call, l);
}

/* ------------------------------------------------------------------------------------------------------- programs */

/* What was made of a text, or of more of them: numbers are no part of code. */
enum { MOST_CODE = 1 << 12, PLACES = 1 << 14 };

typedef struct compiled {
    simt_compiled code;
    chain_program program; /* without its numbers */
    chain_layout layout;
    const void *device;
} compiled;

/* By hash. Entries only come, under the lock, and are read without it. */
static _Atomic(compiled *) codes[PLACES];
static atomic_int code_count, failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (; size > 0; size--, at++) hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

/* False: it has none, which the check of arguments has told. */
static bool program_of(const trine_call *call, chain_program *out) {
    return trine_chain_program_of(((const trine_chain_args *)call->args)->program,
                                  chain_is_wide(call->tensor, call->present), out, NULL, 0);
}

/* Of the code's program: without its numbers, all bytes that it does not use 0. */
static chain_program without_numbers(const chain_program *program) {
    chain_program p;
    memcpy(&p, program, sizeof p);
    memset(p.constant, 0, sizeof p.constant);
    return p;
}

static uint64_t hash_code(const void *device, const chain_program *program, const chain_layout *layout) {
    const uint64_t hash = hash_bytes((uintptr_t)device, program, sizeof *program);
    return hash_bytes(hash, layout, sizeof *layout);
}

static bool same_code(const compiled *c, const void *device, const chain_program *program, const chain_layout *layout) {
    return c->device == device && memcmp(&c->program, program, sizeof *program) == 0 &&
           memcmp(&c->layout, layout, sizeof *layout) == 0;
}

/* One line for each, as for each call (TRINE_VERBOSE). */
static void tell(const trine_call *call, const compiled *c) {
    const char *verbose = call->host->environment("TRINE_VERBOSE");
    char arch[SIMT_ARCH_SIZE];
    if (verbose == NULL || strcmp(verbose, "0") == 0) return;
    simt_arch_of(call->device, arch);
    if (c->code.why[0])
        trine_fprintf(stderr, "trine: chain: not compiled for %s: %s\n", arch, c->code.why);
    else if (c->code.seconds > 0)
        trine_fprintf(stderr, "trine: chain: compiled for %s by %s in %.3f s: %zu bytes\n", arch,
                      simt_compiler_version(), c->code.seconds, c->code.size);
    else
        trine_fprintf(stderr, "trine: chain: compiled for %s before: %zu bytes\n", arch, c->code.size);
}

static void compile(const trine_call *call, compiled *c) {
    const size_t size = chain_source(&c->program, &c->layout, NULL, 0) + 1;
    char *source = malloc(size);
    if (source == NULL) {
        snprintf(c->code.why, sizeof c->code.why, "out of memory for its source");
        return;
    }
    chain_source(&c->program, &c->layout, source, size);
    simt_compile(call, source, CHAIN_ENTRY, &c->code);
    free(source);
    tell(call, c);
}

static compiled *find_code(unsigned *at, const void *device, const chain_program *program, const chain_layout *layout) {
    compiled *c;
    for (; (c = codes[*at]) != NULL; *at = (*at + 1) & (PLACES - 1))
        if (same_code(c, device, program, layout)) break;
    return c;
}

/* The code for a program on the call's device; NULL: there is none yet, or, if it is to be made, no room for more.
 * Threads that meet a new one take turns. */
static const compiled *code_of(const trine_call *call, const chain_program *program, const chain_layout *layout,
                               bool make) {
    const chain_program plain = without_numbers(program);
    unsigned at = hash_code(call->device, &plain, layout) & (PLACES - 1);
    compiled *c = find_code(&at, call->device, &plain, layout);
    if (c != NULL || !make) return c;
    pthread_mutex_lock(&lock);
    c = find_code(&at, call->device, &plain, layout);
    if (c == NULL && code_count < MOST_CODE && (c = calloc(1, sizeof *c)) != NULL) {
        memcpy(&c->program, &plain, sizeof plain);
        c->layout = *layout;
        c->device = call->device;
        compile(call, c);
        failures += c->code.why[0] != 0;
        code_count++;
        codes[at] = c;
    }
    pthread_mutex_unlock(&lock);
    return c;
}

/* -------------------------------------------------------------------------------------------------------- kernel */

/* A program that could not be compiled has failed once, with the compiler's words; from then on another kernel runs
 * it. */
const char *chain_compiled_refuse(const trine_call *call) {
    chain_program program;
    chain_layout layout;
    chain_job job;
    const char *missing = simt_compiler_missing(call);
    if (missing != NULL) return missing;
    if (call->empty || (failures == 0 && code_count < MOST_CODE)) return NULL;
    if (!program_of(call, &program)) return "its program cannot be read";
    lay_out(call, &program, &layout, &job);
    const compiled *c = code_of(call, &program, &layout, false);
    if (c == NULL) return code_count < MOST_CODE ? NULL : "this process has compiled as many programs as it keeps";
    return c->code.why[0] ? c->code.why : NULL;
}

static int64_t blocks_of(const chain_program *program, const chain_layout *l, const chain_job *job) {
    (void)program;
    return l->group == 0 ? simt_blocks(job->units, (int64_t)l->threads * l->units)
                         : simt_blocks(job->rows, l->threads / l->group);
}

static trine_status launch_code(const trine_call *call, const chain_program *program, const chain_layout *layout,
                                int64_t blocks, const void *params) {
    const char *op = call->plan->spec->name;
    const compiled *c = code_of(call, program, layout, true);
    if (c == NULL) return call->host->error(TRINE_ERR_MEMORY, "%s: no room for another compiled program", op);
    if (c->code.why[0]) return call->host->error(TRINE_ERR_DEVICE, "%s: %s", op, c->code.why);
    return simt_launch_compiled(call, &c->code, blocks, layout->threads, params);
}

trine_status chain_compiled_launch(const trine_call *call) {
    chain_program program;
    chain_layout layout;
    chain_job job;
    if (!program_of(call, &program))
        return call->host->error(TRINE_ERR_INTERNAL, "%s: its program cannot be read", call->plan->spec->name);
    lay_out(call, &program, &layout, &job);
    return launch_code(call, &program, &layout, blocks_of(&program, &layout, &job), &job);
}

static trine_status launch_many(const trine_call *call, const chain_program *program, const chain_layout *layout,
                                const chain_calls *list, int64_t blocks) {
    chain_layout of_many = *layout;
    chain_list_job job = { .numbers = chain_constants_of(program), .list = *list };
    of_many.many = true;
    return launch_code(call, program, &of_many, blocks, &job);
}

trine_status chain_compiled_launch_list(trine_call *const *calls, int64_t count) {
    static const chain_list_kernel kernel = { lay_out, blocks_of, chain_compiled_launch, launch_many };
    return chain_launch_list(&kernel, calls, count);
}

void chain_compiled_edges(const trine_call *call, trine_kernel_edges *edges) {
    chain_program program;
    if (!program_of(call, &program)) return;
    const int most = most_vectors(call, &program), length = vector_of(call, &program);
    trine_kernel_edge(edges, CHAIN_DIM_N, length);
    for (int g = 0; chain_by_rows(&program) && g < GROUPS; g++)
        trine_kernel_edge(edges, CHAIN_DIM_N, (int64_t)groups[g] * most * length);
    const int units = units_of(&program, length, __builtin_popcount(program.inputs));
    if (!chain_by_rows(&program)) trine_kernel_edge(edges, CHAIN_DIM_N, (int64_t)SIMT_THREADS * units * length);
}
