/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the specification: they parse, they are complete, and the headers document what they say.
 * TEST_SOURCE is the source tree. */
#include <glob.h>

#include "spec/case.h"
#include "support.h"

TestSuite(tables, .timeout = 60);

Test(tables, parse) { cr_assert(trine_plan_error() == NULL, "%s", trine_plan_error()); }

Test(tables, complete) {
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        const trine_spec *spec = trine_specs[op];
        const trine_plan *plan = trine_plan_get(op);
        cr_assert(plan != NULL && spec != NULL);
        cr_expect(plan->op == op && plan->spec == spec);
        cr_expect(spec->summary && spec->summary[0] && spec->formula && spec->formula[0] && spec->source &&
                      spec->source[0],
                  "%s", spec->name);
        cr_expect(spec->reference != NULL && spec->flops != NULL && spec->sizes[0] != NULL && spec->cases[0] != NULL,
                  "%s", spec->name);
        bool output = false;
        for (int i = 0; i < plan->tensors; i++) {
            const trine_spec_tensor *t = plan->tensor[i].spec;
            output |= (t->flags & OUT) != 0;
            cr_expect((t->flags & (IN | OUT)) != 0, "%s.%s is neither read nor written", spec->name, t->name);
            cr_expect(t->offset >= sizeof(size_t) && t->offset % sizeof(void *) == 0 &&
                      t->offset + sizeof(void *) <= spec->args_size);
        }
        cr_expect(output, "%s writes nothing", spec->name);
        for (int i = 0; i < plan->params; i++) {
            const trine_spec_param *p = &spec->params[i];
            cr_expect(p->doc && p->doc[0] && (p->kind == COMM || (p->values && p->values[0])), "%s.%s", spec->name,
                      p->name);
            cr_expect(p->offset >= sizeof(size_t) && p->offset < spec->args_size, "%s.%s", spec->name, p->name);
            cr_expect(trine_plan_find_tensor(plan, p->name) < 0 && trine_plan_find_symbol(plan, p->name) < 0,
                      "%s.%s means two things", spec->name, p->name);
        }
    }
}

Test(tables, hash_is_stable) { cr_expect(trine_spec_hash() == trine_spec_hash() && trine_spec_hash() != 0); }

/* All public headers as one text. */
static char *read_headers(void) {
    glob_t found;
    cr_assert(glob(TEST_SOURCE "/include/trine/*.h", 0, NULL, &found) == 0);
    char *all = calloc(1, 1 << 20);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = read_whole(found.gl_pathv[i], NULL);
        cr_assert(strlen(all) + strlen(text) < 1 << 20);
        strcat(all, text);
        free(text);
    }
    globfree(&found);
    return all;
}

/* The comment that ends right before the prototype of trine_<op>. */
static char *docstring(const char *headers, const char *op) {
    char prototype[128];
    snprintf(prototype, sizeof prototype, "TRINE_API trine_status trine_%s(trine_queue *queue,", op);
    const char *end = strstr(headers, prototype), *start = end;
    cr_assert(end != NULL, "%s has no prototype", op);
    while (start > headers && strncmp(start, "/*", 2) != 0) start--;
    return strndup(start, (size_t)(end - start));
}

Test(tables, documented) {
    char *headers = read_headers();
    static const char *const parts[] = { "Error", "since 0.1", "determinis", "bound" };
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        const trine_plan *plan = trine_plan_get(op);
        char *text = docstring(headers, plan->spec->name);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            cr_expect(strcasestr(text, parts[i]) != NULL, "the docstring of trine_%s lacks \"%s\"", plan->spec->name,
                      parts[i]);
        cr_expect(strlen(text) > 400, "the docstring of trine_%s is short", plan->spec->name);
        free(text);
        /* Every field of the table is a field of the structure, by name. */
        char structure[128];
        snprintf(structure, sizeof structure, "typedef struct trine_%s_args {", plan->spec->name);
        const char *start = strstr(headers, structure);
        cr_assert(start != NULL, "%s", structure);
        char *body = strndup(start, (size_t)(strstr(start, "\n}") - start));
        char field[80];
        for (int i = 0; i < plan->tensors + plan->params; i++) {
            const char *name =
                i < plan->tensors ? plan->tensor[i].spec->name : plan->spec->params[i - plan->tensors].name;
            const bool pointer = i < plan->tensors || plan->spec->params[i - plan->tensors].kind >= TEXT;
            snprintf(field, sizeof field, pointer ? "*%s;" : " %s;", name);
            cr_expect(strstr(body, field) != NULL, "trine_%s_args lacks %s", plan->spec->name, name);
        }
        free(body);
    }
    free(headers);
}

/* Each kernel of the CPU says at which sizes it goes another way, so that the agreement suite draws them. */
Test(tables, edges) {
    trine *lib = open_plain(NULL);
    trine_queue *queue;
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        static trine_explanation why;
        trine_case c;
        char error[256];
        trine_case_init(&c, (trine_op)op);
        cr_assert(trine_case_parse(&c, trine_specs[op]->cases[0], error, sizeof error) &&
                      trine_case_finish(&c, error, sizeof error),
                  "%s: %s", trine_specs[op]->name, error);
        assert_ok(trine_explain(queue, (trine_op)op, c.args, &why));
        cr_expect(why.count > 0);
        for (int i = 0; i < why.count; i++) {
            trine_edge edges[TRINE_MAX_EDGES];
            int32_t count = 0;
            assert_ok(trine_explain_edges(queue, (trine_op)op, c.args, why.candidate[i].kernel, edges, &count));
            cr_expect(count > 0, "%s of %s has no edges", why.candidate[i].kernel, trine_specs[op]->name);
        }
    }
    trine_queue_close(queue);
    trine_close(lib);
}

/* No size of 0, which leaves a call empty or not, keeps a kernel from being asked for its edges. */
Test(tables, edges_of_empty_calls) {
    trine *lib = open_plain(NULL);
    trine_queue *queue;
    int asked = 0;
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        const trine_plan *plan = trine_plan_get(op);
        for (int symbol = 0; symbol < plan->symbols; symbol++) {
            static trine_explanation why;
            trine_case c;
            char error[256];
            trine_case_init(&c, (trine_op)op);
            cr_assert(trine_case_parse(&c, trine_specs[op]->cases[0], error, sizeof error));
            c.dim[symbol] = 0;
            if (!trine_case_finish(&c, error, sizeof error) ||
                trine_explain(queue, (trine_op)op, c.args, &why) != TRINE_OK)
                continue;
            for (int i = 0; i < why.count; i++) {
                trine_edge edges[TRINE_MAX_EDGES];
                int32_t count;
                assert_ok(trine_explain_edges(queue, (trine_op)op, c.args, why.candidate[i].kernel, edges, &count));
                asked++;
            }
        }
    }
    cr_expect(asked >= TRINE_OP_COUNT, "%d kernels were asked", asked);
    trine_queue_close(queue);
    trine_close(lib);
}
