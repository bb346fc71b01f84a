/* SPDX-License-Identifier: Apache-2.0 */
/* The stub of NVIDIA's driver, in tests that open it: TEST_STUB is its file. */
#ifndef TRINE_TESTS_STUB_H
#define TRINE_TESTS_STUB_H

#include <dlfcn.h>

#include "module.h"
#include "emulators/cuda/stub.h"

/* Opens the stub, so that the module finds it under its name. */
static inline stub_settings *load_stub(void) {
    void *library = dlopen(TEST_STUB, RTLD_NOW | RTLD_GLOBAL);
    stub_settings *stub = library != NULL ? dlsym(library, STUB_SETTINGS) : NULL;
    if (stub == NULL) fprintf(stderr, "%s\n", dlerror());
    return stub;
}

#endif
