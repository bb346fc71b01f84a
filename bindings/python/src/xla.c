/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of ops by XLA, for trine.jax. There is one handler for each of XLA's platforms. Its attribute "call" is what
 * op_pack made where the computation was traced; its buffers are the tensors that this names. XLA's threads do not hold
 * the GIL, and nothing of Python is used in a handler. */
#include <string.h>

#include "binding.h"
#include "xla.h"

static const trine_dtype dtypes[XLA_TYPES] = {
    [XLA_S8] = TRINE_I8,
    [XLA_S16] = TRINE_I16,
    [XLA_S32] = TRINE_I32,
    [XLA_S64] = TRINE_I64,
    [XLA_U8] = TRINE_U8,
    [XLA_U32] = TRINE_U32,
    [XLA_F16] = TRINE_F16,
    [XLA_F32] = TRINE_F32,
    [XLA_F64] = TRINE_F64,
    [XLA_BF16] = TRINE_BF16,
    [XLA_F8E5M2] = TRINE_E5M2,
    [XLA_F8E4M3FN] = TRINE_E4M3,
    [XLA_F8E5M2FNUZ] = TRINE_E5M2FNUZ,
    [XLA_F8E4M3FNUZ] = TRINE_E4M3FNUZ,
    [XLA_F8E8M0FNU] = TRINE_E8M0,
};

typedef struct request {
    const xla_frame *frame;
    const table *t;
    uint32_t operands, results;
    int32_t device_type;
    _Alignas(16) unsigned char args[TABLE_ARGS];
    trine_tensor tensor[TABLE_TENSORS];
} request;

/* --------------------------------------------------------------------------------------------------------- the call */

/* Texts lie behind the arguments, which say where. */
static int find_texts(request *r, const xla_span *bytes, failure *why) {
    for (int i = 0; i < r->t->params; i++) {
        size_t at;
        if (r->t->param[i].kind != KIND_TEXT) continue;
        memcpy(&at, r->args + r->t->param[i].offset, sizeof at);
        if (at == 0) continue;
        if (at >= bytes->length || memchr(bytes->text + at, 0, bytes->length - at) == NULL)
            return fail(why, TRINE_ERR_ARGUMENT, "%s: the attribute \"call\" has no %s", r->t->name,
                        r->t->param[i].name);
        const char *text = bytes->text + at;
        memcpy(r->args + r->t->param[i].offset, &text, sizeof text);
    }
    return 0;
}

static int decode(request *r, failure *why) {
    const xla_attributes *a = &r->frame->attributes;
    const xla_span *bytes = NULL;
    packed head;
    for (int64_t i = 0; i < a->count; i++)
        if (a->kinds[i] == XLA_STRING && a->names[i]->length == 4 && memcmp(a->names[i]->text, "call", 4) == 0)
            bytes = a->values[i];
    if (bytes == NULL || bytes->length < sizeof head)
        return fail(why, TRINE_ERR_ARGUMENT, "trine: the attribute \"call\" of a custom call is not trine's");
    memcpy(&head, bytes->text, sizeof head);
    for (int i = 0; i < op_count && r->t == NULL; i++)
        if ((int32_t)op_tables[i]->op == head.op) r->t = op_tables[i];
    if (r->t == NULL || r->t->stamp != head.stamp || bytes->length < sizeof head + r->t->args_size ||
        r->t->args_size > sizeof r->args)
        return fail(why, TRINE_ERR_ARGUMENT,
                    "%s: this computation was exported by a trine whose op has other arguments: export it again",
                    r->t != NULL ? r->t->name : "trine");
    r->operands = head.operands;
    r->results = head.results;
    memcpy(r->args, bytes->text + sizeof head, r->t->args_size);
    return find_texts(r, bytes, why);
}

/* JAX without 64 bits brings an i64 as two words, the lower one first: it has one dimension more. */
static bool is_pair(const table_tensor *tt, const xla_buffer *b) {
    return tt->variable < 0 && tt->dtype == TRINE_I64 && (b->type == XLA_S32 || b->type == XLA_U32) && b->rank > 0 &&
           b->shape[b->rank - 1] == 2;
}

static int place(request *r, int i, const xla_buffer *b, failure *why) {
    const table_tensor *tt = &r->t->tensor[i];
    int64_t stride[ARRAY_RANK], count = 1;
    several unused;
    if (b->size < sizeof *b || (size_t)b->type >= XLA_TYPES || dtypes[b->type] == TRINE_NONE)
        return fail(why, TRINE_ERR_ARGUMENT, "%s: %s has elements of XLA's type %d, which trine does not have",
                    r->t->name, tt->name, b->type);
    const bool pair = is_pair(tt, b);
    const int rank = (int)b->rank - pair;
    if (rank > ARRAY_RANK)
        return fail(why, TRINE_ERR_ARGUMENT, "%s: %s has %d dimensions, but %d are possible", r->t->name, tt->name,
                    rank, ARRAY_RANK);
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = count;
        count *= b->shape[d];
    }
    const view v = { b->data, pair ? TRINE_I64 : dtypes[b->type], rank, b->shape, stride };
    const trine_tensor *tensor = &r->tensor[i];
    memcpy(r->args + tt->offset, &tensor, sizeof tensor);
    return shape_tensor(r->t, i, &v, &r->tensor[i], &unused, why);
}

/* What is updated in place is an operand and a result, in the same memory: the result is taken. */
static int place_all(request *r, const xla_buffers *b, uint32_t mask, failure *why) {
    int64_t next = 0;
    for (int i = 0; i < r->t->tensors; i++) {
        if (!(mask >> i & 1)) continue;
        if (next >= b->count || b->kinds[next] != XLA_BUFFER)
            return fail(why, TRINE_ERR_ARGUMENT, "%s: XLA did not bring %s", r->t->name, r->t->tensor[i].name);
        if (place(r, i, b->values[next++], why) != 0) return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------- the device */

/* XLA's own errors are not passed on: they would be of its allocator or its streams, and trine says what it needed. */
static bool succeeded(const xla_api *api, xla_error *error) {
    if (error == NULL) return true;
    xla_destroy_args args = { .size = sizeof args, .error = error };
    api->error_destroy(&args);
    return false;
}

static int find_device(const request *r, void **stream_out, failure *why) {
    const xla_api *api = r->frame->api;
    *stream_out = NULL;
    if (r->device_type == DL_CPU) return 0;
    xla_stream_args stream = { .size = sizeof stream, .context = r->frame->context };
    xla_ordinal_args ordinal = { .size = sizeof ordinal, .context = r->frame->context };
    if (!succeeded(api, api->stream(&stream)) || !succeeded(api, api->ordinal(&ordinal)))
        return fail(why, TRINE_ERR_DEVICE, "%s: XLA tells neither its stream nor its device", r->t->name);
    *stream_out = stream.stream;
    return device_number(r->device_type, ordinal.ordinal, r->t->name, "the computation", why);
}

/* On a device the workspace is XLA's memory, in the order of its stream. */
static int run_lent(const request *r, trine_queue *queue, failure *why) {
    const xla_api *api = r->frame->api;
    size_t bytes = 0;
    trine_status status = trine_workspace(queue, r->t->op, r->args, &bytes);
    xla_allocate_args memory = {
        .size = sizeof memory, .context = r->frame->context, .bytes = bytes, .alignment = 256
    };
    if (status == TRINE_OK && bytes > 0) {
        if (!succeeded(api, api->allocate(&memory)))
            return fail(why, TRINE_ERR_MEMORY, "%s: XLA has no %zu bytes for the workspace", r->t->name, bytes);
        status = trine_queue_set_workspace(queue, memory.memory, bytes);
    }
    if (status == TRINE_OK) status = trine_run(queue, r->t->op, r->args);
    if (status != TRINE_OK) fail_as_library(why, status);
    if (memory.memory != NULL) {
        trine_queue_set_workspace(queue, NULL, 0);
        xla_free_args args = {
            .size = sizeof args, .context = r->frame->context, .bytes = bytes, .memory = memory.memory
        };
        succeeded(api, api->free(&args));
    }
    return status == TRINE_OK ? 0 : -1;
}

static int execute(request *r, failure *why) {
    void *stream;
    if (decode(r, why) != 0 || place_all(r, &r->frame->arguments, r->operands, why) != 0 ||
        place_all(r, &r->frame->results, r->results, why) != 0)
        return -1;
    const int device = find_device(r, &stream, why);
    lane *l = device >= 0 ? lane_take(device, stream, why) : NULL;
    if (l == NULL) return -1;
    int failed;
    if (device != 0) {
        failed = run_lent(r, l->queue, why);
    } else {
        const trine_status status = trine_run(l->queue, r->t->op, r->args);
        failed = status != TRINE_OK ? fail_as_library(why, status) : 0;
    }
    lane_give(l);
    return failed;
}

/* --------------------------------------------------------------------------------------------------------- handlers */

static xla_error *fail_for_xla(const xla_api *api, const failure *why) {
    static const int codes[] = { [TRINE_ERR_ARGUMENT] = XLA_INVALID_ARGUMENT,
                                 [TRINE_ERR_UNSUPPORTED] = XLA_UNIMPLEMENTED,
                                 [TRINE_ERR_MEMORY] = XLA_EXHAUSTED };
    const size_t status = (size_t)why->status;
    const int code = status < sizeof codes / sizeof codes[0] && codes[status] != 0 ? codes[status] : XLA_INTERNAL;
    xla_error_args args = { .size = sizeof args, .message = why->text, .code = code };
    return api->error_create(&args);
}

/* XLA asks once for which version the handler was made, and refuses one that it does not know. A call of ours may not
 * be recorded in a command buffer: the workspace would be another's at a replay. */
static void tell(xla_metadata *metadata) {
    metadata->version.major = XLA_MAJOR;
    metadata->version.minor = XLA_MINOR;
    metadata->traits = 0;
    if (metadata->size >= sizeof *metadata) metadata->state_type = 0;
}

static xla_error *handle(xla_frame *frame, int32_t device_type) {
    const xla_extension *e = frame->extension;
    if (e != NULL && e->type == XLA_EXTENSION_METADATA) {
        tell(((const xla_metadata_extension *)e)->metadata);
        return NULL;
    }
    if (frame->stage != XLA_EXECUTE) return NULL;
    request r;
    failure why;
    memset(&r, 0, offsetof(request, tensor));
    r.frame = frame;
    r.device_type = device_type;
    const bool known = frame->api->version.major == XLA_MAJOR && frame->api->size >= sizeof *frame->api &&
                       frame->size >= offsetof(xla_frame, future);
    const int failed = known ? execute(&r, &why)
                             : fail(&why, TRINE_ERR_UNSUPPORTED, "trine: XLA's interface is %d.%d, but trine needs 0.3",
                                    frame->api->version.major, frame->api->version.minor);
    return failed != 0 ? fail_for_xla(frame->api, &why) : NULL;
}

static xla_error *handle_cpu(xla_frame *frame) { return handle(frame, DL_CPU); }
static xla_error *handle_cuda(xla_frame *frame) { return handle(frame, DL_CUDA); }
static xla_error *handle_rocm(xla_frame *frame) { return handle(frame, DL_ROCM); }

PyObject *py_xla_handlers(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    static const struct {
        const char *platform;
        xla_handler *handler;
    } handlers[] = { { "cpu", handle_cpu }, { "CUDA", handle_cuda }, { "ROCM", handle_rocm } };
    PyObject *all = PyDict_New();
    for (size_t i = 0; all != NULL && i < sizeof handlers / sizeof handlers[0]; i++) {
        void *pointer;
        memcpy(&pointer, &handlers[i].handler, sizeof pointer); /* ISO C casts no function to an object pointer */
        PyObject *capsule = PyCapsule_New(pointer, NULL, NULL);
        if (capsule == NULL || PyDict_SetItemString(all, handlers[i].platform, capsule) != 0) Py_CLEAR(all);
        Py_XDECREF(capsule);
    }
    return all;
}
