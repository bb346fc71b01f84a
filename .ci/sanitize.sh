#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests and a sample of the agreement suite under ASan and UBSan, and the thread programs under TSan. Adding 0 to a
# null pointer is what kernels do to the data of empty tensors, and C2y defines it (N3322): no pointer-overflow check.
# The CPU's kernels are those of the level baseline alone, which every second commit compiles as those of v3. GCC
# expands many calls of memcpy after TSan has looked for what to watch: there they stay calls.
set -eu
asan=build-asan march=
if [ $(($(git rev-list --count HEAD) % 2)) -eq 1 ] && grep -qw avx2 /proc/cpuinfo; then
    asan=build-asan-v3 march=-march=x86-64-v3
fi
rm -f $asan/asan.*
[ -f $asan/build.ninja ] || meson setup $asan -Db_sanitize=address,undefined -Db_lundef=false \
    "-Dc_args=-fno-sanitize-recover=all -fno-sanitize=pointer-overflow -fno-var-tracking-assignments $march" \
    -Dcuda=disabled -Dhip=disabled -Disa_levels=baseline -Doptimization=1 -Ddebug=true >/dev/null
ninja -C $asan --quiet
export ASAN_OPTIONS="log_path=$PWD/$asan/asan:allow_user_segv_handler=1" UBSAN_OPTIONS=print_stacktrace=1
# Criterion lets a leak in a worker pass: the log files are the gate.
meson test -C $asan --no-rebuild --print-errorlogs --no-suite bench --no-suite slow --no-suite cdna -t 6
$asan/tools/trine check --seed 2 --budget "${DEV_SANITIZE_BUDGET:-60}" --quiet
if ls $asan/asan.* 2>/dev/null; then cat $asan/asan.*; exit 1; fi

[ -f build-tsan/build.ninja ] || meson setup build-tsan -Db_sanitize=thread -Db_lundef=false -Dcuda=disabled \
    -Dhip=disabled -Disa_levels=baseline -Dtests=auto -Doptimization=1 -Ddebug=true \
    "-Dc_args=-fno-builtin-memcpy -fno-builtin-memset" >/dev/null
ninja -C build-tsan --quiet tests/threads
TSAN_OPTIONS=halt_on_error=1 build-tsan/tests/threads
