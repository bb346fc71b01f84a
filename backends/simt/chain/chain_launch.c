/* SPDX-License-Identifier: Apache-2.0 */
/* How a chain's tensors lie, and lists of chains. */
#include "chain_launch.h"

#include <trine/chain.h>

#include <string.h>

#include "backends/simt/core/host.h"
#include "spec/chain/parse.h"

void chain_lie(const trine_call *call, uint32_t set, const chain_shape *shape, chain_layout *l, chain_job *job) {
    int64_t length[CHAIN_AROUND] = { 1, 1, 1 };
    int last = CHAIN_AROUND; /* the outermost that is there so far */
    job->n = shape->n;
    job->rows = shape->outer[0] * shape->outer[1] * shape->outer[2];
    for (int d = CHAIN_AROUND - 1; d >= 0; d--) {
        if (shape->outer[d] == 1) continue;
        bool merges = last < CHAIN_AROUND;
        for (int t = 0; t < CHAIN_VIEWS; t++)
            if ((set >> t & 1) && last < CHAIN_AROUND && shape->stride[t][d] != job->stride[t][last] * length[last])
                merges = false;
        if (!merges) last--;
        length[last] *= shape->outer[d];
        for (int t = 0; !merges && t < CHAIN_VIEWS; t++)
            if (set >> t & 1) job->stride[t][last] = shape->stride[t][d];
    }
    l->outer = (uint8_t)(CHAIN_AROUND - last);
    for (int d = 0; d < CHAIN_AROUND; d++) job->shape[d] = simt_divisor_of(length[d]);
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        if (!(set >> t & 1)) continue;
        l->type[t] = (uint16_t)call->tensor[t].dtype;
        l->place[t] = shape->still[t] ? CHAIN_STILL : CHAIN_ALONG;
        job->data[t] = call->tensor[t].data;
    }
}

/* ----------------------------------------------------------------------------------------------------------- lists */

enum { WINDOW = 256 }; /* calls that are looked at together */

/* What is known of a call: `left`: it was not launched yet. */
typedef struct candidate {
    chain_layout layout;
    bool left, fits;
} candidate;

static const char *text_of(const trine_call *call) { return ((const trine_chain_args *)call->args)->program; }

static trine_status program_of(const trine_call *call, chain_program *program_out) {
    char error[256] = "";
    if (trine_chain_program_of(text_of(call), chain_is_wide(call->tensor, call->present), program_out, error,
                               sizeof error))
        return TRINE_OK;
    return call->host->error(TRINE_ERR_ARGUMENT, "chain: program: %s", error);
}

/* Do all of its sizes fit 31 bits, as a list has them? */
static bool fits(const chain_layout *layout, const chain_job *job) {
    if (job->n > INT32_MAX || job->rows > INT32_MAX || job->n * job->rows > INT32_MAX) return false;
    for (int t = 0; t < CHAIN_VIEWS; t++)
        for (int d = CHAIN_AROUND - layout->outer; d < CHAIN_AROUND; d++)
            if (job->stride[t][d] != (int32_t)job->stride[t][d]) return false;
    return true;
}

static uint32_t tensors_of(const chain_layout *layout) {
    uint32_t set = 0;
    for (int t = 0; t < CHAIN_VIEWS; t++) set |= layout->place[t] != CHAIN_ABSENT ? 1u << t : 0;
    return set;
}

static void add_item(chain_calls *list, const chain_job *job, int64_t first) {
    const int from = CHAIN_AROUND - list->outer;
    uint32_t *word = list->item + list->count++ * list->words;
    *word++ = (uint32_t)first;
    *word++ = (uint32_t)job->n;
    for (int d = from; d < CHAIN_AROUND; d++) *word++ = (uint32_t)job->shape[d].by;
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        if (!(list->tensors >> t & 1)) continue;
        const uint64_t address = (uintptr_t)job->data[t];
        *word++ = (uint32_t)address;
        *word++ = (uint32_t)(address >> 32);
        for (int d = from; d < CHAIN_AROUND; d++) *word++ = (uint32_t)job->stride[t][d];
    }
}

/* Are the calls at a and b of the window one launch? */
static bool alike(trine_call *const *calls, const candidate *c, int a, int b) {
    return c[a].fits && c[b].fits && memcmp(&c[a].layout, &c[b].layout, sizeof c[a].layout) == 0 &&
           strcmp(text_of(calls[a]), text_of(calls[b])) == 0;
}

/* The call at `first` of the window and those that are like it. */
static trine_status launch_alike(const chain_list_kernel *kernel, trine_call *const *calls, candidate *c, int first,
                                 int count) {
    const chain_layout *layout = &c[first].layout;
    const uint32_t tensors = tensors_of(layout);
    chain_calls list = { .outer = layout->outer,
                         .words = 2 + layout->outer + __builtin_popcount(tensors) * (2 + layout->outer),
                         .tensors = tensors };
    int64_t blocks = 0;
    chain_program program;
    trine_status status = program_of(calls[first], &program);
    for (int i = first; i < count && status == TRINE_OK; i++) {
        if (!c[i].left || (i > first && !alike(calls, c, first, i))) continue;
        chain_layout same;
        chain_job job;
        kernel->lay_out(calls[i], &program, &same, &job);
        const int64_t own = kernel->blocks(&program, layout, &job);
        if (list.count == CHAIN_LIST_CALLS || (list.count + 1) * list.words > CHAIN_LIST_WORDS ||
            blocks + own > INT32_MAX) {
            status = kernel->launch_many(calls[first], &program, layout, &list, blocks);
            list.count = 0;
            blocks = 0;
        }
        add_item(&list, &job, blocks);
        blocks += own;
        c[i].left = false;
    }
    return status == TRINE_OK ? kernel->launch_many(calls[first], &program, layout, &list, blocks) : status;
}

static trine_status launch_window(const chain_list_kernel *kernel, trine_call *const *calls, int count) {
    candidate c[WINDOW];
    trine_status status = TRINE_OK;
    for (int i = 0; i < count && status == TRINE_OK; i++) {
        chain_program program;
        chain_job job;
        status = program_of(calls[i], &program);
        if (status != TRINE_OK) break;
        kernel->lay_out(calls[i], &program, &c[i].layout, &job);
        c[i].left = true;
        c[i].fits = fits(&c[i].layout, &job);
    }
    for (int i = 0; i < count && status == TRINE_OK; i++) {
        if (!c[i].left) continue;
        status = c[i].fits ? launch_alike(kernel, calls, c, i, count) : kernel->launch(calls[i]);
    }
    return status;
}

trine_status chain_launch_list(const chain_list_kernel *kernel, trine_call *const *calls, int64_t count) {
    trine_status status = TRINE_OK;
    for (int64_t first = 0; first < count && status == TRINE_OK; first += WINDOW)
        status = launch_window(kernel, calls + first, count - first < WINDOW ? (int)(count - first) : WINDOW);
    return status;
}
