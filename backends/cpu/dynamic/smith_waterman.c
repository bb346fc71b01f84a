/* SPDX-License-Identifier: Apache-2.0 */
/* smith_waterman on the CPU: a task has a pair of sequences, and goes from one diagonal of the matrix to the next,
 * whose elements do not need each other. Row i of a diagonal is element i of its lines. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/dynamic/smith_waterman.h"
#include "spec/places/smith_waterman.h"

enum { LETTERS = 256, LINES = 10, BESIDE = 16 };
_Static_assert(VL <= BESIDE, "a vector beyond the last row");
static const int64_t most_letters = INT64_C(1) << 30;

typedef struct job {
    const trine_call *call;
    const trine_smith_waterman_args *args;
    const int32_t *table; /* scores of letters, the last of which stands for all that there are none of */
    int64_t letters;      /* with that one */
    int32_t *lines;       /* of each thread */
    int64_t line;         /* elements of one */
} job;

static int64_t letters_of(const trine_call *call) {
    const int64_t s = call->dim[SMITH_WATERMAN_DIM_S];
    return (s < LETTERS ? s : LETTERS) + 1;
}

static int64_t line_of(const trine_call *call) {
    const int64_t m = call->dim[SMITH_WATERMAN_DIM_M], n = call->dim[SMITH_WATERMAN_DIM_N];
    return cpu_round_up((m > n ? m : n) + 2, BESIDE) + 2 * BESIDE; /* a vector before and behind */
}

static int team_of(const trine_call *call) {
    const int64_t b = call->dim[SMITH_WATERMAN_DIM_B];
    const double elements =
        (double)b * (double)call->dim[SMITH_WATERMAN_DIM_M] * (double)call->dim[SMITH_WATERMAN_DIM_N];
    return cpu_team(call, b, (int64_t)fmin(elements, 0x1p62));
}

static int32_t gap_of(const trine_smith_waterman_args *args, int64_t letters) {
    return letters == 0
               ? 0
               : (int32_t)(uint32_t)(-(uint64_t)args->gap_open - (uint64_t)(letters - 1) * (uint64_t)args->gap_extend);
}

static int64_t length_of(const trine_call *call, int tensor, int64_t i, int64_t most) {
    const trine_tensor *t = trine_call_given(call, tensor);
    if (t == NULL) return most;
    const int64_t length = ((const int64_t *)t->data)[i * t->stride[0]];
    return length < 0 ? 0 : length > most ? most : length;
}

/* What diagonals need of those before: h of the two before, e in place, f of the one before. */
typedef struct diagonal {
    int32_t *h, *e, *f, *best, *best_at;
    const int32_t *before, *before_that, *f_before;
    const int32_t *query, *target; /* the letters beside each other have the same number */
    const int32_t *table;
    int32_t open, extend, number;
} diagonal;

typedef uint32_t vu_lanes __attribute__((vector_size(sizeof(vi))));

INLINE vi load(const int32_t *at) { return *(const vi_any *)at; }
INLINE void store(int32_t *at, vi x) { *(vi_any *)at = x; }
INLINE vi plus_all(vi a, int32_t b) { return (vi)((vu_lanes)a + (uint32_t)b); }
INLINE vi larger_all(vi a, vi b) { return visel(a > b, a, b); }

INLINE vi scores_of(const int32_t *table, vi at) {
    vi score = { 0 };
    for (int k = 0; k < VL; k++) score[k] = table[at[k]];
    return score;
}

/* Rows first .. last of a diagonal, and up to a vector beyond, which are written again before they are read; of local
 * alignments also the largest of each row, and where. */
INLINE void rows_of(const diagonal *d, int64_t first, int64_t last, bool local) {
    for (int64_t i = first; i <= last; i += VL) {
        const vi score = scores_of(d->table, load(d->query + i) + load(d->target + i));
        const vi e = larger_all(plus_all(load(d->before + i), d->open), plus_all(load(d->e + i), d->extend)),
                 f = larger_all(plus_all(load(d->before + i - 1), d->open),
                                plus_all(load(d->f_before + i - 1), d->extend)),
                 along = (vi)((vu_lanes)load(d->before_that + i - 1) + (vu_lanes)score);
        vi h = larger_all(larger_all(along, e), f);
        if (local) {
            h = larger_all(h, viset(0));
            const vi best = load(d->best + i);
            const vi more = (h > best) & (viota() <= (int32_t)(last - i < VL ? last - i : VL));
            store(d->best_at + i, visel(more, viset(d->number), load(d->best_at + i)));
            store(d->best + i, visel(more, h, best));
        }
        store(d->h + i, h);
        store(d->e + i, e);
        store(d->f + i, f);
    }
}

typedef struct found {
    int32_t best;
    int64_t i, j;
} found;

/* The best of all rows: each has the first column that it was best in. */
static found best_row(const int32_t *best, const int32_t *best_at, int64_t m) {
    found y = { 0, 0, 0 };
    for (int64_t i = 1; i <= m; i++) {
        const int64_t j = best_at[i] - i;
        if (best[i] > y.best || (best[i] == y.best && y.best > 0 && j < y.j)) y = (found){ best[i], i, j };
    }
    return y;
}

/* Letters as places in the table: lines of it for the query's, and the target's from its last to its first. */
static void read_letters(const job *w, const uint8_t *query, int64_t m, const uint8_t *target, int64_t n,
                         int32_t *lines, int32_t *columns) {
    const int32_t none = (int32_t)w->letters - 1;
    for (int64_t i = 0; i < m; i++) lines[i + 1] = (query[i] < none ? query[i] : none) * (none + 1);
    for (int64_t j = 0; j < n; j++) columns[n - 1 - j] = target[j] < none ? target[j] : none;
    for (int k = 0; k < BESIDE; k++) lines[m + 1 + k] = columns[n + k] = 0; /* for rows beyond the last */
}

static found align(const job *w, const uint8_t *query, int64_t m, const uint8_t *target, int64_t n, int32_t *memory) {
    const bool local = w->args->alignment == TRINE_ALIGN_LOCAL, global = w->args->alignment == TRINE_ALIGN_GLOBAL;
    int32_t *line[LINES];
    for (int k = 0; k < LINES; k++) line[k] = memory + k * w->line + BESIDE;
    int32_t *h[3] = { line[0], line[1], line[2] },
            *f[2] = { line[3], line[4] }, *const e = line[5], *const best = line[6], *const best_at = line[7];
    read_letters(w, query, m, target, n, line[8], line[9]);
    for (int64_t i = 0; i <= m; i++) best[i] = 0, best_at[i] = 0;
    h[1][0] = 0;
    found y = { local ? 0 : gap_of(w->args, m), local ? 0 : m, 0 };
    for (int64_t t = 1; t <= m + n; t++) {
        int32_t *const now = h[(t + 1) % 3], *const before = h[t % 3], *const before_that = h[(t + 2) % 3];
        const int64_t first = t - n > 1 ? t - n : 1, last = t - 1 < m ? t - 1 : m;
        const diagonal d = { .h = now,
                             .f = f[t % 2],
                             .before = before,
                             .before_that = before_that,
                             .f_before = f[(t + 1) % 2],
                             .e = e,
                             .best = best,
                             .best_at = best_at,
                             .query = line[8],
                             .target = line[9] + n - t,
                             .table = w->table,
                             .open = -(int32_t)w->args->gap_open,
                             .extend = -(int32_t)w->args->gap_extend,
                             .number = (int32_t)t };
        if (t <= n) now[0] = global ? gap_of(w->args, t) : 0, f[t % 2][0] = SMITH_WATERMAN_NONE;
        if (local)
            rows_of(&d, first, last, true);
        else
            rows_of(&d, first, last, false);
        if (t <= m) now[t] = local ? 0 : gap_of(w->args, t), e[t] = SMITH_WATERMAN_NONE;
        if (!local && !global && last == m && t > m && now[m] > y.best) y = (found){ now[m], m, t - m };
        if (global && t == m + n) y = (found){ now[m], m, n };
    }
    return local ? best_row(best, best_at, m) : y;
}

static void pairs(const void *context, int64_t first, int64_t last, int thread) {
    const job *w = context;
    const trine_call *call = w->call;
    const trine_tensor *query = &call->tensor[SMITH_WATERMAN_QUERY], *target = &call->tensor[SMITH_WATERMAN_TARGET],
                       *best = &call->tensor[SMITH_WATERMAN_BEST], *ends = trine_call_given(call, SMITH_WATERMAN_ENDS);
    for (int64_t b = first; b < last; b++) {
        const int64_t m = length_of(call, SMITH_WATERMAN_QUERIES, b, call->dim[SMITH_WATERMAN_DIM_M]),
                      n = length_of(call, SMITH_WATERMAN_TARGETS, b, call->dim[SMITH_WATERMAN_DIM_N]);
        const found y =
            align(w, (const uint8_t *)query->data + b * query->stride[0], m,
                  (const uint8_t *)target->data + b * target->stride[0], n, w->lines + thread * LINES * w->line);
        ((int32_t *)best->data)[b * best->stride[0]] = y.best;
        if (ends == NULL) continue;
        int64_t *const end = (int64_t *)ends->data + b * ends->stride[0];
        end[0] = y.i, end[ends->stride[1]] = y.j;
    }
}

static const char *refuse(const trine_call *call) {
    return call->dim[SMITH_WATERMAN_DIM_M] > most_letters || call->dim[SMITH_WATERMAN_DIM_N] > most_letters
               ? "sequences of 2^30 letters at most"
               : NULL;
}

static size_t workspace(const trine_call *call) {
    const int64_t letters = letters_of(call);
    return sizeof(int32_t) *
           (size_t)(cpu_round_up(letters * letters, BESIDE) + (int64_t)team_of(call) * LINES * line_of(call));
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *scores = &call->tensor[SMITH_WATERMAN_SCORES];
    const int64_t letters = letters_of(call);
    int32_t *const table = call->workspace;
    for (int64_t i = 0; i < letters; i++)
        for (int64_t j = 0; j < letters; j++)
            table[i * letters + j] = i == letters - 1 || j == letters - 1
                                         ? SMITH_WATERMAN_WORST
                                         : ((const int32_t *)scores->data)[i * scores->stride[0] + j];
    const job w = { .call = call,
                    .args = call->args,
                    .table = table,
                    .letters = letters,
                    .lines = table + cpu_round_up(letters * letters, BESIDE),
                    .line = line_of(call) };
    cpu_tasks(call, team_of(call), call->dim[SMITH_WATERMAN_DIM_B], pairs, &w);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_M, VL);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_N, VL);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_S, LETTERS);
}

CPU_KERNELS(smith_waterman) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
