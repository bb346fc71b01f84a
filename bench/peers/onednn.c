/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 2: products and softmax, on plain row-major memory as ours are (no weights packed beforehand). */
#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"

enum { MOST_ARGS = 4 };

typedef struct primitive {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    int args;
    int tensor[MOST_ARGS]; /* of the op */
    dnnl_exec_arg_t arg[MOST_ARGS];
} primitive;

static dnnl_data_type_t type_of(trine_dtype dtype) {
    switch (dtype) {
    case TRINE_F32: return dnnl_f32;
    case TRINE_BF16: return dnnl_bf16;
    case TRINE_F16: return dnnl_f16;
    case TRINE_I8: return dnnl_s8;
    case TRINE_I32: return dnnl_s32;
    default: return dnnl_data_type_undef;
    }
}

/* The description of a tensor with at least `rank` dimensions. */
static bool describe(const trine_tensor *t, int rank, dnnl_memory_desc_t *desc) {
    dnnl_dims_t shape, stride;
    const int front = rank - t->rank;
    if (front < 0 || type_of(t->dtype) == dnnl_data_type_undef) return false;
    for (int k = 0; k < rank; k++) {
        shape[k] = k < front ? 1 : t->shape[k - front];
        stride[k] = k < front ? trine_tensor_count(t) : t->stride[k - front];
    }
    return dnnl_memory_desc_init_by_strides(desc, rank, shape, type_of(t->dtype), stride) == dnnl_success;
}

static void close_primitive(void *state) {
    primitive *p = state;
    for (int i = 0; i < p->args; i++)
        if (p->arg[i].memory) dnnl_memory_destroy(p->arg[i].memory);
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->stream) dnnl_stream_destroy(p->stream);
    if (p->engine) dnnl_engine_destroy(p->engine);
    free(p);
}

static bool add_arg(primitive *p, const trine_case *c, const char *tensor, int index, int rank,
                    dnnl_memory_desc_t *desc) {
    const int i = trine_plan_find_tensor(c->plan, tensor);
    if (!(c->present >> i & 1) || !describe(&c->tensor[i], rank, desc)) return false;
    p->tensor[p->args] = i;
    p->arg[p->args].arg = index;
    return dnnl_memory_create(&p->arg[p->args++].memory, desc, p->engine, DNNL_MEMORY_NONE) == dnnl_success;
}

static bool finish(primitive *p, const_dnnl_op_desc_t op) {
    dnnl_primitive_desc_t desc;
    if (dnnl_primitive_desc_create(&desc, op, NULL, p->engine, NULL) != dnnl_success) return false;
    const bool ok = dnnl_primitive_create(&p->primitive, desc) == dnnl_success;
    dnnl_primitive_desc_destroy(desc);
    return ok && dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) == dnnl_success;
}

static bool make_matmul(primitive *p, const trine_case *c) {
    dnnl_memory_desc_t a, b, d;
    dnnl_matmul_desc_t op;
    if (!peer_plain(c, "", "") || !add_arg(p, c, "a", DNNL_ARG_SRC, 3, &a) ||
        !add_arg(p, c, "b", DNNL_ARG_WEIGHTS, 3, &b) || !add_arg(p, c, "d", DNNL_ARG_DST, 3, &d))
        return false;
    return dnnl_matmul_desc_init(&op, &a, &b, NULL, &d) == dnnl_success && finish(p, &op);
}

static bool make_softmax(primitive *p, const trine_case *c) {
    dnnl_memory_desc_t x, y;
    dnnl_softmax_desc_t op;
    if (!peer_plain(c, "", "") || !add_arg(p, c, "x", DNNL_ARG_SRC, 3, &x) || !add_arg(p, c, "y", DNNL_ARG_DST, 3, &y))
        return false;
    return dnnl_softmax_forward_desc_init(&op, dnnl_forward_inference, &x, 2) == dnnl_success && finish(p, &op);
}

static void *open_primitive(const trine_case *c, int threads) {
    primitive *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    omp_set_num_threads(threads);
    bool ok = dnnl_engine_create(&p->engine, dnnl_cpu, 0) == dnnl_success;
    if (strcmp(c->plan->spec->name, "matmul") == 0)
        ok = ok && make_matmul(p, c);
    else if (strcmp(c->plan->spec->name, "softmax") == 0)
        ok = ok && make_softmax(p, c);
    else
        ok = false;
    if (ok) return p;
    close_primitive(p);
    return NULL;
}

static bool call_primitive(void *state, const trine_case *set) {
    primitive *p = state;
    for (int i = 0; i < p->args; i++)
        if (dnnl_memory_set_data_handle_v2(p->arg[i].memory, set->tensor[p->tensor[i]].data, p->stream) != dnnl_success)
            return false;
    return dnnl_primitive_execute(p->primitive, p->stream, p->args, p->arg) == dnnl_success &&
           dnnl_stream_wait(p->stream) == dnnl_success;
}

const peer peer_onednn = { "oneDNN", "cpu", open_primitive, call_primitive, close_primitive };
