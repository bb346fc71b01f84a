/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of calls on the CPU: any op, any number of threads; what is refused, and that nothing is written then; and
 * their workspace. */
#include "lists.h"
#include "support.h"

TestSuite(lists, .timeout = 120);

enum { CALLS = 5, N = 40 };

static trine *lib;
static trine_queue *queue;

static void set_up(void) {
    lib = open_plain(NULL);
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
}
static void tear_down(void) {
    trine_queue_close(queue);
    trine_close(lib);
}

static trine_queue *open_queue(const trine_queue_options *options) {
    trine_queue *made;
    trine_queue_options own = *options;
    own.struct_size = sizeof own;
    assert_ok(trine_queue_open(lib, 0, &own, &made));
    return made;
}

Test(lists, same_bits, .init = set_up, .fini = tear_down) {
    for (int threads = 1; threads <= 3; threads++) {
        trine_queue *team = open_queue(&(trine_queue_options){ .threads = threads });
        cr_expect(lists_agree(team, 6, 200003), "with %d threads", threads);
        cr_expect(lists_of_chains_agree(team, 6, LISTS_CALLS, 200003), "chains with %d threads", threads);
        trine_queue_close(team);
    }
}

/* Products, whose kernels have workspaces and threads of their own, and an op that is made of others. */
Test(lists, other_ops, .init = set_up, .fini = tear_down) {
    enum { WIDE = 160, SIZE = WIDE * WIDE };
    float *data = malloc((2 + 2 * CALLS) * SIZE * sizeof *data);
    trine_tensor t[2 + 2 * CALLS];
    trine_matmul_args args[CALLS];
    const void *list[CALLS];
    for (int i = 0; i < 2 * SIZE; i++) data[i] = (float)(i % 17 - 8) / 8;
    for (int i = 0; i < 2 + 2 * CALLS; i++) t[i] = trine_tensor_2d(data + i * SIZE, TRINE_F32, WIDE, WIDE);
    trine_queue *team = open_queue(&(trine_queue_options){ .threads = 3 });
    for (int i = 0; i < CALLS; i++) {
        args[i] = (trine_matmul_args){ TRINE_ARGS(matmul), .a = &t[0], .b = &t[1], .d = &t[2 + i] };
        args[i].alpha = (float)(i + 1);
        assert_ok(trine_matmul(team, &args[i]));
        args[i].d = &t[2 + CALLS + i];
        list[i] = &args[i];
    }
    assert_ok(trine_run_list(team, TRINE_OP_MATMUL, list, CALLS));
    cr_expect(memcmp(data + 2 * SIZE, data + (2 + CALLS) * SIZE, CALLS * SIZE * sizeof *data) == 0);

    int64_t labels[CALLS][WIDE];
    float losses[2 * CALLS][WIDE];
    trine_tensor tl[CALLS], ty[2 * CALLS];
    trine_linear_cross_entropy_args heads[CALLS];
    for (int i = 0; i < CALLS; i++) {
        for (int k = 0; k < WIDE; k++) labels[i][k] = (k * 7 + i) % WIDE;
        tl[i] = trine_tensor_1d(labels[i], TRINE_I64, WIDE);
        ty[i] = trine_tensor_1d(losses[i], TRINE_F32, WIDE);
        ty[CALLS + i] = trine_tensor_1d(losses[CALLS + i], TRINE_F32, WIDE);
        heads[i] = (trine_linear_cross_entropy_args){ TRINE_ARGS(linear_cross_entropy), .x = &t[0], .weight = &t[1],
                                                      .labels = &tl[i], .loss = &ty[i] };
        assert_ok(trine_linear_cross_entropy(team, &heads[i]));
        heads[i].loss = &ty[CALLS + i];
        list[i] = &heads[i];
    }
    assert_ok(trine_run_list(team, TRINE_OP_LINEAR_CROSS_ENTROPY, list, CALLS));
    cr_expect(memcmp(losses[0], losses[CALLS], CALLS * sizeof losses[0]) == 0);

    /* A label that is none is found when its call runs: that one is named, and has written nothing. */
    labels[3][1] = WIDE;
    memset(losses[CALLS + 3], 0x55, sizeof losses[0]);
    expect_fail(trine_run_list(team, TRINE_OP_LINEAR_CROSS_ENTROPY, list, CALLS), TRINE_ERR_ARGUMENT,
                "call 3 of the list: linear_cross_entropy: labels[1] = 160 is neither in [0, v = 160)");
    for (size_t i = 0; i < sizeof losses[0]; i++) cr_assert(((unsigned char *)losses[CALLS + 3])[i] == 0x55);
    trine_queue_close(team);
    free(data);
}

/* --------------------------------------------------------------------------------------------------------- refusals */

static float numbers[2 * CALLS][N];
static trine_tensor tensors[2 * CALLS];
static trine_scale_args scales[CALLS];
static const void *list_of_scales[CALLS];

/* y[i] = (i + 2) x[i] */
static void make_scales(void) {
    for (int i = 0; i < 2 * CALLS; i++) {
        for (int k = 0; k < N; k++) numbers[i][k] = i < CALLS ? (float)k : -1;
        tensors[i] = trine_tensor_1d(numbers[i], TRINE_F32, N);
    }
    for (int i = 0; i < CALLS; i++) {
        scales[i] = (trine_scale_args){ TRINE_ARGS(scale), .x = &tensors[i], .y = &tensors[CALLS + i] };
        scales[i].alpha = (float)(i + 2);
        list_of_scales[i] = &scales[i];
    }
}

static bool untouched(void) {
    for (int i = CALLS; i < 2 * CALLS; i++)
        for (int k = 0; k < N; k++)
            if (numbers[i][k] != -1) return false;
    return true;
}

#define expect_refused(text) \
    do { \
        expect_message(trine_run_list(queue, TRINE_OP_SCALE, list_of_scales, CALLS), TRINE_ERR_ARGUMENT, text); \
        cr_expect(untouched(), "something was written"); \
        make_scales(); \
    } while (0)

Test(lists, refusals, .init = set_up, .fini = tear_down) {
    make_scales();
    assert_ok(trine_run_list(queue, TRINE_OP_SCALE, NULL, 0));
    assert_ok(trine_run_list(queue, TRINE_OP_SCALE, list_of_scales, CALLS));
    for (int i = 0; i < CALLS; i++)
        for (int k = 0; k < N; k++) cr_expect(numbers[CALLS + i][k] == (float)(k * (i + 2)));
    make_scales();

    expect_message(trine_run_list(NULL, TRINE_OP_SCALE, list_of_scales, CALLS), TRINE_ERR_ARGUMENT,
                   "trine_run_list: queue is NULL");
    expect_message(trine_run_list(queue, TRINE_OP_NONE, list_of_scales, CALLS), TRINE_ERR_ARGUMENT,
                   "trine_run_list: op 0 does not exist");
    expect_message(trine_run_list(queue, TRINE_OP_SCALE, list_of_scales, -1), TRINE_ERR_ARGUMENT,
                   "trine_run_list: count is -1");
    expect_message(trine_run_list(queue, TRINE_OP_SCALE, NULL, 1), TRINE_ERR_ARGUMENT, "trine_run_list: args is NULL");
    expect_message(trine_workspace_list(queue, TRINE_OP_SCALE, list_of_scales, CALLS, NULL), TRINE_ERR_ARGUMENT,
                   "trine_workspace_list: bytes_out is NULL");

    list_of_scales[4] = NULL;
    expect_refused("call 4 of the list: scale: args is NULL");
    scales[3].x = NULL;
    expect_refused("call 3 of the list: scale: x is NULL, but required");
    scales[2].x = scales[1].y;
    expect_refused("call 1 of the list: scale: output y overlaps x of call 2");
    scales[4].y = scales[0].y;
    expect_refused("call 0 of the list: scale: output y overlaps y of call 4");
    tensors[CALLS].data = &numbers[4][N - 1];
    expect_refused("call 0 of the list: scale: output y overlaps x of call 4");
}

/* Every other element of a row: views that lie in one another and share nothing; and what all calls read. */
Test(lists, views, .init = set_up, .fini = tear_down) {
    enum { ROWS = 6 };
    float x = 3, y[ROWS][2 * CALLS];
    trine_tensor view[CALLS], one = trine_tensor_2d(&x, TRINE_F32, 1, 1);
    memset(y, 0, sizeof y);
    make_scales();
    for (int i = 0; i < CALLS; i++) {
        view[i] = (trine_tensor){ &y[0][2 * i], TRINE_F32, 2, { ROWS, 2 }, { 2 * CALLS, 1 } };
        scales[i].x = &one;
        scales[i].y = &view[i];
    }
    assert_ok(trine_run_list(queue, TRINE_OP_SCALE, list_of_scales, CALLS));
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < 2 * CALLS; k++) cr_expect(y[r][k] == (float)(3 * (k / 2 + 2)));
    view[2].data = &y[0][5];
    expect_message(trine_run_list(queue, TRINE_OP_SCALE, list_of_scales, CALLS), TRINE_ERR_ARGUMENT,
                   "call 2 of the list: scale: output y overlaps y of call 3");
    view[2].data = &x;
    view[2].shape[0] = 1;
    expect_fail(trine_run_list(queue, TRINE_OP_SCALE, list_of_scales, CALLS), TRINE_ERR_ARGUMENT,
                "call 2 of the list: scale: output y overlaps x");
}

/* One line for calls that run at once, by the kernel that the queue forces. */
Test(lists, traced) {
    char text[512] = "", wanted[128];
    trine_explanation why;
    setenv("TRINE_VERBOSE", "1", 1);
    set_up();
    make_scales();
    assert_ok(trine_explain(queue, TRINE_OP_SCALE, list_of_scales[0], &why));
    const char *kernel = why.candidate[why.count - 1].kernel;
    trine_queue *forced = open_queue(&(trine_queue_options){ .kernel = kernel });
    FILE *file = tmpfile();
    cr_assert(file != NULL && dup2(fileno(file), STDERR_FILENO) >= 0);
    assert_ok(trine_run_list(forced, TRINE_OP_SCALE, list_of_scales, CALLS));
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    snprintf(wanted, sizeof wanted, "trine: cpu scale %s X=f32 T=f32 p=1 q=1 r=1 n=40 alpha=2 and 4 more of a list ",
             kernel);
    cr_expect(strncmp(text, wanted, strlen(wanted)) == 0 && strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
    trine_queue_close(forced);
    tear_down();
}

/* -------------------------------------------------------------------------------------------------------- workspace */

Test(lists, workspace, .init = set_up, .fini = tear_down) {
    enum { LARGE = 100000 };
    float *x = malloc(CALLS * LARGE * sizeof *x), norms[CALLS], expected[CALLS];
    trine_tensor tx[CALLS], tn[CALLS];
    trine_global_norm_clip_args args[CALLS];
    const void *list[CALLS];
    size_t one = 0, all = 0;
    for (int i = 0; i < CALLS * LARGE; i++) x[i] = (float)(i % 13);
    for (int i = 0; i < CALLS; i++) {
        tx[i] = trine_tensor_1d(x + i * LARGE, TRINE_F32, LARGE - i);
        tn[i] = trine_tensor_1d(&expected[i], TRINE_F32, 1);
        args[i] = (trine_global_norm_clip_args){ TRINE_ARGS(global_norm_clip), .x = &tx[i], .norm = &tn[i] };
        assert_ok(trine_global_norm_clip(queue, &args[i]));
        tn[i].data = &norms[i];
        list[i] = &args[i];
    }
    trine_queue *strict = open_queue(&(trine_queue_options){ .flags = TRINE_QUEUE_STRICT_WORKSPACE, .threads = 3 });
    assert_ok(trine_workspace(strict, TRINE_OP_GLOBAL_NORM_CLIP, list[0], &one));
    assert_ok(trine_workspace_list(strict, TRINE_OP_GLOBAL_NORM_CLIP, list, 1, &all));
    cr_expect(all == one);
    assert_ok(trine_workspace_list(strict, TRINE_OP_GLOBAL_NORM_CLIP, list, CALLS, &all));
    cr_expect(all == CALLS * ((one + 255) / 256 * 256), "%zu bytes, of one %zu", all, one);
    assert_ok(trine_queue_reserve(strict, all - 1));
    char text[128];
    snprintf(text, sizeof text, "global_norm_clip: needs %zu bytes of workspace, but %zu are reserved", all, all - 1);
    memset(norms, 0, sizeof norms);
    expect_message(trine_run_list(strict, TRINE_OP_GLOBAL_NORM_CLIP, list, CALLS), TRINE_ERR_WORKSPACE, text);
    cr_expect(norms[0] == 0);
    assert_ok(trine_queue_reserve(strict, all));
    assert_ok(trine_run_list(strict, TRINE_OP_GLOBAL_NORM_CLIP, list, CALLS));
    cr_expect(memcmp(norms, expected, sizeof norms) == 0);
    trine_queue_close(strict);
    free(x);
}

/* One thread may need more workspace than two, for which calls are planned: sums of long rows. */
Test(lists, workspace_of_one_thread, .init = set_up, .fini = tear_down) {
    enum { MANY = 31, R = 4, LONG = 32768 };
    float *x = malloc(R * LONG * sizeof *x), *bias = calloc(LONG, sizeof *bias), *dx = malloc(R * LONG * sizeof *dx),
          *expected = malloc(LONG * sizeof *expected), *sums = calloc((size_t)MANY * LONG, sizeof *sums),
          *all = malloc((size_t)MANY * R * LONG * sizeof *all);
    for (int i = 0; i < R * LONG; i++) x[i] = (float)(i % 13 - 6) / 4;
    const trine_tensor tx = trine_tensor_2d(x, TRINE_F32, R, LONG), tb = trine_tensor_1d(bias, TRINE_F32, LONG),
                       td = trine_tensor_2d(dx, TRINE_F32, R, LONG), te = trine_tensor_1d(expected, TRINE_F32, LONG);
    trine_gelu_bias_backward_args args[MANY];
    const void *list[MANY];
    trine_tensor tensors[2 * MANY];
    for (int i = 0; i < MANY; i++) {
        tensors[2 * i] = trine_tensor_2d(all + (size_t)i * R * LONG, TRINE_F32, R, LONG);
        tensors[2 * i + 1] = trine_tensor_1d(sums + (size_t)i * LONG, TRINE_F32, LONG);
        args[i] = (trine_gelu_bias_backward_args){ TRINE_ARGS(gelu_bias_backward), .dy = &tx, .x = &tx, .bias = &tb };
        args[i].dx = &tensors[2 * i], args[i].dbias = &tensors[2 * i + 1];
        list[i] = &args[i];
    }
    trine_queue *team = open_queue(&(trine_queue_options){ .threads = 2 });
    trine_gelu_bias_backward_args single = args[0];
    single.dx = &td, single.dbias = &te;
    assert_ok(trine_gelu_bias_backward(team, &single));
    for (int pass = 0; pass < 4; pass++) {
        memset(sums, 0, (size_t)MANY * LONG * sizeof *sums);
        assert_ok(trine_run_list(team, TRINE_OP_GELU_BIAS_BACKWARD, list, MANY));
        for (int i = 0; i < MANY; i++)
            cr_expect(memcmp(sums + (size_t)i * LONG, expected, LONG * sizeof *sums) == 0, "call %d", i);
    }
    trine_queue_close(team);
    free(x), free(bias), free(dx), free(expected), free(sums), free(all);
}

/* Calls that would need more than 4 MiB together do not run at once. */
Test(lists, large_workspaces, .init = set_up, .fini = tear_down) {
    trine_tensor x = { NULL, TRINE_F32, 1, { INT64_C(1) << 32 }, { 1 } }, norm = trine_tensor_1d(NULL, TRINE_F32, 1);
    const trine_global_norm_clip_args args = { TRINE_ARGS(global_norm_clip), .x = &x, .norm = &norm };
    const void *list[] = { &args, &args, &args };
    size_t one = 0, all = 0;
    assert_ok(trine_workspace(queue, TRINE_OP_GLOBAL_NORM_CLIP, &args, &one));
    assert_ok(trine_workspace_list(queue, TRINE_OP_GLOBAL_NORM_CLIP, list, 3, &all));
    cr_expect(one == 2 << 20 && all == 4 << 20, "%zu and %zu bytes", one, all);
    x.shape[0] *= 4;
    assert_ok(trine_workspace(queue, TRINE_OP_GLOBAL_NORM_CLIP, &args, &one));
    assert_ok(trine_workspace_list(queue, TRINE_OP_GLOBAL_NORM_CLIP, list, 3, &all));
    cr_expect(one == 8 << 20 && all == one, "%zu and %zu bytes", one, all);
}
