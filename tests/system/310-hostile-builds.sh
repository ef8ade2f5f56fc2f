#!/bin/sh
# Builds that go wrong in every way: the attempt says what happened, and the sweep goes on.
#
# Bad input covered here: a build that fails, is killed by a signal, runs into its timeout, prints
# gigabytes without a newline, prints bytes that are not UTF-8, leaves a daemon behind, closes its
# stdout, truncates its log; check fails; setup fails. Recipes: 2 (a build that ignores SIGTERM), 8
# (a question on standard input), 10 (facts of check).
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

fleet f || die "no fleet"

# sweep NAME KEY: VALUE...: a sweep of one cell and one run, with these lines of the workload;
# commands stand in them as they are.
sweep()
{
    name=$1
    shift
    {
        printf 'sweep: %s\nhosts: [h1]\njobs: [1]\nrepeat: {warmup: 0, until: 1}\nworkload:\n' "$name"
        for line in "$@"; do
            case $line in
            timeout:*) printf '  %s\n' "$line" ;;
            *) printf '  %s: |\n    %s\n' "${line%%: *}" "${line#*: }" ;;
            esac
        done
    } >"$name.yaml"
    ms f sweep run --wait "$name.yaml" >"$name.out" 2>&1
}

# attempt NAME: outcome, phase, ending, marks and text of its only attempt.
attempt()
{
    csv f "$1" outcome phase ending exit_status signal marks text
}

# ends NAME STATUS PATTERN: the sweep ended with that status, and its attempt is as the pattern says.
ends()
{
    ends_pattern=$3
    [ "$4" -eq "$2" ] || { echo "exit status $4, not $2"; cat "$1.out"; return 1; }
    attempt "$1" >attempt.out
    cat attempt.out
    [ "$(wc -l <attempt.out)" -eq 1 ] || { echo "not one attempt"; return 1; }
    grep -q -e "$ends_pattern" attempt.out
}

t=$(printf '\t')

sweep fails 'run: echo so far so good; echo "main.c:1: error" >&2; exit 2'
claim "a build that fails: its status and last line" ends fails 1 "^failed${t}run${t}exit${t}2${t}.*error" $?
sweep killed 'run: kill -SEGV $$'
claim "a build killed by a signal: which" ends killed 1 "^failed${t}run${t}signal${t}${t}11${t}.*SIGSEGV" $?
sweep slow 'run: sleep 1000 & sleep 1000' 'timeout: {run: 300ms}'
claim "a build that runs into its timeout" ends slow 1 "^failed${t}run${t}timeout${t}.*300" $?
sweep stubborn "run: trap '' TERM INT HUP; while :; do sleep 0.1; done" 'timeout: {run: 300ms}'
claim "a build that ignores SIGTERM ends too" ends stubborn 1 "^failed${t}run${t}timeout${t}" $?
sweep checked 'run: true' 'check: echo "vmlinux is missing" >&2; false'
claim "check fails: a failed attempt" ends checked 1 "^failed${t}check${t}exit${t}1${t}.*vmlinux is missing" $?
ms f report checked >checked.table
claim "which is in no mean" grep -q '^ *- .* 0  ' checked.table
sweep nocommand 'run: no-such-command-anywhere'
claim "a command that is not there" ends nocommand 1 "^failed${t}run${t}exit${t}127${t}.*no-such-command-anywhere" $?
sweep asks 'run: printf "Overwrite? [y/n] "; read answer'
claim "a question gets no answer, and is shown" ends asks 1 "^failed${t}run${t}exit${t}.*Overwrite" $?
sweep latin 'run: printf "\344\366\374 \377\n"; false'
claim "output that is not UTF-8" ends latin 1 "^failed${t}run${t}exit${t}1${t}" $?
ms f report latin --format json >latin.json
claim "the report of it is valid UTF-8" iconv -f UTF-8 -t UTF-8 latin.json -o /dev/null
sweep closes 'run: exec >&- 2>&-; sleep 0.2'
claim "a build that closes its output" ends closes 0 "^ok${t}check${t}exit${t}0${t}" $?
sweep truncates 'run: head -c 200000 /dev/zero | tr "\0" x; : >/dev/stdout; sleep 0.3; echo end'
claim "a build that truncates its log" ends truncates 0 "^ok${t}check${t}exit${t}0${t}${t}.*truncated" $?
sweep daemon 'run: (setsid sleep 777 >/dev/null 2>&1 & ); sleep 0.2'
claim "a daemon is left behind: a mark" ends daemon 0 "${t}.*survivors" $?
no_sleep()
{
    ! processes '^sleep 777 '
}
claim "and the daemon is gone" wait_for 10 no_sleep
sweep facts 'run: true' 'check: printf "size=17\nbad line\n=x\nname=a b\n"'
claim "facts of check" ends facts 0 "^ok" $?
ms f report facts --format json >facts.json
claim "key=value lines alone are facts" sh -c 'grep -q "\"size\": \"17\"" facts.json && grep -q "\"name\": \"a b\"" facts.json && ! grep -q "\"bad" facts.json'

before=$(rss "$(cat f-h1/pid)")
sweep flood 'run: head -c 2000000000 /dev/zero'
claim "two gigabytes without a newline" ends flood 0 "^ok${t}check${t}exit${t}0${t}${t}.*output-cut" $?
used=$(du -sk f-h1 | cut -f 1)
claim "they do not fill the disk" test "$used" -lt 100000
claim "nor the worker's memory" test "$(rss "$(cat f-h1/pid)")" -lt $((before + 20000))

# A setup that fails: its cells fail once each, with the output's tail, others go on.
cat >setup.yaml <<'END'
sweep: setup
workloads:
  - {name: bad, setup: "echo configure: no compiler found; exit 1", run: "true $JFLAG"}
  - {name: good, run: "true $JFLAG"}
hosts: [h1]
jobs: [1, 2]
repeat: {warmup: 1, until: 3}
END
claim "a sweep with a setup that fails ends" exits 1 ms f sweep run --wait setup.yaml
csv f setup workload jobs outcome phase text >setup.csv
claim "each of its cells fails at most once" test "$(grep -c "^bad${t}1${t}" setup.csv)" -le 1 -a "$(grep -c "^bad${t}2${t}" setup.csv)" -le 1
claim "with the output's tail" grep -q "^bad${t}.*failed${t}setup${t}.*no compiler found" setup.csv
claim "the other workload has all its runs" test "$(grep -c "^good${t}.*ok" setup.csv)" -eq 8
finish
