#!/bin/sh
# The floors in the finished programs: the worker and the operator's command know no database.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    wrong=0
    for program in makespan-worker makespan; do
        [ -f "$BUILD/bin/$program" ] || continue
        if readelf -d "$BUILD/bin/$program" | grep 'NEEDED.*sqlite' ||
            nm "$BUILD/bin/$program" | grep ' sqlite3_'; then
            echo "deploy/rules.sh:1: $program is linked with SQLite"
            wrong=1
        fi
    done
    return "$wrong"
}

plants()
{
    real=$BUILD
    plain=$(sed -n 's/ -std=.*//p; 1q' "$real/flags")
    BUILD=$PWD/b
    mkdir -p "$BUILD/bin"
    echo 'int main(void) { return 0; }' | plant a.c
    $plain -o b/bin/makespan-worker a.c || exit 1
    passes
    printf '#include <sqlite3.h>\nint main(void) { return sqlite3_threadsafe(); }\n' | plant b.c
    $plain -o b/bin/makespan b.c -lsqlite3 || exit 1
    finds 'makespan is linked with SQLite'
    BUILD=$real
}

need_build
if [ ! -f "$BUILD/bin/makespan-worker" ] && [ ! -f "$BUILD/bin/makespan" ]; then
    echo "no program is built here yet"
    exit 77
fi
lint_main
