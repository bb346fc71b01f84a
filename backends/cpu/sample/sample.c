/* SPDX-License-Identifier: Apache-2.0 */
/* sample on the CPU. The z and weights of a row's candidates are kept in the workspace. A row is gone through in passes
 * over pieces of it, which for few long rows are the threads' work. Where top_k and top_p end is found by the digits of
 * z, the weights of each being added up, among the tokens that may be in front of it: by the largest z of blocks, or by
 * the first digit. Sums are of whole numbers, so that neither order nor pieces matter. */
#include "backends/cpu/core/parts.h"
#include "candidates.h"
#include "spec/places/sample.h"

enum { PIECE_LEAST = 128 * BLOCK }; /* tokens of a shared row's piece */

/* ---------------------------------------------------------------------------------------------------------- passes */

typedef enum pass { NUMBERS, WEIGHTS, FRONT } pass;

/* A row as far as it is done. */
typedef struct drawing {
    row o;
    piece *piece;
    int pieces;
    pass pass;
    bool done;
    float largest, share;
    int64_t token, digit; /* digit: the first one of the last token that top_p leaves */
    uint64_t need;
} drawing;

static void count_digits(const row *o, piece *p) {
    memset(p->digit, 0, sizeof p->digit);
    for (int64_t j = p->first; j < p->last; j++) p->digit[order_of(o->z[j]) >> (32 - DIGIT)] += o->weight[j];
}

static void keep_digits(const row *o, piece *p, int64_t least) {
    int64_t to = p->first;
    for (int64_t j = p->first; j < p->last; j++) {
        if (order_of(o->z[j]) >> (32 - DIGIT) < least) continue;
        o->z[to] = o->z[j];
        o->weight[to] = o->weight[j];
        o->at[to++] = (int32_t)j;
    }
    p->kept = to - p->first;
}

static bool nucleus(const row *o) { return o->top_p < UINT64_C(1) << 32; }

/* What a pass does with a piece. */
static void pass_piece(const drawing *d, piece *p) {
    const row *o = &d->o;
    switch (d->pass) {
    case NUMBERS: FOR_TYPE(o->args->logits->dtype, fill_z, o, p); break;
    case WEIGHTS:
        p->sum = fill_weights(o, d->largest, p->first, p->last);
        if (nucleus(o)) count_digits(o, p);
        break;
    case FRONT: keep_digits(o, p, d->digit); break;
    }
}

static void put_token(drawing *d, int64_t token, float share) {
    d->token = token;
    d->share = share;
    d->done = true;
}

static float share_of(uint64_t weight, uint64_t sum) { return (float)((double)weight / (double)sum); }

static uint64_t needed(const row *o, uint64_t sum) {
    const uint64_t need = o->top_p * (sum >> 32) + (o->top_p * (sum & UINT32_MAX) + UINT32_MAX) / (UINT64_C(1) << 32);
    return need ? need : 1;
}

/* Draws one of the candidates. */
static void draw(drawing *d, uint64_t sum) {
    const row *o = &d->o;
    uint64_t place = weights_place(o->random, sum);
    int64_t j = 0;
    while (o->weight[j] <= place) place -= o->weight[j++];
    put_token(d, o->at[j], share_of(o->weight[j], sum));
}

/* Draws one of all tokens. */
static void draw_any(drawing *d, uint64_t sum) {
    const row *o = &d->o;
    uint64_t place = weights_place(o->random, sum);
    const piece *p = d->piece;
    for (; p->sum <= place; p++) place -= p->sum;
    int64_t j = p->first;
    while (o->weight[j] <= place) place -= o->weight[j++];
    put_token(d, j, share_of(o->weight[j], sum));
}

static void end_numbers(drawing *d) {
    row *o = &d->o;
    bool wrong = false;
    d->largest = -INFINITY;
    for (int i = 0; i < d->pieces; i++) {
        wrong |= d->piece[i].wrong;
        if (d->piece[i].largest > d->largest) d->largest = d->piece[i].largest;
    }
    d->pass = WEIGHTS;
    if (wrong || d->largest == -INFINITY) {
        put_token(d, -1, NAN);
    } else if (!(o->temperature > 0)) {
        int64_t j = 0;
        while (o->most[j / BLOCK] != d->largest) j += BLOCK;
        while (o->z[j] != d->largest) j++;
        put_token(d, j, 1);
    } else if (o->top_k > 0 && o->top_k < o->v) {
        keep_largest(o);
        uint64_t sum = fill_weights(o, d->largest, 0, o->n);
        if (nucleus(o)) {
            keep_first(o, true, needed(o, sum));
            sum = sum_of(o);
        }
        draw(d, sum);
    }
}

static void end_weights(drawing *d) {
    uint64_t sum = 0;
    for (int i = 0; i < d->pieces; i++) sum += d->piece[i].sum;
    if (!nucleus(&d->o)) {
        draw_any(d, sum);
        return;
    }
    uint64_t left = d->need = needed(&d->o, sum);
    for (d->digit = DIGITS - 1;; d->digit--) {
        uint64_t of_digit = 0;
        for (int i = 0; i < d->pieces; i++) of_digit += d->piece[i].digit[d->digit];
        if (of_digit >= left) break;
        left -= of_digit;
    }
    d->pass = FRONT;
}

static void end_front(drawing *d) {
    row *o = &d->o;
    o->n = 0;
    for (const piece *p = d->piece; p < d->piece + d->pieces; p++) {
        memmove(o->z + o->n, o->z + p->first, (size_t)p->kept * sizeof *o->z);
        memmove(o->at + o->n, o->at + p->first, (size_t)p->kept * sizeof *o->at);
        memmove(o->weight + o->n, o->weight + p->first, (size_t)p->kept * sizeof *o->weight);
        o->n += p->kept;
    }
    keep_first(o, true, d->need);
    draw(d, sum_of(o));
}

static void end_pass(drawing *d) {
    switch (d->pass) {
    case NUMBERS: end_numbers(d); break;
    case WEIGHTS: end_weights(d); break;
    case FRONT: end_front(d); break;
    }
}

/* ------------------------------------------------------------------------------------------------------------ rows */

static int64_t drawing_bytes(const trine_call *call, int64_t pieces) {
    const int64_t v = call->dim[SAMPLE_DIM_V], tokens = cpu_round_up(v, BLOCK);
    return cpu_round_up(pieces * (int64_t)sizeof(piece) +
                            tokens * (int64_t)(sizeof(float) + sizeof(int32_t) + sizeof(uint64_t)) +
                            tokens / BLOCK * (int64_t)sizeof(float),
                        64);
}

/* An element of an optional tensor of a row each, as a number of f32. */
static float number_of(const trine_call *call, int tensor, int64_t i, float otherwise) {
    return call->present >> tensor & 1 ? ((const float *)call->tensor[tensor].data)[i] : otherwise;
}

static row row_of(const trine_call *call, int64_t i, const uint64_t key[2], char *memory) {
    const trine_sample_args *args = call->args;
    const trine_tensor *logits = &call->tensor[SAMPLE_LOGITS], *counts = &call->tensor[SAMPLE_COUNTS];
    const int64_t v = call->dim[SAMPLE_DIM_V], tokens = cpu_round_up(v, BLOCK);
    uint64_t *weight = (uint64_t *)(void *)memory;
    float *z = (float *)(void *)(weight + tokens);
    const float temperature = number_of(call, SAMPLE_TEMPERATURES, i, args->temperature),
                top_p = number_of(call, SAMPLE_TOP_PS, i, args->top_p);
    return (row){
        .args = args,
        .logits = (const char *)logits->data + i * logits->stride[0] * (int64_t)vsize(logits->dtype),
        .counts = call->present >> SAMPLE_COUNTS & 1 ? (const int32_t *)counts->data + i * counts->stride[0] : NULL,
        .weight = weight,
        .z = z,
        .most = z + tokens,
        .at = (int32_t *)(void *)(z + tokens + tokens / BLOCK),
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

static drawing drawing_of(const trine_call *call, int64_t i, const uint64_t key[2], char *memory, int pieces) {
    drawing d = { .piece = (piece *)(void *)memory, .pieces = pieces };
    const int64_t v = call->dim[SAMPLE_DIM_V], each = cpu_round_up((v + pieces - 1) / pieces, BLOCK);
    d.o = row_of(call, i, key, memory + pieces * (int64_t)sizeof(piece));
    for (int64_t k = 0; k < pieces; k++) {
        d.piece[k].first = k * each < v ? k * each : v;
        d.piece[k].last = (k + 1) * each < v ? (k + 1) * each : v;
    }
    return d;
}

static void put_drawing(const trine_call *call, int64_t i, const drawing *d) {
    const trine_tensor *tokens = &call->tensor[SAMPLE_TOKENS];
    if (tokens->dtype == TRINE_I32)
        ((int32_t *)tokens->data)[i] = (int32_t)d->token;
    else
        ((int64_t *)tokens->data)[i] = d->token;
    if (call->present >> SAMPLE_PROBABILITIES & 1) ((float *)call->tensor[SAMPLE_PROBABILITIES].data)[i] = d->share;
}

/* Rows that a thread does alone, and then those that all share, in so many pieces each. */
enum { READS = 8 }; /* of a row's 4 bytes for each token, in time */
typedef struct shares {
    int64_t whole, shared;
    int team, few, pieces; /* few: threads of whole rows */
} shares;

static shares shares_of(const trine_call *call) {
    const int64_t r = call->dim[SAMPLE_DIM_R], v = call->dim[SAMPLE_DIM_V], most = v / PIECE_LEAST,
                  bytes = READS * v * (int64_t)sizeof(float);
    shares s = { .team = cpu_team(call, r * (most > 1 ? most : 1), r * bytes) };
    if (most > 1 && r < PARTS_ROWS * (int64_t)s.team) s.shared = r % s.team;
    if (s.shared > 0 && bytes * (s.team - s.shared) / s.team < PARTS_SAVED) s.shared = 0;
    s.whole = r - s.shared;
    s.few = s.whole < s.team ? (int)s.whole : s.team;
    s.pieces = s.shared > 0 ? (int)((s.team + s.shared - 1) / s.shared) : 1;
    if (s.pieces > most && most > 0) s.pieces = (int)most;
    return s;
}

typedef struct job {
    const trine_call *call;
    uint64_t key[2];
    shares s;
    drawing *shared;
} job;

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    char *memory = (char *)b->call->workspace + thread * drawing_bytes(b->call, 1);
    for (int64_t i = first; i < last; i++) {
        drawing d = drawing_of(b->call, i, b->key, memory, 1);
        while (!d.done) {
            pass_piece(&d, d.piece);
            end_pass(&d);
        }
        put_drawing(b->call, i, &d);
    }
}

static void pieces(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const drawing *d = &b->shared[i / b->s.pieces];
        if (!d->done) pass_piece(d, &d->piece[i % b->s.pieces]);
    }
}

static void share_rows(const job *b) {
    const shares *s = &b->s;
    bool more = s->shared > 0;
    for (int64_t k = 0; k < s->shared; k++)
        b->shared[k] = drawing_of(b->call, s->whole + k, b->key,
                                  (char *)(b->shared + s->shared) + k * drawing_bytes(b->call, s->pieces), s->pieces);
    while (more) {
        more = false;
        cpu_shares(b->call, s->team, s->shared * s->pieces, pieces, b);
        for (int64_t k = 0; k < s->shared; k++) {
            if (!b->shared[k].done) end_pass(&b->shared[k]);
            more |= !b->shared[k].done;
        }
    }
    for (int64_t k = 0; k < s->shared; k++) put_drawing(b->call, s->whole + k, &b->shared[k]);
}

static size_t workspace(const trine_call *call) {
    const shares s = shares_of(call);
    const int64_t alone = s.few * drawing_bytes(call, 1),
                  together = s.shared * ((int64_t)sizeof(drawing) + drawing_bytes(call, s.pieces));
    return (size_t)(alone > together ? alone : together);
}

static trine_status launch(const trine_call *call) {
    const trine_sample_args *args = call->args;
    job b = { .call = call, .s = shares_of(call), .shared = call->workspace };
    weights_key(args->seed, args->offset, call->present >> SAMPLE_PHILOX & 1 ? &call->tensor[SAMPLE_PHILOX] : NULL,
                b.key);
    cpu_shares(call, b.s.few, b.s.whole, rows, &b);
    share_rows(&b);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, SAMPLE_DIM_V, VL);
    trine_kernel_edge(edges, SAMPLE_DIM_V, BLOCK);
    trine_kernel_edge(edges, SAMPLE_DIM_V, 2 * PIECE_LEAST);
    trine_kernel_edge(edges, SAMPLE_DIM_V, PARTS_SAVED / (READS * (int64_t)sizeof(float)) * 2);
    cpu_team_edge(edges, SAMPLE_DIM_R, READS * call->dim[SAMPLE_DIM_V] * (int64_t)sizeof(float));
}

CPU_KERNELS(sample) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
