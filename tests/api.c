/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions around the ops: life cycle, devices, queues, memory, workspace, tensors, types, errors. */
#include <pthread.h>
#include <stdint.h>

#include "support.h"

TestSuite(api, .timeout = 60);

static trine *lib;
static trine_queue *queue;

static void set_up(void) {
    lib = open_plain(TEST_MODULES);
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
}

static void tear_down(void) {
    trine_queue_close(queue);
    trine_close(lib);
}

/* ------------------------------------------------------------------------------------------------------- life cycle */

Test(api, open_and_close) {
    trine *one = NULL, *two = NULL;
    assert_ok(trine_open(NULL, &one));
    assert_ok(trine_open(NULL, &two));
    cr_expect(one != two);
    trine_close(one);
    trine_close(two);
    trine_close(NULL);
    expect_message(trine_open(NULL, NULL), TRINE_ERR_ARGUMENT, "trine_open: lib_out is NULL");
}

Test(api, options) {
    trine *opened = (trine *)&opened;
    trine_options options = { .struct_size = 0 };
    expect_message(trine_open(&options, &opened), TRINE_ERR_ARGUMENT, "trine_open: struct_size is 0");
    cr_expect(opened == (trine *)&opened, "outputs are untouched on error");
    options.struct_size = sizeof options - 4;
    expect_fail(trine_open(&options, &opened), TRINE_ERR_ARGUMENT, "trine_open: struct_size is ");
    options = (trine_options){ .struct_size = sizeof options, .isa = "v99", .tune_file = "" };
    expect_fail(trine_open(&options, &opened), TRINE_ERR_ARGUMENT,
                "trine_open: \"v99\" is not a CPU level; there are baseline");
    options = (trine_options){ .struct_size = sizeof options, .last_level_cache = -1, .tune_file = "" };
    expect_message(trine_open(&options, &opened), TRINE_ERR_ARGUMENT, "trine_open: last_level_cache is -1");
    options = (trine_options){ .struct_size = sizeof options, .isa = "v99", .tune_file = "" };
    options.struct_size = offsetof(trine_options, isa); /* an older caller: what lies behind is not looked at */
    assert_ok(trine_open(&options, &opened));
    trine_close(opened);
    options = (trine_options){ .struct_size = sizeof options, .isa = "baseline", .backends = "cpu", .tune_file = "" };
    assert_ok(trine_open(&options, &opened));
    trine_device_info_t info;
    assert_ok(trine_device_info(opened, 0, &info));
    cr_expect(strstr(info.arch, "v3") == NULL, "the cap holds: %s", info.arch);
    trine_close(opened);
}

Test(api, devices, .init = set_up, .fini = tear_down) {
    trine_device_info_t info;
    cr_assert(trine_device_count(lib) >= 1);
    assert_ok(trine_device_info(lib, 0, &info));
    cr_expect(strcmp(info.name, "cpu") == 0);
    cr_expect(info.model[0] != 0 && info.arch[0] != 0 && info.pci == NULL);
    cr_expect(info.units >= 1 && info.memory > 0 && info.emulated == 0);
    for (int i = 0; i < 3; i++) cr_expect(info.cache[i] > 0);
    cr_expect(trine_device_find(lib, "cpu") == 0);
    cr_expect(trine_device_find(lib, "") == -1 && trine_device_find(lib, "cp") == -1 &&
              trine_device_find(lib, "cpu:1") == -1);
    cr_expect(trine_device_find(lib, NULL) == -1 && trine_device_find(NULL, "cpu") == -1);
    cr_expect(trine_device_count(NULL) == 0 && trine_backend_count(NULL) == 0);
    expect_fail(trine_device_info(lib, -1, &info), TRINE_ERR_NOT_FOUND, "device is -1, but there are ");
    expect_fail(trine_device_info(lib, 1000, &info), TRINE_ERR_NOT_FOUND, "device is 1000, but there are ");
    expect_message(trine_device_info(NULL, 0, &info), TRINE_ERR_ARGUMENT, "trine_device_info: lib is NULL");
    expect_message(trine_device_info(lib, 0, NULL), TRINE_ERR_ARGUMENT, "trine_device_info: info_out is NULL");
}

Test(api, backends, .init = set_up, .fini = tear_down) {
    trine_backend_info_t info;
    assert_ok(trine_backend_info(lib, 0, &info));
    cr_expect(strcmp(info.name, "cpu") == 0 && info.path == NULL && info.refused == NULL && info.devices == 1);
    expect_fail(trine_backend_info(lib, -1, &info), TRINE_ERR_NOT_FOUND, "index is -1, but there are ");
    expect_message(trine_backend_info(NULL, 0, &info), TRINE_ERR_ARGUMENT, "trine_backend_info: lib is NULL");
    expect_message(trine_backend_info(lib, 0, NULL), TRINE_ERR_ARGUMENT, "trine_backend_info: info_out is NULL");
}

/* ----------------------------------------------------------------------------------------------------------- queues */

Test(api, queue_errors, .init = set_up, .fini = tear_down) {
    trine_queue *q = (trine_queue *)&q;
    trine_queue_options options = { .struct_size = 0 };
    expect_message(trine_queue_open(NULL, 0, NULL, &q), TRINE_ERR_ARGUMENT, "trine_queue_open: lib is NULL");
    expect_message(trine_queue_open(lib, 0, NULL, NULL), TRINE_ERR_ARGUMENT, "trine_queue_open: queue_out is NULL");
    expect_message(trine_queue_open(lib, 0, &options, &q), TRINE_ERR_ARGUMENT, "trine_queue_open: struct_size is 0");
    expect_fail(trine_queue_open(lib, 1000, NULL, &q), TRINE_ERR_NOT_FOUND,
                "trine_queue_open: device is 1000, but there are ");
    expect_fail(trine_queue_open(lib, -2, NULL, &q), TRINE_ERR_NOT_FOUND,
                "trine_queue_open: device is -2, but there are ");
    options = (trine_queue_options){ .struct_size = sizeof options, .threads = -1 };
    expect_message(trine_queue_open(lib, 0, &options, &q), TRINE_ERR_ARGUMENT,
                   "trine_queue_open: threads is -1, but 0 to 4096 are possible");
    options = (trine_queue_options){ .struct_size = sizeof options, .flags = 0x80 };
    expect_message(trine_queue_open(lib, 0, &options, &q), TRINE_ERR_ARGUMENT,
                   "trine_queue_open: flags is 0x80, which has unknown bits");
    options = (trine_queue_options){ .struct_size = sizeof options, .flags = TRINE_QUEUE_DEFAULT_STREAM, .stream = &q };
    expect_fail(trine_queue_open(lib, 0, &options, &q), TRINE_ERR_ARGUMENT, "trine_queue_open: stream is 0x");
    expect_fail(trine_queue_open(lib, 0, &options, &q), TRINE_ERR_ARGUMENT,
                ", but flags has TRINE_QUEUE_DEFAULT_STREAM");
    options = (trine_queue_options){ .struct_size = sizeof options, .sm_count = 1 };
    expect_message(trine_queue_open(lib, 0, &options, &q), TRINE_ERR_UNSUPPORTED,
                   "trine_queue_open: sm_count is 1, but cpu is not parted by it: it has threads");
    cr_expect(q == (trine_queue *)&q, "outputs are untouched on error");
}

/* The CPU has no streams to choose from. */
Test(api, default_stream, .init = set_up, .fini = tear_down) {
    trine_queue *q;
    float x = 2;
    const trine_tensor t = trine_tensor_1d(&x, TRINE_F32, 1);
    const trine_queue_options options = { .struct_size = sizeof options, .flags = TRINE_QUEUE_DEFAULT_STREAM };
    assert_ok(trine_queue_open(lib, 0, &options, &q));
    assert_ok(trine_scale(q, &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t, .alpha = 3 }));
    cr_expect(x == 6);
    trine_queue_close(q);
}

/* Whatever is no open queue is refused, not followed. */
Test(api, foreign_queue) {
    static uint64_t memory[1024];
    trine_queue *foreign = (trine_queue *)memory;
    size_t bytes = 1;
    void *data;
    trine_graph *graph = NULL;
    trine_edge edges[TRINE_MAX_EDGES];
    int32_t count;
    const trine_scale_args args = { TRINE_ARGS(scale) };
    for (int pass = 0; pass < 2; pass++, foreign = NULL) {
        const char *text = foreign ? "is not an open queue" : "queue is NULL";
        expect_fail(trine_scale(foreign, &args), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_run(foreign, TRINE_OP_SCALE, &args), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_workspace(foreign, TRINE_OP_SCALE, &args, &bytes), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_explain_edges(foreign, TRINE_OP_SCALE, &args, "k", edges, &count), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_queue_wait(foreign), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_queue_reserve(foreign, 1), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_queue_set_workspace(foreign, NULL, 0), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_memory_alloc(foreign, 1, &data), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_memory_free(foreign, NULL), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_memory_alloc_host(foreign, 1, &data), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_memory_free_host(foreign, NULL), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_memory_write(foreign, memory, memory, 1), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_memory_read(foreign, memory, memory, 1), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_memory_copy(foreign, memory, memory, 1), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_graph_begin(foreign), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_graph_end(foreign, &graph), TRINE_ERR_ARGUMENT, text);
        expect_fail(trine_graph_launch(foreign, graph), TRINE_ERR_ARGUMENT, text);
        cr_expect(trine_queue_device(foreign) == -1);
        cr_expect(trine_queue_sm_count(foreign) == 0);
        trine_queue_close(foreign);
    }
    cr_expect(bytes == 1);
}

Test(api, ops, .init = set_up, .fini = tear_down) {
    cr_expect(trine_op_name(TRINE_OP_NONE) == NULL && trine_op_name(TRINE_OP_COUNT) == NULL &&
              trine_op_name((trine_op)-1) == NULL);
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        cr_assert(trine_op_name((trine_op)op) != NULL);
        cr_expect(trine_op_find(trine_op_name((trine_op)op)) == (trine_op)op);
    }
    cr_expect(trine_op_find("no_such_op") == TRINE_OP_NONE && trine_op_find("") == TRINE_OP_NONE &&
              trine_op_find(NULL) == TRINE_OP_NONE);
    size_t bytes;
    const trine_scale_args args = { TRINE_ARGS(scale) };
    expect_fail(trine_run(queue, TRINE_OP_NONE, &args), TRINE_ERR_ARGUMENT, "op 0 does not exist");
    expect_fail(trine_run(queue, (trine_op)9999, &args), TRINE_ERR_ARGUMENT, "op 9999 does not exist");
    expect_fail(trine_workspace(queue, (trine_op)-5, &args, &bytes), TRINE_ERR_ARGUMENT, "op -5 does not exist");
    expect_fail(trine_workspace(queue, TRINE_OP_SCALE, &args, NULL), TRINE_ERR_ARGUMENT, "bytes_out is NULL");
    expect_fail(trine_explain(queue, TRINE_OP_SCALE, &args, NULL), TRINE_ERR_ARGUMENT, "explanation_out is NULL");
    trine_edge edges[TRINE_MAX_EDGES];
    int32_t count;
    expect_fail(trine_explain_edges(queue, TRINE_OP_SCALE, &args, NULL, edges, &count), TRINE_ERR_ARGUMENT,
                "kernel is NULL");
    expect_fail(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "k", NULL, &count), TRINE_ERR_ARGUMENT,
                "edges_out is NULL");
    expect_fail(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "k", edges, NULL), TRINE_ERR_ARGUMENT,
                "count_out is NULL");
}

/* Every op says what is wrong with an empty structure, by its own name. */
Test(api, every_op_checks, .init = set_up, .fini = tear_down) {
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        size_t args[64] = { 40 };
        char start[64];
        snprintf(start, sizeof start, "%s: ", trine_op_name((trine_op)op));
        const trine_status status = trine_run(queue, (trine_op)op, args);
        cr_expect(status == TRINE_ERR_ARGUMENT && strncmp(trine_error_message(), start, strlen(start)) == 0, "%s%s",
                  start, trine_error_message());
        cr_expect(strstr(trine_error_message(), " is NULL, but required") != NULL, "%s", trine_error_message());
    }
}

/* ------------------------------------------------------------------------------------------------ memory, workspace */

Test(api, memory, .init = set_up, .fini = tear_down) {
    char out[5] = "none";
    void *memory, *copy;
    assert_ok(trine_memory_alloc(queue, 0, &memory));
    assert_ok(trine_memory_free(queue, memory));
    assert_ok(trine_memory_alloc(queue, 5, &memory));
    cr_expect((uintptr_t)memory % 256 == 0);
    assert_ok(trine_memory_write(queue, memory, "some", 5));
    assert_ok(trine_memory_read(queue, out, memory, 5));
    cr_expect(strcmp(out, "some") == 0);
    assert_ok(trine_memory_alloc(queue, 5, &copy));
    assert_ok(trine_memory_copy(queue, copy, memory, 5));
    cr_expect(strcmp(copy, "some") == 0);
    assert_ok(trine_memory_copy(queue, NULL, NULL, 0));
    expect_message(trine_memory_copy(queue, NULL, memory, 5), TRINE_ERR_ARGUMENT, "trine_memory_copy: to is NULL");
    expect_message(trine_memory_copy(queue, copy, NULL, 5), TRINE_ERR_ARGUMENT, "trine_memory_copy: from is NULL");
    expect_message(trine_memory_copy(queue, (char *)copy + 3, copy, 4), TRINE_ERR_ARGUMENT,
                   "trine_memory_copy: to and from are 3 bytes apart, but 4 are copied");
    assert_ok(trine_memory_free(queue, copy));
    assert_ok(trine_memory_write(queue, NULL, NULL, 0));
    assert_ok(trine_memory_read(queue, NULL, NULL, 0));
    expect_message(trine_memory_write(queue, NULL, out, 5), TRINE_ERR_ARGUMENT, "trine_memory_write: memory is NULL");
    expect_message(trine_memory_write(queue, memory, NULL, 5), TRINE_ERR_ARGUMENT, "trine_memory_write: host is NULL");
    expect_message(trine_memory_read(queue, NULL, memory, 5), TRINE_ERR_ARGUMENT, "trine_memory_read: host is NULL");
    expect_message(trine_memory_read(queue, out, NULL, 5), TRINE_ERR_ARGUMENT, "trine_memory_read: memory is NULL");
    expect_message(trine_memory_alloc(queue, 1, NULL), TRINE_ERR_ARGUMENT, "trine_memory_alloc: memory_out is NULL");
    assert_ok(trine_memory_free(queue, memory));
    assert_ok(trine_memory_free(queue, NULL));
    assert_ok(trine_memory_alloc_host(queue, 0, &memory));
    assert_ok(trine_memory_free_host(queue, memory));
    assert_ok(trine_memory_alloc_host(queue, 5, &memory));
    cr_expect((uintptr_t)memory % 256 == 0);
    memcpy(memory, "host", 5);
    assert_ok(trine_memory_read(queue, out, memory, 5));
    cr_expect(strcmp(out, "host") == 0);
    assert_ok(trine_memory_free_host(queue, memory));
    assert_ok(trine_memory_free_host(queue, NULL));
    expect_message(trine_memory_alloc_host(queue, 1, NULL), TRINE_ERR_ARGUMENT,
                   "trine_memory_alloc_host: memory_out is NULL");
#if !defined(__SANITIZE_ADDRESS__)
    expect_fail(trine_memory_alloc(queue, SIZE_MAX / 2, &memory), TRINE_ERR_MEMORY,
                "trine_memory_alloc: no 9223372036854775807 bytes are left on cpu");
    expect_fail(trine_memory_alloc_host(queue, SIZE_MAX / 2, &memory), TRINE_ERR_MEMORY,
                "trine_memory_alloc_host: no 9223372036854775807 bytes of the host are left on cpu");
    expect_fail(trine_queue_reserve(queue, SIZE_MAX / 2), TRINE_ERR_MEMORY,
                "trine_queue_reserve: no 9223372036854775807 bytes of workspace are left on cpu");
#endif
}

Test(api, graphs, .init = set_up, .fini = tear_down) {
    trine_graph *graph;
    expect_message(trine_graph_begin(queue), TRINE_ERR_UNSUPPORTED, "trine_graph_begin: cpu has no graphs");
    expect_message(trine_graph_end(queue, &graph), TRINE_ERR_UNSUPPORTED, "trine_graph_end: cpu has no graphs");
    expect_message(trine_graph_launch(queue, NULL), TRINE_ERR_ARGUMENT, "trine_graph_launch: graph is NULL");
    trine_graph_free(NULL);
}

static float x_data[64], y_data[64];

/* A call that needs 256 bytes on the module's device, whose first kernel is good_slow. */
static trine_status scale_64(trine_queue *on) {
    const trine_tensor x = trine_tensor_1d(x_data, TRINE_F32, 64), y = trine_tensor_1d(y_data, TRINE_F32, 64);
    return trine_scale(on, &(trine_scale_args){ TRINE_ARGS(scale), .x = &x, .y = &y });
}

static trine_queue *open_good(uint32_t flags) {
    trine_queue *good;
    const trine_queue_options options = { .struct_size = sizeof options, .flags = flags };
    assert_ok(trine_queue_open(lib, trine_device_find(lib, "good"), &options, &good));
    return good;
}

Test(api, workspace_is_exact, .init = set_up, .fini = tear_down) {
    trine_queue *good = open_good(0);
    const trine_tensor x = trine_tensor_1d(NULL, TRINE_F32, 64); /* data pointers are not looked at */
    size_t bytes = 0;
    assert_ok(
        trine_workspace(good, TRINE_OP_SCALE, &(trine_scale_args){ TRINE_ARGS(scale), .x = &x, .y = &x }, &bytes));
    cr_expect(bytes == 256);
    trine_queue_close(good);
}

Test(api, strict_workspace, .init = set_up, .fini = tear_down) {
    trine_queue *good = open_good(TRINE_QUEUE_STRICT_WORKSPACE);
    y_data[0] = 77;
    expect_message(scale_64(good), TRINE_ERR_WORKSPACE, "scale: needs 256 bytes of workspace, but 0 are reserved");
    assert_ok(trine_queue_reserve(good, 255));
    expect_message(scale_64(good), TRINE_ERR_WORKSPACE, "scale: needs 256 bytes of workspace, but 255 are reserved");
    cr_expect(y_data[0] == 77);
    assert_ok(trine_queue_reserve(good, 256));
    assert_ok(scale_64(good));
    assert_ok(trine_queue_reserve(good, 10)); /* never shrinks */
    assert_ok(scale_64(good));
    cr_expect(y_data[0] == 0);
    trine_queue_close(good);
}

Test(api, borrowed_workspace, .init = set_up, .fini = tear_down) {
    static _Alignas(256) unsigned char lent[512];
    for (int strict = 0; strict <= 1; strict++) {
        trine_queue *good = open_good(strict ? TRINE_QUEUE_STRICT_WORKSPACE : 0);
        expect_fail(trine_queue_set_workspace(good, lent + 16, 256), TRINE_ERR_ARGUMENT, ", not aligned to 256 bytes");
        expect_fail(trine_queue_set_workspace(good, NULL, 256), TRINE_ERR_ARGUMENT, "but bytes is 256");
        expect_fail(trine_queue_set_workspace(good, lent, 0), TRINE_ERR_ARGUMENT, "but bytes is 0");
        memset(lent, 0xaa, sizeof lent);
        assert_ok(trine_queue_set_workspace(good, lent, 128));
        expect_message(scale_64(good), TRINE_ERR_WORKSPACE,
                       "scale: needs 256 bytes of workspace, but 128 are reserved");
        expect_fail(trine_queue_reserve(good, 256), TRINE_ERR_WORKSPACE,
                    "trine_queue_reserve: 256 bytes are asked for, but the caller lent a workspace of 128");
        assert_ok(trine_queue_set_workspace(good, lent, 256));
        assert_ok(scale_64(good));
        cr_expect(lent[0] == 0 && lent[255] == 0 && lent[256] == 0xaa, "the kernel used what was lent and no more");
        assert_ok(trine_queue_set_workspace(good, NULL, 0));
        if (strict)
            expect_message(scale_64(good), TRINE_ERR_WORKSPACE,
                           "scale: needs 256 bytes of workspace, but 0 are reserved");
        else
            assert_ok(scale_64(good));
        trine_queue_close(good);
    }
}

/* --------------------------------------------------------------------------------------------------- tensors, types */

Test(api, tensors) {
    const trine_tensor one = trine_tensor_1d(x_data, TRINE_F32, 5);
    cr_expect(one.data == x_data && one.dtype == TRINE_F32 && one.rank == 1 && one.shape[0] == 5 && one.stride[0] == 1);
    const trine_tensor four = trine_tensor_4d(NULL, TRINE_BF16, 2, 3, 4, 5);
    cr_expect(four.rank == 4 && four.stride[0] == 60 && four.stride[1] == 20 && four.stride[2] == 5 &&
              four.stride[3] == 1);
    cr_expect(trine_tensor_count(&four) == 120);
    const trine_tensor three = trine_tensor_3d(NULL, TRINE_F16, 2, 3, 4), turned = trine_tensor_transpose(&three);
    cr_expect(turned.shape[0] == 2 && turned.shape[1] == 4 && turned.shape[2] == 3);
    cr_expect(turned.stride[0] == 12 && turned.stride[1] == 1 && turned.stride[2] == 4);
    cr_expect(trine_tensor_count(&(trine_tensor){ .rank = 0 }) == 1, "a scalar");
    const trine_tensor large = trine_tensor_2d(NULL, TRINE_F32, INT64_C(1) << 31, (INT64_C(1) << 32) - 1);
    cr_expect(trine_tensor_count(&large) == (INT64_C(1) << 31) * ((INT64_C(1) << 32) - 1));
    const trine_tensor overflow = trine_tensor_2d(NULL, TRINE_F32, INT64_C(1) << 32, INT64_C(1) << 32);
    cr_expect(trine_tensor_count(&overflow) == -1);
    const trine_tensor empty = trine_tensor_3d(NULL, TRINE_F32, 3, 0, 4);
    cr_expect(trine_tensor_count(&empty) == 0);
    const trine_tensor negative = trine_tensor_2d(NULL, TRINE_F32, -1, 4);
    cr_expect(trine_tensor_count(&negative) == -1);
    cr_expect(trine_tensor_count(&(trine_tensor){ .rank = TRINE_MAX_RANK + 1 }) == -1);
    cr_expect(trine_tensor_count(&(trine_tensor){ .rank = -1 }) == -1);
}

Test(api, types) {
    static const struct {
        trine_dtype dtype;
        const char *name;
        size_t size;
    } types[] = {
        { TRINE_I8, "i8", 1 },     { TRINE_I16, "i16", 2 },
        { TRINE_I32, "i32", 4 },   { TRINE_I64, "i64", 8 },
        { TRINE_U8, "u8", 1 },     { TRINE_U32, "u32", 4 },
        { TRINE_F16, "f16", 2 },   { TRINE_F32, "f32", 4 },
        { TRINE_F64, "f64", 8 },   { TRINE_BF16, "bf16", 2 },
        { TRINE_E4M3, "e4m3", 1 }, { TRINE_E4M3FNUZ, "e4m3fnuz", 1 },
        { TRINE_E5M2, "e5m2", 1 }, { TRINE_E5M2FNUZ, "e5m2fnuz", 1 },
        { TRINE_E8M0, "e8m0", 1 },
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        cr_assert(trine_dtype_name(types[i].dtype) != NULL);
        cr_expect(strcmp(trine_dtype_name(types[i].dtype), types[i].name) == 0);
        cr_expect(trine_dtype_size(types[i].dtype) == types[i].size);
        cr_expect(trine_dtype_parse(types[i].name) == types[i].dtype);
        cr_expect((types[i].dtype & 0xff) == types[i].size * 8, "the low byte of DLPack's code is the bits");
    }
    cr_expect(trine_dtype_name(TRINE_NONE) == NULL && trine_dtype_size(TRINE_NONE) == 0);
    cr_expect(trine_dtype_name((trine_dtype)0x0110) == NULL && trine_dtype_size((trine_dtype)-1) == 0);
    cr_expect(trine_dtype_parse("float") == TRINE_NONE && trine_dtype_parse("") == TRINE_NONE);
}

/* ----------------------------------------------------------------------------------------------------------- errors */

Test(api, status_names) {
    cr_expect(strcmp(trine_status_name(TRINE_OK), "TRINE_OK") == 0);
    cr_expect(strcmp(trine_status_name(TRINE_ERR_INTERNAL), "TRINE_ERR_INTERNAL") == 0);
    for (int i = 0; i <= TRINE_ERR_INTERNAL; i++)
        cr_expect(strncmp(trine_status_name((trine_status)i), "TRINE_", 6) == 0);
    cr_expect(trine_status_name((trine_status)99) != NULL && trine_status_name((trine_status)-1) != NULL);
}

static void *fail_elsewhere(void *unused) {
    (void)unused;
    cr_expect(trine_error_message()[0] == 0, "a new thread has no message");
    expect_message(trine_device_info(NULL, 0, NULL), TRINE_ERR_ARGUMENT, "trine_device_info: lib is NULL");
    return NULL;
}

Test(api, messages_are_per_thread) {
    pthread_t thread;
    cr_expect(trine_error_message()[0] == 0);
    expect_message(trine_open(NULL, NULL), TRINE_ERR_ARGUMENT, "trine_open: lib_out is NULL");
    cr_assert(pthread_create(&thread, NULL, fail_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
    cr_expect(strcmp(trine_error_message(), "trine_open: lib_out is NULL") == 0);
    trine *opened;
    assert_ok(trine_open(NULL, &opened)); /* success leaves it */
    cr_expect(strcmp(trine_error_message(), "trine_open: lib_out is NULL") == 0);
    trine_close(opened);
}

/* A message longer than its storage is cut, not written beyond. */
Test(api, long_message) {
    static char name[5000];
    memset(name, 'x', sizeof name - 1);
    trine *opened;
    const trine_options options = { .struct_size = sizeof options, .isa = name, .tune_file = "" };
    expect_fail(trine_open(&options, &opened), TRINE_ERR_ARGUMENT, "trine_open: \"xxx");
    cr_expect(strlen(trine_error_message()) < 1024);
}

Test(api, error_bound, .init = set_up, .fini = tear_down) {
    const trine_tensor x = trine_tensor_2d(NULL, TRINE_F32, 4, 64), x_long = trine_tensor_2d(NULL, TRINE_F32, 4, 65536);
    trine_softmax_args args = { TRINE_ARGS(softmax), .x = &x, .y = &x };
    double near = -1, far = -1;
    assert_ok(trine_error_bound(queue, TRINE_OP_SOFTMAX, &args, "y", &near));
    args.x = args.y = &x_long;
    assert_ok(trine_error_bound(queue, TRINE_OP_SOFTMAX, &args, "y", &far));
    cr_expect(near > 0 && far > near && far < 0.01, "%g %g", near, far);
    expect_message(trine_error_bound(queue, TRINE_OP_SOFTMAX, &args, "x", &far), TRINE_ERR_ARGUMENT,
                   "trine_error_bound: softmax has no output \"x\"");
    expect_message(trine_error_bound(queue, TRINE_OP_SOFTMAX, &args, NULL, &far), TRINE_ERR_ARGUMENT,
                   "trine_error_bound: output is NULL");
    expect_message(trine_error_bound(queue, TRINE_OP_SOFTMAX, &args, "y", NULL), TRINE_ERR_ARGUMENT,
                   "trine_error_bound: coefficient_out is NULL");
}

/* The number of threads changes no bit. */
Test(api, threads_change_nothing, .init = set_up, .fini = tear_down) {
    enum { ROWS = 37, COLUMNS = 5003 };
    static float in[ROWS * COLUMNS], out[3][ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = (float)((i * 7919) % 1000) / 100;
    const trine_tensor x = trine_tensor_2d(in, TRINE_F32, ROWS, COLUMNS);
    for (int i = 0; i < 3; i++) {
        trine_queue *q;
        const trine_queue_options options = { .struct_size = sizeof options, .threads = i + 1 };
        assert_ok(trine_queue_open(lib, 0, &options, &q));
        const trine_tensor y = trine_tensor_2d(out[i], TRINE_F32, ROWS, COLUMNS);
        assert_ok(trine_softmax(q, &(trine_softmax_args){ TRINE_ARGS(softmax), .x = &x, .y = &y }));
        trine_queue_close(q);
    }
    cr_expect(memcmp(out[0], out[1], sizeof out[0]) == 0 && memcmp(out[0], out[2], sizeof out[0]) == 0);
}
