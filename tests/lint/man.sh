#!/bin/sh
# mandoc finds nothing to warn of in the manual pages.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    pages=$(files deploy/man | grep '\.[1578]$')
    [ -n "$pages" ] || return 0
    # shellcheck disable=SC2086 # a list of plain names
    said=$(mandoc -Tlint -W warning $pages 2>&1)
    [ -z "$said" ] || { echo "$said" | sed 's/^mandoc: //'; return 1; }
}

plants()
{
    printf '.Dd November 30, 2026\n.Dt A 1\n.Os\n.Sh NAME\n.Nm a\n.Nd does it\n' | plant deploy/man/a.1
    passes
    printf '.Dd November 30, 2026\n.Dt B 1\n.Os\n.Sh NAME\n.Nm b\n.Nd does it\n.Bl -tag\n' |
        plant deploy/man/b.1
    finds '^deploy/man/b.1:'
}

if ! command -v mandoc >/dev/null 2>&1; then
    echo "mandoc is not installed"
    exit 77
fi
lint_main
