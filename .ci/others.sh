#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles CUDA device code for an architecture that the build is not for, to see that it does compile: a sixth of the
# ops, and for each architecture, in their turn by the number of commits. Usage: others.sh BUILD
set -eu
build=$1
others=$(ninja -C "$build" -t targets all | sed -n 's/^cuda-\(.*\): phony$/\1/p' | while read -r arch; do
    grep -q "file=[^ ]*\.$arch\." "$build/build.ninja" || echo "$arch"
done)
[ -n "$others" ] || { echo "others: there is no nvcc, or the build is for all architectures"; exit 0; }
# shellcheck disable=SC2086
set -- $others
turn=$(git rev-list --count HEAD)
sixth=$((turn / $# % 6))
shift $((turn % $#))
arch=$1
files=$(ninja -C "$build" -t targets all | sed -n "s/^\(backends\/cuda\/[^:]*\.$arch\.[a-z]*\): .*/\1/p" | sort |
    awk -v sixth="$sixth" 'NR % 6 == sixth')
[ -n "$files" ] || { echo "others: there is no code for $arch" >&2; exit 1; }
echo "others: $arch, $(echo "$files" | wc -l) files"
# shellcheck disable=SC2086
ninja -C "$build" --quiet $files
