/* SPDX-License-Identifier: Apache-2.0 */
/* Status names and the calling thread's error message. */
#include <stdarg.h>
#include <stdio.h>

#include "dispatch.h"
#include "spec/number.h"

static _Thread_local char message[1024];
static _Thread_local unsigned messages;

trine_status trine_fail(trine_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    trine_vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    messages++;
    return status;
}

const char *trine_error_message(void) { return message; }

unsigned trine_error_count(void) { return messages; }

const char *trine_status_name(trine_status status) {
    switch (status) {
    case TRINE_OK: return "TRINE_OK";
    case TRINE_ERR_ARGUMENT: return "TRINE_ERR_ARGUMENT";
    case TRINE_ERR_UNSUPPORTED: return "TRINE_ERR_UNSUPPORTED";
    case TRINE_ERR_WORKSPACE: return "TRINE_ERR_WORKSPACE";
    case TRINE_ERR_MEMORY: return "TRINE_ERR_MEMORY";
    case TRINE_ERR_DEVICE: return "TRINE_ERR_DEVICE";
    case TRINE_ERR_NOT_FOUND: return "TRINE_ERR_NOT_FOUND";
    case TRINE_ERR_IO: return "TRINE_ERR_IO";
    case TRINE_ERR_INTERNAL: return "TRINE_ERR_INTERNAL";
    case TRINE_ERR_COMM: return "TRINE_ERR_COMM";
    }
    return "unknown status";
}
