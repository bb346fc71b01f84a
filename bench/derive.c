/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that the specification derives from others and that say where something is: nodes of trees, boxes of images,
 * states of automata. Numbers drawn in their place would send a kernel nowhere. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static bool wanted(const trine_case *c, int i) {
    const trine_spec_tensor *t = c->plan->tensor[i].spec;
    return (c->present >> i & 1) && (t->flags & IN) && t->fill && strcmp(t->fill, "derived") == 0 &&
           c->tensor[i].dtype >> 8 <= 1;
}

/* Reads the inputs as float64; afterwards writes those that are derived. */
static bool move(const trine_case *c, trine_queue *queue, double *const *value, bool write) {
    bool ok = true;
    for (int i = 0; ok && i < c->plan->tensors; i++) {
        if (value[i] == NULL || (write && !wanted(c, i))) continue;
        const trine_dtype dtype = c->tensor[i].dtype;
        const int64_t count = trine_tensor_count(&c->tensor[i]);
        const size_t bytes = (size_t)count * trine_dtype_size(dtype);
        void *const data = malloc(bytes + 1);
        ok = data != NULL;
        for (int64_t k = 0; ok && write && k < count; k++) trine_store(data, dtype, k, value[i][k]);
        if (ok)
            ok = (write ? trine_memory_write(queue, c->tensor[i].data, data, bytes)
                        : trine_memory_read(queue, data, c->tensor[i].data, bytes)) == TRINE_OK;
        for (int64_t k = 0; ok && !write && k < count; k++) value[i][k] = trine_load(data, dtype, k);
        free(data);
    }
    return ok;
}

bool bench_derive(const trine_case *c, trine_queue *queue) {
    trine_ref ref = { .plan = c->plan, .args = c->args, .dim = c->dim, .type = c->type };
    bool any = false, ok = true;
    for (int i = 0; i < c->plan->tensors; i++) any |= wanted(c, i);
    if (!any) return true;
    for (int i = 0; i < c->plan->tensors; i++) {
        if (!(c->present >> i & 1) || !(c->plan->tensor[i].spec->flags & IN)) continue;
        ref.value[i] = malloc(((size_t)trine_tensor_count(&c->tensor[i]) + 1) * sizeof(double));
        ok = ok && ref.value[i] != NULL;
    }
    ok = ok && move(c, queue, ref.value, false);
    if (ok) c->plan->spec->prepare(&ref);
    ok = ok && move(c, queue, ref.value, true);
    for (int i = 0; i < c->plan->tensors; i++) free(ref.value[i]);
    return ok;
}
