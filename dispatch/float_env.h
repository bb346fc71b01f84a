/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment of the library: rounding to nearest, subnormals as they are, exceptions masked. A
 * program may have set another for its own thread; a function that computes enters this one and leaves as it came,
 * flags included. Threads that are made in between inherit it (POSIX, pthread_create). */
#ifndef TRINE_FLOAT_ENV_H
#define TRINE_FLOAT_ENV_H

#include <stdint.h>

#if defined(__x86_64__)
typedef uint32_t float_env;

enum { FLOAT_CONTROL = 0x1f80, FLOAT_FLAGS = 0x3f };

static inline void float_env_set(float_env env) { __asm__ volatile("ldmxcsr %0" : : "m"(env) : "memory"); }
static inline float_env float_env_get(void) {
    float_env env;
    __asm__ volatile("stmxcsr %0" : "=m"(env) : : "memory");
    return env;
}
static inline float_env float_env_enter(void) {
    const float_env env = float_env_get();
    if ((env & ~(float_env)FLOAT_FLAGS) != FLOAT_CONTROL) float_env_set(FLOAT_CONTROL);
    return env;
}
static inline void float_env_leave(float_env env) {
    if (float_env_get() != env) float_env_set(env);
}
#elif defined(__aarch64__)
typedef struct float_env {
    uint64_t control, status;
} float_env;

static inline void float_control_set(uint64_t control) { __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory"); }
static inline float_env float_env_enter(void) {
    float_env env;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(env.control), "=r"(env.status) : : "memory");
    if (env.control != 0) float_control_set(0);
    return env;
}
static inline void float_env_leave(float_env env) {
    if (env.control != 0) float_control_set(env.control);
    __asm__ volatile("msr fpsr, %0" : : "r"(env.status) : "memory");
}
#else
#include <fenv.h>

typedef fenv_t float_env;

static inline float_env float_env_enter(void) {
    float_env env;
    fegetenv(&env);
    fesetenv(FE_DFL_ENV);
    return env;
}
static inline void float_env_leave(float_env env) { fesetenv(&env); }
#endif

/* For a function whose arithmetic must stay between entering and leaving. */
#define FLOAT_ENV_INSIDE __attribute__((noinline))

#endif
