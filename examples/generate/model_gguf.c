/* SPDX-License-Identifier: Apache-2.0 */
/* A model from a GGUF file: the keys that the GGUF specification gives to models of architecture "llama", and to
 * tokenizers. Such files hold q and k with their rows reordered, so that the pairs that turn are neighbours. */
#include <math.h>
#include <string.h>

#include "model.h"

static const model_names names = { .layer = "blk.",
                                   .name = { [MODEL_EMBEDDING] = "token_embd.weight",
                                             [MODEL_LAST_NORM] = "output_norm.weight",
                                             [MODEL_HEAD] = "output.weight",
                                             [MODEL_ROPE_FACTORS] = "rope_freqs.weight",
                                             [MODEL_NORM] = "attn_norm.weight",
                                             [MODEL_QUERY] = "attn_q.weight",
                                             [MODEL_KEY] = "attn_k.weight",
                                             [MODEL_VALUE] = "attn_v.weight",
                                             [MODEL_MIXED] = "attn_output.weight",
                                             [MODEL_MIDDLE_NORM] = "ffn_norm.weight",
                                             [MODEL_GATE] = "ffn_gate.weight",
                                             [MODEL_UP] = "ffn_up.weight",
                                             [MODEL_DOWN] = "ffn_down.weight" } };

/* ------------------------------------------------------------------------------------------------------------ sizes */

static bool read_sizes(const gguf *g, model_config *c, problem *why) {
    int64_t experts = 0;
    if (!gguf_whole(g, "llama.block_count", &c->layers, why) ||
        !gguf_whole(g, "llama.context_length", &c->context, why) ||
        !gguf_whole(g, "llama.embedding_length", &c->width, why) ||
        !gguf_whole(g, "llama.feed_forward_length", &c->hidden, why) ||
        !gguf_whole(g, "llama.attention.head_count", &c->heads, why) ||
        !gguf_whole(g, "llama.expert_count", &experts, why))
        return false;
    c->kv_heads = c->heads;
    if (experts) return refuse(why, "the model has experts, which this program does not know");
    if (c->heads < 1) return refuse(why, "llama.attention.head_count is missing or out of range");
    int64_t value = c->head = c->width / c->heads;
    if (!gguf_whole(g, "llama.attention.head_count_kv", &c->kv_heads, why) ||
        !gguf_whole(g, "llama.attention.key_length", &c->head, why) ||
        !gguf_whole(g, "llama.attention.value_length", &value, why))
        return false;
    if (value != c->head) return refuse(why, "the heads of keys and of values are of different sizes");
    c->rotary = c->head;
    return gguf_whole(g, "llama.rope.dimension_count", &c->rotary, why);
}

static bool read_positions(const gguf *g, model_config *c, problem *why) {
    slice scaling = slice_of("none");
    double factor = 1;
    c->interleaved = true;
    c->theta = 10000;
    c->epsilon = -1;
    if (!gguf_number(g, "llama.rope.freq_base", &c->theta, why) ||
        !gguf_number(g, "llama.attention.layer_norm_rms_epsilon", &c->epsilon, why) ||
        !gguf_text(g, "llama.rope.scaling.type", &scaling, why) ||
        !gguf_number(g, "llama.rope.scaling.factor", &factor, why))
        return false;
    const bool linear = slice_is(scaling, "linear");
    if (!linear && !slice_is(scaling, "none"))
        return refuse(why, "positions are scaled by \"%.*s\", which this program does not know", SHOWN(scaling));
    for (int i = 0; i < MODEL_MAX_HEAD / 2; i++) c->divisor[i] = linear ? factor : 1;
    return true;
}

/* Divisors of each pair, as Llama 3.1 has them, are a tensor. */
static bool read_factors(model_file *m, problem *why) {
    const stored *factors = model_tensor(m, MODEL_ROPE_FACTORS, 0);
    float value[MODEL_MAX_HEAD / 2];
    if (!factors) return true;
    if (strcmp(factors->type->name, "F32") != 0 || factors->rank != 1 || factors->shape[0] > MODEL_MAX_HEAD / 2)
        return refuse(why, "%.*s is not as it should be", SHOWN(factors->name));
    factors->type->decode(factors->data, factors->shape[0], value);
    for (int64_t i = 0; i < factors->shape[0]; i++) m->config.divisor[i] *= (double)value[i];
    return true;
}

/* -------------------------------------------------------------------------------------------------------- tokenizer */

/* The types of tokens in the file, and what they are here. */
static token_kind kind_of(int32_t type) {
    enum { UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4 };
    return type == UNKNOWN || type == CONTROL ? TOKEN_CONTROL : type == USER_DEFINED ? TOKEN_USER : TOKEN_TEXT;
}

static const gguf_value *array_of(const gguf *g, const char *key, uint32_t element) {
    const gguf_value *v = gguf_find(g, key);
    return v && v->type == GGUF_ARRAY && (v->element == element || (element == GGUF_I32 && v->element == GGUF_U32))
               ? v
               : NULL;
}

static bool read_tokens(const gguf *g, tokenizer *t, problem *why) {
    const gguf_value *tokens = array_of(g, "tokenizer.ggml.tokens", GGUF_STRING),
                     *types = array_of(g, "tokenizer.ggml.token_type", GGUF_I32);
    cursor at = tokens->data, type_at = { 0 };
    if (types && types->count != tokens->count) return refuse(why, "there are not as many types as tokens");
    if (types) type_at = types->data;
    for (uint64_t i = 0; i < tokens->count; i++) {
        slice text = { 0 };
        int32_t type = 1;
        if (!gguf_next_text(&at, &text) || (types && !gguf_next_i32(&type_at, &type)))
            return refuse(why, "the tokens end early");
        if (!tokenizer_add(t, text, kind_of(type), why)) return false;
    }
    return tokenizer_add_end(t, why);
}

/* A merge is two tokens with a space between, which no token has within it. */
static bool read_merges(const gguf_value *merges, tokenizer *t, problem *why) {
    cursor at = merges->data;
    for (uint64_t i = 0; i < merges->count; i++) {
        slice text = { 0 };
        const char *space = gguf_next_text(&at, &text) && text.size > 0 ? memchr(text.bytes, ' ', text.size) : NULL;
        if (!space) return refuse(why, "a merge is not of two tokens");
        const size_t left = (size_t)(space - text.bytes);
        if (!tokenizer_merge(t, (slice){ text.bytes, left }, (slice){ space + 1, text.size - left - 1 }, why))
            return false;
    }
    return true;
}

/* A token's number by its key; -1 where the file has none. */
static bool read_id(const gguf *g, const char *key, const tokenizer *t, int32_t *out, problem *why) {
    int64_t id = -1;
    *out = -1;
    if (!gguf_whole(g, key, &id, why)) return false;
    if (id < -1 || id >= t->tokens) return refuse(why, "%s is %lld, no token", key, (long long)id);
    *out = (int32_t)id;
    return true;
}

static bool read_marks(const gguf *g, tokenizer *t, problem *why) {
    static const char *const ends[] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    bool begun = split_kind_begun(t->kind);
    int32_t id;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (!read_id(g, ends[i], t, &id, why)) return false;
        if (id >= 0) t->stop[t->stops++] = id;
    }
    if (!read_id(g, "tokenizer.ggml.bos_token_id", t, &id, why) ||
        !gguf_flag(g, "tokenizer.ggml.add_bos_token", &begun, why))
        return false;
    t->first = begun ? id : -1;
    return true;
}

static bool read_tokenizer(const gguf *g, tokenizer *t, problem *why) {
    slice model = slice_of("none"), pre = slice_of("default");
    const gguf_value *tokens = array_of(g, "tokenizer.ggml.tokens", GGUF_STRING),
                     *merges = array_of(g, "tokenizer.ggml.merges", GGUF_STRING);
    if (!gguf_text(g, "tokenizer.ggml.model", &model, why) || !gguf_text(g, "tokenizer.ggml.pre", &pre, why))
        return false;
    if (!slice_is(model, "gpt2"))
        return refuse(why, "the tokenizer is of the kind \"%.*s\"; this program reads \"gpt2\"", SHOWN(model));
    const split_kind *kind = split_kind_named(pre);
    if (!kind) return refuse(why, "the tokenizer cuts texts as \"%.*s\", which this program does not know", SHOWN(pre));
    if (!tokens || !merges) return refuse(why, "the tokenizer's tokens or merges are missing");
    return tokenizer_open(t, kind, tokens->count, merges->count, (uint64_t)(tokens->data.end - tokens->data.at), why) &&
           read_tokens(g, t, why) && read_merges(merges, t, why) && read_marks(g, t, why);
}

bool model_parse_gguf(model_file *m, const uint8_t *bytes, size_t size, problem *why) {
    slice architecture = slice_of("none");
    m->names = &names;
    if (!gguf_parse(&m->gguf, bytes, size, why)) return false;
    const gguf *g = &m->gguf;
    m->tensor = g->tensor;
    m->tensors = g->tensors;
    if (!gguf_text(g, "general.architecture", &architecture, why)) return false;
    if (!slice_is(architecture, "llama"))
        return refuse(why, "a model of the architecture \"%.*s\"; this program knows \"llama\"", SHOWN(architecture));
    const stored *embedding = model_tensor(m, MODEL_EMBEDDING, 0);
    m->config.vocabulary = embedding && embedding->rank == 2 ? embedding->shape[0] : 0;
    return read_sizes(g, &m->config, why) && read_positions(g, &m->config, why) && read_factors(m, why) &&
           read_tokenizer(g, &m->tokenizer, why) && gguf_text(g, "tokenizer.chat_template", &m->chat_template, why) &&
           model_check(m, why);
}
