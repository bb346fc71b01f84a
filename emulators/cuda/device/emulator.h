/* SPDX-License-Identifier: Apache-2.0 */
/* Runs device code that was compiled for the host: blocks one after the other, a block's threads in turns from one wait
 * to the next. The blocks of a cluster take turns from one of its barriers to the next. */
#ifndef TRINE_EMULATOR_H
#define TRINE_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What shuffles get of a thread that has returned: any value, such as this large one. */
#define EMULATOR_GONE UINT64_C(0x7f7f901e7f7f901e)

enum { EMULATOR_WARP = 32, EMULATOR_THREADS = 1024, EMULATOR_MEMORY = 227 << 10, EMULATOR_CLUSTER = 16 };

/* Code that is compiled when a test runs finds these in the stub. */
#define EMULATOR_SHARED __attribute__((visibility("default")))

typedef enum emulator_state { READY, WAIT_PART, WAIT_WARP, WAIT_BLOCK, WAIT_CLUSTER, WAIT_CHANGE, DONE } emulator_state;

/* Each thread of the host runs launches of its own. */
#define EMULATOR_OWN __thread

/* What device code sees of the thread that runs. */
extern EMULATOR_SHARED EMULATOR_OWN struct emulator {
    int thread, threads;
    int64_t block, blocks;
    uint64_t changes;  /* of barriers in memory */
    int rank, cluster; /* of the block in its cluster, and how many blocks that has */
    uint64_t *slot;    /* of each thread, for shuffles */
    /* Shared memory whose size a launch says, of each block of a cluster; what is declared in device code they have in
     * common, so that it must not be needed beyond a barrier of the cluster. */
    char (*memory)[EMULATOR_MEMORY];
} emulator;

/* In device code: until all threads of the warp, the block or the cluster that have not returned are here;
 * or until a barrier in memory has changed, perhaps; READY: until the others have had their turns. */
EMULATOR_SHARED void emulator_wait(emulator_state state);

/* The same of `count` threads from number `first` on, none of which may have returned. */
EMULATOR_SHARED void emulator_wait_part(int first, int count);

/* A kernel's entry: runs a thread of it, if there are parameters, and returns their size; and EMULATOR_ALONE if it
 * waits for other launches, which then must run at the same time. */
typedef unsigned emulator_entry(const void *params);
#define EMULATOR_ALONE 0x80000000u

/* Runs a kernel in clusters of so many blocks; every other launch in the reverse order of blocks and threads. Device
 * code in which threads wait for each other for ever ends the process with a message. */
void emulator_launch(emulator_entry *entry, const void *params, int64_t blocks, int threads, int cluster);

#ifdef __cplusplus
}
#endif

#endif
