#!/bin/sh
# Lua 5.4 from Debian's source package at -O0 and -O2, on a fleet and by `makespan local`.
#
# The package is fetched with lists of packages of this test's own, so that the system's stay as they
# are, and kept in $BUILD/cache. Skipped only where the registry does not answer.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"
# shellcheck source=tests/system/real.sh
. "$SRCDIR/tests/system/real.sh"

cache=$BUILD/cache/lua5.4
# fetch: 0, 1 the package cannot be had, 2 the registry does not answer.
fetch()
{
    [ ! -s "$cache/.complete" ] || return 0
    command -v apt-get >/dev/null 2>&1 || { echo "there is no apt-get"; return 2; }
    apt=$TMPDIR/apt
    mkdir -p "$apt/lists/partial" "$apt/parts" "$apt/src" || return 1
    chmod 755 "$TMPDIR"
    # The mirrors that the system has, as sources of source packages.
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n 's/^deb\(-src\)* /deb-src /p' | sort -u >"$apt/parts/own.list"
    sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/*.sources >"$apt/parts/own.sources" 2>/dev/null
    set -- -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=1 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 \
        -o APT::Update::Error-Mode=any
    timeout 120 apt-get "$@" update >"$apt/log" 2>&1 || { tail -n 3 "$apt/log"; return 2; }
    (cd "$apt/src" && apt-get "$@" source --download-only lua5.4) >"$apt/log" 2>&1 || { tail -n 20 "$apt/log"; return 1; }
    rm -rf "$cache"
    mkdir -p "$cache"
    cp "$apt"/src/lua5.4_*.orig.tar.* "$cache/" && echo fetched >"$cache/.complete"
}
fetch >fetch.out 2>&1
case $? in
0) ;;
2) skip "Lua's sources were not fetched, the registry does not answer: $(tail -n 1 fetch.out)" ;;
*)
    cat fetch.out
    die "Lua's source package cannot be fetched"
    ;;
esac

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
