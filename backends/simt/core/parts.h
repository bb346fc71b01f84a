/* SPDX-License-Identifier: Apache-2.0 */
/* The units of a device, its SMs or CUs, in groups that queues take for themselves. */
#ifndef TRINE_SIMT_PARTS_H
#define TRINE_SIMT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

enum { SIMT_MOST_PARTS = 64 };

/* Groups of `size` units each, and one more of `rest`, if there is a rest. */
typedef struct simt_parts {
    int size, whole, rest;
    uint64_t taken; /* set of groups; the one of the rest is behind the others */
} simt_parts;

/* The groups of a part, at least one: the fewest units that are at least `count`. False if fewer are left. */
bool simt_parts_take(simt_parts *parts, int count, uint64_t *part_out);
void simt_parts_give(simt_parts *parts, uint64_t part);

/* The units of a set of groups. */
int simt_parts_units(const simt_parts *parts, uint64_t part);

/* The units that nobody has taken. */
int simt_parts_left(const simt_parts *parts);

#endif
