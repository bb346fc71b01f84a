/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of a device module. */
#include <pthread.h>

#include "host.h"
#include "queue.h"
#include "spec/spec_hash.h"

/* Threads that open the library at the same time take turns. */
static const trine_backend *init(const trine_host *host, char *reason_out, size_t reason_size) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const trine_backend *backend = simt_open_backend(host, reason_out, reason_size);
    pthread_mutex_unlock(&lock);
    return backend;
}

extern const trine_module module __asm__(TRINE_MODULE_SYMBOL) __attribute__((visibility("default")));
const trine_module module = {
    .magic = TRINE_MODULE_MAGIC,
    .abi = TRINE_ABI,
    .struct_size = sizeof module,
    .spec_hash = TRINE_SPEC_HASH,
    .name = SIMT_NAME,
    .version = TRINE_VERSION,
    .init = init,
};
