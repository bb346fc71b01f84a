/* SPDX-License-Identifier: Apache-2.0 */
/* What a case must move and compute, and how near to the roofs a time is. */
#include <math.h>
#include <string.h>

#include "bench.h"

/* The share of a table that ids leave alone: of one whose first dimension is what the ids of another input count at
 * most as many rows are used as there are ids. */
static double unnamed_share(const trine_case *c, int index) {
    const trine_plan_tensor *t = &c->plan->tensor[index];
    if (t->dim[0].symbol < 0) return 0;
    for (int i = 0; i < c->plan->tensors; i++) {
        const char *fill = c->plan->tensor[i].spec->fill;
        if (!(c->present >> i & 1) || fill == NULL) continue;
        const int word = strncmp(fill, "ids ", 4) == 0 ? 4 : strncmp(fill, "places ", 7) == 0 ? 7 : 0;
        if (word == 0 || trine_plan_find_symbol(c->plan, fill + word) != t->dim[0].symbol) continue;
        const double rows = (double)c->tensor[index].shape[0], ids = (double)trine_tensor_count(&c->tensor[i]);
        return rows > ids ? 1 - ids / rows : 0;
    }
    return 0;
}

/* SIZE of a fill "slots SIZE" or "ascending SIZE"; NULL if it is another. */
static const char *slots_of(const char *fill) {
    if (fill == NULL) return NULL;
    return strncmp(fill, "slots ", 6) == 0 ? fill + 6 : strncmp(fill, "ascending ", 10) == 0 ? fill + 10 : NULL;
}

/* The share of a tensor that slots leave alone: of one whose first dimensions make up the size of another input's fill,
 * at most as many rows are used as that has elements. -1: there is no such input. */
static double unslotted_share(const trine_case *c, int index) {
    const trine_plan_tensor *t = &c->plan->tensor[index];
    char name[64] = "";
    double rows = 1;
    for (int d = 0; d < t->rank && t->dim[d].symbol >= 0; d++) {
        const size_t used = strlen(name);
        snprintf(name + used, sizeof name - used, "%s%s", d ? "*" : "", c->plan->symbol_name[t->dim[d].symbol]);
        rows *= (double)c->tensor[index].shape[d];
        for (int i = 0; i < c->plan->tensors; i++) {
            const char *size = slots_of(c->plan->tensor[i].spec->fill);
            if (!(c->present >> i & 1) || size == NULL || strcmp(size, name) != 0) continue;
            const double slots = (double)trine_tensor_count(&c->tensor[i]);
            return rows > slots ? 1 - slots / rows : 0;
        }
    }
    return -1;
}

/* The share of a matrix's rows that columns of a "sparse" tensor leave alone: those that are 0 in all of its rows. */
static double zeroed_share(const trine_case *c, int index) {
    const trine_plan_tensor *t = &c->plan->tensor[index];
    for (int i = 0; i < c->plan->tensors; i++) {
        const trine_plan_tensor *sparse = &c->plan->tensor[i];
        if (!(c->present >> i & 1) || i == index || sparse->spec->fill == NULL || t->dim[0].symbol < 0) continue;
        if (strcmp(sparse->spec->fill, "sparse") == 0 && sparse->dim[sparse->rank - 1].symbol == t->dim[0].symbol)
            return exp2(-(double)c->tensor[i].shape[0]);
    }
    return 0;
}

/* The share of a matrix of `rows` queries and `columns` keys that a causal mask, aligned bottom right, and windows to
 * the left and to the right leave visible. */
static double visible(int64_t rows, int64_t columns, bool causal, int64_t left, int64_t right) {
    double seen = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t diagonal = i + columns - rows;
        int64_t last = causal ? diagonal : columns - 1, first = 0;
        if (left > 0 && diagonal - left + 1 > first) first = diagonal - left + 1;
        if (right > 0 && diagonal + right - 1 < last) last = diagonal + right - 1;
        if (last > columns - 1) last = columns - 1;
        if (last >= first) seen += (double)(last - first + 1);
    }
    return rows && columns ? seen / ((double)rows * (double)columns) : 1;
}

static int64_t param_value(const trine_case *c, const char *name) {
    const int param = trine_plan_find_param(c->plan, name);
    return param < 0 ? 0 : (int64_t)trine_param_get(c->plan, param, c->args);
}

/* Of two windows, where 0 is none. */
static int64_t narrower(int64_t a, int64_t b) { return a == 0 || (b > 0 && b < a) ? b : a; }

/* The share of all pairs, which flops count, that masks and the packing of sequences leave: the design's masks mean the
 * same in all ops. */
static double visible_share(const trine_case *c) {
    const int rows = c->plan->masked[0], columns = c->plan->masked[1],
              sequences = trine_plan_find_symbol(c->plan, "nseq");
    if (rows < 0) return 1;
    bool packed = false;
    for (int i = 0; i < c->plan->tensors; i++) {
        const char *fill = c->plan->tensor[i].spec->fill;
        packed |= (c->present >> i & 1) && fill && strncmp(fill, "offsets ", 8) == 0;
    }
    const int64_t parts = packed && sequences >= 0 && c->dim[sequences] > 0 ? c->dim[sequences] : 1;
    return visible(c->dim[rows] / parts, c->dim[columns] / parts, param_value(c, "causal") != 0,
                   narrower(param_value(c, "window"), param_value(c, "window_left")),
                   narrower(param_value(c, "window"), param_value(c, "window_right"))) /
           (double)parts;
}

/* What a tensor has beside the strided blocks that are gathered from it, or that are all that is written to it. */
static double unpacked_bytes(const trine_case *c, int index, int packed) {
    const double blocks = (double)trine_tensor_count(&c->tensor[packed]),
                 all = (double)trine_tensor_count(&c->tensor[index]),
                 passes = c->plan->tensor[index].spec->flags & OUT ? 2 : 1;
    return (passes * all - fmin(blocks, all)) * (double)trine_dtype_size(c->tensor[index].dtype);
}

/* The bytes of a tensor that need not be moved: of an input what a mask hides or no id names; of sums to which
 * `accumulate` adds what no id names, and of others what was there before; of what slots name the rest. */
static double spared_bytes(const trine_case *c, int index) {
    const trine_plan_tensor *t = &c->plan->tensor[index];
    if (t->spec->fill && strncmp(t->spec->fill, "strided ", 8) == 0)
        return unpacked_bytes(c, index, trine_plan_find_tensor(c->plan, t->spec->fill + 8));
    if (!(t->spec->flags & IN) || t->rank < 2) return 0;
    const double bytes =
                     (double)trine_tensor_count(&c->tensor[index]) * (double)trine_dtype_size(c->tensor[index].dtype),
                 unslotted = unslotted_share(c, index);
    if (unslotted >= 0) return t->spec->flags & OUT ? bytes * (1 + unslotted) : bytes * unslotted;
    if (t->spec->flags & OUT) {
        if (trine_plan_find_param(c->plan, "accumulate") < 0) return 0;
        return param_value(c, "accumulate") ? 2 * bytes * unnamed_share(c, index) : bytes;
    }
    const bool masked = c->plan->masked[0] >= 0 && t->dim[t->rank - 2].symbol == c->plan->masked[0] &&
                        t->dim[t->rank - 1].symbol == c->plan->masked[1];
    return bytes * (masked ? 1 - visible_share(c) : fmax(unnamed_share(c, index), zeroed_share(c, index)));
}

/* The peak of products of f32, as the word of `precision` has it, if there is that parameter. */
static bench_peak peak_of_f32(const trine_case *c) {
    static const struct {
        const char *word;
        bench_peak peak;
    } narrow[] = { { "tf32", PEAK_TF32 }, { "bf16", PEAK_BF16 } };
    const int param = trine_plan_find_param(c->plan, "precision");
    if (param < 0) return PEAK_F32;
    const char *at = c->plan->spec->params[param].values;
    for (int64_t i = (int64_t)param_value(c, "precision"); i > 0; i--) at += strcspn(at, " "), at += strspn(at, " ");
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
        if (strcspn(at, " ") == strlen(narrow[i].word) && strncmp(at, narrow[i].word, strlen(narrow[i].word)) == 0)
            return narrow[i].peak;
    return PEAK_F32;
}

bench_peak bench_peak_of(const trine_case *c) {
    for (int i = 0; i < c->plan->tensors; i++) {
        if (!(c->present >> i & 1) || !(c->plan->tensor[i].spec->flags & IN)) continue;
        switch (c->tensor[i].dtype) {
        case TRINE_F64: return PEAK_F64;
        case TRINE_E4M3:
        case TRINE_E5M2: return PEAK_F8;
        case TRINE_BF16: return PEAK_BF16;
        case TRINE_F16: return PEAK_F16;
        case TRINE_I8: return PEAK_I8;
        default: return peak_of_f32(c);
        }
    }
    return PEAK_F32;
}

void bench_work(const trine_case *c, bench_result *result) {
    result->bytes = trine_plan_bytes(c->plan, c->dim, c->type, c->present & ~c->broadcast);
    for (int i = 0; i < c->plan->tensors; i++)
        if (c->present >> i & 1) result->bytes -= spared_bytes(c, i);
    result->flops = trine_plan_flops(c->plan, c->dim) * visible_share(c);
    result->peak = bench_peak_of(c);
}

/* Of a device whose peaks are not known, what computes more than this for a byte, memory may not bind: an H200's f32
 * units without tensor cores do 14 flops in the time of one byte. And what reads much and writes little may be faster
 * than a copy, which turns the bus round: up to what the pins allow, 4.9 TB/s of 4.2. */
static const double most_intensity = 16, over_copy = 1.2;

static void hold_device(bench_result *result, const bench_roofs *roofs) {
    const double peak = roofs->peak[result->peak], moving = result->bytes / roofs->copy,
                 computing = peak > 0 ? result->flops / peak : 0;
    if (result->median <= 0 || (peak <= 0 && result->flops > most_intensity * result->bytes)) return;
    result->bound = fmax(moving, computing);
    result->fraction = result->bound / result->median;
    result->above = fmax(moving / over_copy, computing) > result->median;
}

void bench_hold(bench_result *result, const bench_roofs *roofs) {
    result->bound = result->fraction = 0;
    result->above = false;
    if (roofs->device) hold_device(result, roofs);
    if (roofs->threads == 0 || result->median <= 0) return;
    result->bound = fmax(result->bytes / bench_memory_roof(roofs), result->flops / roofs->peak[result->peak]);
    result->fraction = result->bound / result->median;
    result->above = result->fraction > 1;
}
