/* SPDX-License-Identifier: Apache-2.0 */
/* BLEU as a reward, on token ids and for a whole batch at once (Filatov 2025, TensorBLEU): sentences of a language with
 * rules, and what a model makes of them that errs more and more. Corpus and mean sentence scores by each smoothing, and
 * the time of a batch beside a plain loop in C, whose scores must be the same. */
#include <string.h>

#include "papers.h"

enum { BATCH = 512, LENGTH = 48, REFERENCES = 2, ORDERS = 4, WORDS = 64, LEVELS = 5 };
static trine_queue *queue;

typedef struct batch {
    int32_t candidates[BATCH * LENGTH], references[BATCH * REFERENCES * LENGTH];
    int32_t lengths[BATCH], reference_lengths[BATCH * REFERENCES];
    int32_t matches[BATCH * ORDERS], totals[BATCH * ORDERS], sizes[BATCH], closest[BATCH];
    float scores[BATCH], corpus;
} batch;

/* A word follows from the one before it, but for one in four. */
static int32_t next_word(int32_t word) {
    return uniform() < 0.75 ? (word * 5 + 3) % WORDS : (int32_t)(uniform() * WORDS);
}

/* References share most words; the candidate is the first one with errors, and words left out. */
static void draw(batch *b, double errors) {
    for (int s = 0; s < BATCH; s++) {
        int32_t *first = b->references + s * REFERENCES * LENGTH;
        const int32_t length = 8 + (int32_t)(uniform() * (LENGTH - 8));
        for (int i = 0; i < length; i++) first[i] = next_word(i ? first[i - 1] : s % WORDS);
        for (int r = 0; r < REFERENCES; r++) {
            const int32_t own = r == 0 ? length : 4 + (int32_t)(uniform() * (length - 4));
            b->reference_lengths[s * REFERENCES + r] = own;
            for (int i = 0; r > 0 && i < own; i++)
                first[r * LENGTH + i] = uniform() < 0.8 ? first[i] : (int32_t)(uniform() * WORDS);
        }
        b->lengths[s] = 0;
        for (int i = 0; i < length; i++)
            if (uniform() > errors / 4)
                b->candidates[s * LENGTH + b->lengths[s]++] =
                    uniform() < errors ? (int32_t)(uniform() * WORDS) : first[i];
    }
}

static void count(batch *b) {
    const trine_tensor candidates = trine_tensor_2d(b->candidates, TRINE_I32, BATCH, LENGTH),
                       references = trine_tensor_3d(b->references, TRINE_I32, BATCH, REFERENCES, LENGTH),
                       lengths = trine_tensor_1d(b->lengths, TRINE_I32, BATCH),
                       others = trine_tensor_2d(b->reference_lengths, TRINE_I32, BATCH, REFERENCES),
                       matches = trine_tensor_2d(b->matches, TRINE_I32, BATCH, ORDERS),
                       totals = trine_tensor_2d(b->totals, TRINE_I32, BATCH, ORDERS),
                       sizes = trine_tensor_1d(b->sizes, TRINE_I32, BATCH),
                       closest = trine_tensor_1d(b->closest, TRINE_I32, BATCH);
    RUN(ngram_counts, .candidates = &candidates, .lengths = &lengths, .references = &references,
        .reference_lengths = &others, .matches = &matches, .totals = &totals, .sizes = &sizes, .closest = &closest);
}

static double score(batch *b, int32_t smoothing) {
    const trine_tensor matches = trine_tensor_2d(b->matches, TRINE_I32, BATCH, ORDERS),
                       totals = trine_tensor_2d(b->totals, TRINE_I32, BATCH, ORDERS),
                       sizes = trine_tensor_1d(b->sizes, TRINE_I32, BATCH),
                       closest = trine_tensor_1d(b->closest, TRINE_I32, BATCH), scores = vector(b->scores, BATCH),
                       corpus = vector(&b->corpus, 1);
    RUN(bleu, .matches = &matches, .totals = &totals, .sizes = &sizes, .closest = &closest, .scores = &scores,
        .corpus = &corpus, .smoothing = smoothing, .missing = TRINE_BLEU_SHORT_ONE);
    need(trine_queue_wait(queue));
    double sum = 0;
    for (int s = 0; s < BATCH; s++) sum += b->scores[s];
    return sum / BATCH;
}

static int times(const int32_t *gram, int n, const int32_t *sentence, int length) {
    int found = 0;
    for (int i = 0; i + n <= length; i++) found += memcmp(gram, sentence + i, (size_t)n * sizeof *gram) == 0;
    return found;
}

/* A sentence's score by the definition, an order without matches counting 0.1. */
static double direct(const batch *b, int s) {
    const int32_t *own = b->candidates + s * LENGTH;
    const int length = b->lengths[s];
    double sum = 0;
    int closest = 0;
    for (int r = 0; r < REFERENCES; r++) {
        const int size = b->reference_lengths[s * REFERENCES + r];
        if (r == 0 || abs(size - length) < abs(closest - length) ||
            (abs(size - length) == abs(closest - length) && size < closest))
            closest = size;
    }
    for (int n = 1; n <= ORDERS; n++) {
        int matches = 0;
        for (int i = 0; i + n <= length; i++) {
            if (times(own + i, n, own, i + n - 1) > 0) continue;
            const int here = times(own + i, n, own, length);
            int most = 0;
            for (int r = 0; r < REFERENCES; r++) {
                const int there = times(own + i, n, b->references + (s * REFERENCES + r) * LENGTH,
                                        b->reference_lengths[s * REFERENCES + r]);
                most = there > most ? there : most;
            }
            matches += here < most ? here : most;
        }
        if (n == 1 && matches == 0) return 0;
        sum += log((matches ? matches : 0.1) / (length >= n ? length - n + 1 : 1));
    }
    return exp(sum / ORDERS + fmin(0, 1 - (double)closest / length));
}

int main(void) {
    trine_library *lib;
    static batch b;
    queue = cpu_queue(&lib);
    double before = INFINITY, op = INFINITY, loop = INFINITY;
    printf("%d sentences of up to %d tokens, %d references each; 100 BLEU\n", BATCH, LENGTH, REFERENCES);
    printf("wrong words   corpus   mean: none   floor     add     exp  length\n");
    for (int level = 0; level < LEVELS; level++) {
        const double errors = 0.05 + 0.2 * level;
        draw(&b, errors);
        double start = seconds(), means[5], off = 0;
        count(&b);
        means[TRINE_BLEU_SMOOTH_FLOOR] = score(&b, TRINE_BLEU_SMOOTH_FLOOR);
        op = fmin(op, seconds() - start);
        start = seconds();
        for (int s = 0; s < BATCH; s++) off = worst(off, fabs(direct(&b, s) - b.scores[s]));
        loop = fmin(loop, seconds() - start);
        agree("scores of sentences beside the definition's", off, 1e-5);
        for (int32_t i = 0; i < 5; i++)
            if (i != TRINE_BLEU_SMOOTH_FLOOR) means[i] = score(&b, i);
        printf("%10.0f%% %8.2f %12.2f %7.2f %7.2f %7.2f %7.2f\n", 100 * errors, 100 * (double)b.corpus, 100 * means[0],
               100 * means[1], 100 * means[2], 100 * means[3], 100 * means[4]);
        agree("a corpus with more errors", b.corpus, before);
        for (int i = 1; i < 5; i++) agree("a mean without smoothing", means[0], means[i] + (i == 2));
        before = b.corpus;
    }
    printf("\na batch: %.2f ms, by a plain loop %.2f ms\n", 1e3 * op, 1e3 * loop);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
