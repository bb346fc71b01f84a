#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Are the choices of kernels that the CUDA module ships of the specification, and of the names of kernels, as they are?
# The library asks only whether a line's device is there and its kernel takes the call. Speaks TAP.
# And are none left out, since they are of other code (backends/cuda/driver/tuned.py)?
# Usage: tuned.sh TRINE STUB MODULES TUNED BUILT
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset TRINE_ISA TRINE_KERNEL TRINE_DEVICE TRINE_BACKENDS TRINE_VERBOSE
TRINE_TUNE="$work/tune" TRINE_PATH="$3" LD_PRELOAD="$2" "$1" tune --device cuda:0 --op matmul --dims "m=16 n=16 k=16" \
    >"$work/out" 2>&1 || sed 's/^/# /' "$work/out"
now=$(tail -n 1 "$work/tune" | cut -f 1,2,5)
shipped=$(grep -v '^#' "$4" | cut -f 1,2,5 | sort -u)
echo 1..2
if [ -n "$now" ] && [ "$now" = "$shipped" ]; then
    echo "ok 1 - choices of kernels are of the kernels as they are"
else
    echo "not ok 1 - choices of kernels are of the kernels as they are"
    echo "# now \"$now\", in $4 \"$shipped\": make it anew, as tuned_cases.txt says"
fi
if [ "$(grep -vc '^#' "$4")" = "$(grep -vc '^#' "$5")" ]; then
    echo "ok 2 - and of the code as it is"
else
    echo "not ok 2 - and of the code as it is"
    echo "# the build leaves choices out: tune anew, or see that times are as they were and run ninja tuned-code"
fi
