/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_diffuse on devices: the host side. The workspace has D f, two fields of which each stage writes the one before
 * the last's, and the grid's numbers. */
#include "sphere_host.h"
#include "spec/places/sphere_diffuse.h"

enum { RATE, ODD, EVEN, ROOMS };

static sphere_params params_of(const trine_call *call) {
    sphere_params p = sphere_params_of(&call->tensor[SPHERE_DIFFUSE_F], trine_call_given(call, SPHERE_DIFFUSE_THETA));
    p.nu = sphere_shared_of(&call->tensor[SPHERE_DIFFUSE_NU]);
    p.diffuse = true;
    return p;
}

static size_t workspace(const trine_call *call) {
    const sphere_params p = params_of(call);
    return sphere_fields(&p, ROOMS, 0, call->type[SPHERE_DIFFUSE_TYPE_T]) + sphere_numbers(&p);
}

static trine_status launch(const trine_call *call) {
    const trine_sphere_diffuse_args *args = call->args;
    const trine_dtype type = call->type[SPHERE_DIFFUSE_TYPE_T];
    const simt_function function = { .type = { type } };
    sphere_params p = params_of(call);
    p.rate = sphere_room(call, &p, RATE, type);
    trine_status status = sphere_launch_grid(call, &p, sphere_fields(&p, ROOMS, 0, type));
    for (int j = 1; status == TRINE_OK && j <= args->stages; j++) {
        const sphere_rkl number = sphere_rkl_of(j, args->stages, (double)args->dt);
        p.stage = j;
        p.last = number.last, p.before_times = number.before, p.first = number.first;
        p.last_rate = number.last_rate, p.first_rate = number.first_rate;
        p.to = j == args->stages ? sphere_field_of(&call->tensor[SPHERE_DIFFUSE_Y])
                                 : sphere_room(call, &p, j % 2 ? ODD : EVEN, type);
        status = simt_launch(call, &function, sphere_blocks(&p), SIMT_THREADS, &p, sizeof p);
        p.before = p.y;
        p.y = p.to;
    }
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    sphere_edges(edges, SPHERE_DIFFUSE_DIM_P, SPHERE_DIFFUSE_DIM_T);
}

SIMT_KERNELS(sphere_diffuse) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                 { 0 } };
