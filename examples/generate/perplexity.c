/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of a text, and the losses of their tokens. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "perplexity.h"

bool perplexity_print(llama *m, const tokenizer *t, slice text, problem *why) {
    token_list all = { 0 };
    double sum = 0;
    int64_t predicted = 0;
    const int64_t room = m->options.context, lead = t->first >= 0, step = room + 1 - lead;
    int32_t *window = malloc((size_t)(room + 1) * sizeof *window);
    float *loss = malloc((size_t)room * sizeof *loss);
    bool good = (window && loss) || refuse(why, "out of memory");
    good = good && tokenizer_encode(t, text, false, &all, why);
    const double start = now();
    for (int64_t i = 0; good && i + 1 - lead < all.count; i += step) {
        const int64_t n = all.count - i < step ? all.count - i : step, labels = n + lead - 1;
        sequence s = { 0 };
        window[0] = t->first;
        memcpy(window + lead, all.id + i, (size_t)n * sizeof *window);
        good = llama_losses(m, &s, window, window + 1, labels, loss, why);
        for (int64_t k = 0; good && k < labels; k++) sum += (double)loss[k];
        predicted += labels;
        sequence_end(&m->pool, &s);
    }
    if (good && predicted == 0) good = refuse(why, "the text is too short");
    if (good)
        printf("perplexity %.5f of %lld predicted tokens, %.1f tokens/s\n", exp(sum / (double)predicted),
               (long long)predicted, (double)predicted / (now() - start));
    free(window);
    free(loss);
    token_list_free(&all);
    return good;
}
