/* SPDX-License-Identifier: Apache-2.0 */
/* Golden cases: a call with its inputs and what an oracle that knows nothing of this library makes of them, read from
 * DIRECTORY/<family>/<op>.txt.
 *
 *     # comment
 *     case NAME: WORDS              the words of case.h
 *     in TENSOR 2x3                 its shape, or "scalar"; then its elements in row-major order
 *      1 -0x3p-4 nan 5*0 ...        numbers as C has them; 5*0: five zeros
 *     out TENSOR 2x3                likewise what must come out, before it is rounded to the type of the tensor
 * / */
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "spec/number.h"

/* The file's text as it is read, and why it cannot be. */
typedef struct reader {
    char *at;
    char *error;
    size_t size;
} reader;

#define WRONG(r, ...) (trine_snprintf((r)->error, (r)->size, __VA_ARGS__), false)

/* The file of an op; NULL if there is none. */
static char *read_file(const char *directory, const char *op, char *path_out, size_t size) {
    char pattern[512];
    glob_t found;
    char *text = NULL;
    long length = 0;
    snprintf(pattern, sizeof pattern, "%s/*/%s.txt", directory, op);
    snprintf(path_out, size, "%s/<family>/%s.txt", directory, op);
    if (glob(pattern, 0, NULL, &found) != 0) return NULL;
    snprintf(path_out, size, "%s", found.gl_pathv[0]);
    globfree(&found);
    FILE *file = fopen(path_out, "rb");
    if (file == NULL) return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        text = calloc((size_t)length + 1, 1);
    if (text != NULL && fread(text, 1, (size_t)length, file) != (size_t)length) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* Where case `index` begins, behind the word "case"; the next one is cut off. NULL if there are fewer. */
static char *find_case(char *text, int64_t index) {
    char *at = strncmp(text, "case ", 5) == 0 ? text : strstr(text, "\ncase ");
    for (; at != NULL && index > 0; index--) at = strstr(at + 1, "\ncase ");
    if (at == NULL) return NULL;
    at += *at == '\n';
    char *next = strstr(at, "\ncase ");
    if (next != NULL) next[1] = 0;
    return at + 5;
}

static char *next_line(reader *r) {
    char *line = r->at, *end = strchr(line, '\n');
    if (*line == 0) return NULL;
    r->at = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    return line;
}

/* The shape of a tensor as it is passed, "2x3" or "scalar": of full length, or 1 where it is broadcast, or without what
 * may be missing in front. */
static bool place_tensor(problem *p, int tensor, const char *shape, reader *r) {
    const trine_plan_tensor *want = &p->plan->tensor[tensor];
    operand *o = &p->operand[tensor];
    trine_tensor *view = &p->call.tensor[tensor], *full = &o->full;
    int64_t size[TRINE_MAX_RANK], stride = 1;
    int rank = 0;
    if (strcmp(shape, "scalar") != 0)
        for (char *at = (char *)shape; rank < TRINE_MAX_RANK && *at; at += *at == 'x')
            size[rank++] = strtoll(at, &at, 10);
    if (rank > want->rank) return WRONG(r, "%s has %d dimensions of %d", want->spec->name, rank, want->rank);
    *full = (trine_tensor){ .dtype = trine_plan_dtype(p->plan, tensor, p->call.type), .rank = want->rank };
    *view = (trine_tensor){ .dtype = full->dtype, .rank = rank };
    trine_plan_shape(p->plan, tensor, p->call.dim, full->shape);
    o->count = 1;
    for (int d = 0; d < want->rank; d++) o->count *= full->shape[d];
    const bool transposed = p->call.transposed >> tensor & 1 && rank > 1;
    for (int n = rank - 1; n >= 0; n--) { /* from the innermost on */
        const int d = transposed && n >= rank - 2 ? 2 * rank - 3 - n : n, f = want->rank - rank + d;
        view->shape[d] = size[d];
        view->stride[d] = stride;
        full->stride[f] = size[d] == full->shape[f] ? stride : 0;
        if (size[d] != full->shape[f] && (size[d] != 1 || !(want->spec->flags & BROADCAST)))
            return WRONG(r, "dimension %d of %s is %" PRId64 " instead of %" PRId64, d, want->spec->name, size[d],
                         full->shape[f]);
        stride *= size[d];
    }
    for (int f = 0; f < want->rank - rank; f++)
        if (!want->dim[f].optional && !(want->spec->flags & BROADCAST))
            return WRONG(r, "%s lacks dimensions", want->spec->name);
    layout_place(o);
    return true;
}

/* The elements of the tensor as passed, spread over its full shape. */
static bool read_elements(problem *p, int tensor, double *to, reader *r) {
    const char *name = p->plan->tensor[tensor].spec->name;
    const trine_tensor *view = &p->call.tensor[tensor];
    operand *o = &p->operand[tensor];
    int64_t count = 1, have = 0;
    for (int d = 0; d < view->rank; d++) count *= view->shape[d];
    double *given = calloc((size_t)count + 1, sizeof *given);
    for (char *end; have < count && *r->at == ' '; r->at = end + (*end == '\n')) {
        double x = trine_strtod(r->at, &end);
        int64_t times = 1;
        if (end == r->at) break;
        if (*end == '*') {
            times = (int64_t)x;
            x = trine_strtod(end + 1, &end);
        }
        for (; times > 0 && have < count; times--) given[have++] = x;
    }
    bool ok = have == count && *r->at != ' ';
    if (!ok) snprintf(r->error, r->size, "%s has %" PRId64 " elements or more, not %" PRId64, name, have, count);
    for (int64_t k = 0; ok && k < o->count; k++) {
        int64_t rest = k, from = 0, step = 1;
        for (int d = o->full.rank - 1; d >= 0; rest /= o->full.shape[d--]) {
            const int inner = d - (o->full.rank - view->rank);
            const int64_t size = inner < 0 ? 1 : view->shape[inner];
            from += rest % o->full.shape[d] % size * step;
            step *= size;
        }
        to[k] = given[from];
    }
    free(given);
    return ok;
}

/* Puts the elements of an input into its memory; each must be a value of the type. */
static bool store_input(problem *p, int tensor, reader *r) {
    operand *o = &p->operand[tensor];
    for (int64_t k = 0; k < o->count; k++) {
        trine_store(o->image, o->full.dtype, o->at[k], o->value[k]);
        const double stored = trine_load(o->image, o->full.dtype, o->at[k]);
        const bool same =
            isnan(stored) ? isnan(o->value[k]) : stored == o->value[k] && signbit(stored) == signbit(o->value[k]);
        if (!same)
            return WRONG(r, "element %" PRId64 " of %s, %.17g, is no %s", k, p->plan->tensor[tensor].spec->name,
                         o->value[k], trine_dtype_name(o->full.dtype));
    }
    return true;
}

/* "in TENSOR SHAPE" or "out TENSOR SHAPE", and the elements behind. An op's in-out tensor has both. */
static bool read_tensor(problem *p, const char *line, uint32_t *seen, reader *r) {
    char kind[8], name[64], shape[160];
    if (sscanf(line, "%7s %63s %159s", kind, name, shape) != 3)
        return WRONG(r, "\"%.60s\" is not \"in TENSOR SHAPE\" or \"out TENSOR SHAPE\"", line);
    const int tensor = trine_plan_find_tensor(p->plan, name), out = strcmp(kind, "out") == 0;
    if (tensor < 0 || !(out ? problem_output(p, tensor) : problem_input(p, tensor)))
        return WRONG(r, "%s %s: the call has no such tensor", kind, name);
    operand *o = &p->operand[tensor];
    if (o->at == NULL) {
        if (!place_tensor(p, tensor, shape, r)) return false;
        o->value = calloc((size_t)o->count + 1, sizeof *o->value);
        o->image = calloc(o->bytes + 1, 1);
        if (problem_output(p, tensor)) {
            o->magnitude = calloc((size_t)o->count + 1, sizeof *o->magnitude);
            o->slack = calloc((size_t)o->count + 1, sizeof *o->slack);
            o->golden = calloc((size_t)o->count + 1, sizeof *o->golden);
        }
    }
    seen[out] |= 1u << tensor;
    return read_elements(p, tensor, out ? o->golden : o->value, r) && (out || store_input(p, tensor, r));
}

static bool read_problem(problem *p, reader *r) {
    uint32_t seen[2] = { 0, 0 };
    char *line = next_line(r);
    if (line == NULL) return WRONG(r, "the case is empty");
    if (!trine_case_parse(&p->call, line, r->error, r->size) || !trine_case_finish(&p->call, r->error, r->size))
        return false;
    while ((line = next_line(r)) != NULL)
        if (*line && *line != '#' && !read_tensor(p, line, seen, r)) return false;
    p->empty = true;
    for (int i = 0; i < p->plan->tensors; i++) {
        const char *name = p->plan->tensor[i].spec->name;
        if (problem_input(p, i) && !(seen[0] >> i & 1)) return WRONG(r, "the values of %s are missing", name);
        if (problem_output(p, i) && !(seen[1] >> i & 1)) return WRONG(r, "what %s must be is missing", name);
        if (problem_output(p, i) && p->operand[i].count > 0) p->empty = false;
    }
    problem_complete(p);
    return true;
}

golden_status golden_make(problem *p, const trine_plan *plan, const char *directory, int64_t index, char *error,
                          size_t size) {
    char path[512], detail[256];
    char *text = read_file(directory, plan->spec->name, path, sizeof path);
    char *start = text ? find_case(text, index) : NULL;
    reader r = { start, detail, sizeof detail };
    memset(p, 0, sizeof *p);
    p->plan = plan;
    p->kind = PROBLEM_GOLDEN;
    p->fill = FILL_GOLDEN;
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) p->operand[i].alias = -1;
    trine_case_init(&p->call, plan->op);
    golden_status status = start ? GOLDEN_CASE : index > 0 ? GOLDEN_END : GOLDEN_WRONG;
    if (status == GOLDEN_WRONG)
        snprintf(error, size,
                 "there are no golden vectors for %s: add a function for it to tests/golden/<family>/oracle.py, with "
                 "expected values of an oracle outside this "
                 "repository, and run tests/golden/make.py %s, which writes %s (CONTRIBUTING.md)",
                 plan->spec->name, plan->spec->name, path);
    if (status == GOLDEN_CASE && !read_problem(p, &r)) {
        snprintf(error, size, "%s, case g%" PRId64 ": %s", path, index, detail);
        problem_free(p);
        status = GOLDEN_WRONG;
    }
    free(text);
    return status;
}
