/* SPDX-License-Identifier: Apache-2.0 */
/* What the example's tests share: a small model, a text, and runs that end in a checkpoint. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Small, but with everything: shared key heads, two layers, sequences shorter than the context. */
gpt_config tiny = { .context = 12,
                    .batch = 3,
                    .layers = 2,
                    .width = 24,
                    .heads = 4,
                    .kv_heads = 2,
                    .hidden = 20,
                    .vocabulary = GPT_BYTES };

const gpt_schedule short_schedule = {
    .steps = STEPS, .warmup = 3, .rate = 1e-2f, .beta1 = 0.9f, .beta2 = 0.95f, .weight_decay = 0.1f, .max_norm = 1
};

bool train_to(trine_queue *queue, const gpt_data *data, const char *from, int64_t last, const char *to) {
    gpt_checkpoint checkpoint = { 0 };
    gpt_trainer t = { 0 };
    char error[256];
    double loss;
    bool good = !from || gpt_checkpoint_load(&checkpoint, from, error, sizeof error);
    good = good && gpt_trainer_open(&t, queue, &tiny, &short_schedule, data, 5, from ? &checkpoint : NULL);
    while (good && t.step < last)
        good = gpt_trainer_step(&t) && (t.step % 2 || gpt_trainer_evaluate(&t, 4, true, &loss));
    good = good && gpt_trainer_save(&t, to);
    if (!good) printf("# %s%s\n", t.error, trine_error_message());
    gpt_trainer_close(&t);
    gpt_checkpoint_free(&checkpoint);
    return good;
}

bool same_files(const char *a, const char *b) {
    size_t size_a = 0, size_b = 0;
    uint8_t *bytes_a = gpt_read_file(a, 1 << 24, &size_a), *bytes_b = gpt_read_file(b, 1 << 24, &size_b);
    const bool same = bytes_a && bytes_b && size_a == size_b && !memcmp(bytes_a, bytes_b, size_a);
    free(bytes_a);
    free(bytes_b);
    return same;
}

bool make_text(gpt_data *data, char *error, size_t size) {
    FILE *file = fopen("text", "w");
    if (!file) return false;
    for (int i = 0; i < 4000; i++) fputs(i * i % 7 < 3 ? "warp " : "wave ", file);
    return fclose(file) == 0 && gpt_data_load(data, "text", tiny.context + 1, error, size);
}

const gpt_schedule long_schedule = {
    .steps = CURVE, .warmup = 7, .rate = 1e-2f, .beta1 = 0.9f, .beta2 = 0.95f, .weight_decay = 0.1f, .max_norm = 1
};

/* Changes every parameter by this part of it, up or down. */
static bool perturb(gpt_model *model, double part, gpt_random *random) {
    const size_t bytes = (size_t)model->parameters * sizeof(float);
    float *param = malloc(bytes);
    bool good = param && trine_memory_read(model->queue, param, model->param, bytes) == TRINE_OK;
    for (int64_t i = 0; good && i < model->parameters; i++)
        param[i] *= (float)(1 + (gpt_random_next(random) % 2 ? part : -part));
    good = good && trine_memory_write(model->queue, model->param, param, bytes) == TRINE_OK;
    free(param);
    return good;
}

bool curve_of(trine_queue *queue, const gpt_data *data, const gpt_config *config, double part, float *losses_out) {
    gpt_trainer t = { 0 };
    gpt_random random;
    gpt_random_seed(&random, 11);
    bool good = gpt_trainer_open(&t, queue, config, &long_schedule, data, 5, NULL);
    while (good && t.step < CURVE) good = (part == 0 || perturb(&t.model, part, &random)) && gpt_trainer_step(&t);
    good = good && gpt_trainer_wait(&t);
    if (good) memcpy(losses_out, t.history.train, CURVE * sizeof(float));
    if (!good) printf("# %s\n", t.error);
    gpt_trainer_close(&t);
    return good;
}

bool coefficients(trine_queue *queue, const gpt_config *config, double *product_out, double *sum_out) {
    const int64_t rows = config->batch * config->context;
    const trine_tensor x = trine_tensor_2d(NULL, TRINE_F32, config->width, rows),
                       dy = trine_tensor_2d(NULL, TRINE_F32, rows, GPT_BYTES);
    const trine_tensor dw = trine_tensor_2d(NULL, TRINE_F32, config->width, GPT_BYTES),
                       row = trine_tensor_2d(NULL, TRINE_F32, 1, rows);
    const trine_tensor one = trine_tensor_1d(NULL, TRINE_F32, 1);
    const trine_matmul_args product = { TRINE_ARGS(matmul), .a = &x, .b = &dy, .d = &dw };
    const trine_reduce_sum_args sum = { TRINE_ARGS(reduce_sum), .x = &row, .row_sums = &one };
    return trine_error_bound(queue, TRINE_OP_MATMUL, &product, "d", product_out) == TRINE_OK &&
           trine_error_bound(queue, TRINE_OP_REDUCE_SUM, &sum, "row_sums", sum_out) == TRINE_OK;
}

double off_by(const float *here, const float *there, const float *perturbed, double sum, double *most_out) {
    double allowed = 0, worst = 0;
    *most_out = 0;
    for (int i = 0; i < CURVE; i++) {
        const double off = fabs((double)there[i] - (double)here[i]);
        allowed = fmax(allowed, fabs((double)perturbed[i] - (double)here[i]));
        worst = fmax(worst, off / (allowed + 2 * (sum + 0x1p-24) * (double)here[i]));
        *most_out = fmax(*most_out, off);
    }
    return worst;
}
