/* SPDX-License-Identifier: Apache-2.0 */
/* The way from tokens to logits. */
#include <string.h>

#include "llama_parts.h"

/* An op, again with a larger workspace until it has one that does. */
#define RUN(op, ...) \
    do { \
        const trine_##op##_args args_ = { TRINE_ARGS(op), __VA_ARGS__ }; \
        trine_status status_ = trine_##op(m->queue, &args_); \
        while (status_ == TRINE_ERR_WORKSPACE) { \
            if (!llama_grow(m, 2 * m->workspace_size)) return false; \
            status_ = trine_##op(m->queue, &args_); \
        } \
        if (status_ != TRINE_OK) return false; \
    } while (0)

/* --------------------------------------------------------------------------------------------------------- products */

static trine_tensor rows_of(const llama *m, void *data, int64_t rows, int64_t columns) {
    return trine_tensor_2d(data, m->options.type, rows, columns);
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

/* Rows of the stream from `first` on, to m->normed from row `to` on. */
static bool norm(llama *m, int64_t first, float *weight, int64_t rows, int64_t to) {
    const int64_t width = m->config.width;
    const trine_tensor x = rows_of(m, at(m, m->stream, first * width), rows, width),
                       w = trine_tensor_1d(weight, TRINE_F32, width),
                       y = rows_of(m, at(m, m->normed, to * width), rows, width);
    RUN(rms_norm, .x = &x, .weight = &w, .y = &y, .eps = m->config.epsilon > 0 ? (float)m->config.epsilon : -0.0f);
    return true;
}

/* -------------------------------------------------------------------------------------------------------- attention */

/* Turns the heads of a pass's tokens by their positions. */
static bool rotate(llama *m, const trine_tensor *x) {
    const int64_t half = m->config.rotary / 2;
    const trine_tensor cosines = trine_tensor_2d(m->cosines, TRINE_F32, m->options.context, half),
                       sines = trine_tensor_2d(m->sines, TRINE_F32, m->options.context, half),
                       positions = trine_tensor_1d(m->positions, TRINE_I32, x->shape[0]);
    RUN(rope, .x = x, .cos = &cosines, .sin = &sines, .positions = &positions, .y = x,
        .interleaved = m->config.interleaved);
    return true;
}

/* Keys (first 0) or values (first 1) of a pass's tokens, by heads. */
static trine_tensor added(const llama *m, int64_t n, int first) {
    trine_tensor t = trine_tensor_3d(at(m, m->key_value, first * kv_width(m)), m->options.type, n, m->config.kv_heads,
                                     m->config.head);
    t.stride[0] = 2 * kv_width(m);
    return t;
}

/* `each` tokens of each of `count` sequences from part `part` on, the first of them in row `row`. */
static bool attend_few(llama *m, llama_layer *l, int64_t row, int64_t part, int64_t count, int64_t each) {
    const model_config *c = &m->config;
    const int64_t pages = pages_of(m->options.context), first = row * query_width(m);
    const trine_tensor q = trine_tensor_4d(at(m, m->query, first), m->options.type, count, each, c->heads, c->head),
                       out =
                           trine_tensor_4d(at(m, m->attended, first), m->options.type, count, each, c->heads, c->head),
                       k = trine_tensor_4d(l->keys, m->options.type, m->pool.pages, PAGE, c->kv_heads, c->head),
                       v = trine_tensor_4d(l->values, m->options.type, m->pool.pages, PAGE, c->kv_heads, c->head),
                       tables = trine_tensor_2d(m->tables + part * pages, TRINE_I32, count, pages),
                       lengths = trine_tensor_1d(m->lengths + part, TRINE_I32, count);
    RUN(attention_decode, .q = &q, .k_cache = &k, .v_cache = &v, .block_table = &tables, .lengths = &lengths,
        .out = &out);
    return true;
}

/* All rows of a cache that a sequence has, side by side; in m->gathered from row `to` on, where they are not. */
static bool gather(llama *m, void *cache, const sequence *s, int64_t all, int64_t to, trine_tensor *out) {
    const int64_t width = kv_width(m);
    void *rows = at(m, cache, s->page[0] * PAGE * width);
    if (!sequence_consecutive(s, all)) {
        rows = at(m, m->gathered, to * width);
        const trine_tensor x = rows_of(m, cache, m->pool.pages * PAGE, width),
                           index = trine_tensor_1d(m->places, TRINE_I32, all), y = rows_of(m, rows, all, width);
        RUN(gather_rows, .x = &x, .index = &index, .y = &y);
    }
    *out = trine_tensor_3d(rows, m->options.type, all, m->config.kv_heads, m->config.head);
    return true;
}

/* Many tokens of one sequence, for which attention() is faster than attention_decode() that reads pages. */
static bool attend_many(llama *m, llama_layer *l, int64_t row, const sequence *s, int64_t n) {
    const model_config *c = &m->config;
    const int64_t first = row * query_width(m), all = s->length + n;
    const trine_tensor q = trine_tensor_3d(at(m, m->query, first), m->options.type, n, c->heads, c->head),
                       o = trine_tensor_3d(at(m, m->attended, first), m->options.type, n, c->heads, c->head);
    trine_tensor k, v;
    TRY(gather(m, l->keys, s, all, 0, &k) && gather(m, l->values, s, all, m->options.context, &v));
    RUN(attention, .q = &q, .k = &k, .v = &v, .o = &o, .causal = 1);
    return true;
}

/* The tokens of all parts. Parts of as many tokens go together. */
static bool attend_parts(llama *m, llama_layer *l, const llama_part *part, int parts) {
    int64_t row = 0;
    for (int i = 0, alike; i < parts; i += alike) {
        const int64_t n = part[i].count;
        for (alike = 1; n <= LLAMA_FEW && i + alike < parts && part[i + alike].count == n;) alike++;
        TRY(n > LLAMA_FEW ? attend_many(m, l, row, part[i].sequence, n) : attend_few(m, l, row, i, alike, n));
        row += n * alike;
    }
    return true;
}

static bool attend(llama *m, llama_layer *l, const llama_part *part, int parts, int64_t n) {
    const model_config *c = &m->config;
    const trine_tensor x = rows_of(m, m->normed, n, c->width), stream = rows_of(m, m->stream, n, c->width);
    const trine_tensor query = rows_of(m, m->query, n, query_width(m)),
                       both = rows_of(m, m->key_value, n, 2 * kv_width(m)),
                       attended = rows_of(m, m->attended, n, query_width(m));
    const trine_tensor q = trine_tensor_3d(m->query, m->options.type, n, c->heads, c->head), k = added(m, n, 0),
                       v = added(m, n, 1), slots = trine_tensor_1d(m->slots, TRINE_I32, n);
    const trine_tensor keys = trine_tensor_4d(l->keys, m->options.type, m->pool.pages, PAGE, c->kv_heads, c->head),
                       values = trine_tensor_4d(l->values, m->options.type, m->pool.pages, PAGE, c->kv_heads, c->head);
    TRY(norm(m, 0, l->norm, n, 0));
    TRY(project(m, &x, &l->query, &query, false) && project(m, &x, &l->key_value, &both, false));
    TRY(rotate(m, &q) && rotate(m, &k));
    RUN(kv_cache_write, .k = &k, .v = &v, .slots = &slots, .k_cache = &keys, .v_cache = &values);
    return attend_parts(m, l, part, parts) && project(m, &attended, &l->mixed, &stream, true);
}

/* ---------------------------------------------------------------------------------------------------------- forward */

static bool feed_forward(llama *m, llama_layer *l, int64_t n) {
    const int64_t hidden = m->config.hidden, width = m->config.width;
    const trine_tensor x = rows_of(m, m->normed, n, width), stream = rows_of(m, m->stream, n, width);
    const trine_tensor both = rows_of(m, m->gate_up, n, 2 * hidden), activated = rows_of(m, m->activated, n, hidden);
    trine_tensor gate = rows_of(m, m->gate_up, n, hidden), up = rows_of(m, at(m, m->gate_up, hidden), n, hidden);
    gate.stride[0] = up.stride[0] = 2 * hidden;
    TRY(norm(m, 0, l->middle_norm, n, 0) && project(m, &x, &l->gate_up, &both, false));
    RUN(swiglu, .gate = &gate, .up = &up, .y = &activated);
    return project(m, &activated, &l->down, &stream, true);
}

/* What follows `rows` <= LLAMA_LOGITS rows that are in m->normed. */
static bool logits_of(llama *m, int64_t rows) {
    const trine_tensor x = rows_of(m, m->normed, rows, m->config.width),
                       logits = trine_tensor_2d(m->logits, TRINE_F32, rows, m->config.vocabulary);
    return rows == 0 || project(m, &x, &m->head, &logits, false);
}

/* Up to the last layer's output, in m->stream, and the logits that parts ask for. */
static bool compute(llama *m, const llama_part *part, int parts, int64_t n) {
    const trine_tensor table = rows_of(m, m->embedding, m->config.vocabulary, m->config.width),
                       ids = trine_tensor_1d(m->tokens, TRINE_I32, n),
                       stream = rows_of(m, m->stream, n, m->config.width);
    RUN(embedding, .table = &table, .ids = &ids, .y = &stream);
    for (int64_t i = 0; i < m->config.layers; i++)
        TRY(attend(m, &m->layer[i], part, parts, n) && feed_forward(m, &m->layer[i], n));
    int64_t first = 0, rows = 0, told = 0; /* rows that were not normed yet */
    for (int64_t i = 0, row = 0; i < parts; row += part[i++].count) {
        const int64_t wanted = row + part[i].count - part[i].wanted;
        if (wanted != first + rows) {
            TRY(rows == 0 || norm(m, first, m->last_norm, rows, told - rows));
            first = wanted;
            rows = 0;
        }
        rows += part[i].wanted;
        told += part[i].wanted;
    }
    TRY(rows == 0 || norm(m, first, m->last_norm, rows, told - rows));
    return logits_of(m, told);
}

static void fill_input(llama *m, const llama_part *part, int parts) {
    int32_t *tokens = m->input, *positions = tokens + (m->positions - m->tokens),
            *slots = tokens + (m->slots - m->tokens), *lengths = tokens + (m->lengths - m->tokens),
            *tables = tokens + (m->tables - m->tokens), *places = tokens + (m->places - m->tokens);
    for (int i = 0; i < parts; i++) {
        const sequence *s = part[i].sequence;
        const int64_t all = s->length + part[i].count;
        for (int64_t k = s->length; k < all; k++) {
            *tokens++ = part[i].tokens[k - s->length];
            *positions++ = (int32_t)k;
            *slots++ = sequence_slot(s, k);
        }
        *lengths++ = (int32_t)all;
        memcpy(tables + i * pages_of(m->options.context), s->page, (size_t)pages_of(all) * sizeof *tables);
        for (int64_t k = 0; part[i].count > LLAMA_FEW && k < all; k++) places[k] = sequence_slot(s, k);
    }
}

/* A pass of one token of each of `parts` sequences is recorded when it comes for the second time, since the first one
 * finds out what it needs; then it is one launch. */
static bool step(llama *m, const llama_part *part, int parts) {
    trine_graph **graph = &m->graph[parts];
    if (*graph) return trine_graph_launch(m->queue, *graph) == TRINE_OK;
    if (!m->ran[parts] || trine_graph_begin(m->queue) != TRINE_OK) {
        m->records &= !m->ran[parts];
        m->ran[parts] = true;
        return compute(m, part, parts, parts);
    }
    const bool good = compute(m, part, parts, parts);
    TRY(trine_graph_end(m->queue, graph) == TRINE_OK && good);
    return trine_graph_launch(m->queue, *graph) == TRINE_OK;
}

static bool forward(llama *m, const llama_part *part, int parts) {
    bool single = true;
    int64_t n = 0;
    for (int i = 0; i < parts; i++) {
        n += part[i].count;
        single &= part[i].count == 1 && part[i].wanted == 1;
    }
    fill_input(m, part, parts);
    TRY(trine_memory_write(m->queue, m->tokens, m->input, (size_t)m->input_size * sizeof *m->input) == TRINE_OK);
    TRY(single && m->records ? step(m, part, parts) : compute(m, part, parts, n));
    for (int i = 0; i < parts; i++) part[i].sequence->length += part[i].count;
    return true;
}

static bool losses_of(llama *m, const int32_t *labels, int64_t n, float *losses_out) {
    TRY(trine_memory_write(m->queue, m->labels, labels, (size_t)n * sizeof *labels) == TRINE_OK);
    for (int64_t i = 0, rows = 0; i < n; i += rows) {
        rows = n - i < LLAMA_LOGITS ? n - i : LLAMA_LOGITS;
        const trine_tensor logits = trine_tensor_2d(m->logits, TRINE_F32, rows, m->config.vocabulary),
                           targets = trine_tensor_1d(m->labels + i, TRINE_I32, rows),
                           loss = trine_tensor_1d(m->losses, TRINE_F32, rows);
        TRY(norm(m, i, m->last_norm, rows, 0) && logits_of(m, rows));
        RUN(cross_entropy, .logits = &logits, .labels = &targets, .loss = &loss);
        TRY(trine_memory_read(m->queue, losses_out + i, m->losses, (size_t)rows * sizeof(float)) == TRINE_OK);
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- public */

bool llama_fits(const llama *m, const sequence *s, int64_t count, problem *why) {
    return (count >= 1 && count <= m->options.context - s->length) ||
           refuse(why, "%lld tokens after %lld do not fit into a context of %lld", (long long)count,
                  (long long)s->length, (long long)m->options.context);
}

bool llama_pass(llama *m, const llama_part *part, int parts, float *logits_out, problem *why) {
    int64_t wanted = 0;
    for (int i = 0; i < parts; i++) {
        sequence *s = part[i].sequence;
        wanted += part[i].wanted;
        if (!llama_fits(m, s, part[i].count, why)) return false;
        if (!sequence_reserve(&m->pool, s, s->length + part[i].count)) return refuse(why, "the cache is full");
    }
    const size_t bytes = (size_t)(wanted * m->config.vocabulary) * sizeof *logits_out;
    return (forward(m, part, parts) &&
            (wanted == 0 || trine_memory_read(m->queue, logits_out, m->logits, bytes) == TRINE_OK)) ||
           refuse(why, "%s", trine_error_message());
}

bool llama_read(llama *m, sequence *s, const int32_t *tokens, int64_t count, float *logits_out, problem *why) {
    if (!llama_fits(m, s, count, why)) return false;
    for (int64_t i = 0, n = 0; i < count; i += n) {
        n = count - i < m->options.chunk ? count - i : m->options.chunk;
        const llama_part part = { s, tokens + i, n, i + n == count };
        if (!llama_pass(m, &part, 1, logits_out, why)) return false;
    }
    return true;
}

bool llama_losses(llama *m, sequence *s, const int32_t *tokens, const int32_t *labels, int64_t count, float *losses_out,
                  problem *why) {
    if (!llama_fits(m, s, count, why)) return false;
    for (int64_t i = 0, n = 0; i < count; i += n) {
        n = count - i < m->options.chunk ? count - i : m->options.chunk;
        const llama_part part = { s, tokens + i, n, 0 };
        if (!llama_pass(m, &part, 1, NULL, why)) return false;
        if (!losses_of(m, labels + i, n, losses_out + i)) return refuse(why, "%s", trine_error_message());
    }
    return true;
}
