/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS: products of f32 and of f64. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"

typedef struct gemm {
    int g, m, n, k;
    bool wide;
} gemm;

static void *open_gemm(const trine_case *c, int threads) {
    const char *const names[] = { "g", "m", "n", "k" };
    int64_t dim[4];
    if (strcmp(c->plan->spec->name, "matmul") != 0 || !peer_plain(c, "", "")) return NULL;
    const trine_dtype dtype = c->tensor[trine_plan_find_tensor(c->plan, "a")].dtype;
    if (dtype != TRINE_F32 && dtype != TRINE_F64) return NULL;
    for (int i = 0; i < 4; i++) {
        dim[i] = c->dim[trine_plan_find_symbol(c->plan, names[i])];
        if (dim[i] > INT32_MAX) return NULL;
    }
    gemm *made = malloc(sizeof *made);
    if (made) *made = (gemm){ (int)dim[0], (int)dim[1], (int)dim[2], (int)dim[3], dtype == TRINE_F64 };
    openblas_set_num_threads(threads);
    return made;
}

static bool call_gemm(void *state, const trine_case *set) {
    const gemm *p = state;
    const trine_tensor *a = &set->tensor[trine_plan_find_tensor(set->plan, "a")],
                       *b = &set->tensor[trine_plan_find_tensor(set->plan, "b")];
    const trine_tensor *d = &set->tensor[trine_plan_find_tensor(set->plan, "d")];
    for (int i = 0; i < p->g; i++) {
        const size_t ia = a->rank == 3 ? (size_t)i * (size_t)a->stride[0] : 0,
                     ib = b->rank == 3 ? (size_t)i * (size_t)b->stride[0] : 0;
        const size_t id = d->rank == 3 ? (size_t)i * (size_t)d->stride[0] : 0;
        if (p->wide)
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->m, p->n, p->k, 1, (const double *)a->data + ia,
                        p->k, (const double *)b->data + ib, p->n, 0, (double *)d->data + id, p->n);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->m, p->n, p->k, 1, (const float *)a->data + ia,
                        p->k, (const float *)b->data + ib, p->n, 0, (float *)d->data + id, p->n);
    }
    return true;
}

const peer peer_openblas = { "OpenBLAS", "cpu", open_gemm, call_gemm, free };
