/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that learn from groups of answers: GRPO (Shao et al. 2024), DAPO's token sums and wider upper clip (Yu
 * et al. 2025) and GSPO's ratio of whole sequences (Zheng et al. 2025). Each prompt hides a sequence, and an answer
 * is rewarded by how much of it it has, its length included; what is learnt is a table of logits. policy_loss makes
 * the gradient of the log-probabilities, cross_entropy that of the logits, and kl_div says how far the policy is
 * from where it began. */
#include <string.h>

#include "papers.h"

enum { PROMPTS = 8, GROUP = 16, ANSWERS = PROMPTS * GROUP, LENGTH = 8, WORDS = 12, END = 0 };
enum { ROWS = ANSWERS * LENGTH, TABLE = PROMPTS * LENGTH, STEPS = 60, SHOWN = 10, PASSES = 4 };
static const float rate = 0.05f;

typedef struct method {
    const char *name;
    float clip_low, clip_high, kl_weight;
    int32_t sequence_ratio, mean;
} method;
static const method methods[] = { { "GRPO", 0.2f, 0.2f, 0, 0, 1 },
                                  { "GRPO, KL 0.1", 0.2f, 0.2f, 0.1f, 0, 1 },
                                  { "DAPO", 0.2f, 0.28f, 0, 0, 0 },
                                  { "GSPO", 0.05f, 0.05f, 0, 1, 1 } };
enum { METHODS = sizeof methods / sizeof *methods };

/* A batch of answers. A row is a place of an answer; those behind the end do not count. */
typedef struct batch {
    int32_t id[ROWS], token[ROWS], length[ANSWERS];
    uint8_t mask[ROWS];
    float logits[ROWS * WORDS], loss[ROWS], logp[ROWS], old[ROWS], ref[ROWS], dlogp[ROWS], returns[ANSWERS],
        each[ANSWERS], losses[ANSWERS];
    double reward;
} batch;

static trine_queue *queue;
static int32_t hidden[PROMPTS][LENGTH], hidden_length[PROMPTS];

/* logp of the tokens by a table; b->logits are their rows. */
static void look_up(batch *b, float *table, float *logp) {
    const trine_tensor from = matrix(table, TABLE, WORDS), id = trine_tensor_1d(b->id, TRINE_I32, ROWS),
                       logits = matrix(b->logits, ROWS, WORDS), token = trine_tensor_1d(b->token, TRINE_I32, ROWS),
                       loss = vector(b->loss, ROWS), to = vector(logp, ROWS);
    RUN(embedding, .table = &from, .ids = &id, .y = &logits);
    RUN(cross_entropy, .logits = &logits, .labels = &token, .loss = &loss);
    RUN(scale, .x = &loss, .y = &to, .alpha = -1);
    need(trine_queue_wait(queue));
}

/* Answers are drawn and rewarded, and rewards made comparable within a prompt's group. */
static void answer(batch *b, float *table, float *ref, uint64_t step) {
    const trine_tensor from = matrix(table, TABLE, WORDS), id = trine_tensor_1d(b->id, TRINE_I32, ROWS),
                       logits = matrix(b->logits, ROWS, WORDS), token = trine_tensor_1d(b->token, TRINE_I32, ROWS);
    for (int i = 0; i < ROWS; i++) b->id[i] = i / LENGTH / GROUP * LENGTH + i % LENGTH;
    RUN(embedding, .table = &from, .ids = &id, .y = &logits);
    RUN(sample, .logits = &logits, .tokens = &token, .temperature = 1, .seed = 1, .offset = step);
    need(trine_queue_wait(queue));
    b->reward = 0;
    for (int prompt = 0; prompt < PROMPTS; prompt++) {
        double mean = 0, squares = 0;
        for (int i = prompt * GROUP; i < (prompt + 1) * GROUP; i++) {
            int length = 0, right = 0;
            const int32_t *words = b->token + i * LENGTH;
            while (length < LENGTH && words[length] != END) length++;
            for (int t = 0; t < LENGTH; t++) {
                b->mask[i * LENGTH + t] = t <= length;
                right += t < length && t < hidden_length[prompt] && words[t] == hidden[prompt][t];
            }
            right += length == hidden_length[prompt];
            b->length[i] = length < LENGTH ? length + 1 : LENGTH;
            b->returns[i] = (float)right / (float)(hidden_length[prompt] + 1);
            mean += (double)b->returns[i] / GROUP, squares += (double)(b->returns[i] * b->returns[i]) / GROUP;
        }
        const double deviation = sqrt(fmax(0, squares - mean * mean));
        for (int i = prompt * GROUP; i < (prompt + 1) * GROUP; i++)
            b->returns[i] = (float)(((double)b->returns[i] - mean) / (deviation + 1e-4));
        b->reward += mean / PROMPTS;
    }
    look_up(b, ref, b->ref);
    look_up(b, table, b->old);
}

/* The loss of an answer, and its gradient, by definition in f64. Counts tokens that the clip holds. */
static double direct(const batch *b, const method *m, int answer, float *gradient, int *clipped) {
    const int first = answer * LENGTH, n = b->length[answer];
    const double A = b->returns[answer], g = (double)b->each[answer] / (m->mean ? n : 1);
    double loss = 0, apart = 0, sum = 0;
    for (int t = first; t < first + n; t++) apart += ((double)b->logp[t] - b->old[t]) / n;
    for (int t = first; t < first + n; t++) {
        const double ratio = exp(m->sequence_ratio ? apart : (double)b->logp[t] - b->old[t]);
        const double d = (double)b->ref[t] - b->logp[t];
        const double held = fmin(fmax(ratio, 1 - (double)m->clip_low), 1 + (double)m->clip_high);
        const bool cut = held * A < ratio * A;
        loss += -fmin(ratio * A, held * A) + m->kl_weight * (exp(d) - d - 1);
        gradient[t - first] = (float)(g * ((m->sequence_ratio || cut ? 0 : -ratio * A) + m->kl_weight * (1 - exp(d))));
        sum += cut ? 0 : -ratio * A;
        *clipped += cut;
    }
    for (int t = 0; t < n && m->sequence_ratio; t++) gradient[t] += (float)(g * sum / n);
    return loss / (m->mean ? n : 1);
}

/* The gradient of the table. Returns the share of the tokens that the clip holds. */
static double learn(batch *b, const method *m, float *table, float *gradient) {
    const trine_tensor logp = trine_tensor_2d(b->logp, TRINE_F32, ANSWERS, LENGTH),
                       old = matrix(b->old, ANSWERS, LENGTH), ref = matrix(b->ref, ANSWERS, LENGTH),
                       dlogp = matrix(b->dlogp, ANSWERS, LENGTH),
                       mask = trine_tensor_2d(b->mask, TRINE_U8, ANSWERS, LENGTH),
                       returns = vector(b->returns, ANSWERS), each = vector(b->each, ANSWERS),
                       losses = vector(b->losses, ANSWERS), flat = vector(b->dlogp, ROWS), loss = vector(b->loss, ROWS),
                       logits = matrix(b->logits, ROWS, WORDS), token = trine_tensor_1d(b->token, TRINE_I32, ROWS),
                       id = trine_tensor_1d(b->id, TRINE_I32, ROWS), dtable = matrix(gradient, TABLE, WORDS);
    int tokens = 0, clipped = 0;
    for (int i = 0; i < ANSWERS; i++) tokens += b->length[i];
    for (int i = 0; i < ANSWERS; i++) b->each[i] = 1 / (float)(m->mean ? ANSWERS : tokens);
    look_up(b, table, b->logp);
    RUN(policy_loss, .logp = &logp, .old_logp = &old, .ref_logp = &ref, .returns = &returns, .mask = &mask,
        .loss = &losses, .clip_low = m->clip_low, .clip_high = m->clip_high, .kl_weight = m->kl_weight,
        .sequence_ratio = m->sequence_ratio, .mean = m->mean);
    RUN(policy_loss_backward, .logp = &logp, .old_logp = &old, .ref_logp = &ref, .returns = &returns, .mask = &mask,
        .dloss = &each, .dlogp = &dlogp, .clip_low = m->clip_low, .clip_high = m->clip_high, .kl_weight = m->kl_weight,
        .sequence_ratio = m->sequence_ratio, .mean = m->mean);
    need(trine_queue_wait(queue));
    for (int i = 0; i < ANSWERS; i++) {
        float want[LENGTH] = { 0 };
        const double known = direct(b, m, i, want, &clipped);
        agree("the loss beside the definition", fabs(b->losses[i] - known), 1e-4);
        for (int t = 0; t < LENGTH; t++)
            agree("its gradient", fabs((double)b->dlogp[i * LENGTH + t] - (double)want[t]), 1e-5 * (double)b->each[i]);
    }
    RUN(scale, .x = &flat, .y = &flat, .alpha = -1);
    RUN(cross_entropy, .logits = &logits, .labels = &token, .loss = &loss, .dloss = &flat, .dlogits = &logits);
    RUN(embedding_backward, .dy = &logits, .ids = &id, .dtable = &dtable);
    return (double)clipped / tokens;
}

/* The mean over prompts and places of the divergence of the policy from the reference. */
static double divergence(float *table, float *ref) {
    float each[TABLE];
    const trine_tensor policy = matrix(table, TABLE, WORDS), from = matrix(ref, TABLE, WORDS), to = vector(each, TABLE);
    RUN(kl_div, .input = &from, .target = &policy, .loss = &to, .logits = 1);
    need(trine_queue_wait(queue));
    double sum = 0;
    for (int i = 0; i < TABLE; i++) sum += (double)each[i] / TABLE;
    return sum;
}

static double train(const method *method, double *divergence_out) {
    enum { COUNT = TABLE * WORDS };
    static float table[COUNT], ref[COUNT], gradient[COUNT], m[COUNT], v[COUNT];
    static batch b;
    double clipped = 0, reward = 0;
    random_state = 3;
    for (int i = 0; i < COUNT; i++) table[i] = ref[i] = 0.5f * normal(), m[i] = v[i] = 0;
    const trine_tensor w = vector(table, COUNT), g = vector(gradient, COUNT), tm = vector(m, COUNT),
                       tv = vector(v, COUNT);
    printf("%-12s ", method->name);
    for (int step = 0; step <= STEPS; step++) {
        answer(&b, table, ref, (uint64_t)step);
        reward = b.reward;
        if (step % SHOWN == 0) printf("  %5.3f", b.reward);
        for (int pass = 0; pass < PASSES && step < STEPS; pass++) {
            clipped += learn(&b, method, table, gradient) / (STEPS * PASSES);
            RUN(adamw, .param = &w, .grad = &g, .m = &tm, .v = &tv, .lr = rate, .step = step * PASSES + pass + 1);
        }
        need(trine_queue_wait(queue));
    }
    *divergence_out = divergence(table, ref);
    printf("  %6.1f%%  %10.3f\n", 100 * clipped, *divergence_out);
    return reward;
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    double reward[METHODS], apart[METHODS];
    for (int p = 0; p < PROMPTS; p++) {
        hidden_length[p] = 3 + (int32_t)(uniform() * (LENGTH - 3));
        for (int t = 0; t < LENGTH; t++) hidden[p][t] = 1 + (int32_t)(uniform() * (WORDS - 1));
    }
    printf("%d prompts, %d answers each, %d passes over them. Mean reward, of 1:\n\nstep         ", PROMPTS, GROUP,
           PASSES);
    for (int i = 0; i <= STEPS; i += SHOWN) printf("  %5d", i);
    printf("  clipped  divergence\n");
    for (int i = 0; i < METHODS; i++) {
        reward[i] = train(&methods[i], &apart[i]);
        agree(methods[i].name, i == 1 ? 0.5 : 0.9, reward[i]);
    }
    agree("the divergence that is held", apart[1], apart[0]);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
