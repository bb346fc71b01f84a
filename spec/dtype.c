/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sizes of element types. */
#include <string.h>

#include <trine/base.h>

static const struct {
    trine_dtype dtype;
    const char *name;
} names[] = {
    { TRINE_I8, "i8" },
    { TRINE_I16, "i16" },
    { TRINE_I32, "i32" },
    { TRINE_I64, "i64" },
    { TRINE_U8, "u8" },
    { TRINE_U32, "u32" },
    { TRINE_F16, "f16" },
    { TRINE_F32, "f32" },
    { TRINE_F64, "f64" },
    { TRINE_BF16, "bf16" },
    { TRINE_E4M3, "e4m3" },
    { TRINE_E5M2, "e5m2" },
    { TRINE_E4M3FNUZ, "e4m3fnuz" },
    { TRINE_E5M2FNUZ, "e5m2fnuz" },
    { TRINE_E8M0, "e8m0" },
};

const char *trine_dtype_name(trine_dtype dtype) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].dtype == dtype) return names[i].name;
    return NULL;
}

size_t trine_dtype_size(trine_dtype dtype) {
    switch (dtype) {
    case TRINE_I8:
    case TRINE_U8:
    case TRINE_E4M3:
    case TRINE_E5M2:
    case TRINE_E4M3FNUZ:
    case TRINE_E5M2FNUZ:
    case TRINE_E8M0: return 1;
    case TRINE_I16:
    case TRINE_F16:
    case TRINE_BF16: return 2;
    case TRINE_I32:
    case TRINE_U32:
    case TRINE_F32: return 4;
    case TRINE_I64:
    case TRINE_F64: return 8;
    case TRINE_NONE: break;
    }
    return 0;
}

trine_dtype trine_dtype_parse(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0) return names[i].dtype;
    return TRINE_NONE;
}
