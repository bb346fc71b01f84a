/* SPDX-License-Identifier: Apache-2.0 */
/* The ops, and what can be asked of any op: run, workspace, explain. */
#ifndef TRINE_OPS_H
#define TRINE_OPS_H

#include <trine/base.h>
#include <trine/op.h> /* generated from spec/ops.def: enum trine_op */

#include <trine/attention.h>
#include <trine/attention_blocks.h>
#include <trine/bias.h>
#include <trine/chain.h>
#include <trine/comm.h>
#include <trine/conv.h>
#include <trine/dynamic.h>
#include <trine/elementwise.h>
#include <trine/exact.h>
#include <trine/field.h>
#include <trine/fused.h>
#include <trine/image.h>
#include <trine/loss.h>
#include <trine/matmul.h>
#include <trine/moe.h>
#include <trine/norm.h>
#include <trine/optimizer.h>
#include <trine/quantize.h>
#include <trine/recurrent.h>
#include <trine/reduce.h>
#include <trine/sample.h>
#include <trine/scaled.h>
#include <trine/scan.h>
#include <trine/select.h>
#include <trine/sparse.h>
#include <trine/special.h>
#include <trine/sphere.h>
#include <trine/state.h>
#include <trine/strided.h>
#include <trine/symmetric.h>
#include <trine/text.h>
#include <trine/wavelet.h>
#include <trine/tree.h>
#include <trine/tsetlin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the first member of an op's arguments, struct_size: { TRINE_ARGS(rms_norm), .x = &x, .y = &y, .eps = 1e-6f } are
 * arguments of trine_rms_norm(), in C99 and in C++20, where members must come in the header's order (and g++ -Wextra
 * warns of those left out: -Wno-missing-field-initializers). A structure that grew at its end since the caller was
 * compiled is read as far as the caller knew it. The rest is zero, and zero means the old behaviour.
 *
 * Zeros. A parameter left zero takes the fallback that its specification names, if any (trine spec, trine-ops(7)). To
 * pass a true zero to such a floating-point parameter, pass -0.0. A parameter whose zero stands for something that is
 * no number, as attention's scale (1/sqrt(d)) and global_norm_clip's max_norm (no limit), refuses -0.0. A call in which
 * a zero left by mistake would pass for a fallback is refused: matmul with c asks for beta. The command and the
 * bindings pass -0.0 for a zero that is written out. */
#define TRINE_ARGS(op) .struct_size = sizeof(trine_##op##_args)

/* The name of an op ("rms_norm"), NULL if there is no such op; the op of a name, TRINE_OP_NONE if there is none. */
TRINE_API const char *trine_op_name(trine_op op);
TRINE_API trine_op trine_op_find(const char *name);

/* Runs any op: trine_run(q, TRINE_OP_RMS_NORM, &args) is trine_rms_norm(q, &args). */
TRINE_API trine_status trine_run(trine_queue *queue, trine_op op, const void *args);

/* Runs many calls of an op at once, args[i] being the arguments of call i: what trine_run() of one after the other
 * does, the same bits, but by few launches on a GPU and with all threads at work on a CPU. For what a model has
 * hundreds of: a step of trine_adamw() for each parameter.
 *
 * The calls may differ in all their arguments. They run in any order, or several at a time: no output of a call may
 * overlap a tensor of another one; inputs may be shared.
 *
 * All calls are checked before one runs. A message names the call, from 0: "call 3 of the list: adamw: grad is NULL,
 * but required". Errors: as the op itself, with nothing written; TRINE_ERR_ARGUMENT (count is negative, args is NULL,
 * calls overlap), TRINE_ERR_MEMORY. After an error that is found only when a call runs, as a label out of range on the
 * CPU, that call has written nothing, others may have run.
 *
 * Since 0.1. */
TRINE_API trine_status trine_run_list(trine_queue *queue, trine_op op, const void *const *args, int64_t count);

/* The exact workspace that this call would use on this queue, in bytes. Data pointers are not looked at and may be
 * NULL. */
TRINE_API trine_status trine_workspace(trine_queue *queue, trine_op op, const void *args, size_t *bytes_out);

/* The same of a list. It is no more than 4 MiB, or what the call that needs most does: calls that would need more
 * together do not run at once. Since 0.1. */
TRINE_API trine_status trine_workspace_list(trine_queue *queue, trine_op op, const void *const *args, int64_t count,
                                            size_t *bytes_out);

/* The coefficient of the op's error bound for output tensor `output` ("y"). Element by element,
 *
 *     |y - y64| <= unit_roundoff(dtype of y) |y64| + coefficient * magnitude
 *
 * where y64 and magnitude are those of the specification's float64 reference.
 *
 * Errors: TRINE_ERR_ARGUMENT. */
TRINE_API trine_status trine_error_bound(trine_queue *queue, trine_op op, const void *args, const char *output,
                                         double *coefficient_out);

#define TRINE_MAX_CANDIDATES 64

typedef struct trine_candidate {
    const char *kernel;  /* the kernel's name */
    const char *refused; /* why it cannot run this call; NULL if it can */
    double seconds;      /* predicted time; 0 if refused */
    size_t workspace;    /* bytes it would use; 0 if refused */
} trine_candidate;

typedef struct trine_explanation {
    int32_t chosen; /* index of the kernel that would run; -1: none */
    int32_t count;
    const char *why; /* "first that accepts", "tuning cache", "tuned for this device", "TRINE_KERNEL", ... */
    trine_candidate candidate[TRINE_MAX_CANDIDATES];
    char text[4096]; /* storage of the reasons */
} trine_explanation;

/* Says which kernel would run this call, and why each other one would not. A call that no kernel takes is not an error
 * here: chosen is -1.
 *
 * Errors: TRINE_ERR_ARGUMENT as the op itself. */
TRINE_API trine_status trine_explain(trine_queue *queue, trine_op op, const void *args,
                                     trine_explanation *explanation_out);

/* A size at which a kernel goes another way. */
typedef struct trine_edge {
    const char *symbol; /* the dimension, as `trine spec` names it */
    int64_t size;
} trine_edge;

/* The sizes at which a kernel goes another way, one or a vector more being left to another loop, as it declares them
 * for calls like this one: what tests should have, and one less and one more. Those of a dimension hold for the other
 * sizes as they are here. Whether the kernel takes the call does not matter; a call whose outputs are all empty runs
 * no kernel, and has none. Errors: TRINE_ERR_ARGUMENT as the op itself, or kernel, edges_out or count_out is NULL;
 * TRINE_ERR_NOT_FOUND (the device has no kernel of this name); TRINE_ERR_INTERNAL (it declares more than
 * TRINE_MAX_EDGES). Since 0.1. */
TRINE_API trine_status trine_explain_edges(trine_queue *queue, trine_op op, const void *args, const char *kernel,
                                           trine_edge edges_out[TRINE_MAX_EDGES], int32_t *count_out);

/* Times every kernel that takes this call, on this queue and with these arguments, and records the fastest in the
 * tuning cache for the call's device, types and size bucket. Libraries opened from then on use it.
 *
 * The op runs several times: outputs are those of the last run, and tensors updated in place have been updated as
 * often.
 *
 * Errors: TRINE_ERR_ARGUMENT as the op itself, TRINE_ERR_UNSUPPORTED (no kernel takes the call, or the queue has
 * a part of the device), TRINE_ERR_IO (the cache cannot be written, or there is none). */
TRINE_API trine_status trine_tune_call(trine_queue *queue, trine_op op, const void *args);

/* Records that a kernel is the fastest for this call's device, types and size bucket, as a program that times kernels
 * by its own means has found. seconds: what the call takes, at least 0.
 *
 * Errors: TRINE_ERR_ARGUMENT as the op itself, or kernel is NULL, or seconds is negative or not finite;
 * TRINE_ERR_NOT_FOUND (no kernel of this name takes the call), TRINE_ERR_IO as above.
 *
 * Since 0.1. */
TRINE_API trine_status trine_tune_choose(trine_queue *queue, trine_op op, const void *args, const char *kernel,
                                         double seconds);

#ifdef __cplusplus
}
#endif

#endif
