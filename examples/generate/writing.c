/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing texts. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "writing.h"

bool writer_open(writer *r, llama *llama, const tokenizer *t, int64_t guesses, problem *why) {
    *r = (writer){ .llama = llama, .tokenizer = t, .guesses = guesses };
    r->logits = malloc((size_t)(LLAMA_LOGITS * llama->config.vocabulary) * sizeof *r->logits);
    return r->logits || refuse(why, "out of memory");
}

void writer_close(writer *r) {
    free(r->logits);
    *r = (writer){ 0 };
}

void writing_end(writer *r, writing *w) {
    sequence_end(&r->llama->pool, &w->sequence);
    token_list_free(&w->tokens);
}

/* ---------------------------------------------------------------------------------------------------------- guesses */

enum { LONGEST = 3, SHORTEST = 2 };

int64_t guess_tokens(const token_list *tokens, int64_t most, int32_t *out) {
    const int64_t count = tokens->count;
    for (int64_t n = LONGEST; n >= SHORTEST; n--)
        for (int64_t i = count - n - 1; i >= 0; i--) {
            if (memcmp(tokens->id + i, tokens->id + count - n, (size_t)n * sizeof *out) != 0) continue;
            const int64_t left = count - i - n, found = left < most ? left : most;
            memcpy(out, tokens->id + i + n, (size_t)found * sizeof *out);
            return found;
        }
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* Draws the token that follows by its logits, and prints it. */
static bool write_token(writer *r, writing *w, const float *logits, int32_t *id_out, problem *why) {
    const int32_t id = *id_out = sampler_pick(&w->sampler, logits, r->tokenizer->tokens);
    if (id < 0) return refuse(why, "the model's logits are not numbers");
    w->ended = tokenizer_stops(r->tokenizer, id);
    if (w->ended) return true;
    output_add(&w->out, tokenizer_text(r->tokenizer, id));
    w->left--;
    return token_list_add(&w->tokens, id, why);
}

/* What is read next has no place in the context, or nothing more may follow. */
static void end_if_full(const writer *r, writing *w) {
    w->ended |= w->left == 0 || w->sequence.length == r->llama->options.context;
}

bool writing_read(writer *r, writing *w, problem *why) {
    const double start = now();
    const int64_t left = w->tokens.count - w->sequence.length, chunk = r->llama->options.chunk,
                  n = left < chunk ? left : chunk;
    int32_t id;
    if (!llama_fits(r->llama, &w->sequence, left, why)) return false;
    const llama_part part = { &w->sequence, w->tokens.id + w->sequence.length, n, n == left };
    if (!llama_pass(r->llama, &part, 1, r->logits, why)) return false;
    r->speed.prefilled += n;
    r->speed.prefill += now() - start;
    w->read = n == left;
    if (w->read && !write_token(r, w, r->logits, &id, why)) return false;
    if (w->read) end_if_full(r, w);
    return true;
}

typedef struct guess {
    int32_t token[LLAMA_FEW]; /* the first is no guess */
    int64_t count;
} guess;

/* No more are guessed than the context has room for, and than may follow. */
static void guess_for(const writer *r, const writing *w, guess *g) {
    const int64_t room = r->llama->options.context - w->sequence.length - 1, may = w->left - 1;
    int64_t most = r->guesses < room ? r->guesses : room;
    if (may < most) most = may;
    g->token[0] = w->tokens.id[w->tokens.count - 1];
    g->count = 1 + (most > 0 ? guess_tokens(&w->tokens, most, g->token + 1) : 0);
}

/* Writes what follows a text by the logits of its part. */
static bool take(writer *r, writing *w, const guess *g, const float *logits, problem *why) {
    const int64_t before = w->sequence.length - g->count;
    int64_t drawn = 0;
    for (bool true_so_far = true; true_so_far && !w->ended;) {
        int32_t id;
        if (!write_token(r, w, logits + drawn * r->llama->config.vocabulary, &id, why)) return false;
        drawn++;
        true_so_far = drawn < g->count && id == g->token[drawn];
    }
    r->speed.decoded += drawn;
    r->speed.guessed += g->count - 1;
    r->speed.right += drawn - 1;
    w->sequence.length = before + drawn; /* wrong guesses are forgotten */
    end_if_full(r, w);
    return true;
}

bool writing_step(writer *r, writing *const *w, int count, problem *why) {
    const double start = now();
    static guess g[LLAMA_LOGITS];
    llama_part part[LLAMA_LOGITS];
    for (int i = 0; i < count; i++) {
        guess_for(r, w[i], &g[i]);
        part[i] = (llama_part){ &w[i]->sequence, g[i].token, g[i].count, g[i].count };
    }
    if (!llama_pass(r->llama, part, count, r->logits, why)) return false;
    r->speed.decode += now() - start;
    const float *logits = r->logits;
    for (int i = 0; i < count; i++) {
        if (!take(r, w[i], &g[i], logits, why)) return false;
        logits += g[i].count * r->llama->config.vocabulary;
    }
    return true;
}
