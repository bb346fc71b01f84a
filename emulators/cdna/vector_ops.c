/* SPDX-License-Identifier: Apache-2.0 */
/* The vector instructions: a loop over the lanes for each row of the .def files, and the table of them. */
#include "machine.h"
#include "vector_math.h"

typedef uint32_t b32, u32, m, b16, u16;
typedef uint64_t b64, u64;
typedef int32_t i32, i16;
typedef int64_t i64;
typedef float f32, f16, mix;
typedef double f64;

#define GET_b32(s, l) ((s)[0][l])
#define GET_u32 GET_b32
#define GET_m GET_b32
#define GET_i32(s, l) ((int32_t)(s)[0][l])
#define GET_b64(s, l) ((uint64_t)(s)[1][l] << 32 | (s)[0][l])
#define GET_u64 GET_b64
#define GET_i64(s, l) ((int64_t)GET_b64(s, l))
#define GET_b16(s, l) ((s)[0][l] & 0xffff)
#define GET_u16 GET_b16
#define GET_i16(s, l) ((int32_t)(int16_t)(s)[0][l])
#define GET_f32(s, l) bits_float((s)[0][l])
#define GET_mix GET_f32
#define GET_f64(s, l) bits_double(GET_b64(s, l))
#define GET_f16(s, l) half_float((uint16_t)(s)[0][l])
#define PUT_b32(d, l, x) ((d)[0][l] = (uint32_t)(x))
#define PUT_u32 PUT_b32
#define PUT_i32 PUT_b32
#define PUT_m PUT_b32
#define PUT_u16(d, l, x) ((d)[0][l] = (x) & 0xffff)
#define PUT_i16 PUT_u16
#define PUT_f32(d, l, x) ((d)[0][l] = float_bits(x))
#define PUT_f16(d, l, x) ((d)[0][l] = float_half(x))
#define PUT_b64(d, l, x) \
    do { \
        const uint64_t put = (uint64_t)(x); \
        (d)[0][l] = (uint32_t)put; \
        (d)[1][l] = (uint32_t)(put >> 32); \
    } while (0)
#define PUT_u64 PUT_b64
#define PUT_i64 PUT_b64
#define PUT_f64(d, l, x) PUT_b64(d, l, double_bits(x))

/* Elements of packed values: halves of a word, or the words of a pair. */
#define ELEMENT_u16(s, l, h) ((s)[0][l] >> 16 * (h) & 0xffff)
#define ELEMENT_i16(s, l, h) ((int32_t)(int16_t)((s)[0][l] >> 16 * (h)))
#define ELEMENT_f16(s, l, h) half_float((uint16_t)((s)[0][l] >> 16 * (h)))
#define ELEMENT_f32(s, l, h) bits_float((s)[h][l])
#define PACK_u16(d, l, h, x) ((d)[0][l] = (h) ? ((d)[0][l] & 0xffff) | (uint32_t)(x) << 16 : ((uint32_t)(x) & 0xffff))
#define PACK_i16 PACK_u16
#define PACK_f16(d, l, h, x) PACK_u16(d, l, h, float_half(x))
#define PACK_f32(d, l, h, x) ((d)[h][l] = float_bits(x))

#define FUNCTION(name, ...) \
    WIDE static void do_##name(lanes *const d[2], const lanes *const s[4]) { \
        for (int l = 0; l < LANES; l++) { \
            __VA_ARGS__ \
        } \
    }
#define A_(A) const A a = GET_##A(s[0], l);
#define B_(B) const B b = GET_##B(s[1], l);
#define C_(C) const C c = GET_##C(s[2], l);
#define E_(E) const E e = GET_##E(s[3], l);

#define V1(name, D, A, value) FUNCTION(name, A_(A) PUT_##D(d[0], l, value);)
#define V2(name, D, A, B, value) FUNCTION(name, A_(A) B_(B) PUT_##D(d[0], l, value);)
#define V3(name, D, A, B, C, value) FUNCTION(name, A_(A) B_(B) C_(C) PUT_##D(d[0], l, value);)
#define V4(name, D, A, B, C, E, value) FUNCTION(name, A_(A) B_(B) C_(C) E_(E) PUT_##D(d[0], l, value);)
#define V1F(name, flags, D, A, value) V1(name, D, A, value)
#define V2F(name, flags, D, A, B, value) V2(name, D, A, B, value)
#define V3F(name, flags, D, A, B, C, value) V3(name, D, A, B, C, value)
#define V4F(name, flags, D, A, B, C, E, value) V4(name, D, A, B, C, E, value)
#define V2A(name, D, A, B, value) V3(name, D, A, B, D, value)
#define V2C(name, value, carry) FUNCTION(name, A_(u32) B_(u32) PUT_u32(d[0], l, value); PUT_m(d[1], l, carry);)
#define V3C(name, value, carry) FUNCTION(name, A_(u32) B_(u32) C_(m) PUT_u32(d[0], l, value); PUT_m(d[1], l, carry);)
#define V3M(name, D, A, B, C, value, mask) \
    FUNCTION(name, A_(A) B_(B) C_(C) PUT_##D(d[0], l, value); PUT_m(d[1], l, mask); (void)a;)
#define V3MF(name, flags, D, A, B, C, value, mask) V3M(name, D, A, B, C, value, mask)
#define P2(name, E, value) \
    FUNCTION( \
        name, for (int h = 0; h < 2; h++) { \
            const E a = ELEMENT_##E(s[0], l, h), b = ELEMENT_##E(s[1], l, h); \
            PACK_##E(d[0], l, h, value); \
        })
#define P3(name, E, value) \
    FUNCTION( \
        name, for (int h = 0; h < 2; h++) { \
            const E a = ELEMENT_##E(s[0], l, h), b = ELEMENT_##E(s[1], l, h), c = ELEMENT_##E(s[2], l, h); \
            PACK_##E(d[0], l, h, value); \
        })
#define COMPARE(relation, type, value) \
    FUNCTION(v_cmp_##relation##_##type, A_(type) B_(type) PUT_m(d[0], l, value); (void)a; (void)b;)
#define SMALL_f16(s, l) (((s)[0][l] & 0x7c00) == 0)
#define SMALL_f32(s, l) (((s)[0][l] & 0x7f800000) == 0)
#define SMALL_f64(s, l) (((s)[1][l] & 0x7ff00000) == 0)
#define QUIET_f16(s, l) ((s)[0][l] >> 9 & 1)
#define QUIET_f32(s, l) ((s)[0][l] >> 22 & 1)
#define QUIET_f64(s, l) ((s)[1][l] >> 19 & 1)
#define CLASSIFY(type) \
    FUNCTION(v_cmp_class_##type, \
             A_(type) PUT_m(d[0], l, of_class((double)a, SMALL_##type(s[0], l), QUIET_##type(s[0], l), s[1][0][l]));)

#include "vector_integer.def"
#include "vector_float.def"
#include "vector_compare.def"

#undef V1
#undef V2
#undef V3
#undef V4
#undef V1F
#undef V2F
#undef V3F
#undef V4F
#undef V2A
#undef V2C
#undef V3C
#undef V3M
#undef V3MF
#undef P2
#undef P3
#undef COMPARE
#undef CLASSIFY

#define ROW(name, flags, signature) { #name, signature, execute_vector, { .vector = do_##name }, flags, CDNA_VECTOR },
#define V1(name, D, A, value) ROW(name, 0, #D " = " #A)
#define V2(name, D, A, B, value) ROW(name, 0, #D " = " #A " " #B)
#define V3(name, D, A, B, C, value) ROW(name, 0, #D " = " #A " " #B " " #C)
#define V4(name, D, A, B, C, E, value) ROW(name, 0, #D " = " #A " " #B " " #C " " #E)
#define V1F(name, flags, D, A, value) ROW(name, flags, #D " = " #A)
#define V2F(name, flags, D, A, B, value) ROW(name, flags, #D " = " #A " " #B)
#define V3F(name, flags, D, A, B, C, value) ROW(name, flags, #D " = " #A " " #B " " #C)
#define V4F(name, flags, D, A, B, C, E, value) ROW(name, flags, #D " = " #A " " #B " " #C " " #E)
#define V2A(name, D, A, B, value) ROW(name, 0, #D " += " #A " " #B)
#define V2C(name, value, carry) ROW(name, 0, "u32 m = u32 u32")
#define V3C(name, value, carry) ROW(name, 0, "u32 m = u32 u32 m")
#define V3M(name, D, A, B, C, value, mask) ROW(name, 0, #D " m = " #A " " #B " " #C)
#define V3MF(name, flags, D, A, B, C, value, mask) ROW(name, flags, #D " m = " #A " " #B " " #C)
#define P2(name, E, value) ROW(name, 0, "pk_" #E " = pk_" #E " pk_" #E)
#define P3(name, E, value) ROW(name, 0, "pk_" #E " = pk_" #E " pk_" #E " pk_" #E)
#define COMPARED(relation, type, signature) \
    ROW(v_cmp_##relation##_##type, 0, signature){ "v_cmpx_" #relation "_" #type, \
                                                  signature, \
                                                  execute_vector, \
                                                  { .vector = do_v_cmp_##relation##_##type }, \
                                                  ROW_COMPARES, \
                                                  CDNA_VECTOR },
#define COMPARE(relation, type, value) COMPARED(relation, type, "m = " #type " " #type)
#define CLASSIFY(type) COMPARED(class, type, "m = " #type " b32")

const row vector_rows[] = {
#include "vector_integer.def"
#include "vector_float.def"
#include "vector_compare.def"
    { 0 }
};
