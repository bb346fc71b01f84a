/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_advect on devices: the host side. The workspace has two fields that stages write by turns, four of parts of
 * velocities, and the grid's numbers. */
#include "sphere_host.h"
#include "spec/places/sphere_advect.h"

enum { ODD, EVEN, ROOMS };

static sphere_params params_of(const trine_call *call) {
    const trine_sphere_advect_args *args = call->args;
    sphere_params p = sphere_params_of(&call->tensor[SPHERE_ADVECT_F], trine_call_given(call, SPHERE_ADVECT_THETA));
    p.v_theta = sphere_shared_of(&call->tensor[SPHERE_ADVECT_V_THETA]);
    p.v_phi = sphere_shared_of(&call->tensor[SPHERE_ADVECT_V_PHI]);
    p.weno = args->flux == TRINE_SPHERE_WENO3;
    return p;
}

static size_t workspace(const trine_call *call) {
    const sphere_params p = params_of(call);
    return sphere_fields(&p, ROOMS, p.weno ? SPHERE_PARTS : 0, call->type[SPHERE_ADVECT_TYPE_T]) + sphere_numbers(&p);
}

static trine_status launch(const trine_call *call) {
    const trine_sphere_advect_args *args = call->args;
    const trine_dtype type = call->type[SPHERE_ADVECT_TYPE_T];
    const simt_function function = { .type = { type } }, split = { .step = "split", .type = { type } };
    const int stages = sphere_ssp_stages(args->steps);
    sphere_params p = params_of(call);
    const int64_t n = p.t * p.p, size = (int64_t)trine_dtype_size(type);
    for (int i = 0; i < SPHERE_PARTS; i++)
        p.part[i] = (sphere_field){ (char *)call->workspace + (ROOMS * p.r + i) * n * size, 0, p.p, 1 };
    trine_status status = sphere_launch_grid(call, &p, sphere_fields(&p, ROOMS, p.weno ? SPHERE_PARTS : 0, type));
    if (status == TRINE_OK && p.weno)
        status = simt_launch(call, &split, p.across.by * simt_blocks(p.t, SPHERE_ROWS), SIMT_THREADS, &p, sizeof p);
    for (int j = 1; status == TRINE_OK && j <= stages; j++) {
        const sphere_ssp number = sphere_ssp_of(j, args->steps, (double)args->dt);
        p.last = number.last, p.first = number.first, p.last_rate = number.rate;
        p.to = j == stages ? sphere_field_of(&call->tensor[SPHERE_ADVECT_Y])
                           : sphere_room(call, &p, j % 2 ? ODD : EVEN, type);
        status = simt_launch(call, &function, sphere_blocks(&p), SIMT_THREADS, &p, sizeof p);
        p.y = p.to;
    }
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    sphere_edges(edges, SPHERE_ADVECT_DIM_P, SPHERE_ADVECT_DIM_T);
}

SIMT_KERNELS(sphere_advect) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                { 0 } };
