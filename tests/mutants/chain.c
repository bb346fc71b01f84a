/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of chains: programs in which a word is read as another. */
#include <trine/chain.h>

#include <string.h>

#include "mutant.h"

/* The program with `to` wherever it has `from`. */
static void reads(void *args, const char *from, const char *to) {
    static _Thread_local char text[2048];
    trine_chain_args *a = args;
    char *end = text;
    for (const char *at = a->program; *at && end + strlen(to) + 1 < text + sizeof text;) {
        const bool here = strncmp(at, from, strlen(from)) == 0;
        const char *put = here ? to : at;
        const size_t length = here ? strlen(to) : 1;
        memcpy(end, put, length);
        end += length;
        at += here ? strlen(from) : 1;
    }
    *end = 0;
    a->program = text;
}

#define READS(name, from, to) \
    static void name(trine_ref *ref, void *args) { \
        (void)ref; \
        reads(args, from, to); \
    }
READS(mean_is_sum, "mean_row(", "sum_row(")
READS(largest_is_least, "min_row(", "max_row(")
READS(less_is_more, "x0<", "x0>")
READS(forms_exchanged, "gelu_tanh(", "gelu(")
READS(not_rounded, "bf16(", "f32(")
READS(down_is_nearest, "floor(", "bf16(")
READS(minus_is_plus, "x0-", "x0+")
READS(root_not_inverse, "rsqrt(", "sqrt(")
READS(rows_exchanged, "r0=m;r1=", "r1=m;r0=")
READS(left_wide, "f32(", "(")
READS(number_of_f32, "0.1", "0.100000001490116")

static void stored_in_f32(trine_ref *ref) {
    for (int64_t i = 0; i < D("p") * D("q") * D("r") * D("n"); i++) V("y0")[i] = (float)V("y0")[i];
}

/* The last element of a row counts for nothing in what is reduced. */
static void last_column_lost(trine_ref *ref, void *args) {
    const int64_t n = D("n");
    (void)args;
    for (int64_t row = 0; n > 1 && row < D("p") * D("q") * D("r"); row++) V("x0")[(row + 1) * n - 1] = V("x0")[row * n];
}

const mutant mutants_chain[] = {
    { "chain", "mean_is_sum", "a mean is not divided", .before = mean_is_sum },
    { "chain", "least_is_largest", "the least of a row is the largest", .before = largest_is_least },
    { "chain", "less_is_more", "a comparison the other way round", .before = less_is_more },
    { "chain", "forms_exchanged", "gelu's form is erf in any case", .before = forms_exchanged },
    { "chain", "not_rounded", "bf16() leaves values as they are", .before = not_rounded },
    { "chain", "down_is_nearest", "floor() rounds to 8 bits", .before = down_is_nearest, .cases = 2000 },
    { "chain", "minus_is_plus", "a difference is a sum", .before = minus_is_plus },
    { "chain", "root_not_inverse", "rsqrt() is sqrt()", .before = root_not_inverse },
    { "chain", "y1_doubled", "y1 comes out twice as large", .output = "y1", .factor = 2 },
    { "chain", "rows_exchanged", "r0 gets what is r1's", .before = rows_exchanged },
    { "chain", "r1_doubled", "r1 comes out twice as large", .output = "r1", .factor = 2 },
    { "chain", "last_column_lost", "a row's last element is its first", .before = last_column_lost },
    { "chain", "left_wide", "f32() leaves values of f64 as they are", .before = left_wide, .types = "T=f64",
      .cases = 2000 },
    { "chain", "number_of_f32", "a number is f32 where all else is f64", .before = number_of_f32, .types = "T=f64",
      .cases = 2000 },
    { "chain", "stored_in_f32", "f64 goes through f32", .after = stored_in_f32, .types = "T=f64" },
    { "chain", "last_column_lost_f64", "likewise the last element, in f64", .before = last_column_lost,
      .types = "T=f64" },
    { 0 },
};
