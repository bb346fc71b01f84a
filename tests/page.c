/* SPDX-License-Identifier: Apache-2.0 */
/* The page of trine bench --html, of results made up: its labels lie on no other, and it says when the machine was
 * busy. Speaks TAP. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/labels.h"
#include "spec/number.h"
#include "tap.h"

enum { RESULTS = 40, MOST = 256 };

/* The boxes of all points and of the texts of these two classes. */
static int text_boxes(const char *page, label_box *boxes, int *points_out) {
    int count = 0;
    for (const char *at = page; (at = strstr(at, "<circle")) != NULL && count < MOST; at++) {
        char *end;
        const double x = trine_strtod(strstr(at, "cx=\"") + 4, &end), y = trine_strtod(strstr(at, "cy=\"") + 4, &end);
        boxes[count++] = (label_box){ x - 4, y - 4, x + 4, y + 4 };
    }
    *points_out = count;
    for (const char *at = page; (at = strstr(at, "<text class=\"")) != NULL && count < MOST; at++) {
        char text[96], *end;
        const char *x = strstr(at, "x=\""), *y = x ? strstr(x, "y=\"") : NULL, *words = y ? strchr(y, '>') : NULL;
        if (words == NULL) continue;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(words + 1, "<"), words + 1);
        boxes[count++] = label_text_box(text, trine_strtod(x + 3, &end), trine_strtod(y + 3, &end));
    }
    return count;
}

static bool apart(const label_box *a, const label_box *b) {
    const double slack = 0.2; /* places are printed with one digit of fraction */
    return a->right <= b->left + slack || b->right <= a->left + slack || a->bottom <= b->top + slack ||
           b->bottom <= a->top + slack;
}

static char *make_page(double load, bool equal) {
    static bench_result result[RESULTS];
    static const trine_device_info_t device = { .name = "cpu", .model = "a CPU", .arch = "v4" };
    bench_report report = { .device = &device, .threads = 2, .load = load, .count = RESULTS, .result = result };
    report.roofs = (bench_roofs){ .threads = 2, .read = 2e10, .write = 2e10, .copy = 2e10, .copy_nt = 2e10 };
    for (bench_peak p = 0; p < PEAKS; p++) {
        /* neither rising nor falling, all near each other */
        report.roofs.peak[p] = 1e12 * (1 + 0.01 * p * (p % 2 ? 1 : -1));
        report.roofs.instruction[p] = "an instruction";
    }
    for (int i = 0; i < RESULTS; i++) {
        snprintf(result[i].op, sizeof result[i].op, "scale");
        result[i].bytes = 1e6;
        result[i].flops = 1e6;
        result[i].median = result[i].low = result[i].high = equal ? 1e-4 : 1e-4 * (1 + 0.02 * i);
    }
    char *page = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&page, &size);
    const bool written = file != NULL && bench_write_html(file, &report);
    if (file != NULL) fclose(file);
    return written ? page : NULL;
}

int main(void) {
    for (int equal = 0; equal < 2; equal++) {
        static label_box boxes[MOST];
        char *page = make_page(3.25, equal);
        int overlapping = 0, points = 0;
        const int count = page ? text_boxes(page, boxes, &points) : 0;
        for (int i = points; i < count; i++)
            for (int k = 0; k < i; k++) overlapping += !apart(&boxes[i], &boxes[k]);
        tap(points == RESULTS && count > 2 * RESULTS + 5, "%d points, %d labels of them and of the roofs", points,
            count - points);
        tap(overlapping == 0, "%d labels lie on another or on a point", overlapping);
        tap(page && strstr(page, "Load average 3.2") != NULL, "a busy machine is told");
        free(page);
    }
    char *page = make_page(0.1, false);
    tap(page && strstr(page, "Load average") == NULL, "a quiet one is not");
    free(page);
    return tap_end();
}
