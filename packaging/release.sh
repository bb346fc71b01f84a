#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a release is made of, of the committed tree, in build-release/; each part says what it found.
set -eu
out=build-release
rm -rf $out
mkdir $out
sh packaging/tarball.sh $out
tarball=$(echo $out/trine-*.tar.gz)
sh packaging/sbom.sh "$tarball" $out
python3 packaging/recipes.py "$tarball" "https://trine.invalid/releases/$(basename "$tarball")" $out/recipes
sh packaging/channels.sh "$tarball" $out/recipes $out/channels
sh packaging/offline.sh "$tarball" $out/offline
sh packaging/again.sh "$tarball" $out/again
sh packaging/wheels.sh "$tarball" $out/wheels
sh packaging/rpm.sh "$tarball" $out/recipes/rpm/trine.spec $out/rpm
sh packaging/beside.sh "$tarball" $out/beside
