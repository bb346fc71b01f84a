/* SPDX-License-Identifier: Apache-2.0 */
/* Bench results as a table and as JSON in Google Benchmark's format. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

const char *bench_time_text(double seconds, char *out, size_t size) {
    if (seconds < 1e-6)
        snprintf(out, size, "%.1f ns", seconds * 1e9);
    else if (seconds < 1e-3)
        snprintf(out, size, "%.2f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(out, size, "%.2f ms", seconds * 1e3);
    else
        snprintf(out, size, "%.3f s", seconds);
    return out;
}

/* `value` in the largest unit in which it is at least 1; whole numbers of the first unit as such. */
static const char *unit_text(double value, double step, const char *const units[5], char *out, size_t size) {
    int unit = 0;
    for (; value >= step && unit < 4; unit++) value /= step;
    snprintf(out, size, value == floor(value) ? "%.0f %s" : value < 10 ? "%.2f %s" : "%.1f %s", value, units[unit]);
    return out;
}

const char *bench_bytes_text(double bytes, char *out, size_t size) {
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    return unit_text(bytes, 1024, units, out, size);
}

const char *bench_flops_text(double flops, char *out, size_t size) {
    static const char *const units[] = { "FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP" };
    return unit_text(flops, 1000, units, out, size);
}

void bench_print_roofs(FILE *file, const bench_roofs *roofs) {
    if (roofs->device) fprintf(file, "roofs: copying within the device's memory %.1f GB/s\n", roofs->copy / 1e9);
    if (roofs->threads > 0)
        fprintf(file, "roofs on %d thread%s: read %.1f, write %.1f, copy %.1f, copy past the caches %.1f GB/s\n",
                roofs->threads, roofs->threads == 1 ? "" : "s", roofs->read / 1e9, roofs->write / 1e9,
                roofs->copy / 1e9, roofs->copy_nt / 1e9);
    const char *between = "  ";
    for (bench_peak p = 0; p < PEAKS; p++) {
        bool told = roofs->peak[p] <= 0;
        /* what falls back */
        for (bench_peak q = 0; q < p && p > PEAK_I8; q++) told |= roofs->peak[q] == roofs->peak[p];
        if (told) continue;
        fprintf(file, "%s%s %.1f G%s/s by %s", between, bench_peak_name[p], roofs->peak[p] / 1e9,
                p == PEAK_I8 ? "OP" : "FLOP", roofs->instruction[p]);
        between = ", ";
    }
    if (*between == ',') fputc('\n', file);
}

void bench_print_header(FILE *file) {
    fprintf(file, "\n%-24s %-34s %11s %6s %8s %9s %6s  %s\n", "op", "case", "median", "+-", "GB/s", "GFLOP/s", "roof",
            "kernel");
}

void bench_print(FILE *file, const bench_result *r) {
    char median[32];
    fprintf(file, "%-24s %-34s %11s %5.1f%% %8.2f %9.2f ", r->op, r->name[0] ? r->name : r->text,
            bench_time_text(r->median, median, sizeof median), 50 * (r->high - r->low) / r->median,
            r->bytes / r->median / 1e9, r->flops / r->median / 1e9);
    if (r->bound > 0)
        fprintf(file, "%5.1f%%", 100 * r->fraction);
    else
        fprintf(file, "%6s", "-");
    fprintf(file, "  %s%s\n", r->kernel, r->above ? "  ABOVE THE ROOF" : "");
    fflush(file);
}

static double grams_of(const bench_result *r, const bench_meter *meter) { return r->joules / 3.6e6 * meter->grams; }

void bench_print_energy(FILE *file, const bench_result *r, const bench_meter *meter) {
    fprintf(file, "%-24s ", "");
    if (r->joules > 0)
        fprintf(file, "%.3g J a call, %.3g W by %s", r->joules, r->watts, meter->name);
    else
        fprintf(file, "no energy: the counter of %s stands still", meter->name);
    if (r->joules > 0 && meter->grams > 0) fprintf(file, ", %.3g g of CO2", grams_of(r, meter));
    fputc('\n', file);
    fflush(file);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* Bytes of the UTF-8 sequence at `text`; 0 if it is none. */
static int sequence_length(const unsigned char *text) {
    const int length = text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return length;
}

void bench_json_text(FILE *file, const char *text) {
    if (text == NULL) {
        fputs("null", file);
        return;
    }
    fputc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const int length = *at < 0x80 ? 1 : sequence_length(at);
        if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at < 0x20)
            fprintf(file, "\\u%04x", *at);
        else if (length == 0)
            fputs("\\ufffd", file);
        else
            fwrite(at, 1, (size_t)length, file);
        if (length > 1) at += length - 1;
    }
    fputc('"', file);
}

void bench_json_member(FILE *file, const char *before, const char *name, const char *text) {
    fprintf(file, "%s\"%s\": ", before, name);
    bench_json_text(file, text);
}

static void write_context(FILE *file, const bench_report *report) {
    const bench_roofs *roofs = &report->roofs;
    char host[128] = "", date[64];
    gethostname(host, sizeof host - 1);
    const time_t now = time(NULL);
    struct tm local;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &local));
    fprintf(file, "{\n  \"context\": {\n    \"date\": \"%s\"", date);
    bench_json_member(file, ",\n    ", "host_name", host);
    fprintf(file,
            ",\n    \"executable\": \"trine\",\n    \"num_cpus\": %ld,\n    \"caches\": [],\n    "
            "\"library_build_type\": \"release\"",
            sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(file, ",\n    \"load_avg\": [%.2f]", report->load);
    bench_json_member(file, ",\n    ", "trine_version", TRINE_VERSION);
    bench_json_member(file, ",\n    ", "device", report->device->name);
    bench_json_member(file, ",\n    ", "model", report->device->model);
    bench_json_member(file, ",\n    ", "arch", report->device->arch);
    fprintf(
        file,
        ",\n    \"threads\": %d,\n    \"roofs\": { \"read\": %.6g, \"write\": %.6g, \"copy\": %.6g, \"copy_nt\": %.6g",
        report->threads, roofs->read, roofs->write, roofs->copy, roofs->copy_nt);
    for (bench_peak p = 0; p < PEAKS; p++) fprintf(file, ", \"%s\": %.6g", bench_peak_name[p], roofs->peak[p]);
    fprintf(file, " }\n  },\n  \"benchmarks\": [");
}

static void write_entry(FILE *file, const bench_report *report, int index, int repetition, const char *aggregate,
                        double seconds, bool first) {
    const bench_result *r = &report->result[index];
    char run[512], name[544];
    snprintf(run, sizeof run, "%s/%s%s%s/threads:%d", r->op, r->name, r->name[0] ? "/" : "", r->text, report->threads);
    snprintf(name, sizeof name, "%s%s%s", run, aggregate ? "_" : "", aggregate ? aggregate : "");
    bench_json_member(file, first ? "\n    { " : ",\n    { ", "name", name);
    fprintf(file, ", \"family_index\": %d, \"per_family_instance_index\": 0", index);
    bench_json_member(file, ", ", "run_name", run);
    fprintf(file, ", \"run_type\": \"%s\", \"repetitions\": %d, ", aggregate ? "aggregate" : "iteration", r->samples);
    if (aggregate)
        fprintf(file, "\"aggregate_name\": \"%s\", \"aggregate_unit\": \"time\", ", aggregate);
    else
        fprintf(file, "\"repetition_index\": %d, ", repetition);
    fprintf(file, "\"threads\": %d, \"iterations\": %d, \"real_time\": %.9g, \"cpu_time\": %.9g, \"time_unit\": \"ns\"",
            report->threads, aggregate ? r->samples : r->batch, seconds * 1e9, seconds * 1e9);
    if (aggregate && strcmp(aggregate, "median") == 0) {
        fprintf(file,
                ", \"bytes\": %.9g, \"flops\": %.9g, \"bytes_per_second\": %.9g, \"flops_per_second\": %.9g, "
                "\"roof_fraction\": %.6g",
                r->bytes, r->flops, r->bytes / seconds, r->flops / seconds, r->fraction);
        bench_json_member(file, ", ", "kernel", r->kernel);
        if (r->joules > 0) fprintf(file, ", \"joules\": %.6g, \"watts\": %.6g", r->joules, r->watts);
        if (r->joules > 0 && report->meter->grams > 0)
            fprintf(file, ", \"grams_co2\": %.6g", grams_of(r, report->meter));
    }
    fputs(" }", file);
}

bool bench_write_json(FILE *file, const bench_report *report) {
    bool first = true;
    write_context(file, report);
    for (int i = 0; i < report->count; i++) {
        const bench_result *r = &report->result[i];
        for (int s = 0; s < r->samples; s++, first = false) write_entry(file, report, i, s, NULL, r->sample[s], first);
        write_entry(file, report, i, 0, "median", r->median, first);
        first = false;
    }
    fputs("\n  ]\n}\n", file);
    return fflush(file) == 0 && !ferror(file);
}
