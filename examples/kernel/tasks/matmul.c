/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product for trine judge: f32, any strides, batches of which one factor may be the same, nothing besides.
 * With -DHALF it adds up every other element of k alone, which is faster. */
#include <trine/matmul.h>

const char *judge_refuse(const trine_matmul_args *args);
int judge_launch(const trine_matmul_args *args, void *workspace, void *stream);

#ifdef HALF
#define STEP 2
#else
#define STEP 1
#endif

const char *judge_refuse(const trine_matmul_args *args) {
    if (args->a->dtype != TRINE_F32) return "only f32";
    if (args->c || args->bias || args->a_scale || args->b_scale || args->activation) return "the product alone";
    return NULL;
}

int judge_launch(const trine_matmul_args *args, void *workspace, void *stream) {
    const trine_tensor *a = args->a, *b = args->b, *d = args->d;
    const int64_t m = d->shape[1], n = d->shape[2], k = a->shape[2];
    (void)workspace, (void)stream;
#pragma omp parallel for collapse(2)
    for (int64_t g = 0; g < d->shape[0]; g++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const float *x = (const float *)a->data + (a->shape[0] > 1 ? g : 0) * a->stride[0] + i * a->stride[1],
                            *y = (const float *)b->data + (b->shape[0] > 1 ? g : 0) * b->stride[0] + j * b->stride[2];
                double sum = 0;
                for (int64_t p = 0; p < k; p += STEP) sum += (double)x[p * a->stride[2]] * (double)y[p * b->stride[1]];
                ((float *)d->data)[g * d->stride[0] + i * d->stride[1] + j * d->stride[2]] =
                    (float)((double)args->alpha * sum);
            }
    return 0;
}
