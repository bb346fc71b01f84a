/* SPDX-License-Identifier: Apache-2.0 */
/* State of the optimizer that is not on the device, and its steps: a ring of buffers, three threads and three queues,
 * since a copy waits for its queue. */
#include "away.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state_file.h"

enum { RING = 3, PIECE = 1 << 20 };      /* a piece: 4 MiB of each of the three */
enum { READ, STEPPED, WRITTEN, STAGES }; /* what is done with a piece, in this order */
enum { STATE = 3 };                      /* of a parameter: GPT_PARAM, GPT_M and GPT_V */

/* Parameters that decay alike. */
typedef struct piece {
    int64_t first, count;
    int64_t room, place; /* bytes that each of the three has in the file, and where the first is */
} piece;

/* What the ring has of a piece: page-locked, but for the state where that is in the host's memory. */
typedef struct buffer {
    void *grad, *copy;
    char *state;
} buffer;

struct gpt_away {
    trine_queue *queue[STAGES]; /* the device's, the CPU's, the device's */
    int64_t first, last, size;  /* of a piece, in elements: a page's multiple */
    int64_t pieces;
    piece *piece;
    float *memory[STATE]; /* NULL: in the file */
    bool locked;          /* the parameters are page-locked */
    gpt_state_file file;
    int64_t file_bytes;
    void *ring_memory;
    buffer ring[RING];

    pthread_mutex_t lock;
    pthread_cond_t moved;
    int64_t done[STAGES]; /* how many pieces are so far */
    bool stopped;         /* with the reason in the model */

    gpt_model *model; /* of the step that is being taken */
    gpt_step step;
    float scale;
};

static int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/* ------------------------------------------------------------------------------------------------- opening, closing */

/* The first reason is kept. */
static bool failed(gpt_away *a, gpt_model *model, const char *doing, const char *why) {
    pthread_mutex_lock(&a->lock);
    if (!*model->trouble) snprintf(model->trouble, sizeof model->trouble, "%s: %s", doing, why);
    pthread_mutex_unlock(&a->lock);
    return false;
}

static bool failed_file(gpt_away *a, gpt_model *model) {
    return failed(a, model, model->config.away->file, strerror(errno));
}

static bool cut(gpt_away *a, const gpt_model *model, int64_t size) {
    const int64_t all = a->last - a->first, most = size > 0 ? size : PIECE;
    a->size = round_up(all < most ? all : most, GPT_PAGE / (int64_t)sizeof(float));
    a->piece = calloc((size_t)((a->last - a->first) / a->size + 2), sizeof *a->piece);
    for (int64_t at = a->first; a->piece && at < a->last;) {
        const int64_t same = at < model->decayed && model->decayed < a->last ? model->decayed : a->last;
        const int64_t count = same - at < a->size ? same - at : a->size;
        const int64_t room = round_up(count * (int64_t)sizeof(float), GPT_PAGE);
        a->piece[a->pieces++] = (piece){ at, count, room, a->file_bytes };
        a->file_bytes += STATE * room;
        at += count;
    }
    return a->piece != NULL;
}

static bool open_queues(gpt_away *a, const gpt_model *model) {
    const gpt_offload *o = model->config.away;
    const int device = trine_queue_device(model->queue);
    const trine_queue_options choices = { sizeof choices, .threads = o->threads };
    return trine_queue_open(o->lib, device, NULL, &a->queue[READ]) == TRINE_OK &&
           trine_queue_open(o->lib, 0, &choices, &a->queue[STEPPED]) == TRINE_OK &&
           trine_queue_open(o->lib, device, NULL, &a->queue[WRITTEN]) == TRINE_OK;
}

/* Ordinary memory, but for parameters that go to the device from where they are. */
static bool open_memory(gpt_away *a, const gpt_model *model) {
    const size_t bytes = (size_t)(a->last - a->first) * sizeof(float);
    a->locked = !model->config.mixed;
    for (int i = 0; i < STATE; i++) {
        void *memory = NULL;
        trine_queue *queue = a->queue[i == GPT_PARAM && a->locked ? READ : STEPPED];
        if (trine_memory_alloc_host(queue, bytes, &memory) != TRINE_OK) return false;
        a->memory[i] = memory;
    }
    return true;
}

static bool open_ring(gpt_away *a, const gpt_model *model) {
    const size_t floats = (size_t)a->size * sizeof(float), typed = (size_t)a->size * trine_dtype_size(model->type);
    const bool copies = model->config.mixed, state = a->memory[0] == NULL;
    const size_t one = (size_t)round_up((int64_t)(typed * (copies ? 2 : 1)), GPT_PAGE) + (state ? STATE * floats : 0);
    if (trine_memory_alloc_host(a->queue[READ], RING * one + GPT_PAGE, &a->ring_memory) != TRINE_OK) return false;
    char *at = (char *)a->ring_memory + (GPT_PAGE - (uintptr_t)a->ring_memory % GPT_PAGE) % GPT_PAGE;
    for (int i = 0; i < RING; i++, at += one) {
        buffer *b = &a->ring[i];
        b->state = state ? at : NULL;
        b->grad = at + (state ? STATE * floats : 0);
        b->copy = copies ? (char *)b->grad + typed : NULL;
    }
    return true;
}

gpt_away *gpt_away_open(gpt_model *model, int64_t first, int64_t last) {
    const gpt_offload *o = model->config.away;
    gpt_away *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    *a = (gpt_away){ .first = first, .last = last, .file = { .descriptor = -1 } };
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->moved, NULL);
    bool good = cut(a, model, o->piece) && open_queues(a, model);
    if (good && o->file) {
        good = gpt_state_file_open(&a->file, o->file, a->file_bytes);
        if (!good) failed_file(a, model);
    } else if (good) {
        good = open_memory(a, model);
    }
    if (good && open_ring(a, model)) return a;
    gpt_away_close(a);
    return NULL;
}

void gpt_away_close(gpt_away *away) {
    if (!away) return;
    trine_queue *const device = away->queue[READ], *const cpu = away->queue[STEPPED];
    if (away->ring_memory) trine_memory_free_host(device, away->ring_memory);
    for (int i = 0; i < STATE; i++)
        if (away->memory[i]) trine_memory_free_host(i == GPT_PARAM && away->locked ? device : cpu, away->memory[i]);
    gpt_state_file_close(&away->file);
    for (int i = 0; i < STAGES; i++) trine_queue_close(away->queue[i]);
    pthread_cond_destroy(&away->moved);
    pthread_mutex_destroy(&away->lock);
    free(away->piece);
    free(away);
}

bool gpt_away_direct(const gpt_away *away) { return away->file.descriptor >= 0 && away->file.direct; }

/* ----------------------------------------------------------------------------------------------------------- pieces */

static float *state_of(const gpt_away *a, const buffer *b, const piece *p, int which) {
    return a->memory[which] ? a->memory[which] + (p->first - a->first) : (float *)(void *)(b->state + which * p->room);
}

/* One of the three of a piece, or all; from the file, and to it. */
static bool read_state(gpt_away *a, gpt_model *model, const buffer *b, const piece *p, int which, int count) {
    const int64_t skipped = which * p->room;
    return a->memory[0] ||
           gpt_state_file_read(&a->file, b->state + skipped, (size_t)(count * p->room), p->place + skipped) ||
           failed_file(a, model);
}

static bool write_state(gpt_away *a, gpt_model *model, const buffer *b, const piece *p, int which, int count) {
    const int64_t skipped = which * p->room;
    return a->memory[0] ||
           gpt_state_file_write(&a->file, b->state + skipped, (size_t)(count * p->room), p->place + skipped) ||
           failed_file(a, model);
}

static bool write_param(gpt_away *a, const gpt_model *model, const buffer *b, const piece *p) {
    const size_t size = trine_dtype_size(model->type);
    const void *from = b->copy ? b->copy : state_of(a, b, p, GPT_PARAM);
    return trine_memory_write(a->queue[WRITTEN], (char *)model->weight + (size_t)p->first * size, from,
                              (size_t)p->count * size) == TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static bool read_piece(gpt_away *a, buffer *b, int64_t i) {
    const piece *p = &a->piece[i];
    const size_t size = trine_dtype_size(a->model->type);
    const char *grad = (const char *)a->model->grad + (size_t)p->first * size;
    return trine_memory_read(a->queue[READ], b->grad, grad, (size_t)p->count * size) == TRINE_OK &&
           read_state(a, a->model, b, p, 0, STATE);
}

static bool step_piece(gpt_away *a, buffer *b, int64_t i) {
    const piece *p = &a->piece[i];
    const gpt_step *s = &a->step;
    trine_tensor state[STATE];
    for (int k = 0; k < STATE; k++) state[k] = trine_tensor_1d(state_of(a, b, p, k), TRINE_F32, p->count);
    const trine_tensor grad = trine_tensor_1d(b->grad, a->model->type, p->count),
                       copy = trine_tensor_1d(b->copy, a->model->type, p->count),
                       scale = trine_tensor_1d(&a->scale, TRINE_F32, 1);
    const trine_adamw_args args = { TRINE_ARGS(adamw),
                                    .param = &state[GPT_PARAM],
                                    .grad = &grad,
                                    .m = &state[GPT_M],
                                    .v = &state[GPT_V],
                                    .copy = b->copy ? &copy : NULL,
                                    .grad_scale = &scale,
                                    .lr = s->rate,
                                    .beta1 = s->beta1,
                                    .beta2 = s->beta2,
                                    .weight_decay = p->first < a->model->decayed ? s->weight_decay : 0,
                                    .step = s->number };
    return trine_adamw(a->queue[STEPPED], &args) == TRINE_OK;
}

static bool write_piece(gpt_away *a, buffer *b, int64_t i) {
    return write_param(a, a->model, b, &a->piece[i]) && write_state(a, a->model, b, &a->piece[i], 0, STATE);
}

/* Waits until so many pieces are that far; false if it will not be. */
static bool reached(gpt_away *a, int stage, int64_t count) {
    pthread_mutex_lock(&a->lock);
    while (a->done[stage] < count && !a->stopped) pthread_cond_wait(&a->moved, &a->lock);
    const bool good = !a->stopped;
    pthread_mutex_unlock(&a->lock);
    return good;
}

static void advance(gpt_away *a, int stage, bool good) {
    if (!good) failed(a, a->model, "the optimizer's step", trine_error_message()); /* which this thread alone knows */
    pthread_mutex_lock(&a->lock);
    a->done[stage] += good;
    a->stopped |= !good;
    pthread_cond_broadcast(&a->moved);
    pthread_mutex_unlock(&a->lock);
}

static void pass(gpt_away *a, int stage) {
    static bool (*const work[STAGES])(gpt_away *, buffer *, int64_t) = { read_piece, step_piece, write_piece };
    for (int64_t i = 0; i < a->pieces; i++) {
        const bool go = stage == READ ? reached(a, WRITTEN, i + 1 - RING) : reached(a, stage - 1, i + 1);
        if (!go) return;
        advance(a, stage, work[stage](a, &a->ring[i % RING], i));
    }
}

static void *pass_read(void *away) { return pass(away, READ), NULL; }
static void *pass_written(void *away) { return pass(away, WRITTEN), NULL; }

bool gpt_away_step(gpt_away *away, gpt_model *model, const gpt_step *step, float scale) {
    gpt_away *a = away;
    pthread_t reader, writer;
    a->model = model;
    a->step = *step;
    a->scale = scale;
    a->stopped = false;
    memset(a->done, 0, sizeof a->done);
    int reason = pthread_create(&reader, NULL, pass_read, a);
    if (reason) return failed(a, model, "starting a thread", strerror(reason));
    reason = pthread_create(&writer, NULL, pass_written, a);
    if (reason) {
        failed(a, model, "starting a thread", strerror(reason));
        advance(a, WRITTEN, false);
    } else {
        pass(a, STEPPED);
        pthread_join(writer, NULL);
    }
    pthread_join(reader, NULL);
    return !a->stopped;
}

/* ------------------------------------------------------------------------------------------- the state from outside */

/* Copies what a range and each piece have in common. */
static bool each_piece(gpt_away *a, gpt_model *model, int which, int64_t first, int64_t count, const float *from,
                       float *to) {
    buffer *b = &a->ring[0];
    for (int64_t i = 0; i < a->pieces; i++) {
        const piece *p = &a->piece[i];
        const int64_t low = first > p->first ? first : p->first, end = first + count, last = p->first + p->count,
                      n = (end < last ? end : last) - low;
        if (n <= 0) continue;
        if ((to || n < p->count) && !read_state(a, model, b, p, which, 1)) return false;
        float *state = state_of(a, b, p, which) + (low - p->first);
        if (from) memcpy(state, from + (low - first), (size_t)n * sizeof(float));
        if (to) memcpy(to + (low - first), state, (size_t)n * sizeof(float));
        if (from && !write_state(a, model, b, p, which, 1)) return false;
    }
    return true;
}

bool gpt_away_write(gpt_away *away, gpt_model *model, int which, int64_t first, int64_t count, const float *from) {
    return each_piece(away, model, which, first, count, from, NULL);
}

bool gpt_away_read(gpt_away *away, gpt_model *model, int which, int64_t first, int64_t count, float *to) {
    return each_piece(away, model, which, first, count, NULL, to);
}

bool gpt_away_refresh(gpt_away *away, gpt_model *model) {
    gpt_away *a = away;
    for (int64_t i = 0; i < a->pieces; i++) {
        const piece *p = &a->piece[i];
        const buffer *b = &a->ring[0];
        if (!read_state(a, model, b, p, GPT_PARAM, 1)) return false;
        const trine_tensor from = trine_tensor_1d(state_of(a, b, p, GPT_PARAM), TRINE_F32, p->count),
                           to = trine_tensor_1d(b->copy, model->type, p->count);
        const trine_cast_args args = { TRINE_ARGS(cast), .x = &from, .y = &to };
        if (b->copy && trine_cast(a->queue[STEPPED], &args) != TRINE_OK) return false;
        if (!write_param(a, model, b, p)) return false;
    }
    return true;
}
