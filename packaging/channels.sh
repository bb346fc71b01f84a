#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The recipes that recipes.py filled in, by more of the channels' own programs, as far as PyPI and Debian have them:
# Meson builds a program over the wrap, from the tarball; EasyBuild finds each dependency among its own recipes; and
# rattler-build renders conda's with and without CUDA. Spack, vcpkg, Guix and nixpkgs are on neither. The virtual
# environment stays in the user's cache. Usage: channels.sh TARBALL RECIPES DIRECTORY
set -eu
tarball=$(realpath "$1") recipes=$(realpath "$2") linking=$PWD/examples/linking
version=$(basename "$tarball" .tar.gz)
rm -rf "$3"
mkdir -p "$3/wrap/subprojects/packagecache"
cd "$3"

tools="easybuild==5.4.1 py-rattler-build==0.73.0"
environment=${XDG_CACHE_HOME:-$HOME/.cache}/trine/channels-$(echo "$tools" | cksum | cut -d' ' -f1)
if [ ! -f "$environment/whole" ]; then
    rm -rf "$environment"
    # shellcheck disable=SC2086
    if /usr/bin/python3 -m venv "$environment" && "$environment/bin/pip" install -q $tools; then
        touch "$environment/whole"
    else
        echo "channels: neither EasyBuild's nor conda's, since PyPI cannot be reached"
    fi
fi
if [ -f "$environment/whole" ]; then
    "$environment/bin/python" - "$recipes/conda/recipe.yaml" <<'END'
import sys
import rattler_build

recipe = rattler_build.Stage0Recipe.from_file(sys.argv[1])
for cuda, expected in ("None", {"libtrine"}), ("13.0", {"libtrine", "libtrine-cuda"}):
    variants = rattler_build.VariantConfig.from_yaml(
        "c_compiler: [gcc]\nc_stdlib: [sysroot]\nc_stdlib_version: ['2.28']\ncuda_compiler: [cuda-nvcc]\n"
        f"cuda_compiler_version: ['{cuda}']\n")
    found = {variant.recipe.to_dict()["package"]["name"] for variant in recipe.render(variants)}
    assert found == expected, found
print(f"channels: conda/recipe.yaml: rendered by rattler-build {rattler_build.rattler_build_version()}, with CUDA and"
      " without")
END
    cp "$recipes/easybuild/trine.eb" "$version-GCC-14.3.0.eb"
    # A tool for environment modules must be there, though a dry run writes none.
    (
        set +eu
        # shellcheck disable=SC1091
        . /usr/share/modules/init/sh
        export PATH="$environment/bin:$PATH" EB_PYTHON="$environment/bin/python3" EASYBUILD_PREFIX="$PWD/easybuild" \
            EASYBUILD_MODULES_TOOL=EnvironmentModules EASYBUILD_MODULE_SYNTAX=Tcl \
            EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES=1
        eb --allow-modules-tool-mismatch --robot --dry-run --terse "$version-GCC-14.3.0.eb"
    ) >eb.log 2>&1 || { cat eb.log; exit 1; }
    grep -q "$version-GCC-14.3.0.eb" eb.log
    echo "channels: easybuild/trine.eb: EasyBuild has its $(grep -c '\.eb$' eb.log) recipes, those of it included"
fi

# The wrap's address does not exist: Meson takes the tarball where downloads are kept, if it is the one that is meant.
cp "$recipes/meson/trine.wrap" wrap/subprojects/
cp "$tarball" wrap/subprojects/packagecache/
cp "$linking/main.c" wrap/
cat >wrap/meson.build <<'END'
project('wrapped', 'c', default_options: ['c_std=gnu11'])
executable('wrapped', 'main.c', dependencies: dependency('trine', fallback: 'trine'))
END
export CCACHE_BASEDIR="$PWD/wrap"
options=
for name in tests tools examples man peers python cuda hip; do options="$options -Dtrine:$name=disabled"; done
# shellcheck disable=SC2086
meson setup wrap/build wrap --wrap-mode forcefallback $options -Dtrine:isa_levels= --werror >log 2>&1 ||
    { cat log; exit 1; }
ninja -C wrap/build --quiet wrapped >>log 2>&1 || { tail -n 30 log; exit 1; }
wrap/build/wrapped
echo "channels: meson/trine.wrap: built by Meson $(meson --version) as a subproject, and run"
