/* SPDX-License-Identifier: Apache-2.0 */
/* sample on the CPU. The z and weights of a row's candidates are kept in the workspace; where top_k and top_p end is
 * found by the digits of z, the weights of each being added up. Sums are of whole numbers, so that their order does not
 * matter. */
#include "weights.h"
#include "spec/places/sample.h"

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

/* Larger numbers for larger z, which is no NaN: those of -0 and 0 are equal. */
INLINE uint32_t order_of(float z) {
    uint32_t bits;
    memcpy(&bits, &z, sizeof bits);
    if (bits << 1 == 0) bits = 0;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

typedef struct row {
    const trine_sample_args *args;
    const void *logits;
    const int32_t *counts; /* NULL: none */
    int64_t v, n;          /* tokens; those that are candidates, with their z and weights */
    int32_t *at;
    float *z;
    uint64_t *weight;
    float temperature, heat, inverse;
    int64_t top_k;
    uint64_t top_p, min_p; /* in units of 2^-32 and of 2^-40 */
    uint64_t random;
} row;

INLINE vf penalized(vf z, const row *o, const int32_t *count) {
    const trine_sample_args *args = o->args;
    const vi c = *(const vi_any *)count;
    const vf times = rounded(__builtin_convertvector(c, vf) * args->frequency_penalty);
    vf less = rounded(z * vsel(z > 0, vset(o->inverse), vset(args->repetition_penalty)));
    less = rounded(less - times) - args->presence_penalty;
    return vsel(c > 0, less, z);
}

/* z of all tokens, which are candidates, and the largest; false if one is NaN. */
INLINE bool fill_z(const row *o, float *largest_out, trine_dtype T) {
    vf most = vset(-INFINITY);
    vi wrong = viset(0);
    for (int64_t j = 0; j < o->v; j += VL) {
        const int n = o->v - j < VL ? (int)(o->v - j) : VL;
        vf z = n == VL ? vload(o->logits, T, j) : vloadn(o->logits, T, j, n, -INFINITY);
        if (o->counts) {
            int32_t count[VL] = { 0 };
            memcpy(count, o->counts + j, (size_t)n * sizeof *count);
            z = penalized(z, o, count);
        }
        z = rounded(z * o->heat);
        wrong |= (z != z) & (viota() < n);
        most = vmax(vsel(viota() < n, z, vset(-INFINITY)), most);
        vstoren(o->z, TRINE_F32, j, n, z);
    }
    *largest_out = vhmax(most);
    return !vany(wrong);
}

/* Where those end that are first in the order of z and then of the token, and whose parts have a sum of `need` at
 * least: the order of the last, and how much of `need` is left for its equals. A part is 1, or the weight. */
static void find_last(const row *o, bool weights, uint64_t need, uint32_t *order_out, uint64_t *left_out) {
    uint32_t known = 0, mask = 0;
    for (int end = 32; end > 0; end -= DIGIT) {
        const int low = end > DIGIT ? end - DIGIT : 0;
        const uint32_t digit = (1u << (end - low)) - 1;
        uint64_t sum[DIGITS] = { 0 };
        int64_t d = digit;
        for (int64_t j = 0; j < o->n; j++) {
            const uint32_t order = order_of(o->z[j]);
            if ((order & mask) == known) sum[order >> low & digit] += weights ? o->weight[j] : 1;
        }
        for (; sum[d] < need; d--) need -= sum[d];
        known |= (uint32_t)d << low;
        mask |= digit << low;
    }
    *order_out = known;
    *left_out = need;
}

/* Leaves these of the candidates, in the order of their tokens. */
static void keep_first(row *o, bool weights, uint64_t need) {
    uint32_t last;
    uint64_t left;
    int64_t kept = 0;
    find_last(o, weights, need, &last, &left);
    for (int64_t j = 0; j < o->n; j++) {
        const uint32_t order = order_of(o->z[j]);
        if (order < last || (order == last && left == 0)) continue;
        const uint64_t weight = weights ? o->weight[j] : 1;
        if (order == last) left = left > weight ? left - weight : 0;
        o->z[kept] = o->z[j];
        o->at[kept] = o->at[j];
        o->weight[kept++] = weight;
    }
    o->n = kept;
}

static uint64_t sum_of(const row *o) {
    uint64_t sum = 0;
    for (int64_t j = 0; j < o->n; j++) sum += o->weight[j];
    return sum;
}

static void fill_weights(const row *o, float largest) {
    float part[VL] = { 0 };
    for (int64_t j = 0; j < o->n; j += VL) {
        const int n = o->n - j < VL ? (int)(o->n - j) : VL;
        const vf z = vloadn(o->z, TRINE_F32, j, n, -INFINITY);
        *(vf_any *)part = vsel(z == largest, vset(0x1p40f), power(z - largest));
        for (int k = 0; k < n; k++) o->weight[j + k] = (uint64_t)(int64_t)part[k];
    }
}

static int64_t first_of(const row *o, float z) {
    int64_t j = 0;
    while (o->z[j] != z) j++;
    return j;
}

/* The token of a row, and the share of its weight in all that are left. */
static int64_t choose(row *o, float *share_out) {
    float largest = 0;
    bool right = true;
    *share_out = NAN;
    FOR_TYPE(o->args->logits->dtype, right = fill_z, o, &largest);
    if (!right || largest == -INFINITY) return -1;
    *share_out = 1;
    if (!(o->temperature > 0)) return first_of(o, largest);
    for (int64_t j = 0; j < o->v; j++) o->at[j] = (int32_t)j;
    if (o->top_k > 0 && o->top_k < o->v) keep_first(o, false, (uint64_t)o->top_k);
    fill_weights(o, largest);
    for (int64_t j = 0; o->min_p > 0 && j < o->n; j++)
        if (o->weight[j] < o->min_p) o->weight[j] = 0;
    uint64_t sum = sum_of(o);
    if (o->top_p < UINT64_C(1) << 32) {
        const uint64_t need =
            o->top_p * (sum >> 32) + (o->top_p * (sum & UINT32_MAX) + UINT32_MAX) / (UINT64_C(1) << 32);
        keep_first(o, true, need ? need : 1);
        sum = sum_of(o);
    }
    uint64_t place = weights_place(o->random, sum);
    int64_t j = 0;
    while (o->weight[j] <= place) place -= o->weight[j++];
    *share_out = (float)((double)o->weight[j] / (double)sum);
    return o->at[j];
}

static int64_t row_bytes(const trine_call *call) {
    return cpu_round_up(call->dim[SAMPLE_DIM_V] * (int64_t)(sizeof(float) + sizeof(int32_t) + sizeof(uint64_t)), 64);
}

/* An element of an optional tensor of a row each, as a number of f32. */
static float number_of(const trine_call *call, int tensor, int64_t i, float otherwise) {
    return call->present >> tensor & 1 ? ((const float *)call->tensor[tensor].data)[i] : otherwise;
}

static row row_of(const trine_call *call, int64_t i, const uint64_t key[2], char *memory) {
    const trine_sample_args *args = call->args;
    const trine_tensor *logits = &call->tensor[SAMPLE_LOGITS], *counts = &call->tensor[SAMPLE_COUNTS];
    const int64_t v = call->dim[SAMPLE_DIM_V];
    const float temperature = number_of(call, SAMPLE_TEMPERATURES, i, args->temperature),
                top_p = number_of(call, SAMPLE_TOP_PS, i, args->top_p);
    return (row){
        .args = args,
        .logits = (const char *)logits->data + i * logits->stride[0] * (int64_t)vsize(logits->dtype),
        .counts = call->present >> SAMPLE_COUNTS & 1 ? (const int32_t *)counts->data + i * counts->stride[0] : NULL,
        .weight = (uint64_t *)(void *)memory,
        .at = (int32_t *)(void *)(memory + v * (int64_t)sizeof(uint64_t)),
        .z = (float *)(void *)(memory + v * (int64_t)(sizeof(uint64_t) + sizeof(int32_t))),
        .v = v,
        .n = v,
        .temperature = temperature,
        .heat = temperature > 0 ? (float)(1 / (double)temperature) : 1,
        .inverse = (float)(1 / (double)args->repetition_penalty),
        .top_k =
            call->present >> SAMPLE_TOP_KS & 1 ? ((const int32_t *)call->tensor[SAMPLE_TOP_KS].data)[i] : args->top_k,
        .top_p = weights_fixed(top_p != top_p ? 1 : top_p, 32),
        .min_p = weights_fixed(number_of(call, SAMPLE_MIN_PS, i, args->min_p), 40),
        .random = weights_random(key, (uint64_t)i, 0),
    };
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_sample_args *args = call->args;
    const trine_tensor *tokens = &call->tensor[SAMPLE_TOKENS];
    char *memory = (char *)call->workspace + thread * row_bytes(call);
    uint64_t key[2];
    weights_key(args->seed, args->offset, call->present >> SAMPLE_PHILOX & 1 ? &call->tensor[SAMPLE_PHILOX] : NULL,
                key);
    for (int64_t i = first; i < last; i++) {
        row o = row_of(call, i, key, memory);
        float share;
        const int64_t token = choose(&o, &share);
        if (tokens->dtype == TRINE_I32)
            ((int32_t *)tokens->data)[i] = (int32_t)token;
        else
            ((int64_t *)tokens->data)[i] = token;
        if (call->present >> SAMPLE_PROBABILITIES & 1) ((float *)call->tensor[SAMPLE_PROBABILITIES].data)[i] = share;
    }
}

enum { READS = 16 }; /* of a row's 4 bytes for each token, in time */
static int team_of(const trine_call *call) {
    const int64_t r = call->dim[SAMPLE_DIM_R];
    return cpu_team(call, r, READS * r * call->dim[SAMPLE_DIM_V] * (int64_t)sizeof(float));
}

static size_t workspace(const trine_call *call) { return (size_t)(team_of(call) * row_bytes(call)); }

static trine_status launch(const trine_call *call) {
    cpu_shares(call, team_of(call), call->dim[SAMPLE_DIM_R], rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, SAMPLE_DIM_V, VL);
    cpu_team_edge(edges, SAMPLE_DIM_R, READS * call->dim[SAMPLE_DIM_V] * (int64_t)sizeof(float));
}

CPU_KERNELS(sample) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
