/* SPDX-License-Identifier: Apache-2.0 */
/* Bench results as one self-contained HTML page with a roofline plot in SVG, drawn here: no script, nothing fetched. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "labels.h"

enum { WIDTH = 960, HEIGHT = 560, LEFT = 70, RIGHT = 230, TOP = 24, BOTTOM = 56, RADIUS = 4 };

/* The plot's range in powers of ten: intensity in flop/byte, rate in GFLOP/s. */
typedef struct axes {
    double x0, x1, y0, y1;
} axes;

static double place_x(const axes *a, double intensity) {
    return LEFT + (log10(intensity) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}
static double place_y(const axes *a, double gflops) {
    return HEIGHT - BOTTOM - (log10(gflops) - a->y0) / (a->y1 - a->y0) * (HEIGHT - TOP - BOTTOM);
}

static void escaped(FILE *file, const char *text) {
    for (; text && *text; text++) {
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '>')
            fputs("&gt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '"')
            fputs("&quot;", file);
        else
            fputc(*text, file);
    }
}

static bool plotted(const bench_result *r) { return r->flops > 0 && r->bytes > 0 && r->median > 0; }

static axes find_axes(const bench_report *report) {
    axes a = { -1, 2, 0, 2 };
    for (int i = 0; i < report->count; i++) {
        const bench_result *r = &report->result[i];
        if (!plotted(r)) continue;
        const double x = log10(r->flops / r->bytes), y = log10(r->flops / r->median / 1e9);
        a.x0 = fmin(a.x0, floor(x));
        a.x1 = fmax(a.x1, ceil(x));
        a.y0 = fmin(a.y0, floor(y));
        a.y1 = fmax(a.y1, ceil(y));
    }
    for (bench_peak p = 0; p < PEAKS; p++)
        if (report->roofs.peak[p] > 0) a.y1 = fmax(a.y1, ceil(log10(report->roofs.peak[p] / 1e9)));
    return a;
}

static void draw_grid(FILE *file, const axes *a) {
    for (int e = (int)a->x0; e <= (int)a->x1; e++) {
        const double x = place_x(a, pow(10, e));
        fprintf(file,
                "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%g</text>\n",
                x, TOP, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, pow(10, e));
    }
    for (int e = (int)a->y0; e <= (int)a->y1; e++) {
        const double y = place_y(a, pow(10, e));
        fprintf(file,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%g</text>\n",
                LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4, pow(10, e));
    }
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">intensity, flop per byte</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
    fprintf(file, "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">GFLOP/s</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2);
}

/* No label is to lie on a point. */
static void take_points(const axes *a, const bench_report *report, labels *all) {
    for (int i = 0; i < report->count; i++) {
        const bench_result *r = &report->result[i];
        if (!plotted(r)) continue;
        const double x = place_x(a, r->flops / r->bytes), y = place_y(a, r->flops / r->median / 1e9);
        labels_take(all, (label_box){ x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS });
    }
}

/* The memory slope up to the highest peak, and a ceiling for each distinct peak. */
static void draw_roofs(FILE *file, const axes *a, const bench_roofs *roofs, labels *all) {
    const double bandwidth = bench_memory_roof(roofs) / 1e9;
    char text[96];
    if (bandwidth <= 0) return;
    double highest = 0;
    for (bench_peak p = 0; p < PEAKS; p++) {
        const double peak = roofs->peak[p] / 1e9, x = fmin(fmax(peak / bandwidth, pow(10, a->x0)), pow(10, a->x1)),
                     y = place_y(a, peak);
        bool drawn = peak <= 0;
        for (bench_peak q = 0; q < p; q++) drawn |= roofs->peak[q] == roofs->peak[p];
        highest = fmax(highest, peak);
        if (drawn) continue;
        fprintf(file, "<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", place_x(a, x), y,
                WIDTH - RIGHT, y);
        snprintf(text, sizeof text, "%s %.1f, %s", bench_peak_name[p], peak, roofs->instruction[p]);
        fprintf(file, "<text class=\"roof\" x=\"%d\" y=\"%.1f\">%s</text>\n", WIDTH - RIGHT + 6,
                labels_place_below(all, text, WIDTH - RIGHT + 6, y + 4), text);
    }
    if (highest <= 0) highest = pow(10, a->y1);
    const double start = fmax(pow(10, a->x0), pow(10, a->y0) / bandwidth),
                 end = fmin(pow(10, a->x1), highest / bandwidth);
    fprintf(file, "<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", place_x(a, start),
            place_y(a, start * bandwidth), place_x(a, end), place_y(a, end * bandwidth));
    snprintf(text, sizeof text, "memory %.1f GB/s", bandwidth);
    double x, y;
    labels_place(all, text, place_x(a, start) + 40, place_y(a, start * bandwidth) - 4, &x, &y);
    fprintf(file, "<text class=\"roof\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, y, text);
}

/* A number that found no place near its point has a line to it. */
static void draw_points(FILE *file, const axes *a, const bench_report *report, labels *all) {
    for (int i = 0; i < report->count; i++) {
        const bench_result *r = &report->result[i];
        if (!plotted(r)) continue;
        const double x = place_x(a, r->flops / r->bytes), y = place_y(a, r->flops / r->median / 1e9);
        fprintf(file, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>%s %s</title></circle>\n",
                r->above ? "above" : "point", x, y, RADIUS, r->op, r->kernel);
    }
    for (int i = 0; i < report->count; i++) {
        const bench_result *r = &report->result[i];
        if (!plotted(r)) continue;
        const double x = place_x(a, r->flops / r->bytes), y = place_y(a, r->flops / r->median / 1e9);
        char text[16];
        double left, base;
        snprintf(text, sizeof text, "%d", i + 1);
        labels_place(all, text, x, y, &left, &base);
        const label_box box = label_text_box(text, left, base);
        const double near_x = fmin(fmax(x, box.left), box.right), near_y = fmin(fmax(y, box.top), box.bottom);
        if (hypot(near_x - x, near_y - y) > 3 * RADIUS)
            fprintf(file, "<line class=\"lead\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x, y, near_x,
                    near_y);
        fprintf(file, "<text class=\"number\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", left, base, text);
    }
}

static void write_table(FILE *file, const bench_report *report) {
    fputs("<table><tr><th>#</th><th>op</th><th>case</th><th>types and sizes</th><th>kernel</th><th>median, "
          "us</th><th>quartiles, us</th><th>GB/s</th>"
          "<th>GFLOP/s</th><th>of the roof</th></tr>\n",
          file);
    for (int i = 0; i < report->count; i++) {
        const bench_result *r = &report->result[i];
        fprintf(file, "<tr%s><td>%d</td><td>", r->above ? " class=\"above\"" : "", i + 1);
        const char *const texts[] = { r->op, r->name, r->text, r->kernel };
        for (int k = 0; k < 4; k++) {
            escaped(file, texts[k]);
            fputs(k < 3 ? "</td><td>" : "</td>", file);
        }
        fprintf(file,
                "<td class=\"n\">%.2f</td><td class=\"n\">%.2f to %.2f</td><td class=\"n\">%.2f</td><td "
                "class=\"n\">%.2f</td>",
                r->median * 1e6, r->low * 1e6, r->high * 1e6, r->bytes / r->median / 1e9, r->flops / r->median / 1e9);
        if (r->bound > 0)
            fprintf(file, "<td class=\"n\">%.1f %%</td></tr>\n", 100 * r->fraction);
        else
            fputs("<td class=\"n\">-</td></tr>\n", file);
    }
    fputs("</table>\n", file);
}

bool bench_write_html(FILE *file, const bench_report *report) {
    const bench_roofs *roofs = &report->roofs;
    const axes a = find_axes(report);
    char date[64];
    const time_t now = time(NULL);
    struct tm local;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>trine bench</title>\n<style>\n"
          "body { font: 14px sans-serif; margin: 2em auto; max-width: 1100px; color: #222 }\n"
          "svg { width: 100%; height: auto } svg text { font: 12px sans-serif; fill: #444 }\n"
          ".grid, .lead { stroke: #ddd } .roof { stroke: #a33; stroke-width: 1.5 } text.roof { stroke: none; fill: "
          "#a33 }\n"
          ".point { fill: #246 } .above { fill: #d00; color: #d00 }\n"
          "table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid #ddd; padding: 3px 6px; "
          "text-align: left; font-size: 12px }\n"
          ".n { text-align: right; white-space: nowrap } .warning { color: #d00 }\n</style></head><body>\n<h1>trine "
          "bench</h1>\n<p>",
          file);
    escaped(file, report->device->model ? report->device->model : report->device->name);
    fprintf(file, " (%s), %d thread%s, %s, trine %s.", report->device->arch ? report->device->arch : "?",
            report->threads, report->threads == 1 ? "" : "s", date, TRINE_VERSION);
    if (report->device->emulated) fputs(" Emulated: these times mean nothing.", file);
    if (roofs->device)
        fprintf(file, " Measured in the same run: copying within its memory %.1f GB/s.", roofs->copy / 1e9);
    if (roofs->threads)
        fprintf(file, " Measured in the same run: read %.1f, write %.1f, copy %.1f, copy past the caches %.1f GB/s.",
                roofs->read / 1e9, roofs->write / 1e9, roofs->copy / 1e9, roofs->copy_nt / 1e9);
    fputs("</p>\n", file);
    if (report->load > BENCH_BUSY)
        fprintf(file,
                "<p class=\"warning\">Load average %.1f when it began: other programs took part in these times.</p>\n",
                report->load);
    fprintf(file, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"roofline\">\n", WIDTH, HEIGHT);
    labels all = { .edge = { LEFT, 0, WIDTH, HEIGHT - BOTTOM } };
    take_points(&a, report, &all);
    draw_grid(file, &a);
    draw_roofs(file, &a, roofs, &all);
    draw_points(file, &a, report, &all);
    labels_free(&all);
    fputs("</svg>\n", file);
    write_table(file, report);
    fputs("</body></html>\n", file);
    return fflush(file) == 0 && !ferror(file);
}
