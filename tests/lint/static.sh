#!/bin/sh
# No mutable static data: all state hangs on objects that are passed, so that many coordinators and
# workers live in one process. Only main.c, common/loop.c and common/log.c may have some. Read from
# the objects: a symbol in a writable section (.data, .bss, thread-local or common) is a violation,
# constants that are only relocated at start (.data.rel.ro) are not.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

# The objects of all libraries.
objects()
{
    cat "$BUILD"/lib*.list 2>/dev/null | tr ' ' '\n' | sed -n "s|^\$(BUILD)|$BUILD|p" |
        grep -v '/obj/tests/' | sort
}

check()
{
    list=$(objects)
    for object in $list; do
        if [ ! -f "$object" ]; then
            echo "$object:1: not built"
            return 1
        fi
    done
    [ -n "$list" ] || return 0
    # shellcheck disable=SC2086 # a list of plain names
    nm -A -f sysv -l $list | awk -F '|' '
        # FILE:NAME |VALUE|CLASS|TYPE|SIZE|LINE|SECTION<tab>SOURCE:LINE
        NF >= 7 {
            name = $1; section = $7; at = ""
            if (split($7, part, "\t") > 1) { section = part[1]; at = part[2] }
            gsub(/[ \t]/, "", section); gsub(/[ \t]+$/, "", name)
            object = name; sub(/:[^:]*$/, "", object); sub(/.*:/, "", name)
            if ($4 ~ /SECTION|FILE/) next
            if (object ~ /\/(main|common\/loop|common\/log)\.o$/) next
            if (section ~ /^\.data\.rel\.ro/) next
            if (section !~ /^\.(data|bss|tdata|tbss)/ && section !~ /COM/) next
            if (at == "") { at = object; sub(/.*\/obj\//, "", at); sub(/o$/, "c", at); at = at ":1" }
            sub(".*/obj/", "", at)
            print at ": mutable static data: " name " (" section ")"
            bad = 1
        }
        END { exit bad }'
}

# violation TEXT-OF-C: found in an object made from it
violation()
{
    echo "$1" | plant common/bad.c
    $plain -c -g -o "$BUILD/obj/common/bad.o" common/bad.c || exit 1
    finds "common/bad.c:[0-9]*: mutable static data: $2"
}

plants()
{
    # The objects are this lint's own; the compiler is that of the build.
    real=$BUILD
    plain=$(sed -n 's/ -std=.*//p; 1q' "$real/flags")
    BUILD=$PWD/b
    mkdir -p "$BUILD/obj/common" common
    echo "\$(BUILD)/obj/common/bad.o \$(BUILD)/obj/common/log.o" >"$BUILD/libcommon.list"
    echo 'int log_level;' | plant common/log.c
    $plain -c -g -o "$BUILD/obj/common/log.o" common/log.c || exit 1
    echo 'static const char *const names[] = {"a"}; const char *f(int); const char *f(int i) { return names[i]; }' |
        plant common/bad.c
    $plain -c -g -o "$BUILD/obj/common/bad.o" common/bad.c || exit 1
    passes
    violation 'int counter;' counter
    violation 'int f(void); int f(void) { static int calls; return ++calls; }' calls
    violation 'static int level = 3; int *f(void); int *f(void) { return &level; }' level
    violation '_Thread_local int mine;' mine
    violation 'static const char *names[] = {"a"}; const char **f(void); const char **f(void) { return names; }' names
    BUILD=$real
}

need_build
if grep -q -e '-fsanitize' "$BUILD/flags"; then
    echo "needs a build without sanitizers"
    exit 77
fi
lint_main
