/* SPDX-License-Identifier: Apache-2.0 */
/* The lists the other way round: for each block of keys the entries that name it, in their order. And dbias, the sum of
 * its parts. */
#include "lists.inl.h"

/* The list that entry e is on, or -1. */
DEVICE int32_t lists_owner(const lists_params &p, int64_t n, int32_t l, int32_t e) {
    const int32_t *const starts = (const int32_t *)p.starts.data + n * p.starts.batch + l * p.starts.head;
    int32_t low = 0, high = p.blocks; /* starts[low] <= e < starts[high], if they ascend */
    if (p.blocks == 0 || starts[0] > e) return -1;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (starts[middle] <= e)
            low = middle;
        else
            high = middle;
    }
    return low < p.lists && starts[low] >= 0 && e < starts[low + 1] && starts[low + 1] <= p.entries ? low : -1;
}

/* A chunk of entries: the lists that they are on, and their blocks of keys; -1: none. */
struct lists_chunk {
    int32_t list[LISTS_CHUNK], block[LISTS_CHUNK];
};

/* What a block of threads has to do: a chunk of a head's entries, and for each thread a block of keys. */
struct lists_part {
    int64_t lists, chunk;
    int32_t first, count, block;

    DEVICE lists_part(const lists_params &p, lists_chunk &of) {
        const int64_t groups = (p.key_blocks + SIMT_THREADS - 1) / SIMT_THREADS, all = block_index() / groups;
        block = (int32_t)(block_index() - all * groups) * SIMT_THREADS + thread_index();
        lists = all / p.chunks, chunk = all;
        first = (int32_t)(all - lists * p.chunks) * LISTS_CHUNK;
        count = p.entries - first < LISTS_CHUNK ? p.entries - first : (int32_t)LISTS_CHUNK;
        const int64_t n = lists / p.hl;
        const int32_t l = (int32_t)(lists - n * p.hl);
        for (int i = thread_index(); i < LISTS_CHUNK; i += SIMT_THREADS) {
            int32_t list = -1, at = LISTS_NOWHERE;
            if (i < count) list = lists_owner(p, n, l, first + i), at = lists_first_key(p, n, l, first + i);
            of.list[i] = list, of.block[i] = list >= 0 && at != LISTS_NOWHERE ? at / p.key_block : -1;
        }
        sync_block();
    }
};

ENTRY(attention_blocks_backward_count, SIMT_THREADS, lists_params) {
    SHARED lists_chunk of;
    const lists_part part(p, of);
    int32_t count = 0;
#pragma unroll 8
    for (int i = 0; i < LISTS_CHUNK; i++) count += of.block[i] == part.block;
    if (part.block < p.key_blocks) p.counts[part.chunk * p.key_blocks + part.block] = count;
}

/* Counts become numbers of the entries before. */
ENTRY(attention_blocks_backward_add, SIMT_THREADS, lists_params) {
    SHARED int32_t of[SIMT_THREADS];
    const int thread = thread_index();
    int32_t *const begins = p.begins + block_index() * (p.key_blocks + 1), *const counts = p.counts + block_index() *
                                                                                                          p.chunks *
                                                                                                          p.key_blocks;
    int32_t base = 0;
    if (thread == 0) begins[0] = 0;
    for (int32_t from = 0; from < p.key_blocks; from += SIMT_THREADS) {
        const int32_t j = from + thread;
        int32_t before = 0;
        for (int32_t c = 0; j < p.key_blocks && c < p.chunks; c++) {
            int32_t &here = counts[(int64_t)c * p.key_blocks + j];
            const int32_t count = here;
            here = before;
            before += count;
        }
        of[thread] = before;
        sync_block();
        int32_t end = base;
        for (int i = 0; i <= thread; i++) end += of[i];
        if (j < p.key_blocks) begins[j + 1] = end;
        for (int i = 0; i < SIMT_THREADS; i++) base += of[i];
        sync_block();
    }
}

ENTRY(attention_blocks_backward_turn, SIMT_THREADS, lists_params) {
    SHARED lists_chunk of;
    const lists_part part(p, of);
    if (part.block >= p.key_blocks) return;
    int32_t at =
        p.begins[part.lists * (p.key_blocks + 1) + part.block] + p.counts[part.chunk * p.key_blocks + part.block];
    lists_visit *const visits = p.visits + part.lists * p.entries;
    for (int i = 0; i < LISTS_CHUNK; i++)
        if (of.block[i] == part.block) visits[at++] = { of.list[i], part.first + i };
}

ENTRY(attention_blocks_backward_bias, SIMT_THREADS, lists_params) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index(), lists = number / p.entries, n = lists / p.hl;
    if (n >= p.b) return;
    const int32_t e = (int32_t)(number - lists * p.entries), l = (int32_t)(lists - n * p.hl);
    float sum = 0;
    if (lists_owner(p, n, l, e) >= 0)
        for (int32_t i = 0; i < p.list_bundles * p.tiles; i++) {
            const int64_t part = (n * p.bundles + (int64_t)l * p.list_bundles) * p.tiles + i;
            sum += p.partial[part * p.entries + e];
        }
    ((float *)p.dbias.data)[n * p.dbias.batch + l * p.dbias.head + e] = sum;
}
