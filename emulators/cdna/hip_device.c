/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated HIP driver: its life, its errors, the failures it is told to have, and its device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hip.h"

driver the_driver = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local hipError_t last_error;
_Thread_local int current_device;

/* What the chips' products are; clocks in kHz. */
static const struct chip_facts {
    const char *name;
    int compute_units, clock, memory_clock, memory_bus, l2, lds, chiplets;
} facts[CDNA_CHIPS] = {
    [CDNA_GFX90A] = { "AMD Instinct MI210 (emulated)", 104, 1700000, 1600000, 4096, 8 << 20, 64 << 10, 1 },
    [CDNA_GFX942] = { "AMD Instinct MI300X (emulated)", 304, 2100000, 1300000, 8192, 4 << 20, 64 << 10, 8 },
    [CDNA_GFX950] = { "AMD Instinct MI355X (emulated)", 256, 2400000, 2000000, 8192, 4 << 20, 160 << 10, 8 },
};

/* --------------------------------------------------------------------------------------------------------- failures */

enum { FAILURES = 16 };
static struct injection {
    char call[48];
    long at, seen;
    bool stays;
    hipError_t error;
} injections[FAILURES];
static int failed_calls;

/* "CALL:N:ERROR" or "CALL:N+:ERROR". */
static bool parse_failure(const char *text, struct injection *in) {
    const size_t length = strcspn(text, ":");
    char *end;
    if (text[length] == 0 || length >= sizeof in->call) return false;
    memcpy(in->call, text, length);
    in->at = strtol(text + length + 1, &end, 10);
    in->stays = *end == '+';
    end += in->stays;
    if (*end != ':') return false;
    in->error = (hipError_t)strtol(end + 1, &end, 10);
    return *end == 0 || *end == ',';
}

static void parse_failures(const char *text) {
    for (int i = 0; text != NULL && *text && i < FAILURES; i++) {
        if (!parse_failure(text, &injections[i])) {
            fprintf(stderr, "CDNA_FAIL: \"%s\" is not CALL:N:ERROR\n", text);
            return;
        }
        text += strcspn(text, ",");
        text += *text == ',';
    }
}

static hipError_t injected(const char *call) {
    for (int i = 0; i < FAILURES; i++) {
        struct injection *in = &injections[i];
        if (strcmp(in->call, call) != 0) continue;
        in->seen++;
        if (in->seen != in->at && !(in->stays && in->seen > in->at)) continue;
        failed_calls++;
        return in->error;
    }
    return hipSuccess;
}

API void cdna_hip_fail(const char *failures) {
    pthread_mutex_lock(&the_driver.mutex);
    memset(injections, 0, sizeof injections);
    parse_failures(failures);
    failed_calls = 0;
    the_driver.lost = hipSuccess;
    pthread_mutex_unlock(&the_driver.mutex);
}
API int cdna_hip_failed(void) { return failed_calls; }

/* ------------------------------------------------------------------------------------------------------------- life */

static void print_profiles(void) {
    for (int i = 0; i < the_driver.profiles; i++) {
        fprintf(stderr, "%s: ", the_driver.profiled[i]->name);
        cdna_profile_print(&the_driver.profile[i], stderr);
    }
}

static void open_driver(void) {
    const char *name = getenv("CDNA_CHIP"), *memory = getenv("CDNA_MEMORY"), *orders = getenv("CDNA_ORDERS"),
               *trace = getenv("CDNA_TRACE"), *waves = getenv("CDNA_WAVES"), *devices = getenv("CDNA_DEVICES");
    cdna_chip chip;
    if (name == NULL) return;
    if (!cdna_chip_parse(name, &chip)) {
        fprintf(stderr, "CDNA_CHIP: there is no chip \"%s\"\n", name);
        return;
    }
    the_driver.machine = cdna_open(chip);
    if (the_driver.machine != NULL && getenv("CDNA_SHARE")) cdna_memory_share(the_driver.machine);
    the_driver.devices = devices ? atoi(devices) : 1;
    if (the_driver.devices < 1 || the_driver.devices > CDNA_DEVICES) {
        fprintf(stderr, "CDNA_DEVICES: \"%s\" is not a number from 1 to %d\n", devices, CDNA_DEVICES);
        the_driver.devices = 1;
    }
    the_driver.memory = memory ? strtoull(memory, NULL, 0) : (size_t)4 << 30;
    the_driver.orders = orders != NULL && strcmp(orders, "2") == 0;
    the_driver.trace_wave = waves != NULL && strcmp(waves, "all") == 0 ? -1 : 0;
    if (trace != NULL && (the_driver.trace = fopen(trace, "w")) == NULL)
        fprintf(stderr, "CDNA_TRACE: %s cannot be written\n", trace);
    parse_failures(getenv("CDNA_FAIL"));
    if (getenv("CDNA_PROFILE")) atexit(print_profiles);
}

hipError_t enter(const char *call) {
    pthread_once(&once, open_driver);
    pthread_mutex_lock(&the_driver.mutex);
    if (the_driver.machine == NULL) return hipErrorNoDevice;
    if (the_driver.lost) return the_driver.lost;
    return injected(call);
}

hipError_t leave(hipError_t error) {
    pthread_mutex_unlock(&the_driver.mutex);
    if (error) last_error = error;
    return error;
}

/* ----------------------------------------------------------------------------------------------------------- errors */

static const struct {
    hipError_t error;
    const char *name, *text;
} errors[] = {
    { hipSuccess, "hipSuccess", "no error" },
    { hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument" },
    { hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory" },
    { hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument" },
    { hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer" },
    { hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected" },
    { hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal" },
    { hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid" },
    { hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device" },
    { hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle" },
    { hipErrorNotFound, "hipErrorNotFound", "named symbol not found" },
    { hipErrorNotReady, "hipErrorNotReady", "device not ready" },
    { hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled" },
    { hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure" },
    { hipErrorNotSupported, "hipErrorNotSupported", "operation not supported" },
    { hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
      "operation not permitted when stream is capturing" },
    { hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched",
      "the capture was not initiated in this stream" },
};

static size_t error_index(hipError_t error) {
    size_t i = 0;
    while (i < sizeof errors / sizeof errors[0] && errors[i].error != error) i++;
    return i;
}

API const char *hipGetErrorName(hipError_t error) {
    const size_t i = error_index(error);
    return i < sizeof errors / sizeof errors[0] ? errors[i].name : "hipErrorUnknown";
}
API const char *hipGetErrorString(hipError_t error) {
    const size_t i = error_index(error);
    return i < sizeof errors / sizeof errors[0] ? errors[i].text : "unknown error";
}
API hipError_t hipPeekAtLastError(void) { return last_error; }
API hipError_t hipGetLastError(void) {
    const hipError_t error = last_error;
    last_error = hipSuccess;
    return error;
}

/* ----------------------------------------------------------------------------------------------------------- device */

static bool is_device(int device) { return device >= 0 && device < the_driver.devices; }

API hipError_t hipInit(unsigned flags) {
    ENTER(hipInit);
    return leave(flags ? hipErrorInvalidValue : hipSuccess);
}

API hipError_t hipGetDeviceCount(int *count) {
    *count = 0;
    ENTER(hipGetDeviceCount);
    *count = the_driver.devices;
    return leave(hipSuccess);
}

API hipError_t hipGetDevice(int *device) {
    ENTER(hipGetDevice);
    *device = current_device;
    return leave(hipSuccess);
}
API hipError_t hipSetDevice(int device) {
    ENTER(hipSetDevice);
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    current_device = device;
    return leave(hipSuccess);
}
API hipError_t hipDeviceGet(int *device, int ordinal) {
    ENTER(hipDeviceGet);
    *device = ordinal;
    return leave(is_device(ordinal) ? hipSuccess : hipErrorInvalidDevice);
}

API hipError_t hipRuntimeGetVersion(int *version) {
    ENTER(hipRuntimeGetVersion);
    *version = 50221153;
    return leave(hipSuccess);
}
API hipError_t hipDriverGetVersion(int *version) {
    ENTER(hipDriverGetVersion);
    *version = 50221153;
    return leave(hipSuccess);
}

typedef struct place {
    unsigned domain, bus, slot;
    char text[24];
} place;

static place place_of(int device) {
    const char *first = getenv("CDNA_PCI");
    place p = { 0 };
    if (first == NULL) first = "0000:c1:00.0";
    sscanf(first, "%x:%x:%x", &p.domain, &p.bus, &p.slot);
    p.bus += (unsigned)device;
    if (device == 0)
        snprintf(p.text, sizeof p.text, "%s", first);
    else
        snprintf(p.text, sizeof p.text, "%04x:%02x:%02x.0", p.domain & 0xffff, p.bus & 0xff, p.slot & 0xff);
    return p;
}

API hipError_t hipDeviceGetPCIBusId(char *text, int length, int device) {
    ENTER(hipDeviceGetPCIBusId);
    if (!is_device(device) || length < 13) return leave(length < 13 ? hipErrorInvalidValue : hipErrorInvalidDevice);
    snprintf(text, (size_t)length, "%s", place_of(device).text);
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetByPCIBusId(int *device, const char *text) {
    ENTER(hipDeviceGetByPCIBusId);
    for (int i = 0; i < the_driver.devices; i++) {
        if (strcasecmp(place_of(i).text, text) != 0) continue;
        *device = i;
        return leave(hipSuccess);
    }
    return leave(hipErrorInvalidDevice);
}

/* Each device can reach all others. */
API hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
    ENTER(hipDeviceCanAccessPeer);
    if (!is_device(device) || !is_device(peer)) return leave(hipErrorInvalidDevice);
    *can = device != peer;
    return leave(hipSuccess);
}
API hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
    ENTER(hipDeviceEnablePeerAccess);
    if (!is_device(peer) || peer == current_device) return leave(hipErrorInvalidDevice);
    if (flags) return leave(hipErrorInvalidValue);
    const bool added = cdna_memory_reach(the_driver.machine, current_device, peer);
    return leave(added ? hipSuccess : hipErrorPeerAccessAlreadyEnabled);
}

API hipError_t hipDeviceGetName(char *name, int length, int device) {
    ENTER(hipDeviceGetName);
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    snprintf(name, (size_t)length, "%s", facts[cdna_machine_chip(the_driver.machine)].name);
    return leave(hipSuccess);
}

API hipError_t hipDeviceTotalMem(size_t *bytes, int device) {
    ENTER(hipDeviceTotalMem);
    *bytes = the_driver.memory;
    return leave(is_device(device) ? hipSuccess : hipErrorInvalidDevice);
}

/* hipDeviceProp_t has two layouts: that of HIP 5, and that of HIP 6, whose entry point has another name. */
typedef enum layout { HIP_5, HIP_6, LAYOUTS } layout;
static const size_t properties_size[LAYOUTS] = { 792, 1472 };

static int minor_of(cdna_chip chip) { return chip == CDNA_GFX90A ? 0 : chip == CDNA_GFX942 ? 4 : 5; }

static hipError_t describe(char *out, int device, layout version) {
    if (!is_device(device)) return hipErrorInvalidDevice;
    const cdna_chip chip = cdna_machine_chip(the_driver.machine);
    const struct chip_facts *f = &facts[chip];
    const place p = place_of(device);
    const struct {
        size_t bytes, at[LAYOUTS]; /* of the field: its offsets in the layouts */
        uint64_t value;
    } fields[] = {
        { 8, { 256, 288 }, the_driver.memory }, /* totalGlobalMem */
        { 8, { 264, 296 }, (uint64_t)f->lds },  /* sharedMemPerBlock */
        { 4, { 272, 304 }, 65536 },             /* regsPerBlock */
        { 4, { 276, 308 }, 64 },                /* warpSize */
        { 4, { 280, 320 }, 1024 },              /* maxThreadsPerBlock */
        { 4, { 284, 324 }, 1024 },              /* maxThreadsDim */
        { 4, { 288, 328 }, 1024 },
        { 4, { 292, 332 }, 1024 },
        { 4, { 296, 336 }, INT32_MAX }, /* maxGridSize */
        { 4, { 300, 340 }, 65536 },
        { 4, { 304, 344 }, 65536 },
        { 4, { 308, 348 }, (uint64_t)f->clock },         /* clockRate */
        { 4, { 312, 608 }, (uint64_t)f->memory_clock },  /* memoryClockRate */
        { 4, { 316, 612 }, (uint64_t)f->memory_bus },    /* memoryBusWidth */
        { 4, { 328, 360 }, 9 },                          /* major */
        { 4, { 332, 364 }, (uint64_t)minor_of(chip) },   /* minor */
        { 4, { 336, 388 }, (uint64_t)f->compute_units }, /* multiProcessorCount */
        { 4, { 340, 616 }, (uint64_t)f->l2 },            /* l2CacheSize */
        { 4, { 344, 624 }, 2048 },                       /* maxThreadsPerMultiProcessor */
        { 4, { 360, 576 }, 1 },                          /* concurrentKernels */
        { 4, { 364, 592 }, p.domain },                   /* pciDomainID */
        { 4, { 368, 584 }, p.bus },                      /* pciBusID */
        { 4, { 372, 588 }, p.slot },                     /* pciDeviceID */
        { 8, { 376, 1416 }, (uint64_t)f->lds },          /* maxSharedMemoryPerMultiProcessor */
    };
    memset(out, 0, properties_size[version]);
    snprintf(out, 256, "%s", f->name);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        memcpy(out + fields[i].at[version], &fields[i].value, fields[i].bytes);
    const char *arch = getenv("CDNA_ARCH");
    /* gcnArchName */
    snprintf(out + (version == HIP_5 ? 396 : 1160), 256, "%s:sramecc+:xnack-", arch ? arch : cdna_chip_name(chip));
    return hipSuccess;
}

API hipError_t hipGetDeviceProperties(char *out, int device) {
    ENTER(hipGetDeviceProperties);
    return leave(describe(out, device, HIP_5));
}
API hipError_t hipGetDevicePropertiesR0600(char *out, int device) {
    ENTER(hipGetDevicePropertiesR0600);
    return leave(describe(out, device, HIP_6));
}

int device_units(void) { return facts[cdna_machine_chip(the_driver.machine)].compute_units; }
int device_chiplets(void) { return facts[cdna_machine_chip(the_driver.machine)].chiplets; }

/* Numbers of hipDeviceAttribute_t, which HIP 5 and 6 share. */
API hipError_t hipDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER(hipDeviceGetAttribute);
    const cdna_chip chip = cdna_machine_chip(the_driver.machine);
    const struct chip_facts *f = &facts[chip];
    const place p = place_of(device);
    const struct {
        int attribute, value;
    } known[] = { { 5, f->clock },
                  { 19, f->l2 },
                  { 23, 9 },
                  { 56, 1024 },
                  { 57, 2048 },
                  { 59, f->memory_bus },
                  { 60, f->memory_clock },
                  { 61, chip == CDNA_GFX90A   ? 0
                        : chip == CDNA_GFX942 ? 4
                                              : 5 },
                  { 63, f->compute_units },
                  { 67, (int)p.bus },
                  { 68, (int)p.slot },
                  { 69, (int)p.domain },
                  { 74, f->lds },
                  { 87, 64 },
                  { 16, 0 },
                  { 10002, f->lds } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].attribute != attribute) continue;
        *value = known[i].value;
        return leave(is_device(device) ? hipSuccess : hipErrorInvalidDevice);
    }
    return leave(hipErrorInvalidValue);
}
