/* SPDX-License-Identifier: Apache-2.0 */
/* A training run: model, schedule, data and losses, with checkpoints that continue it bit by bit. */
#ifndef GPT_TRAINER_H
#define GPT_TRAINER_H

#include <stdio.h>

#include "checkpoint.h"
#include "data.h"

/* Functions that return bool return false with the reason in `error`. */
typedef struct gpt_trainer {
    gpt_model model;
    gpt_schedule schedule;
    gpt_random random; /* chooses the batches */
    gpt_history history;
    int64_t step;
    int32_t *text;  /* the text to train on, in device memory */
    int64_t *place; /* of a batch's sequences in it */
    const gpt_data *data;
    int32_t *tokens, *labels; /* a batch to evaluate */
    int64_t saved;            /* parts of the state that have been read for a checkpoint */
    char error[512];
} gpt_trainer;

/* Starts a run; or continues `from`, whose configuration and schedule must then be the ones given.
 * gpt_trainer_close() also after a failure. */
bool gpt_trainer_open(gpt_trainer *trainer, trine_queue *queue, const gpt_config *config, const gpt_schedule *schedule,
                      const gpt_data *data, uint64_t seed, const gpt_checkpoint *from);
void gpt_trainer_close(gpt_trainer *trainer);

/* One step on a random batch. On a device it is queued, and its loss, that before the step, is not known before
 * gpt_trainer_wait(). */
bool gpt_trainer_step(gpt_trainer *trainer);

/* Waits for the steps and enters their losses in the history. Fails if one is not finite. */
bool gpt_trainer_wait(gpt_trainer *trainer);

/* Mean loss over at most `windows` sequences spread evenly over the held-out text;
 * entered in the history if `record`. */
bool gpt_trainer_evaluate(gpt_trainer *trainer, int64_t windows, bool record, double *loss_out);

/* All ranks call it; the first one writes the file, which is the same for any number of ranks. */
bool gpt_trainer_save(gpt_trainer *trainer, const char *path);

/* Prints `count` characters that the model writes after `prompt`, drawn at a temperature of 0.8. */
bool gpt_trainer_sample(gpt_trainer *trainer, const char *prompt, int count, uint64_t seed, FILE *to);

/* Draws the losses as an SVG. */
bool gpt_curve_write(const gpt_history *history, const char *path, char *error_out, size_t error_size);

#endif
