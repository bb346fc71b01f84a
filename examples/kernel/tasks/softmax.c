/* SPDX-License-Identifier: Apache-2.0 */
/* A softmax for trine judge: f32 rows, three passes. With -DNAIVE it leaves out the maximum, as one would write it
 * down: then large elements overflow. */
#include <math.h>

#include <trine/norm.h>

const char *judge_refuse(const trine_softmax_args *args);
int judge_launch(const trine_softmax_args *args, void *workspace, void *stream);

const char *judge_refuse(const trine_softmax_args *args) {
    if (args->x->dtype != TRINE_F32) return "only f32";
    return args->causal ? "no mask" : NULL;
}

static void row_of(const float *x, float *y, int64_t n, float scale) {
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double v = (double)scale * (double)x[j];
        most = v > most || isnan(v) ? v : most;
    }
#ifdef NAIVE
    most = 0;
#endif
    for (int64_t j = 0; j < n; j++) sum += exp((double)scale * (double)x[j] - most);
    for (int64_t j = 0; j < n; j++) y[j] = (float)(exp((double)scale * (double)x[j] - most) / sum);
}

int judge_launch(const trine_softmax_args *args, void *workspace, void *stream) {
    const trine_tensor *x = args->x, *y = args->y;
    (void)workspace, (void)stream;
#pragma omp parallel for collapse(2)
    for (int64_t g = 0; g < x->shape[0]; g++)
        for (int64_t i = 0; i < x->shape[1]; i++)
            row_of((const float *)x->data + g * x->stride[0] + i * x->stride[1],
                   (float *)y->data + g * y->stride[0] + i * y->stride[1], x->shape[2], args->scale);
    return 0;
}
