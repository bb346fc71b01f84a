/* SPDX-License-Identifier: Apache-2.0 */
/* The model: its memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama_parts.h"

enum { CHUNK = 512, WORKSPACE = 1 << 20 };

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
    return reserve_bytes(m, pointer_out, count, trine_dtype_size(m->options.type));
}

/* A matrix of the tensors of one role, or of two, the second below the first: of codes if both are of one packing. */
static bool reserve_matrix(llama *m, matrix *x, int64_t rows, int64_t columns, const stored *first,
                           const stored *second) {
    *x = (matrix){ .rows = rows, .columns = columns };
    if (!m->options.decoded && (!second || second->type == first->type)) x->packing = first->type->packing;
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
           reserve_typed(m, &l->keys, m->pool.pages * PAGE * kv_width(m)) &&
           reserve_typed(m, &l->values, m->pool.pages * PAGE * kv_width(m));
}

/* The tensor that multiplies the last layer's output. */
static const stored *head_of(const model_file *f) {
    const stored *head = model_tensor(f, MODEL_HEAD, 0);
    return head ? head : model_tensor(f, MODEL_EMBEDDING, 0);
}

static bool reserve_input(llama *m) {
    const int64_t parts = m->options.slots, tables = parts * pages_of(m->options.context);
    m->input_size = 3 * m->rows + parts + tables + m->options.context;
    m->input = calloc((size_t)m->input_size, sizeof *m->input);
    TRY(m->input && reserve(m, &m->tokens, m->input_size));
    m->positions = m->tokens + m->rows;
    m->slots = m->positions + m->rows;
    m->lengths = m->slots + m->rows;
    m->tables = m->lengths + parts;
    m->places = m->tables + tables;
    return true;
}

static bool reserve_all(llama *m, const model_file *f) {
    const model_config *c = &m->config;
    const int64_t rows = m->rows, room = m->options.context;
    TRY(reserve_typed(m, &m->embedding, c->vocabulary * c->width));
    m->head = (matrix){ .rows = c->vocabulary, .columns = c->width, .data = m->embedding };
    if (model_tensor(f, MODEL_HEAD, 0) || (head_of(f)->type->packing && !m->options.decoded))
        TRY(reserve_matrix(m, &m->head, c->vocabulary, c->width, head_of(f), NULL));
    TRY(reserve(m, &m->last_norm, c->width) && reserve(m, &m->cosines, room * c->rotary / 2) &&
        reserve(m, &m->sines, room * c->rotary / 2));
    TRY(reserve_input(m) && reserve(m, &m->labels, rows));
    TRY(reserve_typed(m, &m->stream, rows * c->width) && reserve_typed(m, &m->normed, rows * c->width) &&
        reserve_typed(m, &m->query, rows * query_width(m)) && reserve_typed(m, &m->key_value, rows * 2 * kv_width(m)) &&
        reserve_typed(m, &m->attended, rows * query_width(m)) &&
        reserve_typed(m, &m->gathered, 2 * room * kv_width(m)));
    TRY(reserve_typed(m, &m->gate_up, rows * 2 * c->hidden) && reserve_typed(m, &m->activated, rows * c->hidden));
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
                       : load(m, from, m->options.type, at(m, to->data, first * to->columns), why);
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
    TRY(load(m, model_tensor(f, MODEL_EMBEDDING, 0), m->options.type, m->embedding, why) &&
        load(m, model_tensor(f, MODEL_LAST_NORM, 0), TRINE_F32, m->last_norm, why));
    TRY(m->head.data == m->embedding || load_rows(m, head_of(f), &m->head, 0, why));
    for (int64_t i = 0; i < m->config.layers; i++) TRY(load_layer(m, f, i, why));
    return true;
}

/* The cosines and sines of each position's angles. */
static bool fill_angles(llama *m, problem *why) {
    const model_config *c = &m->config;
    const int64_t half = c->rotary / 2;
    float *table = malloc((size_t)(m->options.context * half) * sizeof *table);
    if (!table) return refuse(why, "out of memory");
    bool good = true;
    for (int sine = 0; good && sine < 2; sine++) {
        for (int64_t i = 0; i < half; i++) {
            const double turn = pow(c->theta, -(double)i / (double)half) / c->divisor[i];
            for (int64_t p = 0; p < m->options.context; p++)
                table[p * half + i] = (float)(sine ? sin((double)p * turn) : cos((double)p * turn));
        }
        good = trine_memory_write(m->queue, sine ? m->sines : m->cosines, table,
                                  (size_t)(m->options.context * half) * sizeof *table) == TRINE_OK ||
               refuse(why, "%s", trine_error_message());
    }
    free(table);
    return good;
}

/* The queue's workspace is the model's own, since recorded passes keep its address: the one place that changes it
 * forgets them. */
bool llama_grow(llama *m, size_t size) {
    for (int i = 0; i <= LLAMA_LOGITS; i++) {
        trine_graph_free(m->graph[i]);
        m->graph[i] = NULL;
    }
    TRY(trine_queue_wait(m->queue) == TRINE_OK && trine_queue_set_workspace(m->queue, NULL, 0) == TRINE_OK);
    TRY(trine_memory_free(m->queue, m->workspace) == TRINE_OK);
    m->workspace = NULL;
    m->workspace_size = size;
    return size == 0 || (trine_memory_alloc(m->queue, size, &m->workspace) == TRINE_OK &&
                         trine_queue_set_workspace(m->queue, m->workspace, size) == TRINE_OK);
}

bool llama_open(llama *m, const model_file *file, trine_queue *queue, const llama_options *options, problem *why) {
    const int64_t layers = file->config.layers;
    *m = (llama){ .config = file->config, .options = *options, .queue = queue, .records = true };
    llama_options *o = &m->options;
    if (!o->chunk) o->chunk = CHUNK;
    if (o->chunk > o->context) o->chunk = o->context;
    m->rows = o->chunk > LLAMA_LOGITS ? o->chunk : LLAMA_LOGITS;
    const int64_t pages = o->cache ? pages_of(o->cache) : o->slots * pages_of(o->context);
    m->layer = calloc((size_t)layers, sizeof *m->layer);
    m->allocated = calloc((size_t)(24 + 24 * layers), sizeof *m->allocated);
    if (!m->layer || !m->allocated) return refuse(why, "out of memory");
    if (!page_pool_open(&m->pool, pages, why)) return false;
    if (!reserve_all(m, file) || !llama_grow(m, WORKSPACE)) return refuse(why, "%s", trine_error_message());
    return load_all(m, file, why) && fill_angles(m, why);
}

void llama_close(llama *m) {
    if (m->queue) llama_grow(m, 0);
    for (int64_t i = 0; i < m->allocations; i++) trine_memory_free(m->queue, m->allocated[i]);
    page_pool_close(&m->pool);
    free(m->input);
    free(m->allocated);
    free(m->layer);
    *m = (llama){ 0 };
}
