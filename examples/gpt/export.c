/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an exported model. Both kinds hold matrices as [out, in]; GGUF has the rows of queries and keys in
 * another order, so that the pairs that positions turn are neighbours. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export.h"

enum { NAMED = 48, ALIGNMENT = 32, ROLES = 9 };

/* An element [r][c] is that at `first` + r row + c column of the parameters. */
typedef struct part {
    char transformers[NAMED], gguf[NAMED];
    int64_t rows, columns; /* rows 0: a vector */
    int64_t first, row, column;
    int64_t head; /* not 0: heads of so many rows are in another order in GGUF */
} part;

typedef struct export {
    gpt_config config;
    int64_t head;
    float *weight;
    part *part;
    int64_t parts;
}
export;

/* ------------------------------------------------------------------------------------------------------------ parts */

static part *add(export *e, const char *transformers, const char *gguf) {
    part *p = &e->part[e->parts++];
    snprintf(p->transformers, NAMED, "%s.weight", transformers);
    snprintf(p->gguf, NAMED, "%s.weight", gguf);
    return p;
}

static part *add_of_layer(export *e, int layer, const char *transformers, const char *gguf) {
    char a[NAMED - 8], b[NAMED - 8];
    snprintf(a, sizeof a, "model.layers.%d.%s", layer, transformers);
    snprintf(b, sizeof b, "blk.%d.%s", layer, gguf);
    return add(e, a, b);
}

static void place_vector(const export *e, part *p, int64_t at) {
    p->columns = e->config.width;
    p->first = at;
    p->column = 1;
}

/* Columns [from, from + rows) of a matrix [in, width]. */
static void place_columns(part *p, int64_t at, int64_t in, int64_t width, int64_t from, int64_t rows) {
    p->rows = rows;
    p->columns = in;
    p->first = at + from;
    p->row = 1;
    p->column = width;
}

static void add_layer(export *e, const gpt_layer *l, int i) {
    const gpt_config *c = &e->config;
    const int64_t q = c->heads * e->head, kv = c->kv_heads * e->head, qkv = q + 2 * kv, hidden = c->hidden;
    place_vector(e, add_of_layer(e, i, "input_layernorm", "attn_norm"), l->norm);
    part *query = add_of_layer(e, i, "self_attn.q_proj", "attn_q"),
         *key = add_of_layer(e, i, "self_attn.k_proj", "attn_k");
    place_columns(query, l->w_qkv, c->width, qkv, 0, q);
    place_columns(key, l->w_qkv, c->width, qkv, q, kv);
    query->head = key->head = e->head;
    place_columns(add_of_layer(e, i, "self_attn.v_proj", "attn_v"), l->w_qkv, c->width, qkv, q + kv, kv);
    place_columns(add_of_layer(e, i, "self_attn.o_proj", "attn_output"), l->w_mixed, c->width, c->width, 0, c->width);
    place_vector(e, add_of_layer(e, i, "post_attention_layernorm", "ffn_norm"), l->middle_norm);
    place_columns(add_of_layer(e, i, "mlp.gate_proj", "ffn_gate"), l->w_gate_up, c->width, 2 * hidden, 0, hidden);
    place_columns(add_of_layer(e, i, "mlp.up_proj", "ffn_up"), l->w_gate_up, c->width, 2 * hidden, hidden, hidden);
    place_columns(add_of_layer(e, i, "mlp.down_proj", "ffn_down"), l->w_down, hidden, c->width, 0, c->width);
}

static void add_all(export *e, const gpt_model *model) {
    part *embedding = add(e, "model.embed_tokens", "token_embd");
    embedding->rows = GPT_BYTES;
    embedding->columns = embedding->row = e->config.width;
    embedding->column = 1;
    place_vector(e, add(e, "model.norm", "output_norm"), model->final_norm);
    for (int i = 0; i < e->config.layers; i++) add_layer(e, &model->layer[i], i);
}

/* The weights in use, those of bf16 widened. */
static bool read_weights(export *e, const gpt_model *model) {
    const int64_t n = model->parameters;
    const size_t size = trine_dtype_size(model->type);
    if (trine_memory_read(model->queue, e->weight, model->weight, (size_t)n * size) != TRINE_OK) return false;
    const uint16_t *narrow = (const uint16_t *)(const void *)e->weight;
    for (int64_t i = n - 1; model->type == TRINE_BF16 && i >= 0; i--) {
        const uint32_t bits = (uint32_t)narrow[i] << 16;
        memcpy(&e->weight[i], &bits, sizeof bits);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ bytes */

static void put(FILE *to, int count, uint64_t x) {
    for (int i = 0; i < count; i++, x >>= 8) fputc((int)(x & 255), to);
}

static void put_float(FILE *to, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put(to, 4, bits);
}

static int64_t bytes_of(const part *p) { return 4 * (p->rows ? p->rows : 1) * p->columns; }

/* Row i of GGUF is that of transformers whose element of a pair, and pair, have changed places. */
static int64_t row_of(const part *p, int64_t i, bool gguf) {
    if (!gguf || !p->head) return i;
    const int64_t within = i % p->head;
    return i - within + within % 2 * (p->head / 2) + within / 2;
}

static void put_part(const export *e, const part *p, bool gguf, FILE *to) {
    for (int64_t i = 0; i < (p->rows ? p->rows : 1); i++) {
        const float *from = e->weight + p->first + row_of(p, i, gguf) * p->row;
        for (int64_t k = 0; k < p->columns; k++) put_float(to, from[k * p->column]);
    }
}

/* The letter that stands for a byte in the alphabet of bytes: bytes that print in Latin-1 stand for themselves, others,
 * in their order, for the characters from 256 on. As UTF-8. */
static void spell(int byte, char out[3]) {
    int character = 256;
    for (int b = 0; b <= byte; b++) {
        const bool prints = b > 32 && b != 173 && (b < 127 || b > 160);
        if (b == byte && prints) character = b;
        if (b < byte && !prints) character++;
    }
    const bool single = character < 128;
    out[0] = (char)(single ? character : 0xc0 | character >> 6);
    out[1] = (char)(single ? 0 : 0x80 | (character & 63));
    out[2] = 0;
}

/* ----------------------------------------------------------------------------------------------------- transformers */

static bool write_config(const export *e, FILE *to) {
    const gpt_config *c = &e->config;
    fprintf(to,
            "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_act\": \"silu\",\n"
            " \"hidden_size\": %d, \"intermediate_size\": %d, \"num_hidden_layers\": %d,\n"
            " \"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": %d,\n"
            " \"max_position_embeddings\": %d, \"vocab_size\": %d, \"tie_word_embeddings\": true,\n"
            " \"rms_norm_eps\": 1e-06, \"rope_theta\": 10000.0,\n"
            " \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000.0},\n"
            " \"attention_bias\": false, \"mlp_bias\": false, \"bos_token_id\": null, \"eos_token_id\": null,\n"
            " \"torch_dtype\": \"float32\"}\n",
            (int)c->width, (int)c->hidden, (int)c->layers, (int)c->heads, (int)c->kv_heads, (int)e->head,
            (int)c->context, GPT_BYTES);
    return true;
}

static bool write_tokenizer(const export *e, FILE *to) {
    (void)e;
    fputs(
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [], \"normalizer\": null,\n"
        " \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true,"
        " \"use_regex\": true},\n"
        " \"post_processor\": null,\n"
        " \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true,"
        " \"use_regex\": true},\n"
        " \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null,"
        " \"continuing_subword_prefix\": null,\n"
        "  \"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
        "  \"vocab\": {",
        to);
    for (int i = 0; i < GPT_BYTES; i++) {
        char letter[3];
        spell(i, letter);
        fprintf(to, "%s\"%s%s\": %d",
                i == 0   ? ""
                : i % 10 ? ", "
                         : ",\n   ",
                i == '"' || i == '\\' ? "\\" : "", letter, i);
    }
    fputs("},\n  \"merges\": []}}\n", to);
    return true;
}

static bool write_safetensors(const export *e, FILE *to) {
    int64_t at = 0;
    char *header = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&header, &size);
    if (!text) return false;
    for (int64_t i = 0; i < e->parts; i++) {
        const part *p = &e->part[i];
        fprintf(text, "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[", i ? ',' : '{', p->transformers);
        if (p->rows) fprintf(text, "%lld,", (long long)p->rows);
        fprintf(text, "%lld],\"data_offsets\":[%lld,%lld]}", (long long)p->columns, (long long)at,
                (long long)(at + bytes_of(p)));
        at += bytes_of(p);
    }
    fputc('}', text);
    const bool good = fclose(text) == 0;
    const size_t length = (size + 7) / 8 * 8;
    if (good) {
        put(to, 8, length);
        fprintf(to, "%s%*s", header, (int)(length - size), "");
        for (int64_t i = 0; i < e->parts; i++) put_part(e, &e->part[i], false, to);
    }
    free(header);
    return good;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* The types of values. */
enum { GGUF_U32 = 4, GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_STRING = 8, GGUF_ARRAY = 9 };

static void put_text(FILE *to, const char *text) {
    put(to, 8, strlen(text));
    fputs(text, to);
}

static void put_key(FILE *to, const char *key, uint32_t type) {
    put_text(to, key);
    put(to, 4, type);
}

static void put_array(FILE *to, const char *key, uint32_t element, uint64_t count) {
    put_key(to, key, GGUF_ARRAY);
    put(to, 4, element);
    put(to, 8, count);
}

static uint64_t write_values(const export *e, FILE *to) {
    const gpt_config *c = &e->config;
    const struct {
        const char *key, *text;
    } texts[] = { { "general.architecture", "llama" },
                  { "general.name", "trine-gpt" },
                  { "tokenizer.ggml.model", "gpt2" },
                  { "tokenizer.ggml.pre", "gpt-2" } };
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = { { "llama.block_count", c->layers },         { "llama.context_length", c->context },
                    { "llama.embedding_length", c->width },     { "llama.feed_forward_length", c->hidden },
                    { "llama.attention.head_count", c->heads }, { "llama.attention.head_count_kv", c->kv_heads },
                    { "llama.rope.dimension_count", e->head },  { "llama.vocab_size", GPT_BYTES } };
    const uint64_t text_count = sizeof texts / sizeof texts[0], number_count = sizeof numbers / sizeof numbers[0];
    for (uint64_t i = 0; i < text_count; i++) {
        put_key(to, texts[i].key, GGUF_STRING);
        put_text(to, texts[i].text);
    }
    for (uint64_t i = 0; i < number_count; i++) {
        put_key(to, numbers[i].key, GGUF_U32);
        put(to, 4, (uint64_t)numbers[i].value);
    }
    put_key(to, "llama.rope.freq_base", GGUF_F32);
    put_float(to, 10000);
    put_key(to, "llama.attention.layer_norm_rms_epsilon", GGUF_F32);
    put_float(to, 1e-6f); /* what rms_norm takes where it is told none */
    put_key(to, "tokenizer.ggml.add_bos_token", GGUF_BOOL);
    put(to, 1, 0);
    put_array(to, "tokenizer.ggml.tokens", GGUF_STRING, GPT_BYTES);
    for (int i = 0; i < GPT_BYTES; i++) {
        char letter[3];
        spell(i, letter);
        put_text(to, letter);
    }
    put_array(to, "tokenizer.ggml.token_type", GGUF_I32, GPT_BYTES);
    for (int i = 0; i < GPT_BYTES; i++) put(to, 4, 1); /* of text */
    put_array(to, "tokenizer.ggml.merges", GGUF_STRING, 0);
    return text_count + number_count + 6;
}

static void pad(FILE *to) {
    while (ftell(to) % ALIGNMENT) fputc(0, to);
}

static bool write_gguf(const export *e, FILE *to) {
    char *values = NULL;
    size_t size = 0;
    uint64_t at = 0;
    FILE *memory = open_memstream(&values, &size);
    if (!memory) return false;
    const uint64_t count = write_values(e, memory);
    const bool good = fclose(memory) == 0;
    put(to, 4, 0x46554747); /* "GGUF" */
    put(to, 4, 3);          /* the version */
    put(to, 8, (uint64_t)e->parts);
    put(to, 8, count);
    if (good) fwrite(values, 1, size, to);
    for (int64_t i = 0; i < e->parts; i++) {
        const part *p = &e->part[i];
        put_text(to, p->gguf);
        put(to, 4, p->rows ? 2 : 1);
        put(to, 8, (uint64_t)p->columns);
        if (p->rows) put(to, 8, (uint64_t)p->rows);
        put(to, 4, 0); /* F32 */
        put(to, 8, at);
        at += (uint64_t)(bytes_of(p) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    for (int64_t i = 0; i < e->parts; i++) {
        pad(to);
        put_part(e, &e->part[i], true, to);
    }
    pad(to);
    free(values);
    return good;
}

/* ------------------------------------------------------------------------------------------------------------ files */

static bool write_file(const export *e, const char *folder, const char *name, bool (*write)(const export *, FILE *),
                       char *error_out, size_t error_size) {
    const size_t room = strlen(folder) + strlen(name) + 2;
    char *path = malloc(room);
    FILE *file = NULL;
    if (path) {
        snprintf(path, room, "%s/%s", folder, name);
        file = fopen(path, "wb");
    }
    bool good = file != NULL;
    if (good) {
        good = write(e, file) && !ferror(file);
        good = fclose(file) == 0 && good;
    }
    if (!good) snprintf(error_out, error_size, "%s/%s: not written: %s", folder, name, strerror(errno));
    free(path);
    return good;
}

bool gpt_export(const gpt_model *model, const char *folder, char *error_out, size_t error_size) {
    static const struct {
        const char *name;
        bool (*write)(const export *, FILE *);
    } files[] = { { "config.json", write_config },
                  { "tokenizer.json", write_tokenizer },
                  { "model.safetensors", write_safetensors },
                  { "model.gguf", write_gguf } };
    export e = { .config = model->config, .head = model->config.width / model->config.heads };
    e.weight = malloc((size_t)model->parameters * sizeof *e.weight);
    e.part = calloc((size_t)(2 + ROLES * model->config.layers), sizeof *e.part);
    bool good = e.weight && e.part;
    if (!good)
        snprintf(error_out, error_size, "out of memory");
    else if (!(good = read_weights(&e, model)))
        snprintf(error_out, error_size, "%s", trine_error_message());
    else if (!(good = mkdir(folder, 0777) == 0 || errno == EEXIST))
        snprintf(error_out, error_size, "%s: %s", folder, strerror(errno));
    if (good) add_all(&e, model);
    for (size_t i = 0; good && i < sizeof files / sizeof files[0]; i++)
        good = write_file(&e, folder, files[i].name, files[i].write, error_out, error_size);
    free(e.weight);
    free(e.part);
    return good;
}
