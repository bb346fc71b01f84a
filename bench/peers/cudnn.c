/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: attention and its gradient on a CUDA device, by the first engine that its heuristics offer, as PyTorch takes
 * it. The library is opened at run time.
 *
 * A problem is a graph of operations over tensors in memory and virtual ones, which cuDNN turns into one kernel or a
 * few: the products, what lies between them, and the sums. The gradient keeps sums of dout o, and those of dq in f32,
 * in memory. */
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "spec/places/attention.h"
#include "spec/places/attention_backward.h"

#define ENTRY_POINTS(ENTRY) \
    ENTRY(Create) \
    ENTRY(Destroy) \
    ENTRY(BackendCreateDescriptor) \
    ENTRY(BackendDestroyDescriptor) \
    ENTRY(BackendSetAttribute) \
    ENTRY(BackendGetAttribute) \
    ENTRY(BackendFinalize) \
    ENTRY(BackendExecute)

static struct {
#define ENTRY(name) __typeof__(&cudnn##name) name;
    ENTRY_POINTS(ENTRY)
#undef ENTRY
} cudnn;

static bool open_library(void) {
    static void *library;
    if (library != NULL) return true;
    void *const opened = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) return false;
#define ENTRY(name) \
    *(void **)&cudnn.name = dlsym(opened, "cudnn" #name); \
    if (cudnn.name == NULL) return false;
    ENTRY_POINTS(ENTRY)
#undef ENTRY
    library = opened;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- graphs */

enum { MOST_MADE = 128, MOST_OPERATIONS = 32, MOST_GIVEN = 16, MOST_OFFERED = 8 };

typedef cudnnBackendDescriptor_t object;

/* What the tensor of an operation holds: its place among the case's tensors, or memory of the graph's own, which `data`
 * points to. */
enum { OWN = -1 };
typedef struct given {
    int64_t id;
    int place;
    void *data;
} given;

typedef struct graph {
    bool ok; /* nothing has failed so far */
    cudnnHandle_t handle;
    object made[MOST_MADE], operation[MOST_OPERATIONS], plan;
    int count, operations, givens;
    given given[MOST_GIVEN];
    int64_t id; /* of the last tensor */
    float scalar[4];
    int scalars;
    void *memory[2], *workspace;
    int memories;
} graph;

static object make(graph *g, cudnnBackendDescriptorType_t type) {
    object o = NULL;
    g->ok = g->ok && g->count < MOST_MADE && cudnn.BackendCreateDescriptor(type, &o) == CUDNN_STATUS_SUCCESS;
    if (g->ok) g->made[g->count++] = o;
    return o;
}

static void set(graph *g, object o, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values) {
    g->ok = g->ok && cudnn.BackendSetAttribute(o, name, type, count, values) == CUDNN_STATUS_SUCCESS;
}
static void set_object(graph *g, object o, cudnnBackendAttributeName_t name, object value) {
    set(g, o, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}
static void set_type(graph *g, object o, cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(g, o, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

static void finish(graph *g, object o) { g->ok = g->ok && cudnn.BackendFinalize(o) == CUDNN_STATUS_SUCCESS; }

static void add_operation(graph *g, object o) {
    finish(g, o);
    g->ok = g->ok && g->operations < MOST_OPERATIONS;
    if (g->ok) g->operation[g->operations++] = o;
}

static void close_graph(void *state) {
    graph *g = state;
    while (g->count > 0) cudnn.BackendDestroyDescriptor(g->made[--g->count]);
    for (int i = 0; i < g->memories; i++) cudaFree(g->memory[i]);
    cudaFree(g->workspace);
    if (g->handle != NULL) cudnn.Destroy(g->handle);
    free(g);
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

/* Batch, head, row, column. */
typedef struct form {
    int64_t dim[4], stride[4];
} form;

typedef struct value {
    object tensor;
    form form;
} value;

static form packed(int64_t b, int64_t h, int64_t rows, int64_t columns) {
    return (form){ { b, h, rows, columns }, { h * rows * columns, rows * columns, columns, 1 } };
}

static form transpose(form f) {
    return (form){ { f.dim[0], f.dim[1], f.dim[3], f.dim[2] }, { f.stride[0], f.stride[1], f.stride[3], f.stride[2] } };
}

static object make_tensor(graph *g, const form *f, cudnnDataType_t type) {
    const int64_t alignment = 16, id = ++g->id;
    const object o = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(g, o, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(g, o, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, f->dim);
    set(g, o, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, f->stride);
    set(g, o, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(g, o, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    return o;
}

static value make_virtual(graph *g, form f, cudnnDataType_t type) {
    const bool yes = true;
    const value v = { make_tensor(g, &f, type), f };
    set(g, v.tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    finish(g, v.tensor);
    return v;
}

static void give(graph *g, int place, void *data) {
    g->ok = g->ok && g->givens < MOST_GIVEN;
    if (g->ok) g->given[g->givens++] = (given){ g->id, place, data };
}

static value make_given(graph *g, form f, cudnnDataType_t type, int place) {
    const value v = { make_tensor(g, &f, type), f };
    give(g, place, NULL);
    finish(g, v.tensor);
    return v;
}

static value make_memory(graph *g, form f) {
    const value v = { make_tensor(g, &f, CUDNN_DATA_FLOAT), f };
    void **const memory = &g->memory[g->memories];
    g->ok = g->ok && cudaMalloc(memory, (size_t)(f.dim[0] * f.stride[0]) * sizeof(float)) == cudaSuccess;
    if (g->ok) g->memories++;
    give(g, OWN, *memory);
    finish(g, v.tensor);
    return v;
}

static value make_scalar(graph *g, float x) {
    const bool yes = true;
    const form f = packed(1, 1, 1, 1);
    const value v = { make_tensor(g, &f, CUDNN_DATA_FLOAT), f };
    float *const at = &g->scalar[g->scalars++];
    *at = x;
    set(g, v.tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    give(g, OWN, at);
    finish(g, v.tensor);
    return v;
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* to = mode(x, b), or of a third for the choice between two; `compute`: the type it is done in; `axis`: of places. */
static void operate(graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis, const value *x,
                    const value *b, const value *t, const value *to) {
    const object what = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR),
                 o = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(g, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(g, what, CUDNN_ATTR_POINTWISE_MATH_PREC, compute);
    if (axis >= 0) set(g, what, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finish(g, what);
    set_object(g, o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    set_object(g, o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x->tensor);
    if (b != NULL) set_object(g, o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->tensor);
    if (t != NULL) set_object(g, o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t->tensor);
    set_object(g, o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to->tensor);
    add_operation(g, o);
}

static void apply_to(graph *g, cudnnPointwiseMode_t mode, value x, const value *b, const value *to) {
    operate(g, mode, CUDNN_DATA_FLOAT, -1, &x, b, NULL, to);
}

static value apply(graph *g, cudnnPointwiseMode_t mode, value x, const value *b) {
    const value y = make_virtual(g, x.form, CUDNN_DATA_FLOAT);
    apply_to(g, mode, x, b, &y);
    return y;
}

/* The place of each element along a dimension. */
static value index_of(graph *g, const value *x, int64_t axis) {
    const value y = make_virtual(g, x->form, CUDNN_DATA_INT32);
    operate(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis, x, NULL, NULL, &y);
    return y;
}

static void reduce(graph *g, cudnnReduceTensorOp_t how, const value *x, const value *to) {
    const object what = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(g, what, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    set_type(g, what, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(g, what);
    const object o = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_object(g, o, CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
    set_object(g, o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x->tensor);
    set_object(g, o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to->tensor);
    add_operation(g, o);
}

/* One value of each row. */
static value reduce_rows(graph *g, cudnnReduceTensorOp_t how, value x) {
    const value y = make_virtual(g, packed(x.form.dim[0], x.form.dim[1], x.form.dim[2], 1), CUDNN_DATA_FLOAT);
    reduce(g, how, &x, &y);
    return y;
}

static void multiply(graph *g, const value *a, const value *b, const value *to) {
    const object what = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(g, what, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(g, what);
    const object o = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_object(g, o, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a->tensor);
    set_object(g, o, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b->tensor);
    set_object(g, o, CUDNN_ATTR_OPERATION_MATMUL_CDESC, to->tensor);
    set_object(g, o, CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
    add_operation(g, o);
}

/* The same elements as rows that were columns. */
static value turn(graph *g, const value *x, cudnnDataType_t type) {
    const value y = make_virtual(g, transpose(x->form), type);
    const object o = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_object(g, o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x->tensor);
    set_object(g, o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.tensor);
    add_operation(g, o);
    return y;
}

/* Scores that a query does not see become -Inf. */
static value hide(graph *g, value scores) {
    const value row = index_of(g, &scores, 2), column = index_of(g, &scores, 3),
                sees = make_virtual(g, scores.form, CUDNN_DATA_BOOLEAN);
    const value nothing = make_scalar(g, -INFINITY), y = make_virtual(g, scores.form, CUDNN_DATA_FLOAT);
    operate(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1, &row, &column, NULL, &sees);
    operate(g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, &scores, &nothing, &sees, &y);
    return y;
}

/* -------------------------------------------------------------------------------------------------------- attention */

/* Tokens, then heads, as cuDNN numbers dimensions. */
static form form_of(const trine_tensor *t) {
    const int first = t->rank - 3;
    const int64_t batches = first > 0 ? t->shape[0] : 1, batch = first > 0 ? t->stride[0] : t->shape[0] * t->stride[0];
    return (form){ { batches, t->shape[first + 1], t->shape[first], t->shape[first + 2] },
                   { batch, t->stride[first + 1], t->stride[first], t->stride[first + 2] } };
}

typedef struct problem {
    cudnnDataType_t type;
    form q, k;
    float scale;
    bool causal;
} problem;

static value scores_of(graph *g, const problem *p, const value *q, const value *k_turned, const value *scale) {
    const value s = make_virtual(g, packed(p->q.dim[0], p->q.dim[1], p->q.dim[2], p->k.dim[2]), CUDNN_DATA_FLOAT);
    multiply(g, q, k_turned, &s);
    return apply(g, CUDNN_POINTWISE_MUL, s, scale);
}

static void build_forward(graph *g, const problem *p, bool with_lse) {
    const value q = make_given(g, p->q, p->type, ATTENTION_Q), k = make_given(g, transpose(p->k), p->type, ATTENTION_K),
                v = make_given(g, p->k, p->type, ATTENTION_V);
    const value scale = make_scalar(g, p->scale), o = make_given(g, p->q, p->type, ATTENTION_O);
    value s = scores_of(g, p, &q, &k, &scale);
    if (p->causal) s = hide(g, s);
    const value most = reduce_rows(g, CUDNN_REDUCE_TENSOR_MAX, s);
    const value weights = apply(g, CUDNN_POINTWISE_EXP, apply(g, CUDNN_POINTWISE_SUB, s, &most), NULL);
    const value sum = reduce_rows(g, CUDNN_REDUCE_TENSOR_ADD, weights);
    const value log = apply(g, CUDNN_POINTWISE_LOG, sum, NULL);
    const value lse =
        /* none knows it without */
        with_lse ? make_given(g, sum.form, CUDNN_DATA_FLOAT, ATTENTION_LSE)
                 : make_virtual(g, sum.form, CUDNN_DATA_FLOAT);
    apply_to(g, CUDNN_POINTWISE_ADD, most, &log, &lse);
    const value shares = make_virtual(g, s.form, p->type);
    apply_to(g, CUDNN_POINTWISE_DIV, weights, &sum, &shares);
    multiply(g, &shares, &v, &o);
}

/* What keys or values get from all heads of a group. */
static void gather(graph *g, const problem *p, const value *weights, const value *x, int place) {
    const value to = make_given(g, p->k, p->type, place);
    if (p->q.dim[1] == p->k.dim[1]) {
        multiply(g, weights, x, &to);
        return;
    }
    const value each = make_virtual(g, packed(p->q.dim[0], p->q.dim[1], p->k.dim[2], p->k.dim[3]), p->type);
    multiply(g, weights, x, &each);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, &each, &to);
}

static void build_backward(graph *g, const problem *p) {
    const form rows = packed(p->q.dim[0], p->q.dim[1], p->q.dim[2], 1),
               wide = packed(p->q.dim[0], p->q.dim[1], p->q.dim[2], p->q.dim[3]);
    const value dout = make_given(g, p->q, p->type, ATTENTION_BACKWARD_DOUT),
                o = make_given(g, p->q, p->type, ATTENTION_BACKWARD_O),
                q = make_given(g, p->q, p->type, ATTENTION_BACKWARD_Q);
    const value k = make_given(g, transpose(p->k), p->type, ATTENTION_BACKWARD_K),
                v = make_given(g, transpose(p->k), p->type, ATTENTION_BACKWARD_V);
    const value lse = make_given(g, rows, CUDNN_DATA_FLOAT, ATTENTION_BACKWARD_LSE), scale = make_scalar(g, p->scale),
                one = make_scalar(g, 1);
    const value products = make_virtual(g, wide, CUDNN_DATA_FLOAT), delta = make_memory(g, rows),
                dq_sum = make_memory(g, wide);
    apply_to(g, CUDNN_POINTWISE_MUL, dout, &o, &products);
    const value sums = reduce_rows(g, CUDNN_REDUCE_TENSOR_ADD, products);
    apply_to(g, CUDNN_POINTWISE_MUL, sums, &one, &delta);
    value s = apply(g, CUDNN_POINTWISE_SUB, scores_of(g, p, &q, &k, &scale), &lse);
    if (p->causal) s = hide(g, s);
    const value weights = apply(g, CUDNN_POINTWISE_EXP, s, NULL), weights_turned = turn(g, &weights, p->type);
    gather(g, p, &weights_turned, &dout, ATTENTION_BACKWARD_DV);
    const value dp = make_virtual(g, s.form, CUDNN_DATA_FLOAT);
    multiply(g, &dout, &v, &dp);
    const value ds = apply(g, CUDNN_POINTWISE_MUL,
                           apply(g, CUDNN_POINTWISE_MUL, apply(g, CUDNN_POINTWISE_SUB, dp, &delta), &weights), &scale);
    const value ds_turned = turn(g, &ds, p->type);
    gather(g, p, &ds_turned, &q, ATTENTION_BACKWARD_DK);
    const value rows_of_k = turn(g, &k, CUDNN_DATA_FLOAT), dq = make_given(g, p->q, p->type, ATTENTION_BACKWARD_DQ);
    multiply(g, &ds, &rows_of_k, &dq_sum);
    apply_to(g, CUDNN_POINTWISE_IDENTITY, dq_sum, NULL, &dq);
}

/* ------------------------------------------------------------------------------------------------------------- peer */

/* The plan of the first offer that the library can keep. */
static void choose(graph *g, object whole) {
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    object offered[MOST_OFFERED];
    int64_t count = 0, bytes = 0;
    const object asked = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_object(g, asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    set(g, asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finish(g, asked);
    for (int i = 0; i < MOST_OFFERED; i++) offered[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    g->ok = g->ok && cudnn.BackendGetAttribute(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                               MOST_OFFERED, &count, offered) == CUDNN_STATUS_SUCCESS;
    for (int i = 0; g->ok && i < count && i < MOST_OFFERED && g->plan == NULL; i++) {
        const object plan = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        set(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
        set_object(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, offered[i]);
        if (g->ok && cudnn.BackendFinalize(plan) == CUDNN_STATUS_SUCCESS) g->plan = plan;
    }
    g->ok = g->ok && g->plan != NULL &&
            cudnn.BackendGetAttribute(g->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                      &bytes) == CUDNN_STATUS_SUCCESS &&
            cudaMalloc(&g->workspace, bytes > 0 ? (size_t)bytes : 1) == cudaSuccess;
}

static double number_of(const trine_case *c, const char *param) {
    return trine_param_get(c->plan, trine_plan_find_param(c->plan, param), c->args);
}

static bool describe(problem *p, const trine_case *c, bool backward) {
    const trine_tensor *q = &c->tensor[backward ? ATTENTION_BACKWARD_Q : ATTENTION_Q];
    const double scale = number_of(c, "scale");
    *p = (problem){ .type = q->dtype == TRINE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
                    .q = form_of(q),
                    .k = form_of(&c->tensor[backward ? ATTENTION_BACKWARD_K : ATTENTION_K]),
                    .causal = number_of(c, "causal") != 0 };
    p->scale = scale != 0 ? (float)scale : 1 / sqrtf((float)p->q.dim[3]);
    /* the mask is aligned at the top left */
    return (q->dtype == TRINE_BF16 || q->dtype == TRINE_F16) && !(p->causal && p->q.dim[2] != p->k.dim[2]);
}

static void *open_attention(const trine_case *c, int threads) {
    const bool forward = strcmp(c->plan->spec->name, "attention") == 0,
               backward = strcmp(c->plan->spec->name, "attention_backward") == 0;
    problem p;
    (void)threads;
    if (!(forward || backward) || !peer_plain(c, "scale causal", "lse") || !describe(&p, c, backward) ||
        !open_library())
        return NULL;
    graph *g = calloc(1, sizeof *g);
    if (g == NULL) return NULL;
    g->ok = cudnn.Create(&g->handle) == CUDNN_STATUS_SUCCESS;
    if (forward)
        build_forward(g, &p, c->present >> ATTENTION_LSE & 1);
    else
        build_backward(g, &p);
    const object whole = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operations, g->operation);
    set(g, whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    finish(g, whole);
    choose(g, whole);
    if (g->ok) return g;
    close_graph(g);
    return NULL;
}

static bool call_attention(void *state, const trine_case *c) {
    graph *g = state;
    object pack;
    int64_t id[MOST_GIVEN];
    void *data[MOST_GIVEN];
    for (int i = 0; i < g->givens; i++)
        id[i] = g->given[i].id,
        data[i] = g->given[i].place == OWN ? g->given[i].data : c->tensor[g->given[i].place].data;
    g->ok = cudnn.BackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack) == CUDNN_STATUS_SUCCESS;
    if (!g->ok) return false;
    set(g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, g->givens, id);
    set(g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, g->givens, data);
    set(g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &g->workspace);
    finish(g, pack);
    g->ok = g->ok && cudnn.BackendExecute(g->handle, g->plan, pack) == CUDNN_STATUS_SUCCESS;
    cudnn.BackendDestroyDescriptor(pack);
    return g->ok;
}

static bool wait_device(void *state) {
    (void)state;
    return cudaDeviceSynchronize() == cudaSuccess;
}

const peer peer_cudnn = { "cuDNN", "cuda", open_attention, call_attention, close_graph, wait_device };
