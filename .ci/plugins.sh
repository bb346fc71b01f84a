#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the device modules alone, as a package of one backend does: no libtrine may come out of it.
# Usage: plugins.sh BUILD, whose device code serves here too, since nothing in its commands says where it was built.
set -eu
rm -rf build-plugins
# Of the same ops, for the same architectures.
options=$(python3 -c '
import json, sys
for option in json.load(open(sys.argv[1])):
    if option["name"] in ("archs_cuda", "archs_hip", "device_ops"):
        print("-D" + option["name"] + "=" + ",".join(option["value"]))
' "$1/meson-info/intro-buildoptions.json")
# shellcheck disable=SC2086
meson setup build-plugins -Dplugins_only=true --werror $options >/dev/null
cp -p "$1/.ninja_deps" build-plugins/
cuda=$1/backends/cuda
for code in "$cuda"/*.cubin "$cuda"/*.ptx "$cuda"/*.fatbin "$1"/backends/hip/*.hsaco; do
    [ ! -f "$code" ] || cp -p "$code" "build-plugins/${code#"$1"/}"
done
# Headers that are generated come first; device code then counts as younger, if they are the same.
# shellcheck disable=SC2046
ninja -C build-plugins --quiet $(ninja -C build-plugins -t targets all | sed -n 's/^\([^:]*\.h\): .*/\1/p')
for header in $(cd build-plugins && find . -name '*.h'); do
    cmp "$1/$header" "build-plugins/$header"
done
awk -v now="$(date +%s%N)" 'BEGIN { FS = OFS = "\t" } $4 ~ /^backends\// { $3 = now; print }' "$1/.ninja_log" \
    >>build-plugins/.ninja_log
before=$(date +%s)
ninja -C build-plugins --quiet
if find build-plugins/backends -name '*.seconds' -newermt "@$before" | grep .; then
    echo "device code was compiled again" >&2
    exit 1
fi
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
# A compiler that fails is named with what it said, and is an error where its module is asked for.
failing=build-plugins/failing
mkdir $failing
cat >$failing/clang-22 <<'END'
#!/bin/sh
[ "$1" != --version ] || exec echo clang version 22.1.0
echo 'clang: error: there is no linker' >&2
exit 1
END
chmod +x $failing/clang-22
# The CUDA module is disabled, since its trials take longer.
setup() { PATH=$PWD/$failing:$PATH meson setup "$@" -Dplugins_only=true -Dcuda=disabled; }
setup $failing/auto >$failing/log
grep -q 'WARNING: HIP: .* does not build gfx.*: clang: error: there is no linker' $failing/log
if setup $failing/enabled -Dhip=enabled >$failing/log; then
    echo "a failing clang is no error with -Dhip=enabled" >&2
    exit 1
fi
grep -q 'ERROR: .*HIP: .*: clang: error: there is no linker' $failing/log
echo "plugins: built alone"
