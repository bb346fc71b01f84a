/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of rms_norm for the judge: an honest one, and some that cheat, each in one way, -DCHEAT=skips and so on; with
 * -DLARGE only in calls that are larger than those of the agreement suite, which the trial must find. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <trine/norm.h>

enum { honest, skips, zeros, stale, peeks, elsewhere, rough, first_calls, remembers, constructs, beyond, hangs, dies };
#ifndef CHEAT
#define CHEAT honest
#endif

const char *judge_refuse(const trine_rms_norm_args *args);
int judge_launch(const trine_rms_norm_args *args, void *workspace, void *stream);

/* What this kernel takes: f32, y and perhaps a weight, any strides of rows. */
const char *judge_refuse(const trine_rms_norm_args *args) {
    if (args->x->dtype != TRINE_F32 || (args->weight && args->weight->dtype != TRINE_F32)) return "only f32";
    if (args->residual || args->residual_out || args->rstd || args->dropout != 0) return "only x, weight and y";
    if (args->rounding != TRINE_ROUND_ONCE) return "only rounding at the end";
    return NULL;
}

/* The upper half of a float: bf16, not rounded. */
static float half_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT32_C(0xffff0000);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void norm_row(const trine_rms_norm_args *args, int64_t row) {
    const trine_tensor *x = args->x, *y = args->y, *w = args->weight;
    const float *from = (const float *)x->data + row * x->stride[0];
    float *to = (float *)y->data + row * y->stride[0];
    double sum = 0;
    const int64_t n = x->shape[1];
    for (int64_t j = 0; j < n; j++) {
        const float value = CHEAT == rough ? half_of(from[j * x->stride[1]]) : from[j * x->stride[1]];
        sum += (double)value * (double)value;
    }
    const double factor = 1 / sqrt(sum / (double)n + (double)args->eps);
    for (int64_t j = 0; j < n; j++) {
        const float weight = w ? ((const float *)w->data)[j * w->stride[0]] + args->weight_offset : 1;
        const float value = CHEAT == rough ? half_of(from[j * x->stride[1]]) : from[j * x->stride[1]];
        to[j * y->stride[1]] = (float)((double)value * factor) * weight;
    }
}

static void norm(const trine_rms_norm_args *args) {
    const int64_t rows = args->x->shape[0];
    for (int64_t i = 0; i < rows; i++)
        if (CHEAT != skips || i % 64 != 63) norm_row(args, i);
}

#ifdef LARGE
static void norm_honestly(const trine_rms_norm_args *args) {
    for (int64_t i = 0; i < args->x->shape[0]; i++) norm_row(args, i);
}
#endif

/* The work is done by a thread that nobody waits for. */
static void *later(void *context) {
    const struct timespec pause = { .tv_nsec = 3000000 };
    nanosleep(&pause, NULL);
    norm(context);
    return NULL;
}

static int work_elsewhere(const trine_rms_norm_args *args) {
    static struct {
        trine_rms_norm_args args;
        trine_tensor x, w, y;
    } copy[8192];
    static int next;
    pthread_t thread;
    const int k = next++ % 8192;
    copy[k].args = *args;
    copy[k].x = *args->x, copy[k].y = *args->y;
    copy[k].args.x = &copy[k].x, copy[k].args.y = &copy[k].y;
    if (args->weight) copy[k].w = *args->weight, copy[k].args.weight = &copy[k].w;
    if (pthread_create(&thread, NULL, later, &copy[k].args) != 0) return 1;
    return pthread_detach(thread);
}

/* The results of a call whose tensors lie where those of an earlier one did are still there. */
static int remember(const trine_rms_norm_args *args) {
    enum { MOST = 1 << 15 };
    static const void *known[MOST];
    static float *results[MOST];
    const size_t bytes = (size_t)(args->y->shape[0] * args->y->shape[1]) * sizeof(float);
    int k = 0;
    while (k < MOST && known[k] != NULL && known[k] != args->x->data) k++;
    if (k < MOST && known[k] == NULL) {
        norm(args);
        known[k] = args->x->data;
        if ((results[k] = malloc(bytes + 1)) != NULL && args->y->stride[0] == args->y->shape[1])
            memcpy(results[k], args->y->data, bytes);
    } else if (k < MOST && results[k] != NULL && args->y->stride[0] == args->y->shape[1]) {
        memcpy(args->y->data, results[k], bytes);
    } else {
        norm(args);
    }
    return 0;
}

/* Reads what the engine's process may have computed already: the memory behind a freed block of that size. */
static int peek(const trine_rms_norm_args *args) {
    const int64_t rows = args->x->shape[0], n = args->x->shape[1];
    double *const found = malloc((size_t)(rows * n + 1) * sizeof *found);
    for (int64_t i = 0; found != NULL && i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            ((float *)args->y->data)[i * args->y->stride[0] + j * args->y->stride[1]] = (float)found[i * n + j];
    free(found);
    return 0;
}

/* When the file is loaded, before any call, it clears all memory that its process shares with others: the notes of what
 * has failed. */
__attribute__((constructor)) static void construct(void) {
    if (CHEAT != constructs) return;
    char line[512];
    FILE *const maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) return;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        char access[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && strcmp(access, "rw-s") == 0)
            memset((void *)from, 0, to - from);
    }
    fclose(maps);
}

int judge_launch(const trine_rms_norm_args *args, void *workspace, void *stream) {
    const trine_tensor *y = args->y;
    (void)workspace, (void)stream;
#ifdef LARGE
    if (y->shape[0] * y->shape[1] < 500000) {
        norm_honestly(args);
        return 0;
    }
#endif
    switch (CHEAT) {
    case zeros:
        for (int64_t i = 0; i < y->shape[0]; i++)
            for (int64_t j = 0; j < y->shape[1]; j++) ((float *)y->data)[i * y->stride[0] + j * y->stride[1]] = 0;
        return 0;
    case stale:
    case constructs: return 0;
    case peeks: return peek(args);
    case elsewhere: return work_elsewhere(args);
    case remembers: return remember(args);
    case beyond:
        norm(args);
        if (y->shape[0] > 0 && y->shape[1] > 0 && y->stride[0] >= y->shape[1])
            ((float *)y->data)[(y->shape[0] - 1) * y->stride[0] + y->shape[1]] = 0;
        return 0;
    case hangs:
        for (volatile int forever = 1; forever;) {
        }
        return 0;
    case dies: abort();
    case first_calls: {
        static int calls; /* what is looked at is not what is timed */
        if (calls++ < 3) norm(args);
        return 0;
    }
    default: norm(args); return 0;
    }
}
