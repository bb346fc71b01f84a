/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a test: the process takes the locale of its environment before main() runs, as programs with a
 * translated interface do. */
#include <locale.h>

__attribute__((constructor)) static void take_locale(void) { setlocale(LC_ALL, ""); }
