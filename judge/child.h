/* SPDX-License-Identifier: Apache-2.0 */
/* What a process may use in which the kernel runs. */
#ifndef TRINE_JUDGE_CHILD_H
#define TRINE_JUDGE_CHILD_H

#include "judge.h"

/* In the new process: a group of its own, which dies with the judge; processor time, and memory beside so many
 * bytes. */
void judge_limit(const judge_options *options, double seconds, double bytes);

/* A wait status in words. */
void judge_end_words(int status, char *words, size_t size);

#endif
