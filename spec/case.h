/* SPDX-License-Identifier: Apache-2.0 */
/* A case: one call of an op as text, "T=bf16 W=f32 r=8192 n=4096 eps=1e-5 causal=1 +residual", and as an args
 * structure. */
#ifndef TRINE_CASE_H
#define TRINE_CASE_H

#include "plan.h"

typedef struct trine_case {
    const trine_plan *plan;
    int64_t dim[TRINE_MAX_SYMBOLS];      /* -1 until bound */
    trine_dtype type[TRINE_MAX_SYMBOLS]; /* TRINE_NONE until chosen */
    uint32_t present;                    /* set of the tensors given */
    uint32_t set;                        /* set of the parameters given */
    uint32_t transposed, broadcast;      /* sets of the tensors stored so */
    /* the op's structure, parameters as given; trine_case_finish() points it to `tensor` */
    _Alignas(16) unsigned char args[TRINE_MAX_ARGS];
    trine_tensor tensor[TRINE_MAX_TENSORS];
} trine_case;

/* An empty case: nothing bound, the tensors that are not optional present. */
void trine_case_init(trine_case *c, int op);

/* Sets one thing by the name the specification has for it: a parameter, a symbol, a type variable or a tensor, looked
 * for in this order. A BOOL is 0 or 1, an ENUM a name or a number; a zero for a floating-point parameter that has a
 * fallback is stored as -0.0, which means zero; a TEXT is copied without its spaces. A tensor is `transposed`, its last
 * two dimensions stored in the other order, or `broadcast`, all of its dimensions 1, and thereby given; where its flags
 * admit that. False, with the reason in `error`, if it cannot be. */
bool trine_case_set(trine_case *c, const char *name, const char *value, char *error, size_t error_size);

/* Applies the words of `text`, separated by spaces or commas, a TEXT parameter's by spaces alone: NAME=VALUE as
 * trine_case_set(), "+tensor" and "-tensor" for optional tensors. A name up to a colon in front ("llama3 prefill:
 * T=bf16 ...") is passed over. */
bool trine_case_parse(trine_case *c, const char *text, char *error, size_t error_size);

/* Completes a case. Types left open take the first admissible row that agrees with those chosen; of "a | b"
 * requirements with none given the first is given. A symbol left open is 1 if only dimensions that may be missing, or
 * absent tensors, need it, and such a dimension is then left out; or the value of another symbol, if the requirements
 * hold only so (the batch of a product from those of its factors). Then makes contiguous tensors, without data, and
 * points the args structure to them: a case must not be copied or moved afterwards. */
bool trine_case_finish(trine_case *c, char *error, size_t error_size);

/* The case as text, parameters left alone omitted. */
void trine_case_text(const trine_case *c, char *text_out, size_t size);

/* Points the args structure to the case's tensors once more, after a copy. */
void trine_case_link(trine_case *c);

#endif
