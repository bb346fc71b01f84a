/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU kernel of your own for an op of trine's, in one file: docs/kernels.md explains it. Build it against an
 * installed trine:
 *     cc -O2 -shared -fPIC my_scale.c -o trine-my_scale.so $(pkg-config --cflags trine)
 * and try it, in the directory where it is:
 *     TRINE_PATH=$PWD trine explain scale --case f32
 *     TRINE_PATH=$PWD trine check --op scale --kernel my_scale
 *     TRINE_PATH=$PWD trine bench --op scale --case f32 --kernel my_scale
 * With -DWRONG it forgets the shift, and trine check says so. */
#include <trine/kernel/backend.h>
#include <trine/kernel/spec/places/scale.h>
#include <trine/kernel/spec/spec_hash.h>

#ifdef WRONG
#define SHIFT 0
#else
#define SHIFT args->shift
#endif

/* Why the kernel cannot run a call; NULL if it can. The call has been checked, so that only what this kernel lacks is
 * left to ask. */
static const char *refuse(const trine_call *call) {
    return call->type[SCALE_TYPE_X] == TRINE_F32 && call->type[SCALE_TYPE_T] == TRINE_F32 ? NULL : "only f32";
}

/* The call's tensors have all dimensions of the table, p q r n; a dimension of x that is broadcast has stride 0. */
static trine_status launch(const trine_call *call) {
    const trine_scale_args *args = call->args;
    const trine_tensor *x = &call->tensor[SCALE_X], *y = &call->tensor[SCALE_Y];
    for (int64_t p = 0; p < y->shape[0]; p++)
        for (int64_t q = 0; q < y->shape[1]; q++)
            for (int64_t r = 0; r < y->shape[2]; r++) {
                const float *from = (const float *)x->data + p * x->stride[0] + q * x->stride[1] + r * x->stride[2];
                float *to = (float *)y->data + p * y->stride[0] + q * y->stride[1] + r * y->stride[2];
                for (int64_t i = 0; i < y->shape[3]; i++) to[i] = args->alpha * from[i * x->stride[3]] + SHIFT;
            }
    return TRINE_OK;
}

static const trine_kernel kernels[] = { { .name = "my_scale", .refuse = refuse, .launch = launch }, { 0 } };

static const trine_extension *extend(const trine_host *host, char *reason_out, size_t reason_size) {
    static const trine_extension_row rows[] = { { TRINE_OP_SCALE, TRINE_OP_HASH_SCALE, kernels, NULL } };
    static const trine_extension extension = { .struct_size = sizeof extension, .rows = 1, .row = rows };
    (void)host, (void)reason_out, (void)reason_size;
    return &extension;
}

TRINE_MODULE(.name = "my_scale", .version = "1.0", .extends = "cpu", .extend = extend);
