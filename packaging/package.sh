#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the release tarball from the committed tree, and Debian packages from the tarball, in build-package/.
set -eu
version=$(sed -n 's/.*TRINE_VERSION "\(.*\)"/\1/p' include/trine/version.h)
rm -rf build-package
mkdir build-package
sh packaging/tarball.sh build-package
# Made as others would, it is the same.
mkdir build-package/again
(umask 077 && TZ=Pacific/Auckland LC_ALL=C.UTF-8 sh packaging/tarball.sh build-package/again)
cmp "build-package/trine-$version.tar.gz" "build-package/again/trine-$version.tar.gz"
rm -r build-package/again
# What other channels take, filled in for it.
python3 packaging/recipes.py "build-package/trine-$version.tar.gz" \
    "https://trine.invalid/releases/trine-$version.tar.gz" build-package/recipes
mv "build-package/trine-$version.tar.gz" "build-package/trine_$version.orig.tar.gz"
tar -C build-package -xzf "build-package/trine_$version.orig.tar.gz"
cp -r packaging/debian "build-package/trine-$version/debian"
cd "build-package/trine-$version"
dpkg-buildpackage -us -uc
cd ..
ls -l ./*.deb ./*.orig.tar.gz
if command -v lintian >/dev/null; then lintian --fail-on error ./*.changes; fi
