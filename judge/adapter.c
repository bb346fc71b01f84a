/* SPDX-License-Identifier: Apache-2.0 */
/* A module that adds one kernel of one op to a backend: the one that is judged, which environment variables name. Built
 * once for each backend, -DBACKEND="cpu". */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "judge.h"
#include "spec/spec_hash.h"

enum { MOST_PARAMS = TRINE_MAX_TENSORS + TRINE_MAX_SYMBOLS + TRINE_MAX_PARAMS, DIMENSIONS = 7 };

/* What the file has: functions, or device code with a grid. */
static int (*judge_launch)(const void *args, void *workspace, void *stream);
static const char *(*judge_refuse)(const void *args);
static size_t (*judge_workspace)(const void *args);
static trine_code code;
static trine_expr grid[DIMENSIONS]; /* of blocks, of threads, and bytes of shared memory */

/* ------------------------------------------------------------------------------------------------------ device code */

static bool contiguous(const trine_tensor *t) {
    int64_t next = 1;
    for (int d = t->rank - 1; d >= 0; next *= t->shape[d--])
        if (t->shape[d] != 1 && t->stride[d] != next) return false;
    return true;
}

static const char *refuse_strides(const trine_call *call) {
    for (int i = 0; i < call->plan->tensors; i++)
        if ((call->present >> i & 1) && !contiguous(&call->tensor[i])) return "only contiguous tensors";
    return NULL;
}

static uint64_t bits_of(const void *args, const trine_spec_param *param) {
    const char *const at = (const char *)args + param->offset;
    uint64_t bits;
    if (param->kind == F32) {
        const double value = *(const float *)(const void *)at;
        memcpy(&bits, &value, sizeof bits);
    } else if (param->kind == I64 || param->kind == U64 || param->kind == TEXT || param->kind == COMM) {
        memcpy(&bits, at, sizeof bits);
    } else {
        bits = (uint64_t)(int64_t)*(const int32_t *)(const void *)at;
    }
    return bits;
}

/* The parameters of the kernel, eight bytes each: the tensors of the table, NULL for those not given, its dimensions,
 * and its parameters as double or int64_t. */
static trine_status launch_code(const trine_call *call) {
    uint64_t params[MOST_PARAMS];
    double size[DIMENSIONS];
    int count = 0;
    const trine_plan *plan = call->plan;
    for (int i = 0; i < plan->tensors; i++) {
        const trine_tensor *t = trine_call_given(call, i);
        const uint64_t at = t != NULL ? (uint64_t)(uintptr_t)t->data : 0;
        params[count++] = at;
    }
    for (int s = 0; s < plan->symbols; s++) params[count++] = (uint64_t)call->dim[s];
    for (int i = 0; i < plan->params; i++) params[count++] = bits_of(call->args, &plan->spec->params[i]);
    for (int d = 0; d < DIMENSIONS; d++) {
        size[d] = floor(trine_expr_eval(&grid[d], call->dim));
        if (!(size[d] >= 0 && size[d] <= UINT32_MAX))
            return call->host->error(TRINE_ERR_ARGUMENT, "the grid's expression %d is %g", d + 1, size[d]);
    }
    const trine_launch launch = { .blocks = { (uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2] },
                                  .threads = { (uint32_t)size[3], (uint32_t)size[4], (uint32_t)size[5] },
                                  .shared = (uint32_t)size[6],
                                  .params = params,
                                  .params_size = (size_t)count * sizeof *params };
    return call->host->launch(call, &code, &launch);
}

/* The expressions behind "blocks=", "threads=" and "shared=", by commas; what is left out is 1, or 0 bytes. */
static bool read_grid(const trine_plan *plan, const char *text) {
    static const struct {
        const char *name;
        int first, most;
    } parts[] = { { "blocks=", 0, 3 }, { "threads=", 3, 3 }, { "shared=", 6, 1 } };
    for (int d = 0; d < DIMENSIONS; d++)
        if (!trine_expr_parse(plan, d == DIMENSIONS - 1 ? "0" : "1", &grid[d])) return false;
    for (const char *at = text; *at; at += strspn(at, " ")) {
        const char *const end = at + strcspn(at, " ");
        size_t k = 0;
        while (k < 3 && strncmp(at, parts[k].name, strlen(parts[k].name)) != 0) k++;
        if (k == 3) return false;
        at += strlen(parts[k].name);
        for (int d = 0; at < end; d++) {
            char word[200];
            int length = 0;
            for (int depth = 0; at + length < end && (depth > 0 || at[length] != ','); length++)
                depth += (at[length] == '(') - (at[length] == ')');
            snprintf(word, sizeof word, "%.*s", length, at);
            if (d == parts[k].most || !trine_expr_parse(plan, word, &grid[parts[k].first + d])) return false;
            at += length + (at + length < end);
        }
    }
    return true;
}

static const void *read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    char *image = NULL;
    if (file == NULL) return NULL;
    const long bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    rewind(file);
    if (bytes > 0 && (image = calloc((size_t)bytes + 1, 1)) != NULL && fread(image, 1, (size_t)bytes, file) == 0) {
        free(image);
        image = NULL;
    }
    fclose(file);
    return image;
}

/* -------------------------------------------------------------------------------------------------------- functions */

static const char *refuse(const trine_call *call) { return judge_refuse != NULL ? judge_refuse(call->args) : NULL; }

static size_t workspace(const trine_call *call) { return judge_workspace != NULL ? judge_workspace(call->args) : 0; }

static trine_status launch(const trine_call *call) {
    void *const stream = call->queue != NULL && strcmp(BACKEND, "cpu") != 0 ? *(void *const *)call->queue : NULL;
    const int status = judge_launch(call->args, call->workspace, stream);
    return status == 0 ? TRINE_OK : call->host->error(TRINE_ERR_ARGUMENT, "judge_launch() returned %d", status);
}

/* ----------------------------------------------------------------------------------------------------------- module */

/* A pointer to a function from one to data, which ISO C does not convert. */
static void find(void *library, const char *name, void *function_out) {
    void *const symbol = dlsym(library, name);
    memcpy(function_out, &symbol, sizeof symbol);
}

static bool load_functions(const char *path, char *reason, size_t size) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(reason, size, "%s", dlerror());
        return false;
    }
    find(library, "judge_launch", &judge_launch);
    find(library, "judge_refuse", &judge_refuse);
    find(library, "judge_workspace", &judge_workspace);
    if (judge_launch == NULL) snprintf(reason, size, "it has no function judge_launch()");
    return judge_launch != NULL;
}

static bool load_code(const trine_plan *plan, const char *path, const char *entry, char *reason, size_t size) {
    const char *const text = getenv(JUDGE_GRID);
    code = (trine_code){ .image = read_image(path), .function = entry };
    if (code.image == NULL)
        snprintf(reason, size, "the device code cannot be read");
    else if (text == NULL || !read_grid(plan, text))
        snprintf(reason, size, "the grid \"%s\" is not blocks=..., threads=... and shared=... of the op's dimensions",
                 text != NULL ? text : "");
    else
        return true;
    return false;
}

static trine_extension_row row;
static trine_kernel kernels[2];

static const struct {
    const char *name;
    uint64_t hash;
} ops[] = {
    { "", 0 },
#define OP(name, NAME) { #name, TRINE_OP_HASH_##NAME },
#include <trine/op_rows.h>
#undef OP
};

static bool find_op(const char *name) {
    for (int op = 1; op < TRINE_OP_COUNT; op++)
        if (strcmp(ops[op].name, name) == 0) row.op = op, row.op_hash = ops[op].hash;
    return row.op != 0;
}

static const trine_extension *extend(const trine_host *host, char *reason_out, size_t reason_size) {
    static const trine_extension extension = { .struct_size = sizeof extension, .rows = 1, .row = &row };
    const char *const backend = getenv(JUDGE_BACKEND), *const op = getenv(JUDGE_OP), *const path = getenv(JUDGE_FILE),
                      *const entry = getenv(JUDGE_ENTRY);
    (void)host;
    if (backend == NULL || op == NULL || path == NULL || strcmp(backend, BACKEND) != 0 || !find_op(op)) {
        snprintf(reason_out, reason_size, "nothing is judged");
        return NULL;
    }
    if (!(entry != NULL ? load_code(trine_plan_get(row.op), path, entry, reason_out, reason_size)
                        : load_functions(path, reason_out, reason_size)))
        return NULL;
    kernels[0] = (trine_kernel){ .name = JUDGE_KERNEL,
                                 .refuse = entry != NULL ? refuse_strides : refuse,
                                 .workspace = entry != NULL ? NULL : workspace,
                                 .launch = entry != NULL ? launch_code : launch };
    row.kernels = kernels;
    return &extension;
}

TRINE_MODULE(.name = "judge_" BACKEND, .version = TRINE_VERSION, .extends = BACKEND, .extend = extend);
