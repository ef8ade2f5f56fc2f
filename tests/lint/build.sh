#!/bin/sh
# The build and the runner themselves, on a small tree: what is rebuilt and what is not, who may
# link with whom, and that a test which fails, crashes, leaks or never ran is counted as failed.
# Prints "ok NAME" or "not ok NAME" for each claim, under GNU make and, where it is installed, bmake.
set -u
SRCDIR=${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
unset BUILD CC CFLAGS LDFLAGS WERROR SAN V MAKEFLAGS MAKELEVEL
failures=0

# claim NAME COMMAND...: the command must succeed.
claim()
{
    name=$1
    shift
    if "$@" >"$scratch/claim" 2>&1; then
        echo "ok $make: $name"
    else
        echo "not ok $make: $name"
        sed 's/^/    /' "$scratch/claim" "$scratch/log"
        failures=$((failures + 1))
    fi
}

# builds ARGUMENT...: runs make, its output in $scratch/log.
builds()
{
    $make "$@" >"$scratch/log" 2>&1 </dev/null
}

fails()
{
    ! builds "$@"
}

says()
{
    grep -q -e "$1" "$scratch/log"
}

silent_about()
{
    ! says "$1"
}

# File times may be as coarse as a second: a change is made newer than what was built before it.
changed()
{
    touch -d '+2 seconds' "$@" 2>/dev/null || touch -t 203001010000 "$@"
}

small_tree()
{
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree" && cd "$scratch/tree" || exit 1
    mkdir -p common proto worker/os coordinator/ctl coordinator/store deploy tests/harness \
        tests/unit/common tests/sim/fakes tests/fuzz/corpus/a tests/system
    cp "$SRCDIR/Makefile" "$SRCDIR/CHANGELOG.md" .
    cp "$SRCDIR/deploy/rules.sh" deploy
    cp "$SRCDIR/tests/harness/run-tests" tests/harness
    cp "$SRCDIR/tests/fuzz/main.c" tests/fuzz
    echo 'int a_value(void);' >common/a.h
    printf '#include "common/a.h"\nint a_value(void)\n{\n    return 1;\n}\n' >common/a.c
    printf 'int b_value(void);\nint b_value(void)\n{\n    return 2;\n}\n' >common/b.c
    printf 'int os_value(void);\nint os_value(void)\n{\n    return 3;\n}\n' \
        >"worker/os/os_$(uname -s | tr '[:upper:]' '[:lower:]').c"
    echo '#error another system' >worker/os/os_other.c
    mv worker/os/os_other.c worker/os/os_openbsd.c
    printf 'int store_value(void);\nint store_value(void)\n{\n    return 4;\n}\n' \
        >coordinator/store/store.c
    for main in worker coordinator coordinator/ctl; do
        printf '#include "common/a.h"\nint main(void)\n{\n    return a_value() - 1;\n}\n' >$main/main.c
    done
    cat >tests/unit/common/a_test.c <<'C'
#include "common/a.h"
#include <criterion/criterion.h>
Test(a, value) { cr_assert_eq(a_value(), 1); }
Test(a, again) { cr_assert_eq(a_value(), 1); }
C
    printf 'int os_value(void);\nint os_value(void)\n{\n    return 30;\n}\n' >tests/sim/fakes/fake_os.c
    cat >tests/sim/a_test.c <<'C'
#include <criterion/criterion.h>
int os_value(void);
Test(sim, fake_wins) { cr_assert_eq(os_value(), 30); }
C
    cat >tests/fuzz/fuzz_a.c <<'C'
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '!') abort();
    return 0;
}
C
    echo seed >tests/fuzz/corpus/a/seed
    printf 'test -x "$BUILD/bin/makespand" && makespand && pwd | grep -q "^$TMPDIR"\n' \
        >tests/system/010-run.sh
}

incremental()
{
    small_tree
    claim "the three programs are built" builds
    claim "they run" sh -c 'build/bin/makespand && build/bin/makespan-worker && build/bin/makespan'
    builds
    claim "the second run compiles nothing" silent_about 'CC\|AR\|LD'
    changed common/a.h
    builds
    claim "a changed header compiles what includes it" says 'CC    common/a.c'
    claim "and nothing else" silent_about 'CC    common/b.c'
    builds CFLAGS=-O1
    claim "other flags compile everything" says 'CC    common/b.c'
    rm common/b.c
    builds CFLAGS=-O1
    claim "a source that is gone leaves the library" sh -c '! ar t build/libcommon.a | grep b.o'
    printf 'int c_value(void);\nint c_value(void)\n{\n    return 5;\n}\n' >common/c.c
    builds CFLAGS=-O1
    claim "a new source enters it" sh -c 'ar t build/libcommon.a | grep c.o'
    printf 'int a_value(void);\nint a_value(void)\n{\n    return 1;\n}\n' >common/a.c
    printf 'int a_value(void);\nint main(void)\n{\n    return a_value() - 1;\n}\n' |
        tee worker/main.c coordinator/main.c >coordinator/ctl/main.c
    changed common/a.c worker/main.c coordinator/main.c coordinator/ctl/main.c
    rm common/a.h
    claim "a header that is gone does not stop the build" builds CFLAGS=-O1
    claim "BUILD may be absolute, and built in parallel" builds -j2 BUILD="$scratch/elsewhere"
    claim "make clean removes it" builds BUILD="$scratch/elsewhere" clean
    claim "so that nothing is left" test ! -e "$scratch/elsewhere"
}

floors()
{
    small_tree
    printf 'int store_value(void);\nint main(void)\n{\n    return store_value();\n}\n' |
        tee worker/main.c coordinator/ctl/main.c >coordinator/main.c
    claim "the coordinator links with the store" builds build/bin/makespand
    claim "the worker does not" fails build/bin/makespan-worker
    claim "because of that symbol" says 'store_value'
    claim "the operator's command does not" fails build/bin/makespan
    printf '#!/bin/sh\ncase "$*" in *jansson*) exit 1 ;; esac\nexec pkg-config "$@"\n' >fake-pc
    chmod +x fake-pc
    PKG_CONFIG=./fake-pc $make BUILD=other >"$scratch/log" 2>&1
    claim "a missing package is named, and what installs it" says 'libjansson-dev.*deploy/deps'
    claim "once" test "$(grep -c 'missing:' "$scratch/log")" -eq 1
    mkdir elsewhere && echo 'int e;' >tests/unit/x.c && echo 'int e;' >tests/lost.c
    builds build/libcommon.a
    claim "a source of no folder is noted" grep -q '^tests/lost.c$' build/lost.list
}

# counts TEXT: the last line of the log's counts.
counts()
{
    grep ' passed, ' "$scratch/log" | tail -n 1 | grep -x -e "$1"
}

runner()
{
    small_tree
    claim "the tests of all kinds run" builds -j2 check
    claim "and are counted one by one" counts '5 passed, 0 failed'
    # broken KIND FILE TEXT COUNTS: a further test, which must be counted as failed
    broken()
    {
        printf '%b' "$3" >"$2"
        changed "$2"
        rm -f build/tests/unit/common/b_test
        claim "$1: make fails" fails "check-$4"
        claim "$1: counted" counts "$5"
        rm -f "$2"
    }
    c='#include <criterion/criterion.h>\n#include <stdlib.h>\n'
    t=tests/unit/common/b_test.c
    broken "a failed assertion" $t "${c}Test(b, bad) { cr_assert(0); }\n" unit '2 passed, 1 failed'
    broken "a crash" $t "${c}Test(b, bad) { abort(); }\n" unit '2 passed, 1 failed'
    broken "no test in the program" $t "$c" unit '2 passed, 1 failed'
    broken "only a disabled test" $t "${c}Test(b, off, .disabled = true) { }\n" unit \
        '2 passed, 1 failed, 1 skipped'
    broken "the program dies before its tests" $t \
        "${c}__attribute__((constructor)) static void f(void) { abort(); }\nTest(b, x) { }\n" \
        unit '2 passed, 1 failed'
    broken "an input that the target dies of" tests/fuzz/corpus/a/bad '!' fuzz '0 passed, 1 failed'
    broken "a script that fails" tests/system/020-bad.sh 'exit 1\n' system '1 passed, 1 failed'
    broken "a script that counts" tests/system/020-bad.sh 'echo ok a\necho not ok b\n' system \
        '2 passed, 1 failed'
    printf 'echo no network here\nexit 77\n' >tests/system/020-skip.sh
    claim "a script that cannot run here" builds check-system
    claim "is skipped with its reason" says '^skip .*no network here'
    claim "and counted" counts '1 passed, 0 failed, 1 skipped'
    rm tests/system/020-skip.sh

    leak='void *volatile p = malloc(9); p = NULL;'
    printf '%b' "${c}Test(b, leak) { $leak cr_assert(p == NULL); }\n" >$t
    printf '#include <stdlib.h>\nint main(void)\n{\n    %s\n    return p != NULL;\n}\n' "$leak" \
        >worker/main.c
    changed $t worker/main.c
    printf 'makespan-worker || :\n' >tests/system/020-leak.sh
    fails -j2 SAN=address,undefined check-unit
    claim "a leak in a unit test is a failure" counts '3 passed, 1 failed'
    fails -j2 SAN=address,undefined check-system
    claim "a leak in a program that a script runs, too" counts '2 passed, 1 failed'
    printf 'int main(int count, char **words)\n{\n    return words[0][0] + (0x7fffffff + count) == 0;\n}\n' \
        >worker/main.c
    changed worker/main.c
    rm -f build/bin/makespan-worker
    fails -j2 SAN=address,undefined check-system
    claim "so is undefined behaviour in it" counts '2 passed, 1 failed'
}

for make in make bmake; do
    command -v "$make" >/dev/null 2>&1 || continue
    incremental
    floors
    runner
done
[ "$failures" -eq 0 ]
