/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a launch that went wrong, and the readiness of registers. */
#include <stdarg.h>

#include "machine.h"

void stop(wave *w, int lane, const char *format, ...) {
    const group *g = w->group;
    char *message = g->failure->message, where[24] = "";
    const size_t size = sizeof g->failure->message;
    if (lane >= 0) snprintf(where, sizeof where, ", lane %d", lane);
    const int length =
        snprintf(message, size, "kernel %s, workgroup (%u,%u,%u), wave %d%s, pc 0x%x: %s: ", g->kernel->name, g->id[0],
                 g->id[1], g->id[2], w->number, where, w->current->pc, w->current->text);
    if (length > 0 && (size_t)length < size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message + length, size - (size_t)length, format, arguments);
        va_end(arguments);
    }
    longjmp(w->group->stop, 1);
}

const char *origin_of(wave *w) {
    w->origin[0] = 0;
    if (w->loaded_nothing)
        snprintf(w->origin, sizeof w->origin, "; pc 0x%x loaded uninitialised scratch", w->loaded_nothing->pc);
    return w->origin;
}

/* A read needs the load that writes the register to be done; a write may follow a load of the same counter, which
 * returns in order. */
void check_register(wave *w, int index, bool write, int counter) {
    const bool accumulator = index >= FIRST_AGPR;
    const int number = accumulator ? index - FIRST_AGPR : index;
    if (number >= (accumulator ? w->group->agprs : w->group->vgprs))
        stop(w, -1, "%c%d is beyond the registers of this kernel", accumulator ? 'a' : 'v', number);
    const uint32_t due = w->due[index];
    if (due == 0) return;
    const int which = due & 1;
    if (due >> 1 <= w->counter[which].done) {
        w->due[index] = 0;
        return;
    }
    if (write && counter == which) return;
    stop(w, -1, "%c%d is %s before an s_waitcnt %s covers the load into it", accumulator ? 'a' : 'v', number,
         write ? "written" : "read", which == COUNTER_VM ? "vmcnt" : "lgkmcnt");
}

void check_scalar(wave *w, int index) {
    if (w->s_due[index] == 0) return;
    if (w->s_due[index] > w->counter[COUNTER_LGKM].done)
        stop(w, -1, "s%d is used before an s_waitcnt lgkmcnt covers the load into it", index);
    w->s_due[index] = 0;
}

uint32_t issue(wave *w, int which, bool unordered) {
    counter *c = &w->counter[which];
    c->issued++;
    if (unordered) c->unordered = c->issued;
    return c->issued;
}

void wait_for(wave *w, int which, uint32_t left) {
    counter *c = &w->counter[which];
    if (left > 0 && c->unordered > c->done) return;
    if (c->issued > left && c->issued - left > c->done) c->done = c->issued - left;
    if (which == COUNTER_VM)
        lds_landed(w);
    else
        lds_released(w);
}
