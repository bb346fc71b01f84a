/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient's step from scores and dp to p and ds, a row at a time. */
#ifndef TRINE_CPU_ATTENTION_WEIGH_H
#define TRINE_CPU_ATTENTION_WEIGH_H

#include "attention.h"

enum { WEIGH_KEYS = 256 }; /* the most of a row at a time, a multiple of VL */

/* A row against keys from one on. */
typedef struct weigh_row {
    float *p, *ds; /* scores, then p; dp, then ds */
    float lse, delta;
} weigh_row;

/* Row r of scores and dp becomes p and ds, over all n columns; `low` and `high` are what it sees. `added` to scores,
 * and which weights are `kept`, may be NULL; dp is scaled where they are. `free`, if not NULL, gets ds without the
 * derivative of softcap. */
INLINE void weigh(const weigh_row *row, int n, int low, int high, float softcap, const addend *added,
                  const int32_t *kept, float scale, float *free) {
    float *p = row->p, *ds = row->ds;
    const float lse = row->lse, delta = row->delta;
    if (lse == -INFINITY) low = high = 0;
    const int first = low / VL * VL, last = (int)cpu_round_up(high, VL), end = (int)cpu_round_up(n, VL);
    for (int j = 0; j < end; j += VL) {
        if (j < first || j >= last) {
            put(p + j, vzero());
            put(ds + j, vzero());
            continue;
        }
        vf x = get(p + j), slope = vset(1.0f);
        if (softcap > 0) {
            const vf t = vtanh(x / softcap);
            x = softcap * t;
            slope = vfma(-t, t, slope);
        }
        if (added) x = addend_add(added, j, x);
        const vi keep = kept ? (vi) * (const vi_any *)(kept + j) : viset(-1);
        const vf dp = kept ? (vf)((vi)(get(ds + j) * scale) & keep) : get(ds + j);
        /* of large scores lse has so little that the difference may be positive */
        vf weight = vexp(vmin(vzero(), x - lse)), change = weight * (dp - delta);
        if (free) put(free + j, change);
        if (softcap > 0) change *= slope;
        if (kept) weight = (vf)((vi)weight & keep);
        if (j < low || j + VL > high) {
            const vi seen = (viota() + j >= low) & (viota() + j < high);
            weight = vsel(seen, weight, vzero());
            change = vsel(seen, change, vzero());
        }
        put(p + j, weight);
        put(ds + j, change);
    }
}

/* A row of a block of dbias: of what it sees of keys from `start` on; the rest is zero already. */
static void store_bias(const block *b, int64_t r, const span *k, int64_t start, const float *change) {
    const attention *a = b->a;
    const trine_tensor *t = &a->call->tensor[ATTENTION_BACKWARD_DBIAS];
    const int64_t row = b->first + r, head = b->head * a->group + row % a->group;
    const int64_t at = b->seq.batch * t->stride[0] + head * t->stride[1] + (b->seq.q + row / a->group) * t->stride[2] +
                       b->seq.k + start + k->low[r];
    if (k->high[r] > k->low[r])
        store_scaled(change + k->low[r], k->high[r] - k->low[r], 1,
                     (char *)t->data + at * (int64_t)trine_dtype_size(t->dtype), t->dtype);
}

/* Of a row that counts, for keys from `start` of the sequence on. */
static void weigh_with_options(const block *b, const weigh_row *row, int64_t r, const span *k, int64_t start) {
    const attention *a = b->a;
    int32_t buffer[DROPOUT_BUFFER];
    float change[WEIGH_KEYS];
    const bool stores = a->call->present >> ATTENTION_BACKWARD_DBIAS & 1;
    const addend added = addend_of(b, r, start);
    weigh(row, k->n, k->low[r], k->high[r], a->softcap, adds(a) ? &added : NULL,
          a->drops ? kept_keys(b, r, start, k->n, buffer) : NULL, a->dropout.scale, stores ? change : NULL);
    if (stores && row->lse != -INFINITY) store_bias(b, r, k, start, change);
}

#endif
