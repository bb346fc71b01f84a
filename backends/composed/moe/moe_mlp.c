/* SPDX-License-Identifier: Apache-2.0 */
/* moe_mlp, made of other ops: slots sorted by expert, two grouped products with the gate between them, and their sum
 * for each token. z takes the place of gate. */
#include "backends/composed/nested.h"
#include "spec/places/moe_mlp.h"

enum { ALIGNMENT = 256, LONGEST = 1 << 28 /* row */ };

/* The parts of the workspace, in bytes from its beginning. */
typedef struct layer {
    const trine_call *call;
    int64_t t, h, k, e, f, slots;
    trine_dtype type;
    struct {
        size_t counts, offsets, rows, places, gate_up, down, nested;
    } at;
    size_t nested_size, size;
} layer;

static size_t place(layer *l, int64_t count, size_t size) {
    const size_t at = l->size;
    l->size += ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static layer layer_of(const trine_call *call) {
    layer l = { .call = call,
                .t = call->dim[MOE_MLP_DIM_T],
                .h = call->dim[MOE_MLP_DIM_H],
                .k = call->dim[MOE_MLP_DIM_K],
                .e = call->dim[MOE_MLP_DIM_E],
                .f = call->dim[MOE_MLP_DIM_F],
                .type = call->type[MOE_MLP_TYPE_T] };
    l.slots = l.t * l.k;
    const size_t size = trine_dtype_size(l.type);
    l.at.counts = place(&l, l.e, sizeof(int32_t));
    l.at.offsets = place(&l, l.e + 1, sizeof(int32_t));
    l.at.rows = place(&l, l.slots, sizeof(int32_t));
    l.at.places = place(&l, l.slots, sizeof(int32_t));
    l.at.gate_up = place(&l, l.slots * 2 * l.f, size);
    l.at.down = place(&l, l.slots * l.h, size);
    l.at.nested = l.size;
    return l;
}

/* Where a place of the workspace is; NULL while there is none, when sizes are asked for. */
static void *memory(const layer *l, size_t at) { return l->call->workspace ? (char *)l->call->workspace + at : NULL; }

static trine_status step(layer *l, bool run, trine_op op, const void *args) {
    return nested_step(l->call, run, op, args, l->at.nested, &l->nested_size);
}

#define TRY(call) \
    do { \
        const trine_status status_ = (call); \
        if (status_ != TRINE_OK) return status_; \
    } while (0)

static trine_status gate(layer *l, bool run, trine_tensor *z) {
    const trine_moe_mlp_args *args = l->call->args;
    const size_t up = (size_t)l->f * trine_dtype_size(l->type);
    trine_tensor half[2];
    for (int i = 0; i < 2; i++) {
        half[i] = trine_tensor_2d(memory(l, l->at.gate_up + (size_t)i * up), l->type, l->slots, l->f);
        half[i].stride[0] = 2 * l->f;
    }
    *z = half[0];
    if (args->gated == TRINE_GATED_SILU) {
        const trine_swiglu_args silu = { .struct_size = sizeof silu, .gate = &half[0], .up = &half[1], .y = z };
        return step(l, run, TRINE_OP_SWIGLU, &silu);
    }
    const trine_geglu_args gelu = { .struct_size = sizeof gelu,
                                    .gate = &half[0],
                                    .up = &half[1],
                                    .y = z,
                                    .form = args->gated == TRINE_GATED_GELU_TANH ? TRINE_GELU_TANH : TRINE_GELU_ERF };
    return step(l, run, TRINE_OP_GEGLU, &gelu);
}

static trine_status sum(layer *l, bool run, const trine_tensor *down, const trine_tensor *places) {
    const trine_tensor *tensor = l->call->tensor, *shared = trine_call_given(l->call, MOE_MLP_SHARED);
    const trine_moe_combine_args combine = { .struct_size = sizeof combine,
                                             .x = down,
                                             .places = places,
                                             .weights = &tensor[MOE_MLP_WEIGHTS],
                                             .y = &tensor[MOE_MLP_Y] };
    const trine_add_args add = {
        .struct_size = sizeof add, .a = &tensor[MOE_MLP_Y], .b = shared, .y = &tensor[MOE_MLP_Y]
    };
    TRY(step(l, run, TRINE_OP_MOE_COMBINE, &combine));
    return shared ? step(l, run, TRINE_OP_ADD, &add) : TRINE_OK;
}

/* All steps in turn, run or sized. */
static trine_status walk(layer *l, bool run) {
    const trine_tensor *tensor = l->call->tensor;
    const trine_tensor counts = trine_tensor_1d(memory(l, l->at.counts), TRINE_I32, l->e),
                       offsets = trine_tensor_1d(memory(l, l->at.offsets), TRINE_I32, l->e + 1),
                       rows = trine_tensor_2d(memory(l, l->at.rows), TRINE_I32, l->slots, 1),
                       gather = trine_tensor_1d(memory(l, l->at.rows), TRINE_I32, l->slots),
                       places = trine_tensor_2d(memory(l, l->at.places), TRINE_I32, l->t, l->k),
                       gate_up = trine_tensor_2d(memory(l, l->at.gate_up), l->type, l->slots, 2 * l->f),
                       down = trine_tensor_2d(memory(l, l->at.down), l->type, l->slots, l->h);
    trine_tensor z;
    const trine_moe_align_args align = { .struct_size = sizeof align,
                                         .experts = &tensor[MOE_MLP_EXPERTS],
                                         .counts = &counts,
                                         .offsets = &offsets,
                                         .rows = &rows,
                                         .places = &places };
    const trine_grouped_matmul_args first = { .struct_size = sizeof first,
                                              .x = &tensor[MOE_MLP_X],
                                              .w = &tensor[MOE_MLP_W_GATE_UP],
                                              .offsets = &offsets,
                                              .gather = &gather,
                                              .bias = trine_call_given(l->call, MOE_MLP_BIAS_GATE_UP),
                                              .y = &gate_up,
                                              .divide = l->k };
    const trine_grouped_matmul_args second = { .struct_size = sizeof second,
                                               .x = &z,
                                               .w = &tensor[MOE_MLP_W_DOWN],
                                               .offsets = &offsets,
                                               .bias = trine_call_given(l->call, MOE_MLP_BIAS_DOWN),
                                               .y = &down };
    TRY(step(l, run, TRINE_OP_MOE_ALIGN, &align));
    TRY(step(l, run, TRINE_OP_GROUPED_MATMUL, &first));
    TRY(gate(l, run, &z));
    TRY(step(l, run, TRINE_OP_GROUPED_MATMUL, &second));
    return sum(l, run, &down, &places);
}

/* Slots are numbered in 31 bits, and no size overflows. */
static bool too_large(const trine_call *call) {
    const int64_t *dim = call->dim;
    return dim[MOE_MLP_DIM_T] > INT32_MAX || dim[MOE_MLP_DIM_K] > INT32_MAX || dim[MOE_MLP_DIM_E] > INT32_MAX ||
           dim[MOE_MLP_DIM_T] * dim[MOE_MLP_DIM_K] > INT32_MAX || dim[MOE_MLP_DIM_F] > LONGEST ||
           dim[MOE_MLP_DIM_H] > LONGEST;
}

static const char *refuse(const trine_call *call) {
    if (call->empty) return NULL;
    if (too_large(call)) return "more than 2^31 - 1 slots or experts, or rows of more than 2^28 elements";
    layer l = layer_of(call);
    return walk(&l, false) == TRINE_OK ? NULL : "one of its parts has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    if (call->empty || too_large(call)) return 0;
    layer l = layer_of(call);
    return walk(&l, false) == TRINE_OK ? l.at.nested + l.nested_size : 0;
}

static trine_status launch(const trine_call *call) {
    layer l = layer_of(call);
    TRY(walk(&l, false));
    return walk(&l, true);
}

/* As many slots as experts, and the rows of the second half of gate_up aligned or not. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    enum { ALIGNED = 8 };
    const int64_t k = call->dim[MOE_MLP_DIM_K];
    trine_kernel_edge(edges, MOE_MLP_DIM_T, k > 0 ? call->dim[MOE_MLP_DIM_E] / k : 1);
    trine_kernel_edge(edges, MOE_MLP_DIM_F, ALIGNED);
}

extern const trine_kernel trine_moe_mlp_composed[];
const trine_kernel trine_moe_mlp_composed[] = {
    { .name = "composed", .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
