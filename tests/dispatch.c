/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher: what the argument check says, which kernel runs, the tuning cache, the environment, the topology. One
 * program, over 600 lines, since all of it asks the same modules, set up once. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>

#include "support.h"

TestSuite(check, .timeout = 60);
TestSuite(select, .timeout = 60);
TestSuite(tune, .timeout = 120);
TestSuite(environment, .timeout = 60);
TestSuite(topology, .timeout = 60);

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

static float small_x[16], small_y[16];

/* A call of `scale` for the module's device. */
static trine_scale_args small_call(trine_tensor *tx, trine_tensor *ty, int64_t n) {
    *tx = trine_tensor_1d(small_x, TRINE_F32, n);
    *ty = trine_tensor_1d(small_y, TRINE_F32, n);
    return (trine_scale_args){ TRINE_ARGS(scale), .x = tx, .y = ty, .alpha = 3 };
}

static trine_queue *open_good(trine *of, const char *kernel, uint32_t flags) {
    trine_queue *good;
    const trine_queue_options options = { .struct_size = sizeof options, .kernel = kernel, .flags = flags };
    assert_ok(trine_queue_open(of, trine_device_find(of, "good"), &options, &good));
    return good;
}

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

/* ----------------------------------------------------------------------------------------------------- tuning cache */

static char directory[128], cache[256];

static void set_up_cache(void) {
    make_directory(directory);
    snprintf(cache, sizeof cache, "%s/below/it/tune", directory);
}
static void tear_down_cache(void) { remove_directory(directory); }

static trine *open_tuned(void) {
    trine *tuned;
    const trine_options options = { .struct_size = sizeof options, .plugin_path = TEST_MODULES, .tune_file = cache };
    assert_ok(trine_open(&options, &tuned));
    return tuned;
}

/* Which kernel of the module's device would take `n` elements, and why. */
static void expect_choice(int64_t n, uint32_t flags, const char *kernel, const char *reason) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, n);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, flags);
    trine_explanation why;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_assert(why.chosen >= 0);
    cr_expect(strcmp(why.candidate[why.chosen].kernel, kernel) == 0, "%s for n = %d", why.candidate[why.chosen].kernel,
              (int)n);
    cr_expect(strcmp(why.why, reason) == 0, "%s", why.why);
    trine_queue_close(good);
    trine_close(tuned);
}

static void tune(int64_t n) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, n);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, 0);
    assert_ok(trine_tune_call(good, TRINE_OP_SCALE, &args));
    assert_ok(trine_scale(good, &args));
    trine_queue_close(good);
    trine_close(tuned);
}

static int count_lines(const char *text, const char *with) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, with)) != NULL; at++) count++;
    return count;
}

Test(tune, chooses_the_fastest, .init = set_up_cache, .fini = tear_down_cache) {
    expect_choice(8, 0, "good_slow", "first that accepts");
    tune(8);
    expect_choice(8, 0, "good_fast", "tuning cache");
    expect_choice(9, 0, "good_fast", "tuning cache"); /* the same bucket */
    expect_choice(10, 0, "good_slow", "first that accepts");
    expect_choice(7, 0, "good_slow", "first that accepts");
    expect_choice(16, 0, "good_slow", "first that accepts");
    expect_choice(8, TRINE_QUEUE_ATOMICS, "good_slow", "first that accepts");
    tune(8);
    tune(16);
    char *text = read_whole(cache, NULL);
    cr_expect(count_lines(text, "\n") == 3, "a header and two lines: %s", text);
    cr_expect(strstr(text, "\ta good device, host, 1 units\t1.0\tscale\tX=f32 T=f32 p=1 q=1 r=1 n=8\tgood_fast\t") !=
                  NULL,
              "%s", text);
    free(text);
}

/* What a backend ships serves its device, whatever the specification was when it was measured;
 * the cache goes before it. */
Test(tune, shipped, .init = set_up_cache, .fini = tear_down_cache) {
    expect_choice(12, 0, "good_fast", "tuned for this device");
    expect_choice(13, 0, "good_fast", "tuned for this device");
    expect_choice(11, 0, "good_slow", "first that accepts");
    expect_choice(6, 0, "good_slow", "first that accepts");
    tune(12);
    expect_choice(12, 0, "good_fast", "tuning cache");
}

Test(tune, errors, .init = set_up_cache, .fini = tear_down_cache) {
    trine_tensor tx, ty;
    trine_scale_args args = small_call(&tx, &ty, 8);
    trine *plain = open_plain(TEST_MODULES);
    trine_queue *good = open_good(plain, NULL, 0);
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_IO, "tuning cache: there is none");
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, NULL), TRINE_ERR_ARGUMENT, "scale: args is NULL");
    expect_fail(trine_tune_call(good, (trine_op)9999, &args), TRINE_ERR_ARGUMENT, "9999");
    expect_fail(trine_tune_call(NULL, TRINE_OP_SCALE, &args), TRINE_ERR_ARGUMENT, "queue is NULL");
    expect_fail(trine_tune_choose(good, TRINE_OP_SCALE, &args, NULL, 1), TRINE_ERR_ARGUMENT, "kernel is NULL");
    expect_fail(trine_tune_choose(good, TRINE_OP_SCALE, &args, "good_fast", -1), TRINE_ERR_ARGUMENT,
                "seconds is not a time");
    expect_fail(trine_tune_choose(good, TRINE_OP_SCALE, &args, "good_gone", 1), TRINE_ERR_NOT_FOUND, "good_gone");
    tx.dtype = ty.dtype = TRINE_BF16;
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_UNSUPPORTED, "only f32");
    trine_queue_close(good);
    trine_close(plain);
    /* The path is a directory. */
    snprintf(cache, sizeof cache, "%s", directory);
    trine *tuned = open_tuned();
    good = open_good(tuned, NULL, 0);
    args = small_call(&tx, &ty, 8);
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_IO, directory);
    trine_queue_close(good);
    trine_close(tuned);
}

/* A cache that cannot be made: the message names the directory at which it failed, and why. */
Test(tune, no_directory, .init = set_up_cache, .fini = tear_down_cache) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, 8);
    char file[160], wanted[256];
    snprintf(file, sizeof file, "%s/file", directory);
    write_file(file, "", 0);
    snprintf(cache, sizeof cache, "%.120s/trine/tune", file);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, 0);
    snprintf(wanted, sizeof wanted, "tuning cache: cannot make %s/trine: Not a directory", file);
    expect_message(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_IO, wanted);
    trine_queue_close(good);
    trine_close(tuned);
}

/* A strict queue is not given more workspace behind its back. */
Test(tune, strict_queue, .init = set_up_cache, .fini = tear_down_cache) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, 8);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, TRINE_QUEUE_STRICT_WORKSPACE);
    expect_message(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_WORKSPACE,
                   "scale: needs 32 bytes of workspace, but 0 are reserved");
    trine_explanation why;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_expect(strcmp(why.why, "first that accepts") == 0, "the queue is as it was");
    assert_ok(trine_queue_reserve(good, 32));
    assert_ok(trine_tune_call(good, TRINE_OP_SCALE, &args));
    trine_queue_close(good);
    trine_close(tuned);
}

/* Replaces the cache by its own text with the last `from` exchanged for `to`, and `more` behind. */
static void edit_cache(const char *from, const char *to, const char *more) {
    char *text = read_whole(cache, NULL), *at = NULL;
    for (char *next = strstr(text, from); next != NULL; next = strstr(next + 1, from)) at = next;
    cr_assert(at != NULL, "%s in %s", from, text);
    FILE *file = fopen(cache, "we");
    cr_assert(file != NULL);
    fprintf(file, "%.*s%s%s%s", (int)(at - text), text, to, at + strlen(from), more);
    cr_assert(fclose(file) == 0);
    free(text);
}

/* Entries of another driver, device, kernel list or specification are kept, but not used. */
Test(tune, foreign, .init = set_up_cache, .fini = tear_down_cache) {
    static const char *const edits[][2] = { { "\t1.0\t", "\t1.1\t" },
                                            { "a good device", "another device" },
                                            { "1 units", "2 units" } };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        tune(8);
        expect_choice(8, 0, "good_fast", "tuning cache");
        edit_cache(edits[i][0], edits[i][1], "");
        expect_choice(8, 0, "good_slow", "first that accepts");
    }
    tune(8);
    edit_cache("kernel, seconds\n",
               "kernel, seconds\n0123456789abcdef\tfedcba9876543210\tsome GPU\t570.1\tan_op_of_tomorrow\tT=f4 "
               "z=3\ta_kernel\t1e-3\n",
               "");
    tune(16);
    char *text = read_whole(cache, NULL);
    cr_expect(count_lines(text, "\n") == 7, "%s", text);
    cr_expect(
        strstr(
            text,
            "\n0123456789abcdef\tfedcba9876543210\tsome GPU\t570.1\tan_op_of_tomorrow\tT=f4 z=3\ta_kernel\t1e-3\n") !=
        NULL);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        cr_expect(strstr(text, edits[i][1]) != NULL, "%s", text);
    free(text);
    expect_choice(8, 0, "good_fast", "tuning cache");
}

/* A tuned kernel that does not exist, or that refuses after all, is passed over. */
Test(tune, unknown_kernel, .init = set_up_cache, .fini = tear_down_cache) {
    tune(8);
    edit_cache("good_fast", "good_gone", "");
    expect_choice(8, 0, "good_slow", "first that accepts");
    edit_cache("good_gone", "good_never", "");
    expect_choice(8, 0, "good_slow", "first that accepts");
}

/* Corrupt lines are ignored with one warning, the rest serves, and the next record leaves them out. */
Test(tune, corrupt, .init = set_up_cache, .fini = tear_down_cache) {
    static char command[1024], output[1 << 14];
    tune(8);
    edit_cache("kernel, seconds\n", "kernel, seconds\ngarbage\n\t\t\t\n\x01\x02\n",
               "0123\tx\ty\tz\tscale\tT=f32\tk\t1\n"
               "0123456789abcdef\t0123456789abcdef\td\te\tscale\tT=f32\tk\t-1\n"
               "0123456789abcdef\t0123456789abcdef\td\te\tscale\tT=f32\tk\tnan\n"
               "0123456789abcdef\t0123456789abcdef\td\te\tscale\tT=f32\tk\t1\textra\n"
               "a line without an end");
    expect_choice(8, 0, "good_fast", "tuning cache");
    snprintf(command, sizeof command, "TRINE_PATH=%s TRINE_TUNE=%s TRINE_DEVICE=good %s 2>&1", TEST_MODULES, cache,
             TEST_PROBE);
    cr_expect(run_command(command, output, sizeof output) == 0, "%s", output);
    cr_expect(strstr(output, "8 corrupt lines ignored, the first is line 2") != NULL, "%s", output);
    cr_expect(count_lines(output, "trine:") == 1, "%s", output);
    tune(16);
    char *text = read_whole(cache, NULL);
    cr_expect(count_lines(text, "\n") == 3, "%s", text);
    free(text);
}

/* Bytes of any kind, at any length. */
Test(tune, noise, .init = set_up_cache, .fini = tear_down_cache) {
    static unsigned char noise[100000];
    tune(8);
    uint32_t state = 1;
    for (size_t size = 0; size <= sizeof noise; size = size * 3 + 1) {
        for (size_t i = 0; i < size; i++) noise[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
        write_file(cache, noise, size);
        expect_choice(8, 0, "good_slow", "first that accepts");
    }
    tune(8);
    expect_choice(8, 0, "good_fast", "tuning cache");
}

Test(tune, not_a_file, .init = set_up_cache, .fini = tear_down_cache) {
    snprintf(cache, sizeof cache, "%s/pipe", directory);
    cr_assert(mkfifo(cache, 0600) == 0);
    expect_choice(8, 0, "good_slow", "first that accepts");
    snprintf(cache, sizeof cache, "%s", "/dev/null");
    expect_choice(8, 0, "good_slow", "first that accepts");
    struct stat status;
    cr_expect(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
}

/* A link stays one, and what it points to is replaced. */
Test(tune, link, .init = set_up_cache, .fini = tear_down_cache) {
    char target[256];
    struct stat status;
    snprintf(target, sizeof target, "%s/target", directory);
    snprintf(cache, sizeof cache, "%s/link", directory);
    write_file(target, "", 0);
    cr_assert(symlink(target, cache) == 0);
    tune(8);
    cr_expect(lstat(cache, &status) == 0 && S_ISLNK(status.st_mode));
    cr_expect(stat(target, &status) == 0 && status.st_size > 0);
    expect_choice(8, 0, "good_fast", "tuning cache");
}

/* Ranks of a job that tune at once lose nothing: each writer's size is there at the end. */
static void *write_one(void *argument) {
    trine_tensor tx, ty;
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, "good_fast", 0);
    static float data[1 << 16], result[16][1 << 16];
    const int which = (int)(intptr_t)argument;
    tx = trine_tensor_1d(data, TRINE_F32, INT64_C(1) << which);
    ty = trine_tensor_1d(result[which], TRINE_F32, INT64_C(1) << which);
    const trine_status status =
        trine_tune_call(good, TRINE_OP_SCALE, &(trine_scale_args){ TRINE_ARGS(scale), .x = &tx, .y = &ty, .alpha = 2 });
    trine_queue_close(good);
    trine_close(tuned);
    return (void *)(intptr_t)status;
}

Test(tune, concurrent_writers, .init = set_up_cache, .fini = tear_down_cache) {
    pthread_t thread[16];
    for (intptr_t i = 0; i < 16; i++) cr_assert(pthread_create(&thread[i], NULL, write_one, (void *)i) == 0);
    for (int i = 0; i < 16; i++) {
        void *status;
        pthread_join(thread[i], &status);
        cr_expect((intptr_t)status == TRINE_OK);
    }
    char *text = read_whole(cache, NULL);
    for (int i = 0; i < 16; i++) {
        char line[64];
        snprintf(line, sizeof line, " n=%d\tgood_fast\t", 1 << i);
        cr_expect(count_lines(text, line) == 1, "%s in %s", line, text);
    }
    free(text);
}

/* ----------------------------------------------------------------------------------------- environment and topology */

static char output[1 << 14];

static void probe(const char *variables) {
    char command[1024];
    snprintf(command, sizeof command, "TRINE_TUNE=/dev/null %s %s 2>&1", variables, TEST_PROBE);
    run_command(command, output, sizeof output);
}

Test(environment, misspelt) {
    probe("TRINE_VERBOS=1 TRINE_BAKENDS=cpu TRINE_SOMETHING_ELSE=1");
    cr_expect(strstr(output, "trine: unknown environment variable TRINE_VERBOS: did you mean TRINE_VERBOSE?\n") != NULL,
              "%s", output);
    cr_expect(strstr(output, "trine: unknown environment variable TRINE_BAKENDS: did you mean TRINE_BACKENDS?\n") !=
                  NULL,
              "%s", output);
    cr_expect(strstr(output, "trine: unknown environment variable TRINE_SOMETHING_ELSE: see trine(7)\n") != NULL, "%s",
              output);
    cr_expect(strstr(output, "y=2 4 6 8\n") != NULL, "%s", output);
    probe("TRINE_VERBOSE=0 TRINE_BACKENDS=cpu TRINE_PATH= TRINE_ISA= NOT_TRINE_X=1");
    cr_expect(strstr(output, "trine:") == NULL, "%s", output);
}

Test(environment, relative_path) {
    probe("TRINE_PATH=here:/nowhere::../there:");
    cr_expect(strstr(output, "trine: TRINE_PATH has here, which is not an absolute directory: it is not searched\n") &&
                  strstr(output, "trine: TRINE_PATH has ../there, which is"),
              "%s", output);
    cr_expect(count_lines(output, "trine:") == 2, "once for each: %s", output);
    cr_expect(strstr(output, "y=2 4 6 8\n") != NULL, "%s", output);
}

Test(environment, verbose) {
    probe("TRINE_VERBOSE=1 TRINE_ISA=baseline");
    cr_expect(strstr(output, "trine: cpu scale cpu_baseline X=f32 T=f32 p=1 q=1 r=1 n=4 alpha=2 ") != NULL, "%s",
              output);
    cr_expect(count_lines(output, "trine:") == 1, "%s", output);
}

Test(environment, wrong_values) {
    probe("TRINE_ISA=v9");
    cr_expect(strstr(output, "error: trine_open: \"v9\" is not a CPU level; there are baseline") != NULL, "%s", output);
    probe("TRINE_DEVICE=cuda:7");
    cr_expect(strstr(output, "error: trine_queue_open: TRINE_DEVICE is \"cuda:7\", but there is no such device") !=
                  NULL,
              "%s", output);
    probe("TRINE_KERNEL=none_such");
    cr_expect(strstr(output, "error: trine_queue_open: cpu has no kernel \"none_such\", which TRINE_KERNEL forces") !=
                  NULL,
              "%s", output);
}

Test(environment, tuning_cache_path) {
    char variables[512], path[256];
    make_directory(directory);
    snprintf(variables, sizeof variables, "TRINE_TUNE= XDG_CACHE_HOME=%s", directory);
    snprintf(path, sizeof path, "%s/trine", directory);
    cr_assert(mkdir(path, 0755) == 0);
    snprintf(path, sizeof path, "%s/trine/tune", directory);
    write_file(path, "corrupt", 7);
    probe(variables);
    cr_expect(strstr(output, path) != NULL, "%s", output);
    snprintf(variables, sizeof variables, "TRINE_TUNE= XDG_CACHE_HOME= HOME=%s", directory);
    probe(variables);
    cr_expect(strstr(output, "trine:") == NULL, "%s", output);
    remove_directory(directory);
}

/* hwloc's made-up machines. */
Test(topology, synthetic) {
    if (!TEST_HWLOC) cr_skip_test("built without hwloc");
    probe("HWLOC_SYNTHETIC='pack:2 l3:1(size=16777216) l2:4(size=2097152) l1d:1(size=49152) core:1 pu:2'");
    cr_expect(strstr(output, "units=8 l1=49152 l2=2097152 l3=16777216 ") != NULL, "%s", output);
    probe("HWLOC_SYNTHETIC='core:3 pu:1'"); /* no cache is known: the system's, or what every server core has */
    cr_expect(strstr(output, "units=3 l1=") != NULL && strstr(output, "l1=0") == NULL && strstr(output, "l2=0") == NULL,
              "%s", output);
    probe("HWLOC_SYNTHETIC='l2:2(size=1048576) core:2 pu:1'"); /* the last level is the second */
    cr_expect(strstr(output, "units=4 ") != NULL && strstr(output, " l2=1048576 l3=1048576 ") != NULL, "%s", output);
}

Test(topology, cpuset) {
    probe("taskset -c 0");
    cr_expect(strstr(output, "units=1 ") != NULL, "%s", output);
    char before[64];
    probe("");
    cr_assert(sscanf(strstr(output, "units="), "%63s", before) == 1);
    probe("OMP_PROC_BIND=true");
    cr_expect(strstr(output, before) != NULL, "a bound first thread hides no cores: %s, not %s", output, before);
}
