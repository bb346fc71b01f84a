/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pages, of several prompts at once and of guesses: none of them changes what is written. */
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "tests/tap.h"

#define GOLDEN GENERATE_SOURCE "/tests/golden/generate/"

enum { CONTEXT = 160, MOST = 30, PROMPTS = 9 };

/* ------------------------------------------------------------------------------------------------------------ pages */

static void check_pages(void) {
    page_pool pool;
    problem why = { 0 };
    sequence a = { 0 }, b = { 0 }, c = { 0 };
    bool good = page_pool_open(&pool, 5, &why) && sequence_reserve(&pool, &a, PAGE) &&
                sequence_reserve(&pool, &b, 2 * PAGE) && sequence_reserve(&pool, &a, PAGE + 1);
    tap(good && a.pages == 2 && b.pages == 2 && sequence_consecutive(&b, 2 * PAGE) && sequence_consecutive(&a, PAGE) &&
            !sequence_consecutive(&a, 2 * PAGE) && sequence_slot(&a, PAGE + 3) == 3 * PAGE + 3,
        "pages come one after the other");
    tap(!sequence_reserve(&pool, &c, 2 * PAGE) && c.pages == 0 && sequence_reserve(&pool, &c, PAGE) &&
            !sequence_reserve(&pool, &c, PAGE + 1),
        "and no more than there are");
    sequence_end(&pool, &b);
    tap(pool.count == 2 && sequence_reserve(&pool, &c, 3 * PAGE) && pool.count == 0, "those given back come again");
    sequence_end(&pool, &a);
    sequence_end(&pool, &c);
    tap(pool.count == 5, "all are free at the end");
    page_pool_close(&pool);
}

/* ---------------------------------------------------------------------------------------------------------- guesses */

static bool guesses(const int32_t *tokens, int64_t count, int64_t most, const int32_t *expected,
                    int64_t expected_count) {
    token_list list = { .id = (int32_t *)(uintptr_t)tokens, .count = count };
    int32_t got[8];
    return guess_tokens(&list, most, got) == expected_count &&
           (expected_count == 0 || !memcmp(got, expected, (size_t)expected_count * sizeof *got));
}

static void check_guesses(void) {
    static const int32_t three[] = { 1, 2, 3, 9, 8, 2, 3, 7, 1, 2, 3 }, two[] = { 1, 2, 3, 4, 2, 3 },
                         once[] = { 1, 2, 3, 4 }, same[] = { 5, 5, 5, 5 };
    tap(guesses(three, 11, 4, three + 3, 4) && guesses(three, 11, 2, three + 3, 2), "three tokens come before two");
    tap(guesses(two, 6, 8, two + 3, 3), "two will do, and no more is told than followed");
    tap(guesses(once, 4, 4, NULL, 0) && guesses(once, 1, 4, NULL, 0), "nothing came twice");
    tap(guesses(same, 4, 8, same, 1), "what repeats itself may overlap");
}

/* ---------------------------------------------------------------------------------------------------------- writing */

typedef struct setting {
    llama_options llama;
    int64_t guesses;
    double temperature;
} setting;

/* The texts that follow the prompts, to be freed; NULL: it failed. */
static char *write_all(const model_file *file, trine_queue *queue, const setting *s, const batch_prompt *prompt,
                       speed *speed_out, problem *why) {
    llama m;
    writer w = { 0 };
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    sampler draws = { .temperature = s->temperature, .top_k = 40 };
    gpt_random_seed(&draws.random, 4);
    const bool good = to && llama_open(&m, file, queue, &s->llama, why) &&
                      writer_open(&w, &m, &file->tokenizer, s->guesses, why) &&
                      batch_run(&w, prompt, PROMPTS, MOST, &draws, to, why) && m.pool.count == m.pool.pages;
    *speed_out = w.speed;
    writer_close(&w);
    if (to) {
        llama_close(&m);
        fclose(to);
    }
    if (good) return text;
    free(text);
    return NULL;
}

/* Prompts of 1 to 129 words, so that some are longer than a page and a chunk, and some repeat themselves. */
static bool make_prompts(const model_file *file, batch_prompt *prompt, problem *why) {
    static const char *const words[] = { " the License", " and", " You may", " copy", " Work", " 12", ", or", "\n" };
    for (int i = 0; i < PROMPTS; i++) {
        prompt[i] = (batch_prompt){ .shown = slice_of("> ") };
        for (int k = 0; k <= 2 * i * i; k++)
            if (!tokenizer_encode(&file->tokenizer, slice_of(words[(k * (i + 1) + k / 7) % 8]), true, &prompt[i].tokens,
                                  why))
                return false;
        if (prompt[i].tokens.count > CONTEXT - 10) prompt[i].tokens.count = CONTEXT - 10;
    }
    return true;
}

static void check_setting(const model_file *file, trine_queue *queue, const setting *s, const batch_prompt *prompt,
                          const char *alone, const char *what) {
    problem why = { 0 };
    speed v;
    char *text = write_all(file, queue, s, prompt, &v, &why);
    tap(text && !strcmp(text, alone), "%s: the same texts: %s", what, why.text);
    if (s->guesses)
        tap(v.guessed > 0 && v.right > 0 && v.right <= v.guessed, "of %lld guesses %lld came true",
            (long long)v.guessed, (long long)v.right);
    free(text);
}

static void check_writing(const model_file *file, trine_queue *queue, double temperature) {
    batch_prompt prompt[PROMPTS];
    problem why = { 0 };
    speed v = { 0 };
    setting s = { .llama = { .type = TRINE_F32, .context = CONTEXT, .slots = 1 }, .temperature = temperature };
    char *alone = make_prompts(file, prompt, &why) ? write_all(file, queue, &s, prompt, &v, &why) : NULL;
    int64_t read = 0;
    for (int i = 0; i < PROMPTS; i++) read += prompt[i].tokens.count;
    if (tap(alone && v.prefilled == read && v.decoded > 0,
            "%d prompts, one after the other, at a temperature of %.1f: %s", PROMPTS, temperature, why.text)) {
        s.llama.slots = 4;
        check_setting(file, queue, &s, prompt, alone, "four at once");
        s.llama.slots = 12;
        check_setting(file, queue, &s, prompt, alone, "all at once");
        s.llama.cache = CONTEXT + 2 * PAGE;
        check_setting(file, queue, &s, prompt, alone, "with a cache that is not enough for all");
        s.llama.chunk = 13;
        check_setting(file, queue, &s, prompt, alone, "and in chunks");
        s.guesses = 3;
        check_setting(file, queue, &s, prompt, alone, "with guesses as well");
        s = (setting){ .llama = { .type = TRINE_F32, .context = CONTEXT, .slots = 1 },
                       .temperature = temperature,
                       .guesses = LLAMA_FEW - 1 };
        check_setting(file, queue, &s, prompt, alone, "one after the other, with guesses");
    }
    s.llama.cache = PAGE;
    tap(!write_all(file, queue, &s, prompt, &v, &why) && strstr(why.text, "has no room for prompt"), "refused: %s",
        why.text);
    for (int i = 0; i < PROMPTS; i++) token_list_free(&prompt[i].tokens);
    free(alone);
}

/* Sequences that grow in turns, whose pages then lie apart, have the bits of one whose pages do not. */
static void check_apart(const model_file *file, trine_queue *queue) {
    enum { LENGTH = 4 * PAGE, PART = PAGE / 2 + 3 };
    const llama_options options = { .type = TRINE_F32, .context = LENGTH, .slots = 2 };
    const int64_t vocabulary = file->config.vocabulary;
    const size_t bytes = (size_t)vocabulary * sizeof(float);
    llama m;
    problem why = { 0 };
    sequence one = { 0 }, two = { 0 }, whole = { 0 };
    int32_t tokens[LENGTH];
    float *got = malloc(bytes), *want = malloc(bytes);
    for (int i = 0; i < LENGTH; i++) tokens[i] = (i * 37 + i / 5) % 400;
    bool good = got && want && llama_open(&m, file, queue, &options, &why);
    for (int i = 0, n; good && i < LENGTH; i += n) {
        n = LENGTH - i < PART ? LENGTH - i : PART;
        good = llama_read(&m, &one, tokens + i, n, got, &why) && llama_read(&m, &two, tokens + i, n, want, &why) &&
               !memcmp(got, want, bytes);
    }
    tap(good && !sequence_consecutive(&one, LENGTH), "two sequences that grow in turns: %s", why.text);
    sequence_end(&m.pool, &one);
    sequence_end(&m.pool, &two);
    page_pool_close(&m.pool);
    good = good && page_pool_open(&m.pool, 2 * pages_of(LENGTH), &why);
    for (int i = 0, n; good && i < LENGTH; i += n) {
        n = LENGTH - i < PART ? LENGTH - i : PART;
        good = llama_read(&m, &whole, tokens + i, n, want, &why);
    }
    tap(good && sequence_consecutive(&whole, LENGTH) && !memcmp(got, want, bytes), "have the bits of one alone");
    sequence_end(&m.pool, &whole);
    llama_close(&m);
    free(got);
    free(want);
}

int main(void) {
    trine *lib = NULL;
    model_file file = { 0 };
    problem why = { 0 };
    check_pages();
    check_guesses();
    if (tap(trine_open(NULL, &lib) == TRINE_OK && model_open(&file, GOLDEN "tiny.gguf", &why), "tiny.gguf: %s%s",
            why.text, trine_error_message()))
        for (int d = 0; d < trine_device_count(lib); d++) {
            trine_queue *queue = NULL;
            if (tap(trine_queue_open(lib, d, NULL, &queue) == TRINE_OK, "device %d: %s", d, trine_error_message())) {
                check_apart(&file, queue);
                check_writing(&file, queue, 0);
                check_writing(&file, queue, 0.3);
            }
            trine_queue_close(queue);
        }
    model_close(&file);
    trine_close(lib);
    return tap_end();
}
