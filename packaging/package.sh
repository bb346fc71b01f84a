#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the release tarball from the committed tree, the recipes of other channels, and Debian packages from the
# tarball, in build-package/: twice, in different circumstances, which must give the same packages. Then they are
# installed in a chroot of nothing but Debian, tested there, and purged.
#
# Usage: package.sh [--quick]. With --quick without the tests of the build, for one CPU level, and device code for a few
# ops and one architecture: that proves the packaging, and what it makes is for nobody.
set -eu
version=$(sed -n 's/.*TRINE_VERSION "\(.*\)"/\1/p' include/trine/version.h)
case ${1:-} in
--quick)
    options="-Disa_levels=baseline -Doptimization=1 -Ddevice_ops=scale,add,reduce_sum"
    hip=-Darchs_hip=gfx942 cuda=-Darchs_cuda=sm_90a
    checks=nocheck
    ;;
'') options='' hip='' cuda='' checks='' ;;
*) echo "package: \"$1\" is not --quick" >&2; exit 2 ;;
esac
top=$PWD/build-package
rm -rf "$top"
mkdir "$top"
sh packaging/tarball.sh "$top"
# Made as others would, it is the same.
mkdir "$top/again"
(umask 077 && TZ=Pacific/Auckland LC_ALL=C.UTF-8 sh packaging/tarball.sh "$top/again")
cmp "$top/trine-$version.tar.gz" "$top/again/trine-$version.tar.gz"
rm -r "$top/again"
# What other channels take, filled in for it.
python3 packaging/recipes.py "$top/trine-$version.tar.gz" "https://trine.invalid/releases/trine-$version.tar.gz" \
    "$top/recipes"

# Builds in an environment as on a build machine: nothing of this one but what is named here.
debian() { # SOURCE DIRECTORY OPTIONS VARIABLE... : packages of packaging/DEBIAN, DEBIAN for the source SOURCE
    source=$1 in=$2 wanted=$3
    shift 3
    mkdir -p "$in"
    cp "$top/trine-$version.tar.gz" "$in/${source}_$version.orig.tar.gz"
    mkdir "$in/$source-$version"
    tar -C "$in/$source-$version" --strip-components=1 -xzf "$in/${source}_$version.orig.tar.gz"
    cp -r "packaging/debian${source#trine}" "$in/$source-$version/debian"
    # The compiler for CUDA is not a package here.
    unchecked=
    [ "$source" != trine-cuda ] || dpkg-query -W nvidia-cuda-toolkit >/dev/null 2>&1 || unchecked=-d
    (cd "$in/$source-$version" &&
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$in" TRINE_OPTIONS="$wanted" DEB_BUILD_OPTIONS="$checks" \
            "$@" dpkg-buildpackage -us -uc $unchecked) >"$in/$source.log" 2>&1 ||
        { tail -n 60 "$in/$source.log"; exit 1; }
}

# Twice: in another folder, by another umask, locale and time zone, and with a cache of compilations for one alone. What
# is compared is everything that the packages hold, since it is the packages.
again=$top/again/another/deeper/folder
twice() { # SOURCE OPTIONS
    debian "$1" "$top" "$2" LC_ALL=C ${CCACHE_DIR:+CCACHE_DIR="$CCACHE_DIR"}
    (umask 027 && debian "$1" "$again" "$2" CCACHE_DISABLE=1 TZ=Pacific/Auckland LC_ALL=C.UTF-8)
    for deb in "$top"/*.deb; do
        [ ! -f "$again/${deb##*/}" ] || cmp "$deb" "$again/${deb##*/}"
    done
    (cd "$again" && sha256sum ./*.deb) >"$top/$1.sha256"
    (cd "$top" && sha256sum --check "$1.sha256")
    rm -rf "$top/again"
}
twice trine "$options $hip"
sources=trine
if [ -x /usr/local/cuda/bin/nvcc ] || dpkg-query -W nvidia-cuda-toolkit >/dev/null 2>&1; then
    twice trine-cuda "$options $cuda"
    sources="$sources trine-cuda"
else
    echo "package: the source trine-cuda was not built: there is no nvcc"
fi
cd "$top"
ls -l ./*.deb ./*.tar.gz
for source in $sources; do
    lintian --pedantic --info --fail-on error,warning,info,pedantic "$source"_*.changes
done
cd ..
sh packaging/chroot.sh "$top"
