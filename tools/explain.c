/* SPDX-License-Identifier: Apache-2.0 */
/* trine explain: which kernel a call would run, and why each other one would not. */
#include <inttypes.h>
#include <string.h>

#include "bench/bench.h"
#include "tool.h"

static void print_text(const target *t, const trine_case *c, const trine_explanation *e, size_t workspace) {
    char words[2048];
    trine_case_text(c, words, sizeof words);
    printf("%s %s on %s (%s)\n", c->plan->spec->name, words, t->info.name, t->info.arch);
    static bench_result work;
    char moved[32], computed[32], text[32];
    bench_work(c, &work);
    printf("  moves %s, computes %s\n", bench_bytes_text(work.bytes, moved, sizeof moved),
           bench_flops_text(work.flops, computed, sizeof computed));
    char note[512];
    if (c->plan->spec->check != NULL && c->plan->spec->check(c->args, c->present, note, sizeof note))
        printf("  %s\n", note);
    if (e->chosen < 0) printf("  no kernel takes this call\n");
    for (int i = 0; i < e->count; i++) {
        const trine_candidate *k = &e->candidate[i];
        printf("  %c %-24s ", i == e->chosen ? '*' : ' ', k->kernel);
        if (k->refused)
            printf("refused: %s\n", k->refused);
        else
            printf("predicted %s, workspace %s\n", bench_time_text(k->seconds, moved, sizeof moved),
                   bench_bytes_text((double)k->workspace, text, sizeof text));
    }
    if (e->chosen < 0) return;
    printf("  chosen: %s (%s), workspace %s\n", e->candidate[e->chosen].kernel, e->why,
           bench_bytes_text((double)workspace, text, sizeof text));
    for (int i = 0; i < c->plan->tensors; i++) {
        double coefficient;
        const char *name = c->plan->tensor[i].spec->name;
        if (!(c->plan->tensor[i].spec->flags & OUT) || !(c->present >> i & 1)) continue;
        if (trine_error_bound(t->queue, c->plan->op, c->args, name, &coefficient) != TRINE_OK) continue;
        const trine_dtype dtype = c->tensor[i].dtype;
        if (c->plan->tensor[i].spec->flags & EXACT)
            printf("  bound of %s: exact\n", name);
        else
            printf("  bound of %s: %.3g |y64| + %.3g magnitude\n", name, trine_unit_roundoff(dtype), coefficient);
    }
}

static void print_json(const target *t, const trine_case *c, const trine_explanation *e, size_t workspace) {
    char words[2048];
    trine_case_text(c, words, sizeof words);
    bench_json_member(stdout, "{\n  ", "op", c->plan->spec->name);
    bench_json_member(stdout, ",\n  ", "case", words);
    bench_json_member(stdout, ",\n  ", "device", t->info.name);
    bench_json_member(stdout, ",\n  ", "chosen", e->chosen < 0 ? NULL : e->candidate[e->chosen].kernel);
    bench_json_member(stdout, ",\n  ", "why", e->why);
    char note[512];
    if (c->plan->spec->check != NULL && c->plan->spec->check(c->args, c->present, note, sizeof note))
        bench_json_member(stdout, ",\n  ", "note", note);
    static bench_result work;
    bench_work(c, &work);
    printf(",\n  \"bytes\": %.17g,\n  \"flops\": %.17g,\n  \"workspace\": %zu,\n  \"candidates\": [", work.bytes,
           work.flops, workspace);
    for (int i = 0; i < e->count; i++) {
        bench_json_member(stdout, i ? ",\n    { " : "\n    { ", "kernel", e->candidate[i].kernel);
        bench_json_member(stdout, ", ", "refused", e->candidate[i].refused);
        printf(", \"seconds\": %.6g, \"workspace\": %zu }", e->candidate[i].seconds, e->candidate[i].workspace);
    }
    printf("\n  ]\n}\n");
}

/* "n=8,16 r=64" for each kernel that says so. */
static void print_edges(const target *t, const trine_case *c, const trine_explanation *e) {
    for (int i = 0; i < e->count; i++) {
        trine_edge edges[TRINE_MAX_EDGES];
        int32_t count = 0;
        if (trine_explain_edges(t->queue, c->plan->op, c->args, e->candidate[i].kernel, edges, &count) != TRINE_OK ||
            count == 0)
            continue;
        printf("  edges of %s:", e->candidate[i].kernel);
        for (int s = 0; s < c->plan->symbols; s++) {
            const char *name = c->plan->symbol_name[s];
            int seen = 0;
            for (int32_t k = 0; k < count; k++)
                if (strcmp(edges[k].symbol, name) == 0)
                    printf("%s%s%s%" PRId64, seen ? "," : " ", seen ? "" : name, seen ? "" : "=", edges[k].size),
                        seen++;
        }
        printf("\n");
    }
}

int trine_tool_explain(int argc, char **argv) {
    target t = { 0 };
    const char *name = NULL, *dims = NULL, *types = NULL, *named = NULL;
    bool json = false, edges = false;
    const option_row rows[] = {
        OPTION_TEXT("case", &named, "NAME", "start from this case of the specification"),
        OPTION_TEXT("dims", &dims, "\"m=M ...\"", "dimensions, parameters, and +TENSOR for optional tensors"),
        OPTION_TEXT("types", &types, "T=TYPE,...", "element types (default: the first the op takes)"),
        TARGET_OPTIONS(t),
        PART_OPTION(t),
        OPTION_FLAG("edges", &edges,
                    "also print the sizes at which each kernel goes another way, which trine check draws"),
        OPTION_FLAG("json", &json, "print JSON"),
        { 0 },
    };
    const option_set set = {
        "trine explain OP [--case NAME] [--dims \"...\"] [--types ...] [options]",
        "Says which kernel a call would run, and for every other one why not. Needs no memory for the tensors.", rows
    };
    const int words = options_parse(&set, argc, argv, &name, 1);
    if (words < 0) return options_status(words);
    if (words == 0) return usage_error("explain", "no op given");
    const trine_op op = find_op("explain", name);
    if (op == TRINE_OP_NONE) return 2;
    static trine_case c;
    const int made = make_case("explain", &c, op, named, dims, types);
    if (made) return made;
    int status = target_open(&t, "explain");
    if (status) return status;
    trine_explanation *e = &(trine_explanation){ 0 };
    size_t workspace = 0;
    if (trine_explain(t.queue, op, c.args, e) != TRINE_OK ||
        (e->chosen >= 0 && trine_workspace(t.queue, op, c.args, &workspace) != TRINE_OK))
        status = failure("%s", trine_error_message());
    else if (json)
        print_json(&t, &c, e, workspace);
    else
        print_text(&t, &c, e, workspace);
    if (status == 0 && edges && !json) print_edges(&t, &c, e);
    if (status == 0 && e->chosen < 0) status = 1;
    target_close(&t);
    return status;
}
