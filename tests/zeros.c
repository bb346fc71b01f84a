/* SPDX-License-Identifier: Apache-2.0 */
/* A zero that is meant, and one that was left: the two are never taken for each other in silence. */
#include <math.h>

#include "support.h"

static trine *lib;
static trine_queue *queue;

static void set_up(void) {
    lib = open_plain("");
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
}

static void tear_down(void) {
    trine_queue_close(queue);
    trine_close(lib);
}

TestSuite(zeros, .init = set_up, .fini = tear_down, .timeout = 60);

Test(zeros, matmul_asks_for_beta) {
    float a[2] = { 1, 2 }, b[2] = { 3, 4 }, c[1] = { 100 }, d[1] = { -1 };
    const trine_tensor ta = trine_tensor_2d(a, TRINE_F32, 1, 2), tb = trine_tensor_2d(b, TRINE_F32, 2, 1),
                       tc = trine_tensor_2d(c, TRINE_F32, 1, 1), td = trine_tensor_2d(d, TRINE_F32, 1, 1);
    trine_matmul_args args = { TRINE_ARGS(matmul), .a = &ta, .b = &tb, .c = &tc, .d = &td };
    size_t bytes;
    trine_explanation why;
    static const char message[] = "matmul: c is given and beta is 0: leave c out, or set beta";
    expect_message(trine_matmul(queue, &args), TRINE_ERR_ARGUMENT, message);
    expect_message(trine_workspace(queue, TRINE_OP_MATMUL, &args, &bytes), TRINE_ERR_ARGUMENT, message);
    expect_message(trine_explain(queue, TRINE_OP_MATMUL, &args, &why), TRINE_ERR_ARGUMENT, message);
    cr_expect(d[0] == -1);
    args.beta = 1;
    assert_ok(trine_matmul(queue, &args));
    cr_expect(d[0] == 111);
    args.beta = -0.0f;
    assert_ok(trine_matmul(queue, &args));
    cr_expect(d[0] == 11 && !signbit(d[0]));
    args.beta = 0;
    args.c = NULL;
    assert_ok(trine_matmul(queue, &args));
    cr_expect(d[0] == 11);
}

/* -0.0 says that a zero is meant, and is none in the result. */
Test(zeros, meant) {
    float a[2] = { 1, 2 }, b[2] = { 3, 4 }, d[1];
    const trine_tensor ta = trine_tensor_2d(a, TRINE_F32, 1, 2), tb = trine_tensor_2d(b, TRINE_F32, 2, 1),
                       td = trine_tensor_2d(d, TRINE_F32, 1, 1);
    const trine_tensor x = trine_tensor_1d(a, TRINE_F32, 2), y = trine_tensor_1d(b, TRINE_F32, 2);
    assert_ok(
        trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &ta, .b = &tb, .d = &td, .alpha = -0.0f }));
    cr_expect(d[0] == 0 && !signbit(d[0]));
    assert_ok(trine_mul(queue, &(trine_mul_args){ TRINE_ARGS(mul), .a = &x, .b = &x, .y = &y, .alpha = -0.0f }));
    cr_expect(b[0] == 0 && b[1] == 0 && !signbit(b[0]) && !signbit(b[1]));
}

Test(zeros, no_limit) {
    float x[2] = { 3, 4 }, y[2] = { -1, -1 };
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, 2), ty = trine_tensor_1d(y, TRINE_F32, 2);
    trine_global_norm_clip_args args = { TRINE_ARGS(global_norm_clip), .x = &tx, .y = &ty, .max_norm = -0.0f };
    expect_message(trine_global_norm_clip(queue, &args), TRINE_ERR_ARGUMENT,
                   "global_norm_clip: max_norm is 0: leave it out for no limit");
    cr_expect(y[0] == -1);
    args.max_norm = 0;
    assert_ok(trine_global_norm_clip(queue, &args));
    cr_expect(y[0] == 3 && y[1] == 4);
}

Test(zeros, scale_of_scores) {
    float q[4] = { 1, 2, 3, 4 }, o[4];
    const trine_tensor tq = trine_tensor_4d(q, TRINE_F32, 1, 2, 1, 2), to = trine_tensor_4d(o, TRINE_F32, 1, 2, 1, 2);
    trine_attention_args args = { TRINE_ARGS(attention), .q = &tq, .k = &tq, .v = &tq, .o = &to, .scale = -0.0f };
    expect_message(trine_attention(queue, &args), TRINE_ERR_ARGUMENT,
                   "attention: scale is 0: leave it out for 1/sqrt(d)");
    args.scale = 0;
    assert_ok(trine_attention(queue, &args));
}
