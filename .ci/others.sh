#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the CUDA device code for an architecture that the build is not for, to see that it does compile: for each in
# its turn, by the number of commits. Usage: others.sh BUILD
set -eu
build=$1
others=$(ninja -C "$build" -t targets all | sed -n 's/^cuda-\(.*\): phony$/\1/p' | while read -r arch; do
    grep -q "file=[^ ]*\.$arch\." "$build/build.ninja" || echo "$arch"
done)
[ -n "$others" ] || { echo "others: there is no nvcc, or the build is for all architectures"; exit 0; }
# shellcheck disable=SC2086
set -- $others
shift $(($(git rev-list --count HEAD) % $#))
echo "others: $1"
ninja -C "$build" --quiet "cuda-$1"
