/* SPDX-License-Identifier: Apache-2.0 */
/* Few rows against many keys: what is known of a call and of a part of its keys, a thread's memory, and reading. */
#ifndef TRINE_CPU_ATTENTION_STREAM_KEYS_H
#define TRINE_CPU_ATTENTION_STREAM_KEYS_H

#include "attention_dots.h"
#include "attention_pack.h"

/* Keys of a block and, of few rows and of more, of a part; rows of all heads together; columns that rows of sums are
 * padded to. */
enum { STREAM_BLOCK = 64, STREAM_SHORT = 256, STREAM_LONG = 512, STREAM_ROWS = 128, STREAM_COLUMNS = 64 };
enum { STREAM_LDS = STREAM_LONG + 16, STREAM_TILE = 16 };

/* What is the same for all parts. Heads are those that are gone through together. */
typedef struct stream {
    trine_dtype T, C;           /* of queries, of keys and values */
    int64_t heads, rows, d, dv; /* rows: of a head, */
    int64_t all;                /* of those that the call has, which the size of tiles follows from */
    int64_t k_head, v_head;     /* bytes from a head to the next */
    float softcap;
    bool latent; /* values are the keys' first columns */
    bool tiles;
    /* What follows from these. Rows of a head, padded to tiles, and of a tile; floats from a row of queries or keys to
     * the next, and of sums; bytes of a row of bf16. */
    int64_t padded, high, ldq, ldo, pitch;
} stream;

/* A part's keys: where the first head's are, or NULL; which are there, as masks; which each row sees. */
typedef struct stream_part {
    int keys;
    const char *const *k, *const *v;
    const int32_t *there;  /* NULL: all are */
    const int *low, *high; /* of the rows of any head; both grow */
} stream_part;

/* Sums of weighted values, rows x ldo; the rows' largest scores and sums of weights. */
typedef struct stream_sums {
    float *o, *top, *sum;
} stream_sums;

/* A thread's memory. */
typedef struct stream_buffers {
    float *q;     /* rows of floats, or tiles of bf16 */
    float *s;     /* rows x STREAM_LDS: scores, then weights */
    float *lines; /* by tiles, a block's scores as they come out: keys x rows of all heads */
    float *block; /* a head's block of keys or values as floats or bf16; by tiles, followed by interleaved values */
    char *zeros;  /* in place of what is not there */
} stream_buffers;

INLINE bool stream_by_tiles(trine_dtype T) { return HAVE_TILES && T == TRINE_BF16; }

static inline stream stream_of(stream s) {
    s.tiles = stream_by_tiles(s.T);
    s.high = s.all >= STREAM_TILE ? STREAM_TILE : s.all > 0 ? s.all : 1;
    s.padded = s.tiles ? cpu_round_up(s.rows, s.high) : s.rows;
    s.ldq = leading(cpu_round_up(s.d, VL)), s.ldo = cpu_round_up(s.dv, STREAM_COLUMNS);
    s.pitch = dots_pitch(s.d > s.dv ? s.d : s.dv);
    return s;
}

/* Floats of the parts of a thread's memory. */
typedef struct stream_sizes {
    int64_t q, s, lines, block, zeros;
} stream_sizes;
static stream_sizes stream_sizes_of(const stream *s) {
    const int64_t rows = cpu_round_up(s->heads * s->padded, STREAM_TILE), wide = s->ldo > s->ldq ? s->ldo : s->ldq;
    stream_sizes n = { .s = rows * STREAM_LDS, .zeros = wide };
    n.q = s->heads * s->padded * (s->tiles ? cpu_round_up(s->d, SIDE) / 2 : s->ldq);
    n.lines = s->tiles ? STREAM_BLOCK * rows : 0;
    n.block = STREAM_BLOCK * (s->tiles ? s->pitch / 4 + s->ldo / 2 : leading(wide));
    n.q = cpu_round_up(n.q, 16), n.block = cpu_round_up(n.block, 16);
    return n;
}
static int64_t stream_floats(const stream *s) {
    const stream_sizes n = stream_sizes_of(s);
    return n.q + n.s + n.lines + n.block + n.zeros;
}
static stream_buffers stream_buffers_at(const stream *s, float *at) {
    const stream_sizes n = stream_sizes_of(s);
    stream_buffers w = { .q = at, .s = at + n.q };
    w.lines = w.s + n.s, w.block = w.lines + n.lines, w.zeros = (char *)(w.block + n.block);
    memset(w.zeros, 0, (size_t)n.zeros * sizeof(float));
    if (n.lines > 0) memset(w.lines, 0, (size_t)n.lines * sizeof(float));
    return w;
}

/* --------------------------------------------------------------------------------------------------------- elements */

INLINE vf stream_load(const char *from, int64_t c, int n, trine_dtype C) {
    if (C != TRINE_E4M3 && C != TRINE_I8) return n == VL ? vload(from, C, c) : vloadn(from, C, c, n, 0);
    vb bytes = { 0 };
    memcpy(&bytes, from + c, (size_t)n);
    return C == TRINE_E4M3 ? vf_from_float8(bytes, TRINE_E4M3)
                           : __builtin_convertvector((vb_widen(bytes) ^ 0x80) - 0x80, vf);
}

/* n elements as floats, and zeros up to a whole vector. */
INLINE void stream_widen_as(const char *from, int64_t n, float *to, trine_dtype C) {
    int64_t c = 0;
    for (; c + VL <= n; c += VL) put(to + c, stream_load(from, c, VL, C));
    if (c < n) put(to + c, stream_load(from, c, (int)(n - c), C));
}
static void stream_widen(const char *from, int64_t n, float *to, trine_dtype C) {
    switch (C) {
    case TRINE_E4M3: stream_widen_as(from, n, to, TRINE_E4M3); break;
    case TRINE_I8: stream_widen_as(from, n, to, TRINE_I8); break;
    default: FOR_TYPE(C, stream_widen_as, from, n, to);
    }
}

/* Where a head's keys or values of a block are, those that are not read being zeros. */
INLINE void stream_from(const char *const *at, int keys, int64_t offset, const char *zeros, const char **from) {
    for (int i = 0; i < STREAM_BLOCK; i++) from[i] = i < keys && at[i] ? at[i] + offset : zeros;
}

/* What is read next, the keys or values of a block of all heads, in the order of memory. It is asked for in small
 * steps while the block before is at work, for a core waits for more requests than it can have under way. */
typedef struct stream_ahead {
    const char *const *at;
    int64_t keys, key, head, heads;
    int64_t step, bytes; /* of a head */
} stream_ahead;
static stream_ahead stream_ahead_of(const stream *s, const char *const *at, int keys, int64_t step, int64_t width) {
    return (stream_ahead){ .at = at,
                           .keys = keys < STREAM_BLOCK ? keys : STREAM_BLOCK,
                           .heads = s->heads,
                           .step = step,
                           .bytes = width * (int64_t)trine_dtype_size(s->C) };
}
INLINE void stream_ask(stream_ahead *a, int heads) {
    for (; heads > 0 && a->key < a->keys; heads--) {
        const char *from = a->at[a->key];
        for (int64_t line = 0; from && line < a->bytes; line += 64)
            __builtin_prefetch(from + a->head * a->step + line, 0, 2);
        if (++a->head == a->heads) a->head = 0, a->key++;
    }
}

#endif
