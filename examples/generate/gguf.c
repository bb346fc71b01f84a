/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a GGUF file apart. */
#include <stdlib.h>
#include <string.h>

#include "gguf.h"

enum { MAX_RANK = 4, DEPTH = 4 /* of arrays within arrays */ };

/* Bytes of a value of each type; 0: it tells its own length. */
static const int size_of[GGUF_TYPES] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8
};

bool gguf_next_text(cursor *c, slice *out) {
    uint64_t size;
    const uint8_t *bytes;
    if (!cursor_u64(c, &size) || !cursor_take(c, size, &bytes)) return false;
    *out = (slice){ (const char *)bytes, (size_t)size };
    return true;
}

bool gguf_next_i32(cursor *c, int32_t *out) {
    uint32_t bits;
    if (!cursor_u32(c, &bits)) return false;
    memcpy(out, &bits, sizeof bits);
    return true;
}

static bool array_head(cursor *c, uint32_t *element_out, uint64_t *count_out) {
    return cursor_u32(c, element_out) && cursor_u64(c, count_out) && *element_out < GGUF_TYPES;
}

/* Goes past `count` values of a type. Each takes a byte at least, so that no count makes this longer than the file. */
static bool skip(cursor *c, uint32_t type, uint64_t count, int depth) {
    const uint8_t *unused;
    uint64_t bytes;
    slice text;
    if (size_of[type])
        return !__builtin_mul_overflow(count, (uint64_t)size_of[type], &bytes) && cursor_take(c, bytes, &unused);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t element;
        uint64_t inner;
        if (type == GGUF_STRING ? !gguf_next_text(c, &text)
                                : depth == 0 || !array_head(c, &element, &inner) || !skip(c, element, inner, depth - 1))
            return false;
    }
    return true;
}

static bool read_value(cursor *c, gguf_value *v, problem *why) {
    if (!gguf_next_text(c, &v->key) || !cursor_u32(c, &v->type)) return refuse(why, "the file ends within its keys");
    if (v->type >= GGUF_TYPES) return refuse(why, "%.*s: there is no type %u of values", SHOWN(v->key), v->type);
    v->element = v->type;
    v->count = 1;
    if (v->type == GGUF_ARRAY && !array_head(c, &v->element, &v->count))
        return refuse(why, "%.*s: an array of nothing known", SHOWN(v->key));
    v->data.at = c->at;
    if (!skip(c, v->element, v->count, DEPTH))
        return refuse(why, "%.*s: the value goes beyond the file's end", SHOWN(v->key));
    v->data.end = c->at;
    return true;
}

/* The dimensions stand in the file with the contiguous one first. The offset counts from the beginning of the data. */
static bool read_tensor(cursor *c, stored *t, uint64_t *offset_out, problem *why) {
    uint32_t rank, type;
    if (!gguf_next_text(c, &t->name) || !cursor_u32(c, &rank))
        return refuse(why, "the file ends within its list of tensors");
    if (rank > MAX_RANK) return refuse(why, "%.*s has %u dimensions", SHOWN(t->name), rank);
    t->rank = (int32_t)rank;
    for (int i = t->rank - 1; i >= 0; i--) {
        uint64_t n;
        if (!cursor_u64(c, &n)) return refuse(why, "the file ends within its list of tensors");
        if (n > INT64_MAX) return refuse(why, "%.*s has more elements than memory can", SHOWN(t->name));
        t->shape[i] = (int64_t)n;
    }
    if (!cursor_u32(c, &type) || !cursor_u64(c, offset_out))
        return refuse(why, "the file ends within its list of tensors");
    t->type = storage_numbered(type);
    if (!t->type)
        return refuse(why, "%.*s is stored as GGUF's type %u, which this program does not read", SHOWN(t->name), type);
    return true;
}

static bool place_tensor(stored *t, const uint8_t *data, uint64_t left, uint64_t offset, int64_t alignment,
                         problem *why) {
    int64_t count;
    uint64_t bytes;
    if (!stored_size(t, &count, &bytes))
        return refuse(why, "%.*s: its sizes overflow, or are not of whole blocks of %s", SHOWN(t->name), t->type->name);
    if (offset % (uint64_t)alignment) return refuse(why, "%.*s is not aligned", SHOWN(t->name));
    if (offset > left || bytes > left - offset) return refuse(why, "%.*s goes beyond the file's end", SHOWN(t->name));
    t->data = data + offset;
    return true;
}

/* An array for `count` things that take at least `least` bytes each in what is left. */
static void *room(const cursor *c, uint64_t count, uint64_t least, size_t size, problem *why) {
    if (count > (uint64_t)(c->end - c->at) / least) {
        refuse(why, "it counts more keys or tensors than the file has room for");
        return NULL;
    }
    void *memory = calloc(count + 1, size);
    if (!memory) refuse(why, "out of memory");
    return memory;
}

static bool read_tensors(gguf *g, cursor *c, const uint8_t *bytes, size_t size, problem *why) {
    int64_t alignment = 32;
    uint64_t *offset = calloc((size_t)g->tensors + 1, sizeof *offset);
    bool good = offset || refuse(why, "out of memory");
    good = good && gguf_whole(g, "general.alignment", &alignment, why);
    if (good && (alignment < 1 || alignment > 1 << 20))
        good = refuse(why, "an alignment of %lld", (long long)alignment);
    for (int64_t i = 0; good && i < g->tensors; i++) good = read_tensor(c, &g->tensor[i], &offset[i], why);
    if (good) {
        uint64_t start = (uint64_t)(c->at - bytes);
        start += (uint64_t)alignment - 1 - (start + (uint64_t)alignment - 1) % (uint64_t)alignment;
        if (start > size) start = size;
        for (int64_t i = 0; good && i < g->tensors; i++)
            good = place_tensor(&g->tensor[i], bytes + start, size - start, offset[i], alignment, why);
    }
    free(offset);
    return good;
}

bool gguf_parse(gguf *g, const uint8_t *bytes, size_t size, problem *why) {
    cursor c = { bytes, bytes + size };
    uint32_t magic, version;
    uint64_t tensors, values;
    *g = (gguf){ 0 };
    if (!cursor_u32(&c, &magic) || magic != 0x46554747) return refuse(why, "not a GGUF file");
    if (!cursor_u32(&c, &version) || version < 2 || version > 3)
        return refuse(why, "a GGUF file of another version than 2 or 3, or of another order of bytes");
    if (!cursor_u64(&c, &tensors) || !cursor_u64(&c, &values)) return refuse(why, "the file ends within its header");
    /* A key's length, a type and a byte; a name's length, a rank, a type and an offset. */
    g->value = room(&c, values, 13, sizeof *g->value, why);
    g->tensor = g->value ? room(&c, tensors, 24, sizeof *g->tensor, why) : NULL;
    bool good = g->tensor != NULL;
    for (uint64_t i = 0; good && i < values; i++) {
        good = read_value(&c, &g->value[i], why);
        g->values += good;
    }
    if (good) {
        g->tensors = (int64_t)tensors;
        good = read_tensors(g, &c, bytes, size, why);
    }
    if (!good) gguf_free(g);
    return good;
}

void gguf_free(gguf *g) {
    free(g->value);
    free(g->tensor);
    *g = (gguf){ 0 };
}

/* ----------------------------------------------------------------------------------------------------------- values */

const gguf_value *gguf_find(const gguf *g, const char *key) {
    for (int64_t i = 0; i < g->values; i++)
        if (slice_is(g->value[i].key, key)) return &g->value[i];
    return NULL;
}

static bool wrong_type(const char *key, problem *why) { return refuse(why, "%s is not of the type it should be", key); }

bool gguf_whole(const gguf *g, const char *key, int64_t *out, problem *why) {
    const gguf_value *v = gguf_find(g, key);
    if (!v) return true;
    if (v->type == GGUF_ARRAY || v->type == GGUF_STRING || v->type == GGUF_F32 || v->type == GGUF_F64)
        return wrong_type(key, why);
    const uint64_t bits = little_endian(v->data.at, size_of[v->type]);
    switch (v->type) {
    case GGUF_I8: *out = (int8_t)bits; return true;
    case GGUF_I16: *out = (int16_t)bits; return true;
    case GGUF_I32: *out = (int32_t)bits; return true;
    default: *out = (int64_t)bits; return (v->type == GGUF_I64 || *out >= 0) || refuse(why, "%s is too large", key);
    }
}

bool gguf_number(const gguf *g, const char *key, double *out, problem *why) {
    const gguf_value *v = gguf_find(g, key);
    float single;
    if (!v) return true;
    if (v->type == GGUF_F32) {
        const uint32_t bits = (uint32_t)little_endian(v->data.at, 4);
        memcpy(&single, &bits, sizeof single);
        *out = (double)single;
        return true;
    }
    if (v->type == GGUF_F64) {
        const uint64_t bits = little_endian(v->data.at, 8);
        memcpy(out, &bits, sizeof bits);
        return true;
    }
    int64_t whole;
    if (!gguf_whole(g, key, &whole, why)) return false;
    *out = (double)whole;
    return true;
}

bool gguf_text(const gguf *g, const char *key, slice *out, problem *why) {
    const gguf_value *v = gguf_find(g, key);
    if (!v) return true;
    cursor c = v->data;
    return (v->type == GGUF_STRING && gguf_next_text(&c, out)) || wrong_type(key, why);
}

bool gguf_flag(const gguf *g, const char *key, bool *out, problem *why) {
    const gguf_value *v = gguf_find(g, key);
    if (!v) return true;
    if (v->type != GGUF_BOOL) return wrong_type(key, why);
    *out = *v->data.at != 0;
    return true;
}
