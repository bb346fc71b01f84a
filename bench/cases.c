/* SPDX-License-Identifier: Apache-2.0 */
/* Cases from a file. */
#include <errno.h>
#include <string.h>

#include "bench.h"

bool bench_read_cases(const char *path, void (*each)(void *context, trine_op op, const char *text), void *context, char *error, size_t error_size) {
    char line[512];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    bool ok = true;
    while (ok && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *text = strchr(line, ' ');
        if (line[0] == 0 || line[0] == '#') continue;
        if (text != NULL) *text++ = 0;
        const trine_op op = trine_op_find(line);
        ok = op != TRINE_OP_NONE && text != NULL;
        if (ok) each(context, op, text);
    }
    if (!ok) snprintf(error, error_size, "%s: \"%s\" is not an op and a case", path, line);
    fclose(file);
    return ok;
}
