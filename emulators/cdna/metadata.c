/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata note of a code object: MessagePack, of which only what kernels need is kept (LLVM's AMDGPU usage guide,
 * "Code Object V5 Metadata"). */
#include <stdlib.h>
#include <string.h>

#include "machine.h"

typedef struct reader {
    const unsigned char *at, *end;
    bool ok;
} reader;

typedef struct value {
    enum { NOTHING, INTEGER, STRING, ARRAY, MAP } kind;
    uint64_t number; /* of elements, for arrays and maps */
    const char *text;
} value;

static uint64_t big_endian(reader *r, int bytes) {
    uint64_t x = 0;
    if (r->end - r->at < bytes) {
        r->ok = false;
        return 0;
    }
    while (bytes-- > 0) x = x << 8 | *r->at++;
    return x;
}

static value string_of(reader *r, uint64_t length) {
    const value v = { STRING, length, (const char *)r->at };
    if ((uint64_t)(r->end - r->at) < length)
        r->ok = false;
    else
        r->at += length;
    return v;
}

static value next(reader *r) {
    const unsigned type = (unsigned)big_endian(r, 1);
    if (type < 0x80 || type >= 0xe0)
        return (value){ INTEGER, type < 0x80 ? type : (uint64_t)(int64_t)(int8_t)type, NULL };
    if (type < 0x90) return (value){ MAP, type & 15, NULL };
    if (type < 0xa0) return (value){ ARRAY, type & 15, NULL };
    if (type < 0xc0) return string_of(r, type & 31);
    switch (type) {
    case 0xc0: return (value){ NOTHING, 0, NULL };
    case 0xc2:
    case 0xc3: return (value){ INTEGER, type & 1, NULL };
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return (value){ INTEGER, big_endian(r, 1 << (type - 0xcc)), NULL };
    case 0xd9:
    case 0xda:
    case 0xdb: return string_of(r, big_endian(r, 1 << (type - 0xd9)));
    case 0xdc:
    case 0xdd: return (value){ ARRAY, big_endian(r, 2 << (type - 0xdc)), NULL };
    case 0xde:
    case 0xdf: return (value){ MAP, big_endian(r, 2 << (type - 0xde)), NULL };
    default: r->ok = false; return (value){ NOTHING, 0, NULL };
    }
}

static void skip(reader *r) {
    const value v = next(r);
    const uint64_t inner = v.kind == ARRAY ? v.number : v.kind == MAP ? 2 * v.number : 0;
    for (uint64_t i = 0; i < inner && r->ok; i++) skip(r);
}

static bool is(value v, const char *text) {
    return v.kind == STRING && strlen(text) == v.number && memcmp(v.text, text, v.number) == 0;
}

static bool read_argument(reader *r, struct cdna_argument *argument) {
    const value map = next(r);
    if (map.kind != MAP) return false;
    for (uint64_t i = 0; i < map.number && r->ok; i++) {
        const value key = next(r);
        const bool offset = is(key, ".offset"), size = is(key, ".size");
        if (offset || size) {
            *(offset ? &argument->offset : &argument->size) = (uint32_t)next(r).number;
        } else if (is(key, ".value_kind")) {
            const value kind = next(r);
            snprintf(argument->kind, sizeof argument->kind, "%.*s", (int)kind.number, kind.text);
        } else {
            skip(r);
        }
    }
    return r->ok;
}

static bool read_arguments(reader *r, cdna_kernel *kernel) {
    const value list = next(r);
    if (list.kind != ARRAY || list.number > 4096) return false;
    kernel->argument = calloc(list.number + 1, sizeof *kernel->argument);
    if (kernel->argument == NULL) return false;
    kernel->arguments = (int)list.number;
    for (int i = 0; i < kernel->arguments; i++)
        if (!read_argument(r, &kernel->argument[i])) return false;
    return true;
}

static bool read_kernel(reader *r, cdna_kernel *kernel) {
    const struct {
        const char *key;
        uint32_t *to;
    } numbers[] = { { ".kernarg_segment_size", &kernel->kernarg_size },
                    { ".group_segment_fixed_size", &kernel->lds_size },
                    { ".private_segment_fixed_size", &kernel->private_size },
                    { ".vgpr_spill_count", &kernel->vgpr_spills },
                    { ".sgpr_spill_count", &kernel->sgpr_spills },
                    { ".sgpr_count", &kernel->sgprs },
                    { ".max_flat_workgroup_size", &kernel->max_workgroup } };
    const value map = next(r);
    if (map.kind != MAP) return false;
    for (uint64_t i = 0; i < map.number && r->ok; i++) {
        const value key = next(r);
        size_t n = 0;
        while (n < sizeof numbers / sizeof numbers[0] && !is(key, numbers[n].key)) n++;
        if (n < sizeof numbers / sizeof numbers[0]) {
            *numbers[n].to = (uint32_t)next(r).number;
        } else if (is(key, ".name")) {
            const value name = next(r);
            kernel->name = name.kind == STRING ? strndup(name.text, name.number) : NULL;
        } else if (is(key, ".args")) {
            if (!read_arguments(r, kernel)) return false;
        } else {
            skip(r);
        }
    }
    return r->ok && kernel->name != NULL;
}

bool metadata_read(const unsigned char *note, size_t size, cdna_object *object) {
    reader r = { note, note + size, true };
    const value root = next(&r);
    for (uint64_t i = 0; root.kind == MAP && i < root.number && r.ok; i++) {
        if (!is(next(&r), "amdhsa.kernels")) {
            skip(&r);
            continue;
        }
        const value list = next(&r);
        if (list.kind != ARRAY || list.number > 65536) return false;
        object->kernel = calloc(list.number + 1, sizeof *object->kernel);
        if (object->kernel == NULL) return false;
        for (uint64_t k = 0; k < list.number; k++) {
            object->kernel[object->kernels++].object = object;
            if (!read_kernel(&r, &object->kernel[k])) return false;
        }
    }
    return r.ok && root.kind == MAP;
}
