/* SPDX-License-Identifier: Apache-2.0 */
/* How a test tells the stub driver what to be. */
#ifndef TRINE_STUB_H
#define TRINE_STUB_H

typedef struct stub_settings {
    int version; /* of the driver, as in 13000 */
    int devices;
    int major, minor; /* compute capability */
    const char *fail; /* the entry point that fails ("cuMemAlloc_v2"), NULL: none */
    int after;        /* calls of it that still succeed */
    /* what it returns then; CUDA_ERROR_ILLEGAL_ADDRESS: every later call too, but those about errors and devices */
    int result;
    int failed;      /* how often it did */
    unsigned shapes; /* a number made of the blocks, threads and clusters of all launches */
    void *stream;    /* of the last launch */
    int destroyed;   /* streams */
    /* Green contexts: the driver has none; how many there are; SMs that two of them had at once; SMs of the last
     * launch's stream; streams that were left in one when it was destroyed. */
    int no_green, greens, shared, units, left;
    int launches; /* of kernels */
    /* those of one device, while one that waits for others was there, whose memory was not to be cut as for most shared
     * memory: a device that cuts it anew waits until nothing runs */
    int uncut;
} stub_settings;

/* The variable of this name in the stub library. */
#define STUB_SETTINGS "stub"

#endif
