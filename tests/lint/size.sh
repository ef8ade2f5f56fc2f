#!/bin/sh
# No C file of ours is longer than 600 lines: over 500, look for the second idea in it.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    sources common proto worker coordinator tests | grep -v '\.def$' | xargs awk '
        FNR == 601 { print FILENAME ":601: longer than 600 lines"; bad = 1 }
        END { exit bad }' /dev/null
}

plants()
{
    awk 'BEGIN { for (i = 0; i < 600; i++) print "" }' | plant common/a.c
    passes
    awk 'BEGIN { for (i = 0; i < 601; i++) print "" }' | plant common/b.h
    finds '^common/b.h:601: '
}

lint_main
