/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher: what the argument check says, and which kernel runs. */
#include <math.h>
#include <stdint.h>

#include "good.h"

TestSuite(check, .timeout = 60);
TestSuite(select, .timeout = 60);

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

/* ----------------------------------------------------------------------------------------------- the argument check */

enum { R = 4, N = 8 };

/* rms_norm's tensors, for tests to spoil. */
static float x_data[4 * R * N], y_data[R * N], w_data[N];
static trine_tensor x, y, w;
static trine_rms_norm_args norm;

static void set_up_norm(void) {
    set_up();
    for (int i = 0; i < R * N; i++) x_data[i] = (float)(i % 7) - 3, y_data[i] = 77;
    for (int i = 0; i < N; i++) w_data[i] = 1;
    x = trine_tensor_2d(x_data, TRINE_F32, R, N);
    y = trine_tensor_2d(y_data, TRINE_F32, R, N);
    w = trine_tensor_1d(w_data, TRINE_F32, N);
    norm = (trine_rms_norm_args){ TRINE_ARGS(rms_norm), .x = &x, .weight = &w, .y = &y };
}

/* The call fails with this very message, and the outputs stay as they were. */
static void expect_refused(const char *message) {
    expect_message(trine_rms_norm(queue, &norm), TRINE_ERR_ARGUMENT, message);
    for (int i = 0; i < R * N; i++) cr_expect(y_data[i] == 77, "output touched: %s", message);
}

Test(check, good, .init = set_up_norm, .fini = tear_down) {
    assert_ok(trine_rms_norm(queue, &norm));
    for (int i = 0; i < R * N; i++) cr_expect(fabsf(y_data[i]) < 3);
}

Test(check, null, .init = set_up_norm, .fini = tear_down) {
    expect_message(trine_rms_norm(queue, NULL), TRINE_ERR_ARGUMENT, "rms_norm: args is NULL");
    expect_message(trine_rms_norm(NULL, &norm), TRINE_ERR_ARGUMENT, "rms_norm: queue is NULL");
    norm.x = NULL;
    expect_refused("rms_norm: x is NULL, but required");
    norm.x = &x;
    x.data = NULL;
    expect_refused("rms_norm: x has no data, but its shape is [4, 8]");
}

Test(check, shape, .init = set_up_norm, .fini = tear_down) {
    w = trine_tensor_1d(w_data, TRINE_F32, N - 1);
    expect_refused("rms_norm: weight has shape [7], but n = 8 from x");
    w = trine_tensor_2d(w_data, TRINE_F32, 1, N);
    expect_refused("rms_norm: weight has rank 2, but its shape is [n]");
    w.rank = 99;
    expect_refused("rms_norm: weight has rank 99, but 0 to 8 are possible: is it a trine_tensor?");
    w.rank = -1;
    expect_refused("rms_norm: weight has rank -1, but 0 to 8 are possible: is it a trine_tensor?");
    w = trine_tensor_1d(w_data, TRINE_F32, N);
    x.shape[0] = -4;
    expect_refused("rms_norm: x has shape [-4, 8]: a dimension is negative");
    x.shape[0] = x.shape[1] = y.shape[0] = y.shape[1] = INT64_C(1) << 32;
    w.shape[0] = INT64_C(1) << 32;
    expect_refused("rms_norm: the number of elements of x overflows");
}

Test(check, types, .init = set_up_norm, .fini = tear_down) {
    y.dtype = TRINE_BF16;
    expect_refused("rms_norm: y is bf16, but x is f32");
    y.dtype = TRINE_F32;
    w.dtype = TRINE_BF16;
    expect_refused("rms_norm: no such combination of types: x is f32, weight is bf16 (see trine spec rms_norm)");
    w.dtype = (trine_dtype)0x1234;
    expect_refused("rms_norm: weight has dtype 0x1234, which is none");
    w.dtype = TRINE_F32;
    x.dtype = y.dtype = TRINE_I8;
    expect_refused("rms_norm: no such combination of types: x is i8, weight is f32 (see trine spec rms_norm)");
    x.dtype = y.dtype = TRINE_F32;
    float rstd[R];
    trine_tensor t = trine_tensor_1d(rstd, TRINE_F64, R);
    norm.rstd = &t;
    expect_refused("rms_norm: rstd is f64, but must be f32");
}

Test(check, strides, .init = set_up_norm, .fini = tear_down) {
    x.stride[1] = 2;
    x.stride[0] = 16;
    expect_refused("rms_norm: x has stride 2 in its last dimension, but it must be contiguous");
    x.stride[1] = 1;
    x.stride[0] = INT64_C(1) << 62;
    expect_refused("rms_norm: the strides of x reach beyond the address space");
    x.stride[0] = N;
    y.stride[0] = 0;
    expect_refused("rms_norm: elements of output y overlap each other: its strides are too small");
    y.stride[0] = N - 1;
    expect_refused("rms_norm: elements of output y overlap each other: its strides are too small");
    y.stride[0] = N;
    x.data = (char *)x_data + 1;
    expect_fail(trine_rms_norm(queue, &norm), TRINE_ERR_ARGUMENT, "rms_norm: x is at 0x");
    expect_fail(trine_rms_norm(queue, &norm), TRINE_ERR_ARGUMENT, ", which is not a multiple of its element's 4 bytes");
}

Test(check, overlap, .init = set_up_norm, .fini = tear_down) {
    x = trine_tensor_2d(y_data + N, TRINE_F32, R - 1, N);
    y = trine_tensor_2d(y_data, TRINE_F32, R - 1, N);
    expect_refused("rms_norm: output y overlaps x: only the very same view is allowed");
    x = trine_tensor_2d(x_data, TRINE_F32, R - 1, N);
    w = trine_tensor_1d(y_data + 3, TRINE_F32, N);
    expect_refused("rms_norm: output y overlaps weight");
    w = trine_tensor_1d(w_data, TRINE_F32, N);
    y = x;
    assert_ok(trine_rms_norm(queue, &norm)); /* in place is allowed by the table */
    /* Two halves of common rows do not overlap, although their extents do. */
    x = trine_tensor_2d(x_data, TRINE_F32, R, N);
    y = trine_tensor_2d(x_data + N, TRINE_F32, R, N);
    x.stride[0] = y.stride[0] = 2 * N;
    assert_ok(trine_rms_norm(queue, &norm));
}

Test(check, parameters, .init = set_up_norm, .fini = tear_down) {
    norm.eps = -1;
    expect_refused("rms_norm: eps is -1, but must be at least 0");
    norm.eps = NAN;
    expect_fail(trine_rms_norm(queue, &norm), TRINE_ERR_ARGUMENT, "rms_norm: eps is ");
    expect_fail(trine_rms_norm(queue, &norm), TRINE_ERR_ARGUMENT, "nan, but must be finite");
    norm.eps = INFINITY;
    expect_refused("rms_norm: eps is inf, but must be finite");
    norm.eps = 0;
    norm.rounding = 2;
    expect_refused("rms_norm: rounding is 2, but must be at most 1");
    norm.rounding = -1;
    expect_refused("rms_norm: rounding is -1, but must be at least 0");
    norm.rounding = 0;
    norm.dropout = 1;
    expect_fail(trine_rms_norm(queue, &norm), TRINE_ERR_ARGUMENT,
                "rms_norm: dropout is 1, but must be at most 0.99999");
}

Test(check, requirements, .init = set_up, .fini = tear_down) {
    float q_data[3 * 4 * 16] = { 0 }, k_data[2 * 4 * 16] = { 0 }, o_data[3 * 4 * 16];
    const trine_tensor q = trine_tensor_4d(q_data, TRINE_F32, 1, 4, 3, 16),
                       o = trine_tensor_4d(o_data, TRINE_F32, 1, 4, 3, 16);
    const trine_tensor k = trine_tensor_4d(k_data, TRINE_F32, 1, 4, 2, 16);
    expect_fail(
        trine_attention(queue, &(trine_attention_args){ TRINE_ARGS(attention), .q = &q, .k = &k, .v = &k, .o = &o }),
        TRINE_ERR_ARGUMENT, "h % hk == 0 is required, but h = 3 of q, hk = 2 of k");
    expect_fail(trine_reduce_sum(queue, &(trine_reduce_sum_args){ TRINE_ARGS(reduce_sum), .x = &q }),
                TRINE_ERR_ARGUMENT, "reduce_sum: ");
}

/* Those that a parameter brings, on types and on sizes. */
Test(check, requirements_of_a_parameter, .init = set_up, .fini = tear_down) {
    float y_data[32], scale_data[1] = { 1 };
    uint8_t code_data[32] = { 0 };
    const trine_tensor y = trine_tensor_2d(y_data, TRINE_F32, 1, 32),
                       scales = trine_tensor_2d(scale_data, TRINE_F32, 1, 1);
    trine_tensor codes = trine_tensor_3d(code_data, TRINE_I8, 1, 1, 16);
    trine_dequantize_args args = { TRINE_ARGS(dequantize), .codes = &codes, .scales = &scales, .y = &y };
    assert_ok(trine_dequantize(queue, &args));
    args.format = TRINE_CODES_E2M1;
    expect_fail(trine_dequantize(queue, &args), TRINE_ERR_ARGUMENT,
                "dequantize: with format=e2m1: C is u8 is required, but C is i8");
    codes.dtype = TRINE_U8;
    assert_ok(trine_dequantize(queue, &args));
    codes = trine_tensor_3d(code_data, TRINE_U8, 1, 1, 32);
    expect_fail(trine_dequantize(queue, &args), TRINE_ERR_ARGUMENT,
                "dequantize: with format=e2m1: 2*bytes*groups == k is required, but bytes = 32 of codes, groups = 1 of "
                "codes, k = 32 of y");
    args.format = TRINE_CODES_INTEGER;
    assert_ok(trine_dequantize(queue, &args));
}

/* One that depends on a type. */
Test(check, requirements_of_a_type, .init = set_up, .fini = tear_down) {
    float y_data[32], scale_data[1] = { 1 };
    uint8_t code_data[32] = { 0 };
    const trine_tensor y = trine_tensor_2d(y_data, TRINE_F32, 1, 32),
                       scales = trine_tensor_2d(scale_data, TRINE_F32, 1, 1);
    trine_tensor codes = trine_tensor_3d(code_data, TRINE_E4M3, 1, 1, 32);
    const trine_dequantize_args args = { TRINE_ARGS(dequantize), .codes = &codes, .scales = &scales, .y = &y };
    assert_ok(trine_dequantize(queue, &args));
    codes = trine_tensor_3d(code_data, TRINE_E4M3, 1, 1, 16);
    expect_fail(trine_dequantize(queue, &args), TRINE_ERR_ARGUMENT,
                "dequantize: with C=e4m3: bytes*groups == k is required, but bytes = 16 of codes, groups = 1 of codes, "
                "k = 32 of y");
    codes.dtype = TRINE_U8;
    assert_ok(trine_dequantize(queue, &args));
}

/* The caller's structure may be older or newer than the library's. */
Test(check, struct_size, .init = set_up_norm, .fini = tear_down) {
    norm.struct_size = 0;
    expect_refused("rms_norm: struct_size is 0; write TRINE_ARGS(rms_norm) as the first member");
    /* an older caller, without parameters: what lies behind is not looked at */
    norm.struct_size = offsetof(trine_rms_norm_args, eps);
    norm.eps = -1;
    norm.rounding = 99;
    assert_ok(trine_rms_norm(queue, &norm));
    struct {
        trine_rms_norm_args known;
        uint64_t later[2];
    } newer = { .known = { TRINE_ARGS(rms_norm), .x = &x, .y = &y } };
    newer.known.struct_size = sizeof newer;
    assert_ok(trine_rms_norm(queue, &newer.known));
    newer.later[1] = 1;
    expect_fail(trine_rms_norm(queue, &newer.known), TRINE_ERR_ARGUMENT, "is older than the caller");
    newer.known.struct_size = SIZE_MAX - 7;
    expect_fail(trine_rms_norm(queue, &newer.known), TRINE_ERR_ARGUMENT,
                "rms_norm: struct_size is 18446744073709551608, but the structure has ");
    newer.known.struct_size = offsetof(trine_rms_norm_args, eps) - 4; /* half a pointer */
    expect_fail(trine_rms_norm(queue, &newer.known), TRINE_ERR_ARGUMENT, "not a multiple of 8");
}

/* Empty tensors are valid, with or without data. */
Test(check, empty, .init = set_up_norm, .fini = tear_down) {
    x = y = trine_tensor_2d(NULL, TRINE_F32, 0, N);
    assert_ok(trine_rms_norm(queue, &norm));
    x = y = trine_tensor_2d(NULL, TRINE_F32, R, 0);
    w = trine_tensor_1d(NULL, TRINE_F32, 0);
    assert_ok(trine_rms_norm(queue, &norm));
    size_t bytes = 1;
    assert_ok(trine_workspace(queue, TRINE_OP_RMS_NORM, &norm, &bytes));
    cr_expect(bytes == 0);
}

/* Strides of a tensor without elements mean nothing, whatever they are; the sum over none is 0. */
Test(check, empty_strides, .init = set_up, .fini = tear_down) {
    float product[2 * 3] = { 1, 1, 1, 1, 1, 1 };
    trine_tensor a = trine_tensor_2d(NULL, TRINE_F32, 2, 0), b = trine_tensor_2d(NULL, TRINE_F32, 0, 3);
    const trine_tensor d = trine_tensor_2d(product, TRINE_F32, 2, 3);
    const int64_t strides[] = { INT64_MIN, INT64_MAX, INT64_MAX / 2, -1, 0 };
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++)
        for (int k = 0; k < 2; k++) {
            a.stride[k] = b.stride[1 - k] = strides[i];
            assert_ok(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &a, .b = &b, .d = &d }));
            for (int e = 0; e < 2 * 3; e++) cr_expect(product[e] == 0);
            product[0] = 1;
        }
}

/* Sizes that no element of a tensor bounds: what lies between may be larger than any memory. */
Test(check, empty_inputs, .init = set_up, .fini = tear_down) {
    enum { T = 33 };
    static int32_t labels[T];
    static float loss[T];
    const trine_tensor x = trine_tensor_2d(NULL, TRINE_F32, T, 0),
                       weight = trine_tensor_2d(NULL, TRINE_F32, INT64_C(1) << 62, 0),
                       tl = trine_tensor_1d(labels, TRINE_I32, T), to = trine_tensor_1d(loss, TRINE_F32, T);
    const trine_linear_cross_entropy_args args = { TRINE_ARGS(linear_cross_entropy), .x = &x, .weight = &weight,
                                                   .labels = &tl, .loss = &to };
    static const char reason[] = "composed: the logits of a chunk are larger than any memory";
    size_t bytes;
    cr_expect(trine_workspace(queue, TRINE_OP_LINEAR_CROSS_ENTROPY, &args, &bytes) == TRINE_ERR_UNSUPPORTED);
    cr_expect(strstr(trine_error_message(), reason), "%s", trine_error_message());
    cr_expect(trine_linear_cross_entropy(queue, &args) == TRINE_ERR_UNSUPPORTED);
    cr_expect(strstr(trine_error_message(), reason), "%s", trine_error_message());
}

/* Zero takes the fallback; -0.0 is a zero that was meant. */
Test(check, fallback, .init = set_up_norm, .fini = tear_down) {
    assert_ok(trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &x, .y = &y }));
    for (int i = 0; i < R * N; i++) cr_expect(y_data[i] == x_data[i]);
    assert_ok(trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &x, .y = &y, .alpha = -0.0f }));
    for (int i = 0; i < R * N; i++) cr_expect(y_data[i] == 0);
}

/* -------------------------------------------------------------------------------------------------------- selection */

Test(select, order_and_reasons, .init = set_up, .fini = tear_down) {
    trine_tensor tx, ty;
    trine_scale_args args = small_call(&tx, &ty, 16);
    trine_queue *good = open_good(lib, NULL, 0);
    trine_explanation why;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_assert(why.count == 3);
    cr_expect(why.chosen == 1);
    cr_expect(strcmp(why.why, "first that accepts") == 0);
    cr_expect(strcmp(why.candidate[0].kernel, "good_never") == 0 &&
              strcmp(why.candidate[0].refused, "it never accepts") == 0);
    cr_expect(strcmp(why.candidate[1].kernel, "good_slow") == 0 && why.candidate[1].refused == NULL);
    cr_expect(why.candidate[1].workspace == 64 && why.candidate[1].seconds > 0);
    cr_expect(strcmp(why.candidate[2].kernel, "good_fast") == 0 && why.candidate[2].refused == NULL &&
              why.candidate[2].workspace == 0);
    const int64_t most = 1 << 18; /* floats for which there is memory */
    tx.shape[0] = ty.shape[0] = most;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_expect(why.chosen == 1);
    tx.shape[0] = ty.shape[0] = most + 1;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_expect(why.chosen == 2 &&
              strcmp(why.candidate[1].refused, "its workspace would be larger than the device's memory") == 0);
    tx.shape[0] = ty.shape[0] = 16;
    tx.dtype = ty.dtype = TRINE_BF16;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_expect(why.chosen == -1 && strcmp(why.why, "no kernel accepts") == 0);
    expect_fail(trine_scale(good, &args), TRINE_ERR_UNSUPPORTED, "scale: good:0 has no kernel for X=bf16 T=bf16");
    expect_fail(trine_scale(good, &args), TRINE_ERR_UNSUPPORTED,
                "; good_never: it never accepts; good_slow: only f32; good_fast: only f32");
    expect_fail(trine_explain(good, TRINE_OP_SCALE, NULL, &why), TRINE_ERR_ARGUMENT, "scale: args is NULL");
    trine_queue_close(good);
}

/* A hole: the backend has no kernel at all for the op. */
Test(select, hole, .init = set_up_norm, .fini = tear_down) {
    trine_queue *good = open_good(lib, NULL, 0);
    expect_fail(trine_rms_norm(good, &norm), TRINE_ERR_UNSUPPORTED,
                "rms_norm: good:0 has no kernel for T=f32 R=f32 W=f32 r=4 n=8 +weight");
    trine_queue_close(good);
}

Test(select, forced, .init = set_up, .fini = tear_down) {
    trine_tensor tx, ty;
    trine_scale_args args = small_call(&tx, &ty, 16);
    trine_queue *good = open_good(lib, "good_fast", 0);
    trine_explanation why;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_expect(why.chosen == 2 && strcmp(why.why, "trine_queue_options") == 0);
    cr_expect(strcmp(why.candidate[1].refused, "another kernel is forced") == 0);
    assert_ok(trine_scale(good, &args));
    trine_queue_close(good);
    good = open_good(lib, "good_never", 0);
    expect_fail(trine_scale(good, &args), TRINE_ERR_UNSUPPORTED,
                "good_never: it never accepts; good_slow: another kernel is forced");
    trine_queue_close(good);
    const trine_queue_options options = { .struct_size = sizeof options, .kernel = "good_fats" };
    expect_fail(trine_queue_open(lib, trine_device_find(lib, "good"), &options, &good), TRINE_ERR_NOT_FOUND,
                "good:0 has no kernel \"good_fats\"");
    setenv("TRINE_KERNEL", "good_fast", 1);
    good = open_good(lib, NULL, 0);
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_expect(why.chosen == 2 && strcmp(why.why, "TRINE_KERNEL") == 0);
    trine_queue_close(good);
}

/* What a kernel reports reaches the caller. */
Test(select, failing_kernel, .init = set_up, .fini = tear_down) {
    trine_tensor t = trine_tensor_1d(small_x, TRINE_F32, 16), out = trine_tensor_1d(small_y, TRINE_F32, 16);
    trine_queue *good = open_good(lib, NULL, 0);
    expect_message(trine_add(good, &(trine_add_args){ TRINE_ARGS(add), .a = &t, .b = &t, .y = &out }), TRINE_ERR_DEVICE,
                   "scale: the device is on fire");
    trine_queue_close(good);
}
