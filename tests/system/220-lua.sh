#!/bin/sh
# Lua 5.4 from Debian's source package at -O0 and -O2, on a fleet and by `makespan local`.
#
# The package is fetched with lists of packages of this test's own, so that the system's stay as they
# are, and kept in $BUILD/cache. Skipped only where the registry does not answer.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"
# shellcheck source=tests/system/debian.sh
. "$SRCDIR/tests/system/debian.sh"
# shellcheck source=tests/system/real.sh
. "$SRCDIR/tests/system/real.sh"

cache=$BUILD/cache/lua5.4
if [ ! -s "$cache/.complete" ]; then
    if ! debian_open "$TMPDIR/debian" >fetch.out 2>&1; then
        skip "Lua's sources were not fetched, the registry does not answer: $(tail -n 1 fetch.out)"
    fi
    rm -rf "$cache"
    debian_source lua5.4 "$cache" >fetch.out 2>&1 || { cat fetch.out; die "Lua's source package cannot be fetched"; }
    echo fetched >"$cache/.complete"
fi

archive=$(ls "$cache"/lua5.4_*.orig.tar.*)
cat >setup <<'END'
cd lua-5.4*/ 2>/dev/null || true
test -f src/lua.c
pwd >"$OBJ/where"
END
echo 'make -s -C "$(cat "$OBJ/where")/src" clean' >reset
echo 'make -s -C "$(cat "$OBJ/where")/src" all $JFLAG MYCFLAGS="$OPT" SYSCFLAGS=-DLUA_USE_LINUX SYSLIBS="-Wl,-E -ldl"' >run
echo 'test -x "$(cat "$OBJ/where")/src/lua"' >check
real_build lua "{archive: $archive}"
finish
