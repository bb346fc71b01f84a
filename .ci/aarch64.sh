#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for aarch64 and runs a short selection of the agreement suite under qemu-user.
set -eu
[ -f build-aarch64/build.ninja ] || meson setup build-aarch64 --cross-file .ci/aarch64.ini -Dhwloc=disabled \
    -Dcuda=disabled -Dhip=disabled -Dtests=disabled -Dman=disabled -Dpeers=disabled >/dev/null
ninja -C build-aarch64 --quiet
build=build-aarch64
qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$build/dispatch" "$build/tools/trine" check --isa all \
    --seed 3 --budget "${DEV_AARCH64_BUDGET:-60}" --quiet
