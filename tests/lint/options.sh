#!/bin/sh
# Every option of the daemons is in their manual pages and in the completions of the shells. (Those of
# makespan are compared by tests/unit/coordinator/ctl/manual_test.c.)
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

# options FILE: the names in its table for getopt_long().
options()
{
    grep -o '{"[a-z-]*", *[a-z]*_argument' "$1" | sed 's/^{"//; s/".*//' | sort -u
}

# one PROGRAM SOURCE PAGE
one()
{
    [ -f "$2" ] || return 0
    names=$(options "$2")
    [ -n "$names" ] || { echo "$2:1: no options were found in it"; return 1; }
    bad=0
    for name in $names; do
        grep -q "^\.It Fl \(. , Fl \)\{0,1\}-$name\( Ar .*\)\{0,1\}$" "$3" ||
            { echo "$3:1: no paragraph of --$name of $1"; bad=1; }
        for shell in deploy/completions/makespan.bash deploy/completions/_makespan; do
            grep -q -e "--${name}[^a-z-]" "$shell" || { echo "$shell:1: no --$name of $1"; bad=1; }
        done
    done
    for name in $(sed -n 's/^\.It Fl \(. , Fl \)\{0,1\}-\([a-z-]*\).*/\2/p' "$3"); do
        echo "$names" | grep -qx -e "$name" || { echo "$3:1: $1 has no --$name"; bad=1; }
    done
    return "$bad"
}

check()
{
    result=0
    one makespand coordinator/main.c deploy/man/makespand.8 || result=1
    one makespan-worker worker/main.c deploy/man/makespan-worker.8 || result=1
    return "$result"
}

plants()
{
    printf '    {"listen", required_argument, NULL, 1},\n    {"check", no_argument, NULL, 2},\n' |
        plant coordinator/main.c
    printf '.It Fl l , Fl -listen Ar address\n.It Fl -check\n' | plant deploy/man/makespand.8
    printf 'words="--listen --check"\n' | plant deploy/completions/makespan.bash
    printf "_arguments '--listen[x]' {-n,--check}'[y]'\n" | plant deploy/completions/_makespan
    passes
    printf '.It Fl l , Fl -listen Ar address\n' | plant deploy/man/makespand.8
    finds '^deploy/man/makespand.8:1: no paragraph of --check of makespand'
    printf '.It Fl -listen Ar x\n.It Fl -check\n.It Fl -more\n' | plant deploy/man/makespand.8
    finds '^deploy/man/makespand.8:1: makespand has no --more'
    printf '.It Fl -listen Ar x\n.It Fl -check\n' | plant deploy/man/makespand.8
    printf 'words="--listen"\n' | plant deploy/completions/makespan.bash
    finds '^deploy/completions/makespan.bash:1: no --check of makespand'
}

lint_main
