#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the device modules alone, as a package of one backend does: no libtrine may come out of it.
set -eu
rm -rf build-plugins
meson setup build-plugins -Dplugins_only=true >/dev/null
ninja -C build-plugins --quiet
if find build-plugins -name 'libtrine.so*' | grep .; then
    echo "a plugin-only build made libtrine" >&2
    exit 1
fi
echo "plugins: built alone"
