/* SPDX-License-Identifier: Apache-2.0 */
/* A model as transformers saves it: config.json, model.safetensors, tokenizer.json. Pairs that turn are half a head
 * apart. */
#include <math.h>
#include <stdlib.h>

#include "model.h"

static const model_names names = { .layer = "model.layers.",
                                   .name = { [MODEL_EMBEDDING] = "model.embed_tokens.weight",
                                             [MODEL_LAST_NORM] = "model.norm.weight",
                                             [MODEL_HEAD] = "lm_head.weight",
                                             [MODEL_NORM] = "input_layernorm.weight",
                                             [MODEL_QUERY] = "self_attn.q_proj.weight",
                                             [MODEL_KEY] = "self_attn.k_proj.weight",
                                             [MODEL_VALUE] = "self_attn.v_proj.weight",
                                             [MODEL_MIXED] = "self_attn.o_proj.weight",
                                             [MODEL_MIDDLE_NORM] = "post_attention_layernorm.weight",
                                             [MODEL_GATE] = "mlp.gate_proj.weight",
                                             [MODEL_UP] = "mlp.up_proj.weight",
                                             [MODEL_DOWN] = "mlp.down_proj.weight" } };

/* ------------------------------------------------------------------------------------------------------------ sizes */

static bool read_sizes(const json *j, model_config *c, problem *why) {
    slice activation = slice_of("silu");
    if (!json_whole(j, 0, "num_hidden_layers", &c->layers, why) || !json_whole(j, 0, "hidden_size", &c->width, why) ||
        !json_whole(j, 0, "intermediate_size", &c->hidden, why) ||
        !json_whole(j, 0, "vocab_size", &c->vocabulary, why) ||
        !json_whole(j, 0, "max_position_embeddings", &c->context, why) ||
        !json_whole(j, 0, "num_attention_heads", &c->heads, why) || !json_text(j, 0, "hidden_act", &activation, why))
        return false;
    if (c->heads < 1) return refuse(why, "num_attention_heads is missing or out of range");
    c->kv_heads = c->heads;
    c->head = c->width / c->heads;
    if (!slice_is(activation, "silu"))
        return refuse(why, "the activation \"%.*s\"; this program knows \"silu\"", SHOWN(activation));
    if (!json_whole(j, 0, "num_key_value_heads", &c->kv_heads, why) || !json_whole(j, 0, "head_dim", &c->head, why))
        return false;
    c->rotary = c->head;
    return true;
}

/* How Llama 3.1 slows pairs down: by `factor` those that turn less than `low` times within the context that the model
 * was trained on, those that turn more than `high` times not, others in between. */
static bool read_llama3(const json *j, int32_t scaling, model_config *c, problem *why) {
    double factor = 0, low = 0, high = 0, trained = 0;
    if (!json_number(j, scaling, "factor", &factor, why) || !json_number(j, scaling, "low_freq_factor", &low, why) ||
        !json_number(j, scaling, "high_freq_factor", &high, why) ||
        !json_number(j, scaling, "original_max_position_embeddings", &trained, why))
        return false;
    if (!(factor >= 1 && low > 0 && high > low && trained >= 1))
        return refuse(why, "the scaling of positions is out of range");
    for (int64_t i = 0; i < c->rotary / 2 && i < MODEL_MAX_HEAD / 2; i++) {
        const double turns = trained * pow(c->theta, -2 * (double)i / (double)c->rotary) / 6.283185307179586;
        const double share = fmin(fmax((turns - low) / (high - low), 0), 1); /* of what is not slowed down */
        c->divisor[i] = 1 / (share + (1 - share) / factor);
    }
    return true;
}

/* transformers 5 has one object of all this; before, the base stood alone. */
static bool read_positions(const json *j, model_config *c, problem *why) {
    slice type = slice_of("default");
    double factor = 1;
    int32_t scaling = json_member(j, 0, "rope_parameters");
    if (scaling < 0) scaling = json_member(j, 0, "rope_scaling");
    c->theta = 10000;
    c->epsilon = 1e-6;
    if (!json_number(j, 0, "rms_norm_eps", &c->epsilon, why) || !json_number(j, 0, "rope_theta", &c->theta, why) ||
        !json_number(j, scaling, "rope_theta", &c->theta, why) || !json_text(j, scaling, "type", &type, why) ||
        !json_text(j, scaling, "rope_type", &type, why))
        return false;
    for (int i = 0; i < MODEL_MAX_HEAD / 2; i++) c->divisor[i] = 1;
    if (slice_is(type, "default")) return true;
    if (slice_is(type, "llama3")) return read_llama3(j, scaling, c, why);
    if (!slice_is(type, "linear"))
        return refuse(why, "positions are scaled by \"%.*s\", which this program does not know", SHOWN(type));
    if (!json_number(j, scaling, "factor", &factor, why)) return false;
    for (int i = 0; i < MODEL_MAX_HEAD / 2; i++) c->divisor[i] = factor;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- tokenizer */

static bool add_stop(const json *j, int32_t node, tokenizer *t, problem *why) {
    uint64_t id;
    if (!json_index(j, node, &id) || id >= (uint64_t)t->tokens) return refuse(why, "eos_token_id is no token");
    if (t->stops == sizeof t->stop / sizeof t->stop[0]) return refuse(why, "there are too many tokens to stop at");
    t->stop[t->stops++] = (int32_t)id;
    return true;
}

static bool read_stops(const json *j, tokenizer *t, problem *why) {
    const int32_t ends = json_member(j, 0, "eos_token_id");
    if (ends < 0) return true;
    if (j->node[ends].type != JSON_ARRAY) return add_stop(j, ends, t, why);
    for (int32_t i = ends + 1; i < j->node[ends].after; i = j->node[i].after)
        if (!add_stop(j, i, t, why)) return false;
    return true;
}

static bool read_config(const json *j, model_file *m, problem *why) {
    slice type = slice_of("none");
    bool tied = false;
    if (!json_text(j, 0, "model_type", &type, why) || !json_flag(j, 0, "tie_word_embeddings", &tied, why)) return false;
    if (!slice_is(type, "llama"))
        return refuse(why, "a model of the type \"%.*s\"; this program knows \"llama\"", SHOWN(type));
    if (!tied && !model_tensor(m, MODEL_HEAD, 0)) return refuse(why, "there is no tensor lm_head.weight");
    return read_sizes(j, &m->config, why) && read_positions(j, &m->config, why) && read_stops(j, &m->tokenizer, why);
}

/* The tensors of all files. */
static bool read_weights(model_file *m, const model_parts *parts, problem *why) {
    m->part = calloc((size_t)parts->weight_files + 1, sizeof *m->part);
    if (!m->part) return refuse(why, "out of memory");
    for (; m->parts < parts->weight_files; m->parts++) {
        const slice file = parts->weights[m->parts];
        if (!safetensors_parse(&m->part[m->parts], (const uint8_t *)file.bytes, file.size, why)) return false;
        m->tensors += m->part[m->parts].tensors;
    }
    m->tensor = m->joined = calloc((size_t)m->tensors + 1, sizeof *m->joined);
    if (!m->joined) return refuse(why, "out of memory");
    int64_t at = 0;
    for (int i = 0; i < m->parts; i++)
        for (int64_t k = 0; k < m->part[i].tensors; k++) m->joined[at++] = m->part[i].tensor[k];
    return true;
}

bool model_parse_hugging_face(model_file *m, const model_parts *parts, problem *why) {
    json config = { 0 };
    m->names = &names;
    m->chat_template = parts->chat_template;
    const bool good = read_weights(m, parts, why) && model_tokenizer_json(&m->tokenizer, parts->tokenizer, why) &&
                      json_parse(&config, parts->config, why) && read_config(&config, m, why);
    json_free(&config);
    return good && model_check(m, why);
}
