/* SPDX-License-Identifier: Apache-2.0 */
/* Ops within a kernel of another op, and the kernels that are made of them. */
#include "queue.h"

#define COMPOSED(name, NAME) extern const trine_kernel trine_##name##_composed[];
#include "backends/composed/composed_rows.h"
#undef COMPOSED

const trine_kernel *trine_composed_kernels(trine_op op) {
    static const trine_kernel *const kernels[TRINE_OP_COUNT] = {
#define COMPOSED(name, NAME) [TRINE_OP_##NAME] = trine_##name##_composed,
#include "backends/composed/composed_rows.h"
#undef COMPOSED
    };
    return kernels[op];
}

/* Checks the inner call and chooses its kernel. */
static trine_status prepare(const trine_call *call, int op, const void *args, bool need_data, trine_call *inner,
                            const trine_kernel **kernel_out) {
    trine_queue queue = *call->owner;
    queue.kernel[0] = 0;
    queue.state = call->queue; /* of one thread, where the outer call is one of a list */
    const trine_status status = trine_prepare(&queue, op, args, need_data, inner);
    if (status != TRINE_OK) return status;
    inner->owner = call->owner;
    if (inner->plan->comm >= 0 && inner->comm == NULL)
        return trine_fail(TRINE_ERR_INTERNAL, "%s: %s without a communicator", call->plan->spec->name,
                          inner->plan->spec->name);
    return inner->empty ? TRINE_OK : trine_select(&queue, inner, kernel_out);
}

trine_status trine_nested_workspace(const trine_call *call, int op, const void *args, size_t *bytes_out) {
    trine_call inner;
    const trine_kernel *kernel;
    const trine_status status = prepare(call, op, args, false, &inner, &kernel);
    *bytes_out = status == TRINE_OK ? inner.workspace_size : 0;
    return status;
}

trine_status trine_nested_run(const trine_call *call, int op, const void *args, void *workspace, size_t bytes) {
    trine_call inner;
    const trine_kernel *kernel;
    trine_status status = prepare(call, op, args, true, &inner, &kernel);
    if (status != TRINE_OK || inner.empty) return status;
    if (inner.workspace_size > bytes)
        return trine_fail(TRINE_ERR_INTERNAL, "%s: %s needs %zu bytes of workspace, but has %zu",
                          call->plan->spec->name, inner.plan->spec->name, inner.workspace_size, bytes);
    inner.workspace = inner.workspace_size > 0 ? workspace : NULL;
    const double start = trine_seconds();
    status = kernel->launch(&inner);
    trine_trace(call->owner, &inner, kernel, trine_seconds() - start);
    return status;
}

bool trine_call_readable(const trine_call *call) { return call->owner->device->info.pci == NULL; }
