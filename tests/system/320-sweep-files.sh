#!/bin/sh
# Sweep files with mistakes: every one is said with its place, exit 64, and nothing is dispatched.
#
# Bad input covered here: ten mistakes of meaning at once; a syntax error, NUL, not UTF-8; an unknown
# host, an empty class, a host never seen, a revision that does not exist; jobs 0, -3, 1.., 5..1,
# 1..1000000; duplicate variants, aliases, 2 MiB. Recipes: 1 (a missing placeholder is a warning), 4
# (text that looks like a number stays text), 6 (points that are the same merge).
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

fleet f || die "no fleet"
# A host that joined and was never seen, and classes with and without hosts.
worker_join f f-h2 h2 quad || die "no second host"
git init -q repo && git -C repo -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m one ||
    die "no repository"

nothing_dispatched()
{
    ms f sweep list | grep -q "no sweeps yet"
}

# located FILE:LINE:COLUMN PATTERN: one line of check.out is at that place and says so.
located()
{
    grep -q "^$1: .*$2" check.out || { cat check.out; return 1; }
}

check()
{
    ms f sweep check "$@" >check.out 2>&1
    status=$?
    [ "$status" -eq 64 ] || { echo "exit status $status"; cat check.out; return 1; }
}

cat >ten.yaml <<'END'
sweep: "ten mistakes"
workload:
  run: make $JFLAG
  chekc: test -s x
  timeout: {run: 5 parsecs}
variants:
  - {name: a, env: {X: "1"}}
  - {name: a, env: {X: "2"}}
base: zzz
hosts: []
jobs: [0]
repeat: {until: -1}
tolerance: 200%
retry: {invalid: many}
END
claim "ten mistakes: exit 64" check ten.yaml
claim "all ten are said" test "$(grep -c '^ten.yaml:[0-9]*:[0-9]*: ' check.out)" -ge 10
claim "each once" test "$(grep '^ten.yaml:' check.out | sort | uniq -d | wc -l)" -eq 0
claim "the name" located ten.yaml:1:8 ""
claim "the unknown key with the nearest one" located ten.yaml:4:3 "check"
claim "the span of time" located ten.yaml:5:18 ""
claim "the variant that occurs twice" located ten.yaml:8:5 '`a`'
claim "the base that is none" located ten.yaml:9:7 "zzz"
claim "no host" located ten.yaml:10:8 ""
claim "jobs" located ten.yaml:11:8 ""
claim "until" located ten.yaml:12:17 ""
claim "tolerance" located ten.yaml:13:12 ""
claim "retry" located ten.yaml:14:18 ""
claim "run says the same" exits 64 ms f sweep run ten.yaml
claim "local says the same, and starts nothing" says "ten.yaml:1:8: " exits 64 makespan local ten.yaml

# one NAME LINE...: a file that is good but for these lines.
one()
{
    file=$1.yaml
    shift
    printf '%s\n' 'sweep: one' 'workload: {run: "make $JFLAG"}' >"$file"
    printf '%s\n' "$@" >>"$file"
}

printf 'sweep: s\nworkload: {run: [}\n' >syntax.yaml
claim "a syntax error" check syntax.yaml
claim "its place" located 'syntax.yaml:2:[0-9]*' "syntax"
claim "one error alone" test "$(grep -c '^syntax.yaml:' check.out)" -eq 1
printf 'sweep: s\nworkload: {run: "a\0b"}\n' >nul.yaml
claim "NUL" check nul.yaml
claim "its place" located 'nul.yaml:2:[0-9]*' ""
claim "one error alone" test "$(grep -c '^nul.yaml:' check.out)" -eq 1
printf 'sweep: s\nworkload: {run: "a\377b"}\n' >latin.yaml
claim "not UTF-8" check latin.yaml
claim "its place" located 'latin.yaml:2:[0-9]*' "UTF-8"
claim "one error alone" test "$(grep -c '^latin.yaml:' check.out)" -eq 1

claim "an empty file" says "/dev/null:1:1: the file is empty" exits 64 makespan local /dev/null
claim "a folder" says "folder" exits 64 makespan local .
claim "a file that is not there" says "not found" exits 64 makespan local not-there.yaml

one unknown 'hosts: [nobody]'
claim "an unknown host" check unknown.yaml
claim "is named" located unknown.yaml:3:9 nobody
one empty 'hosts: ["class:none-has-it"]'
claim "an empty class" check empty.yaml
claim "is named" located empty.yaml:3:9 none-has-it
one never 'hosts: [h2]' 'jobs: [50%]'
claim "a host that was never seen" check never.yaml
claim "is named" located 'never.yaml:[34]:[0-9]*' h2
one any 'hosts: ["any:none-has-it"]'
claim "any of an empty class" check any.yaml

n=0
for jobs in 0 -3 1.. 5..1 1..1000000 '"2 / 0"' half 5000 '[]'; do
    n=$((n + 1))
    one "jobs$n" 'hosts: [h1]' "jobs: [$jobs]"
    claim "jobs: [$jobs]" check "jobs$n.yaml"
    claim "its place" located "jobs$n.yaml:4:[0-9]*" ""
done

cat >rev.yaml <<END
sweep: rev
workload: {run: "make \$JFLAG", source: {git: $TMPDIR/repo, rev: no-such-branch}}
hosts: [h1]
END
claim "a revision that does not exist" check rev.yaml
claim "is named with its repository" located 'rev.yaml:2:[0-9]*' 'no-such-branch'
cat >repo.yaml <<END
sweep: rev
workload: {run: "make \$JFLAG", source: {git: $TMPDIR/no-such-repository}}
hosts: [h1]
END
claim "a repository that does not exist" sh -c '! MAKESPAN_HOME=f/home makespan sweep check repo.yaml >check.out 2>&1'
claim "is named" grep -q no-such-repository check.out

printf 'sweep: s\nworkload: &w {run: "true $JFLAG"}\nhosts: [h1]\nvariants: [*w]\n' >alias.yaml
claim "aliases" check alias.yaml
{
    printf 'sweep: s\nworkload: {run: "true $JFLAG"}\nhosts: [h1]\n#'
    head -c 2097152 /dev/zero | tr '\0' x
} >large.yaml
claim "2 MiB" check large.yaml
claim "the limit is named" grep -q "1 MiB" check.out
{
    printf 'sweep: s\nworkload: {run: "true $JFLAG"}\nhosts: [h1]\n#'
    head -c 700000 /dev/zero | tr '\0' x
    echo
} >below.yaml
claim "a large one below it is taken" ms f sweep check below.yaml
claim "a file that is not there" says "nosuch.yaml" exits 64 ms f sweep check nosuch.yaml

while IFS='|' read -r key value; do
    one notyet 'hosts: [h1]' "$key: $value"
    claim "not yet: $key" check notyet.yaml
    claim "said with its line" located 'notyet.yaml:4:[0-9]*' "not yet"
done <<'END'
reboot|variant
caches|drop
observe|silent
ahead|2h
quiet|{foreign: 3%}
machine|{nice: 5}
repeat|{until: verdict}
END

claim "through all this nothing was dispatched" nothing_dispatched

# Recipe 1: the job count is asked for, and the command takes none.
printf 'sweep: s\nworkload: {run: make}\nhosts: [h1]\njobs: [1, 2]\n' >placeholder.yaml
claim "a missing placeholder is a warning" says "placeholder.yaml:2:" ms f sweep check placeholder.yaml
claim "a warning" grep -q "warning" says.out
# Recipe 4: scalars stay text.
cat >text.yaml <<'END'
sweep: 0123
workload: {run: "true $JFLAG; echo value=$X", check: "echo value=$X"}
variants: [{name: 1e3, env: {X: 0123}}, {name: yes, env: {X: 1.10}}]
hosts: [h1]
jobs: [1]
repeat: {warmup: 0, until: 1}
END
claim "text that looks like a number" ms f sweep run --wait text.yaml
claim "names stay as they are written" test "$(csv f 0123 variant | sort | tr '\n' ' ')" = "1e3 yes "
ms f report 0123 --format json >text.json
claim "values too" sh -c 'grep -q "\"value\": \"0123\"" text.json && grep -q "\"value\": \"1.10\"" text.json'
# Recipe 6: equal points merge.
cat >merge.yaml <<'END'
sweep: merge
workload: {run: "true $JFLAG"}
hosts: [h1]
jobs: [1, 1..2, 2, none, none, "1"]
repeat: {warmup: 0, until: 1}
END
claim "equal points" ms f sweep run --wait merge.yaml
claim "merge" test "$(csv f merge jobs | sort | tr '\n' ' ')" = "1 2 none "
finish
