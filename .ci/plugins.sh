#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the device modules alone, as a package of one backend does: no libtrine may come out of it. One architecture of each vendor suffices for that, and PTX
# is the quickest of NVIDIA's.
set -eu
rm -rf build-plugins
# shellcheck disable=SC2086
meson setup build-plugins -Dplugins_only=true ${DEV_OPTIONS:-} -Darchs_hip=gfx942 -Darchs_cuda=compute_90 >/dev/null
ninja -C build-plugins --quiet
if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null && [ ! -f build-plugins/backends/cuda/trine-cuda.so ]; then
    echo "there is nvcc, but no CUDA module was built" >&2
    exit 1
fi
if command -v clang-22 >/dev/null && [ ! -f build-plugins/backends/hip/trine-hip.so ]; then
    echo "there is clang-22, but no HIP module was built" >&2
    exit 1
fi
if find build-plugins -name 'libtrine.so*' | grep .; then
    echo "a plugin-only build made libtrine" >&2
    exit 1
fi
echo "plugins: built alone"
