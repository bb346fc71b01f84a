/* SPDX-License-Identifier: Apache-2.0 */
/* Which groups of a device's units are taken. Compiled once into each module. */
#include "parts.h"

static uint64_t every(const simt_parts *parts) {
    const int groups = parts->whole + (parts->rest > 0);
    return groups < SIMT_MOST_PARTS ? (UINT64_C(1) << groups) - 1 : UINT64_MAX;
}

static uint64_t rest_of(const simt_parts *parts) { return parts->rest > 0 ? UINT64_C(1) << parts->whole : 0; }

int simt_parts_units(const simt_parts *parts, uint64_t part) {
    const uint64_t rest = rest_of(parts);
    return __builtin_popcountll(part & ~rest) * parts->size + (part & rest ? parts->rest : 0);
}

int simt_parts_left(const simt_parts *parts) { return simt_parts_units(parts, every(parts) & ~parts->taken); }

/* The rest goes to the first part that comes out smaller with it, or that needs it. */
bool simt_parts_take(simt_parts *parts, int count, uint64_t *part_out) {
    if (count < 1 || count > simt_parts_left(parts)) return false;
    const uint64_t rest = rest_of(parts) & ~parts->taken;
    const int more = rest ? count - parts->rest : count;
    const int alone = (count + parts->size - 1) / parts->size,
              beside = more > 0 ? (more + parts->size - 1) / parts->size : 0,
              whole = __builtin_popcountll(every(parts) & ~rest_of(parts) & ~parts->taken);
    const bool with = rest != 0 && (alone > whole || beside * parts->size + parts->rest < alone * parts->size);
    uint64_t part = with ? rest : 0;
    for (int group = 0, left = with ? beside : alone; left > 0; group++) {
        const uint64_t bit = UINT64_C(1) << group;
        if (parts->taken & bit) continue;
        part |= bit;
        left--;
    }
    parts->taken |= part;
    *part_out = part;
    return true;
}

void simt_parts_give(simt_parts *parts, uint64_t part) { parts->taken &= ~part; }
