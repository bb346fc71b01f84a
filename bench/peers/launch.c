/* SPDX-License-Identifier: Apache-2.0 */
/* What a bare cuLaunchKernel costs the host: a function that does nothing, with parameters of a usual size, on a stream
 * of its own. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "bench/bench.h"
#include "peers.h"

enum { PARAMETERS = 256 };
static const char code[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing(.param .align 8 .b8 p[256]) { ret; }\n";

typedef struct bare {
    __typeof__(&cuLaunchKernel) launch;
    CUfunction function;
    cudaStream_t stream;
} bare;

static bool launch(void *context) {
    const bare *b = context;
    static char parameters[PARAMETERS];
    void *arguments[] = { parameters };
    return b->launch(b->function, 1, 1, 1, 32, 1, 1, 0, b->stream, arguments, NULL) == CUDA_SUCCESS;
}

static bool finish(void *context) { return cudaStreamSynchronize(((const bare *)context)->stream) == cudaSuccess; }

double peer_launch_nanoseconds(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    bare b = { 0 };
    CUmodule module;
    __typeof__(&cuModuleLoadData) load;
    __typeof__(&cuModuleGetFunction) get;
    if (library == NULL || cudaSetDevice(0) != cudaSuccess ||
        cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking) != cudaSuccess)
        return -1;
    *(void **)&b.launch = dlsym(library, "cuLaunchKernel");
    *(void **)&load = dlsym(library, "cuModuleLoadData");
    *(void **)&get = dlsym(library, "cuModuleGetFunction");
    if (!b.launch || !load || !get || load(&module, code) != CUDA_SUCCESS ||
        get(&b.function, module, "nothing") != CUDA_SUCCESS)
        return -1;
    const double nanoseconds = bench_nanoseconds(launch, finish, &b);
    cudaStreamDestroy(b.stream);
    return nanoseconds;
}
