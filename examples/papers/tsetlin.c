/* SPDX-License-Identifier: Apache-2.0 */
/* Granmo 2018 (The Tsetlin Machine) and Berge et al. 2019 (for text): machines that learn the noisy XOR of the first
 * paper, 40 % of whose labels in training are wrong, and to tell the topics of made-up texts by the words that are in
 * them. Clauses are then read back as rules. */
#include <string.h>

#include "papers.h"

enum { MOST_EXAMPLES = 5000, MOST_WORDS = 400, MOST_CLASSES = 4 };

/* `features` bits, and behind them their negations: 8 in a byte. */
typedef struct set {
    int64_t count, features, bytes;
    uint8_t *bits;
    int32_t *labels;
} set;

typedef struct machine {
    int64_t classes, clauses, literals, bytes;
    int32_t threshold;
    float specificity;
    int8_t *states;
    uint8_t *include;
} machine;

static void *room(int64_t bytes) {
    void *data = calloc((size_t)bytes, 1);
    if (data == NULL) exit(1);
    return data;
}

static set make_set(int64_t count, int64_t features) {
    set s = { .count = count, .features = features, .bytes = (2 * features + 7) / 8 };
    s.bits = room(count * s.bytes);
    s.labels = room(count * 4);
    return s;
}

static void put(set *s, int64_t example, int64_t feature, bool yes) {
    const int64_t bit = feature + (yes ? 0 : s->features);
    s->bits[example * s->bytes + bit / 8] |= (uint8_t)(1 << bit % 8);
}

static bool has(const set *s, int64_t example, int64_t feature) {
    return s->bits[example * s->bytes + feature / 8] >> feature % 8 & 1;
}

static machine make_machine(const set *s, int64_t classes, int64_t clauses, int threshold, float specificity) {
    machine m = { classes, clauses, 2 * s->features, s->bytes, threshold, specificity, NULL, NULL };
    m.states = room(classes * clauses * m.literals);
    m.include = room(classes * clauses * m.bytes);
    for (int64_t i = 0; i < classes * clauses * m.literals; i++) m.states[i] = (int8_t)(uniform() < 0.5 ? -1 : 0);
    return m;
}

static void learn(trine_queue *queue, machine *m, const set *s, int epoch) {
    const trine_tensor literals = trine_tensor_2d(s->bits, TRINE_U8, s->count, s->bytes),
                       labels = trine_tensor_1d(s->labels, TRINE_I32, s->count),
                       states = trine_tensor_3d(m->states, TRINE_I8, m->classes, m->clauses, m->literals),
                       include = trine_tensor_3d(m->include, TRINE_U8, m->classes, m->clauses, m->bytes);
    RUN(tm_update, .literals = &literals, .labels = &labels, .states = &states, .include = &include,
        .threshold = m->threshold, .specificity = m->specificity, .depth = 100, .seed = 1, .offset = (uint64_t)epoch);
}

/* The share of a set whose class has most votes. */
static double accuracy(trine_queue *queue, const machine *m, const set *s) {
    int32_t *votes = room(s->count * m->classes * 4);
    const trine_tensor literals = trine_tensor_2d(s->bits, TRINE_U8, s->count, s->bytes),
                       include = trine_tensor_3d(m->include, TRINE_U8, m->classes, m->clauses, m->bytes),
                       sums = trine_tensor_2d(votes, TRINE_I32, s->count, m->classes);
    RUN(tm_clauses, .literals = &literals, .include = &include, .votes = &sums);
    int64_t right = 0;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t best = 0;
        for (int64_t p = 1; p < m->classes; p++)
            if (votes[i * m->classes + p] > votes[i * m->classes + best]) best = p;
        right += best == s->labels[i];
    }
    free(votes);
    return (double)right / (double)s->count;
}

/* Twelve bits, of which the first two decide; of so many examples the label is the wrong one. */
static set xor_set(int64_t count, double wrong) {
    set s = make_set(count, 12);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < 12; k++) put(&s, i, k, uniform() < 0.5);
        s.labels[i] = (has(&s, i, 0) ^ has(&s, i, 1)) ^ (uniform() < wrong);
    }
    return s;
}

/* Texts of four topics: each has words of its own, of which a text has some, and all have the others; which words a
 * text has is all that is known of it. One of a topic's words is as common in the next topic. */
static set text_set(int64_t count) {
    set s = make_set(count, MOST_WORDS);
    bool there[MOST_WORDS];
    for (int64_t i = 0; i < count; i++) {
        const int topic = (int)(4 * uniform());
        memset(there, 0, sizeof there);
        for (int word = 0; word < 40; word++) {
            const double kind = uniform(), place = uniform() * uniform();
            const int of = kind < 0.12 ? topic : kind < 0.16 ? (topic + 1) % 4 : 4;
            there[of < 4 ? 20 * of + (int)(20 * place) : 80 + (int)(320 * place)] = true;
        }
        for (int word = 0; word < MOST_WORDS; word++) put(&s, i, word, there[word]);
        s.labels[i] = topic;
    }
    return s;
}

static void show_clauses(const machine *m, int64_t class, int most) {
    for (int64_t q = 0; q < m->clauses && most > 0; q += 2) {
        const uint8_t *include = m->include + (class * m->clauses + q) * m->bytes;
        int count = 0;
        for (int64_t k = 0; k < m->literals; k++) count += include[k / 8] >> k % 8 & 1;
        if (count == 0 || count > 4) continue;
        printf("    class %d if", (int)class);
        for (int64_t k = 0; k < m->literals; k++)
            if (include[k / 8] >> k % 8 & 1)
                printf(" %sx%d", k < m->literals / 2 ? "" : "not ", (int)(k % (m->literals / 2)));
        printf("\n");
        most--;
    }
}

static double train(trine_queue *queue, const char *name, machine *m, const set *known, const set *unseen, int epochs) {
    const double start = seconds();
    for (int epoch = 0; epoch < epochs; epoch++) learn(queue, m, known, epoch);
    const double took = seconds() - start, right = accuracy(queue, m, unseen);
    printf("%-10s %8d %8d %8d %10.1f %10.1f %10.2f\n", name, (int)m->clauses, (int)m->literals, epochs,
           100 * accuracy(queue, m, known), 100 * right, took);
    return right;
}

static void end_set(set *s) { free(s->bits), free(s->labels); }
static void end_machine(machine *m) { free(m->states), free(m->include); }

int main(void) {
    trine_library *library;
    trine_queue *queue = cpu_queue(&library);
    set known = xor_set(MOST_EXAMPLES, 0.4), unseen = xor_set(MOST_EXAMPLES, 0);
    machine m = make_machine(&known, 2, 20, 15, 3.9f);
    printf("%-10s %8s %8s %8s %10s %10s %10s\n", "set", "clauses", "literals", "epochs", "known %", "unseen %", "s");
    const double of_xor = train(queue, "noisy xor", &m, &known, &unseen, 200);
    show_clauses(&m, 0, 2);
    show_clauses(&m, 1, 2);
    agree("noisy xor, share of unseen examples that are wrong", 1 - of_xor, 0.05);
    end_set(&known), end_set(&unseen), end_machine(&m);

    known = text_set(1200), unseen = text_set(1000);
    m = make_machine(&known, 4, 60, 20, 10);
    const double of_text = train(queue, "texts", &m, &known, &unseen, 20);
    agree("texts, share of unseen ones that are wrong", 1 - of_text, 0.15);
    end_set(&known), end_set(&unseen), end_machine(&m);
    trine_queue_close(queue);
    trine_close(library);
    return disagreements > 0;
}
