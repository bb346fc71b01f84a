/* SPDX-License-Identifier: Apache-2.0 */
/* What the example's tests share: a small model, a text, and runs that end in a checkpoint. */
#include "check.h"

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
