/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a model, whatever file it is from. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "model.h"

bool model_open(model_file *m, const char *path, problem *why) {
    problem inner = { 0 };
    struct stat s;
    *m = (model_file){ 0 };
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return model_open_folder(m, path, why);
    mapping file;
    if (!mapping_open(&file, path, why)) return false;
    const bool good = model_parse_gguf(m, file.bytes, file.size, &inner);
    m->file[m->files++] = file;
    return good || refuse(why, "%s: %s", path, inner.text);
}

void model_close(model_file *m) {
    tokenizer_free(&m->tokenizer);
    gguf_free(&m->gguf);
    for (int i = 0; i < m->parts; i++) safetensors_free(&m->part[i]);
    free(m->part);
    free(m->joined);
    for (int i = 0; i < m->files; i++) mapping_close(&m->file[i]);
    *m = (model_file){ 0 };
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

typedef struct name {
    char text[96];
} name;

static name name_of(const model_file *m, model_role role, int64_t layer) {
    name n;
    int size = 0;
    if (role >= MODEL_NORM) size = snprintf(n.text, sizeof n.text, "%s%lld.", m->names->layer, (long long)layer);
    snprintf(n.text + size, sizeof n.text - (size_t)size, "%s", m->names->name[role]);
    return n;
}

static stored *find(const model_file *m, model_role role, int64_t layer) {
    if (!m->names->name[role]) return NULL;
    const name n = name_of(m, role, layer);
    const slice wanted = slice_of(n.text);
    for (int64_t i = 0; i < m->tensors; i++)
        if (slice_same(m->tensor[i].name, wanted)) return &m->tensor[i];
    return NULL;
}

const stored *model_tensor(const model_file *m, model_role role, int64_t layer) { return find(m, role, layer); }

/* Finds a tensor and looks at its shape; rows 0 stands for a vector. */
static bool check_tensor(model_file *m, model_role role, int64_t layer, int64_t rows, int64_t columns, bool optional,
                         problem *why) {
    stored *t = find(m, role, layer);
    if (!t && optional) return true;
    const name n = name_of(m, role, layer);
    if (!t) return refuse(why, "there is no tensor %s", n.text);
    t->used = true;
    const bool fits =
        rows ? t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns : t->rank == 1 && t->shape[0] == columns;
    if (fits) return true;
    if (!rows) return refuse(why, "%s should have %lld elements", n.text, (long long)columns);
    return refuse(why, "%s should be %lld by %lld", n.text, (long long)rows, (long long)columns);
}

static bool check_layer(model_file *m, int64_t layer, problem *why) {
    const model_config *c = &m->config;
    const int64_t q = c->heads * c->head, kv = c->kv_heads * c->head, width = c->width, hidden = c->hidden;
    const struct {
        model_role role;
        int64_t rows, columns;
    } parts[] = { { MODEL_NORM, 0, width },      { MODEL_QUERY, q, width },   { MODEL_KEY, kv, width },
                  { MODEL_VALUE, kv, width },    { MODEL_MIXED, width, q },   { MODEL_MIDDLE_NORM, 0, width },
                  { MODEL_GATE, hidden, width }, { MODEL_UP, hidden, width }, { MODEL_DOWN, width, hidden } };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!check_tensor(m, parts[i].role, layer, parts[i].rows, parts[i].columns, false, why)) return false;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ sizes */

static bool within(const char *what, int64_t value, int64_t most, problem *why) {
    return (value >= 1 && value <= most) ||
           refuse(why, "%s is %lld, which should be 1 to %lld", what, (long long)value, (long long)most);
}

static bool check_config(const model_config *c, problem *why) {
    if (!within("the number of layers", c->layers, MODEL_MAX_LAYERS, why) ||
        !within("the width", c->width, 1 << 16, why) || !within("the hidden width", c->hidden, 1 << 20, why) ||
        !within("the vocabulary", c->vocabulary, 1 << 22, why) || !within("the context", c->context, 1 << 24, why) ||
        !within("the number of heads", c->heads, 1 << 12, why) ||
        !within("the number of key and value heads", c->kv_heads, c->heads, why) ||
        !within("the size of a head", c->head, MODEL_MAX_HEAD, why))
        return false;
    if (c->heads % c->kv_heads) return refuse(why, "the key and value heads do not divide the heads");
    if (c->rotary < 2 || c->rotary > c->head || c->rotary % 2)
        return refuse(why, "%lld elements of a head are to turn", (long long)c->rotary);
    if (!(c->epsilon >= 0 && c->epsilon < 1)) return refuse(why, "the norms' epsilon is not from 0 to 1");
    if (!(c->theta > 0 && c->theta < 1e30)) return refuse(why, "the positions' base is out of range");
    return true;
}

bool model_check(model_file *m, problem *why) {
    const model_config *c = &m->config;
    if (!check_config(c, why)) return false;
    if (!check_tensor(m, MODEL_EMBEDDING, 0, c->vocabulary, c->width, false, why) ||
        !check_tensor(m, MODEL_LAST_NORM, 0, 0, c->width, false, why) ||
        !check_tensor(m, MODEL_HEAD, 0, c->vocabulary, c->width, true, why) ||
        !check_tensor(m, MODEL_ROPE_FACTORS, 0, 0, c->rotary / 2, true, why))
        return false;
    for (int64_t i = 0; i < c->layers; i++)
        if (!check_layer(m, i, why)) return false;
    for (int64_t i = 0; i < m->tensors; i++)
        if (!m->tensor[i].used)
            return refuse(why, "%.*s is no tensor of this program's model", SHOWN(m->tensor[i].name));
    for (int64_t i = 0; i < c->rotary / 2; i++)
        if (!(c->divisor[i] > 0 && c->divisor[i] < 1e30)) return refuse(why, "a position's divisor is out of range");
    return m->tokenizer.tokens <= c->vocabulary || refuse(why, "the tokenizer has %d tokens, the embedding %lld",
                                                          (int)m->tokenizer.tokens, (long long)c->vocabulary);
}
