/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of losses, the optimizer and clipping beyond element by element bounds: invariants, trajectories, and
 * labels that are wrong. */
#include <math.h>
#include <stdint.h>

#include "support.h"
#include "told.h"

TestSuite(training, .timeout = 120);

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

/* -1 to 1, the same in every run. */
static float noise(int64_t i) { return (float)((double)((uint64_t)(i + 1) * 0x9e3779b97f4a7c15u >> 11) * 0x1p-52 - 1); }

/* ------------------------------------------------------------------------------------------------------------- loss */

enum { ROWS = 3, WIDE = 50257 };

static trine_tensor matrix(float *data, int64_t r, int64_t n) { return trine_tensor_2d(data, TRINE_F32, r, n); }
static trine_tensor vector(float *data, int64_t n) { return trine_tensor_1d(data, TRINE_F32, n); }

Test(training, equal_logits_cost_log_v, .init = set_up, .fini = tear_down) {
    float *x = calloc(WIDE, sizeof *x), loss, lse;
    int64_t label = 17;
    const trine_tensor losses = vector(&loss, 1), lses = vector(&lse, 1),
                       labels = trine_tensor_1d(&label, TRINE_I64, 1);
    for (int64_t v = 18; v <= WIDE; v = v * 3 + 1) {
        for (int64_t k = 0; k < v; k++) x[k] = -250.0f;
        const trine_tensor logits = matrix(x, 1, v);
        assert_ok(trine_cross_entropy(queue,
                                      &(trine_cross_entropy_args){ TRINE_ARGS(cross_entropy), .logits = &logits,
                                                                   .labels = &labels, .loss = &losses, .lse = &lses }));
        cr_expect(fabs(loss - log((double)v)) < 1e-4, "v = %lld: %.7g", (long long)v, (double)loss);
        cr_expect(fabs(lse - (log((double)v) - 250)) < 1e-4);
    }
    free(x);
}

/* sum_k dlogits[i,k] = dloss[i] logit_scale 2 z_loss lse[i]; and the same bits by one call, in place. */
Test(training, gradient_sums_to_the_z_loss, .init = set_up, .fini = tear_down) {
    float *x = malloc(ROWS * WIDE * sizeof *x), *dx = malloc(ROWS * WIDE * sizeof *dx), loss[ROWS], lse[ROWS],
          dloss[ROWS] = { 1, -0.5f, 3 };
    int32_t label[ROWS] = { 0, -100, WIDE - 1 };
    for (int64_t i = 0; i < ROWS * WIDE; i++) x[i] = 4 * noise(i);
    const trine_tensor logits = matrix(x, ROWS, WIDE), dlogits = matrix(dx, ROWS, WIDE),
                       labels = trine_tensor_1d(label, TRINE_I32, ROWS);
    const trine_tensor losses = vector(loss, ROWS), lses = vector(lse, ROWS), dlosses = vector(dloss, ROWS);
    for (int smoothed = 0; smoothed < 2; smoothed++) {
        const float e = smoothed ? 0.1f : 0, scale = 0.7f, weight = 1e-2f;
        trine_cross_entropy_args forward = { TRINE_ARGS(cross_entropy), .logits = &logits,   .labels = &labels,
                                             .loss = &losses,           .lse = &lses,        .label_smoothing = e,
                                             .z_loss = weight,          .logit_scale = scale };
        assert_ok(trine_cross_entropy(queue, &forward));
        trine_cross_entropy_backward_args args = { TRINE_ARGS(cross_entropy_backward),
                                                   .logits = &logits,
                                                   .labels = &labels,
                                                   .lse = &lses,
                                                   .dloss = &dlosses,
                                                   .dlogits = &dlogits,
                                                   .label_smoothing = e,
                                                   .z_loss = weight,
                                                   .logit_scale = scale };
        assert_ok(trine_cross_entropy_backward(queue, &args));
        cr_expect(loss[1] == 0, "an ignored row costs nothing");
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;
            for (int64_t k = 0; k < WIDE; k++) sum += dx[i * WIDE + k];
            const double want = i == 1 ? 0 : (double)dloss[i] * scale * 2 * weight * lse[i];
            cr_expect(fabs(sum - want) < 2e-5 * fabs(dloss[i]) && (i != 1 || sum == 0), "row %d: %.9g, not %.9g", i,
                      sum, want);
        }
        if (!smoothed) continue;
        forward.dloss = &dlosses, forward.dlogits = &logits;
        assert_ok(trine_cross_entropy(queue, &forward));
        for (int64_t k = 0; k < ROWS * WIDE; k++) /* lse is rounded for the one, and not for the other */
            cr_expect(fabsf(x[k] - dx[k]) <= 1e-8f * fabsf(dloss[k / WIDE]), "element %lld: %.9g, not %.9g",
                      (long long)k, x[k], dx[k]);
    }
    free(x);
    free(dx);
}

Test(training, labels_out_of_range, .init = set_up, .fini = tear_down) {
    float x[12] = { 0 }, loss[3] = { 7, 7, 7 }, dx[12], lse[3] = { 0 };
    memset(dx, 0x55, sizeof dx);
    int64_t label[3] = { 3, -100, 4 };
    const trine_tensor logits = matrix(x, 3, 4), dlogits = matrix(dx, 3, 4), losses = vector(loss, 3),
                       lses = vector(lse, 3);
    const trine_tensor labels = trine_tensor_1d(label, TRINE_I64, 3);
    trine_cross_entropy_args forward = { TRINE_ARGS(cross_entropy), .logits = &logits, .labels = &labels,
                                         .loss = &losses };
    trine_cross_entropy_backward_args backward = { TRINE_ARGS(cross_entropy_backward),
                                                   .logits = &logits,
                                                   .labels = &labels,
                                                   .lse = &lses,
                                                   .dloss = &lses,
                                                   .dlogits = &dlogits };
    expect_message(trine_cross_entropy(queue, &forward), TRINE_ERR_ARGUMENT,
                   "cross_entropy: labels[2] = 4 is neither in [0, v = 4) nor the ignored label -100");
    expect_fail(trine_cross_entropy_backward(queue, &backward), TRINE_ERR_ARGUMENT,
                "cross_entropy_backward: labels[2] = 4 is neither");
    cr_expect(loss[0] == 7 && loss[1] == 7 && loss[2] == 7, "outputs are untouched on error");
    for (size_t i = 0; i < sizeof dx; i++) cr_expect(((unsigned char *)dx)[i] == 0x55);
    forward.ignore_index = 4, forward.ignore_index_set = 1;
    expect_fail(trine_cross_entropy(queue, &forward), TRINE_ERR_ARGUMENT,
                "labels[1] = -100 is neither in [0, v = 4) nor the ignored label 4");
    label[1] = 0;
    assert_ok(trine_cross_entropy(queue, &forward));
    cr_expect(loss[2] == 0 && fabs(loss[0] - log(4)) < 1e-6);
}

/* -------------------------------------------------------------------------------------------------------- optimizer */

/* A thousand steps beside the same recurrence in float64: the errors of the steps must not build up to more than their
 * sum. */
Test(training, adamw_trajectory, .init = set_up, .fini = tear_down) {
    enum { N = 37 };
    float param[N], grad[N], m[N] = { 0 }, v[N] = { 0 };
    double want[N], want_m[N] = { 0 }, want_v[N] = { 0 };
    const trine_tensor tensor[4] = { vector(param, N), vector(grad, N), vector(m, N), vector(v, N) };
    trine_adamw_args args = { TRINE_ARGS(adamw), .param = &tensor[0], .grad = &tensor[1],  .m = &tensor[2],
                              .v = &tensor[3],   .lr = 1e-2f,         .weight_decay = 0.1f };
    const double b1 = 0.9f, b2 = 0.999f, eps = 1e-8f, rate = args.lr, decay = args.weight_decay;
    for (int i = 0; i < N; i++) want[i] = param[i] = noise(i);
    for (args.step = 1; args.step <= 1000; args.step++) {
        for (int i = 0; i < N; i++) grad[i] = noise(args.step * N + i) + 0.3f * (i % 3 ? 1 : -1);
        assert_ok(trine_adamw(queue, &args));
        for (int i = 0; i < N; i++) {
            want_m[i] = b1 * want_m[i] + (1 - b1) * grad[i];
            want_v[i] = b2 * want_v[i] + (1 - b2) * grad[i] * grad[i];
            const double root = sqrt(want_v[i] / (1 - pow(b2, (double)args.step)));
            want[i] -= rate * decay * want[i] + rate / (1 - pow(b1, (double)args.step)) * want_m[i] / (root + eps);
        }
    }
    for (int i = 0; i < N; i++)
        cr_expect(fabs(param[i] - want[i]) < 1e-4, "parameter %d: %.8g, not %.8g", i, (double)param[i], want[i]);
}

/* With constant m and v the length of a step shows the bias corrections: at step 1 and after a million. */
Test(training, adamw_bias_corrections, .init = set_up, .fini = tear_down) {
    for (int64_t step = 1; step <= 1000000000; step *= 1000) {
        float param = 0, grad = 1, m = 1, v = 1;
        const trine_tensor p = vector(&param, 1), g = vector(&grad, 1), first = vector(&m, 1), second = vector(&v, 1);
        const float beta2 = 0.999999f;
        assert_ok(trine_adamw(queue, &(trine_adamw_args){ TRINE_ARGS(adamw), .param = &p, .grad = &g, .m = &first,
                                                          .v = &second, .lr = 1, .beta2 = beta2, .eps = -0.0f,
                                                          .step = step }));
        const double want = -sqrt(-expm1((double)step * log(beta2))) / -expm1((double)step * log(0.9f));
        cr_expect(fabs(param / want - 1) < 1e-6, "step %lld: %.9g, not %.9g", (long long)step, (double)param, want);
    }
    float x = 1;
    const trine_tensor t = vector(&x, 1);
    float y[3] = { 1, 1, 1 };
    const trine_tensor u[3] = { vector(y, 1), vector(y + 1, 1), vector(y + 2, 1) };
    expect_fail(trine_adamw(queue, &(trine_adamw_args){ TRINE_ARGS(adamw), .param = &t, .grad = &u[0], .m = &u[1],
                                                        .v = &u[2], .lr = 1 }),
                TRINE_ERR_ARGUMENT, "adamw: step");
    cr_expect(x == 1);
}

/* A step's number that only the data has is refused, and so is a parameter beside the tensor that stands for it. */
Test(training, adamw_told, .init = set_up, .fini = tear_down) {
    float x[4] = { 1, 1, 1, 1 }, lr = 0.1f;
    int64_t step = 0;
    const trine_tensor t[4] = { vector(x, 1), vector(x + 1, 1), vector(x + 2, 1), vector(x + 3, 1) };
    const trine_tensor rate = vector(&lr, 1), steps = trine_tensor_1d(&step, TRINE_I64, 1);
    trine_adamw_args args = { TRINE_ARGS(adamw), .param = &t[0],     .grad = &t[1],        .m = &t[2],
                              .v = &t[3],        .lr_tensor = &rate, .step_tensor = &steps };
    expect_fail(trine_adamw(queue, &args), TRINE_ERR_ARGUMENT, "adamw: step_tensor is 0, but must be at least 1");
    step = 1;
    args.step = 1;
    expect_fail(trine_adamw(queue, &args), TRINE_ERR_ARGUMENT,
                "adamw: step_tensor is given, which stands for step, but step is set too");
    args.step = 0;
    args.lr = 0.1f;
    expect_fail(trine_adamw(queue, &args), TRINE_ERR_ARGUMENT,
                "adamw: lr_tensor is given, which stands for lr, but lr is set too");
    cr_expect(x[0] == 1 && x[2] == 1);
    args.lr = 0;
    assert_ok(trine_adamw(queue, &args));
    cr_expect(x[0] < 1);
}

/* ---------------------------------------------------------------------------------------------------------- dropout */

Test(training, dropout_told, .init = set_up, .fini = tear_down) { cr_expect(told_alike(queue)); }

/* --------------------------------------------------------------------------------------------------------- clipping */

Test(training, clipping_of_several_tensors, .init = set_up, .fini = tear_down) {
    enum { N = 40000, FIRST = 12345 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y), *z = malloc(N * sizeof *z), coefficient, norm;
    double squares[2];
    for (int64_t i = 0; i < N; i++) x[i] = 1e30f * noise(i); /* whose squares f32 does not hold */
    const trine_tensor whole = vector(x, N), clipped = vector(y, N), c = vector(&coefficient, 1),
                       all = vector(&norm, 1);
    assert_ok(trine_global_norm_clip(queue, &(trine_global_norm_clip_args){ TRINE_ARGS(global_norm_clip), .x = &whole,
                                                                            .y = &clipped, .norm = &all,
                                                                            .coefficient = &c, .max_norm = 2 }));
    double sum = 0;
    for (int64_t i = 0; i < N; i++) sum += (double)y[i] * y[i];
    cr_expect(fabs(sqrt(sum) - 2) < 1e-6 && isfinite(norm), "clipped to %.9g", sqrt(sum));
    for (int part = 0; part < 2; part++) {
        const trine_tensor piece = part ? vector(x + FIRST, N - FIRST) : vector(x, FIRST),
                           s = trine_tensor_1d(&squares[part], TRINE_F64, 1);
        assert_ok(trine_global_norm_clip(
            queue, &(trine_global_norm_clip_args){ TRINE_ARGS(global_norm_clip), .x = &piece, .sum_squares = &s }));
    }
    for (int part = 0; part < 2; part++) {
        const trine_tensor piece = part ? vector(x + FIRST, N - FIRST) : vector(x, FIRST),
                           out = part ? vector(z + FIRST, N - FIRST) : vector(z, FIRST);
        const trine_tensor other = trine_tensor_1d(&squares[!part], TRINE_F64, 1);
        assert_ok(trine_global_norm_clip(
            queue, &(trine_global_norm_clip_args){ TRINE_ARGS(global_norm_clip), .x = &piece, .y = &out,
                                                   .other_squares = &other, .max_norm = 2 }));
    }
    for (int64_t i = 0; i < N; i++) cr_assert(fabsf(z[i] - y[i]) <= 2e-7f * fabsf(y[i]), "element %lld", (long long)i);
    free(x);
    free(y);
    free(z);
}

Test(training, clipping_without_a_norm, .init = set_up, .fini = tear_down) {
    float x[3] = { 1, INFINITY, -2 }, y[3], c;
    const trine_tensor in = vector(x, 3), out = vector(y, 3), coefficient = vector(&c, 1);
    trine_global_norm_clip_args args = { TRINE_ARGS(global_norm_clip), .x = &in, .y = &out, .coefficient = &coefficient,
                                         .max_norm = 1 };
    assert_ok(trine_global_norm_clip(queue, &args));
    cr_expect(c == 0 && y[0] == 0 && isnan(y[1]) && y[2] == 0);
    x[1] = NAN;
    assert_ok(trine_global_norm_clip(queue, &args));
    cr_expect(isnan(c) && isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
    args.max_norm = 0;
    assert_ok(trine_global_norm_clip(queue, &args));
    cr_expect(c == 1 && y[0] == 1 && isnan(y[1]) && y[2] == -2);
    memset(x, 0, sizeof x);
    args.max_norm = 1;
    assert_ok(trine_global_norm_clip(queue, &args));
    cr_expect(c == 1 && y[0] == 0);
    expect_fail(trine_global_norm_clip(queue, &(trine_global_norm_clip_args){ TRINE_ARGS(global_norm_clip), .x = &in }),
                TRINE_ERR_ARGUMENT, "global_norm_clip:");
}
