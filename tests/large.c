/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials of large finite numbers: whatever the size of a row's elements, probabilities follow from their
 * differences alone. The argument is a device's name; on the CPU it is done at every level. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <trine/trine.h>

#include "tap.h"

enum { MOST = 9001 }; /* of a row: several of the pieces that kernels take */

static trine_queue *queue;
static int wrong; /* results of the present group that are not right */

static void require(trine_status status) {
    if (status == TRINE_OK) return;
    printf("Bail out! %s\n", trine_error_message());
    exit(1);
}

/* --------------------------------------------------------------------------------------------------------- elements */

/* f rounded toward zero, so that the largest stays finite. */
static uint32_t bits_of(float f, trine_dtype type) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == TRINE_F32) return bits;
    if (type == TRINE_BF16) return bits >> 16;
    const uint32_t sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    return sign | (a >= 0x47800000 ? 0x7bff : a < 0x38800000 ? 0 : (a - 0x38000000) >> 13);
}

static float float_of(uint32_t bits, trine_dtype type) {
    const uint32_t body = bits & 0x7fff;
    if (type == TRINE_F16 && body < 0x400) return (bits & 0x8000 ? -0x1p-24f : 0x1p-24f) * (float)body;
    uint32_t wide = type == TRINE_F32 ? bits : bits << 16;
    if (type == TRINE_F16)
        wide = (bits & 0x8000) << 16 | (body < 0x7c00 ? (body << 13) + 0x38000000 : 0x7f800000 | body << 13);
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

static void put(void *data, trine_dtype type, int64_t i, float f) {
    if (type == TRINE_F32)
        ((uint32_t *)data)[i] = bits_of(f, type);
    else
        ((uint16_t *)data)[i] = (uint16_t)bits_of(f, type);
}

static float get(const void *data, trine_dtype type, int64_t i) {
    return float_of(type == TRINE_F32 ? ((const uint32_t *)data)[i] : ((const uint16_t *)data)[i], type);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

typedef struct memory {
    void *logits, *gradient, *loss, *lse, *label, *dloss;
} memory;

static memory memory_of(void) {
    memory m;
    void **all[] = { &m.logits, &m.gradient, &m.loss, &m.lse, &m.label, &m.dloss };
    const float one = 1;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        require(trine_memory_alloc(queue, i < 2 ? MOST * sizeof(float) : 16, all[i]));
    require(trine_memory_write(queue, m.dloss, &one, sizeof one));
    return m;
}

static void memory_drop(memory *m) {
    void *all[] = { m->logits, m->gradient, m->loss, m->lse, m->label, m->dloss };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) require(trine_memory_free(queue, all[i]));
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* A row: x at `many` of its elements, and `other` at the rest, in turn; the label is 0, and what is there is the first
 * kind. */
typedef struct row {
    trine_dtype type;
    int64_t v;
    float x, other;
    bool mixed;
    float scale, smoothing;
} row;

static float element(const row *w, int64_t k) { return w->mixed && k % 2 ? w->other : w->x; }

static void expect(const row *w, const char *what, double have, double want, double within) {
    if (have == want || fabs(have - want) <= within) return;
    if (wrong++ < 4)
        printf("# %s of %s v = %lld, x = %.9g%s%.9g, logit_scale %g, smoothing %g: %.9g, not %.9g\n", what,
               trine_dtype_name(w->type), (long long)w->v, (double)w->x, w->mixed ? " and " : ", not ",
               (double)w->other, (double)w->scale, (double)w->smoothing, have, want);
}

/* What is right, in float64 and from differences. */
typedef struct answer {
    double loss, lse, p[2], target; /* p: of each kind; target: of each class, without the label's share */
} answer;

static answer answer_of(const row *w) {
    const double x = (double)w->scale * w->x, other = w->mixed ? (double)w->scale * w->other : x, top = fmax(x, other);
    const double many = w->mixed ? (double)((w->v + 1) / 2) : (double)w->v, few = (double)w->v - many, e = w->smoothing;
    const double log_sum = log(many * exp(x - top) + few * exp(other - top));
    return (answer){ .loss =
                         log_sum + (1 - e) * (top - x) + e * (many * (top - x) + few * (top - other)) / (double)w->v,
                     .lse = top + log_sum,
                     .p = { exp(x - top - log_sum), exp(other - top - log_sum) },
                     .target = e / (double)w->v };
}

static float as_float(double x) { return x > 0x1.fffffep127 ? INFINITY : x < -0x1.fffffep127 ? -INFINITY : (float)x; }

/* What rounding to the type moves y by, at most. */
static double rounding(trine_dtype type, double y) {
    return type == TRINE_F32 ? fabs(y) * 0x1p-24 : type == TRINE_BF16 ? fabs(y) * 0x1p-8 : fabs(y) * 0x1p-11 + 0x1p-25;
}

static void expect_gradient(const row *w, const char *what, const void *data, const answer *a) {
    for (int64_t k = 0; k < w->v; k++) {
        const double want = w->scale * (a->p[w->mixed && k % 2] - (k == 0 ? 1 - (double)w->smoothing : 0) - a->target);
        expect(w, what, get(data, w->type, k), want, rounding(w->type, want) + 1e-4 * fabs((double)w->scale));
    }
}

static void try_row(memory *m, const row *w) {
    static uint32_t data[MOST];
    const answer a = answer_of(w);
    const size_t size = trine_dtype_size(w->type);
    const int64_t label = 0;
    float loss, lse;
    for (int64_t k = 0; k < w->v; k++) put(data, w->type, k, element(w, k));
    require(trine_memory_write(queue, m->logits, data, size * (size_t)w->v));
    require(trine_memory_write(queue, m->label, &label, sizeof label));
    const trine_tensor logits = trine_tensor_2d(m->logits, w->type, 1, w->v),
                       gradient = trine_tensor_2d(m->gradient, w->type, 1, w->v);
    const trine_tensor losses = trine_tensor_1d(m->loss, TRINE_F32, 1), lses = trine_tensor_1d(m->lse, TRINE_F32, 1);
    const trine_tensor labels = trine_tensor_1d(m->label, TRINE_I64, 1),
                       dloss = trine_tensor_1d(m->dloss, TRINE_F32, 1);
    trine_cross_entropy_args both = { TRINE_ARGS(cross_entropy),
                                      .logits = &logits,
                                      .labels = &labels,
                                      .loss = &losses,
                                      .lse = &lses,
                                      .logit_scale = w->scale,
                                      .label_smoothing = w->smoothing };
    for (int with_gradient = 0; with_gradient < 2; with_gradient++) {
        both.dlogits = with_gradient ? &gradient : NULL;
        require(trine_cross_entropy(queue, &both));
        require(trine_memory_read(queue, &loss, m->loss, sizeof loss));
        require(trine_memory_read(queue, &lse, m->lse, sizeof lse));
        expect(w, "loss", loss, as_float(a.loss), 1e-4 + 2e-5 * a.loss);
        expect(w, "lse", lse, as_float(a.lse), 1e-4 + 1e-6 * fabs(a.lse));
    }
    require(trine_memory_read(queue, data, m->gradient, size * (size_t)w->v));
    expect_gradient(w, "gradient", data, &a);
    require(trine_cross_entropy_backward(
        queue, &(trine_cross_entropy_backward_args){
                   TRINE_ARGS(cross_entropy_backward), .logits = &logits, .labels = &labels, .lse = &lses,
                   .dloss = &dloss, .dlogits = &logits, .logit_scale = w->scale, .label_smoothing = w->smoothing }));
    require(trine_memory_read(queue, data, m->logits, size * (size_t)w->v));
    expect_gradient(w, "separate gradient", data, &a);
}

static void try_softmax(memory *m, const row *w) {
    static uint32_t data[MOST];
    const answer a = answer_of(w);
    const size_t size = trine_dtype_size(w->type);
    for (int64_t k = 0; k < w->v; k++) put(data, w->type, k, element(w, k));
    require(trine_memory_write(queue, m->logits, data, size * (size_t)w->v));
    const trine_tensor x = trine_tensor_2d(m->logits, w->type, 1, w->v),
                       y = trine_tensor_2d(m->gradient, w->type, 1, w->v);
    require(trine_softmax(queue, &(trine_softmax_args){ TRINE_ARGS(softmax), .x = &x, .y = &y, .scale = w->scale }));
    require(trine_memory_read(queue, data, m->gradient, size * (size_t)w->v));
    for (int64_t k = 0; k < w->v; k++) {
        const double want = a.p[w->mixed && k % 2];
        expect(w, "softmax", get(data, w->type, k), want, rounding(w->type, want) + 1e-4 * want + 0x1p-126);
    }
}

/* ----------------------------------------------------------------------------------------------------------- groups */

static const trine_dtype types[] = { TRINE_F32, TRINE_BF16, TRINE_F16 };
static const int64_t lengths[] = { 2, 7, 1000, MOST };
static const float scales[] = { 1, 0.7f, -2, 1e-30f, 1e10f, 0x1p126f };

/* x as the type has it, and all that the groups vary. */
static void try_all(memory *m, trine_dtype type, float x, float other, bool mixed) {
    x = float_of(bits_of(x, type), type), other = float_of(bits_of(other, type), type);
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
            const row w = { type, lengths[l], x, other, mixed, scales[s], l % 2 ? 0.1f : 0 };
            /* a gradient of half logit_scale is beyond float16 */
            if (fabs(w.scale) < 2 || type == TRINE_F32) try_row(m, &w);
            try_softmax(m, &w);
        }
}

static void equal_logits(memory *m, trine_dtype type) {
    static const float some[] = { 0, 0x1p-149f, 0x1p-126f, 1, 1e9f, 1e10f, 0x1.fffffep127f };
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        try_all(m, type, some[i], 0, false), try_all(m, type, -some[i], 0, false);
    for (int e = 20; e < 128; e += 9)
        try_all(m, type, ldexpf(1, e), 0, false), try_all(m, type, -ldexpf(1.5f, e), 0, false);
}

static void mixed_logits(memory *m, trine_dtype type) {
    static const float large[] = { 1e3f, 65504, 1e9f, 0x1.8p60f, 0x1.fffffep127f }, small[] = { 0, 1, -1e4f };
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        for (size_t j = 0; j < sizeof small / sizeof small[0]; j++)
            for (int sign = -1; sign < 2; sign += 2) {
                const float x = (float)sign * large[i];
                try_all(m, type, x, small[j], true), try_all(m, type, small[j], x, true), try_all(m, type, x, -x, true);
                try_all(m, type, x, nextafterf(x, 0), true);
            }
}

static void try_device(trine *lib, const char *name, const char *level) {
    const int device = trine_device_find(lib, name);
    if (device < 0) {
        tap(true, "# SKIP there is no device %s", name);
        return;
    }
    require(trine_queue_open(lib, device, NULL, &queue));
    memory m = memory_of();
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        wrong = 0;
        equal_logits(&m, types[t]);
        tap(wrong == 0, "%s %s: equal logits of %s", name, level, trine_dtype_name(types[t]));
        wrong = 0;
        mixed_logits(&m, types[t]);
        tap(wrong == 0, "%s %s: mixed logits of %s", name, level, trine_dtype_name(types[t]));
    }
    memory_drop(&m);
    trine_queue_close(queue);
}

int main(int argc, char **argv) {
    static const char *const levels[] = { "baseline", "v3", "v4", "v4_bf16", "amx" };
    const char *name = argc > 1 ? argv[1] : "cpu";
    const bool cpu = strcmp(name, "cpu") == 0;
    for (size_t i = 0; i < (cpu ? sizeof levels / sizeof levels[0] : 1); i++) {
        trine *lib = NULL;
        if (cpu) setenv("TRINE_ISA", levels[i], 1);
        require(trine_open(&(trine_options){ .struct_size = sizeof(trine_options),
                                             .backends = cpu ? "" : NULL,
                                             .tune_file = "/dev/null" },
                           &lib));
        try_device(lib, name, cpu ? levels[i] : "");
        trine_close(lib);
    }
    return tap_end();
}
