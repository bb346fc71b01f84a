/* SPDX-License-Identifier: Apache-2.0 */
/* The model: its memory, and the way from tokens to logits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

#define TRY(call) \
    do { \
        if (!(call)) return false; \
    } while (0)
#define RUN(op, ...) TRY(trine_##op(m->queue, &(trine_##op##_args){ TRINE_ARGS(op), __VA_ARGS__ }) == TRINE_OK)

enum { CHUNK = 512 };

static int64_t query_width(const llama *m) { return m->config.heads * m->config.head; }
static int64_t kv_width(const llama *m) { return m->config.kv_heads * m->config.head; } /* of keys, or of values */

/* Element `i` of memory of the model's type. */
static void *at(const llama *m, void *data, int64_t i) { return (char *)data + i * (int64_t)trine_dtype_size(m->type); }

/* ----------------------------------------------------------------------------------------------------------- memory */

static bool reserve_bytes(llama *m, void *pointer_out, int64_t count, size_t size) {
    void *memory = NULL;
    TRY(trine_memory_alloc(m->queue, (size_t)count * size, &memory) == TRINE_OK);
    m->allocated[m->allocations++] = memory;
    memcpy(pointer_out, &memory, sizeof memory);
    return true;
}

/* So many numbers of 32 bits; or of the model's type. */
static bool reserve(llama *m, void *pointer_out, int64_t count) { return reserve_bytes(m, pointer_out, count, 4); }
static bool reserve_typed(llama *m, void *pointer_out, int64_t count) {
    return reserve_bytes(m, pointer_out, count, trine_dtype_size(m->type));
}

/* A matrix of the tensors of one role, or of two, the second below the first: of codes if both are of one packing. */
static bool reserve_matrix(llama *m, matrix *x, int64_t rows, int64_t columns, const stored *first,
                           const stored *second) {
    *x = (matrix){ .rows = rows, .columns = columns };
    if (!m->decoded && (!second || second->type == first->type)) x->packing = first->type->packing;
    if (!x->packing) return reserve_typed(m, &x->data, rows * columns);
    return reserve_bytes(m, &x->data, 1, matrix_code_bytes(x)) &&
           reserve_bytes(m, &x->scales, 1, matrix_scale_bytes(x)) &&
           (!x->packing->mins || reserve_bytes(m, &x->mins, 1, matrix_scale_bytes(x)));
}

static bool reserve_layer(llama *m, const model_file *f, int64_t i) {
    const model_config *c = &m->config;
    llama_layer *l = &m->layer[i];
    return reserve(m, &l->norm, c->width) && reserve(m, &l->middle_norm, c->width) &&
           reserve_matrix(m, &l->query, query_width(m), c->width, model_tensor(f, MODEL_QUERY, i), NULL) &&
           reserve_matrix(m, &l->key_value, 2 * kv_width(m), c->width, model_tensor(f, MODEL_KEY, i),
                          model_tensor(f, MODEL_VALUE, i)) &&
           reserve_matrix(m, &l->mixed, c->width, query_width(m), model_tensor(f, MODEL_MIXED, i), NULL) &&
           reserve_matrix(m, &l->gate_up, 2 * c->hidden, c->width, model_tensor(f, MODEL_GATE, i),
                          model_tensor(f, MODEL_UP, i)) &&
           reserve_matrix(m, &l->down, c->width, c->hidden, model_tensor(f, MODEL_DOWN, i), NULL) &&
           reserve_typed(m, &l->cache, m->room * 2 * kv_width(m));
}

/* The tensor that multiplies the last layer's output. */
static const stored *head_of(const model_file *f) {
    const stored *head = model_tensor(f, MODEL_HEAD, 0);
    return head ? head : model_tensor(f, MODEL_EMBEDDING, 0);
}

static bool reserve_all(llama *m, const model_file *f) {
    const model_config *c = &m->config;
    TRY(reserve_typed(m, &m->embedding, c->vocabulary * c->width));
    m->head = (matrix){ .rows = c->vocabulary, .columns = c->width, .data = m->embedding };
    if (model_tensor(f, MODEL_HEAD, 0) || (head_of(f)->type->packing && !m->decoded))
        TRY(reserve_matrix(m, &m->head, c->vocabulary, c->width, head_of(f), NULL));
    TRY(reserve(m, &m->last_norm, c->width) && reserve(m, &m->cosines, m->room * c->rotary / 2) &&
        reserve(m, &m->sines, m->room * c->rotary / 2));
    TRY(reserve(m, &m->tokens, m->chunk) && reserve(m, &m->labels, m->chunk));
    TRY(reserve_typed(m, &m->stream, m->chunk * c->width) && reserve_typed(m, &m->normed, m->chunk * c->width) &&
        reserve_typed(m, &m->query, m->chunk * query_width(m)) &&
        reserve_typed(m, &m->attended, m->chunk * query_width(m)));
    TRY(reserve_typed(m, &m->gate_up, m->chunk * 2 * c->hidden) &&
        reserve_typed(m, &m->activated, m->chunk * c->hidden));
    TRY(reserve(m, &m->logits, LLAMA_LOGITS * c->vocabulary) && reserve(m, &m->losses, LLAMA_LOGITS));
    for (int64_t i = 0; i < c->layers; i++) TRY(reserve_layer(m, f, i));
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- weights */

static bool load(llama *m, const stored *from, trine_dtype type, void *to, problem *why) {
    return weights_write(m->queue, from, type, to, why);
}

/* A tensor to the rows of a matrix from `first` on. */
static bool load_rows(llama *m, const stored *from, const matrix *to, int64_t first, problem *why) {
    return to->packing ? matrix_write(m->queue, from, to, first, why)
                       : load(m, from, m->type, at(m, to->data, first * to->columns), why);
}

static bool load_layer(llama *m, const model_file *f, int64_t i, problem *why) {
    const llama_layer *l = &m->layer[i];
    return load(m, model_tensor(f, MODEL_NORM, i), TRINE_F32, l->norm, why) &&
           load(m, model_tensor(f, MODEL_MIDDLE_NORM, i), TRINE_F32, l->middle_norm, why) &&
           load_rows(m, model_tensor(f, MODEL_QUERY, i), &l->query, 0, why) &&
           load_rows(m, model_tensor(f, MODEL_KEY, i), &l->key_value, 0, why) &&
           load_rows(m, model_tensor(f, MODEL_VALUE, i), &l->key_value, kv_width(m), why) &&
           load_rows(m, model_tensor(f, MODEL_MIXED, i), &l->mixed, 0, why) &&
           load_rows(m, model_tensor(f, MODEL_GATE, i), &l->gate_up, 0, why) &&
           load_rows(m, model_tensor(f, MODEL_UP, i), &l->gate_up, m->config.hidden, why) &&
           load_rows(m, model_tensor(f, MODEL_DOWN, i), &l->down, 0, why);
}

static bool load_all(llama *m, const model_file *f, problem *why) {
    TRY(load(m, model_tensor(f, MODEL_EMBEDDING, 0), m->type, m->embedding, why) &&
        load(m, model_tensor(f, MODEL_LAST_NORM, 0), TRINE_F32, m->last_norm, why));
    TRY(m->head.data == m->embedding || load_rows(m, head_of(f), &m->head, 0, why));
    for (int64_t i = 0; i < m->config.layers; i++) TRY(load_layer(m, f, i, why));
    return true;
}

/* The cosines and sines of each position's angles. */
static bool fill_angles(llama *m, problem *why) {
    const model_config *c = &m->config;
    const int64_t half = c->rotary / 2;
    float *table = malloc((size_t)(m->room * half) * sizeof *table);
    if (!table) return refuse(why, "out of memory");
    bool good = true;
    for (int sine = 0; good && sine < 2; sine++) {
        for (int64_t i = 0; i < half; i++) {
            const double turn = pow(c->theta, -(double)i / (double)half) / c->divisor[i];
            for (int64_t p = 0; p < m->room; p++)
                table[p * half + i] = (float)(sine ? sin((double)p * turn) : cos((double)p * turn));
        }
        good = trine_memory_write(m->queue, sine ? m->sines : m->cosines, table,
                                  (size_t)(m->room * half) * sizeof *table) == TRINE_OK ||
               refuse(why, "%s", trine_error_message());
    }
    free(table);
    return good;
}

bool llama_open(llama *m, const model_file *file, trine_queue *queue, trine_dtype type, bool decoded, int64_t room,
                problem *why) {
    const int64_t layers = file->config.layers;
    *m = (llama){ .config = file->config, .queue = queue, .type = type, .decoded = decoded, .room = room };
    m->chunk = room < CHUNK ? room : CHUNK;
    m->layer = calloc((size_t)layers, sizeof *m->layer);
    m->allocated = calloc((size_t)(24 + 24 * layers), sizeof *m->allocated);
    if (!m->layer || !m->allocated) return refuse(why, "out of memory");
    if (!reserve_all(m, file)) return refuse(why, "%s", trine_error_message());
    return load_all(m, file, why) && fill_angles(m, why);
}

void llama_close(llama *m) {
    for (int64_t i = 0; i < m->allocations; i++) trine_memory_free(m->queue, m->allocated[i]);
    free(m->allocated);
    free(m->layer);
    *m = (llama){ 0 };
}

/* ---------------------------------------------------------------------------------------------------------- forward */

static trine_tensor rows_of(const llama *m, void *data, int64_t rows, int64_t columns) {
    return trine_tensor_2d(data, m->type, rows, columns);
}

/* project() by codes; m->normed is free then, and holds what is to be added. */
static bool project_codes(llama *m, const trine_tensor *x, const matrix *w, const trine_tensor *to, bool adds) {
    const packing *p = w->packing;
    const int64_t groups = w->columns / p->group;
    const trine_dtype type = p->wide ? TRINE_F32 : TRINE_F16;
    const trine_tensor codes = trine_tensor_3d(w->data, p->is_signed ? TRINE_I8 : TRINE_U8, w->rows, groups,
                                               p->group * p->bits / 8),
                       scales = trine_tensor_2d(w->scales, type, w->rows, groups),
                       mins = trine_tensor_2d(w->mins, type, w->rows, groups),
                       added = rows_of(m, m->normed, to->shape[0], to->shape[1]);
    RUN(matmul_quantized, .x = x, .codes = &codes, .scales = &scales, .mins = p->mins ? &mins : NULL,
        .y = adds ? &added : to, .offset = p->offset);
    if (adds) RUN(add, .a = to, .b = &added, .y = to);
    return true;
}

/* to = x weight^T, or to += x weight^T. Every product of the model comes by here. */
static bool project(llama *m, const trine_tensor *x, const matrix *weight, const trine_tensor *to, bool adds) {
    if (weight->packing) return project_codes(m, x, weight, to, adds);
    const trine_tensor w = rows_of(m, weight->data, weight->rows, weight->columns), w_t = trine_tensor_transpose(&w);
    RUN(matmul, .a = x, .b = &w_t, .c = adds ? to : NULL, .beta = adds ? 1.0f : 0.0f, .d = to);
    return true;
}

static bool norm(llama *m, void *from, float *weight, int64_t rows) {
    const trine_tensor x = rows_of(m, from, rows, m->config.width),
                       w = trine_tensor_1d(weight, TRINE_F32, m->config.width),
                       y = rows_of(m, m->normed, rows, m->config.width);
    RUN(rms_norm, .x = &x, .weight = &w, .y = &y, .eps = m->config.epsilon > 0 ? (float)m->config.epsilon : -0.0f);
    return true;
}

/* Keys (first 0) or values (first 1) of tokens [begin, begin + count) of a cache, by heads. */
static trine_tensor cached(const llama *m, void *cache, int64_t begin, int64_t count, int first) {
    const int64_t row = 2 * kv_width(m);
    trine_tensor t = trine_tensor_3d(at(m, cache, begin * row + first * kv_width(m)), m->type, count,
                                     m->config.kv_heads, m->config.head);
    t.stride[0] = row;
    return t;
}

/* Turns the heads of tokens that follow those in the cache. */
static bool rotate(llama *m, const trine_tensor *x) {
    const int64_t half = m->config.rotary / 2, n = x->shape[0];
    const trine_tensor cosines = trine_tensor_2d(m->cosines + m->length * half, TRINE_F32, n, half),
                       sines = trine_tensor_2d(m->sines + m->length * half, TRINE_F32, n, half);
    RUN(rope, .x = x, .cos = &cosines, .sin = &sines, .y = x, .interleaved = m->config.interleaved);
    return true;
}

/* The keys and values are computed where the cache has them. */
static bool attend(llama *m, llama_layer *l, int64_t n) {
    const model_config *c = &m->config;
    const int64_t all = m->length + n;
    const trine_tensor x = rows_of(m, m->normed, n, c->width), stream = rows_of(m, m->stream, n, c->width);
    const trine_tensor query = rows_of(m, m->query, n, query_width(m)),
                       added = rows_of(m, at(m, l->cache, m->length * 2 * kv_width(m)), n, 2 * kv_width(m));
    const trine_tensor q = trine_tensor_3d(m->query, m->type, n, c->heads, c->head),
                       new_keys = cached(m, l->cache, m->length, n, 0);
    const trine_tensor k = cached(m, l->cache, 0, all, 0), v = cached(m, l->cache, 0, all, 1);
    const trine_tensor o = trine_tensor_3d(m->attended, m->type, n, c->heads, c->head),
                       attended = rows_of(m, m->attended, n, query_width(m));
    TRY(norm(m, m->stream, l->norm, n));
    TRY(project(m, &x, &l->query, &query, false) && project(m, &x, &l->key_value, &added, false));
    TRY(rotate(m, &q) && rotate(m, &new_keys));
    RUN(attention, .q = &q, .k = &k, .v = &v, .o = &o, .causal = 1);
    return project(m, &attended, &l->mixed, &stream, true);
}

static bool feed_forward(llama *m, llama_layer *l, int64_t n) {
    const int64_t hidden = m->config.hidden, width = m->config.width;
    const trine_tensor x = rows_of(m, m->normed, n, width), stream = rows_of(m, m->stream, n, width);
    const trine_tensor both = rows_of(m, m->gate_up, n, 2 * hidden), activated = rows_of(m, m->activated, n, hidden);
    trine_tensor gate = rows_of(m, m->gate_up, n, hidden), up = rows_of(m, at(m, m->gate_up, hidden), n, hidden);
    gate.stride[0] = up.stride[0] = 2 * hidden;
    TRY(norm(m, m->stream, l->middle_norm, n) && project(m, &x, &l->gate_up, &both, false));
    RUN(swiglu, .gate = &gate, .up = &up, .y = &activated);
    return project(m, &activated, &l->down, &stream, true);
}

/* Up to the last layer's output, in m->stream. */
static bool forward(llama *m, const int32_t *tokens, int64_t n) {
    const trine_tensor table = rows_of(m, m->embedding, m->config.vocabulary, m->config.width),
                       ids = trine_tensor_1d(m->tokens, TRINE_I32, n),
                       stream = rows_of(m, m->stream, n, m->config.width);
    TRY(trine_memory_write(m->queue, m->tokens, tokens, (size_t)n * sizeof *tokens) == TRINE_OK);
    RUN(embedding, .table = &table, .ids = &ids, .y = &stream);
    for (int64_t i = 0; i < m->config.layers; i++) TRY(attend(m, &m->layer[i], n) && feed_forward(m, &m->layer[i], n));
    m->length += n;
    return true;
}

/* The logits after rows [first, first + rows) of the stream, at most LLAMA_LOGITS of them. */
static bool logits_of(llama *m, int64_t first, int64_t rows) {
    const trine_tensor x = rows_of(m, m->normed, rows, m->config.width),
                       logits = trine_tensor_2d(m->logits, TRINE_F32, rows, m->config.vocabulary);
    return norm(m, at(m, m->stream, first * m->config.width), m->last_norm, rows) &&
           project(m, &x, &m->head, &logits, false);
}

static bool read_tokens(llama *m, const int32_t *tokens, int64_t count, float *logits_out) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; i += n) {
        n = count - i < m->chunk ? count - i : m->chunk;
        TRY(forward(m, tokens + i, n));
    }
    return logits_of(m, n - 1, 1) &&
           trine_memory_read(m->queue, logits_out, m->logits, (size_t)m->config.vocabulary * sizeof(float)) == TRINE_OK;
}

static bool losses_of(llama *m, const int32_t *labels, int64_t n, float *losses_out) {
    TRY(trine_memory_write(m->queue, m->labels, labels, (size_t)n * sizeof *labels) == TRINE_OK);
    for (int64_t i = 0, rows = 0; i < n; i += rows) {
        rows = n - i < LLAMA_LOGITS ? n - i : LLAMA_LOGITS;
        const trine_tensor logits = trine_tensor_2d(m->logits, TRINE_F32, rows, m->config.vocabulary),
                           targets = trine_tensor_1d(m->labels + i, TRINE_I32, rows),
                           loss = trine_tensor_1d(m->losses, TRINE_F32, rows);
        TRY(logits_of(m, i, rows));
        RUN(cross_entropy, .logits = &logits, .labels = &targets, .loss = &loss);
        TRY(trine_memory_read(m->queue, losses_out + i, m->losses, (size_t)rows * sizeof(float)) == TRINE_OK);
    }
    return true;
}

static bool fits(const llama *m, int64_t count, problem *why) {
    return (count >= 1 && count <= m->room - m->length) ||
           refuse(why, "%lld tokens after %lld do not fit into a context of %lld", (long long)count,
                  (long long)m->length, (long long)m->room);
}

bool llama_read(llama *m, const int32_t *tokens, int64_t count, float *logits_out, problem *why) {
    return fits(m, count, why) &&
           (read_tokens(m, tokens, count, logits_out) || refuse(why, "%s", trine_error_message()));
}

bool llama_losses(llama *m, const int32_t *tokens, const int32_t *labels, int64_t count, float *losses_out,
                  problem *why) {
    if (!fits(m, count, why)) return false;
    for (int64_t i = 0, n = 0; i < count; i += n) {
        n = count - i < m->chunk ? count - i : m->chunk;
        if (!forward(m, tokens + i, n) || !losses_of(m, labels + i, n, losses_out + i))
            return refuse(why, "%s", trine_error_message());
    }
    return true;
}

void llama_forget(llama *m, int64_t length) { m->length = length; }
