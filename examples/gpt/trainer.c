/* SPDX-License-Identifier: Apache-2.0 */
/* The training run. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "share.h"
#include "trainer.h"

static bool failed(gpt_trainer *t, const char *doing) {
    const char *message = *t->model.trouble ? t->model.trouble : trine_error_message();
    snprintf(t->error, sizeof t->error, "%s: %s", doing, *message ? message : strerror(ENOMEM));
    return false;
}

/* A token for each byte. */
static bool load_text(gpt_trainer *t) {
    const int64_t size = t->data->train_size;
    int32_t *tokens = malloc((size_t)size * sizeof *tokens);
    void *memory = NULL;
    for (int64_t i = 0; tokens && i < size; i++) tokens[i] = t->data->train[i];
    const bool good = tokens &&
                      trine_memory_alloc(t->model.queue, (size_t)size * sizeof *tokens, &memory) == TRINE_OK &&
                      trine_memory_write(t->model.queue, memory, tokens, (size_t)size * sizeof *tokens) == TRINE_OK;
    t->text = memory;
    free(tokens);
    return good;
}

static bool load_state(gpt_trainer *t, const gpt_checkpoint *from) {
    const int64_t n = gpt_parameters(&t->model.whole), most = n < 1 << 20 ? n : 1 << 20;
    float *some = malloc((size_t)most * sizeof *some);
    bool good = some != NULL;
    for (int which = GPT_PARAM; which <= GPT_V; which++)
        for (int64_t first = 0; good && first < n; first += most) {
            const int64_t count = n - first < most ? n - first : most;
            good = gpt_checkpoint_state(from, which, first, count, some) &&
                   gpt_state_write(&t->model, which, first, count, some);
        }
    free(some);
    return good && gpt_refresh(&t->model);
}

bool gpt_trainer_open(gpt_trainer *trainer, trine_queue *queue, const gpt_config *config, const gpt_schedule *schedule,
                      const gpt_data *data, uint64_t seed, const gpt_checkpoint *from) {
    gpt_trainer *t = trainer;
    const size_t r = (size_t)config->batch * (size_t)config->context, steps = (size_t)schedule->steps;
    *t = (gpt_trainer){ .schedule = *schedule, .data = data };
    t->tokens = malloc(r * sizeof *t->tokens);
    t->labels = malloc(r * sizeof *t->labels);
    t->place = malloc((size_t)config->batch * sizeof *t->place);
    t->history.train = malloc(steps * sizeof(float));
    t->history.held_out = malloc((steps + 1) * sizeof *t->history.held_out);
    if (!gpt_open(&t->model, config, queue, seed)) return failed(t, "making the model");
    if (!t->tokens || !t->labels || !t->place || !t->history.train || !t->history.held_out) {
        snprintf(t->error, sizeof t->error, "%s", strerror(ENOMEM));
        return false;
    }
    if (!load_text(t)) return failed(t, "loading the text");
    gpt_random_seed(&t->random, ~seed);
    if (!from) return true;
    t->random = from->random;
    t->step = from->step;
    t->history.count = from->history.count;
    t->history.held_out_count = from->history.held_out_count;
    memcpy(t->history.train, from->history.train, (size_t)from->history.count * sizeof(float));
    memcpy(t->history.held_out, from->history.held_out,
           (size_t)from->history.held_out_count * sizeof *from->history.held_out);
    return load_state(t, from) || failed(t, "loading the checkpoint");
}

void gpt_trainer_close(gpt_trainer *trainer) {
    if (trainer->text) trine_memory_free(trainer->model.queue, trainer->text);
    if (trainer->model.queue) gpt_close(&trainer->model);
    free(trainer->place);
    free(trainer->tokens);
    free(trainer->labels);
    free(trainer->history.train);
    free(trainer->history.held_out);
    *trainer = (gpt_trainer){ 0 };
}

/* Sequence `at` of the batch: the `context` bytes from `text` on, each to be predicted from those before it. */
static void put_sequence(gpt_trainer *t, int64_t at, const uint8_t *text) {
    const int64_t context = t->model.config.context;
    for (int64_t i = 0; i < context; i++) {
        t->tokens[at * context + i] = text[i];
        t->labels[at * context + i] = text[i + 1];
    }
}

static float rate_at(const gpt_schedule *s, int64_t step) {
    if (step < s->warmup) return s->rate * (float)(step + 1) / (float)s->warmup;
    const double part = (double)(step - s->warmup) / (double)(s->steps - s->warmup > 0 ? s->steps - s->warmup : 1);
    return (float)(s->rate * (0.55 + 0.45 * cos(3.141592653589793 * part)));
}

bool gpt_trainer_wait(gpt_trainer *trainer) {
    gpt_trainer *t = trainer;
    float losses[GPT_MAX_LOSSES];
    const int64_t first = t->history.count, count = t->step - first;
    if (count == 0) return true;
    if (trine_memory_read(t->model.queue, losses, t->model.losses, (size_t)count * sizeof(float)) != TRINE_OK)
        return failed(t, "training");
    for (int64_t i = 0; i < count; i++) {
        t->history.train[t->history.count++] = losses[i];
        if (isfinite(losses[i])) continue;
        snprintf(t->error, sizeof t->error, "training diverged at step %lld: loss %g", (long long)(first + i),
                 (double)losses[i]);
        return false;
    }
    return true;
}

bool gpt_trainer_step(gpt_trainer *trainer) {
    gpt_trainer *t = trainer;
    const gpt_config *c = &t->model.config;
    const gpt_schedule *s = &t->schedule;
    const uint64_t places = (uint64_t)(t->data->train_size - c->context);
    for (int b = 0; b < t->model.whole.batch; b++) t->place[b] = (int64_t)(gpt_random_next(&t->random) % places);
    const gpt_step step = { rate_at(s, t->step), s->beta1, s->beta2, s->weight_decay, s->max_norm, t->step + 1 };
    if (!gpt_loss_of_text(&t->model, t->text, t->place, (int)(t->step - t->history.count)) ||
        !gpt_gradient(&t->model, c->batch, c->context) || !gpt_update(&t->model, &step))
        return failed(t, "training");
    t->step++;
    return t->step - t->history.count < GPT_MAX_LOSSES || gpt_trainer_wait(t);
}

bool gpt_trainer_evaluate(gpt_trainer *trainer, int64_t windows, bool record, double *loss_out) {
    gpt_trainer *t = trainer;
    const gpt_config *c = &t->model.config;
    const int64_t most = (t->data->held_out_size - 1) / c->context, count = windows < most ? windows : most;
    double sum = 0;
    if (!gpt_trainer_wait(t)) return false;
    for (int64_t first = 0; first < count; first += c->batch) {
        const int sequences = (int)(count - first < c->batch ? count - first : c->batch);
        double loss;
        for (int b = 0; b < sequences; b++)
            put_sequence(t, b, t->data->held_out + (first + b) * most / count * c->context);
        if (!gpt_loss(&t->model, t->tokens, t->labels, sequences, c->context, &loss)) return failed(t, "evaluating");
        sum += loss * sequences;
    }
    *loss_out = sum / (double)count;
    const int64_t last = t->history.held_out_count - 1;
    if (record && (last < 0 || t->history.held_out[last].step < t->step))
        t->history.held_out[t->history.held_out_count++] = (struct gpt_held_out){ t->step, (float)*loss_out };
    return true;
}

static bool state_to_save(void *from, int which, int64_t first, int64_t count, float *to) {
    gpt_trainer *t = from;
    t->saved++;
    return gpt_state_read(&t->model, which, first, count, to) || failed(t, "saving");
}

/* The parts of the state that the first rank has not asked for, as it need not if it cannot write: each is read by all
 * ranks together. */
static bool read_rest(gpt_trainer *t) {
    const int64_t n = gpt_parameters(&t->model.whole), pieces = (n + GPT_STATE_PIECE - 1) / GPT_STATE_PIECE;
    float *state = malloc(GPT_STATE_PIECE * sizeof *state);
    bool good = state || failed(t, "saving");
    while (good && t->saved < 3 * pieces) {
        const int64_t first = t->saved % pieces * GPT_STATE_PIECE;
        good = state_to_save(t, (int)(t->saved / pieces), first,
                             n - first < GPT_STATE_PIECE ? n - first : GPT_STATE_PIECE, state);
    }
    free(state);
    return good;
}

bool gpt_trainer_save(gpt_trainer *trainer, const char *path) {
    gpt_trainer *t = trainer;
    const gpt_group *g = t->model.whole.group;
    bool lost = false;
    if (!gpt_trainer_wait(t)) return false;
    const gpt_checkpoint c = { .config = t->model.whole,
                               .schedule = t->schedule,
                               .random = t->random,
                               .text_hash = t->data->hash,
                               .step = t->step,
                               .history = t->history,
                               .parameters = gpt_parameters(&t->model.whole),
                               .read = state_to_save,
                               .from = t };
    t->saved = 0;
    const bool saved = (g && g->rank) || gpt_checkpoint_save(&c, path, t->error, sizeof t->error);
    if (!g) return saved;
    if (!read_rest(t)) return false;
    if (!gpt_share_any(&t->model, !saved, &lost)) return failed(t, "saving");
    if (lost && saved) snprintf(t->error, sizeof t->error, "%s: not written by the first rank", path);
    return !lost;
}

static int draw(const float *logits, gpt_random *random) {
    double weight[GPT_BYTES], sum = 0;
    float most = -INFINITY;
    for (int i = 0; i < GPT_BYTES; i++) most = logits[i] > most ? logits[i] : most;
    for (int i = 0; i < GPT_BYTES; i++) sum += weight[i] = exp((logits[i] - most) / 0.8);
    double left = gpt_random_uniform(random) * sum;
    for (int i = 0; i < GPT_BYTES; i++)
        if ((left -= weight[i]) < 0) return i;
    return GPT_BYTES - 1;
}

bool gpt_trainer_sample(gpt_trainer *trainer, const char *prompt, int count, uint64_t seed, FILE *to) {
    gpt_trainer *t = trainer;
    const int context = t->model.config.context;
    const size_t given = strlen(prompt);
    gpt_random random;
    gpt_random_seed(&random, seed);
    int length = 0;
    for (size_t i = given > (size_t)context ? given - (size_t)context : 0; i < given; i++)
        t->tokens[length++] = (uint8_t)prompt[i];
    if (length == 0) t->tokens[length++] = '\n';
    fputs(prompt, to);
    for (int i = 0; i < count; i++) {
        float logits[GPT_BYTES];
        if (!gpt_predict(&t->model, t->tokens, length, logits)) return failed(t, "sampling");
        const int token = draw(logits, &random);
        fputc(token == '\n' || isprint(token) ? token : '?', to);
        if (length == context) memmove(t->tokens, t->tokens + 1, (size_t)--length * sizeof *t->tokens);
        t->tokens[length++] = token;
    }
    fputc('\n', to);
    return true;
}
