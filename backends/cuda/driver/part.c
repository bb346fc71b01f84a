/* SPDX-License-Identifier: Apache-2.0 */
/* Queues with a part of the device's SMs: green contexts, each "a normal primary context but with the resources of the
 * specified green context" (cuCtxFromGreenCtx, CUDA Driver API 13.0, 6.35). Memory, events and functions are those of
 * the primary context, which stays current; a launch has the SMs of its stream's context. */
#include "state.h"

trine_status cuda_find_parts(cuda_device *d) {
    const cuda_driver *const driver = d->driver;
    CUdevResource all, rest;
    unsigned count = SIMT_MOST_PARTS - 1;
    if (d->parts.whole > 0) return TRINE_OK;
    if (driver->no_parts != NULL)
        return driver->error(TRINE_ERR_UNSUPPORTED, "trine_queue_open: sm_count is set, but the driver has no %s",
                             driver->no_parts);
    trine_status status = CUDA_CALL(driver, DeviceGetDevResource, d->device, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (status != TRINE_OK) return status;
    /* the least that the device parts, more if groups were too many */
    const unsigned least = all.sm.minSmPartitionSize > 0 ? all.sm.minSmPartitionSize : 1;
    const unsigned size = least * (all.sm.smCount / least / SIMT_MOST_PARTS + 1);
    status = CUDA_CALL(driver, DevSmResourceSplitByCount, d->group, &count, &all, &rest, 0, size);
    if (status != TRINE_OK) return status;
    if (count == 0) return driver->error(TRINE_ERR_UNSUPPORTED, "trine_queue_open: the device's SMs cannot be parted");
    d->group[count] = rest;
    d->parts = (simt_parts){ .size = (int)d->group[0].sm.smCount,
                             .whole = (int)count,
                             .rest = rest.type == CU_DEV_RESOURCE_TYPE_SM ? (int)rest.sm.smCount : 0 };
    return TRINE_OK;
}

trine_status cuda_open_part(cuda_device *d, cuda_queue *queue) {
    const cuda_driver *const driver = d->driver;
    CUdevResource groups[SIMT_MOST_PARTS];
    CUdevResourceDesc descriptor;
    unsigned count = 0;
    for (int i = 0; i < SIMT_MOST_PARTS; i++)
        if (queue->part >> i & 1) groups[count++] = d->group[i];
    trine_status status = CUDA_CALL(driver, DevResourceGenerateDesc, &descriptor, groups, count);
    if (status == TRINE_OK)
        status = CUDA_CALL(driver, GreenCtxCreate, &queue->green, descriptor, d->device, CU_GREEN_CTX_DEFAULT_STREAM);
    if (status != TRINE_OK) return status;
    status = CUDA_CALL(driver, GreenCtxStreamCreate, &queue->stream, queue->green, CU_STREAM_NON_BLOCKING, 0);
    if (status != TRINE_OK) cuda_close_part(d, queue);
    return status;
}

int cuda_stream_units(const cuda_device *d, CUstream stream) {
    const cuda_driver *const driver = d->driver;
    CUgreenCtx green = NULL;
    CUdevResource all;
    if (driver->no_parts != NULL || driver->StreamGetGreenCtx(stream, &green) != CUDA_SUCCESS || green == NULL ||
        driver->GreenCtxGetDevResource(green, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS)
        return d->units;
    return (int)all.sm.smCount;
}

void cuda_close_part(cuda_device *d, cuda_queue *queue) {
    if (queue->green != NULL) d->driver->GreenCtxDestroy(queue->green);
    queue->green = NULL;
}
