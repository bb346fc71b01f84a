/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of texts that were met before, so that a call parses none twice. */
#ifndef TRINE_SPEC_CHAIN_MEMO_H
#define TRINE_SPEC_CHAIN_MEMO_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

/* Sets, by a text's hash, of the texts that were asked for last, the latest first: 512 of up to 2 KB. A program that
 * writes a changing number into its texts drives out some of the others, and takes no more. */
enum { CHAIN_MEMO_SETS = 64, CHAIN_MEMO_WAYS = 8 };

typedef struct chain_memo_entry {
    uint64_t hash;
    chain_program program;
    char text[];
} chain_memo_entry;

typedef struct chain_memo_set {
    pthread_mutex_t lock;
    chain_memo_entry *entry[CHAIN_MEMO_WAYS];
} chain_memo_set;

static chain_memo_set chain_memo[CHAIN_MEMO_SETS] = { [0 ... CHAIN_MEMO_SETS - 1] = { .lock =
                                                                                          PTHREAD_MUTEX_INITIALIZER } };

static uint64_t chain_memo_hash(const char *text, size_t length) {
    uint64_t hash = length;
    for (; length >= 8; length -= 8, text += 8) {
        uint64_t word;
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (; length > 0; length--, text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Makes `first` the set's first entry, in the place of the one at `from`, which goes. */
static void chain_memo_put(chain_memo_set *set, chain_memo_entry *first, int from) {
    memmove(set->entry + 1, set->entry, (size_t)from * sizeof *set->entry);
    set->entry[0] = first;
}

static bool chain_memo_find(chain_memo_set *set, uint64_t hash, const char *text, bool wide,
                            chain_program *program_out) {
    bool found = false;
    pthread_mutex_lock(&set->lock);
    for (int i = 0; i < CHAIN_MEMO_WAYS && set->entry[i] != NULL; i++) {
        chain_memo_entry *const entry = set->entry[i];
        if (entry->hash != hash || entry->program.wide != wide || strcmp(entry->text, text) != 0) continue;
        memcpy(program_out, &entry->program, sizeof *program_out);
        chain_memo_put(set, entry, i);
        found = true;
        break;
    }
    pthread_mutex_unlock(&set->lock);
    return found;
}

/* Two threads that met it at once may both keep it: the one that is not found any more goes in its turn. */
static void chain_memo_keep(chain_memo_set *set, uint64_t hash, const char *text, size_t length,
                            const chain_program *program) {
    chain_memo_entry *const entry = malloc(sizeof *entry + length + 1);
    if (entry == NULL) return;
    entry->hash = hash;
    memcpy(&entry->program, program, sizeof *program);
    memcpy(entry->text, text, length + 1);
    pthread_mutex_lock(&set->lock);
    free(set->entry[CHAIN_MEMO_WAYS - 1]);
    chain_memo_put(set, entry, CHAIN_MEMO_WAYS - 1);
    pthread_mutex_unlock(&set->lock);
}

bool trine_chain_program_of(const char *text, bool wide, chain_program *program_out, char *error, size_t size) {
    const size_t length = strnlen(text, CHAIN_TEXT + 1);
    const uint64_t hash = chain_memo_hash(text, length);
    chain_memo_set *const set = &chain_memo[hash % CHAIN_MEMO_SETS];
    chain_graph graph;
    if (length <= CHAIN_TEXT && chain_memo_find(set, hash, text, wide, program_out)) return true;
    if (!trine_chain_parse(text, wide, &graph, error, size) || !trine_chain_compile(&graph, program_out, error, size))
        return false;
    chain_memo_keep(set, hash, text, length, program_out);
    return true;
}

#endif
