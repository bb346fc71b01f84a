/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated HIP driver, called as a backend calls it: opened by path, each case in a process of its own with its own
 * environment. */
#include <dlfcn.h>
#include <math.h>
#include <sys/wait.h>

#include "kernels.h"

struct handle {
    char bytes[64];
};

typedef struct hip {
    int (*count)(int *), (*properties)(void *, int), (*properties6)(void *, int), (*attribute)(int *, int, int),
        (*malloc)(void **, size_t), (*free)(void *);
    int (*copy)(void *, const void *, size_t, int), (*load)(void **, const void *),
        (*function)(void **, void *, const char *), (*synchronize)(void *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
    int (*stream)(void **), (*begin)(void *, int), (*end)(void *, void **),
        (*instantiate)(void **, void *, void *, char *, size_t), (*replay)(void *, void *);
    int (*fill)(void *, int, size_t, void *), (*event)(void **), (*record)(void *, void *),
        (*elapsed)(float *, void *, void *), (*last)(void);
    int (*set)(int), (*get)(int *), (*place)(char *, int, int), (*by_place)(int *, const char *),
        (*can)(int *, int, int), (*enable)(int, unsigned), (*extended)(void **, size_t, unsigned), (*query)(void *),
        (*destroy)(void *);
    int (*share)(struct handle *, void *), (*map)(void **, struct handle, unsigned), (*unmap)(void *);
} hip;

static hip open_hip(void) {
    void *library = dlopen(CDNA_HIP, RTLD_NOW | RTLD_LOCAL);
    hip h = { 0 };
    const struct {
        const char *name;
        void *to;
    } names[] = { { "hipGetDeviceCount", &h.count },
                  { "hipGetDeviceProperties", &h.properties },
                  { "hipGetDevicePropertiesR0600", &h.properties6 },
                  { "hipDeviceGetAttribute", &h.attribute },
                  { "hipMalloc", &h.malloc },
                  { "hipFree", &h.free },
                  { "hipMemcpy", &h.copy },
                  { "hipModuleLoadData", &h.load },
                  { "hipModuleGetFunction", &h.function },
                  { "hipModuleLaunchKernel", &h.launch },
                  { "hipStreamSynchronize", &h.synchronize },
                  { "hipStreamCreate", &h.stream },
                  { "hipStreamBeginCapture", &h.begin },
                  { "hipStreamEndCapture", &h.end },
                  { "hipGraphInstantiate", &h.instantiate },
                  { "hipGraphLaunch", &h.replay },
                  { "hipMemsetAsync", &h.fill },
                  { "hipEventCreate", &h.event },
                  { "hipEventRecord", &h.record },
                  { "hipEventElapsedTime", &h.elapsed },
                  { "hipGetLastError", &h.last },
                  { "hipSetDevice", &h.set },
                  { "hipGetDevice", &h.get },
                  { "hipDeviceGetPCIBusId", &h.place },
                  { "hipDeviceGetByPCIBusId", &h.by_place },
                  { "hipDeviceCanAccessPeer", &h.can },
                  { "hipDeviceEnablePeerAccess", &h.enable },
                  { "hipExtMallocWithFlags", &h.extended },
                  { "hipStreamQuery", &h.query },
                  { "hipStreamDestroy", &h.destroy },
                  { "hipIpcGetMemHandle", &h.share },
                  { "hipIpcOpenMemHandle", &h.map },
                  { "hipIpcCloseMemHandle", &h.unmap } };
    for (size_t i = 0; library && i < sizeof names / sizeof names[0]; i++) {
        void *symbol = dlsym(library, names[i].name);
        memcpy(names[i].to, &symbol, sizeof symbol);
    }
    return h;
}

enum { N = 1000, BYTES = N * sizeof(float), TO_DEVICE = 1, TO_HOST = 2 };

/* A case: what went wrong, NULL if nothing did. */
typedef const char *case_function(const hip *h, const char *chip, const unsigned char *object);
#define MUST(condition) \
    do { \
        if (!(condition)) return #condition; \
    } while (0)

/* x on the device, n floats i, and room for as many. */
typedef struct setting {
    void *module, *add, *stream, *x, *y;
    float host[N];
} setting;

static const char *set_up(const hip *h, const unsigned char *object, setting *s) {
    for (int i = 0; i < N; i++) s->host[i] = (float)i;
    MUST(h->load(&s->module, object) == 0 && h->function(&s->add, s->module, "vector_add") == 0 &&
         h->stream(&s->stream) == 0);
    MUST(h->malloc(&s->x, BYTES) == 0 && h->malloc(&s->y, BYTES) == 0 && h->copy(s->x, s->host, BYTES, TO_DEVICE) == 0);
    return NULL;
}

/* y = x + z. */
static int add(const hip *h, setting *s, void *z, int n) {
    void *each[] = { &s->x, &z, &s->y, &n };
    return h->launch(s->add, 4, 1, 1, 256, 1, 1, 0, s->stream, each, NULL);
}

static const char *no_device(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip, (void)object;
    int count = 7;
    MUST(h->count(&count) == 100 && count == 0);
    MUST(h->last() == 100 && h->last() == 0);
    return NULL;
}

static const char *device(const hip *h, const char *chip, const unsigned char *object) {
    (void)object;
    int count, units;
    static char properties[4096];
    MUST(h->count(&count) == 0 && count == 1);
    MUST(h->properties(properties, 0) == 0 && strncmp(properties + 396, chip, strlen(chip)) == 0 &&
         properties[396 + strlen(chip)] == ':');
    MUST(memcmp(properties + 368, &(int){ 0x65 }, 4) == 0 && h->properties(properties, 1) == 101);
    MUST(h->properties6(properties, 0) == 0 && strncmp(properties + 1160, chip, strlen(chip)) == 0 &&
         memcmp(properties + 584, &(int){ 0x65 }, 4) == 0);
    MUST(h->attribute(&units, 63, 0) == 0 && units >= 104);
    return NULL;
}

static const char *launch(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    static setting s;
    float out[N];
    const char *trouble = set_up(h, object, &s);
    MUST(trouble == NULL && add(h, &s, s.x, N) == 0 && h->synchronize(s.stream) == 0 &&
         h->copy(out, s.y, BYTES, TO_HOST) == 0);
    for (int i = 0; i < N; i++) MUST(out[i] == 2 * (float)i);
    MUST(h->function(&s.add, s.module, "nothing") == 500 && h->free(s.x) == 0 && h->free(s.x) == 17);
    return NULL;
}

static const char *packed_launch(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    static setting s;
    float out[N];
    const char *trouble = set_up(h, object, &s);
    MUST(trouble == NULL);
    const struct {
        void *a, *b, *c;
        int n;
    } args = { s.x, s.x, s.y, N };
    size_t size = sizeof args;
    void *extra[] = { (void *)1, (void *)(uintptr_t)&args, (void *)2, &size, (void *)3 };
    MUST(h->launch(s.add, 4, 1, 1, 256, 1, 1, 0, s.stream, NULL, extra) == 0 &&
         h->copy(out, s.y, BYTES, TO_HOST) == 0 && out[N - 1] == 2 * (N - 1));
    return NULL;
}

static const char *graphs(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    static setting s;
    float out[N];
    void *graph, *executable;
    const char *trouble = set_up(h, object, &s);
    MUST(trouble == NULL && h->fill(s.y, 0, BYTES, s.stream) == 0 && h->begin(s.stream, 0) == 0);
    MUST(add(h, &s, s.y, N) == 0 && h->synchronize(s.stream) == 900 && h->malloc(&graph, 4) == 900 &&
         h->end(s.stream, &graph) == 0);
    MUST(h->copy(out, s.y, BYTES, TO_HOST) == 0 && out[N - 1] == 0);
    MUST(h->instantiate(&executable, graph, NULL, NULL, 0) == 0);
    for (int i = 0; i < 3; i++) MUST(h->replay(executable, s.stream) == 0);
    MUST(h->copy(out, s.y, BYTES, TO_HOST) == 0 && out[N - 1] == 3 * (N - 1));
    return NULL;
}

static const char *events(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    static setting s;
    void *first, *second;
    float milliseconds = -1;
    const char *trouble = set_up(h, object, &s);
    MUST(trouble == NULL && h->event(&first) == 0 && h->event(&second) == 0 && h->record(first, s.stream) == 0);
    MUST(h->elapsed(&milliseconds, first, second) == 400);
    MUST(add(h, &s, s.x, N) == 0 && h->record(second, s.stream) == 0 && h->elapsed(&milliseconds, first, second) == 0 &&
         milliseconds > 0);
    return NULL;
}

static const char *bad_kernel(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    static setting s;
    const char *trouble = set_up(h, object, &s);
    MUST(trouble == NULL && add(h, &s, s.x, N + 1) == 0 && h->synchronize(s.stream) == 719 && h->free(s.x) == 719);
    return NULL;
}

static const char *host_pointer(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    static setting s;
    const char *trouble = set_up(h, object, &s);
    MUST(trouble == NULL && h->copy(s.host, s.host, 4, TO_DEVICE) == 1 && add(h, &s, s.host, N) == 0 &&
         h->synchronize(s.stream) == 719);
    return NULL;
}

static const char *out_of_memory(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip, (void)object;
    void *x, *y;
    MUST(h->malloc(&x, 600) == 0 && h->malloc(&y, 600) == 2 && y == NULL && h->free(x) == 0 && h->malloc(&y, 600) == 0);
    return NULL;
}

static const char *told_to_fail(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    static setting s;
    const char *trouble = set_up(h, object, &s);
    MUST(trouble == NULL && h->malloc(&s.x, 4) == 2 && h->malloc(&s.x, 4) == 0);
    MUST(h->synchronize(NULL) == 719 && h->synchronize(NULL) == 719);
    return NULL;
}

static const char *wrong_chip(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    void *module;
    MUST(h->load(&module, object) == 209 && h->load(&module, "not an object") == 200);
    return NULL;
}

enum { UNCACHED = 3, WORDS = 64, ALL = WORDS * sizeof(uint64_t) };

static const char *devices(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip, (void)object;
    int count, at = 7, can;
    char place[32];
    MUST(h->count(&count) == 0 && count == 3);
    MUST(h->set(3) == 101 && h->get(&at) == 0 && at == 0 && h->set(2) == 0 && h->get(&at) == 0 && at == 2);
    MUST(h->place(place, sizeof place, 0) == 0 && strcmp(place, "0000:c1:00.0") == 0);
    MUST(h->place(place, sizeof place, 2) == 0 && strcmp(place, "0000:c3:00.0") == 0 && h->by_place(&at, place) == 0 &&
         at == 2 && h->by_place(&at, "0000:c4:00.0") == 101);
    MUST(h->can(&can, 0, 1) == 0 && can && h->can(&can, 1, 1) == 0 && !can && h->can(&can, 0, 3) == 101);
    MUST(h->enable(2, 0) == 101 && h->enable(0, 0) == 0 && h->enable(0, 0) == 704 && h->enable(1, 0) == 0);
    return NULL;
}

/* A stream of a device, and memory there that peers reach. */
typedef struct side {
    void *stream, *module, *meet, *memory;
} side;

static const char *open_side(const hip *h, const unsigned char *object, int device, side *s) {
    MUST(h->set(device) == 0 && h->stream(&s->stream) == 0 && h->load(&s->module, object) == 0 &&
         h->function(&s->meet, s->module, "meet") == 0);
    MUST(h->extended(&s->memory, ALL, UNCACHED) == 0 && h->fill(s->memory, 0, ALL, s->stream) == 0);
    return NULL;
}

static int run_side(const hip *h, int device, const side *s, void *theirs) {
    void *memory = s->memory, *each[] = { &theirs, &memory };
    h->set(device);
    return h->launch(s->meet, 1, 1, 1, 64, 1, 1, 0, s->stream, each, NULL);
}

/* Two launches wait for each other, and the streams say that they do. */
static const char *peers(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    side a, b;
    uint64_t got[WORDS];
    MUST(open_side(h, object, 0, &a) == NULL && h->enable(1, 0) == 0 && open_side(h, object, 1, &b) == NULL &&
         h->enable(0, 0) == 0);
    MUST(run_side(h, 0, &a, b.memory) == 0 && h->query(a.stream) == 600);
    MUST(run_side(h, 0, &b, a.memory) == 400); /* a stream of another device */
    MUST(run_side(h, 1, &b, a.memory) == 0 && h->synchronize(a.stream) == 0 && h->synchronize(b.stream) == 0 &&
         h->query(a.stream) == 0);
    MUST(h->copy(got, a.memory, ALL, TO_HOST) == 0);
    for (int i = 0; i < WORDS; i++) MUST(got[i] == (uint64_t)i + 1);
    MUST(h->destroy(a.stream) == 0 && h->free(a.memory) == 0);
    return NULL;
}

static const char *peer_not_enabled(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    side a, b;
    MUST(open_side(h, object, 0, &a) == NULL && open_side(h, object, 1, &b) == NULL);
    MUST(run_side(h, 1, &b, a.memory) == 0 && h->synchronize(b.stream) == 719);
    return NULL;
}

static const char *plain_store_to_peer(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    side a;
    MUST(open_side(h, object, 0, &a) == NULL && h->function(&a.meet, a.module, "give_plainly") == 0);
    MUST(run_side(h, 0, &a, a.memory) == 0 && h->synchronize(a.stream) == 719);
    return NULL;
}

/* The parent's memory is mapped in a child, and both wait for each other. */
static const char *other_process(const hip *h, const char *chip, const unsigned char *object) {
    (void)chip;
    int to_parent[2], to_child[2], status = 1;
    struct handle own, theirs;
    void *plain, *mapped;
    side s;
    MUST(pipe(to_parent) == 0 && pipe(to_child) == 0);
    const pid_t child = fork();
    const int out = child == 0 ? to_parent[1] : to_child[1], in = child == 0 ? to_child[0] : to_parent[0];
    MUST(open_side(h, object, 0, &s) == NULL && h->share(&own, s.memory) == 0 && h->map(&mapped, own, 1) == 1);
    MUST(h->malloc(&plain, 64) == 0 && h->share(&theirs, plain) == 801);
    MUST(write(out, &own, sizeof own) == sizeof own && read(in, &theirs, sizeof theirs) == sizeof theirs);
    MUST(h->map(&mapped, theirs, 1) == 0 && run_side(h, 0, &s, mapped) == 0 && h->synchronize(s.stream) == 0);
    MUST(h->unmap(mapped) == 0 && h->unmap(mapped) == 17);
    if (child == 0) _exit(0);
    MUST(waitpid(child, &status, 0) == child && status == 0);
    return NULL;
}

static const struct {
    const char *name;
    case_function *check;
    const char *variable, *value; /* of the environment */
} cases[] = {
    { "a device with its chip's name", device, "CDNA_PCI", "0000:65:00.0" },
    { "a launch, arguments one by one, in both orders", launch, "CDNA_ORDERS", "2" },
    { "a launch, arguments in a block", packed_launch, "CDNA_ORDERS", "1" },
    { "graphs", graphs, "CDNA_ORDERS", "1" },
    { "events", events, "CDNA_ORDERS", "1" },
    { "a kernel that goes astray", bad_kernel, "CDNA_ORDERS", "1" },
    { "a host pointer given to the device", host_pointer, "CDNA_ORDERS", "1" },
    { "a full device", out_of_memory, "CDNA_MEMORY", "1000" },
    { "several devices", devices, "CDNA_DEVICES", "3" },
    { "launches of two devices that wait for each other", peers, "CDNA_DEVICES", "2" },
    { "a peer that was not let reach", peer_not_enabled, "CDNA_DEVICES", "2" },
    { "a plain store to where peers look", plain_store_to_peer, "CDNA_DEVICES", "1" },
    { "memory of another process", other_process, "CDNA_DEVICES", "1" },
    { "failures on demand", told_to_fail, "CDNA_FAIL", "hipMalloc:3:2,hipStreamSynchronize:1+:719" },
};

/* In a child: 0 if the case holds. */
static bool run_case(case_function *check, const char *chip, const char *variable, const char *value,
                     const unsigned char *object) {
    fflush(stdout);
    const pid_t child = fork();
    int status = 1;
    if (child == 0) {
        if (chip) setenv("CDNA_CHIP", chip, 1);
        if (variable) setenv(variable, value, 1);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
        const hip h = open_hip();
        const char *trouble = h.count ? check(&h, chip, object) : "the library does not open";
        if (trouble) printf("# not so: %s\n", trouble);
        fflush(stdout);
        _exit(trouble != NULL);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void) {
    char *source = kernels_source();
    tap(run_case(no_device, NULL, NULL, NULL, NULL), "without CDNA_CHIP there is no device");
    for (int chip = 0; source && chip < CDNA_CHIPS; chip++) {
        const char *name = cdna_chip_name((cdna_chip)chip);
        size_t size;
        unsigned char *object = chip_builds(name) ? build_object(name, true, source, &size) : NULL;
        if (object == NULL) {
            tap(true, "%s # SKIP this clang does not know it", name);
            continue;
        }
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            tap(run_case(cases[i].check, name, cases[i].variable, cases[i].value, object), "%s: %s", name,
                cases[i].name);
        tap(run_case(wrong_chip, cdna_chip_name((cdna_chip)((chip + 1) % CDNA_CHIPS)), NULL, NULL, object),
            "%s: a code object on another chip", name);
        free(object);
    }
    free(source);
    return tap_end();
}
