#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trine-cdna on a code object and on what is none. Usage: test-tool.sh TRINE-CDNA CLANG KERNELS
tool=$(readlink -f "$1") clang=$2 kernels=$3
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
cd "$directory" || exit 1
count=0 failed=0

# NAME PATTERN COMMAND...: what the command prints holds the pattern.
holds() {
    name=$1 pattern=$2
    shift 2
    count=$((count + 1))
    if "$@" 2>&1 | grep -q -- "$pattern"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        failed=1
        "$@" 2>&1 | head -n 5 | sed 's/^/# /'
    fi
}

"$clang" -x hip -nogpuinc -nogpulib --cuda-device-only --no-gpu-bundle-output --offload-arch=gfx942 -O3 \
    -mcode-object-version=5 "$kernels" -o k.hsaco
add="run k.hsaco vector_add --grid 4 --group 256"
# shellcheck disable=SC2086
{
    holds "list" "^matmul: .*LDS 20480, scratch 0" "$tool" list k.hsaco
    holds "a profile" "4000 stored" "$tool" $add --orders --profile random:1000 random:1000 out:sum.bin:4000 i32:1000
    holds "a buffer written" "4000 sum.bin" wc -c sum.bin
    holds "a trace" "(0,0,0)  1 .* v_add_f32" "$tool" $add --trace=1 random:1000 random:1000 out:sum.bin:4000 i32:1000
    holds "a listing" "^ *16 .*global_store_dword" \
        "$tool" $add --listing random:1000 random:1000 out:sum.bin:4000 i32:1000
    holds "a fault" "lane 40, pc .* in no allocation" "$tool" $add random:1000 random:1000 out:sum.bin:4000 i32:1001
    holds "a missing argument" "more arguments than were given" "$tool" $add random:1000
    holds "too many arguments" "more arguments than the kernel has" \
        "$tool" $add random:1000 random:1000 out:sum.bin:4000 i32:1000 i32:1
    holds "no such kernel" "no such kernel: nothing" "$tool" run k.hsaco nothing
    holds "no code object" "no AMD GPU code object" "$tool" list "$kernels"
    holds "usage" "trine-cdna run OBJECT" "$tool"
}
echo "1..$count"
exit $failed
