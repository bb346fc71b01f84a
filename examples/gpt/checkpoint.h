/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a training run needs to go on as if it had not stopped, as a file. */
#ifndef GPT_CHECKPOINT_H
#define GPT_CHECKPOINT_H

#include <stddef.h>

#include "model.h"

enum { GPT_STATE_PIECE = 1 << 20 }; /* parameters whose state is asked for at once */

/* How to train. */
typedef struct gpt_schedule {
    int64_t steps, warmup; /* the rate rises over `warmup` steps, then falls as a cosine to a tenth */
    float rate, beta1, beta2, weight_decay, max_norm;
} gpt_schedule;

/* The losses so far. */
typedef struct gpt_history {
    int64_t count; /* of training losses: one per step */
    float *train;
    int64_t held_out_count;
    struct gpt_held_out {
        int64_t step;
        float loss;
    } *held_out;
} gpt_history;

typedef struct gpt_checkpoint {
    gpt_config config;
    gpt_schedule schedule;
    gpt_random random;
    uint64_t text_hash;
    int64_t step; /* steps taken */
    gpt_history history;
    int64_t parameters;
    /* The optimizer's state, which may be larger than memory. Of a checkpoint that was read it is in its bytes; of one
     * to be saved it is what this gives, GPT_PARAM, GPT_M or GPT_V of so many parameters. */
    const uint8_t *state;
    bool (*read)(void *from, int which, int64_t first, int64_t count, float *to);
    void *from;
    void *mapped; /* its file */
    size_t size;
} gpt_checkpoint;

/* Reads a checkpoint from memory, which must outlive it: magic, version, sizes, ranges and checksum are checked before
 * anything is believed. On failure nothing is allocated, and `error_out` says what is wrong.
 * The file is little-endian, whatever the machine. */
bool gpt_checkpoint_parse(gpt_checkpoint *checkpoint, const uint8_t *bytes, size_t size, char *error_out,
                          size_t error_size);

/* The same from a file. */
bool gpt_checkpoint_load(gpt_checkpoint *checkpoint, const char *path, char *error_out, size_t error_size);

/* State of `count` parameters from `first` on. */
bool gpt_checkpoint_state(const gpt_checkpoint *checkpoint, int which, int64_t first, int64_t count, float *to);

/* Writes a checkpoint beside `path`, then puts it in its place: whatever happens, `path` is the old file or the new
 * one, whole. Where the state cannot be read, `error_out` is left to who reads it. */
bool gpt_checkpoint_save(const gpt_checkpoint *checkpoint, const char *path, char *error_out, size_t error_size);

void gpt_checkpoint_free(gpt_checkpoint *checkpoint);

#endif
