/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of images and volumes on the CPU: what a convolution multiplies for each position, element (tap, channel) by
 * element, copied side by side from an array with any strides. */
#ifndef TRINE_CPU_CONV_PATCHES_H
#define TRINE_CPU_CONV_PATCHES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <trine/trine.h>

/* Depth, height or width: position i and tap t read place first + i step + t dilation of [0, in). */
typedef struct conv_axis {
    int64_t in, positions, taps, first, step, dilation;
} conv_axis;

/* An array by positions and channels; strides in bytes. */
typedef struct conv_view {
    char *data;
    int64_t batch, axis[3], channel;
} conv_view;

typedef struct patches {
    conv_axis axis[3];
    conv_view from;
    int64_t channels, elements; /* of a tap, and of a patch */
    int64_t size;               /* bytes of an element */
    /* The run of elements whose place in memory follows from one position: a tap's channels, or, if `merged`, those of
     * all taps along the width. */
    int64_t run, step; /* and bytes from one to the next */
    bool merged;
    bool across; /* neighbours in memory are neighbours in position */
} patches;

/* A position: its image and the places that tap 0 reads. */
typedef struct conv_place {
    int64_t at[3];
    const char *image;
} conv_place;

static inline int64_t conv_positions(const conv_axis *axis) {
    return axis[0].positions * axis[1].positions * axis[2].positions;
}
static inline int64_t conv_taps(const conv_axis *axis) { return axis[0].taps * axis[1].taps * axis[2].taps; }

/* All but axes, from, channels and size follow from those. */
static inline void patches_complete(patches *p) {
    const conv_axis *w = &p->axis[2];
    p->elements = conv_taps(p->axis) * p->channels;
    const bool dense = p->channels <= 1 || p->from.channel == p->size;
    p->across = !dense && p->from.axis[2] * w->step == p->size;
    p->merged = dense && w->dilation == 1 && p->from.axis[2] == p->channels * p->size;
    p->run = p->merged ? w->taps * p->channels : p->channels;
    p->step = p->merged ? p->size : p->from.channel;
}

/* Places of `count` positions from number `first` on, group `group`. */
static inline void patches_places(const patches *p, int64_t first, int64_t count, int64_t group, conv_place *to) {
    int64_t at[3] = { first / (p->axis[2].positions * p->axis[1].positions) % p->axis[0].positions,
                      first / p->axis[2].positions % p->axis[1].positions, first % p->axis[2].positions },
            n = first / conv_positions(p->axis);
    for (int64_t i = 0; i < count; i++) {
        to[i].image = p->from.data + n * p->from.batch + group * p->channels * p->from.channel;
        for (int d = 0; d < 3; d++) to[i].at[d] = p->axis[d].first + at[d] * p->axis[d].step;
        if (++at[2] < p->axis[2].positions) continue;
        at[2] = 0;
        if (++at[1] < p->axis[1].positions) continue;
        at[1] = 0;
        if (++at[0] < p->axis[0].positions) continue;
        at[0] = 0, n++;
    }
}

static inline int64_t conv_clamp(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

/* `count` elements whose places are `step` bytes apart. */
static inline void conv_copy(char *to, const char *from, int64_t count, int64_t step, int64_t size) {
    if (step == size)
        memcpy(to, from, (size_t)(count * size));
    else if (size == 4)
        for (int64_t i = 0; i < count; i++) memcpy(to + i * 4, from + i * step, 4);
    else if (size == 2)
        for (int64_t i = 0; i < count; i++) memcpy(to + i * 2, from + i * step, 2);
    else
        for (int64_t i = 0; i < count; i++) memcpy(to + i * 8, from + i * step, 8);
}

/* Which run an element is of: its taps, and where the run begins among the elements. */
typedef struct conv_run {
    int64_t tap[3], first;
} conv_run;

static inline conv_run patches_run(const patches *p, int64_t element) {
    const int64_t number = element / p->run, wide = p->merged ? 1 : p->axis[2].taps;
    return (conv_run){ { number / (wide * p->axis[1].taps), number / wide % p->axis[1].taps, number % wide },
                       number * p->run };
}
static inline void patches_next_run(const patches *p, conv_run *r) {
    r->first += p->run;
    if (!p->merged && ++r->tap[2] < p->axis[2].taps) return;
    r->tap[2] = 0;
    if (++r->tap[1] < p->axis[1].taps) return;
    r->tap[1] = 0, r->tap[0]++;
}

static inline int64_t patches_at(const patches *p, const conv_place *place, const conv_run *r, int d) {
    return place->at[d] + r->tap[d] * p->axis[d].dilation;
}
static inline bool patches_inside(const patches *p, int d, int64_t at) { return at >= 0 && at < p->axis[d].in; }

/* Elements [first, last) of one position. */
static inline void patches_row(const patches *p, const conv_place *place, int64_t first, int64_t last, char *to) {
    conv_run r = patches_run(p, first);
    for (int64_t e = first; e < last; patches_next_run(p, &r)) {
        const int64_t end = r.first + p->run < last ? r.first + p->run : last, z = patches_at(p, place, &r, 0),
                      y = patches_at(p, place, &r, 1), x = patches_at(p, place, &r, 2);
        int64_t from = end, until = end; /* those that there are */
        if (patches_inside(p, 0, z) && patches_inside(p, 1, y)) {
            const conv_axis *w = &p->axis[2];
            int64_t low = 0, high = patches_inside(p, 2, x) ? p->channels : 0;
            if (p->merged)
                low = conv_clamp(-x, w->taps) * p->channels, high = conv_clamp(w->in - x, w->taps) * p->channels;
            from = r.first + low > e ? r.first + low : e, until = r.first + high < end ? r.first + high : end;
            if (from >= until) from = until = end;
        }
        memset(to, 0, (size_t)((from - e) * p->size));
        if (from < until)
            conv_copy(to + (from - e) * p->size,
                      place->image + z * p->from.axis[0] + y * p->from.axis[1] + x * p->from.axis[2] +
                          (from - r.first) * p->step,
                      until - from, p->step, p->size);
        memset(to + (until - e) * p->size, 0, (size_t)((end - until) * p->size));
        to += (end - e) * p->size, e = end;
    }
}

/* One element of `count` positions, those of one row of positions after each other. */
static inline void patches_line(const patches *p, const conv_place *place, int64_t count, const conv_run *r,
                                int64_t channel, char *to) {
    const conv_axis *w = &p->axis[2];
    for (int64_t i = 0, next; i < count; i = next) {
        const int64_t z = patches_at(p, &place[i], r, 0), y = patches_at(p, &place[i], r, 1),
                      x = patches_at(p, &place[i], r, 2);
        const bool there = patches_inside(p, 0, z) && patches_inside(p, 1, y) && patches_inside(p, 2, x);
        for (next = i + 1; next < count; next++) {
            const int64_t ahead = x + (next - i) * w->step;
            if (place[next].at[2] != place[i].at[2] + (next - i) * w->step || place[next].at[1] != place[i].at[1] ||
                place[next].at[0] != place[i].at[0] || place[next].image != place[i].image ||
                (there && !patches_inside(p, 2, ahead)))
                break;
            if (!there && patches_inside(p, 2, ahead)) break;
        }
        char *line = to + i * p->size;
        if (!there)
            memset(line, 0, (size_t)((next - i) * p->size));
        else
            conv_copy(line,
                      place[i].image + z * p->from.axis[0] + y * p->from.axis[1] + x * p->from.axis[2] +
                          channel * p->from.channel,
                      next - i, p->from.axis[2] * w->step, p->size);
    }
}

/* Elements [first, last) of `count` positions: position by position, or with `across` element by element. */
static inline void patches_gather(const patches *p, const conv_place *place, int64_t count, int64_t first, int64_t last,
                                  char *to) {
    if (!p->across) {
        for (int64_t i = 0; i < count; i++) patches_row(p, &place[i], first, last, to + i * (last - first) * p->size);
        return;
    }
    conv_run r = patches_run(p, first);
    for (int64_t e = first; e < last; e++) {
        if (e == r.first + p->run) patches_next_run(p, &r);
        patches_line(p, place, count, &r, e - r.first, to + (e - first) * count * p->size);
    }
}

#endif
