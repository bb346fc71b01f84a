/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what examples/gpt exports: both kinds of files give the model that it was. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export.h"
#include "llama.h"
#include "sampler.h"
#include "tests/tap.h"

enum { CONTEXT = 40, PROMPT = 8 };

static const gpt_config small = { .context = CONTEXT,
                                  .batch = 1,
                                  .layers = 2,
                                  .width = 24,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .hidden = 20,
                                  .vocabulary = GPT_BYTES + 40 };

static const char *const files[] = { "config.json", "tokenizer.json", "model.safetensors", "model.gguf" };

typedef struct trained {
    gpt_model model;
    int32_t tokens[CONTEXT]; /* a prompt, and what follows by the largest logits */
    float logits[CONTEXT][GPT_BYTES];
} trained;

/* Larger weights than those that training begins with, so that logits differ. */
static bool enlarge(gpt_model *model) {
    const size_t bytes = (size_t)model->parameters * sizeof(float);
    gpt_random random;
    float *param = malloc(bytes);
    gpt_random_seed(&random, 5);
    bool good = param && trine_memory_read(model->queue, param, model->param, bytes) == TRINE_OK;
    for (int64_t i = 0; good && i < model->parameters; i++)
        param[i] *= i < model->decayed ? 12.0f : 0.75f + 0.5f * (float)gpt_random_uniform(&random);
    good = good && trine_memory_write(model->queue, model->param, param, bytes) == TRINE_OK && gpt_refresh(model);
    free(param);
    return good;
}

static bool make(trained *t, trine_queue *queue, bool mixed) {
    static const uint8_t prompt[PROMPT] = { 'a', 0, 200, '"', ' ', 255, '\\', 'z' };
    sampler greedy = { 0 };
    gpt_config config = small;
    config.mixed = mixed;
    bool good = gpt_open(&t->model, &config, queue, 3) && enlarge(&t->model);
    for (int i = 0; good && i < CONTEXT; i++) {
        if (i < PROMPT) t->tokens[i] = prompt[i];
        good = gpt_predict(&t->model, t->tokens, i + 1, t->logits[i]);
        if (i + 1 >= PROMPT && i + 1 < CONTEXT) t->tokens[i + 1] = sampler_pick(&greedy, t->logits[i], GPT_BYTES);
    }
    return good;
}

/* Logits that differ by more than a part of the largest, and tokens that are others. */
static void check_model(const trained *t, trine_queue *queue, const char *path, trine_dtype type, double bound) {
    model_file file;
    llama m = { 0 };
    sequence s = { 0 };
    const llama_options options = { .type = type, .context = CONTEXT, .slots = 1 };
    problem why = { 0 };
    sampler greedy = { 0 };
    float logits[GPT_BYTES];
    double worst = 0, largest = 0;
    int others = 0;
    bool good = model_open(&file, path, &why) && llama_open(&m, &file, queue, &options, &why);
    tap(good && file.config.context == CONTEXT && file.config.vocabulary == GPT_BYTES && file.tokenizer.first < 0 &&
            file.tokenizer.stops == 0,
        "%s opens: %s", path, why.text);
    for (int i = 0; good && i < CONTEXT; i++) {
        good = llama_read(&m, &s, &t->tokens[i], 1, logits, &why);
        for (int k = 0; good && k < GPT_BYTES; k++) {
            const double d = fabs((double)logits[k] - (double)t->logits[i][k]);
            worst = d <= worst ? worst : d;
            largest = fmax(largest, fabs((double)t->logits[i][k]));
        }
        if (good && i + 1 >= PROMPT && i + 1 < CONTEXT)
            others += sampler_pick(&greedy, logits, GPT_BYTES) != t->tokens[i + 1];
    }
    tap(good && worst <= bound * largest, "its logits are those of gpt: off by %.1e of %.1f", worst, largest);
    if (type == TRINE_F32) tap(good && others == 0, "the same tokens follow: %d others", others);
    sequence_end(&m.pool, &s);
    llama_close(&m);
    model_close(&file);
}

/* Each byte is a token of its own, whose number it is. */
static void check_bytes(const char *path) {
    model_file file;
    problem why = { 0 };
    token_list list = { 0 };
    char all[GPT_BYTES];
    for (int i = 0; i < GPT_BYTES; i++) all[i] = (char)i;
    bool good = model_open(&file, path, &why) &&
                tokenizer_encode(&file.tokenizer, (slice){ all, GPT_BYTES }, true, &list, &why) &&
                list.count == GPT_BYTES;
    for (int i = 0; good && i < GPT_BYTES; i++) {
        const slice text = tokenizer_text(&file.tokenizer, i);
        good = list.id[i] == i && text.size == 1 && (uint8_t)text.bytes[0] == i;
    }
    tap(good, "%s: bytes are tokens: %s", path, why.text);
    token_list_free(&list);
    model_close(&file);
}

static void check(trine_queue *queue, bool mixed) {
    static trained t;
    char error[256] = "";
    /* As in check.c; of bf16 the roundings of both programs count. */
    const double bound = mixed ? 0x1p-3 : 0x1p-17;
    if (tap(make(&t, queue, mixed), "a model in %s: %s", mixed ? "bf16" : "f32", trine_error_message()) &&
        tap(gpt_export(&t.model, "out", error, sizeof error), "it is exported: %s", error)) {
        check_model(&t, queue, "out", t.model.type, bound);
        check_model(&t, queue, "out/model.gguf", t.model.type, bound);
        check_bytes("out");
        check_bytes("out/model.gguf");
        tap(!gpt_export(&t.model, "none/out", error, sizeof error) && strstr(error, "none/out: No such file"),
            "a folder that cannot be made: %s", error);
    }
    gpt_close(&t.model);
}

int main(void) {
    char path[] = "/tmp/trine-export-XXXXXX", name[64];
    trine *lib = NULL;
    trine_queue *queue = NULL;
    if (!tap(mkdtemp(path) && chdir(path) == 0, "a folder to write in")) return tap_end();
    if (tap(trine_open(NULL, &lib) == TRINE_OK && trine_queue_open(lib, 0, NULL, &queue) == TRINE_OK, "trine opens: %s",
            trine_error_message())) {
        check(queue, false);
        check(queue, true);
    }
    trine_queue_close(queue);
    trine_close(lib);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(name, sizeof name, "out/%s", files[i]);
        unlink(name);
    }
    rmdir("out");
    if (chdir("/") == 0) rmdir(path);
    return tap_end();
}
