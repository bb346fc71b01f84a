/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that convolutions share. */
#ifndef TRINE_SIMT_CONV_HOST_H
#define TRINE_SIMT_CONV_HOST_H

#include "backends/simt/core/host.h"
#include "conv.h"

/* A convolution as the call tells it: of its last axes, from the right. y: or dy. */
typedef struct conv_call {
    const trine_tensor *x, *weight, *y;
    int32_t stride[3], pad[3], dilation[3];
} conv_call;

static inline conv_view conv_view_of(const trine_tensor *t) {
    conv_view v = { .data = t->data, .batch = t->stride[0], .channel = t->stride[t->rank - 1] };
    for (int d = 0; d < 3; d++) v.axis[d] = t->rank - 4 + d > 0 ? t->stride[t->rank - 4 + d] : 0;
    return v;
}

static inline void conv_axes(const conv_call *c, bool transposed, conv_axis *axis) {
    const int rank = c->x->rank;
    for (int d = 0; d < 3; d++) {
        const int at = d - 3 + rank - 2;
        axis[d] = (conv_axis){ 1, 1, 1, 1, 0, 1, 1 };
        if (at < 0) continue;
        const int64_t x = c->x->shape[1 + at], y = c->y->shape[1 + at];
        axis[d] = (conv_axis){ transposed ? y : x,
                               transposed ? x : y,
                               c->weight->shape[1 + at],
                               c->stride[at],
                               c->pad[at],
                               c->dilation[at],
                               1 };
        if (transposed) axis[d].residues = axis[d].stride < x ? axis[d].stride : x;
    }
}

static inline int64_t conv_groups(const conv_call *c) {
    const int64_t channels = c->x->shape[c->x->rank - 1];
    return channels > 0 ? channels / c->weight->shape[c->weight->rank - 1] : 1;
}

/* Are `count` neighbours along a stride of 1 whole pieces of 16 bytes, of so many elements, wherever other strides
 * lead? */
static inline bool conv_whole(const conv_view *v, int64_t inner, int64_t outer, int64_t count, int64_t piece) {
    bool whole = inner == 1 && count % piece == 0 && (uintptr_t)v->data % 16 == 0 && outer % piece == 0;
    for (int d = 0; d < 3; d++) whole = whole && v->axis[d] % piece == 0;
    return whole;
}
static inline bool conv_pieces(const conv_view *v, int64_t inner, int64_t outer, int64_t count) {
    return conv_whole(v, inner, outer, count, 8);
}
static inline int64_t conv_vector(trine_dtype type) { return 16 / (int64_t)trine_dtype_size(type); }

/* The forward, or the gradient by x, which is written to `to`. */
static inline conv_params conv_params_of(const conv_call *c, const trine_tensor *to, const trine_tensor *bias) {
    const bool transposed = to != c->y;
    const conv_view weight = conv_view_of(c->weight);
    const int64_t groups = conv_groups(c), cg = c->weight->shape[c->weight->rank - 1],
                  kg = c->y->shape[c->y->rank - 1] / groups, vector = conv_vector(to->dtype);
    conv_params p = { .from = conv_view_of(transposed ? c->y : c->x),
                      .to = conv_view_of(to),
                      .weight = weight,
                      .group = kg * weight.batch,
                      .bias = bias ? bias->data : NULL,
                      .bias_step = bias ? bias->stride[0] : 0,
                      .n = c->x->shape[0],
                      .groups = groups,
                      .lanes = transposed ? cg : kg,
                      .channels = transposed ? kg : cg,
                      .transposed = transposed,
                      .wide_bias = bias && bias->dtype == TRINE_F32 };
    conv_axes(c, transposed, p.axis);
    if (transposed) p.weight.batch = weight.channel, p.weight.channel = weight.batch;
    p.pieces = conv_pieces(&p.from, p.from.channel, p.from.batch, p.channels);
    p.weight_pieces = conv_pieces(&weight, weight.channel, weight.batch, cg);
    p.whole = conv_whole(&p.from, p.from.channel, p.from.batch, p.groups, vector);
    p.to_whole = conv_whole(&p.to, p.to.channel, p.to.batch, p.groups, vector);
    p.to_pieces = conv_pieces(&p.to, p.to.channel, p.to.batch, p.lanes);
    p.across = p.from.channel != 1 && p.from.axis[2] == 1, p.to_across = p.to.channel != 1 && p.to.axis[2] == 1;
    return p;
}

/* Are all places and what leads to them far within 31 bits? */
static inline bool conv_narrow(const conv_axis *axis) {
    enum { MOST = 1 << 28 };
    for (int d = 0; d < 3; d++) {
        const conv_axis *a = &axis[d];
        if (a->in >= MOST || a->taps >= MOST / a->dilation || a->out >= MOST / a->stride) return false;
    }
    return true;
}

/* Positions of the residue that has the most. */
static inline int64_t conv_positions(const conv_params *p, int64_t *residues_out) {
    int64_t positions = p->n;
    *residues_out = 1;
    for (int d = 0; d < 3; d++) {
        *residues_out *= p->axis[d].residues;
        positions *= p->axis[d].residues > 0 ? simt_blocks(p->axis[d].out, p->axis[d].residues) : 0;
    }
    return positions;
}

static inline int64_t conv_written(const conv_params *p) {
    return p->n * p->axis[0].out * p->axis[1].out * p->axis[2].out * p->groups * p->lanes;
}
static inline size_t conv_sums_bytes(const conv_params *p, trine_dtype type) {
    return p->slices > 1 ? (size_t)(p->slices * conv_written(p)) * (type == TRINE_F64 ? 8 : 4) : 0;
}
static inline int64_t conv_elements(const conv_params *p) {
    return p->axis[0].taps * p->axis[1].taps * p->axis[2].taps * p->channels;
}

/* Slices' sums, from the workspace to where they belong: a step of the op's functions. */
static inline trine_status conv_add_slices(const trine_call *call, const conv_params *p, const char *end) {
    const simt_function function = { .step = end, .type = { call->type[SIMT_FIRST_TYPE] } };
    return simt_launch(call, &function, simt_blocks(conv_written(p), SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
}

/* ------------------------------------------------------------------------------------- tiles, or one sum a thread */

static inline bool conv_few(const conv_params *p) { return p->lanes <= CONV_FEW; }

/* Its tiles, and slices of the elements of a patch where those are few. */
static inline void conv_set_tiles(conv_params *p) {
    int64_t residues;
    const int64_t positions = conv_positions(p, &residues), steps = conv_elements(p) / CONV_DEPTH;
    p->slices = 1;
    if (conv_few(p)) {
        p->down = simt_blocks(positions * p->groups * p->lanes, SIMT_THREADS), p->right = 1;
        return;
    }
    p->down = simt_blocks(positions, CONV_TILE), p->right = simt_blocks(p->lanes, CONV_TILE);
    const int64_t blocks = residues * p->down * p->groups * p->right;
    while (blocks > 0 && p->slices < CONV_SLICES && 2 * p->slices * blocks <= CONV_BLOCKS &&
           steps / (2 * p->slices) >= CONV_STEPS)
        p->slices *= 2;
}

/* The op's functions, by their steps. */
typedef struct conv_names {
    const char *few, *tiles, *depthwise, *end;
} conv_names;

static inline trine_status conv_launch(const trine_call *call, conv_params *p, const conv_names *names) {
    int64_t residues;
    conv_positions(p, &residues);
    p->sums = call->workspace;
    const simt_function function = { .step = conv_few(p) ? names->few : names->tiles,
                                     .type = { call->type[SIMT_FIRST_TYPE] } };
    const int64_t blocks = residues * p->down * (conv_few(p) ? 1 : p->slices * p->groups * p->right);
    const trine_status status = simt_launch(call, &function, blocks, SIMT_THREADS, p, sizeof *p);
    return status == TRINE_OK && p->slices > 1 ? conv_add_slices(call, p, names->end) : status;
}

/* ----------------------------------------------------------------------------------------- each channel is a group */

static inline const char *conv_depthwise_refuse(const conv_params *p) {
    return p->lanes != 1 || p->channels != 1            ? "groups of several channels"
           : p->from.channel != 1 || p->to.channel != 1 ? "channels that are not neighbours"
           : !conv_narrow(p->axis)                      ? "sizes beyond 2^28"
                                                        : NULL;
}

static inline trine_status conv_launch_depthwise(const trine_call *call, conv_params *p, const conv_names *names) {
    int64_t units = p->n, residues = 1;
    for (int d = 0; d < 3; d++) {
        const conv_axis *a = &p->axis[d];
        const int64_t most = a->residues > 0 ? simt_blocks(a->out, a->residues) : 0;
        residues *= a->residues, units *= d < 2 ? most : simt_blocks(most, CONV_ROW);
    }
    const int64_t workers = SIMT_THREADS / (CONV_CHANNELS / conv_vector(call->type[SIMT_FIRST_TYPE]));
    const simt_function function = { .step = names->depthwise, .type = { call->type[SIMT_FIRST_TYPE] } };
    p->down = simt_blocks(units, workers * CONV_TURNS), p->right = simt_blocks(p->groups, CONV_CHANNELS);
    return simt_launch(call, &function, residues * p->down * p->right, SIMT_THREADS, p, sizeof *p);
}

static inline const char *conv_refuse_patches(const trine_tensor *weight) {
    int64_t elements = 1;
    for (int d = 1; d < weight->rank; d++)
        if (__builtin_mul_overflow(elements, weight->shape[d], &elements) || elements > INT32_MAX)
            return "patches of more than 2^31 - 1 elements";
    return NULL;
}

/* -------------------------------------------------------------------------------------- the kernels of the forward */

static const conv_names conv_forward_names = { "few", NULL, "depthwise", "end" };

/* Those of an op whose CALL_OF gives its conv_call, and whose places begin with OP. */
#define CONV_FORWARD(CALL_OF, OP) \
    static inline conv_params conv_forward_of(const trine_call *call) { \
        const conv_call c = CALL_OF(call); \
        conv_params p = conv_params_of(&c, c.y, trine_call_given(call, OP##_BIAS)); \
        conv_set_tiles(&p); \
        return p; \
    } \
    static inline const char *conv_forward_refuse(const trine_call *call) { \
        return conv_refuse_patches(&call->tensor[OP##_WEIGHT]); \
    } \
    static inline size_t conv_forward_workspace(const trine_call *call) { \
        const conv_params p = conv_forward_of(call); \
        return call->empty ? 0 : conv_sums_bytes(&p, call->tensor[OP##_Y].dtype); \
    } \
    static inline trine_status conv_forward_launch(const trine_call *call) { \
        conv_params p = conv_forward_of(call); \
        return conv_launch(call, &p, &conv_forward_names); \
    } \
    static inline const char *conv_forward_depthwise_refuse(const trine_call *call) { \
        const conv_params p = conv_forward_of(call); \
        const char *const why = conv_forward_refuse(call); \
        return why ? why : conv_depthwise_refuse(&p); \
    } \
    static inline trine_status conv_forward_depthwise_launch(const trine_call *call) { \
        conv_params p = conv_forward_of(call); \
        return conv_launch_depthwise(call, &p, &conv_forward_names); \
    } \
    static inline void conv_forward_edges(const trine_call *call, trine_kernel_edges *edges) { \
        (void)call; \
        trine_kernel_edge(edges, OP##_DIM_K, CONV_FEW); \
        trine_kernel_edge(edges, OP##_DIM_K, CONV_TILE); \
        trine_kernel_edge(edges, OP##_DIM_CG, CONV_DEPTH); \
        trine_kernel_edge(edges, OP##_DIM_Q, CONV_TILE); \
    } \
    static inline void conv_forward_depthwise_edges(const trine_call *call, trine_kernel_edges *edges) { \
        (void)call; \
        trine_kernel_edge(edges, OP##_DIM_C, CONV_CHANNELS); \
        trine_kernel_edge(edges, OP##_DIM_R, CONV_WEIGHTS); \
        trine_kernel_edge(edges, OP##_DIM_Q, CONV_ROW); \
        trine_kernel_edge(edges, OP##_DIM_Q, CONV_ROW *CONV_TURNS * 32); \
    }

#define CONV_FORWARD_DEPTHWISE \
    { .name = SIMT_NAME "_depthwise", \
      .refuse = conv_forward_depthwise_refuse, \
      .launch = conv_forward_depthwise_launch, \
      .edges = conv_forward_depthwise_edges }
#define CONV_FORWARD_TILES \
    { .name = SIMT_NAME, \
      .refuse = conv_forward_refuse, \
      .workspace = conv_forward_workspace, \
      .launch = conv_forward_launch, \
      .edges = conv_forward_edges }

#endif
