#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command, and writes the CPU time that it took to a file as `times` does: a line of the shell's own, then one of
# the command's, user and system.
# Usage: timed.sh FILE COMMAND...
file=$1
shift
"$@" || exit
times >"$file"
