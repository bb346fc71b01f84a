/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a folder in which transformers has saved a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

typedef struct folder {
    model_file *m;
    const char *path;
    model_parts parts;
    slice name[MODEL_MAX_FILES]; /* of the files of tensors, in an index that is open */
} folder;

static bool full_name(const folder *f, slice name, char *out, size_t size) {
    const int length = snprintf(out, size, "%s/%.*s", f->path, (int)name.size, name.bytes);
    return length >= 0 && (size_t)length < size;
}

static bool is_there(const folder *f, const char *name) {
    char full[4096];
    return full_name(f, slice_of(name), full, sizeof full) && access(full, R_OK) == 0;
}

/* Maps a file, and tells what it holds. */
static bool add_file(folder *f, slice name, slice *out, problem *why) {
    char full[4096];
    mapping *file = &f->m->file[f->m->files];
    if (name.size > 255 || !full_name(f, name, full, sizeof full))
        return refuse(why, "%s: the name of a file in it is too long", f->path);
    if (!mapping_open(file, full, why)) return false;
    f->m->files++;
    *out = (slice){ (const char *)file->bytes, file->size };
    return true;
}

/* Maps a file of tensors, unless it was already. */
static bool add_weights(folder *f, slice name, problem *why) {
    const int known = f->parts.weight_files;
    for (int i = 0; i < known; i++)
        if (slice_same(f->name[i], name)) return true;
    if (known == MODEL_MAX_FILES) return refuse(why, "%s: there are too many files", f->path);
    f->name[known] = name;
    f->parts.weight_files++;
    return add_file(f, name, &f->parts.weights[known], why);
}

/* The files that an index names for tensors. They are of this folder and no other. */
static bool add_indexed(folder *f, const json *j, problem *why) {
    const int32_t map = json_member(j, 0, "weight_map");
    if (map < 0 || j->node[map].type != JSON_OBJECT) return refuse(why, "%s: the index has no weight_map", f->path);
    for (int32_t i = map + 1; i < j->node[map].after; i = j->node[i + 1].after) {
        const slice name = j->node[i + 1].text;
        if (j->node[i + 1].type != JSON_STRING || name.size == 0 || name.bytes[0] == '.' ||
            memchr(name.bytes, '/', name.size) || memchr(name.bytes, 0, name.size))
            return refuse(why, "%s: the index names \"%.*s\", which is no file of it", f->path, SHOWN(name));
        if (!add_weights(f, name, why)) return false;
    }
    return f->parts.weight_files > 0 || refuse(why, "%s: the index names no files", f->path);
}

static bool add_all_weights(folder *f, problem *why) {
    static const char index[] = "model.safetensors.index.json";
    slice text;
    json j = { 0 };
    problem inner = { 0 };
    if (!is_there(f, index) || is_there(f, "model.safetensors"))
        return add_weights(f, slice_of("model.safetensors"), why);
    if (!add_file(f, slice_of(index), &text, why)) return false;
    const bool good =
        json_parse(&j, text, &inner) ? add_indexed(f, &j, why) : refuse(why, "%s/%s: %s", f->path, index, inner.text);
    json_free(&j);
    return good;
}

static bool open_all(folder *f, problem *why) {
    static const char template[] = "chat_template.jinja"; /* since transformers 5; need not be there */
    problem inner = { 0 };
    return add_all_weights(f, why) && add_file(f, slice_of("config.json"), &f->parts.config, why) &&
           add_file(f, slice_of("tokenizer.json"), &f->parts.tokenizer, why) &&
           (!is_there(f, template) || add_file(f, slice_of(template), &f->parts.chat_template, why)) &&
           (model_parse_hugging_face(f->m, &f->parts, &inner) || refuse(why, "%s: %s", f->path, inner.text));
}

bool model_open_folder(model_file *m, const char *path, problem *why) {
    folder *f = calloc(1, sizeof *f);
    if (!f) return refuse(why, "out of memory");
    f->m = m;
    f->path = path;
    const bool good = open_all(f, why);
    free(f);
    return good;
}
