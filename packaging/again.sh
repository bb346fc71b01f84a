#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Are device modules the same bytes whoever builds them, where and when? Those of two ops, built of the tarball twice,
# in other folders, by another umask, in another time zone and language, and compiled anew.
# Usage: again.sh TARBALL DIRECTORY
set -eu
tarball=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
cd "$2"
made() { # FOLDER UMASK ZONE LOCALE
    mkdir -p "$1"
    (
        umask "$2"
        export TZ="$3" LC_ALL="$4" CCACHE_DISABLE=1
        tar -C "$1" -xzf "$tarball"
        cd "$1"/trine-*
        meson setup build -Dplugins_only=true -Ddevice_ops=scale,reduce_sum -Darchs_cuda=sm_90a -Darchs_hip=gfx942 >log
        ninja -C build --quiet >>log || { cat log; exit 1; }
    )
}
made here 022 UTC C
made "another place/further" 077 Pacific/Auckland C.UTF-8
count=0
for module in here/trine-*/build/backends/*/trine-*.so; do
    name=$(basename "$module")
    other=$(echo "another place"/further/trine-*/build/backends/*/"$name")
    cmp "$module" "$other" || { ! command -v diffoscope >/dev/null || diffoscope "$module" "$other"; exit 1; }
    echo "again: $name is the same, $(sha256sum <"$module" | cut -c 1-16)"
    count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "again: no module was built, there is neither nvcc nor clang" >&2; exit 1; }
