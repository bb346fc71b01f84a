/* SPDX-License-Identifier: Apache-2.0 */
/* Device code that is compiled at run time, by a library of the vendor which is opened at first need and never linked.
 * Where it is absent nothing fails: kernels that need it refuse, and say which library was looked for. */
#ifndef TRINE_SIMT_COMPILE_H
#define TRINE_SIMT_COMPILE_H

#include "backends/backend.h"

/* A vendor's compiler. NVRTC and hipRTC have the same entry points but for their names. */
typedef struct simt_compiler_spec {
    const char *prefix;           /* of the entry points: "nvrtc" */
    const char *code;             /* the word for what comes out, in their names: "CUBIN" */
    const char *const *libraries; /* their names, the best first; NULL ends them */
    const char *arch_option;      /* what stands before an architecture's name */
    const char *const *options;   /* besides; NULL ends them */
    const char *vocabulary;       /* the text of the vendor's <fetch.h>, and so of <target.h> */
} simt_compiler_spec;
extern const simt_compiler_spec simt_compiler_of_vendor;

/* A function of its own code, on one device. */
typedef struct simt_compiled {
    void *image;
    size_t size;
    void *function; /* the driver's */
    double seconds; /* that compiling took; 0: the code was in the cache */
    char why[448];  /* it could not be made; "": it is there */
} simt_compiled;

/* Why nothing can be compiled for the call's device; NULL: it can, as was seen with a function that does nothing. Opens
 * the compiler, and compiles that, where it was not done before. */
const char *simt_compiler_missing(const trine_call *call);

/* "nvrtc 13.0": once it is not missing. */
const char *simt_compiler_version(void);

/* Compiles `source`, which may include <fetch.h>, for the call's device, or finds its code in the cache, and loads
 * `function`. False with the reason in compiled_out->why. The caller sees to it that two threads do not compile the
 * same. Legal while the queue is recorded. */
bool simt_compile(const trine_call *call, const char *source, const char *function, simt_compiled *compiled_out);

/* Launches it as simt_launch() does a function that was built in. */
trine_status simt_launch_compiled(const trine_call *call, const simt_compiled *compiled, int64_t blocks, int threads,
                                  const void *params);

/* --------------------------------------------------------------------------------------- what each vendor defines */

enum { SIMT_ARCH_SIZE = 32 };

/* The name of the device's architecture as the compiler takes it: "sm_90". */
void simt_arch_of(const void *device, char name_out[static SIMT_ARCH_SIZE]);

/* Loads the function of an image that stays; false with the driver's words in compiled->why. */
bool simt_load_compiled(const trine_call *call, const char *function, simt_compiled *compiled);

/* ---------------------------------------------------------------------------------------------- code_cache.c: disk */

/* Of everything that code depends on. */
typedef struct simt_code_key {
    uint64_t word[2];
} simt_code_key;

/* Adds bytes, and how many they are, to what a key is of; a key that has seen none is all zeros. */
void simt_code_key_add(simt_code_key *key, const void *bytes, size_t size);

/* The code that was kept under the key; NULL: there is none, or none that is whole. To be freed. */
void *simt_code_cache_read(const trine_host *host, const simt_code_key *key, size_t *size_out);

/* Keeps it, unless there is no cache or it cannot be written, which is no error. */
void simt_code_cache_write(const trine_host *host, const simt_code_key *key, const void *image, size_t size);

#endif
