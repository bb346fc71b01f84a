/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the specification, parsed once: what checks, workspace sizes, tests and tools read. */
#ifndef TRINE_PLAN_H
#define TRINE_PLAN_H

#include "spec.h"

/* An expression over the symbols, in postfix form. */
typedef struct trine_expr {
    int length; /* 0: none */
    struct {
        /* '#' constant, '$' symbol, + - * / %, '=' '!' '<' '>' 'l' (<=) 'g' (>=), 'm' min, 'M' max, 'L' ceil(log2) */
        char op;
        short symbol;
        double constant;
    } step[40];
} trine_expr;

/* One dimension of a tensor. */
typedef struct trine_dim {
    bool optional; /* may be missing in front */
    short symbol;  /* >= 0: the dimension is this symbol plus `add`; -1: expr */
    int64_t add;
    trine_expr expr;
} trine_dim;

typedef struct trine_plan_tensor {
    const trine_spec_tensor *spec;
    int rank;
    trine_dim dim[TRINE_MAX_RANK];
    short type;        /* type variable, or -1 */
    trine_dtype dtype; /* where type is -1 */
    trine_expr terms, rounds;
} trine_plan_tensor;

typedef enum trine_require_kind {
    REQUIRE_EXPR = 1,
    REQUIRE_BOTH,
    REQUIRE_ANY,
    REQUIRE_PARAM,
    REQUIRE_TENSOR,
    REQUIRE_INSTEAD,
    REQUIRE_TYPE
} trine_require_kind;

typedef struct trine_plan_require {
    trine_require_kind kind;
    short with; /* REQUIRE_EXPR: only if this tensor is given, -1 always; REQUIRE_TENSOR: the one that must be given */
    bool without; /* or only if it is not */
    /* REQUIRE_BOTH, REQUIRE_ANY: set of tensors; REQUIRE_PARAM and REQUIRE_TENSOR: the one with which
     * `param` must be set, or `with` be given; REQUIRE_INSTEAD: the one that stands for `param` */
    uint32_t tensors;
    short param;
    trine_expr expr;
    const char *text;
    short when, value; /* REQUIRE_EXPR, REQUIRE_TYPE: only if this ENUM parameter has this value; -1: whatever it is */
    short type; /* REQUIRE_TYPE: the type variable that must be `dtype`; REQUIRE_EXPR: only if it is, -1 always */
    trine_dtype dtype;
} trine_plan_require;

typedef struct trine_plan {
    const trine_spec *spec;
    int op; /* a trine_op: an int here, that kernels do not depend on the list of ops */
    int tensors, params, symbols, types, combos,
        requires;
    trine_plan_tensor tensor[TRINE_MAX_TENSORS];
    const char *symbol_name[TRINE_MAX_SYMBOLS];
    const char *type_name[TRINE_MAX_SYMBOLS];
    trine_dtype (*combo)[TRINE_MAX_SYMBOLS]; /* admissible values of the type variables */
    trine_plan_require require[TRINE_MAX_STRINGS];
    uint32_t alias[TRINE_MAX_TENSORS];                   /* for each output, the set of tensors it may be */
    double min[TRINE_MAX_PARAMS], max[TRINE_MAX_PARAMS]; /* of the parameters, BOOL and ENUM included */
    trine_expr flops;
    short independent;             /* symbol, or -1 */
    short masked[2];               /* symbols of rows and columns, or -1 */
    short comm, ranks;             /* of an op of a group: the COMM parameter, and the symbol `ranks`; else -1 */
    short below[TRINE_MAX_PARAMS]; /* the symbol that a parameter must be less than, or -1 */
} trine_plan;

/* The parsed table of an op; the first call parses them all. NULL and a message in `error_out` (may be NULL) if a table
 * is malformed, which trine_open() reports as TRINE_ERR_INTERNAL and a test of the tables catches. */
const trine_plan *trine_plan_get(int op);
const char *trine_plan_error(void);

/* 64-bit hash of everything an op's table says, comments and references excepted; and of all tables. */
uint64_t trine_op_hash(int op);
uint64_t trine_spec_hash(void);

int trine_plan_find_tensor(const trine_plan *plan, const char *name);
int trine_plan_find_param(const trine_plan *plan, const char *name);
int trine_plan_find_symbol(const trine_plan *plan, const char *name);
int trine_plan_find_type(const trine_plan *plan, const char *name);

/* Parses an expression over the plan's symbols; true on success. */
bool trine_expr_parse(const trine_plan *plan, const char *text, trine_expr *expr_out);
double trine_expr_eval(const trine_expr *expr, const int64_t *dim);

/* The value of the expression that is the second word of a tensor's fill; 0 if it has none. */
int64_t trine_plan_fill_size(const trine_plan *plan, const char *fill, const int64_t *dim);

/* The value of parameter `index` in an args structure; ENUM and BOOL as integers, TEXT as whether there is one. And its
 * setting, of TEXT to none. */
double trine_param_get(const trine_plan *plan, int index, const void *args);
void trine_param_set(const trine_plan *plan, int index, void *args, double value);

/* That of a TEXT parameter; NULL: none. */
const char *trine_param_text(const trine_spec_param *param, const void *args);

/* Is a parameter's field left zero, in all its bits? Not so if it is -0.0. */
bool trine_param_unset(const trine_plan *plan, int index, const void *args);

/* Does one of these tensors stand for parameter `index`? */
bool trine_param_told(const trine_plan *plan, int index, uint32_t present);

/* A dimension for given symbols: the largest number where it is beyond that. And the shape of tensor `index`. */
int64_t trine_plan_size(const trine_dim *d, const int64_t *dim);
void trine_plan_shape(const trine_plan *plan, int index, const int64_t *dim, int64_t *shape_out);

/* Bytes of all given tensors, each input and output once, and the op's flops. */
double trine_plan_bytes(const trine_plan *plan, const int64_t *dim, const trine_dtype *type, uint32_t present);
double trine_plan_flops(const trine_plan *plan, const int64_t *dim);

/* The type in which output `index` is accumulated, and its bound's coefficient. */
trine_dtype trine_plan_accumulator(const trine_plan *plan, int index, const trine_dtype *type);
double trine_plan_coefficient(const trine_plan *plan, int index, const int64_t *dim, const trine_dtype *type);

/* The element type of tensor `index`. */
static inline trine_dtype trine_plan_dtype(const trine_plan *plan, int index, const trine_dtype *type) {
    const trine_plan_tensor *t = &plan->tensor[index];
    return t->type >= 0 ? type[t->type] : t->dtype;
}

/* Does a condition apply when these tensors are given, and with these parameters? */
static inline bool trine_require_applies(const trine_plan *plan, const trine_plan_require *require, uint32_t present,
                                         const void *args) {
    if (require->with >= 0 && (present >> require->with & 1) == require->without) return false;
    return require->when < 0 || (trine_param_get(plan, require->when, args) == require->value) != require->without;
}

/* Does a condition on sizes or types hold, where it applies? All others do here. */
bool trine_require_holds(const trine_plan_require *require, const int64_t *dim, const trine_dtype *type);
/* The number of ENUM name `value`, of `length` characters, or -1. */
int trine_enum_number(const trine_spec_param *param, const char *value, size_t length);

/* The tensor argument `index` of an args structure. */
static inline const trine_tensor *trine_plan_arg(const trine_plan *plan, int index, const void *args) {
    return *(const trine_tensor *const *)((const char *)args + plan->tensor[index].spec->offset);
}

#endif
