/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles and rows of a chain of numbers of the type REAL. */
#include "steps.inl.h"
#include "pairs.inl.h"

/* What one thread works with. */
typedef struct NAME(chain_state) {
    NAME(chain_space) space;
    /* with what came since, of shorter tiles, so that sums are no deeper than specified */
    REAL reduced[CHAIN_ROW_VALUES], since[CHAIN_ROW_VALUES];
    char *at[CHAIN_TENSORS]; /* of the row */
    VECTOR still[CHAIN_REGISTERS];
    REAL memory[CHAIN_REGISTERS][NAME(CHAIN_TILE)] __attribute__((aligned(64)));
} NAME(chain_state);

/* One that is still has a vector of its own, since a step may write to the register it reads. */
static void NAME(chain_load)(const chain_job *job, NAME(chain_state) * s, const chain_step *step, int64_t at,
                             int count) {
    const int input = step->a;
    const trine_dtype dtype = job->call->tensor[input].dtype;
    const bool still = job->shape.still[input];
    const char *from = s->at[input] + (still ? 0 : at * (int64_t)trine_dtype_size(dtype));
    REAL *to = still ? (REAL *)&s->still[step->to] : s->memory[step->to];
    NAME(chain_value) *value = &s->space.value[step->to];
    *value = (NAME(chain_value)){ to, still ? 0 : LANES };
    if (still) {
        count = 1;
    } else {
        chain_ahead(from + NAME(CHAIN_TILE) * (int64_t)trine_dtype_size(dtype), count * (int)trine_dtype_size(dtype));
    }
    if (!still && dtype == REAL_DTYPE && count % LANES == 0 && !job->own) {
        value->at = (const REAL *)(const void *)from;
        return;
    }
    NAME(fetch)(to, from, count, dtype);
    if (still) s->still[step->to] = NAME(set)(to[0]);
}

static void NAME(chain_store)(const chain_job *job, NAME(chain_state) * s, const chain_step *step, int64_t at,
                              int count) {
    const int output = CHAIN_INPUTS + step->to;
    const trine_dtype dtype = job->call->tensor[output].dtype;
    const NAME(chain_value) value = s->space.value[step->a];
    if (!chain_given(job, output)) return;
    if (value.step != 0 && value.at == (const REAL *)s->memory[step->a]) {
        NAME(put)(s->memory[step->a], s->at[output], at, count, dtype, job->stream);
        return;
    }
    REAL copy[NAME(CHAIN_TILE)] __attribute__((aligned(64)));
    for (int j = 0; j < count; j += LANES)
        *(VECTOR *)(copy + j) = *(const VECTOR_ANY *)(value.at + j / LANES * value.step);
    NAME(put)(copy, s->at[output], at, count, dtype, job->stream);
}

static void NAME(chain_store_row)(const chain_job *job, const NAME(chain_state) * s, const chain_step *step) {
    const int output = CHAIN_ROW_TENSORS + step->to;
    const REAL value = *s->space.value[step->a].at;
    if (!chain_given(job, output)) return;
    if (job->call->tensor[output].dtype == TRINE_F64)
        *(double *)(void *)s->at[output] = (double)value;
    else
        *(float *)(void *)s->at[output] = (float)value;
}

/* The steps on a tile of elements at .. at+count-1. */
static void NAME(chain_tile)(const chain_job *job, NAME(chain_state) * s, const chain_phase *phase, int64_t at,
                             int count) {
    for (int i = phase->first; i < phase->end; i++) {
        const chain_step *step = &job->program.step[i];
        if (step->op == CHAIN_LOAD) {
            NAME(chain_load)(job, s, step, at, count);
        } else if (step->op == CHAIN_STORE) {
            NAME(chain_store)(job, s, step, at, count);
        } else if (chain_reduces(step->op)) {
            REAL *reduced = &(NAME(CHAIN_TILE) < CHAIN_SUM ? s->since : s->reduced)[step->to - CHAIN_ROW];
            *reduced = NAME(chain_reduce)(step->op, *reduced, s->space.value[step->a], count);
        } else {
            (step->op >= CHAIN_PAIR ? NAME(chain_do_pair) : NAME(chain_do))(&s->space, step, s->memory[step->to],
                                                                            (count + LANES - 1) / LANES);
            s->space.value[step->to] = (NAME(chain_value)){ s->memory[step->to], LANES };
        }
    }
}

static void NAME(chain_take_up)(const chain_job *job, NAME(chain_state) * s, const chain_phase *phase) {
    for (int i = phase->first; i < phase->end; i++) {
        const chain_step *step = &job->program.step[i];
        const int value = step->to - CHAIN_ROW;
        if (!chain_reduces(step->op)) continue;
        s->reduced[value] = NAME(chain_join)(step->op, s->reduced[value], s->since[value]);
        s->since[value] = NAME(chain_nothing)(step->op);
    }
}

/* A phase on elements first .. last-1 of a row. */
static void NAME(chain_run_phase)(const chain_job *job, NAME(chain_state) * s, const chain_phase *phase, int64_t first,
                                  int64_t last) {
    for (int i = phase->row; i < phase->first; i++) {
        const chain_step *step = &job->program.step[i];
        if (step->op == CHAIN_STORE_ROW)
            NAME(chain_store_row)(job, s, step);
        else
            NAME(chain_do)(&s->space, step, (REAL *)&s->space.row[step->to - CHAIN_ROW], 1);
    }
    for (int i = phase->first; i < phase->end; i++)
        if (chain_reduces(job->program.step[i].op)) {
            const int value = job->program.step[i].to - CHAIN_ROW;
            s->reduced[value] = s->since[value] = NAME(chain_nothing)(job->program.step[i].op);
        }
    for (int64_t at = first; at < last; at += NAME(CHAIN_TILE)) {
        const int count = last - at < NAME(CHAIN_TILE) ? (int)(last - at) : NAME(CHAIN_TILE);
        NAME(chain_tile)(job, s, phase, at, count);
        if (NAME(CHAIN_TILE) < CHAIN_SUM && (at + count == last || (at + count) % CHAIN_SUM == 0))
            NAME(chain_take_up)(job, s, phase);
    }
    for (int i = phase->first; i < phase->end; i++)
        if (chain_reduces(job->program.step[i].op)) {
            const int value = job->program.step[i].to - CHAIN_ROW;
            s->space.row[value] = NAME(set)(s->reduced[value]);
        }
}

static void NAME(chain_begin)(const chain_job *job, NAME(chain_state) * s) {
    const chain_program *p = &job->program;
    s->space.n = (REAL)job->shape.n;
    for (int i = 0; i < p->row_values; i++)
        s->space.value[CHAIN_ROW + i] = (NAME(chain_value)){ (const REAL *)&s->space.row[i], 0 };
    for (int i = 0; i < p->constants; i++) {
        s->space.constant[i] = NAME(set)((REAL)p->constant[i]);
        s->space.value[CHAIN_CONSTANT + i] = (NAME(chain_value)){ (const REAL *)&s->space.constant[i], 0 };
    }
}

static void NAME(chain_items)(const void *context, int64_t first, int64_t last, int thread) {
    const chain_job *job = context;
    NAME(chain_state) s;
    (void)thread;
    NAME(chain_begin)(job, &s);
    for (int64_t item = first; item < last; item++) {
        const int64_t from = item % job->pieces * job->length,
                      to = from + job->length < job->shape.n ? from + job->length : job->shape.n;
        chain_find_row(job, item / job->pieces, s.at);
        for (int k = 0; k < job->program.phases; k++) NAME(chain_run_phase)(job, &s, &job->program.phase[k], from, to);
    }
    if (job->stream) stream_fence();
}
