/* SPDX-License-Identifier: Apache-2.0 */
/* The largest logits in their order, and a draw among them. */
#include <math.h>

#include "sampler.h"

typedef struct choice {
    float logit;
    int32_t id;
} choice;

/* The `most` largest, in order; returns how many there are. NaN and -Inf are never among them. */
static int largest(const float *logits, int32_t count, int most, choice *out) {
    int found = 0;
    for (int32_t id = 0; id < count; id++) {
        const float x = logits[id];
        if (!(x > (found == most ? out[most - 1].logit : -INFINITY))) continue;
        int i = found < most ? found++ : most - 1;
        for (; i > 0 && out[i - 1].logit < x; i--) out[i] = out[i - 1];
        out[i] = (choice){ x, id };
    }
    return found;
}

int32_t sampler_pick(sampler *s, const float *logits, int32_t count) {
    choice best[SAMPLER_MOST];
    const int found = largest(logits, count, s->temperature > 0 ? s->top_k : 1, best);
    double weight[SAMPLER_MOST], sum = 0;
    if (found <= 1 || !(best[0].logit < INFINITY)) return found > 0 ? best[0].id : -1;
    for (int i = 0; i < found; i++)
        sum += weight[i] = exp(((double)best[i].logit - (double)best[0].logit) / s->temperature);
    double left = gpt_random_uniform(&s->random) * sum;
    for (int i = 0; i < found - 1; i++)
        if ((left -= weight[i]) < 0) return best[i].id;
    return best[found - 1].id;
}
