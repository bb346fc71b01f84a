#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each libFuzzer target for SECONDS (60), from the corpus in the tree, under ASan and UBSan. What is found lies in
# build-fuzz/found-<target>-*.
#   tests/fuzz/run.sh [SECONDS [TARGET ...]]
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
build=${FUZZ_BUILD:-build-fuzz}
# Adding 0 to a null pointer is what kernels do to the data of empty tensors, and C2y defines it (N3322): no
# pointer-overflow check. Meson 1.0 does not know the version of OpenMP that clang 19 has by default.
flags='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all -fno-sanitize=pointer-overflow'
flags="$flags -fopenmp-version=50 -Wno-unused-command-line-argument"
if [ ! -f "$build/build.ninja" ]; then
    CC=clang-19 meson setup "$build" -Dfuzz=true -Dcuda=disabled -Dhip=disabled -Dtests=disabled -Dexamples=disabled \
        -Dtools=disabled -Disa_levels=baseline -Db_sanitize=address,undefined \
        -Db_lundef=false -Doptimization=1 -Ddebug=true "-Dc_args=$flags" >"$build.log" 2>&1 ||
        { cat "$build.log"; exit 1; }
    rm -f "$build.log"
fi
ninja -C "$build" --quiet
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 OMP_NUM_THREADS=1
[ $# -gt 0 ] || set -- args tune command npy field checkpoint gguf hugging_face tokenizer
run() { # TARGET
    mkdir -p "$build/corpus-$1"
    case $1 in args | npy | field | checkpoint | gguf | hugging_face | tokenizer) mask=0 ;; *) mask=3 ;; esac
    options="-max_total_time=$seconds -timeout=20 -rss_limit_mb=4096 -close_fd_mask=$mask -print_final_stats=1"
    options="$options -artifact_prefix=$build/found-$1-"
    found=0
    # shellcheck disable=SC2086
    "$build/tests/fuzz/fuzz-$1" $options "$build/corpus-$1" "tests/fuzz/corpus/$1" >"$build/$1.log" 2>&1 || found=1
    echo "fuzz $1: $seconds s"
    if [ $found = 1 ]; then
        tail -40 "$build/$1.log"
        ls "$build"/found-"$1"-* 2>/dev/null || true
    fi
    grep -E 'stat::number_of_executed_units|cov:' "$build/$1.log" | tail -2
    return $found
}

# One target on each core.
status=0
running=
for target in "$@"; do
    run "$target" &
    running="$running $!"
    [ "$(echo "$running" | wc -w)" -ge "$(nproc)" ] || continue
    for process in $running; do wait "$process" || status=1; done
    running=
done
for process in $running; do wait "$process" || status=1; done
exit $status
