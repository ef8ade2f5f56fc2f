#!/bin/sh
# Words that must not be in the tree: words.txt lists them.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    grep -v '^#' "$LINT/words.txt" >"$words"
    [ -s "$words" ] || { echo "tests/lint/words.txt:1: is empty"; return 1; }
    # -I passes over binary files; the corpora of the fuzz targets are any bytes.
    if tree | grep -v '^tests/lint/words\.\|^tests/fuzz/corpus/' | tr '\n' '\0' |
        xargs -0 grep -nHIE -f "$words"; then
        return 1
    fi
    return 0
}

plants()
{
    printf 'Nothing here: todo, XXXXXX, worker/work/x, an issue of 2 weeks.\n' | plant README.md
    passes
    for text in '/* TODO: more */' 'x FIXME' 'cd /work/main' 'see issue #3' 'in ../shared/x'; do
        printf '\n%s\n' "$text" | plant deploy/bad.sh
        finds '^deploy/bad.sh:2:'
    done
}

words=$(mktemp) || exit 1
lint_main
rm -f "$words"
