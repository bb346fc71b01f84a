#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test in a process whose numbers have a comma before the fraction.
# Usage: run.sh DIRECTORY PRELOAD PROGRAM [ARGUMENTS]
# The locale is compiled into DIRECTORY where it is not yet; that takes Debian's package "locales".
directory=$1 preload=$(realpath "$2")
shift 2
name=de_DE.UTF-8
if [ ! -d "$directory/$name" ]; then
    mkdir -p "$directory"
    new=$(mktemp -d "$directory/new.XXXXXX") || exit 1
    # localedef warns of what German lacks, and says so by its status: what counts is whether the locale works.
    localedef -i de_DE -f UTF-8 "$new/$name" >/dev/null 2>&1
    mv -T "$new/$name" "$directory/$name" 2>/dev/null # another test may have been first
    rm -rf "$new"
fi
export LOCPATH="$directory" LC_ALL="$name" LANGUAGE=C TEST_LC_ALL="$name"
if [ "$(locale decimal_point 2>/dev/null)" != , ]; then
    echo "1..0 # SKIP there is no locale $name, and it cannot be made: install the package locales"
    exit 0
fi
LD_PRELOAD="$preload${LD_PRELOAD:+:$LD_PRELOAD}" exec "$@"
