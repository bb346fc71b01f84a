/* SPDX-License-Identifier: Apache-2.0 */
/* A module whose kernels are deliberately wrong, each in one way that mutants.def names: what the agreement engine must
 * catch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "damage.h"
#include "mutant.h"
#include "record.h"
#include "spec/spec_hash.h"
#include "tests/host_device.h"

/* All defects; a kernel knows those of its op. */
typedef enum defect {
    correct,
    wrong_tail,
    wrong_fast_path,
    unwritten_output,
    reads_beyond,
    reads_before,
    writes_beyond,
    writes_padding,
    input_modified,
    wrong_stride,
    wrong_rounding,
    nan_swallowed,
    ignores_optional,
    ignores_parameter,
    nondeterministic,
    depends_on_threads,
    off_by_one_mask,
    top_left_mask,
    not_shifted,
    masked_row_nan,
    not_in_place,
    never_ends,
    dropped_k,
    low_accumulator,
    ignores_transposition,
    ignores_beta,
    wrong_batch,
    stale_workspace,
    workspace_overrun,
    accumulation_loss,
    wrong_index,
    ids_unchecked,
    writes_before_error,
    runs_at_once
} defect;

static const trine_tensor *tensor(const trine_call *call, const char *name) {
    const int index = trine_plan_find_tensor(call->plan, name);
    return call->present >> index & 1 ? &call->tensor[index] : NULL;
}

static int64_t dim(const trine_call *call, const char *name) {
    return call->dim[trine_plan_find_symbol(call->plan, name)];
}

/* The place of element (i, j, k) of a tensor of rank 3, (j, k) of rank 2, (k) of rank 1. */
static int64_t place(const trine_tensor *t, int64_t i, int64_t j, int64_t k) {
    const int64_t index[3] = { i, j, k };
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++) at += t->stride[d] * index[3 - t->rank + d];
    return at;
}

static double get(const trine_tensor *t, int64_t i, int64_t j, int64_t k) {
    return trine_load(t->data, t->dtype, place(t, i, j, k));
}

static void put(const trine_tensor *t, int64_t i, int64_t j, int64_t k, double value) {
    trine_store(t->data, t->dtype, place(t, i, j, k), value);
}

static int threads_of(const trine_call *call) { return *(const int *)call->queue; }

/* --------------------------------------------------------------------------------------------------------- rms_norm */

static const char *rms_norm_refuses(const trine_call *call) {
    const trine_rms_norm_args *args = call->args;
    if (tensor(call, "residual") || tensor(call, "residual_out")) return "no residual";
    return args->dropout != 0 || args->rounding != TRINE_ROUND_ONCE ? "no dropout, one rounding" : NULL;
}

static double mean_square(const trine_call *call, defect d, const trine_tensor *x, int64_t i, int64_t n) {
    static int calls;
    const bool backwards = d == nondeterministic && calls++ % 2, low = d == nondeterministic || d == depends_on_threads;
    const int parts = d == depends_on_threads ? threads_of(call) : 1;
    double sum = 0;
    for (int part = 0; part < parts; part++) {
        double partial = 0;
        for (int64_t j = part; j < n; j += parts) {
            double v = get(x, 0, i, backwards ? n - 1 - j : j);
            if (d == nan_swallowed && isnan(v)) v = 0;
            partial = low ? (float)(partial + v * v) : partial + v * v;
        }
        sum += partial;
    }
    return sum / (double)n;
}

/* Rows of some length, of whole vectors of 16 bytes in every tensor that has them: what kernels are fastest at. */
static bool whole_rows(const trine_call *call, int64_t n) {
    static const char *const names[] = { "x", "weight", "y" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const trine_tensor *t = tensor(call, names[i]);
        if (t == NULL) continue;
        const int64_t width = (int64_t)trine_dtype_size(t->dtype),
                      row = t->rank > 1 && t->shape[0] > 1 ? t->stride[0] * width : 0;
        if ((uintptr_t)t->data % 16 != 0 || row % 16 != 0 || t->stride[t->rank - 1] != 1) return false;
    }
    return n >= 1024 && n % 16 == 0;
}

static trine_status rms_norm(const trine_call *call, defect d) {
    const trine_rms_norm_args *args = call->args;
    trine_tensor x = *tensor(call, "x");
    const trine_tensor *weight = tensor(call, "weight"), *y = tensor(call, "y"), *rstd = tensor(call, "rstd");
    const int64_t r = dim(call, "r"), n = dim(call, "n");
    const size_t width = trine_dtype_size(x.dtype);
    if (d == wrong_stride) x.stride[0] = n;
    for (int64_t i = 0; i < r; i++) {
        const double scale = 1 / sqrt(mean_square(call, d, &x, i, n) + (double)args->eps);
        if (rstd) put(rstd, 0, 0, i, scale);
        for (int64_t j = 0; j < n; j++) {
            const bool tail =
                d == wrong_tail ? j >= n / 8 * 8 : d == wrong_fast_path && j == n - 1 && whole_rows(call, n);
            const double offset = d == ignores_parameter ? 0 : args->weight_offset,
                         w = weight && d != ignores_optional ? get(weight, 0, 0, j) + offset : 1;
            double v = get(&x, 0, i, j);
            if (d == nan_swallowed && isnan(v)) v = 0;
            v *= (tail ? 1 : scale) * w;
            if (d == wrong_rounding) v *= 1 - trine_unit_roundoff(y->dtype);
            if (d == unwritten_output && i == r - 1 && j == n - 1) continue;
            put(y, 0, i, j, v);
        }
        if (d == writes_padding && (i + 1 < r || y->stride[0] == n)) put(y, 0, i, n, 0);
    }
    volatile unsigned char sink = 0;
    if (d == reads_beyond) sink = ((unsigned char *)x.data)[(size_t)place(&x, 0, r - 1, n) * width];
    if (d == reads_before) sink = ((unsigned char *)x.data)[-(int64_t)width];
    if (d == writes_beyond) put(y, 0, r - 1, n, 0);
    if (d == input_modified && x.data != y->data) put(&x, 0, r - 1, n - 1, 0.5);
    (void)sink;
    return TRINE_OK;
}

/* ---------------------------------------------------------------------------------------------------------- softmax */

static double score(const trine_call *call, const trine_tensor *x, int64_t b, int64_t i, int64_t j) {
    return get(x, b, i, j) * (double)((const trine_softmax_args *)call->args)->scale;
}

static void softmax_row(const trine_call *call, defect d, int64_t b, int64_t i, int64_t n, int64_t visible) {
    const trine_tensor *x = tensor(call, "x"), *y = tensor(call, "y");
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; d == not_in_place && j < n; j++) put(y, b, i, j, 0);
    for (int64_t j = 0; j < visible; j++) {
        const double s = score(call, x, b, i, j);
        if (s > most || isnan(s)) most = s;
    }
    if (d == not_shifted) most = 0;
    for (int64_t j = 0; j < visible; j++)
        sum += d == not_shifted ? (double)expf((float)score(call, x, b, i, j)) : exp(score(call, x, b, i, j) - most);
    for (int64_t j = 0; j < n; j++)
        put(y, b, i, j,
            j < visible                           ? exp(score(call, x, b, i, j) - most) / sum
            : visible == 0 && d == masked_row_nan ? NAN
                                                  : 0);
}

static trine_status softmax(const trine_call *call, defect d) {
    const trine_softmax_args *args = call->args;
    const int64_t g = dim(call, "g"), s = dim(call, "s"), n = dim(call, "n");
    while (d == never_ends && n >= 7) usleep(1000);
    for (int64_t b = 0; b < g; b++)
        for (int64_t i = 0; i < s; i++) {
            int64_t visible = args->causal ? i + (d == top_left_mask ? 0 : n - s) + 1 + (d == off_by_one_mask) : n;
            visible = visible < 0 ? 0 : visible > n ? n : visible;
            softmax_row(call, d, b, i, n, visible);
        }
    return TRINE_OK;
}

/* ----------------------------------------------------------------------------------------------------------- matmul */

static const char *matmul_refuses(const trine_call *call) {
    if (tensor(call, "a")->dtype == TRINE_I8) return "no integers";
    return ((const trine_matmul_args *)call->args)->activation > TRINE_ACTIVATION_RELU ? "only relu" : NULL;
}

static double dot(const trine_call *call, defect d, int64_t batch, int64_t i, int64_t j, int64_t k) {
    const trine_tensor *a = tensor(call, "a");
    trine_tensor b = *tensor(call, "b");
    if (d == ignores_transposition && b.stride[2] != 1) b.stride[1] = dim(call, "n"), b.stride[2] = 1;
    const int64_t ga = dim(call, "ga") > 1 ? batch : 0, gb = dim(call, "gb") > 1 || d == wrong_batch ? batch : 0;
    double sum = 0;
    for (int64_t p = 0; p < k - (d == dropped_k && k % 2); p++) {
        sum += get(a, ga, i, p) * get(&b, gb, p, j);
        if (d == low_accumulator) sum = trine_round(sum, a->dtype, false);
    }
    return sum;
}

static trine_status matmul(const trine_call *call, defect d) {
    const trine_matmul_args *args = call->args;
    const trine_tensor *c = tensor(call, "c"), *bias = tensor(call, "bias"), *out = tensor(call, "d");
    const trine_tensor *a_scale = tensor(call, "a_scale"), *b_scale = tensor(call, "b_scale");
    const int64_t m = dim(call, "m"), n = dim(call, "n"), count = dim(call, "g") * m * n;
    for (int64_t at = 0; at < count; at++) {
        const int64_t batch = at / (m * n), i = at / n % m, j = at % n;
        double v = (double)args->alpha * dot(call, d, batch, i, j, dim(call, "k"));
        if (a_scale) v *= get(a_scale, 0, batch, i);
        if (b_scale) v *= get(b_scale, 0, batch, j);
        if (c) v += (d == ignores_beta ? 1 : (double)args->beta) * get(c, batch, i, j);
        if (bias) v += get(bias, 0, 0, j);
        put(out, batch, i, j, args->activation == TRINE_ACTIVATION_RELU && v < 0 ? 0 : v);
    }
    return TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------- reduce_sum */

static size_t reduce_sum_workspace(const trine_call *call) {
    return tensor(call, "column_sums") ? (size_t)dim(call, "n") * 8 : 0;
}

static trine_status reduce_sum(const trine_call *call, defect d) {
    const trine_tensor *x = tensor(call, "x"), *rows = tensor(call, "row_sums"), *columns = tensor(call, "column_sums");
    const int64_t r = dim(call, "r"), n = dim(call, "n");
    double *sums = call->workspace;
    if (columns && n > 0 && d != stale_workspace) memset(sums, 0, (size_t)n * 8);
    if (columns && n > 0 && d == workspace_overrun) sums[n] = 0;
    for (int64_t i = 0; i < r; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const double v = get(x, 0, i, j);
            sum += v;
            if (columns) sums[j] += v;
            if (d == accumulation_loss) sum = (float)sum;
            if (d == low_accumulator) sum = trine_round(sum, x->dtype, false);
        }
        if (rows) put(rows, 0, 0, i, sum);
    }
    for (int64_t j = 0; columns && j < n; j++) put(columns, 0, 0, j, sums[j]);
    return TRINE_OK;
}

/* -------------------------------------------------------------------------------------------- dropout and embedding */

static trine_status dropout(const trine_call *call, defect d) {
    const trine_dropout_args *args = call->args;
    const trine_tensor *x = tensor(call, "x"), *y = tensor(call, "y"), *mask = tensor(call, "mask");
    const trine_tensor *philox = tensor(call, "philox");
    const int64_t *words = philox != NULL ? philox->data : (const int64_t[]){ (int64_t)args->seed, 0 };
    const uint64_t seed = (uint64_t)words[0], offset = args->offset + (uint64_t)words[1];
    int64_t count = 1;
    for (int e = 0; e < x->rank; e++) count *= x->shape[e];
    for (int64_t k = 0; k < count; k++) {
        int64_t at[3] = { 0 }, rest = k;
        const trine_tensor *const t[3] = { x, y, mask };
        for (int e = x->rank - 1; e >= 0; rest /= x->shape[e--])
            for (int i = 0; i < 3; i++)
                if (t[i]) at[i] += rest % x->shape[e] * t[i]->stride[e];
        const bool keep = trine_dropout_keep(seed, offset, (uint64_t)(d == wrong_index ? at[1] : k), args->p);
        trine_store(y->data, y->dtype, at[1],
                    keep ? trine_load(x->data, x->dtype, at[0]) * (double)trine_dropout_scale(args->p) : 0);
        if (mask) trine_store(mask->data, mask->dtype, at[2], keep);
    }
    return TRINE_OK;
}

static trine_status embedding(const trine_call *call, defect d) {
    const trine_tensor *table = tensor(call, "table"), *ids = tensor(call, "ids"), *y = tensor(call, "y");
    const int64_t rows = dim(call, "t"), n = dim(call, "n"), v = dim(call, "v");
    for (int pass = d == ids_unchecked || d == writes_before_error ? 1 : 0; pass < 2; pass++)
        for (int64_t i = 0; i < rows; i++) {
            const int64_t id = (int64_t)get(ids, 0, 0, i);
            if (d != ids_unchecked && (id < 0 || id >= v))
                return call->host->error(TRINE_ERR_ARGUMENT, "embedding: ids[%lld] is %lld", (long long)i,
                                         (long long)id);
            for (int64_t j = 0; pass == 1 && j < n; j++) put(y, 0, i, j, get(table, 0, id, j));
        }
    return TRINE_OK;
}

/* ----------------------------------------------------------------------------------------------------------- module */

#define CORRECT(op) MUTANT(op, correct, "")
#define MUTANT(op, defect, what) \
    static trine_status op##_##defect##_now(const trine_call *call) { return op(call, defect); } \
    static trine_status op##_##defect(const trine_call *call) { \
        return defect == runs_at_once ? op##_##defect##_now(call) : record_submit(call, op##_##defect##_now); \
    }
#include "mutants.def"
#undef CORRECT
#undef MUTANT

static const struct {
    const char *op;
    trine_kernel kernel;
} rows[] = {
#define CORRECT(op) { #op, { .name = #op "_correct", .launch = op##_correct } },
#define MUTANT(op, defect, what) { #op, { .name = #op "_" #defect, .launch = op##_##defect } },
#include "mutants.def"
#undef CORRECT
#undef MUTANT
};

static trine_kernel lists[TRINE_OP_COUNT][sizeof rows / sizeof rows[0] + MUTANT_MOST + 16];

static const trine_kernel *kernels(const trine_device *device, int op) {
    (void)device;
    return lists[op][0].name ? lists[op] : NULL;
}

static trine_status queue_open(const trine_device *device, const trine_queue_options *options, void **queue_out) {
    (void)device;
    int *threads = malloc(sizeof *threads);
    if (threads == NULL) return TRINE_ERR_MEMORY;
    *threads = options->threads > 0 ? options->threads : 1;
    *queue_out = threads;
    return TRINE_OK;
}

static void queue_close(const trine_device *device, void *queue) {
    (void)device;
    free(queue);
}

static trine_device device = {
    .info = { .name = "mutant:0",
              .model = "deliberately wrong kernels",
              .arch = "mutant",
              .units = 1,
              .numa_node = -1 },
    .bytes_per_second = 1e9,
    .flops_per_second = 1e9,
    .driver = "",
};

static trine_backend backend = {
    .struct_size = sizeof backend,
    .name = "mutant",
    .devices = 1,
    .device = &device,
    .kernels = kernels,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .queue_wait = queue_wait,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .memory_write = memory_write,
    .memory_read = memory_read,
    .memory_copy = memory_copy,
};

static const trine_backend *init(const trine_host *host, char *reason_out, size_t reason_size) {
    (void)host;
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        int count = 0;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (strcmp(rows[i].op, trine_specs[op]->name) != 0) continue;
            trine_kernel *kernel = &lists[op][count++];
            *kernel = rows[i].kernel;
            if (op == TRINE_OP_RMS_NORM) kernel->refuse = rms_norm_refuses;
            if (op == TRINE_OP_MATMUL) kernel->refuse = matmul_refuses;
            if (op == TRINE_OP_REDUCE_SUM) kernel->workspace = reduce_sum_workspace;
        }
        if (!damage_kernels((trine_op)op, lists[op], &count) || !mutant_kernels((trine_op)op, lists[op], &count)) {
            snprintf(reason_out, reason_size, "no queue of the CPU: %s", trine_error_message());
            return NULL;
        }
    }
    record_fill_backend(&backend);
    return &backend;
}

extern const trine_module module __asm__(TRINE_MODULE_SYMBOL) __attribute__((visibility("default")));
const trine_module module = { .magic = TRINE_MODULE_MAGIC,
                              .abi = TRINE_ABI,
                              .struct_size = sizeof module,
                              .spec_hash = TRINE_SPEC_HASH,
                              .name = "mutant",
                              .version = TRINE_VERSION,
                              .init = init };
