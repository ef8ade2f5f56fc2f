#!/bin/sh
# All scripts of the tree pass shellcheck; found by their ending or their first line.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    scripts=$(tree | grep -v '^tests/fuzz/corpus/\|^tests/golden/' | while read -r file; do
        case $file in
        *.sh | .ci/run) echo "$file" ;;
        *.*) ;;
        *) if head -n 1 "$file" | tr -d '\0' | grep -q '^#!.*/\(ba\)*sh\|^#!/usr/bin/env \(ba\)*sh'; then
            echo "$file"
        fi ;;
        esac
    done)
    [ -n "$scripts" ] || return 0
    # shellcheck disable=SC2086 # a list of plain names
    shellcheck -x -f gcc -S warning -e SC1007 $scripts
}

plants()
{
    printf '#!/bin/sh\necho "$1"\n' | plant deploy/a
    passes
    printf '#!/bin/sh\ncd x\nrm -rf y\n' | plant deploy/b
    finds '^deploy/b:2:'
    rm deploy/b
    printf '#!/bin/sh\nif [ "$1" == x ]; then echo; fi\n' | plant tests/system/c.sh
    finds '^tests/system/c.sh:2:'
}

if ! command -v shellcheck >/dev/null 2>&1; then
    echo "shellcheck is not installed"
    exit 77
fi
lint_main
