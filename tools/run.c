/* SPDX-License-Identifier: Apache-2.0 */
/* trine run: one op on tensors in .npy files, entirely from the specification. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "output.h"
#include "tool.h"

enum { MOST_ROWS = 2 * TRINE_MAX_TENSORS + TRINE_MAX_PARAMS + 10, MOST_SHOWN = 1000 };

typedef struct run {
    const trine_plan *plan;
    trine_case c;
    target target;
    const char *types, *dims;
    const char *file[TRINE_MAX_TENSORS];     /* --x FILE: read, or written if x is an output */
    const char *file_out[TRINE_MAX_TENSORS]; /* --x-out FILE of a tensor updated in place */
    const char *param[TRINE_MAX_PARAMS];
    npy input[TRINE_MAX_TENSORS];
    output output[TRINE_MAX_TENSORS];
    FILE *list; /* where what was done is told */
    void *host[TRINE_MAX_TENSORS];
    size_t bytes[TRINE_MAX_TENSORS];
    char error[512];
} run;

static bool is_input(const run *r, int i) { return r->plan->tensor[i].spec->flags & IN; }
static bool is_output(const run *r, int i) { return r->plan->tensor[i].spec->flags & OUT; }

/* ---------------------------------------------------------------------------------------------------------- options */

static char *text(const char *format, const char *a, const char *b) {
    char *made = NULL;
    return asprintf(&made, format, a, b) < 0 ? NULL : made;
}

/* The op's tensors and parameters as options, then those of every run. `made` gathers strings to free. */
static int make_rows(run *r, option_row *rows, char **made) {
    const trine_plan *plan = r->plan;
    int count = 0, strings = 0;
    for (int i = 0; i < plan->tensors; i++) {
        const trine_spec_tensor *t = plan->tensor[i].spec;
        const bool both = is_input(r, i) && is_output(r, i);
        const char *kind = both ? "updated in place: read from FILE" : is_input(r, i) ? "input" : "output";
        char *help = made[strings++] = text(t->flags & OPTIONAL ? "%s, optional, [%s]" : "%s, [%s]", kind, t->shape);
        rows[count++] = (option_row)OPTION_TEXT(t->name, &r->file[i], "FILE", help);
        if (!both) continue;
        char *name = made[strings++] = text("%s%s", t->name, "-out");
        rows[count++] = (option_row)OPTION_TEXT(name, &r->file_out[i], "FILE", "where the updated tensor goes");
    }
    for (int i = 0; i < plan->params; i++) {
        const trine_spec_param *p = &plan->spec->params[i];
        if (p->kind == COMM) continue; /* a call of the command is of all ranks */
        if (p->kind == BOOL)
            rows[count++] = (option_row)OPTION_MAYBE(p->name, &r->param[i], "0|1", p->doc ? p->doc : "");
        else
            rows[count++] = (option_row)OPTION_TEXT(p->name, &r->param[i],
                                                    p->kind == ENUM  ? "NAME"
                                                    : p->kind == F32 ? "X"
                                                                     : "N",
                                                    p->doc ? p->doc : "");
    }
    const option_row common[] = {
        OPTION_TEXT("types", &r->types, "T=TYPE,...",
                    "element types (default: those of the files, as far as the op takes them)"),
        OPTION_TEXT("dims", &r->dims, "\"n=N ...\"", "dimensions that no input tells"),
        TARGET_OPTIONS(r->target),
        PART_OPTION(r->target),
        { 0 },
    };
    memcpy(rows + count, common, sizeof common);
    return strings;
}

/* Here and below: 0 to go on, else the exit status, after a message. */
static int read_options(run *r, int argc, char **argv) {
    option_row rows[MOST_ROWS];
    char *made[2 * TRINE_MAX_TENSORS] = { 0 }, usage[96], about[640];
    const int strings = make_rows(r, rows, made);
    snprintf(usage, sizeof usage, "trine run %s [options]", r->plan->spec->name);
    snprintf(about, sizeof about, "%s.\n%s", r->plan->spec->summary, r->plan->spec->formula);
    const option_set set = { usage, about, rows };
    const int words = options_parse(&set, argc, argv, NULL, 0);
    for (int i = 0; i < strings; i++) free(made[i]);
    if (words < 0) return words;
    for (int i = 0; i < r->plan->params; i++) {
        if (r->param[i] == NULL) continue;
        const trine_spec_param *p = &r->plan->spec->params[i];
        const char *value = p->kind == BOOL && strcmp(r->param[i], "-") == 0 ? "1" : r->param[i];
        if (!trine_case_set(&r->c, p->name, value, r->error, sizeof r->error))
            return usage_error("run", "%s", r->error);
    }
    if ((r->types && !trine_case_parse(&r->c, r->types, r->error, sizeof r->error)) ||
        (r->dims && !trine_case_parse(&r->c, r->dims, r->error, sizeof r->error)))
        return usage_error("run", "%s", r->error);
    return 0;
}

/* Which tensors are there. */
static int choose_present(run *r) {
    r->c.present = 0;
    for (int i = 0; i < r->plan->tensors; i++) {
        const trine_spec_tensor *t = r->plan->tensor[i].spec;
        if (r->file[i] == NULL && r->file_out[i])
            return usage_error("run", "--%s-out is given, but --%s is not: it is read before it is updated", t->name,
                               t->name);
        if (r->file[i] == NULL && is_input(r, i) && !(t->flags & OPTIONAL))
            return usage_error("run", "%s needs --%s FILE, a tensor of shape [%s]", r->plan->spec->name, t->name,
                               t->shape);
        if (r->file[i] || !(t->flags & OPTIONAL)) r->c.present |= 1u << i;
    }
    return 0;
}

/* --------------------------------------------------------------------------------------------- types and dimensions */

static int read_inputs(run *r) {
    for (int i = 0; i < r->plan->tensors; i++) {
        if (r->file[i] == NULL || !is_input(r, i)) continue;
        if (!npy_read(r->file[i], &r->input[i], r->error, sizeof r->error))
            return failure("%s: %s", r->plan->tensor[i].spec->name, r->error);
        const int rank = r->plan->tensor[i].rank;
        if (r->input[i].rank > rank)
            return failure("%s: %s has %d dimensions, %s takes [%s]", r->plan->spec->name, r->file[i], r->input[i].rank,
                           r->plan->tensor[i].spec->name, r->plan->tensor[i].spec->shape);
    }
    return 0;
}

/* Of the admissible rows that agree with --types, the first that keeps most inputs as their files have them. */
static void choose_types(run *r) {
    const trine_plan *plan = r->plan;
    int most = -1, best = -1;
    for (int row = 0; row < plan->combos; row++) {
        int kept = 0;
        bool agrees = true;
        for (int t = 0; t < plan->types; t++)
            agrees &= r->c.type[t] == TRINE_NONE || r->c.type[t] == plan->combo[row][t];
        for (int i = 0; i < plan->tensors; i++)
            if (r->input[i].data) kept += trine_plan_dtype(plan, i, plan->combo[row]) == npy_dtype(&r->input[i]);
        if (agrees && kept > most) {
            most = kept;
            best = row;
        }
    }
    if (best >= 0) memcpy(r->c.type, plan->combo[best], sizeof r->c.type);
}

/* Binds the symbols that the inputs' shapes tell and --dims does not, first come first; a broadcast dimension of 1
 * tells nothing unless nothing else does. */
static void bind_dims(run *r) {
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < r->plan->tensors; i++) {
            const trine_plan_tensor *t = &r->plan->tensor[i];
            if (r->input[i].data == NULL) continue;
            for (int k = 0; k < r->input[i].rank; k++) {
                const trine_dim *dim = &t->dim[t->rank - r->input[i].rank + k];
                const int64_t length = r->input[i].shape[k];
                if (dim->symbol < 0 || r->c.dim[dim->symbol] >= 0) continue;
                if (pass == 0 && (t->spec->flags & BROADCAST) && length == 1) continue;
                if (length >= dim->add) r->c.dim[dim->symbol] = length - dim->add;
            }
        }
    }
}

/* Gives an input's tensor the shape of its file, and strides for Fortran order where the specification admits them. */
static int shape_input(run *r, int i) {
    const trine_spec_tensor *t = r->plan->tensor[i].spec;
    const npy *n = &r->input[i];
    trine_tensor *tensor = &r->c.tensor[i];
    tensor->rank = n->rank;
    int64_t stride = 1;
    for (int k = n->rank - 1; k >= 0; k--) {
        tensor->shape[k] = n->shape[k];
        tensor->stride[k] = stride;
        stride *= n->shape[k] ? n->shape[k] : 1;
    }
    const bool transposed = (t->flags & TRANSPOSABLE) && n->rank == 2;
    const bool as_it_is = n->fortran && !is_output(r, i) && ((t->flags & ANY_STRIDE) || transposed);
    for (int k = 0; k < n->rank && as_it_is; k++) tensor->stride[k] = npy_stride(n, k);
    if (n->kind != 'V' && npy_dtype(n) != tensor->dtype)
        fprintf(stderr, "trine: %s: %s has %s, converted to %s\n", t->name, r->file[i], npy_type_name(n),
                trine_dtype_name(tensor->dtype));
    r->bytes[i] = (size_t)n->count * trine_dtype_size(tensor->dtype);
    r->host[i] = malloc(r->bytes[i] ? r->bytes[i] : 1);
    if (r->host[i] == NULL) return failure("%s: out of memory: %zu bytes", t->name, r->bytes[i]);
    if (npy_convert(n, tensor->dtype, !as_it_is, r->host[i], r->error, sizeof r->error)) return 0;
    return failure("%s: %s: %s", t->name, r->file[i], r->error);
}

static int make_tensors(run *r) {
    choose_types(r);
    bind_dims(r);
    const uint32_t chosen = r->c.present;
    if (!trine_case_finish(&r->c, r->error, sizeof r->error)) return failure("%s", r->error);
    r->c.present = chosen; /* what the op requires of optional tensors is for the op to say */
    trine_case_link(&r->c);
    for (int i = 0; i < r->plan->tensors; i++) {
        if (!(r->c.present >> i & 1)) continue;
        if (is_input(r, i)) {
            const int status = shape_input(r, i);
            if (status) return status;
            npy_free(&r->input[i]);
        } else {
            const int64_t count = trine_tensor_count(&r->c.tensor[i]);
            if (count < 0 ||
                __builtin_mul_overflow((size_t)count, trine_dtype_size(r->c.tensor[i].dtype), &r->bytes[i]) ||
                (r->host[i] = malloc(r->bytes[i] ? r->bytes[i] : 1)) == NULL)
                return failure("%s: out of memory: %" PRId64 " elements", r->plan->tensor[i].spec->name, count);
        }
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------- running */

static int call(run *r) {
    trine_queue *queue = r->target.queue;
    bool ok = true;
    for (int i = 0; i < r->plan->tensors && ok; i++) {
        if (!(r->c.present >> i & 1)) continue;
        ok = trine_memory_alloc(queue, r->bytes[i] ? r->bytes[i] : 1, &r->c.tensor[i].data) == TRINE_OK;
        if (ok && is_input(r, i))
            ok = trine_memory_write(queue, r->c.tensor[i].data, r->host[i], r->bytes[i]) == TRINE_OK;
    }
    ok = ok && trine_run(queue, r->plan->op, r->c.args) == TRINE_OK && trine_queue_wait(queue) == TRINE_OK;
    for (int i = 0; i < r->plan->tensors && ok; i++)
        if ((r->c.present >> i & 1) && is_output(r, i))
            ok = trine_memory_read(queue, r->host[i], r->c.tensor[i].data, r->bytes[i]) == TRINE_OK;
    if (!ok) failure("%s", trine_error_message());
    for (int i = 0; i < r->plan->tensors; i++)
        if (r->c.tensor[i].data) trine_memory_free(queue, r->c.tensor[i].data);
    return ok ? 0 : 1;
}

/* ---------------------------------------------------------------------------------------------------------- outputs */

/* Where output `i` goes: NULL nowhere, "-" to be shown. */
static const char *output_file(const run *r, int i) {
    if (!(r->c.present >> i & 1) || !is_output(r, i)) return NULL;
    return is_input(r, i) ? r->file_out[i] : r->file[i];
}

/* Before anything is computed: all results will have a place. */
static int open_outputs(run *r) {
    r->list = stdout;
    for (int i = 0; i < r->plan->tensors; i++) {
        const char *file = output_file(r, i), *name = r->plan->tensor[i].spec->name;
        if (file == NULL || strcmp(file, "-") == 0) continue;
        if (!output_open(&r->output[i], file, r->error, sizeof r->error)) return failure("%s: %s", name, r->error);
        if (output_is_stdout(&r->output[i])) r->list = stderr;
        for (int k = 0; k < i; k++)
            if (r->output[i].target && r->output[k].target && strcmp(r->output[i].target, r->output[k].target) == 0)
                return usage_error("run", "%s and %s go to the same file, %s", r->plan->tensor[k].spec->name, name,
                                   file);
    }
    return 0;
}

static void show(FILE *list, const trine_tensor *tensor, const void *host) {
    const int64_t count = trine_tensor_count(tensor);
    for (int64_t i = 0; i < count && i < MOST_SHOWN; i++) {
        if (tensor->dtype == TRINE_I64)
            fprintf(list, " %" PRId64, ((const int64_t *)host)[i]);
        else
            fprintf(list, " %.9g", trine_load(host, tensor->dtype, i));
    }
    fprintf(list, "%s\n", count > MOST_SHOWN ? " ..." : "");
}

static void tell_output(const run *r, int i) {
    const trine_tensor *tensor = &r->c.tensor[i];
    const char *file = output_file(r, i);
    fprintf(r->list, "%s %s [", r->plan->tensor[i].spec->name, trine_dtype_name(tensor->dtype));
    for (int k = 0; k < tensor->rank; k++) fprintf(r->list, "%s%" PRId64, k ? ", " : "", tensor->shape[k]);
    fputs("]", r->list);
    if (file && strcmp(file, "-") == 0)
        show(r->list, tensor, r->host[i]);
    else if (file == NULL)
        fputs(", not written\n", r->list);
    else if (npy_written(tensor->dtype) != tensor->dtype)
        fprintf(r->list, " as %s -> %s\n", trine_dtype_name(npy_written(tensor->dtype)), file);
    else
        fprintf(r->list, " -> %s\n", file);
}

/* Writes all results, then gives all their names, and only then tells of them. */
static int write_outputs(run *r) {
    for (int i = 0; i < r->plan->tensors; i++) {
        const trine_tensor *tensor = &r->c.tensor[i];
        output *o = &r->output[i];
        if (o->file == NULL) continue;
        const bool written = npy_write(o->file, r->host[i], tensor->dtype, tensor->rank, tensor->shape);
        if (!written) snprintf(r->error, sizeof r->error, "%s: %s", o->path, strerror(errno));
        if (!written || !output_finish(o, r->error, sizeof r->error))
            return failure("%s: %s", r->plan->tensor[i].spec->name, r->error);
    }
    for (int i = 0; i < r->plan->tensors; i++)
        if (!output_commit(&r->output[i], r->error, sizeof r->error))
            return failure("%s: %s", r->plan->tensor[i].spec->name, r->error);
    for (int i = 0; i < r->plan->tensors; i++)
        if ((r->c.present >> i & 1) && is_output(r, i)) tell_output(r, i);
    return 0;
}

static void release(run *r) {
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) {
        npy_free(&r->input[i]);
        free(r->host[i]);
        output_discard(&r->output[i]);
    }
    free(r);
}

int trine_tool_run(int argc, char **argv) {
    if (argc < 2) return usage_error("run", "no op given");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        puts("usage: trine run OP [--TENSOR FILE.npy ...] [--PARAMETER VALUE ...] [options]\n"
             "Runs one op on tensors read from and written to .npy files.\n\n"
             "\"trine run OP --help\" lists the tensors, parameters and options of an op; \"trine spec\" the ops.");
        return 0;
    }
    const trine_op op = find_op("run", argv[1]);
    if (op == TRINE_OP_NONE) return 2;
    run *r = calloc(1, sizeof *r);
    if (r == NULL) return failure("out of memory");
    r->plan = trine_plan_get(op);
    trine_case_init(&r->c, op);
    int status = read_options(r, argc - 1, argv + 1);
    if (status == 0) status = choose_present(r);
    if (status == 0) status = read_inputs(r);
    if (status == 0) status = make_tensors(r);
    if (status == 0) status = open_outputs(r);
    if (status == 0 && (status = target_open(&r->target, "run")) == 0) {
        status = call(r);
        if (status == 0) status = write_outputs(r);
        target_close(&r->target);
    }
    release(r);
    return status < 0 ? options_status(status) : status;
}
