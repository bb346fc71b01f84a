/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_write on the CPU: which tokens are written is found first, then each goes to its slot. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/float8.h"
#include "backends/cpu/core/vec.h"
#include "backends/cpu/reduce/ids.h"
#include "spec/places/kv_cache_write.h"

/* The workspace: for each token whether it is written, then a bit for each slot. */
static int64_t flags_bytes(const trine_call *call) { return cpu_round_up(call->dim[KV_CACHE_WRITE_DIM_T], 64); }
static int64_t slots_of(const trine_call *call) {
    return call->dim[KV_CACHE_WRITE_DIM_PAGES] * call->dim[KV_CACHE_WRITE_DIM_PAGE];
}
static size_t workspace(const trine_call *call) {
    return (size_t)(flags_bytes(call) + (slots_of(call) + 63) / 64 * (int64_t)sizeof(uint64_t));
}

/* From the last token on, each that has a slot no later one has. Only words with the bits of tokens are looked at. */
static void choose_tokens(const trine_call *call) {
    const trine_tensor *slots = &call->tensor[KV_CACHE_WRITE_SLOTS];
    const int64_t t = call->dim[KV_CACHE_WRITE_DIM_T], all = slots_of(call);
    char *written = call->workspace;
    uint64_t *taken = (uint64_t *)(void *)(written + flags_bytes(call));
    for (int64_t i = 0; i < t; i++) {
        const int64_t slot = id_at(slots, i * slots->stride[0]);
        if ((uint64_t)slot < (uint64_t)all) taken[slot / 64] = 0;
    }
    for (int64_t i = t - 1; i >= 0; i--) {
        const int64_t slot = id_at(slots, i * slots->stride[0]);
        const bool there = (uint64_t)slot < (uint64_t)all;
        const uint64_t bit = there ? (uint64_t)1 << slot % 64 : 0;
        written[i] = there && !(taken[slot / 64] & bit);
        if (there) taken[slot / 64] |= bit;
    }
}

/* To nearest even; NaN is 0. */
INLINE vb vf_to_i8(vf x) {
    const vf most = vmin(vmax(vsel(x == x, x, vzero()), vset(-128)), vset(127)), magic = vset(0x1.8p23f);
    return vb_narrow((vi)(most + magic) - (vi)magic);
}

INLINE void store_part(char *to, int64_t c, int n, vf x, trine_dtype C) {
    if (C == TRINE_E4M3 || C == TRINE_I8) {
        const vb bytes = C == TRINE_I8 ? vf_to_i8(x) : vf_to_float8(x, TRINE_E4M3, true);
        memcpy(to + c, &bytes, (size_t)n);
    } else if (n == VL) {
        vstore(to, C, c, x);
    } else {
        vstoren(to, C, c, n, x);
    }
}

INLINE void convert(const char *from, char *to, int64_t d, float scale, trine_dtype C, trine_dtype T) {
    int64_t c = 0;
    for (; c + VL <= d; c += VL) store_part(to, c, VL, vload(from, T, c) / scale, C);
    if (c < d) store_part(to, c, (int)(d - c), vloadn(from, T, c, (int)(d - c), 0) / scale, C);
}

INLINE void convert_to(const char *from, char *to, int64_t d, float scale, trine_dtype C, trine_dtype T) {
    if (C == TRINE_E4M3)
        convert(from, to, d, scale, TRINE_E4M3, T);
    else if (C == TRINE_I8)
        convert(from, to, d, scale, TRINE_I8, T);
    else
        convert(from, to, d, scale, T, T);
}

/* A token's row of every head, to place `place` of page `page`. */
static void write_token(const trine_tensor *x, const trine_tensor *cache, const trine_tensor *scale, int64_t token,
                        int64_t page, int64_t place) {
    const int64_t size = (int64_t)trine_dtype_size(x->dtype), width = (int64_t)trine_dtype_size(cache->dtype);
    for (int64_t g = 0; g < x->shape[1]; g++) {
        const char *from = (const char *)x->data + (token * x->stride[0] + g * x->stride[1]) * size;
        char *to =
            (char *)cache->data + (page * cache->stride[0] + place * cache->stride[1] + g * cache->stride[2]) * width;
        const float factor = scale ? ((const float *)scale->data)[g * scale->stride[0]] : 1;
        if (scale == NULL && x->dtype == cache->dtype)
            memcpy(to, from, (size_t)(x->shape[2] * size));
        else
            FOR_TYPE(x->dtype, convert_to, from, to, x->shape[2], factor, cache->dtype);
    }
}

static void tokens(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_tensor *slots = &call->tensor[KV_CACHE_WRITE_SLOTS];
    const int64_t page = call->dim[KV_CACHE_WRITE_DIM_PAGE];
    const char *written = call->workspace;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        if (!written[i]) continue;
        const int64_t slot = id_at(slots, i * slots->stride[0]);
        write_token(&call->tensor[KV_CACHE_WRITE_K], &call->tensor[KV_CACHE_WRITE_K_CACHE],
                    trine_call_given(call, KV_CACHE_WRITE_K_SCALE), i, slot / page, slot % page);
        if (trine_call_given(call, KV_CACHE_WRITE_V))
            write_token(&call->tensor[KV_CACHE_WRITE_V], &call->tensor[KV_CACHE_WRITE_V_CACHE],
                        trine_call_given(call, KV_CACHE_WRITE_V_SCALE), i, slot / page, slot % page);
    }
}

/* Bytes that a token has to move. */
static int64_t token_bytes(const trine_call *call) {
    const int64_t columns = call->dim[KV_CACHE_WRITE_DIM_D] +
                            (trine_call_given(call, KV_CACHE_WRITE_V) ? call->dim[KV_CACHE_WRITE_DIM_DV] : 0);
    return columns * call->dim[KV_CACHE_WRITE_DIM_HK] *
           (int64_t)(trine_dtype_size(call->tensor[KV_CACHE_WRITE_K].dtype) +
                     trine_dtype_size(call->tensor[KV_CACHE_WRITE_K_CACHE].dtype));
}

static trine_status launch(const trine_call *call) {
    const int64_t t = call->dim[KV_CACHE_WRITE_DIM_T];
    choose_tokens(call);
    cpu_shares(call, cpu_team(call, t, t * token_bytes(call)), t, tokens, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, KV_CACHE_WRITE_DIM_D, VL);
    trine_kernel_edge(edges, KV_CACHE_WRITE_DIM_DV, VL);
    trine_kernel_edge(edges, KV_CACHE_WRITE_DIM_PAGES, 64);
    cpu_team_edge(edges, KV_CACHE_WRITE_DIM_T, token_bytes(call));
}

CPU_KERNELS(kv_cache_write) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
