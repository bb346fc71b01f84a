/* SPDX-License-Identifier: Apache-2.0 */
/* Continuous batching: in each round one of the prompts that came in reads a chunk, and all that were read write a
 * token. */
#include <stdlib.h>

#include "batch.h"

/* A prompt, and what is to be printed of it. */
typedef struct job {
    writing w;
    char *text; /* of a stream in memory */
    size_t size, printed;
    bool begun, done;
} job;

typedef struct batch {
    writer *r;
    job *job;
    const batch_prompt *prompt;
    int64_t jobs, next, printing; /* jobs begun, and printed */
    int32_t active;
    int64_t slot[LLAMA_LOGITS]; /* the jobs that are at work */
} batch;

/* Takes the next prompt, with the pages that it may need; false if these are not free. */
static bool begin(batch *b, int64_t most, const sampler *s, problem *why) {
    job *j = &b->job[b->next];
    const batch_prompt *p = &b->prompt[b->next];
    const int64_t context = b->r->llama->options.context, all = p->tokens.count + most - 1;
    if (!llama_fits(b->r->llama, &j->w.sequence, p->tokens.count, why)) return false;
    if (!sequence_reserve(&b->r->llama->pool, &j->w.sequence, all < context ? all : context))
        return b->active > 0
                   ? false
                   : refuse(why, "the cache has no room for prompt %lld and what may follow", (long long)b->next + 1);
    j->w.sampler = *s;
    j->w.left = most;
    j->w.out.file = open_memstream(&j->text, &j->size);
    j->begun = true;
    if (!j->w.out.file) return refuse(why, "out of memory");
    for (int64_t i = 0; i < p->tokens.count; i++)
        if (!token_list_add(&j->w.tokens, p->tokens.id[i], why)) return false;
    output_add(&j->w.out, p->shown);
    b->slot[b->active++] = b->next++;
    return true;
}

static void finish(batch *b, job *j) {
    if (!j->begun || j->done) return;
    if (j->w.out.file) {
        output_end(&j->w.out);
        fputc('\n', j->w.out.file);
        fclose(j->w.out.file);
    }
    writing_end(b->r, &j->w);
    j->done = true;
}

static bool round_of(batch *b, problem *why) {
    writing *writes[LLAMA_LOGITS];
    int count = 0;
    bool reads = false;
    for (int32_t i = 0; i < b->active; i++) {
        writing *w = &b->job[b->slot[i]].w;
        if (!w->read && !reads) {
            reads = true;
            if (!writing_read(b->r, w, why)) return false;
        } else if (w->read) {
            writes[count++] = w;
        }
    }
    if (count > 0 && !writing_step(b->r, writes, count, why)) return false;
    int32_t kept = 0;
    for (int32_t i = 0; i < b->active; i++) {
        job *j = &b->job[b->slot[i]];
        if (j->w.ended)
            finish(b, j);
        else
            b->slot[kept++] = b->slot[i];
    }
    b->active = kept;
    return true;
}

/* What is new of the first job that is not printed; and of those behind it, if it is done. */
static void print(batch *b, FILE *to) {
    for (; b->printing < b->next; b->printing++) {
        job *j = &b->job[b->printing];
        fwrite(j->text + j->printed, 1, j->size - j->printed, to);
        j->printed = j->size;
        if (!j->done) break;
        free(j->text);
        j->text = NULL;
    }
    fflush(to);
}

bool batch_run(writer *r, const batch_prompt *prompt, int64_t prompts, int64_t most, const sampler *s, FILE *to,
               problem *why) {
    batch b = { .r = r, .prompt = prompt, .jobs = prompts, .job = calloc((size_t)prompts + 1, sizeof *b.job) };
    bool good = b.job || refuse(why, "out of memory");
    while (good && b.printing < prompts) {
        while (b.next < prompts && b.active < r->llama->options.slots && begin(&b, most, s, why)) continue;
        good = !why->text[0] && round_of(&b, why);
        if (good) print(&b, to);
    }
    for (int64_t i = 0; b.job && i < prompts; i++) {
        finish(&b, &b.job[i]);
        free(b.job[i].text);
    }
    free(b.job);
    return good;
}
