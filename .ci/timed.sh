#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command that makes device code, and writes the CPU time that it took to a file as `times` does: a line of the
# shell's own, then one of the command's, user and system. Code whose products the assembler says it has serialized is
# an error: it computes the same, at two thirds of the speed.
# Usage: timed.sh FILE COMMAND...
file=$1
shift
"$@" >"$file" 2>&1
status=$?
cat "$file" >&2
if [ $status -eq 0 ] && grep -q 'wgmma.* are serialized' "$file"; then
    status=1
fi
rm -f "$file"
[ $status -eq 0 ] || exit $status
times >"$file"
