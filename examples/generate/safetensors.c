/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a safetensors file apart. */
#include <stdlib.h>

#include "safetensors.h"

enum { MAX_RANK = 4 };

static bool read_shape(const json *j, int32_t node, stored *t, problem *why) {
    const int32_t shape = json_member(j, node, "shape");
    if (shape < 0 || j->node[shape].type != JSON_ARRAY) return refuse(why, "%.*s has no shape", SHOWN(t->name));
    for (int32_t i = shape + 1; i < j->node[shape].after; i = j->node[i].after) {
        uint64_t n;
        if (t->rank == MAX_RANK) return refuse(why, "%.*s has more than 4 dimensions", SHOWN(t->name));
        if (!json_index(j, i, &n)) return refuse(why, "%.*s has no shape", SHOWN(t->name));
        t->shape[t->rank++] = (int64_t)n;
    }
    return true;
}

/* `left` bytes of data are at `data`. */
static bool read_place(const json *j, int32_t node, stored *t, const uint8_t *data, uint64_t left, problem *why) {
    const int32_t offsets = json_member(j, node, "data_offsets");
    uint64_t begin, end, bytes;
    int64_t count;
    if (offsets < 0 || j->node[offsets].type != JSON_ARRAY || j->node[offsets].after != offsets + 3 ||
        !json_index(j, offsets + 1, &begin) || !json_index(j, offsets + 2, &end))
        return refuse(why, "%.*s has no place in the file", SHOWN(t->name));
    if (!stored_size(t, &count, &bytes)) return refuse(why, "%.*s: its sizes overflow", SHOWN(t->name));
    if (begin > end || end > left) return refuse(why, "%.*s goes beyond the file's end", SHOWN(t->name));
    if (bytes != end - begin) return refuse(why, "%.*s takes other bytes than its shape needs", SHOWN(t->name));
    t->data = data + begin;
    return true;
}

static bool read_tensors(safetensors *s, const uint8_t *data, uint64_t left, problem *why) {
    const json *j = &s->header;
    s->tensor = calloc((size_t)j->nodes + 1, sizeof *s->tensor);
    if (!s->tensor) return refuse(why, "out of memory");
    for (int32_t i = 1; i < j->nodes; i = j->node[i + 1].after) {
        stored *t = &s->tensor[s->tensors];
        slice type = { 0 };
        t->name = j->node[i].text;
        if (slice_is(t->name, "__metadata__")) continue;
        if (!json_text(j, i + 1, "dtype", &type, why)) return false;
        t->type = storage_named(type);
        if (!t->type || t->type->block > 1)
            return refuse(why, "%.*s is of the type \"%.*s\", which this program does not read", SHOWN(t->name),
                          SHOWN(type));
        if (!read_shape(j, i + 1, t, why) || !read_place(j, i + 1, t, data, left, why)) return false;
        s->tensors++;
    }
    return true;
}

bool safetensors_parse(safetensors *s, const uint8_t *bytes, size_t size, problem *why) {
    cursor c = { bytes, bytes + size };
    uint64_t length;
    const uint8_t *text;
    *s = (safetensors){ 0 };
    if (!cursor_u64(&c, &length) || !cursor_take(&c, length, &text)) return refuse(why, "not a safetensors file");
    bool good = json_parse(&s->header, (slice){ (const char *)text, (size_t)length }, why);
    if (good && s->header.node[0].type != JSON_OBJECT) good = refuse(why, "not a safetensors file");
    good = good && read_tensors(s, c.at, (uint64_t)(c.end - c.at), why);
    if (!good) safetensors_free(s);
    return good;
}

void safetensors_free(safetensors *s) {
    json_free(&s->header);
    free(s->tensor);
    *s = (safetensors){ 0 };
}
