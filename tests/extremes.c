/* SPDX-License-Identifier: Apache-2.0 */
/* gelu, swiglu and geglu, and their gradients, at the ends of f32, on every CPU level: what is finite, what is Inf,
 * and never NaN. */
#include <float.h>
#include <math.h>

#include "support.h"

TestSuite(extremes, .timeout = 60);

static const float sizes[] = { 0,  0x1p-149f, 1e-40f, FLT_MIN, 1e-20f, 1e-3f,   1,     3,       5.5f,
                               20, 88.7f,     104,    1e3f,    1e10f,  1.8e19f, 1e30f, 3.2e38f, FLT_MAX };
enum { SIZES = sizeof sizes / sizeof sizes[0], VALUES = 2 * SIZES };
static float value(int i) { return i % 2 ? -sizes[i / 2] : sizes[i / 2]; }

/* A level beyond the machine's is its highest; one that the library does not know is none. */
static const char *const levels[] = { "baseline", "v3", "v4", "v4_bf16", "amx", "v8_bf16" };

static trine_queue *open_level(const char *level, trine **lib_out) {
    trine_queue *queue = NULL;
    const trine_options options = { .struct_size = sizeof options, .isa = level, .backends = "cpu", .tune_file = "" };
    if (trine_open(&options, lib_out) != TRINE_OK) {
        cr_assert(level != levels[0], "%s", trine_error_message());
        return NULL;
    }
    assert_ok(trine_queue_open(*lib_out, 0, NULL, &queue));
    return queue;
}

/* What a small factor loses that is taken for zero, times the others. */
static double lost(double x, double others) { return x < 0x1p-125 ? fmin(x, FLT_MIN) * fabs(others) : 0; }

/* Is y what f32 may have of a value that is known in float64? `off`: how far it may be. */
static bool is_right(float y, double y64, double off) {
    const double far = off + FLT_MIN;
    if (isnan(y)) return false;
    if (fabs(y64) - far > FLT_MAX) return isinf(y) && (y > 0) == (y64 > 0);
    if (fabs(y64) + far >= FLT_MAX && isinf(y)) return (y > 0) == (y64 > 0);
    return fabs(y - y64) <= far;
}
#define EXPECT(level, y, y64, off, ...) \
    do { \
        char text_[128]; \
        snprintf(text_, sizeof text_, __VA_ARGS__); \
        cr_expect(is_right(y, y64, off), "%s: %s is %.9g, not %.9g", level, text_, (double)(y), (double)(y64)); \
    } while (0)

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

/* The distribution that gelu multiplies x by, and x times its density. */
static void gelu_of(int form, double x, double *cdf_out, double *rise_out) {
    static const double c = 1.5957691216057308, root = 0.70710678118654752; /* 2 sqrt(2/pi), sqrt(1/2) */
    const double v = c * (x + 0.044715 * x * x * x), s = sigmoid(v), t = sigmoid(-v);
    *cdf_out = form == TRINE_GELU_TANH ? s : 0.5 * erfc(-x * root);
    *rise_out = form == TRINE_GELU_TANH ? x * (s * t) * c * (1 + 3 * 0.044715 * x * x)
                                        : x * exp(-x * x / 2) * 0.39894228040143268;
}

Test(extremes, gelu) {
    float x[VALUES], dy[VALUES], y[VALUES], dx[VALUES];
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, VALUES), tdy = trine_tensor_1d(dy, TRINE_F32, VALUES),
                       ty = trine_tensor_1d(y, TRINE_F32, VALUES), tdx = trine_tensor_1d(dx, TRINE_F32, VALUES);
    for (int i = 0; i < VALUES; i++) x[i] = value(i);
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        trine *lib = NULL;
        trine_queue *queue = open_level(levels[l], &lib);
        if (queue == NULL) continue;
        for (int form = TRINE_GELU_TANH; form <= TRINE_GELU_ERF; form++) {
            assert_ok(trine_gelu(queue, &(trine_gelu_args){ TRINE_ARGS(gelu), .x = &tx, .y = &ty, .form = form }));
            for (int i = 0; i < VALUES; i++) {
                double cdf, rise;
                gelu_of(form, x[i], &cdf, &rise);
                EXPECT(levels[l], y[i], x[i] * cdf, 1e-4 * fabs(x[i] * cdf) + lost(cdf, x[i]), "gelu %d of %.9g", form,
                       (double)x[i]);
            }
            for (int k = 0; k < VALUES; k++) {
                for (int i = 0; i < VALUES; i++) dy[i] = value(k);
                assert_ok(
                    trine_gelu_backward(queue, &(trine_gelu_backward_args){ TRINE_ARGS(gelu_backward), .dy = &tdy,
                                                                            .x = &tx, .dx = &tdx, .form = form }));
                for (int i = 0; i < VALUES; i++) {
                    double cdf, rise;
                    gelu_of(form, x[i], &cdf, &rise);
                    EXPECT(levels[l], dx[i], dy[i] * (cdf + rise),
                           1e-4 * fabs(dy[i]) * (cdf + fabs(rise)) + lost(cdf, dy[i] * (1 + 4e4 * fabs(x[i]))),
                           "gelu_backward %d of x %.9g, dy %.9g", form, (double)x[i], (double)dy[i]);
                }
            }
        }
        trine_queue_close(queue);
        trine_close(lib);
    }
}

static void run_gated(trine_queue *queue, int form, const trine_tensor *gate, const trine_tensor *up,
                      const trine_tensor *y) {
    assert_ok(form < 0 ? trine_swiglu(queue, &(trine_swiglu_args){ TRINE_ARGS(swiglu), .gate = gate, .up = up, .y = y })
                       : trine_geglu(queue, &(trine_geglu_args){ TRINE_ARGS(geglu), .gate = gate, .up = up, .y = y,
                                                                 .form = form }));
}
static void run_gated_backward(trine_queue *queue, int form, const trine_tensor *dy, const trine_tensor *gate,
                               const trine_tensor *up, const trine_tensor *dgate, const trine_tensor *dup) {
    const trine_swiglu_backward_args swiglu = {
        TRINE_ARGS(swiglu_backward), .dy = dy, .gate = gate, .up = up, .dgate = dgate, .dup = dup
    };
    const trine_geglu_backward_args geglu = {
        TRINE_ARGS(geglu_backward), .dy = dy, .gate = gate, .up = up, .dgate = dgate, .dup = dup, .form = form
    };
    assert_ok(form < 0 ? trine_swiglu_backward(queue, &swiglu) : trine_geglu_backward(queue, &geglu));
}

/* What x is multiplied by, what the slope is more than that, and what either may be off by for the size of the slope's
 * parts, and for what is taken for zero in them. */
typedef struct curve {
    double part, rise, off, size, loss;
} curve;

static curve curve_of(int form, double x) {
    curve c = { .off = 1e-4 };
    if (form < 0) {
        c.part = sigmoid(x), c.rise = c.part * x * sigmoid(-x), c.off = 1e-5;
        c.size = c.part * (1 + fabs(x)), c.loss = lost(c.part, 1 + fabs(x));
    } else {
        gelu_of(form, x, &c.part, &c.rise);
        c.size = c.part + fabs(c.rise), c.loss = lost(c.part, 1 + 4e4 * fabs(x));
    }
    return c;
}

/* swiglu is the form -1. */
Test(extremes, gated) {
    float gate[VALUES], up[VALUES], dy[VALUES], y[VALUES], dgate[VALUES], dup[VALUES];
    const trine_tensor tgate = trine_tensor_1d(gate, TRINE_F32, VALUES), tup = trine_tensor_1d(up, TRINE_F32, VALUES),
                       tdy = trine_tensor_1d(dy, TRINE_F32, VALUES), ty = trine_tensor_1d(y, TRINE_F32, VALUES),
                       tdgate = trine_tensor_1d(dgate, TRINE_F32, VALUES),
                       tdup = trine_tensor_1d(dup, TRINE_F32, VALUES);
    for (int i = 0; i < VALUES; i++) gate[i] = value(i);
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        trine *lib = NULL;
        trine_queue *queue = open_level(levels[l], &lib);
        if (queue == NULL) continue;
        for (int form = -1; form <= TRINE_GELU_ERF; form++)
            for (int j = 0; j < VALUES; j++) {
                for (int i = 0; i < VALUES; i++) up[i] = value(j);
                run_gated(queue, form, &tgate, &tup, &ty);
                for (int i = 0; i < VALUES; i++) {
                    const curve c = curve_of(form, gate[i]);
                    const double g = gate[i], y64 = g * c.part * up[i];
                    EXPECT(levels[l], y[i], y64,
                           c.off * fabs(y64) + lost(c.part, g * up[i]) + lost(fabs(g * c.part), up[i]),
                           "form %d of gate %.9g, up %.9g", form, g, (double)up[i]);
                }
                for (int k = 0; k < VALUES; k++) {
                    for (int i = 0; i < VALUES; i++) dy[i] = value(k);
                    run_gated_backward(queue, form, &tdy, &tgate, &tup, &tdgate, &tdup);
                    for (int i = 0; i < VALUES; i++) {
                        const curve c = curve_of(form, gate[i]);
                        const double g = gate[i], both = (double)dy[i] * up[i], more = 1 + fabs(g),
                                     dup64 = dy[i] * (g * c.part);
                        EXPECT(levels[l], dgate[i], both * (c.part + c.rise),
                               c.off * fabs(both) * c.size + fabs(both) * c.loss +
                                   more * (lost(fabs(up[i] * c.size), dy[i]) + lost(fabs(dy[i] * c.size), up[i]) +
                                           lost(fabs(both), 1)),
                               "dgate, form %d, of gate %.9g, up %.9g, dy %.9g", form, g, (double)up[i], (double)dy[i]);
                        EXPECT(levels[l], dup[i], dup64,
                               c.off * fabs(dup64) + lost(c.part, dy[i] * g) + lost(fabs(g * c.part), dy[i]) +
                                   lost(fabs(dy[i]) * c.part, g),
                               "dup, form %d, of gate %.9g, dy %.9g", form, g, (double)dy[i]);
                    }
                }
            }
        trine_queue_close(queue);
        trine_close(lib);
    }
}
