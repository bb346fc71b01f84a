/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that could prefetch what they read while the previous launch ends: here launches follow each other. */
#ifndef TRINE_EMULATOR_FETCH_H
#define TRINE_EMULATOR_FETCH_H

#include "backends/simt/core/ahead.h"
#include "target.h"

DEVICE void fetch_sector(const void *) {}

#define ENTRY_ASKING ENTRY_HELD
#define ENTRY_ASKING_FOR(what, name, threads, blocks, params) ENTRY_HELD(name, threads, blocks, params)

#endif
