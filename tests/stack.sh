#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every op runs in the stack that trine.h says is enough. Speaks TAP. Usage: stack.sh TRINE
ulimit -s 128 || { echo "1..0 # SKIP the stack cannot be limited"; exit 0; }
said=$(env -i PATH="$PATH" TRINE_TUNE=/dev/null "$1" check --device cpu --isa all --budget 8 --quiet 2>&1) ||
    printf "not "
echo "ok 1 - every op in 128 KiB"
echo "$said" | sed 's/^/# /'
echo "1..1"
