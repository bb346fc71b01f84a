/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of the kernel specification: what a table in spec/<family>/<op>.c may say, and what its float64
 * reference is given. */
#ifndef TRINE_SPEC_H
#define TRINE_SPEC_H

#include <math.h>
#include <stdbool.h>

#include <trine/library.h>

enum {
    TRINE_MAX_TENSORS = 20, /* of an op, optional ones included */
    TRINE_MAX_PARAMS = 16,
    TRINE_MAX_TYPES = 64, /* rows of .types, and of the other lists: the last one stays free */
    TRINE_MAX_STRINGS = 64,
    TRINE_MAX_SYMBOLS = 16, /* dimensions and type variables of an op, each */
    TRINE_MAX_ARGS = 320    /* bytes of an args structure */
};

/* What a tensor is to its op. */
enum {
    IN = 1,           /* read */
    OUT = 2,          /* written, every element; IN|OUT: updated in place */
    OPTIONAL = 4,     /* may be NULL */
    TRANSPOSABLE = 8, /* the last or the second-to-last dimension is contiguous; otherwise the last must be */
    BROADCAST = 16,   /* IN: a dimension may be 1, or missing in front, where the op's dimension is not */
    EXACT = 32,       /* OUT: must equal the reference bit for bit (integers, gathers, masks, conversions) */
    ANY_STRIDE = 64   /* no dimension need be contiguous */
};

typedef struct trine_spec_tensor {
    const char *name;
    const char *type; /* a type variable of .types ("T") or the name of a type ("f32") */
    /* dimensions by spaces: a symbol, a number, or an expression of bound symbols ("nseq+1", "k-1"); in brackets: may
     * be missing in front, and is then 1. A symbol binds at its first use and must agree afterwards */
    const char *shape;
    /* what tests put in: NULL anything; "ids SIZE": integers in [0, SIZE), an expression; "ids SIZE PARAM NUMBER": or
     * the value of PARAM, or NUMBER where PARAM_set is 0; both with " alike": the same for all ranks; "places SYMBOL":
     * integers in [-1, SYMBOL] and a few beyond, of which those outside [0, SYMBOL) are no mistake; "slots SIZE":
     * integers in [0, SIZE), often no two the same, and a few that are not, which the op passes over; "ascending SIZE":
     * those in order, but for a few; "sparse": anything, each element 0 with an even chance; "offsets SYMBOL":
     * ascending from 0 to SYMBOL, or to less; "lists SYMBOL": rows that ascend within [0, SYMBOL]; "blocks SIZE PARAM":
     * integers in [0, SIZE/PARAM rounded up), an expression and a parameter, and a few that are not, which the op
     * passes over; "lengths SIZE TENSOR": up to SIZE, an expression, or if that tensor of offsets is given up to their
     * differences; "paged TABLE LENGTHS": anything, and in half of the cases NaN where none of the sequences is, whose
     * pages TABLE names and LENGTHS ends; "positive"; "unit": in [-1, 1]; both with " often": that in half of the
     * cases; "flag": anything, 0 in half of the cases; "strided TENSOR": anything, of which TENSOR has strided blocks;
     * "derived": by .prepare, from the other inputs; "saved", "positive saved": that in half of the cases; "decay
     * saved", "rate saved", "key saved": in benchmarks -1 .. 0, 0 .. 1, rows of size 1 */
    const char *fill;
    /* OUT: the bound's coefficient in unit roundoffs of the accumulator, an expression of the symbols */
    const char *terms;
    /* OUT: the part of the coefficient in unit roundoffs of the type variable T, for intermediate roundings; NULL: 0 */
    const char *rounds;
    const char *accumulate; /* OUT: accumulator; NULL: f32, or f64 where the tensor is f64 */
    uint32_t flags;
    uint32_t offset; /* in the args structure */
} trine_spec_tensor;

/* TEXT: a const char *, read during the call alone, in which spaces mean nothing: a case has it without them.
 * COMM: a trine_comm *, what makes an op one of a group. Its table describes the whole group: each tensor's first
 * dimension is the symbol `ranks`, which no other op has. A rank passes its own tensors, without that dimension; a case
 * and the reference have those of all ranks, and no communicator */
typedef enum trine_param_kind { BOOL = 1, ENUM, I32, I64, U64, F32, TEXT, COMM } trine_param_kind;

typedef struct trine_spec_param {
    const char *name;
    const char *values; /* what tests try, by spaces; for ENUM: the names of 0, 1, ... */
    const char *doc;    /* meaning and unit, one line */
    /* value of a field left zero; a true zero is then -0.0, which kernels see as 0. 0: a zero is a zero */
    double fallback;
    /* what a field left zero stands for where that is no number, "1/sqrt(d)"; -0.0, a zero that is meant, is refused */
    const char *unset;
    double min, max;   /* inclusive; infinite where not given. Floating-point values must be finite in any case */
    const char *below; /* I32: a symbol; the value must be less. NULL: none */
    trine_param_kind kind;
    uint32_t offset;
} trine_spec_param;

/* What a reference sees: dense row-major float64 copies of the inputs, of full rank; and where the results go. */
typedef struct trine_ref trine_ref;

typedef struct trine_spec {
    const char *name;
    const char *summary;
    const char *formula;
    const char *source;
    trine_spec_tensor tensors[TRINE_MAX_TENSORS];
    trine_spec_param params[TRINE_MAX_PARAMS];
    const char *types[TRINE_MAX_TYPES]; /* "T=f32 W=f32|bf16": each row is the product of its alternatives */
    /* "h % hk == 0": conditions on symbols; "C is u8": on a type variable; "with cu_seqlens_q: b == 1": if that tensor
     * is given, or "without" it; "with format=e2m1: C is u8": if that ENUM parameter has this value, which tests give
     * it only where sizes and types allow it; "with C=e4m3: n % 16 == 0": if that type variable has this value;
     * "cu_seqlens_q <-> cu_seqlens_k": both or none; "row_sums | column_sums":
     * at least one; "c -> beta": if the tensor is given, that parameter must be set, since its zero could not be told
     * from one that is meant; "dsinks -> sinks": or that other tensor must be given; "philox instead of seed": if the
     * tensor is given it has that parameter's value, and the parameter must be left zero, in its range or not */
    const char *require[TRINE_MAX_STRINGS];
    /* "y=x": y may be x, the very same view. All other overlap with an output is an error */
    const char *alias[TRINE_MAX_STRINGS];
    /* of <op>_backward, where names do not say it: "dx" is the gradient of the op's tensor x, "x" that tensor. "dout =
     * d o"; "h = residual_out with residual dropout, else x": that tensor, which the op must then have been asked for,
     * if one of those tensors was given or one of those parameters is not 0, else the other */
    const char *gradient[8];
    const char *sizes[TRINE_MAX_STRINGS]; /* "n: 0 1 3 127": what the agreement suite combines */
    /* "name: T=bf16 r=8192 n=4096 causal=1 +residual": what the bench runs, in the words of case.h */
    const char *cases[TRINE_MAX_STRINGS];
    /* an expression of the symbols; bytes follow from the tensors, from ids and from .masked */
    const char *flops;
    /* "s n": the rows and columns that `causal` and `window` mask, bottom right; of inputs that these end only what is
     * visible is read. NULL: none */
    const char *masked;
    /* a symbol along which the op separates into parts: outputs that have it are made of their part alone, others are
     * sums over the parts; dropout counts in the first output, whose outermost it is. NULL: none */
    const char *independent;
    /* small integer inputs (and parameters 0, 1) give exact sums: all kernels must return the very bits */
    bool integers_exact;
    /* results have no error, whatever the inputs: all kernels return the very bits, a NaN's own aside */
    bool exact;
    size_t args_size;
    void (*reference)(trine_ref *ref);
    void (*prepare)(trine_ref *ref); /* computes "derived" and "saved" inputs from the others; NULL: there are none */
    /* Whether parameters that fit the table are right in what it cannot say, as the grammar of a TEXT parameter, beside
     * the tensors of this set. In `text`, if size is not 0: what is wrong, or what the call takes, a line for
     * trine explain. NULL: the table says it all */
    bool (*check)(const void *args, uint32_t present, char *text, size_t size);
} trine_spec;

/* In spec/<family>/<op>.c, after `#define ARGS trine_<op>_args`:
 *     const trine_spec trine_spec_<op> = { SPEC(<op>), .summary = ..., .tensors = { TENSOR(x, IN, "T", "r n"), ...
 *       }, ... }; */
#define SPEC(op) .name = #op, .args_size = sizeof(trine_##op##_args)
#define TENSOR(field, kind, types, dims, ...) \
    { .name = #field, .flags = (kind), .type = (types), .shape = (dims), .offset = offsetof(ARGS, field), __VA_ARGS__ }
#define PARAM(field, type, ...) \
    { .name = #field, .kind = (type), .offset = offsetof(ARGS, field), .min = -INFINITY, .max = INFINITY, __VA_ARGS__ }

/* All tables, by trine_op; entry 0 is NULL. */
extern const trine_spec *const trine_specs[];

/* ---------------------------------------------------------------------------------------- what a reference may call */

struct trine_ref {
    const struct trine_plan *plan;
    /* the op's args structure, fallbacks resolved; its tensor pointers are NULL for absent ones */
    const void *args;
    const int64_t *dim;      /* values of the symbols */
    const trine_dtype *type; /* values of the type variables */
    /* by place in .tensors; NULL for absent. IN|OUT: input on entry, result on exit */
    double *value[TRINE_MAX_TENSORS];
    /* OUT: scale of the rounding error, zeroed on entry; infinite: an intermediate may overflow */
    double *magnitude[TRINE_MAX_TENSORS];
    /* OUT: absolute error allowed besides (flushed subnormals, priced roundings), zeroed on entry */
    double *slack[TRINE_MAX_TENSORS];
    /* where in the first output element 0 is, if what it sees is a part: dropout counts from there */
    uint64_t first;
};

/* The value of symbol `name`; the array of tensor `name`, NULL if absent; where its magnitudes and slacks go.
 * Unknown names abort. */
int64_t trine_ref_dim(const trine_ref *ref, const char *name);
double *trine_ref_value(const trine_ref *ref, const char *name);
double *trine_ref_magnitude(const trine_ref *ref, const char *name);
double *trine_ref_slack(const trine_ref *ref, const char *name);
trine_dtype trine_ref_type(const trine_ref *ref, const char *type_variable);

/* 2^-p with p the bits of the significand: 2^-24 for f32, 2^-8 for bf16.
 * And the largest finite and smallest positive normal values. */
double trine_unit_roundoff(trine_dtype dtype);
double trine_largest(trine_dtype dtype);
double trine_smallest_normal(trine_dtype dtype);

/* |x|; 0 for Inf and NaN. What references add up to tell whether f32 may overflow beside them, and make NaN of an
 * Inf. */
double trine_finite_abs(double x);

/* The size of all that rounds in p + q, for products p and q: 0 if one is Inf or NaN. Infinite if the sum, or one that
 * is finite, may overflow in f32. */
double trine_pair_magnitude(double p, double q);

/* x rounded once, to nearest even, to a floating-point type; overflow gives Inf, or NaN where the type has none.
 * `saturate`: the largest finite instead. */
double trine_round(double x, trine_dtype dtype, bool saturate);

/* Element `index` of an array of `dtype`, read exactly (integers beyond 2^53 excepted), and written with one
 * rounding. */
double trine_load(const void *data, trine_dtype dtype, int64_t index);
void trine_store(void *data, trine_dtype dtype, int64_t index, double value);

/* Dropout's rule: element `index` of the logical row-major tensor is kept iff word index/2%4 of Philox4x32-10, key =
 * seed, counter = (lo32(index/8), hi32(index/8), lo32(offset), hi32(offset)), is below floor((1-p) 2^32): as it is if
 * index is even, with its halves exchanged if it is odd. Salmon et al. 2011. So each element is kept with that
 * probability, and two of a word nearly independently: for p in 2^-16 ..
 * 1 - 2^-16 their correlation is at most 2^-14. */
bool trine_dropout_keep(uint64_t seed, uint64_t offset, uint64_t index, float p);
void trine_philox(uint64_t seed, uint64_t offset, uint64_t block, uint32_t word_out[4]);
/* floor((1-p) 2^32), and the scale 1/(1-p) in f32, computed from 1.0 - (double)p so that every backend has the same. */
uint64_t trine_dropout_threshold(float p);
float trine_dropout_scale(float p);
/* Of an op whose tensor "philox" may tell the key and the stream: element 0 in place of *seed, and element 1 beside
 * *offset. */
void trine_ref_philox(const trine_ref *ref, uint64_t *seed, uint64_t *offset);

#endif
