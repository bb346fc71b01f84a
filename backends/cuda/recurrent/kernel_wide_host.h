/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel by clusters of a recurrent cell, or of its gradient. The file that includes this has wide_ask(),
 * workspace_wide(), launch_wide() and edges_wide(). */
static const char *refuse_wide(const trine_call *call) {
    const cell_ask ask = wide_ask(call);
    cell_wide w;
    return cell_wide_of(call, &ask, &w);
}

static double seconds_wide(const trine_call *call) {
    const cell_ask ask = wide_ask(call);
    return cell_wide_seconds(call, &ask, CELL_DIM(T));
}

#define CELL_WIDE_KERNEL \
    { .name = SIMT_NAME "_wide", \
      .refuse = refuse_wide, \
      .workspace = workspace_wide, \
      .launch = launch_wide, \
      .seconds = seconds_wide, \
      .edges = edges_wide }
