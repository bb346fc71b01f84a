/* SPDX-License-Identifier: Apache-2.0 */
/* What a file says of a model of Llama's family: sizes, tensors, tokenizer. */
#ifndef GENERATE_MODEL_H
#define GENERATE_MODEL_H

#include "gguf.h"
#include "safetensors.h"
#include "tokenizer.h"

enum { MODEL_MAX_LAYERS = 1024, MODEL_MAX_HEAD = 1024, MODEL_MAX_FILES = 256 };

typedef struct model_config {
    int64_t layers, width, hidden, vocabulary, context;
    int64_t heads, kv_heads, head; /* of the queries; of the keys and values; elements of one */
    int64_t rotary;                /* elements of a head that positions turn */
    bool interleaved;              /* which pairs they are: as in trine_rope() */
    double epsilon, theta;
    double divisor[MODEL_MAX_HEAD / 2]; /* pair i turns by theta^(-2i/rotary) / divisor[i] for each position */
} model_config;

/* The tensors of a model. Those from MODEL_NORM on are of each layer. */
typedef enum model_role {
    MODEL_EMBEDDING,
    MODEL_LAST_NORM,
    MODEL_HEAD,
    MODEL_ROPE_FACTORS,
    MODEL_NORM,
    MODEL_QUERY,
    MODEL_KEY,
    MODEL_VALUE,
    MODEL_MIXED,
    MODEL_MIDDLE_NORM,
    MODEL_GATE,
    MODEL_UP,
    MODEL_DOWN,
    MODEL_ROLES
} model_role;

/* What a kind of file calls them. A layer's are `layer`, its number, a point, and the role's name. */
typedef struct model_names {
    const char *layer, *name[MODEL_ROLES];
} model_names;

typedef struct model_file {
    mapping file[MODEL_MAX_FILES + 3]; /* all that it was read from */
    int files;
    stored *tensor;
    int64_t tensors;
    gguf gguf;         /* whose tensors they are; */
    safetensors *part; /* or that of several files, */
    stored *joined;    /* joined */
    int parts;
    const model_names *names;
    model_config config;
    tokenizer tokenizer;
    slice chat_template; /* empty where there is none */
} model_file;

/* Reads the description of a GGUF file, or of a folder as transformers saves it; the tensors' data stay in the files.
 * model_close() also takes one that is half open. */
bool model_open(model_file *m, const char *path, problem *why);
void model_close(model_file *m);

/* The same of bytes in memory, which must stay there, into a model_file of zeros. */
bool model_parse_gguf(model_file *m, const uint8_t *bytes, size_t size, problem *why);

/* What the files of a folder hold. */
typedef struct model_parts {
    slice config, tokenizer, chat_template; /* the last may be empty */
    slice weights[MODEL_MAX_FILES];
    int weight_files;
} model_parts;

bool model_open_folder(model_file *m, const char *path, problem *why);
bool model_parse_hugging_face(model_file *m, const model_parts *parts, problem *why);

/* The tokenizer of a tokenizer.json. */
bool model_tokenizer_json(tokenizer *t, slice text, problem *why);

/* Whether sizes are in range, and all tensors are there, of the right sizes, and no others. */
bool model_check(model_file *m, problem *why);

/* A tensor of a model that was checked. NULL: the file has none; only MODEL_HEAD and MODEL_ROPE_FACTORS may lack. */
const stored *model_tensor(const model_file *m, model_role role, int64_t layer);

#endif
