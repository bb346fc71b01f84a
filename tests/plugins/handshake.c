/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that are refused for what their handshake or their init says: one for each -DNAME=... with what is wrong. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "spec/spec_hash.h"

#ifndef MAGIC
#define MAGIC TRINE_MODULE_MAGIC
#endif
#ifndef ABI
#define ABI TRINE_ABI
#endif
#ifndef STRUCT_SIZE
#define STRUCT_SIZE sizeof(trine_module)
#endif
#ifndef SPEC_HASH
#define SPEC_HASH TRINE_SPEC_HASH
#endif
#ifndef CALLS_ITSELF
#define CALLS_ITSELF NAME
#endif
#ifndef INIT
#define INIT never
#endif

/* Nothing of a module may run before its handshake has been accepted. */
__attribute__((unused)) static const trine_backend *never(const trine_host *host, char *reason_out,
                                                          size_t reason_size) {
    (void)host, (void)reason_out, (void)reason_size;
    abort();
}

__attribute__((unused)) static const trine_backend *says_why(const trine_host *host, char *reason_out,
                                                             size_t reason_size) {
    host->error(TRINE_ERR_DEVICE, "a module's own message");
    snprintf(reason_out, reason_size, "no driver: libnothing.so.1 not found (%d cores)", host->cores > 0);
    return NULL;
}

__attribute__((unused)) static const trine_backend *says_nothing(const trine_host *host, char *reason_out,
                                                                 size_t reason_size) {
    (void)host, (void)reason_out, (void)reason_size;
    return NULL;
}

__attribute__((unused)) static const trine_backend *incomplete(const trine_host *host, char *reason_out,
                                                               size_t reason_size) {
    (void)host, (void)reason_out, (void)reason_size;
    static const trine_backend backend = { .struct_size = sizeof backend, .name = NAME };
    return &backend;
}

extern const trine_module module __asm__(TRINE_MODULE_SYMBOL) __attribute__((visibility("default")));
const trine_module module = {
    .magic = MAGIC,
    .abi = ABI,
    .struct_size = STRUCT_SIZE,
    .spec_hash = SPEC_HASH,
    .name = CALLS_ITSELF,
    .version = "1.2.3",
    .init = INIT,
};
