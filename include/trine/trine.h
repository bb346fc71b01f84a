/* SPDX-License-Identifier: Apache-2.0 */
/* trine: one kernel specification, three backends, one answer. Life cycle, devices, queues, tensors and errors.
 *
 * The ops are declared in the headers of their families, which this one includes at its end.
 *
 * Errors. Every function that can fail returns a trine_status. The first function that decides an error records a
 * message for the calling thread, which names the op, the argument and both values; trine_error_message() returns it.
 * Outputs are untouched on error.
 *
 * Threads. A `trine` is immutable after trine_open() and may be shared by any number of threads. A queue belongs to one
 * thread at a time. Messages are per thread.
 *
 * The CPU device has threads of its own, which are made when first needed, sleep between calls, run where the thread
 * that opened the queue may run, block all signals but those of faults, and are named "trine". Where one cannot be
 * made, or other programs hold its core, the others do its work: that changes no bit. A call needs 128 KiB of the
 * calling thread's stack. It computes in the default floating-point environment, whatever the caller's is, and leaves
 * that as it was.
 *
 * Processes. After fork() the child may go on using CPU queues, with threads of its own. Devices other than the CPU
 * must not be used in a forked child.
 *
 * Locale. The process's locale is neither changed nor heeded: numbers in caches, variables and messages have a point
 * before the fraction.
 *
 * Environment: see trine(7). */
#ifndef TRINE_TRINE_H
#define TRINE_TRINE_H

#include <trine/arena.h>
#include <trine/base.h>
#include <trine/group.h>
#include <trine/library.h>
#include <trine/ops.h>

#endif
