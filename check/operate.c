/* SPDX-License-Identifier: Apache-2.0 */
/* Operands in guarded memory: poison round them and in the gaps between their rows, and nothing else changed
 * afterwards. */
#include <stdio.h>
#include <string.h>

#include "run.h"

static bool is_alias(const problem *p, int tensor) { return p->operand[tensor].alias >= 0; }

/* May the op write to the memory of this tensor? */
static bool written(const problem *p, int tensor) {
    bool out = problem_output(p, tensor);
    for (int o = 0; o < p->plan->tensors; o++) out |= problem_output(p, o) && p->operand[o].alias == tensor;
    return out;
}

static bool in_windows(const context *c, const operand *o) { return c->memory->host && o->windows.count > 0; }

/* Elements from a slice to the next. */
static int64_t apart(const context *c, const operand *o) {
    const int64_t bytes = in_windows(c, o) ? o->windows.apart : (int64_t)o->windows.frame,
                  elements = bytes / (int64_t)trine_dtype_size(o->full.dtype);
    return o->full.stride[o->far] < 0 ? -elements : elements;
}

/* Elements before element (0, ..., 0) in memory. */
static int64_t low_of(const context *c, const operand *o) {
    if (!in_windows(c, o) || o->full.stride[o->far] > 0) return o->low;
    const int64_t width = (int64_t)trine_dtype_size(o->full.dtype);
    return o->low + (o->windows.count - 1) * (o->windows.apart - (int64_t)o->windows.frame) / width;
}

void operands_spread(const context *c, problem *p) {
    for (int i = 0; i < p->plan->tensors; i++) {
        const operand *o = &p->operand[i];
        if (problem_has(p, i) && o->windows.count > 0)
            p->call.tensor[i].stride[o->far - (o->full.rank - p->call.tensor[i].rank)] = apart(c, o);
    }
}

bool operands_send(const context *c, problem *p, trine_queue *queue, int place, int pattern) {
    for (int i = 0; i < p->plan->tensors; i++) {
        operand *o = &p->operand[i];
        if (!problem_has(p, i) || is_alias(p, i)) continue;
        const size_t width = trine_dtype_size(o->full.dtype);
        const placement where = (placement)((place + i) % (p->whole ? PLACE_SHIFTED : PLACEMENTS));
        if (!(in_windows(c, o) ? memory_place_windows(c->memory, i, &o->windows, width, where)
                               : memory_place(c->memory, i, o->bytes, width, where)))
            return false;
        unsigned char *extent = memory_poison(c->memory, i, pattern);
        if (problem_input(p, i))
            for (int64_t k = 0; k < o->count; k++)
                memcpy(extent + width * (size_t)o->at[k], o->image + width * (size_t)o->at[k], width);
        if (!memory_send(c->memory, i, queue)) return false;
        p->call.tensor[i].data = c->memory->slot[i].start + (int64_t)width * low_of(c, o);
    }
    for (int i = 0; i < p->plan->tensors; i++)
        if (problem_has(p, i) && is_alias(p, i)) p->call.tensor[i].data = p->call.tensor[p->operand[i].alias].data;
    return true;
}

/* Where the frames differ: before, after or within the extent. */
static void describe_change(const problem *p, int tensor, const memory_slot *s, char *text, size_t size) {
    const char *name = p->plan->tensor[tensor].spec->name;
    size_t at = 0, lead = (size_t)(s->start - s->frame);
    while (s->sent[at] == s->back[at]) at++;
    if (at < lead)
        snprintf(text, size, "%s: memory %zu bytes before its first byte was written", name, lead - at);
    else if (at >= lead + s->bytes)
        snprintf(text, size, "%s: memory %zu bytes behind its last byte was written", name, at - lead - s->bytes + 1);
    else if (written(p, tensor))
        snprintf(text, size, "%s: padding at byte %zu was written", name, at - lead);
    else
        snprintf(text, size, "input %s was modified at byte %zu", name, at - lead);
}

bool operands_fetch(const context *c, problem *p, trine_queue *queue, bool untouched, outcome *out, char *text_out,
                    size_t size) {
    for (int i = 0; i < p->plan->tensors; i++) {
        operand *o = &p->operand[i];
        if (!problem_has(p, i) || is_alias(p, i)) continue;
        memory_slot *s = &c->memory->slot[i];
        const size_t width = trine_dtype_size(o->full.dtype);
        if (!memory_fetch(c->memory, i, queue)) {
            snprintf(text_out, size, "memory could not be read back: %s", trine_error_message());
            return false;
        }
        if (written(p, i) && !untouched) {
            unsigned char *back = memory_back(s), *sent = memory_sent(s);
            for (int64_t k = 0; k < o->count; k++)
                memcpy(sent + width * (size_t)o->at[k], back + width * (size_t)o->at[k], width);
        }
        if (memcmp(s->sent, s->back, s->frame_bytes) != 0) {
            if (untouched)
                snprintf(text_out, size, "%s was touched, though the call failed", p->plan->tensor[i].spec->name);
            else
                describe_change(p, i, s, text_out, size);
            return false;
        }
    }
    for (int i = 0; out != NULL && i < p->plan->tensors; i++) {
        const operand *o = &p->operand[i];
        if (!problem_output(p, i)) continue;
        const unsigned char *back = memory_back(&c->memory->slot[is_alias(p, i) ? o->alias : i]);
        const size_t width = trine_dtype_size(o->full.dtype);
        for (int64_t k = 0; k < o->count; k++)
            memcpy(out->output[i] + width * (size_t)k, back + width * (size_t)o->at[k], width);
    }
    return true;
}
