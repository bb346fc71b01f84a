/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the headers; the build and the SONAME are made from it. */
#ifndef TRINE_VERSION_H
#define TRINE_VERSION_H

#define TRINE_VERSION_MAJOR 0
#define TRINE_VERSION_MINOR 1
#define TRINE_VERSION_PATCH 0
#define TRINE_VERSION "0.1.0"

/* Modules and the library must agree in this number, and it is the SONAME's. */
#define TRINE_ABI 0

#endif
