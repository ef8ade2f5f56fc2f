#!/bin/sh
# Writes $BUILD/rules.mk and $BUILD/deps.mk, which the Makefile includes.
#
# Owns: which folder becomes which library, what each program and test may link with (the floors
# once more, checked by the linker), the compiler's flags, the probe for packages. It is run from
# the tree's root each time make reads the Makefile, with BUILD CC CFLAGS LDFLAGS WERROR SAN V
# ARCHFLAGS SYSROOT in its environment. It does not compile and installs nothing.
#
# Files are written only when their content changes, so that time stamps mean something:
#   flags          every flag; all objects depend on it
#   NAME.list      the members of a library; a source that is gone leaves its library too
#   tests.list     "kind path" of every test, for tests/harness/run-tests
set -eu
LC_ALL=C
export LC_ALL
: "${BUILD:=build}" "${CC:=cc}" "${CFLAGS=-O2 -g}" "${LDFLAGS=}" "${WERROR=}" "${SAN=}" "${V=}"
: "${ARCHFLAGS=}" "${SYSROOT=}" "${PKG_CONFIG:=pkg-config}"

die()
{
    echo "rules.sh: $*" >&2
    exit 1
}

# put FILE [MADE]: standard input becomes FILE, at once, and only when it differs; then what was
# made by it goes. (bmake compares times by the second: a newer FILE alone may not be seen as such.)
put()
{
    cat >"$tmp/put"
    cmp -s "$tmp/put" "$1" && return
    [ $# -eq 1 ] || rm -rf "$2"
    mv -f "$tmp/put" "$1"
}

case $BUILD in
*[!A-Za-z0-9_./+,=@-]*) die "BUILD=$BUILD: a path without spaces or special characters is needed" ;;
esac
mkdir -p "$BUILD/gen" || die "BUILD=$BUILD cannot be made"
[ -f "$BUILD/.makespan-build" ] || : >"$BUILD/.makespan-build"
tmp=$(mktemp -d "$BUILD/.rules.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

os=$(uname -s | tr 'A-Z' 'a-z')
case $os in
linux) features=-D_GNU_SOURCE ;;
netbsd) features=-D_NETBSD_SOURCE ;;
*) features= ;;
esac

# Packages. A missing one is named when something that needs it is built, not before.
if [ -n "$SYSROOT" ]; then
    PKG_CONFIG_SYSROOT_DIR=$SYSROOT
    PKG_CONFIG_LIBDIR=
    for d in "$SYSROOT"/usr/lib/*/pkgconfig "$SYSROOT"/usr/lib/pkgconfig "$SYSROOT"/usr/share/pkgconfig; do
        [ -d "$d" ] && PKG_CONFIG_LIBDIR=$PKG_CONFIG_LIBDIR${PKG_CONFIG_LIBDIR:+:}$d
    done
    : "${PKG_CONFIG_LIBDIR:=/nonexistent}"
    export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
    ARCHFLAGS="$ARCHFLAGS --sysroot=$SYSROOT"
fi

# link pkg-config-name...: prints the link flags. The combined libevent that libevent_openssl names
# would stand beside libevent_core.
link()
{
    $PKG_CONFIG --libs "$@" | tr ' ' '\n' | grep -vx -e -levent | tr '\n' ' '
}

# lib pkg-config-name Debian-package kind: prints the link flags, or notes that it is missing.
lib()
{
    if $PKG_CONFIG --exists "$1" 2>/dev/null; then
        $PKG_CONFIG --cflags "$1" | tr ' ' '\n' >>"$tmp/cflags"
        link "$1"
    else
        echo "$2" >>"$tmp/need-$3"
    fi
}

# words FILE: its lines, each once, as one line.
words()
{
    sort -u "$1" | tr '\n' ' ' | sed 's/^ *//; s/ *$//'
}

: >"$tmp/cflags"
: >"$tmp/need-build"
: >"$tmp/need-test"
command -v "${CC%% *}" >/dev/null 2>&1 || echo "${CC%% *}" >>"$tmp/need-build"
base=-lm static=-lm l_sqlite= l_criterion= l_web=
if command -v "$PKG_CONFIG" >/dev/null 2>&1; then
    l_event=$(lib libevent_core libevent-dev build)
    l_evssl=$(lib libevent_openssl libevent-dev build)
    l_tls="$(lib libssl libssl-dev build) $(lib libcrypto libssl-dev build)"
    l_msgpack=$(lib msgpack libmsgpack-dev build)
    l_text="$(lib yaml-0.1 libyaml-dev build) $(lib jansson libjansson-dev build)"
    base="$l_evssl $l_event $l_tls $l_msgpack $l_text -lm"
    l_sqlite=$(lib sqlite3 libsqlite3-dev build)
    l_criterion=$(lib criterion libcriterion-dev test)
    if [ -d coordinator/web ]; then
        l_web="$(lib libevent_extra libevent-dev build) $(lib zlib zlib1g-dev build)"
    fi
    if [ ! -s "$tmp/need-build" ]; then
        static="$(link --static libevent_openssl libevent_core libssl libcrypto msgpack yaml-0.1 jansson) -lm"
    fi
else
    echo pkg-config >>"$tmp/need-build"
fi
need_build=$(words "$tmp/need-build")
need_test=$(words "$tmp/need-test")
pkg_cflags=$(words "$tmp/cflags")

warn="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
sanflags=
[ -z "$SAN" ] || sanflags="-fsanitize=$SAN -fno-sanitize-recover=all -fno-omit-frame-pointer"
case $SAN-$($CC --version 2>/dev/null) in
# As a shared library beside AddressSanitizer, gcc's does not write its reports where it is told to.
*undefined*Free\ Software*) sanflags="$sanflags -static-libubsan" ;;
esac
compile="$CC -std=c17 $features -D_FILE_OFFSET_BITS=64 $ARCHFLAGS $CFLAGS $warn $WERROR $sanflags"
compile="$compile -I. -I$BUILD/gen $pkg_cflags"
link="$CC $ARCHFLAGS $CFLAGS $sanflags $LDFLAGS -Wl,--as-needed"
if [ -n "$SYSROOT" ] && loader=$(ls "$SYSROOT"/lib/ld-linux*.so.* 2>/dev/null); then
    # What is linked dynamically against a sysroot runs with its libraries.
    root=$(cd "$SYSROOT" && pwd) loader=$(echo "$loader" | head -n 1)
    link="$link -Wl,--dynamic-linker=$root/lib/${loader##*/} -Wl,--disable-new-dtags"
    for d in "$root"/lib/*-linux-gnu* "$root"/usr/lib/*-linux-gnu*; do
        link="$link -Wl,-rpath,$d"
    done
fi
quiet=@
[ -z "$V" ] || quiet=

{
    echo "$compile"
    echo "$link"
    echo "$l_sqlite $l_web $base $l_criterion"
    $CC --version 2>/dev/null | head -n 1 || :
} | put "$BUILD/flags" "$BUILD/obj"

# What a program says of itself. SOURCE_DATE_EPOCH makes a build repeatable.
version=$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md 2>/dev/null | head -n 1)
commit= when=
if [ -e .git ]; then
    commit=$(git rev-parse --short=12 HEAD 2>/dev/null || :)
    when=$(git log -1 --format=%ct 2>/dev/null || :)
fi
when=${SOURCE_DATE_EPOCH:-${when:-$(date -r CHANGELOG.md +%s)}}
{
    echo "/* Made by deploy/rules.sh. */"
    echo "#ifndef MAKESPAN_BUILD_H"
    echo "#define MAKESPAN_BUILD_H"
    echo "#define MAKESPAN_VERSION \"${version:-0.1.0}${commit:++$commit}\""
    echo "#define MAKESPAN_BUILD_DATE INT64_C($when) /* seconds since 1970, UTC */"
    echo "#endif"
} | put "$BUILD/gen/makespan_build.h"

dirs=
for d in common proto worker coordinator tests; do
    [ ! -d "$d" ] || dirs="$dirs $d"
done
# shellcheck disable=SC2086 # a list of plain names
{ [ -z "$dirs" ] || find $dirs -name '*.c' -type f; } | sort >"$tmp/sources"

# One file of common/compat answers for this system.
compat=generic
[ ! -f "common/compat/$os.c" ] || compat=$os

awk -v os="$os" -v compat="$compat" -v need_build="$need_build" -v need_test="$need_test" -v tmp="$tmp" '
function base(p) { sub(/.*\//, "", p); return p }
function dir(p) { return sub(/\/[^\/]*$/, "", p) ? p : "." }
function obj(p) { sub(/\.c$/, ".o", p); return "$(BUILD)/obj/" p }
function stem(p) { sub(/\.c$/, "", p); return p }

# A file of another system, os_freebsd.c or x_netbsd.c, is not compiled here.
function foreign(b,  i) {
    for (i = 1; i <= nsys; i++)
        if (systems[i] != os && b ~ ("_" systems[i] "(_[a-z0-9_]*)?\\.c$")) return 1
    return 0
}

# A file for systems without one of their own, os_generic.c, when this system has os_linux.c.
function answered(p,  own, line) {
    own = p
    if (!sub(/_generic\.c$/, "_" os ".c", own) || (getline line < own) < 0) return 0
    close(own)
    return 1
}

# The library a source belongs to, "" when it is none of a library.
function library(p,  d, b, n, part) {
    d = dir(p); b = base(p)
    if (d == "common" || d == "common/compat") return "common"
    if (d == "proto") return "proto"
    if (d == "worker/os") return "worker_os"
    if (b == "main.c" && (d == "worker" || d == "coordinator" || d == "coordinator/ctl")) return ""
    if (d == "worker" || d == "worker/run" || d == "worker/probe") return "worker"
    if (d == "coordinator/ctl") return "ctl"
    if (d == "coordinator") return b ~ /^model/ ? "coord_model" : "coord"
    n = split(d, part, "/")
    if (n == 2 && part[1] == "coordinator") return "coord_" part[2]
    if (d ~ /^tests\/harness/ || d ~ /^tests\/unit/ && b !~ /_test\.c$/) return "test_harness"
    if (d == "tests/fuzz" && b != "main.c" && b !~ /^fuzz_/) return "test_harness"
    return ""
}

# The archives of a list of names that exist, in this order.
function archives(names,  i, n, a, s) {
    n = split(names, a, " ")
    for (i = 1; i <= n; i++) if (a[i] in members) s = s " $(BUILD)/lib" a[i] ".a"
    return s
}

function program(target, objs, names, libs,  a) {
    a = archives(names)
    printf "%s:%s%s $(BUILD)/flags\n", target, objs, a
    printf "\t@echo \"  LD    %s\"\n", target
    printf "\t$(Q)$(LINK) -o %s%s%s %s\n\n", target, objs, a, libs
    if (!(dir(target) in made)) { made[dir(target)] = 1; print dir(target) >dirfile }
}

BEGIN {
    nsys = split("linux freebsd dragonfly netbsd openbsd darwin", systems, " ")
    dirfile = tmp "/dirs"; libfile = tmp "/libs"; listfile = tmp "/tests"; lostfile = tmp "/lost"
    printf "" >dirfile; printf "" >libfile; printf "" >listfile; printf "" >lostfile

    # Floors, from the top down, as the linker reads them.
    proto = "proto common"
    ctl = "ctl coord_exchange coord_verdict coord_stats coord_model " proto
    coord = "coord coord_web coord_net coord_plan coord_result coord_blob coord_news coord_ca " \
        "coord_exchange coord_store coord_verdict coord_stats coord_model " proto
    worker = "worker worker_os " proto
    every = "ctl worker worker_os " coord
}
{
    p = $0
    if (foreign(base(p)) || answered(p) || dir(p) == "common/compat" && base(p) != compat ".c") next
    source[++ns] = p
    l = library(p)
    if (l != "") {
        if (!(l in members)) lib[++nl] = l
        members[l] = members[l] " " obj(p)
    } else if (p == "worker/main.c" || p == "coordinator/main.c" || p == "coordinator/ctl/main.c") {
        main[p] = 1
    } else if (p ~ /^tests\/unit\/.*_test\.c$/) {
        unit[++nu] = p
    } else if (p ~ /^tests\/sim\/[^\/]*_test\.c$/) {
        sim[++nsim] = p
    } else if (p ~ /^tests\/sim\//) {
        fakes = fakes " " obj(p)
    } else if (p ~ /^tests\/fuzz\/fuzz_[^\/]*\.c$/) {
        fuzz[++nf] = p
    } else if (p ~ /^tests\/(system|bench)\/[^\/]*\.c$/) {
        tool[++nt] = p
    } else if (p != "tests/fuzz/main.c") {
        print p >lostfile
        ns--
    }
}
END {
    for (i = 1; i <= ns; i++) {
        p = source[i]; o = obj(p); d = dir(o)
        if (!(d in made)) { made[d] = 1; print d >dirfile }
        need = need_build != "" ? " need-build" : p ~ /^tests\// && need_test != "" ? " need-test" : ""
        printf "%s: %s $(BUILD)/flags%s\n", o, p, need
        printf "\t@echo \"  CC    %s\"\n", p
        m = o; sub(/^\$/, "$$", m); t = o; sub(/o$/, "d", t)
        printf "\t$(Q)$(COMPILE) -MMD -MP -MT \047%s\047 -MF %s -c -o %s %s\n\n", m, t, o, p
    }
    for (i = 1; i <= nl; i++) {
        l = lib[i]; a = "$(BUILD)/lib" l ".a"
        printf "%s:%s $(BUILD)/lib%s.list\n", a, members[l], l
        printf "\t@echo \"  AR    %s\"\n", a
        printf "\t$(Q)rm -f %s && $(AR) rcs %s%s\n\n", a, a, members[l]
        print l members[l] >libfile
    }

    b = "$(BUILD)/bin/"; progs = ""
    if ("coordinator/main.c" in main) {
        program(b "makespand", " " obj("coordinator/main.c"), coord, "$(LIBS_COORD)")
        progs = progs " " b "makespand"
    }
    if ("worker/main.c" in main) {
        program(b "makespan-worker", " " obj("worker/main.c"), worker, "$(LIBS)")
        progs = progs " " b "makespan-worker"
        program(b "makespan-worker-static", " " obj("worker/main.c"), worker, "-static $(LIBS_STATIC)")
    }
    if ("coordinator/ctl/main.c" in main) {
        program(b "makespan", " " obj("coordinator/ctl/main.c"), ctl, "$(LIBS)")
        progs = progs " " b "makespan"
    }

    units = ""
    for (i = 1; i <= nu; i++) {
        p = unit[i]; t = "$(BUILD)/" stem(p)
        if (p ~ /^tests\/unit\/common\//) { n = "common"; l = "$(LIBS)" }
        else if (p ~ /^tests\/unit\/proto\//) { n = proto; l = "$(LIBS)" }
        else if (p ~ /^tests\/unit\/worker\//) { n = worker; l = "$(LIBS)" }
        else if (p ~ /^tests\/unit\/coordinator\/ctl\//) { n = ctl; l = "$(LIBS)" }
        else if (p ~ /^tests\/unit\/coordinator\//) { n = coord; l = "$(LIBS_COORD)" }
        else { n = every; l = "$(LIBS_COORD)" }
        program(t, " " obj(p), "test_harness " n, l " $(LIBS_CRITERION)")
        units = units " " t
        print "unit", stem(p) >listfile
    }
    sims = ""
    for (i = 1; i <= nsim; i++) {
        # Objects first: what a fake defines is never looked for in an archive.
        p = sim[i]; t = "$(BUILD)/" stem(p)
        program(t, " " obj(p) fakes, "test_harness " every, "$(LIBS_COORD) $(LIBS_CRITERION)")
        sims = sims " " t
        print "sim", stem(p) >listfile
    }
    fuzzes = ""
    for (i = 1; i <= nf; i++) {
        p = fuzz[i]; t = "$(BUILD)/" stem(p)
        program(t, " " obj(p) " " obj("tests/fuzz/main.c"), "test_harness " every, "$(LIBS_COORD)")
        program("$(BUILD)/libfuzzer/" stem(base(p)), " " obj(p), "test_harness " every, \
            "-fsanitize=fuzzer $(LIBS_COORD)")
        fuzzes = fuzzes " " t
        print "fuzz", stem(p) >listfile
    }
    tools = ""
    for (i = 1; i <= nt; i++) {
        p = tool[i]; t = "$(BUILD)/" stem(p)
        program(t, " " obj(p), "test_harness " every, "$(LIBS_COORD)")
        tools = tools " " t
    }
    all = ""
    for (i = 1; i <= nl; i++) if (lib[i] != "test_harness") all = all " $(BUILD)/lib" lib[i] ".a"
    print "LIBRARIES =" all
    print "PROGRAMS =" progs
    print "UNIT_TESTS =" units
    print "SIM_TESTS =" sims
    print "FUZZ_TESTS =" fuzzes
    print "TEST_TOOLS =" tools "\n"
}' "$tmp/sources" >"$tmp/body"

sed "s|^\$(BUILD)|$BUILD|" "$tmp/dirs" | sort -u | xargs mkdir -p
while read -r l objects; do
    echo "$objects" | put "$BUILD/lib$l.list" "$BUILD/lib$l.a"
done <"$tmp/libs"
{
    cat "$tmp/tests"
    for f in tests/system/[0-9]*.sh; do [ ! -f "$f" ] || echo "system $f"; done
    for f in tests/lint/[a-z]*.sh; do [ ! -f "$f" ] || echo "lint $f"; done
} | put "$BUILD/tests.list"
put "$BUILD/lost.list" <"$tmp/lost"

# need NAME packages: a target that says what is missing, and fails.
need()
{
    echo "need-$1:"
    if [ -f /etc/debian_version ]; then
        echo "	@echo \"missing: $2 (sh deploy/deps --$1 installs Debian's packages)\" >&2; exit 1"
    else
        echo "	@echo \"missing, by Debian's name: $2\" >&2; exit 1"
    fi
    echo
}

{
    echo "# Made by deploy/rules.sh."
    echo "Q = $quiet"
    echo "AR = ${AR:-ar}"
    echo "COMPILE = $compile"
    echo "LINK = $link"
    echo "LIBS = $base"
    echo "LIBS_COORD = $l_sqlite $l_web $base"
    echo "LIBS_STATIC = $static"
    echo "LIBS_CRITERION = $l_criterion"
    echo
    cat "$tmp/body"
    need build "$need_build"
    need test "$need_test"
    for k in unit sim; do
        echo "\$(BUILD)/tests/$k/_test:"
        echo "	@echo 'usage: make $k T=NAME, for tests/$k/NAME_test.c' >&2; exit 1"
        echo
    done
    echo "\$(BUILD)/libfuzzer/fuzz_:"
    echo "	@echo 'usage: make fuzz T=NAME, for tests/fuzz/fuzz_NAME.c' >&2; exit 1"
} | put "$BUILD/rules.mk"

{
    echo "# Made by deploy/rules.sh from the compiler's dependency files."
    find "$BUILD/obj" -name '*.d' -type f -exec cat {} + 2>/dev/null || :
} | put "$BUILD/deps.mk"
