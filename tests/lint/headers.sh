#!/bin/sh
# Each header compiles alone, and twice in one file.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    compile=$(head -n 1 "$BUILD/flags") || return 1
    wrong=0
    for header in $(sources common proto worker coordinator tests | grep '\.h$'); do
        # A header of a system that is not this one may need that system.
        case $header in
        *_freebsd.h | *_dragonfly.h | *_netbsd.h | *_openbsd.h) continue ;;
        esac
        # shellcheck disable=SC2086 # the compiler and its flags
        if ! said=$(printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
            $compile -Werror -fsyntax-only -x c - 2>&1); then
            echo "$header:1: does not compile alone"
            echo "$said"
            wrong=1
        fi
    done
    return "$wrong"
}

plants()
{
    printf '#ifndef A_H\n#define A_H\n#include <stddef.h>\nsize_t a(void);\n#endif\n' | plant common/a.h
    passes
    printf '#ifndef B_H\n#define B_H\nsize_t b(void);\n#endif\n' | plant common/b.h
    finds '^common/b.h:1: '
    rm common/b.h
    printf 'struct c { int x; };\n' | plant common/c.h
    finds '^common/c.h:1: '
}

need_build
lint_main
