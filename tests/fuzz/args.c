/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: any op with any arguments. The bytes choose sizes, types, strides, parameters and data, mostly valid and
 * then spoilt, so that both the check and what lies behind it are reached. Whatever happens, there is a status with a
 * message that names the op, inputs are as they were, and on an error outputs too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trine/ops.h>

#include "spec/plan.h"

enum { LARGEST = 1 << 16 }; /* bytes of a tensor that is really there */

static trine_queue *queue;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    trine *lib;
    const trine_options options = { .struct_size = sizeof options, .backends = "cpu", .tune_file = "" };
    const trine_queue_options queue_options = { .struct_size = sizeof queue_options, .threads = 1 };
    if (trine_open(&options, &lib) != TRINE_OK || trine_queue_open(lib, 0, &queue_options, &queue) != TRINE_OK) abort();
    return 0;
}

/* The input as a stream; zeros behind its end. */
typedef struct stream {
    const uint8_t *at, *end;
} stream;

static unsigned byte(stream *s) { return s->at < s->end ? *s->at++ : 0; }
static bool once_in(stream *s, unsigned n) { return byte(s) % n == n - 1; }

static int64_t strange(stream *s) {
    static const int64_t values[] = {
        0,    1, -1, 2, -8, INT64_MAX, INT64_MIN, INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 62, INT64_MAX / 2,
        65537
    };
    return values[byte(s) % (sizeof values / sizeof values[0])];
}

/* What the call is made of. */
typedef struct subject {
    const trine_plan *plan;
    int64_t dim[TRINE_MAX_SYMBOLS];
    const trine_dtype *type;
    trine_tensor tensor[TRINE_MAX_TENSORS];
    unsigned char *memory[TRINE_MAX_TENSORS], *copy[TRINE_MAX_TENSORS];
    size_t bytes[TRINE_MAX_TENSORS];
    bool slack[TRINE_MAX_TENSORS]; /* eight bytes more than its extent */
    bool real;                     /* every tensor has its memory: the op may run */
    _Alignas(16) unsigned char args[512];
} subject;

static void choose_sizes(subject *s, stream *in) {
    static const int64_t sizes[] = { 4, 1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 40, 64, 0 };
    for (int i = 0; i < s->plan->symbols; i++) s->dim[i] = sizes[byte(in) % (sizeof sizes / sizeof sizes[0])];
    s->type = s->plan->combo[byte(in) % (unsigned)s->plan->combos];
}

/* The tensor as the table wants it: contiguous, or with a gap behind each row, or transposed; then perhaps spoilt. */
static void make_tensor(subject *s, int index, stream *in) {
    trine_tensor *t = &s->tensor[index];
    const trine_plan_tensor *want = &s->plan->tensor[index];
    int64_t stride = 1;
    *t = (trine_tensor){ .dtype = trine_plan_dtype(s->plan, index, s->type), .rank = want->rank };
    trine_plan_shape(s->plan, index, s->dim, t->shape);
    const unsigned gap = once_in(in, 4) ? byte(in) % 4 : 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (want->spec->flags & BROADCAST && once_in(in, 8)) t->shape[i] = 1;
        t->stride[i] = stride;
        if (__builtin_mul_overflow(stride, t->shape[i] > 0 ? t->shape[i] : 1, &stride)) stride = 1;
        stride += gap;
    }
    if (once_in(in, 8)) *t = trine_tensor_transpose(t);
    if (t->rank > 0 && want->dim[0].optional && t->shape[0] == 1 && once_in(in, 4)) {
        memmove(t->shape, t->shape + 1, sizeof t->shape - sizeof t->shape[0]);
        memmove(t->stride, t->stride + 1, sizeof t->stride - sizeof t->stride[0]);
        t->rank--;
    }
    if (!once_in(in, 16)) return;
    const unsigned place = byte(in) % TRINE_MAX_RANK;
    switch (byte(in) % 5) {
    case 0: t->shape[place] = strange(in); break;
    case 1: t->stride[place] = strange(in); break;
    case 2: t->rank = (int32_t)strange(in); break;
    case 3: t->dtype = (trine_dtype)(byte(in) << 8 | byte(in)); break;
    default: t->shape[place] += (int64_t)(byte(in) % 3) - 1;
    }
}

/* Gives the tensor memory of exactly its extent; false if it is too large or makes no sense. */
static bool make_memory(subject *s, int index, stream *in) {
    trine_tensor *t = &s->tensor[index];
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), count = trine_tensor_count(t);
    __int128 low = 0, high = size;
    if (size == 0 || count < 0) return false;
    for (int i = 0; i < t->rank && count > 0; i++) {
        const __int128 extent = (__int128)t->stride[i] * (t->shape[i] - 1) * size;
        if (extent < 0)
            low += extent;
        else
            high += extent;
        if (high - low > LARGEST) return false;
    }
    if (count == 0) return true;
    s->slack[index] = once_in(in, 16);
    s->bytes[index] = (size_t)(high - low) + (s->slack[index] ? 8 : 0);
    s->memory[index] = malloc(s->bytes[index]);
    s->copy[index] = malloc(s->bytes[index]);
    if (s->memory[index] == NULL || s->copy[index] == NULL) return false;
    const unsigned mode = byte(in) % 4, seed = byte(in);
    for (size_t i = 0; i < s->bytes[index]; i++)
        s->memory[index][i] = mode == 0   ? 0
                              : mode == 1 ? (unsigned char)((i * 167 + seed) * 13 >> 3)
                              : mode == 2 ? (unsigned char)byte(in)
                                          : (i % 4 == 3 ? 0x3f : seed);
    /* integers: small, ids and offsets that may be in range */
    if (mode == 3 && size >= 4 && t->dtype != TRINE_F32 && t->dtype != TRINE_F64)
        for (size_t i = 0; i < s->bytes[index]; i++)
            s->memory[index][i] = i % (size_t)size == 0 ? (unsigned char)(seed % 8 + i / (size_t)size % 4) : 0;
    memcpy(s->copy[index], s->memory[index], s->bytes[index]);
    t->data = s->memory[index] - (int64_t)low;
    return true;
}

/* A text of .values, or its pieces and other characters in any order. */
static void make_text(subject *s, const trine_spec_param *p, stream *in) {
    static char text[2048];
    const size_t length = strlen(p->values);
    const bool whole = !once_in(in, 4);
    size_t used = 0;
    for (unsigned pieces = whole ? 1 : byte(in) % 64; pieces > 0 && length > 0; pieces--) {
        const size_t from = (byte(in) << 8 | byte(in)) % length;
        const char *at = p->values + from;
        while (whole && at > p->values && at[-1] != ' ') at--;
        const size_t most = strcspn(at, " "), take = whole ? most : byte(in) % 8;
        if (used + take + 2 > sizeof text) break;
        memcpy(text + used, at, take < most ? take : most);
        used += take < most ? take : most;
        if (!whole && once_in(in, 4)) text[used++] = (char)(1 + byte(in) % 255);
    }
    text[used] = 0;
    const char *pointer = once_in(in, 32) ? NULL : text;
    memcpy(s->args + p->offset, &pointer, sizeof pointer);
}

static void make_params(subject *s, stream *in) {
    for (int i = 0; i < s->plan->params; i++) {
        const trine_spec_param *p = &s->plan->spec->params[i];
        if (p->kind == TEXT) {
            make_text(s, p, in);
            continue;
        }
        if (p->kind == COMM) continue; /* a pointer to anything but a communicator is undefined, as a queue's is */
        static const double values[] = { 0, 1, -1, 0.5, 2, 0.1, 3, 1e-6, 1e30, -0.0, 7 };
        const double value = values[byte(in) % (sizeof values / sizeof values[0])];
        if (once_in(in, 4))
            trine_param_set(s->plan, i, s->args, p->kind == F32 || (value >= 0 && value < 10) ? value : 0);
        if (once_in(in, 32))
            for (unsigned k = 0; k < 4; k++) s->args[p->offset + k] = (unsigned char)byte(in);
    }
}

static void make_args(subject *s, stream *in) {
    const size_t known = s->plan->spec->args_size;
    size_t struct_size = known;
    s->real = true;
    for (int i = 0; i < s->plan->tensors; i++) {
        const uint32_t flags = s->plan->tensor[i].spec->flags;
        if (flags & OPTIONAL ? !once_in(in, 2) : once_in(in, 128)) continue;
        make_tensor(s, i, in);
        if (flags & OUT && once_in(in, 8)) { /* in place, or something near it */
            const int of = (int)(byte(in) % (unsigned)s->plan->tensors);
            if (s->memory[of] != NULL) {
                s->tensor[i] = s->tensor[of];
                if (s->slack[of]) s->tensor[i].data = (char *)s->tensor[i].data + byte(in) % 9;
            }
        }
        if (s->tensor[i].data == NULL) s->real &= make_memory(s, i, in);
        const trine_tensor *pointer = &s->tensor[i];
        memcpy(s->args + s->plan->tensor[i].spec->offset, &pointer, sizeof pointer);
    }
    make_params(s, in);
    if (once_in(in, 64)) struct_size = byte(in) * 4;
    if (struct_size > sizeof s->args) struct_size = known;
    memcpy(s->args, &struct_size, sizeof struct_size);
}

/* Nothing that the call may not write has changed. */
static void compare(const subject *s, trine_status status) {
    for (int i = 0; i < s->plan->tensors; i++) {
        bool writable = false;
        for (int k = 0; k < s->plan->tensors; k++) /* an output in the same memory */
            writable |= (s->plan->tensor[k].spec->flags & OUT) && s->memory[i] != NULL &&
                        (unsigned char *)s->tensor[k].data >= s->memory[i] &&
                        (unsigned char *)s->tensor[k].data < s->memory[i] + s->bytes[i];
        if (s->memory[i] == NULL || (writable && status == TRINE_OK) ||
            memcmp(s->memory[i], s->copy[i], s->bytes[i]) == 0)
            continue;
        fprintf(stderr, "%s: %s has changed, status %s, \"%s\"\n", s->plan->spec->name, s->plan->spec->tensors[i].name,
                trine_status_name(status), trine_error_message());
        abort();
    }
}

static void check_message(const subject *s, trine_status status) {
    const char *name = s->plan->spec->name;
    if (status == TRINE_OK) return;
    if (strncmp(trine_error_message(), name, strlen(name)) == 0 && trine_error_message()[strlen(name)] == ':') return;
    fprintf(stderr, "%s: %s with the message \"%s\"\n", name, trine_status_name(status), trine_error_message());
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static subject s;
    stream in = { data, data + size };
    memset(&s, 0, sizeof s);
    const trine_op op = (trine_op)(1 + byte(&in) % (TRINE_OP_COUNT - 1));
    s.plan = trine_plan_get(op);
    choose_sizes(&s, &in);
    make_args(&s, &in);
    trine_explanation why;
    size_t bytes;
    check_message(&s, trine_workspace(queue, op, s.args, &bytes));
    const trine_status explained = trine_explain(queue, op, s.args, &why);
    check_message(&s, explained);
    for (int i = 0; explained == TRINE_OK && i < why.count; i++) {
        trine_edge edges[TRINE_MAX_EDGES];
        int32_t count;
        check_message(&s, trine_explain_edges(queue, op, s.args, why.candidate[i].kernel, edges, &count));
    }
    for (int i = 0; i < s.plan->tensors; i++) {
        double coefficient;
        if (s.plan->tensor[i].spec->flags & OUT)
            check_message(&s, trine_error_bound(queue, op, s.args, s.plan->tensor[i].spec->name, &coefficient));
    }
    if (s.real) {
        const trine_status status = trine_run(queue, op, s.args);
        check_message(&s, status);
        compare(&s, status);
    }
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) {
        free(s.memory[i]);
        free(s.copy[i]);
    }
    return 0;
}
