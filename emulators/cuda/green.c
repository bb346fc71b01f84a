/* SPDX-License-Identifier: Apache-2.0 */
/* The stub driver's green contexts: SMs are parted as the driver says it parts them, and whoever has which is known. */
#include <stdlib.h>
#include <string.h>

#include "chip.h"
#include "stub.h"

extern stub_settings stub;

enum { WORDS = 3, STREAMS = 64 };

/* A set of SMs, kept in a resource's padding. */
typedef struct sms {
    uint64_t split; /* which made it; 0: the device's own */
    uint64_t set[WORDS];
} sms;

struct CUgreenCtx_st {
    sms sms;
    struct CUgreenCtx_st *next;
};
struct CUdevResourceDesc_st {
    sms sms;
};

static struct CUgreenCtx_st *contexts;
static struct {
    CUstream stream;
    CUgreenCtx context;
} streams[STREAMS];

static sms sms_of(const CUdevResource *resource) {
    sms s;
    memcpy(&s, resource->_internal_padding, sizeof s);
    return s;
}

static int count_of(const sms *s) {
    int count = 0;
    for (int i = 0; i < WORDS; i++) count += __builtin_popcountll(s->set[i]);
    return count;
}

static int common_of(const sms *a, const sms *b) {
    int count = 0;
    for (int i = 0; i < WORDS; i++) count += __builtin_popcountll(a->set[i] & b->set[i]);
    return count;
}

/* The SMs from `first`, so many of them. */
static CUdevResource resource_of(uint64_t split, int first, int count) {
    const stub_chip *chip = stub_chip_chosen();
    CUdevResource r = { .type = count > 0 ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID };
    sms s = { .split = split };
    for (int i = first; i < first + count; i++) s.set[i / 64] |= UINT64_C(1) << i % 64;
    memcpy(r._internal_padding, &s, sizeof s);
    r.sm.smCount = (unsigned)count;
    r.sm.minSmPartitionSize = chip == NULL ? 1 : chip->hopper ? 8 : 4;
    r.sm.smCoscheduledAlignment = chip == NULL ? 1 : chip->hopper ? 8 : 2;
    return r;
}

#pragma GCC visibility push(default)

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type) {
    const CUresult failed = stub_verdict("cuDeviceGetDevResource");
    (void)device;
    if (failed != CUDA_SUCCESS) return failed;
    if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (stub.no_green) return CUDA_ERROR_NOT_SUPPORTED;
    *resource = resource_of(0, 0, stub_units());
    return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned *groups, const CUdevResource *input,
                                     CUdevResource *remaining, unsigned flags, unsigned least) {
    static uint64_t splits;
    const CUresult failed = stub_verdict("cuDevSmResourceSplitByCount");
    if (failed != CUDA_SUCCESS) return failed;
    if (input->type != CU_DEV_RESOURCE_TYPE_SM || sms_of(input).split != 0 || flags != 0 || least > input->sm.smCount)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const unsigned step = input->sm.smCoscheduledAlignment, floor = input->sm.minSmPartitionSize,
                   size = ((least > floor ? least : floor) + step - 1) / step * step;
    if (*groups > input->sm.smCount / size) *groups = input->sm.smCount / size;
    splits++;
    for (unsigned i = 0; i < *groups; i++) result[i] = resource_of(splits, (int)(i * size), (int)size);
    *remaining = resource_of(splits, (int)(*groups * size), (int)(input->sm.smCount - *groups * size));
    return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *descriptor, CUdevResource *resources, unsigned count) {
    const CUresult failed = stub_verdict("cuDevResourceGenerateDesc");
    if (failed != CUDA_SUCCESS) return failed;
    sms all = { 0 };
    for (unsigned i = 0; i < count; i++) {
        const sms s = sms_of(&resources[i]);
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM || (i > 0 && s.split != all.split) || common_of(&s, &all) > 0)
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        all.split = s.split;
        for (int word = 0; word < WORDS; word++) all.set[word] |= s.set[word];
    }
    if (count == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *descriptor = malloc(sizeof **descriptor);
    (*descriptor)->sms = all;
    return CUDA_SUCCESS;
}

/* The driver has no call that frees a descriptor; here it goes with the context that is made of it. */
CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc descriptor, CUdevice device, unsigned flags) {
    const CUresult failed = stub_verdict("cuGreenCtxCreate");
    (void)device;
    if (failed != CUDA_SUCCESS) return free(descriptor), failed;
    if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    *context = calloc(1, sizeof **context);
    **context = (struct CUgreenCtx_st){ descriptor->sms, contexts };
    free(descriptor);
    for (const struct CUgreenCtx_st *c = contexts; c != NULL; c = c->next)
        stub.shared += common_of(&c->sms, &(*context)->sms);
    contexts = *context;
    stub.greens++;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx context, unsigned flags, int priority) {
    const CUresult failed = stub_verdict("cuGreenCtxStreamCreate");
    if (failed != CUDA_SUCCESS) return failed;
    if (flags != CU_STREAM_NON_BLOCKING || priority != 0) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].stream != NULL) continue;
        *stream = streams[i].stream = malloc(1);
        streams[i].context = context;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *context) {
    const CUresult failed = stub_verdict("cuStreamGetGreenCtx");
    if (failed != CUDA_SUCCESS) return failed;
    *context = NULL;
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].stream == stream) *context = streams[i].context;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx context, CUdevResource *resource, CUdevResourceType type) {
    const CUresult failed = stub_verdict("cuGreenCtxGetDevResource");
    if (failed != CUDA_SUCCESS) return failed;
    if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *resource = resource_of(0, 0, count_of(&context->sms));
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
    for (int i = 0; i < STREAMS; i++) stub.left += streams[i].stream != NULL && streams[i].context == context;
    for (struct CUgreenCtx_st **at = &contexts; *at != NULL; at = &(*at)->next) {
        if (*at != context) continue;
        *at = context->next;
        free(context);
        stub.greens--;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_CONTEXT;
}

#pragma GCC visibility pop

int stub_green_units(CUstream stream) {
    for (int i = 0; stream != NULL && i < STREAMS; i++)
        if (streams[i].stream == stream) return count_of(&streams[i].context->sms);
    return stub_units();
}

bool stub_green_forget(CUstream stream) {
    for (int i = 0; stream != NULL && i < STREAMS; i++) {
        if (streams[i].stream != stream) continue;
        streams[i].stream = NULL;
        free(stream);
        return true;
    }
    return false;
}
