#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the release, and one after it with another TRINE_ABI, in one tree, as a distribution has them while programs
# are rebuilt: each program finds its library, each library its modules, one process may have both, and a module of the
# other is refused. Usage: beside.sh TARBALL DIRECTORY
set -eu
rm -rf "$2"
mkdir -p "$2/old" "$2/new"
tar -C "$2/old" --strip-components 1 -xzf "$1"
tar -C "$2/new" --strip-components 1 -xzf "$1"
cd "$2"
version() { sed -n "s/.*define TRINE_$1 \"*\([0-9.]*\)\"*\$/\1/p" "$2/include/trine/version.h"; }
was=$(version VERSION old) abi=$(version ABI old)
next=$(version VERSION_MAJOR old).$(($(version VERSION_MINOR old) + 1)).0
sed -i "s/TRINE_VERSION \"$was\"/TRINE_VERSION \"$next\"/; s/TRINE_ABI $abi\$/TRINE_ABI $((abi + 1))/" \
    new/include/trine/version.h
sed -i "s/version: '$was'/version: '$next'/" new/meson.build
root=$PWD/root
cat >program.c <<'END'
#include <stdio.h>
#include <trine/trine.h>
int main(void) {
    trine_library *lib;
    if (trine_open(NULL, &lib) != TRINE_OK) return 1;
    for (int i = 0; i < trine_backend_count(lib); i++) {
        trine_backend_info_t info;
        if (trine_backend_info(lib, i, &info) != TRINE_OK) return 1;
        if (info.path != NULL) printf("%s %s\n", info.path, info.refused != NULL ? info.refused : "loaded");
    }
    trine_close(lib);
    return 0;
}
END
cat >both.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
    for (int i = 1; i < count; i++) {
        void *object = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL), *lib;
        int (*open)(const void *, void **) = object ? (int (*)(const void *, void **))dlsym(object, "trine_open") : 0;
        if (open == 0 || open(NULL, &lib) != 0) return fprintf(stderr, "%s: %s\n", names[i], dlerror()), 1;
    }
    return 0;
}
END
for one in old new; do
    (
        cd $one
        export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
        meson setup build --prefix /usr --libdir lib -Dtools=disabled -Dtests=disabled -Dexamples=disabled \
            -Dman=disabled -Dpeers=disabled -Dpython=disabled -Dcuda=disabled -Dhip=disabled -Disa_levels= \
            -Doptimization=1 --werror >log
        ninja -C build --quiet >>log || { cat log; exit 1; }
        DESTDIR="$root" meson install -C build --no-rebuild --quiet
    )
    number=$(version ABI $one)
    gcc -std=c11 -Wall -Werror -I"$root/usr/include" program.c -o $one-program -L"$root/usr/lib" -ltrine
    mkdir -p "$root/usr/lib/trine-$number"
    gcc -std=c11 -O2 -shared -fPIC -I"$root/usr/include" $one/examples/kernel/my_scale.c \
        -o "$root/usr/lib/trine-$number/trine-my_scale.so"
done
# Links of the first release went to the second's; its library did not.
gcc -Wall -Werror both.c -o both
export LD_LIBRARY_PATH="$root/usr/lib"
says() { # PROGRAM WORDS
    "./$1" | grep -qF "$2" || { echo "beside: $1 does not say \"$2\", but: $("./$1")" >&2; exit 1; }
}
says old-program "/trine-$abi/trine-my_scale.so loaded"
says new-program "/trine-$((abi + 1))/trine-my_scale.so loaded"
./both "libtrine.so.$abi" "libtrine.so.$((abi + 1))"
./both "libtrine.so.$((abi + 1))" "libtrine.so.$abi"
cp "$root/usr/lib/trine-$((abi + 1))/trine-my_scale.so" "$root/usr/lib/trine-$abi/trine-other.so"
says old-program "/trine-$abi/trine-other.so built for ABI $((abi + 1)), this library has ABI $abi"
echo "beside: $was and $next in one tree, each with its modules; that of the other is refused"
