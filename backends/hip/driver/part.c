/* SPDX-License-Identifier: Apache-2.0 */
/* Queues with a part of the device's CUs: streams with a mask of them. */
#include "state.h"

/* Consecutive bits of a mask are of the chiplets in turn, and then of a chiplet's shader engines (Linux, amdkfd,
 * mqd_symmetrically_map_cu_mask): eight are a CU of each chiplet of an MI300X or MI350X, so that work goes round the
 * chiplets as it does on the whole device, and none is left without a CU. */
enum { GROUP = 8 };

trine_status hip_find_parts(hip_device *d) {
    if (d->parts.whole + d->parts.rest > 0) return TRINE_OK;
    if (d->driver->StreamCreateWithMask == NULL)
        return d->driver->error(TRINE_ERR_UNSUPPORTED, "trine_queue_open: sm_count is set, but the driver has no "
                                                       "hipExtStreamCreateWithCUMask");
    const int size = GROUP * (d->units / GROUP / SIMT_MOST_PARTS + 1);
    d->parts = (simt_parts){ .size = size, .whole = d->units / size, .rest = d->units % size };
    return TRINE_OK;
}

trine_status hip_open_part(const hip_device *d, hip_queue *queue) {
    uint32_t mask[SIMT_MOST_PARTS * GROUP] = { 0 };
    for (int unit = 0; unit < d->units; unit++)
        if (queue->part >> (unit / d->parts.size) & 1) mask[unit / 32] |= UINT32_C(1) << unit % 32;
    return hip_status(d->driver, "hipExtStreamCreateWithCUMask",
                      d->driver->StreamCreateWithMask(&queue->stream, (uint32_t)(d->units + 31) / 32, mask));
}
