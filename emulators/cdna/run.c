/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one workgroup: the first state of its waves, their turns, and its barriers. */
#include <string.h>

#include "machine.h"

/* ----------------------------------------------------------------------------------------------------------- set up */

static void set_scalar(wave *w, int index, uint32_t value) {
    w->s[index] = value;
    w->s_defined[index] = UINT32_MAX;
}

static int set_pair(wave *w, int index, uint64_t value) {
    set_scalar(w, index, (uint32_t)value);
    set_scalar(w, index + 1, (uint32_t)(value >> 32));
    return index + 2;
}

/* In the order of the descriptor's bits. */
static void set_user_scalars(wave *w) {
    const group *g = w->group;
    const struct cdna_setup *s = &g->kernel->setup;
    int at = 0;
    if (s->properties & 1) { /* the scratch buffer: ADD_TID_ENABLE, bounds left to the interpreter */
        at = set_pair(w, at, PRIVATE_APERTURE);
        at = set_pair(w, at, UINT64_C(1) << 55 | UINT32_MAX);
    }
    if (s->properties & 2) at = set_pair(w, at, g->packet);
    if (s->properties & 4) at = set_pair(w, at, 0);
    if (s->properties & 8) at = set_pair(w, at, g->kernarg);
    if (s->properties & 16) at = set_pair(w, at, 0);
    if (s->properties & 32) at = set_pair(w, at, 0);
    if (s->properties & 64) set_scalar(w, at++, g->kernel->private_size);
    for (uint32_t i = 0; i < s->preload_words; i++) {
        uint32_t word;
        memcpy(&word, (const char *)(uintptr_t)g->kernarg + 4 * (s->preload_offset + i), sizeof word);
        set_scalar(w, at++, word);
    }
    at = (int)s->user_sgprs;
    for (int i = 0; i < 3; i++)
        if (s->workgroup_id[i]) set_scalar(w, at++, g->id[i]);
    if (s->workgroup_info) set_scalar(w, at++, 0);
    if (s->private_offset) set_scalar(w, at++, 0);
}

static void set_work_items(wave *w) {
    const uint32_t *size = w->group->grid->workgroup, items = size[0] * size[1] * size[2],
                   first = (uint32_t)w->number * LANES;
    uint64_t exec = 0;
    for (uint32_t l = 0; l < LANES && first + l < items; l++) {
        const uint32_t i = first + l;
        w->v[0][l] = i % size[0] | i / size[0] % size[1] << 10 | i / (size[0] * size[1]) << 20;
        exec |= UINT64_C(1) << l;
    }
    w->defined[0] = exec;
    set_pair(w, EXEC, exec);
}

static void start_wave(group *g, int number) {
    wave *w = &g->wave[number];
    memset(w->defined, 0, sizeof w->defined);
    memset(w->spilled, 0, sizeof w->spilled);
    memset(w->due, 0, sizeof w->due);
    memset(w->s, 0, sizeof w->s);
    memset(w->s_defined, 0, sizeof w->s_defined);
    memset(w->s_due, 0, sizeof w->s_due);
    memset(w->counter, 0, sizeof w->counter);
    memset(w->lds_sequence, 0, sizeof w->lds_sequence);
    memset(w->lds_release, 0, sizeof w->lds_release);
    w->lds_oldest = w->epoch = 0;
    w->flight_count = 0;
    w->loaded_nothing = NULL;
    w->scc = w->scc_defined = false;
    w->group = g;
    w->number = number;
    w->executed = 0;
    w->yields = false;
    w->state = WAVE_RUNS;
    w->tracing = g->options->trace != NULL && (g->options->trace_wave < 0 || g->options->trace_wave == number);
    const uint32_t entry = g->kernel->entry + (g->kernel->setup.preload_words ? 256 : 0);
    w->next = g->object->at[entry / 4];
    w->current = &g->object->instruction[w->next];
    set_scalar(w, VCCZ, 1);
    set_scalar(w, EXECZ, 0);
    set_scalar(w, SCC, 0);
    set_user_scalars(w);
    set_work_items(w);
    scratch_forget(w);
    w->exec_cached = ~exec_of(w);
}

/* ------------------------------------------------------------------------------------------------------------ turns */

/* The first operand's value afterwards too: of the first active lane, if it is a vector register. */
static void trace(const wave *w, const instruction *in, uint64_t exec) {
    FILE *file = w->group->options->trace;
    const operand *o = &in->operand[0];
    const int lane = exec ? __builtin_ctzll(exec) : 0;
    fprintf(file, "(%u,%u,%u) %2d  %016llx  %6x  %-60s", w->group->id[0], w->group->id[1], w->group->id[2], w->number,
            (unsigned long long)exec, in->pc, in->text);
    for (int i = o->words; i-- > 0 && (o->kind == OPERAND_VGPR || o->kind == OPERAND_SGPR);)
        fprintf(file, " %08x", o->kind == OPERAND_VGPR ? w->v[o->index + i][lane] : w->s[o->index + i]);
    fprintf(file, "\n");
}

static void run_wave(wave *w, uint64_t most) {
    group *g = w->group;
    const cdna_object *o = g->object;
    const uint64_t budget = g->options->budget ? g->options->budget : UINT64_C(1) << 32;
    for (uint64_t n = 0; n < most && w->state == WAVE_RUNS; n++) {
        if (w->next >= o->instructions) stop(w, -1, "runs off the end of the code");
        const instruction *in = &o->instruction[w->next++];
        w->current = in;
        if (in->row == NULL) stop(w, -1, "an instruction the interpreter does not know");
        if (++w->executed > budget)
            stop(w, -1, "the wave has run %llu instructions and is not done", (unsigned long long)budget);
        g->profile.instructions[in->row->kind]++;
        if (g->profile.executed) g->profile.executed[in->index]++;
        const uint64_t exec = exec_of(w);
        in->row->execute(w, in);
        if (w->tracing) trace(w, in, exec);
        if (!w->yields) continue;
        w->yields = false;
        break;
    }
}

static int count_waves(const group *g, int state) {
    int count = 0;
    for (int i = 0; i < g->waves; i++) count += (int)g->wave[i].state == state;
    return count;
}

/* All waves wait: on they go, unless one has gone for good. */
static void release_barrier(group *g) {
    for (int i = 0; i < g->waves; i++) {
        wave *w = &g->wave[i];
        if (w->state != WAVE_ENDED) continue;
        for (int waiting = 0; waiting < g->waves; waiting++)
            if (g->wave[waiting].state == WAVE_AT_BARRIER)
                stop(&g->wave[waiting], -1, "waits at a barrier that wave %d never reaches: it ended at pc 0x%x", i,
                     w->current->pc);
    }
    for (int i = 0; i < g->waves; i++) {
        wave *w = &g->wave[i];
        w->state = WAVE_RUNS;
        w->epoch++;
        w->lds_sequence[w->epoch % EPOCHS] = 0;
        w->lds_release[w->epoch % EPOCHS] = 0;
    }
}

bool group_run(group *g) {
    if (setjmp(g->stop)) return false;
    memset(g->cell, 0, (g->lds_size + 3) / 4 * sizeof *g->cell);
    for (int i = 0; i < g->waves; i++) start_wave(g, i);
    const uint64_t quantum = g->options->quantum > 0 ? (uint64_t)g->options->quantum : UINT64_MAX;
    while (count_waves(g, WAVE_ENDED) < g->waves) {
        for (int i = 0; i < g->waves; i++) {
            wave *w = &g->wave[g->options->order == CDNA_REVERSE ? g->waves - 1 - i : i];
            if (w->state == WAVE_RUNS) run_wave(w, quantum);
        }
        if (count_waves(g, WAVE_RUNS) == 0 && count_waves(g, WAVE_AT_BARRIER) > 0) release_barrier(g);
    }
    g->profile.workgroups++;
    g->profile.waves += (uint64_t)g->waves;
    return true;
}
