/* SPDX-License-Identifier: Apache-2.0 */
/* What the command is told. */
#ifndef GPT_OPTIONS_H
#define GPT_OPTIONS_H

#include "checkpoint.h"

typedef struct options {
    const char *text, *device, *save, *export, *resume, *svg, *prompt, *losses;
    gpt_config config;
    gpt_schedule schedule;
    int64_t save_every, stop;
    int threads, sample, ranks;
    gpt_group group; /* what is told of it */
    uint64_t seed;
    bool offloads;
    gpt_offload offload;
} options;

/* -1 to go on, else the exit status. */
int options_read(options *o, int argc, char **argv);

/* Says what is wrong, and why unless that is "". Returns 1. */
int complain(const char *what, const char *why);

#endif
