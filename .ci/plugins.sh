#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the device modules alone, as a package of one backend does: no libtrine may come out of it.
set -eu
rm -rf build-plugins
# shellcheck disable=SC2086
meson setup build-plugins -Dplugins_only=true ${DEV_OPTIONS:-} >/dev/null
ninja -C build-plugins --quiet
for source in backends/*/backend.c; do
    backend=$(basename "$(dirname "$source")")
    case $backend in cpu) continue ;; esac
    [ -f "build-plugins/backends/$backend/trine-$backend.so" ] || echo "plugins: $backend cannot be built here"
done
if find build-plugins -name 'libtrine.so*' | grep .; then
    echo "a plugin-only build made libtrine" >&2
    exit 1
fi
echo "plugins: built alone"
