/* SPDX-License-Identifier: Apache-2.0 */
/* The model: parameters, forward and backward pass, optimizer step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activations.h"
#include "away.h"
#include "share.h"
#include "state.h"

static int64_t head_size(const gpt_config *c) { return c->head ? c->head : c->width / c->heads; }
static int64_t qkv_width(const gpt_config *c) { return (c->heads + 2 * c->kv_heads) * head_size(c); }
static int64_t mixed_width(const gpt_config *c) { return c->heads * head_size(c); }

const char *gpt_config_check(const gpt_config *c) {
    if (c->context < 1 || c->context > 1 << 16) return "the context must be 1 to 65536 tokens";
    if (c->batch < 1 || c->batch > 1 << 14) return "the batch must be 1 to 16384 sequences";
    if (c->layers < 1 || c->layers > GPT_MAX_LAYERS) return "there must be 1 to 64 layers";
    if (c->width < 1 || c->width > 1 << 14) return "the width must be 1 to 16384";
    if (c->heads < 1 || c->heads > c->width || c->width % c->heads || c->width / c->heads % 2)
        return "heads must divide the width into an even number";
    if (c->kv_heads < 1 || c->kv_heads > c->heads || c->heads % c->kv_heads) return "kv-heads must divide heads";
    if (c->hidden < 1 || c->hidden > 1 << 16) return "the hidden width must be 1 to 65536";
    if (c->vocabulary < GPT_BYTES || c->vocabulary > 1 << 20) return "the vocabulary must be 256 to 1048576";
    if (c->mixed < 0 || c->mixed > 1) return "mixed must be 0 or 1";
    if (c->memory < GPT_SHARED || c->memory > GPT_RECOMPUTED) return "memory must be one of three ways";
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ layout and memory */

static int64_t take(int64_t *at, int64_t count) {
    const int64_t here = *at;
    *at += count;
    return here;
}

int64_t gpt_place(const gpt_config *config, gpt_layer *layer, int64_t *decayed_out, int64_t *final_norm_out) {
    const gpt_config *c = config;
    int64_t at = (int64_t)c->vocabulary * c->width;
    gpt_layer unused = { 0 };
    for (int i = 0; i < c->layers; i++) {
        gpt_layer *l = layer ? &layer[i] : &unused;
        l->w_qkv = take(&at, c->width * qkv_width(c));
        l->w_mixed = take(&at, mixed_width(c) * c->width);
        l->w_gate_up = take(&at, (int64_t)c->width * 2 * c->hidden);
        l->w_down = take(&at, (int64_t)c->hidden * c->width);
    }
    *decayed_out = at;
    for (int i = 0; i < c->layers; i++) {
        gpt_layer *l = layer ? &layer[i] : &unused;
        l->norm = take(&at, c->width);
        l->middle_norm = take(&at, c->width);
    }
    *final_norm_out = take(&at, c->width);
    return at;
}

int64_t gpt_parameters(const gpt_config *config) {
    int64_t decayed, final_norm;
    return gpt_place(config, NULL, &decayed, &final_norm);
}

bool gpt_reserve(gpt_model *model, void *pointer_out, int64_t count, size_t size) {
    void *memory = NULL;
    TRY(trine_memory_alloc(model->queue, (size_t)count * size, &memory) == TRINE_OK);
    model->allocated[model->allocations++] = memory;
    memcpy(pointer_out, &memory, sizeof memory);
    return true;
}

/* So many numbers of 32 bits; or of the model's type. */
static bool reserve(gpt_model *model, void *pointer_out, int64_t count) {
    return gpt_reserve(model, pointer_out, count, 4);
}
static bool reserve_typed(gpt_model *model, void *pointer_out, int64_t count) {
    return gpt_reserve(model, pointer_out, count, trine_dtype_size(model->type));
}

static bool reserve_all(gpt_model *model) {
    const gpt_config *c = &model->config;
    const int64_t r = (int64_t)c->batch * c->context, n = gpt_share_room(model);
    TRY(reserve_typed(model, &model->weight, n) && reserve_typed(model, &model->grad, n) && gpt_share_open(model));
    TRY(reserve(model, &model->cosines, c->context * head_size(c) / 2) &&
        reserve(model, &model->sines, c->context * head_size(c) / 2));
    TRY(reserve(model, &model->tokens, r) && reserve(model, &model->labels, r) &&
        reserve(model, &model->losses, GPT_MAX_LOSSES) && reserve(model, &model->byte_logits, GPT_BYTES));
    TRY(reserve(model, &model->loss, r) && reserve(model, &model->dloss, 1) && reserve(model, &model->scale, 2));
    return gpt_activations_open(model) && gpt_state_open(model);
}

static bool fill_tables(gpt_model *model) {
    const int64_t half = head_size(&model->config) / 2, count = model->config.context * half;
    float *table = malloc((size_t)count * sizeof *table);
    bool good = table != NULL;
    for (int sine = 0; good && sine < 2; sine++) {
        for (int64_t i = 0; i < count; i++) {
            const double angle = (double)(i / half) * pow(10000, -(double)(i % half) / (double)half);
            table[i] = (float)(sine ? sin(angle) : cos(angle));
        }
        good = trine_memory_write(model->queue, sine ? model->sines : model->cosines, table,
                                  (size_t)count * sizeof *table) == TRINE_OK;
    }
    free(table);
    return good;
}

bool gpt_open(gpt_model *model, const gpt_config *config, trine_queue *queue, uint64_t seed) {
    *model = (gpt_model){
        .config = gpt_share_of(config), .whole = *config, .queue = queue, .type = config->mixed ? TRINE_BF16 : TRINE_F32
    };
    model->parameters = gpt_place(&model->config, model->layer, &model->decayed, &model->final_norm);
    gpt_share_begin(model);
    model->host = malloc((size_t)config->batch * (size_t)config->context * sizeof(float));
    return model->host && reserve_all(model) && fill_tables(model) && gpt_state_begin(model, seed);
}

void gpt_close(gpt_model *model) {
    gpt_away_close(model->away);
    gpt_activations_close(model);
    for (int i = 0; i < model->allocations; i++) trine_memory_free(model->queue, model->allocated[i]);
    free(model->host);
    *model = (gpt_model){ 0 };
}

/* ------------------------------------------------------------------------------------------------------------ views */

/* Element `i` of memory of the model's type. */
static void *at(const gpt_model *model, const void *data, int64_t i) {
    return (char *)(uintptr_t)data + i * (int64_t)trine_dtype_size(model->type);
}

static trine_tensor vector(const float *data, int64_t n) {
    return trine_tensor_1d((void *)(uintptr_t)data, TRINE_F32, n);
}
static trine_tensor plain(const float *data, int64_t rows, int64_t columns) {
    return trine_tensor_2d((void *)(uintptr_t)data, TRINE_F32, rows, columns);
}
static trine_tensor typed(const gpt_model *model, const void *data, int64_t n) {
    return trine_tensor_1d((void *)(uintptr_t)data, model->type, n);
}
static trine_tensor matrix(const gpt_model *model, const void *data, int64_t rows, int64_t columns) {
    return trine_tensor_2d((void *)(uintptr_t)data, model->type, rows, columns);
}

/* Columns [first, first + columns) of a matrix of `width` columns. */
static trine_tensor columns_of(const gpt_model *model, void *data, int64_t rows, int64_t width, int64_t first,
                               int64_t columns) {
    trine_tensor t = matrix(model, at(model, data, first), rows, columns);
    t.stride[0] = width;
    return t;
}

/* Heads [first, first + count) of the rows of qkv: sequences, length, count, head. */
static trine_tensor heads_of(const gpt_model *model, void *qkv, int64_t first, int64_t count, int sequences,
                             int length) {
    const gpt_config *c = &model->config;
    trine_tensor t =
        trine_tensor_4d(at(model, qkv, first * head_size(c)), model->type, sequences, length, count, head_size(c));
    t.stride[1] = qkv_width(c);
    t.stride[0] = t.stride[1] * length;
    return t;
}

/* d = a b. */
static bool product(gpt_model *model, const trine_tensor *a, const trine_tensor *b, const trine_tensor *d) {
    RUN(matmul, .a = a, .b = b, .d = d);
    return true;
}

/* For y = x w with x [r, in] and w [in, out]: the gradient of w, and that of x. */
static bool product_gradient(gpt_model *model, void *x, int64_t w, void *dy, void *dx, int64_t r, int64_t in,
                             int64_t out) {
    const trine_tensor input = matrix(model, x, r, in), weight = matrix(model, at(model, model->weight, w), in, out),
                       doutput = matrix(model, dy, r, out);
    const trine_tensor dinput = matrix(model, dx, r, in), dweight = matrix(model, at(model, model->grad, w), in, out);
    const trine_tensor input_t = trine_tensor_transpose(&input), weight_t = trine_tensor_transpose(&weight);
    return product(model, &input_t, &doutput, &dweight) && product(model, &doutput, &weight_t, &dinput);
}

/* stream = delta + residual (delta itself without a residual), normed = its norm. */
static bool norm(gpt_model *model, void *delta, void *residual, int64_t weight, void *stream, float *rstd, void *normed,
                 int64_t r) {
    const int64_t n = model->config.width;
    const trine_tensor x = matrix(model, delta, r, n), before = matrix(model, residual, r, n),
                       w = typed(model, at(model, model->weight, weight), n);
    const trine_tensor y = matrix(model, normed, r, n), sum = matrix(model, stream, r, n), scale = vector(rstd, r);
    RUN(rms_norm, .x = &x, .residual = residual ? &before : NULL, .weight = &w, .y = &y,
        .residual_out = residual ? &sum : NULL, .rstd = &scale);
    return true;
}

/* normed again, of a stream that is kept. */
static bool norm_again(gpt_model *model, void *stream, int64_t weight, void *normed, int64_t r) {
    const int64_t n = model->config.width;
    const trine_tensor x = matrix(model, stream, r, n), w = typed(model, at(model, model->weight, weight), n),
                       y = matrix(model, normed, r, n);
    if (gpt_norms_again(&model->config)) RUN(rms_norm, .x = &x, .weight = &w, .y = &y);
    return true;
}

/* Its gradient: dstream_out = what arrives through the norm + dstream (NULL: nothing). */
static bool norm_gradient(gpt_model *model, void *stream, float *rstd, int64_t weight, void *dstream, void *dstream_out,
                          int64_t r) {
    const int64_t n = model->config.width;
    const trine_tensor dy = matrix(model, model->dnormed, r, n), h = matrix(model, stream, r, n),
                       w = typed(model, at(model, model->weight, weight), n), scale = vector(rstd, r);
    const trine_tensor residual = matrix(model, dstream, r, n), dx = matrix(model, dstream_out, r, n),
                       dw = typed(model, at(model, model->grad, weight), n);
    RUN(rms_norm_backward, .dy = &dy, .h = &h, .weight = &w, .rstd = &scale, .dresidual = dstream ? &residual : NULL,
        .dx = &dx, .dweight = &dw);
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- forward */

static bool attend(gpt_model *model, gpt_layer *l, int sequences, int length) {
    const gpt_config *c = &model->config;
    const int64_t r = (int64_t)sequences * length;
    const trine_tensor x = matrix(model, l->normed, r, c->width),
                       w = matrix(model, at(model, model->weight, l->w_qkv), c->width, qkv_width(c));
    const trine_tensor qkv = matrix(model, l->qkv, r, qkv_width(c)),
                       rotated = heads_of(model, l->qkv, 0, c->heads + c->kv_heads, sequences, length);
    const trine_tensor cosines = plain(model->cosines, c->context, head_size(c) / 2),
                       sines = plain(model->sines, c->context, head_size(c) / 2);
    const trine_tensor q = heads_of(model, l->qkv, 0, c->heads, sequences, length),
                       k = heads_of(model, l->qkv, c->heads, c->kv_heads, sequences, length);
    const trine_tensor v = heads_of(model, l->qkv, c->heads + c->kv_heads, c->kv_heads, sequences, length);
    const trine_tensor o = trine_tensor_4d(l->mixed, model->type, sequences, length, c->heads, head_size(c));
    const trine_tensor lse = trine_tensor_3d(l->lse, TRINE_F32, sequences, c->heads, length);
    const trine_tensor mixed = matrix(model, l->mixed, r, mixed_width(c)),
                       w_mixed = matrix(model, at(model, model->weight, l->w_mixed), mixed_width(c), c->width);
    const trine_tensor delta = matrix(model, model->delta, r, c->width);
    TRY(product(model, &x, &w, &qkv));
    RUN(rope, .x = &rotated, .cos = &cosines, .sin = &sines, .y = &rotated);
    RUN(attention, .q = &q, .k = &k, .v = &v, .o = &o, .lse = &lse, .causal = 1);
    return product(model, &mixed, &w_mixed, &delta) && gpt_share_sum(model, model->delta, r * c->width);
}

static bool feed_forward(gpt_model *model, gpt_layer *l, int64_t r) {
    const gpt_config *c = &model->config;
    const int64_t hidden = c->hidden;
    const trine_tensor x = matrix(model, l->middle_normed, r, c->width),
                       w = matrix(model, at(model, model->weight, l->w_gate_up), c->width, 2 * hidden);
    const trine_tensor both = matrix(model, l->gate_up, r, 2 * hidden),
                       gate = columns_of(model, l->gate_up, r, 2 * hidden, 0, hidden);
    const trine_tensor up = columns_of(model, l->gate_up, r, 2 * hidden, hidden, hidden),
                       activated = matrix(model, l->activated, r, hidden);
    const trine_tensor w_down = matrix(model, at(model, model->weight, l->w_down), hidden, c->width),
                       delta = matrix(model, model->delta, r, c->width);
    TRY(product(model, &x, &w, &both));
    RUN(swiglu, .gate = &gate, .up = &up, .y = &activated);
    return product(model, &activated, &w_down, &delta) && gpt_share_sum(model, model->delta, r * c->width);
}

/* From the tokens in device memory up to the logits. */
static bool forward(gpt_model *model, int sequences, int length) {
    const gpt_config *c = &model->config;
    const int64_t r = (int64_t)sequences * length;
    const trine_tensor table = matrix(model, model->weight, c->vocabulary, c->width),
                       ids = trine_tensor_1d(model->tokens, TRINE_I32, r);
    const trine_tensor embedded = matrix(model, model->layer[0].stream, r, c->width);
    RUN(embedding, .table = &table, .ids = &ids, .y = &embedded);
    for (int i = 0; i < c->layers; i++) {
        gpt_layer *l = &model->layer[i];
        TRY(i == 0 ? norm(model, l->stream, NULL, l->norm, NULL, l->rstd, l->normed, r)
                   : norm(model, model->delta, l[-1].middle, l->norm, l->stream, l->rstd, l->normed, r));
        TRY(attend(model, l, sequences, length));
        TRY(norm(model, model->delta, l->stream, l->middle_norm, l->middle, l->middle_rstd, l->middle_normed, r));
        TRY(feed_forward(model, l, r));
    }
    TRY(norm(model, model->delta, model->layer[c->layers - 1].middle, model->final_norm, model->stream, model->rstd,
             model->normed, r));
    const trine_tensor x = matrix(model, model->normed, r, c->width), table_t = trine_tensor_transpose(&table),
                       logits = matrix(model, model->logits, r, c->vocabulary);
    return product(model, &x, &table_t, &logits);
}

/* And to the loss of each token. The gradient of their mean takes the logits' place. */
static bool losses(gpt_model *model, int sequences, int length) {
    const int64_t r = (int64_t)sequences * length;
    const trine_tensor logits = matrix(model, model->logits, r, model->config.vocabulary),
                       targets = trine_tensor_1d(model->labels, TRINE_I32, r);
    const trine_tensor loss = vector(model->loss, r), dloss = vector(model->dloss, 1);
    TRY(forward(model, sequences, length));
    if (model->dloss_rows != r) {
        const float share = (float)(1.0 / (double)(r * gpt_share_batches(model)));
        TRY(trine_memory_write(model->queue, model->dloss, &share, sizeof share) == TRINE_OK);
        model->dloss_rows = r;
    }
    RUN(cross_entropy, .logits = &logits, .labels = &targets, .loss = &loss, .dloss = &dloss, .dlogits = &logits);
    return true;
}

bool gpt_loss(gpt_model *model, const int32_t *tokens, const int32_t *labels, int sequences, int length,
              double *loss_out) {
    const int64_t r = (int64_t)sequences * length;
    TRY(trine_memory_write(model->queue, model->tokens, tokens, (size_t)r * sizeof *tokens) == TRINE_OK);
    TRY(trine_memory_write(model->queue, model->labels, labels, (size_t)r * sizeof *labels) == TRINE_OK);
    TRY(losses(model, sequences, length));
    TRY(trine_memory_read(model->queue, model->host, model->loss, (size_t)r * sizeof(float)) == TRINE_OK);
    double sum = 0;
    for (int64_t i = 0; i < r; i++) sum += model->host[i];
    *loss_out = sum / (double)r;
    return true;
}

bool gpt_loss_of_text(gpt_model *model, const int32_t *text, const int64_t *place, int slot) {
    const int64_t batch = model->config.batch, context = model->config.context, r = batch * context;
    const trine_tensor loss = plain(model->loss, 1, r), sum = vector(model->scale + 1, 1),
                       mean = vector(model->losses + slot, 1);
    if (gpt_share_batches(model) > 1) place += batch * model->whole.group->rank;
    for (int64_t b = 0; b < batch; b++) {
        const size_t bytes = (size_t)context * sizeof *text;
        TRY(trine_memory_copy(model->queue, model->tokens + b * context, text + place[b], bytes) == TRINE_OK);
        TRY(trine_memory_copy(model->queue, model->labels + b * context, text + place[b] + 1, bytes) == TRINE_OK);
    }
    TRY(losses(model, model->config.batch, model->config.context));
    RUN(reduce_sum, .x = &loss, .row_sums = &sum);
    RUN(scale, .x = &sum, .y = &mean, .alpha = (float)(1.0 / (double)(r * gpt_share_batches(model))));
    return gpt_share_loss(model, model->losses + slot);
}

bool gpt_predict(gpt_model *model, const int32_t *tokens, int length, float logits_out[GPT_BYTES]) {
    const int64_t last = (int64_t)(length - 1) * model->config.vocabulary;
    const trine_tensor logits = typed(model, at(model, model->logits, last), GPT_BYTES),
                       wide = vector(model->byte_logits, GPT_BYTES);
    TRY(trine_memory_write(model->queue, model->tokens, tokens, (size_t)length * sizeof *tokens) == TRINE_OK &&
        forward(model, 1, length));
    RUN(cast, .x = &logits, .y = &wide);
    return trine_memory_read(model->queue, logits_out, model->byte_logits, GPT_BYTES * sizeof(float)) == TRINE_OK;
}

/* --------------------------------------------------------------------------------------------------------- backward */

static bool attend_gradient(gpt_model *model, gpt_layer *l, void *dstream, int sequences, int length) {
    const gpt_config *c = &model->config;
    const int64_t r = (int64_t)sequences * length, heads = c->heads, kv = c->kv_heads;
    const trine_tensor q = heads_of(model, l->qkv, 0, heads, sequences, length),
                       k = heads_of(model, l->qkv, heads, kv, sequences, length);
    const trine_tensor v = heads_of(model, l->qkv, heads + kv, kv, sequences, length);
    const trine_tensor dq = heads_of(model, l->dqkv, 0, heads, sequences, length),
                       dk = heads_of(model, l->dqkv, heads, kv, sequences, length);
    const trine_tensor dv = heads_of(model, l->dqkv, heads + kv, kv, sequences, length);
    const trine_tensor o = trine_tensor_4d(l->mixed, model->type, sequences, length, heads, head_size(c));
    const trine_tensor dout = trine_tensor_4d(l->dmixed, model->type, sequences, length, heads, head_size(c));
    const trine_tensor lse = trine_tensor_3d(l->lse, TRINE_F32, sequences, heads, length),
                       rotated = heads_of(model, l->dqkv, 0, heads + kv, sequences, length);
    const trine_tensor cosines = plain(model->cosines, c->context, head_size(c) / 2),
                       sines = plain(model->sines, c->context, head_size(c) / 2);
    TRY(product_gradient(model, l->mixed, l->w_mixed, dstream, l->dmixed, r, mixed_width(c), c->width));
    RUN(attention_backward, .dout = &dout, .q = &q, .k = &k, .v = &v, .o = &o, .lse = &lse, .dq = &dq, .dk = &dk,
        .dv = &dv, .causal = 1);
    RUN(rope_backward, .dy = &rotated, .cos = &cosines, .sin = &sines, .dx = &rotated);
    TRY(norm_again(model, l->stream, l->norm, l->normed_again, r));
    return product_gradient(model, l->normed_again, l->w_qkv, l->dqkv, model->dnormed, r, c->width, qkv_width(c)) &&
           gpt_share_sum(model, model->dnormed, r * c->width);
}

static bool feed_forward_gradient(gpt_model *model, gpt_layer *l, void *dstream, int64_t r) {
    const int64_t width = model->config.width, hidden = model->config.hidden;
    const trine_tensor gate = columns_of(model, l->gate_up, r, 2 * hidden, 0, hidden),
                       up = columns_of(model, l->gate_up, r, 2 * hidden, hidden, hidden);
    const trine_tensor y = matrix(model, l->activated_again, r, hidden), dy = matrix(model, l->dactivated, r, hidden);
    if (model->config.memory == GPT_RECOMPUTED) RUN(swiglu, .gate = &gate, .up = &up, .y = &y);
    TRY(product_gradient(model, l->activated_again, l->w_down, dstream, l->dactivated, r, hidden, width));
    RUN(swiglu_backward, .dy = &dy, .gate = &gate, .up = &up, .dgate = &gate, .dup = &up);
    TRY(norm_again(model, l->middle, l->middle_norm, l->middle_normed_again, r));
    return product_gradient(model, l->middle_normed_again, l->w_gate_up, l->gate_up, model->dnormed, r, width,
                            2 * hidden) &&
           gpt_share_sum(model, model->dnormed, r * width);
}

/* From the logits' gradient the tied table's, as the last layer's weight, and the final norm's input's. */
static bool head_gradient(gpt_model *model, void *dstream_out, int64_t r) {
    const int64_t width = model->config.width, vocabulary = model->config.vocabulary;
    const trine_tensor dlogits = matrix(model, model->logits, r, vocabulary),
                       dlogits_t = trine_tensor_transpose(&dlogits);
    const trine_tensor table = matrix(model, model->weight, vocabulary, width),
                       dtable = matrix(model, model->grad, vocabulary, width);
    const trine_tensor normed = matrix(model, model->normed, r, width),
                       dnormed = matrix(model, model->dnormed, r, width);
    TRY(product(model, &dlogits_t, &normed, &dtable) && product(model, &dlogits, &table, &dnormed));
    return norm_gradient(model, model->stream, model->rstd, model->final_norm, NULL, dstream_out, r);
}

bool gpt_gradient(gpt_model *model, int sequences, int length) {
    const gpt_config *c = &model->config;
    const int64_t r = (int64_t)sequences * length;
    void *dstream = model->dstream[0], *other = model->dstream[1];
    TRY(head_gradient(model, dstream, r));
    for (int i = c->layers - 1; i >= 0; i--) {
        gpt_layer *l = &model->layer[i];
        TRY(feed_forward_gradient(model, l, dstream, r));
        TRY(norm_gradient(model, l->middle, l->middle_rstd, l->middle_norm, dstream, other, r));
        TRY(attend_gradient(model, l, other, sequences, length));
        TRY(norm_gradient(model, l->stream, l->rstd, l->norm, other, dstream, r));
    }
    const trine_tensor dy = matrix(model, dstream, r, c->width), ids = trine_tensor_1d(model->tokens, TRINE_I32, r);
    const trine_tensor dtable = matrix(model, model->grad, c->vocabulary, c->width);
    RUN(embedding_backward, .dy = &dy, .ids = &ids, .dtable = &dtable, .accumulate = 1);
    return true;
}
