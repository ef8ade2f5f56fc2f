#!/bin/sh
# A real build, a part of this tree's library common/ at -O0 and -O2, on a fleet and by `makespan local`.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"
# shellcheck source=tests/system/real.sh
. "$SRCDIR/tests/system/real.sh"

mkdir src && cp -R "$SRCDIR/common" src/ || die "no sources"
cat >setup <<'END'
mkdir out
printf '#define MAKESPAN_VERSION "0"\n#define MAKESPAN_BUILD_DATE INT64_C(0)\n' >makespan_build.h
objects=
for f in common/buf.c common/diag.c common/num.c common/str.c; do
    o=out/$(basename "$f" .c).o
    objects="$objects $o"
    printf '%s: %s\n\tcc -std=c17 -D_GNU_SOURCE -I. $(OPT) -c -o $@ %s\n' "$o" "$f" "$f"
done >rules.mk
printf 'out/part.a:%s\n\tar rc $@%s\n' "$objects" "$objects" >>rules.mk
END
echo 'rm -f out/*' >reset
echo 'make -s -f rules.mk $JFLAG OPT="$OPT" out/part.a' >run
echo 'test -s out/part.a' >check
real_build part "{dir: $TMPDIR/src}"
finish
