/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as a page of text, and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "bench/bench.h"
#include "judge.h"

static void print_trial(const judge_trial *t, FILE *file) {
    char judged[32], ours[32];
    fprintf(file, "  %s\n", t->text);
    if (t->refused[0] != 0) {
        fprintf(file, "    not timed: %s\n", t->refused);
        return;
    }
    fprintf(file, "    judged %s, trine's %s %s: %.2f times as fast, p = %.2g",
            bench_time_text(t->median, judged, sizeof judged), t->ours,
            bench_time_text(t->trine_median, ours, sizeof ours), t->trine_median / t->median, t->p);
    if (t->bound > 0) fprintf(file, "; %.0f %% of the roof", 100 * t->bound / t->median);
    fprintf(file, "\n");
    for (int i = 0; i < t->peers; i++)
        fprintf(file, "    %s %s in turns with trine's %s: judged %.2f times as fast\n", t->peer[i].name,
                bench_time_text(t->peer[i].seconds, judged, sizeof judged),
                bench_time_text(t->peer[i].trine, ours, sizeof ours), judge_over(t, &t->peer[i]));
}

void judge_print(const judge_options *options, const judge_verdict *v, FILE *file) {
    const check_count count = check_total(&v->check);
    fprintf(file, "%s, as %s on %s\n", options->file, trine_op_name(options->op), v->device);
    if (v->command[0] != 0 && v->built) fprintf(file, "built in %.1f s: %s\n", v->build_seconds, v->command);
    if (v->loaded)
        fprintf(file, "agreement: %" PRId64 " comparisons in %" PRId64 " calls drawn, %" PRId64 " failed\n",
                check_comparisons(&count), count.cases, count.failed);
    if (count.failed > 0 && v->check.failures > 0) fprintf(file, "  again: %s\n", v->check.failure[0].replay);
    if (v->trials > 0) fprintf(file, "trial: %d rounds, medians of a call\n", JUDGE_ROUNDS);
    for (int i = 0; i < v->trials - (v->reason[0] != 0); i++) print_trial(&v->trial[i], file);
    if (v->reason[0] != 0)
        fprintf(file, "refused: %s\n", v->reason);
    else if (v->speedup > 0 && v->alone[0] != 0)
        fprintf(file, "correct: %.2f times as fast as trine's kernels\nno other library beside it: %s\n", v->speedup,
                v->alone);
    else if (v->speedup > 0)
        fprintf(file, "correct: %.2f times as fast as trine's kernels, %.2f times as the fastest of all\n", v->speedup,
                v->best);
    else
        fprintf(file, "correct, and not timed: --dims names a call to time\n");
}

static void put_trial(const judge_trial *t, FILE *file) {
    fprintf(file, "{");
    bench_json_member(file, "", "case", t->text);
    bench_json_member(file, ", ", "refused", t->refused[0] != 0 ? t->refused : NULL);
    bench_json_member(file, ", ", "kernel", t->ours);
    fprintf(file, ", \"calls\": %d, \"judged\": %.9g, \"trine\": %.9g, \"bound\": %.9g, \"p\": %.3g, \"peers\": [",
            t->calls, t->median, t->trine_median, t->bound, t->p);
    for (int i = 0; i < t->peers; i++) {
        fprintf(file, i > 0 ? ", {" : "{");
        bench_json_member(file, "", "name", t->peer[i].name);
        fprintf(file, ", \"seconds\": %.9g, \"trine\": %.9g}", t->peer[i].seconds, t->peer[i].trine);
    }
    fprintf(file, "]}");
}

void judge_print_json(const judge_options *options, const judge_verdict *v, FILE *file) {
    const check_count count = check_total(&v->check);
    fprintf(file, "{");
    bench_json_member(file, "", "file", options->file);
    bench_json_member(file, ", ", "op", trine_op_name(options->op));
    bench_json_member(file, ", ", "device", v->device);
    bench_json_member(file, ", ", "command", v->command);
    fprintf(file, ", \"correct\": %s", v->tried ? "true" : "false");
    bench_json_member(file, ", ", "reason", v->reason[0] != 0 ? v->reason : NULL);
    bench_json_member(file, ", ", "replay", v->check.failures > 0 ? v->check.failure[0].replay : NULL);
    fprintf(file, ", \"calls\": %" PRId64 ", \"comparisons\": %" PRId64 ", \"failed\": %" PRId64 ", \"speedup\": %.6g",
            count.cases, check_comparisons(&count), count.failed, v->speedup);
    fprintf(file, ", \"best\": %.6g", v->best);
    bench_json_member(file, ", ", "alone", v->alone[0] != 0 ? v->alone : NULL);
    fprintf(file, ", \"trials\": [");
    for (int i = 0; i < v->trials; i++) {
        if (i > 0) fprintf(file, ", ");
        put_trial(&v->trial[i], file);
    }
    fprintf(file, "]}\n");
}
