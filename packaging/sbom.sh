#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes trine-VERSION.spdx.json of the release tarball, twice, which must be the same; first `reuse lint` of what is in
# it. The programs are PyPI's, in a virtual environment that stays in the user's cache. Usage: sbom.sh TARBALL DIRECTORY
set -eu
tools="reuse==6.2.0 spdx-tools==0.8.5"
environment=${XDG_CACHE_HOME:-$HOME/.cache}/trine/sbom-$(echo "$tools" | cksum | cut -d' ' -f1)
if [ ! -f "$environment/whole" ]; then
    rm -rf "$environment"
    # shellcheck disable=SC2086
    if ! /usr/bin/python3 -m venv "$environment" || ! "$environment/bin/pip" install -q $tools; then
        echo "sbom: not made, since PyPI cannot be reached"
        exit 0
    fi
    touch "$environment/whole"
fi
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$2"
tar -C "$tree" -xzf "$1"
name=$(basename "$1" .tar.gz)
export PATH="$environment/bin:$PATH"
reuse --root "$tree/$name" lint --quiet
echo "sbom: reuse lint is clean"
python3 packaging/sbom.py "$1" "$tree/$name" "$2/$name.spdx.json"
(umask 077 && TZ=Pacific/Auckland python3 packaging/sbom.py "$1" "$tree/$name" "$tree/$name.spdx.json" >/dev/null)
cmp "$2/$name.spdx.json" "$tree/$name.spdx.json"
# Another's reading of what was written.
pyspdxtools --infile "$2/$name.spdx.json" >"$tree/log" 2>&1 || { cat "$tree/log"; exit 1; }
