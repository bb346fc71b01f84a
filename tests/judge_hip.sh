#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trine judge on an emulated device: a kernel in device code, and a wrong one. Speaks TAP.
# Usage: judge_hip.sh TRINE DRIVER SOURCE CLANG CHIP
trine=$(realpath "$1")
driver=$(realpath "$2")
source=$(realpath "$3")
clang=$4
export CDNA_CHIP="$5" OMP_WAIT_POLICY=passive LC_ALL=C TRINE_TUNE=
TRINE_PATH=$(dirname "$(dirname "$trine")")/backends/hip
export TRINE_PATH
unset TRINE_ISA TRINE_KERNEL TRINE_DEVICE TRINE_BACKENDS TRINE_VERBOSE
count=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# expect NAME STATUS PATTERN [OPTION...]: of the judge on the kernel.
expect() {
    name=$1 status=$2 pattern=$3
    shift 3
    count=$((count + 1))
    LD_PRELOAD="$driver" "$trine" judge "$source" --op scale --device hip:0 --types X=f32,T=f32 --quiet --budget 4 \
        --entry my_scale --compiler "$clang" "$@" >out 2>&1 </dev/null
    got=$?
    if [ $got -eq "$status" ] && grep -q -e "$pattern" out; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        echo "# exit status $got, not $status, or no line matches \"$pattern\": $*"
        sed 's/^/# /' out
    fi
}

flags="-nogpuinc -nogpulib"
grid="blocks=(p*q*r*n+255)/256 threads=256"
expect "a kernel" 0 "^correct: " --grid "$grid" --flags "$flags" --dims "X=f32 T=f32 r=4 n=100"
expect "a wrong one" 1 "^refused: y.*but the reference is" --grid "$grid" --flags "$flags -DWRONG"
expect "too small a grid" 1 "^refused: y.*but the reference is" --grid "blocks=1 threads=256" --flags "$flags"
expect "no grid" 1 "does not load: the grid \"blocks=s\" is not" --grid "blocks=s" --flags "$flags"
expect "too many numbers" 1 "does not load: the grid" --grid "blocks=1,1,1,1" --flags "$flags"
echo "1..$count"
