#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of DIRECTORY in a chroot that holds nothing but Debian, runs their tests there, and
# purges them: nothing may be left. Usage: chroot.sh DIRECTORY
set -eu
packages=$1
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
root=
[ "$(id -u)" = 0 ] || root=sudo
chroot=$(mktemp -d)
trap '$root rm -rf "$chroot"' EXIT
if [ -f /etc/apt/sources.list.d/debian.sources ]; then
    sources=/etc/apt/sources.list.d/debian.sources
else
    sources=/etc/apt/sources.list
fi
$root mmdebstrap --quiet --variant=apt "$codename" "$chroot/debian" "$sources"
$root cp /etc/resolv.conf "$chroot/debian/etc/"
# What is mounted in there for a command is so for no other process.
mounted() { # COMMAND...
    # shellcheck disable=SC2016
    $root unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && exec "$@"' \
        "$chroot/debian" "$@"
}
inside() { # COMMAND...
    mounted env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TRINE_TUNE=/dev/null DEBIAN_FRONTEND=noninteractive \
        chroot "$chroot/debian" "$@"
}
apt() { # COMMAND PACKAGE...
    command=$1
    shift
    inside apt-get "$command" -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >/dev/null
}
inside apt-get update -qq
files() { inside find / -xdev '(' -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/cache -o \
    -path /var/log -o -path /var/lib/dpkg -o -path /var/lib/apt ')' -prune -o -print | sort; }
files >"$chroot/before"
$root mkdir "$chroot/debian/tmp/packages"
$root cp "$packages"/*.deb "$chroot/debian/tmp/packages/"
$root rm -f "$chroot/debian/tmp/packages"/*-dbgsym_*.deb
inside sh -c 'echo /tmp/packages/*.deb' >"$chroot/names"
# shellcheck disable=SC2046
apt install $(cat "$chroot/names")
inside trine info | sed '/^environment/,$d'
inside trine check --op matmul,softmax,attention --budget 20 --quiet
# Without a module the command says which package brings it.
for module in hip cuda; do
    inside sh -c "! dpkg-query -W libtrine0-$module >/dev/null 2>&1" && continue
    apt purge libtrine0-$module
    inside trine info | grep "^  $module  *not installed: the package libtrine0-$module"
done
apt purge '?name(trine)'
apt autoremove --purge
files >"$chroot/after"
diff "$chroot/before" "$chroot/after"
inside dpkg --audit
echo "chroot: installed, used and purged; nothing is left"
for source in trine trine-cuda; do
    set -- "$packages/${source}"_*.dsc
    [ -f "$1" ] || continue
    status=0
    mounted autopkgtest --quiet --no-built-binaries "$packages"/*.deb "$1" -- chroot "$chroot/debian" || status=$?
    # 2: of its tests some were skipped, which need a device. 8: and what was not is superficial.
    case $source:$status in
    *:0 | *:2 | trine-cuda:8) ;;
    *) echo "chroot: autopkgtest of $source ended with $status" >&2; exit 1 ;;
    esac
done
