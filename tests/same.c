/* SPDX-License-Identifier: Apache-2.0 */
/* Queues with TRINE_QUEUE_REPRODUCIBLE: the same bits at every level of the CPU and on every device, and no kernel but
 * those that give them. And other queues of the CPU: the same bits of few long rows, which threads share. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trine/ops.h>

#include "spec/case.h"
#include "tap.h"

static const char *const cases[] = {
    "matmul T=f32 m=67 n=70 k=300",
    "matmul T=f32 m=3 n=200 k=1025 alpha=0.7 beta=-1.3 activation=relu +c +bias",
    "matmul T=bf16 O=bf16 m=33 n=65 k=515 +bias",
    "matmul T=bf16 O=f32 m=64 n=64 k=256",
    "matmul T=f16 O=f16 m=5 n=9 k=77 alpha=3",
    "matmul T=f64 m=40 n=37 k=600 alpha=0.1 beta=0.9 +c +bias",
    "matmul T=f32 ga=3 gb=1 g=3 m=8 n=8 k=8",
    "matmul T=f32 m=4 n=4 k=0 +bias",
    "softmax T=f32 g=2 s=5 n=1000 scale=0.3",
    "softmax T=bf16 s=9 n=130 causal=1 scale=-2",
    "softmax T=f16 s=3 n=70 scale=-0",
    "rms_norm T=f32 r=6 n=1000 +weight +rstd",
    "rms_norm T=bf16 R=f32 W=bf16 r=6 n=77 weight_offset=1 rounding=before_weight +weight +residual +residual_out",
    "layer_norm T=f32 r=5 n=4097 +weight +bias +mean +rstd",
    "layer_norm T=f16 R=f16 W=f32 r=5 n=63 eps=0.1 +weight +bias +residual +residual_out",
    "reduce_sum T=f32 r=600 n=333 +row_sums +column_sums",
    "reduce_sum T=bf16 S=bf16 r=70 n=64 +row_sums +column_sums",
    "attention T=f32 b=2 sq=9 sk=300 h=4 hk=2 d=40 causal=1 +lse",
    "attention T=bf16 sq=5 sk=70 h=2 hk=2 d=128 window=20",
    "attention T=f16 sq=17 sk=17 h=1 hk=1 d=3 causal=1 window_left=4 +lse",
    "attention T=f32 sq=3 sk=1 h=1 hk=1 d=70 causal=1 +lse",
    "cast X=f32 T=bf16 r=3 n=50",
    "gaussian_axpy T=f32 n=100 alpha=0.5 seed=3",
    "topk T=bf16 r=3 n=300 k=7",
    "all_reduce T=f32 ranks=3 n=300",
    "all_reduce T=bf16 ranks=8 n=20001",
    "reduce_scatter T=f16 ranks=4 n=1000 kind=max",
    "all_to_all T=f32 ranks=3 n=50",
    "moe_dispatch T=bf16 I=i32 ranks=3 t=20 k=2 e=2 p=35 n=50 +needed",
    "all_to_all_v T=bf16 I=i32 ranks=3 m=9 capacity=12 n=50 +received",
};

/* Of rows that some numbers of threads share, or the pieces of their blocks, or the keys of a sequence; and of
 * products' sums. */
static const char *const shared[] = {
    "all_reduce_quantized T=f32 ranks=3 n=1000",
    "all_reduce_quantized T=bf16 ranks=4 n=70001 block=50 codes=e4m3",
    "vocab_parallel_cross_entropy T=bf16 L=i32 ranks=3 r=2 v=350000 label_smoothing=0.1 +lse +dlogits",
    "adamw_sharded T=f32 G=bf16 S=f32 C=bf16 ranks=3 n=100001 p=34000 step=3 lr=0.01 max_norm=1 +norm",
    "all_reduce_rms_norm_quantize T=bf16 R=bf16 W=bf16 C=e4m3 S=f32 ranks=3 r=3 k=250000 groups=4 +weight +residual",
    "softmax T=f32 s=3 n=150000 scale=0.3",
    "softmax T=bf16 s=5 n=300001",
    "softmax T=f16 g=3 s=1 n=400000 causal=1",
    "softmax_masked T=f32 B=f32 b=1 h=1 sq=3 sk=150001 +bias",
    "softmax_masked T=bf16 B=bf16 b=1 h=1 sq=1 sk=300001 +bias",
    "softmax_backward T=f32 s=3 n=150000",
    "softmax_masked_backward T=bf16 B=f32 b=1 h=1 sq=3 sk=300001 +dbias",
    "layer_norm T=f32 r=3 n=150001 +weight +bias +mean +rstd",
    "layer_norm T=bf16 R=bf16 W=bf16 r=5 n=300000 +weight +bias +residual +residual_out",
    "rms_norm T=f32 r=18 n=140000 +weight +rstd",
    "rms_norm T=f16 R=f16 W=f32 r=1 n=300000 dropout=0.25 seed=3",
    "l1_norm T=f32 r=3 n=150001 +weight +bias +mean +rmad",
    "layer_norm_backward T=f32 r=18 n=50001 +weight +mean +dweight +dbias",
    "rms_norm_backward T=bf16 R=bf16 W=bf16 r=3 n=50000 +weight +dweight",
    "l1_norm_backward T=f32 r=20 n=50001 +weight +dweight +dbias",
    "gelu_bias_backward T=f32 r=3 n=50001 +dbias",
    "dropout_add_backward T=f32 r=3 n=50001 p=0.5 seed=2 +dbias",
    "kl_div T=f32 r=3 v=150001 logits=1",
    "kl_div_backward T=f32 r=1 v=150001 logits=1",
    "jsd T=bf16 r=3 v=100001 logits=1 beta=0.5",
    "jsd_backward T=f32 r=18 v=60001 logits=1 beta=0.5",
    "reduce_sum T=f32 r=3 n=150001 +row_sums +column_sums",
    "argmax T=f32 r=3 n=150001",
    "topk T=f32 r=3 n=150001 k=50",
    "topk T=bf16 r=17 n=100001 k=3000 smallest=1",
    "sample T=bf16 I=i32 r=3 v=100001 temperature=0.8 top_k=50 top_p=0.95 seed=1 +probabilities",
    "sample T=f32 I=i64 r=1 v=150001 temperature=0.7 top_p=0.9 seed=1 +probabilities",
    "sample T=f32 I=i32 r=5 v=100000 temperature=1 min_p=0.01 seed=1",
    "quantize T=f32 C=i8 S=f32 r=3 k=200001 groups=1 bytes=200001",
    "quantize T=bf16 C=u8 S=bf16 r=1 k=800000 groups=2 bytes=200000 stochastic=1 seed=3 +zeros",
    "rms_norm_quantize T=f32 R=f32 W=f32 C=i8 S=f32 r=3 k=250001 groups=1 +weight +y +residual +residual_out",
    "rms_norm_quantize T=bf16 R=bf16 W=bf16 C=e4m3 S=f32 r=1 k=400000 groups=4 +weight",
    "matmul T=f32 m=37 n=58 k=5001 +bias",
    "matmul T=f32 m=300 n=33 k=2000",
    "matmul T=f64 m=70 n=40 k=3000",
    "matmul T=f16 m=41 n=129 k=9000",
    "matmul T=bf16 m=65 n=70 k=5000",
    "matmul T=f32 m=200 n=350 k=700 +c beta=1",
    "attention T=f32 sq=1 sk=5000 h=8 hk=2 d=64 +lse",
    "attention T=bf16 sq=3 sk=3000 h=6 hk=6 d=96 causal=1",
    "attention_decode T=bf16 C=bf16 B=f32 b=2 sq=1 h=8 hk=4 d=64 dv=64 pages=200 page=16 maxpages=90 +v_cache +lse",
};
enum { CASES = sizeof cases / sizeof cases[0], SHARED = sizeof shared / sizeof shared[0] };

static uint64_t state;
static double uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

/* Numbers of many sizes, now and then a zero. Of integers few are lengths, beyond the most that there may be, and many
 * are the numbers of pages. */
static void fill(char *data, trine_dtype dtype, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (dtype == TRINE_I32) {
            ((int32_t *)data)[i] = count < 8 ? 1 << 20 : (int32_t)i;
            continue;
        }
        const double size = exp(2 * uniform()), sign = uniform() < 0.5 ? -1 : 1;
        trine_store(data, dtype, i, uniform() < 0.02 ? 0 : sign * size * uniform());
    }
}

static bool same_number(const char *a, const char *b, trine_dtype dtype, int64_t i) {
    const size_t size = trine_dtype_size(dtype);
    if (memcmp(a + (size_t)i * size, b + (size_t)i * size, size) == 0) return true;
    return isnan(trine_load(a, dtype, i)) && isnan(trine_load(b, dtype, i));
}

/* A case's tensors on a queue, each behind a NaN; and what the outputs became, on the host. */
typedef struct made {
    trine_case c;
    char *host[TRINE_MAX_TENSORS];
    int64_t count[TRINE_MAX_TENSORS];
} made;

static bool run(trine_queue *queue, const char *text, uint64_t seed, made *m) {
    char op[64], error[512];
    int length = 0;
    memset(m, 0, sizeof *m);
    if (sscanf(text, "%63s %n", op, &length) != 1) return false;
    trine_case_init(&m->c, trine_op_find(op));
    if (!trine_case_parse(&m->c, text + length, error, sizeof error) || !trine_case_finish(&m->c, error, sizeof error))
        return tap(false, "%s: %s", text, error);
    state = seed;
    bool good = true;
    for (int i = 0; i < m->c.plan->tensors; i++) {
        if (!(m->c.present >> i & 1)) continue;
        trine_tensor *t = &m->c.tensor[i];
        m->count[i] = trine_tensor_count(t);
        const size_t bytes = (size_t)m->count[i] * trine_dtype_size(t->dtype);
        m->host[i] = calloc(bytes + 8, 1);
        fill(m->host[i], t->dtype, m->count[i]);
        good = good && trine_memory_alloc(queue, bytes + 8, &t->data) == TRINE_OK &&
               trine_memory_write(queue, t->data, m->host[i], bytes) == TRINE_OK;
    }
    good = good && trine_run(queue, m->c.plan->op, m->c.args) == TRINE_OK && trine_queue_wait(queue) == TRINE_OK;
    for (int i = 0; i < m->c.plan->tensors; i++) {
        if (!(m->c.present >> i & 1)) continue;
        const trine_tensor *t = &m->c.tensor[i];
        if (good)
            good = trine_memory_read(queue, m->host[i], t->data, (size_t)m->count[i] * trine_dtype_size(t->dtype)) ==
                   TRINE_OK;
        trine_memory_free(queue, t->data);
    }
    return good;
}

static void release(made *m) {
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) free(m->host[i]);
}

static trine_queue *open_queue(trine *lib, int device, int threads, uint32_t flags) {
    trine_queue *queue = NULL;
    const trine_queue_options options = { sizeof options, .flags = flags, .threads = threads };
    trine_queue_open(lib, device, &options, &queue);
    return queue;
}

/* Was the device's module built without code for the op? */
static bool hole(trine_queue *queue, const made *m) {
    static trine_explanation why;
    return trine_explain(queue, m->c.plan->op, m->c.args, &why) == TRINE_OK && why.count == 0;
}

/* All cases of a list on two queues. */
static void compare_all(const char *const *list, int count, trine_queue *a, trine_queue *b, const char *what) {
    static made left, right;
    int different = 0, failed = 0, compared = 0;
    for (int i = 0; i < count; i++) {
        const bool first = run(a, list[i], (uint64_t)i, &left);
        if (first && hole(b, &left)) {
            release(&left);
            continue;
        }
        const bool good = run(b, list[i], (uint64_t)i, &right) && first;
        compared++;
        if (!good) printf("# %s: %s\n", list[i], trine_error_message());
        failed += !good;
        for (int t = 0; good && t < left.c.plan->tensors; t++) {
            int64_t wrong = 0;
            for (int64_t k = 0; left.host[t] && k < left.count[t]; k++)
                wrong += !same_number(left.host[t], right.host[t], left.c.tensor[t].dtype, k);
            if (wrong)
                printf("# %s: %lld of %lld elements of %s differ\n", list[i], (long long)wrong,
                       (long long)left.count[t], left.c.plan->tensor[t].spec->name);
            different += wrong > 0;
        }
        release(&left);
        release(&right);
    }
    tap(different == 0 && failed == 0, "%d cases: the same bits on %s", compared, what);
}
static void compare(trine_queue *a, trine_queue *b, const char *what) {
    char both[96];
    snprintf(both, sizeof both, "the CPU's best level and %s", what);
    compare_all(cases, CASES, a, b, both);
}

static void compare_threads(trine *lib) {
    static const int threads[] = { 2, 3, 16 };
    trine_queue *single = open_queue(lib, 0, 1, 0);
    char what[64];
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        trine_queue *team = open_queue(lib, 0, threads[i], 0);
        snprintf(what, sizeof what, "1 thread and on %d, of what they share", threads[i]);
        compare_all(shared, SHARED, single, team, what);
        trine_queue_close(team);
    }
    trine_queue_close(single);
}

static void refused(trine_queue *queue, const char *text, const char *why) {
    static made m;
    const bool ran = run(queue, text, 1, &m);
    tap(!ran && strstr(trine_error_message(), why), "refused: %s", trine_error_message());
    release(&m);
}

int main(void) {
    static const char *const levels[] = { "baseline", "v3", "v4" };
    trine *lib;
    char what[64];
    if (!tap(trine_open(&(trine_options){ .struct_size = sizeof(trine_options), .tune_file = "" }, &lib) == TRINE_OK,
             "the library opens"))
        return tap_end();
    trine_queue *best = open_queue(lib, 0, 0, TRINE_QUEUE_REPRODUCIBLE),
                *single = open_queue(lib, 0, 1, TRINE_QUEUE_REPRODUCIBLE);
    compare(best, single, "one thread of it");
    compare_threads(lib);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        trine *other;
        const trine_options options = { .struct_size = sizeof options, .isa = levels[i], .tune_file = "" };
        if (trine_open(&options, &other) != TRINE_OK) continue;
        trine_queue *queue = open_queue(other, 0, 2, TRINE_QUEUE_REPRODUCIBLE);
        snprintf(what, sizeof what, "%s", levels[i]);
        compare(best, queue, what);
        trine_queue_close(queue);
        trine_close(other);
    }
    for (int i = 1; i < trine_device_count(lib); i++) {
        trine_device_info_t info;
        trine_queue *queue = open_queue(lib, i, 0, TRINE_QUEUE_REPRODUCIBLE);
        trine_device_info(lib, i, &info);
        snprintf(what, sizeof what, "%s (%s)", info.name, info.arch);
        compare(best, queue, what);
        trine_queue_close(queue);
    }
    refused(best, "gelu T=f32 r=2 n=3", "its bits are not those of other devices");
    refused(best, "matmul T=f32 m=2 n=2 k=2 activation=silu", "no activation but relu");
    refused(best, "rms_norm T=f32 r=2 n=3 dropout=0.5", "no dropout");
    refused(best, "attention T=f32 sq=2 sk=2 h=1 hk=1 d=2 softcap=3", "no softcap");
    trine_queue_close(best);
    trine_queue_close(single);
    trine_close(lib);
    return tap_end();
}
