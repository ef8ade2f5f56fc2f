#!/bin/sh
# A sweep from check to report by every verb, and what each exit status says.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

fleet f || die "no fleet"

cat >s.yaml <<'END'
sweep: s
params: {pause: "0.05"}
workload:
  setup: echo made >tree
  reset: rm -f out
  run: echo "hello $JFLAG $WHAT" >out; sleep %{pause}
  check: test -s out && echo "size=17" && echo "not a fact"
  fingerprint: echo tools 1
variants:
  - {name: a, env: {WHAT: one}}
  - {name: b, env: {WHAT: two}}
hosts: [h1]
jobs: [none, 1, 2]
repeat: {warmup: 1, until: 2}
END
claim "check says what the file holds" says "s.yaml: no mistakes: 2 variants on 1 host, 6 cells: 12 runs and 6 warm-ups" ms f sweep check s.yaml
claim "and prints no data" test "$(ms f sweep check s.yaml 2>check.err)" = ""
claim "check as JSON" says '"runs": 12' ms f sweep check s.yaml --format json
claim "check dispatches nothing" says "no sweeps yet" ms f sweep list
claim "plan says runs for each host" says "12" ms f sweep plan s.yaml
claim "plan as JSON" says '"schema": 1' ms f sweep plan s.yaml --format json
claim "plan dispatches nothing" says "no sweeps yet" ms f sweep list

ms f sweep run --wait --key once s.yaml >run.out 2>run.err
status=$?
claim "run --wait ends with 0" test "$status" -eq 0
[ "$status" -eq 0 ] || cat run.err
claim "it prints the name alone to standard output" test "$(cat run.out)" = s/1
claim "it prints the plan to standard error" grep -q "12" run.err
claim "progress without a terminal is plain lines" grep -q "12 of 12 runs" run.err
claim "warm-ups are said apart" grep -q "12 of 12 runs, 6 of 6 warm-ups" run.err
claim "and as they are made" grep -q "0 of 12 runs, [1-6] of 6 warm-ups" run.err
claim "no escape sequences there" sh -c '! grep -q "$(printf "\033")" run.err'
claim "the same key and file submit once" says "s/1" ms f sweep run --key once s.yaml
claim "another file with that key is refused" sh -c '
    sed s/0.05/0.06/ s.yaml >other.yaml; ! MAKESPAN_HOME=f/home makespan sweep run --key once other.yaml'

for format in table mail csv json markdown; do
    claim "report --format $format" ms f report s --format "$format"
    ms f report s --format "$format" >"report.$format"
done
claim "the table has its heading" grep -q '^      real       user        sys   cpu%  host  -jN    (variant)    n    sd%        min     median$' report.table
claim "the table has a row a cell" test "$(grep -c '  h1 ' report.table)" -eq 6
claim "none is beside 1 and not 1" sh -c 'grep -q "h1          *(a)" report.table && grep -q "h1  *-j1  *(a)" report.table'
claim "warm-ups stand below" grep -q "^warm-up: 6 " report.table
claim "mail has 72 columns at most" sh -c '! grep -q "^.\{73\}" report.mail'
claim "CSV has a row an attempt" test "$(tail -n +2 report.csv | wc -l)" -eq 18
claim "CSV says none" grep -q ',none,' report.csv
counted=$(csv_columns counted warmup <report.csv | sort | uniq -c | tr -s ' \n\t' ' ')
claim "each run counts one attempt, no warm-up counts" test "$counted" = " 6 0 1 12 1 0 "
claim "facts of check are stored, what is none is not" sh -c 'grep -q "\"size\": \"17\"" report.json && ! grep -q "not a fact\"" report.json'
claim "a report says which build" grep -q '"schema": 1' report.json
run=$(csv_columns run attempt <report.csv | head -n 1 | tr '\t' '/')
claim "one attempt alone" says " ms" ms f report s --attempt "$run"
claim "one attempt as JSON" says '"real_ns": ' ms f report s --format json --attempt "$run"
claim "one attempt is no table of a mail" says "table or json" exits 64 ms f report s --format mail --attempt "$run"
for what in "report s" "report s --attempt $run" "sweep show s" "sweep list" "host list" "sweep plan s.yaml"; do
    # shellcheck disable=SC2086
    claim "$what: the document ends with its last line" test "$(ms f $what --format json | tail -n 1)" = "}"
done
claim "sweep list" says "s/1" ms f sweep list
claim "sweep show" says "h1" ms f sweep show s
claim "host show while idle" says "nothing" ms f host show h1
claim "report of a sweep that is not there" exits 64 ms f report nosuch
claim "watch of a sweep that has ended ends" ms f watch s/1
claim "--set replaces a parameter" says "s/2" ms f sweep run --wait --set pause=0.01 s.yaml
claim "the newest is meant by the name" says "s/2" ms f report s
claim "an unknown parameter is a mistake" exits 64 ms f sweep check --set nosuch=1 s.yaml

# A longer one to stop and start.
sed -e 's/^sweep: s/sweep: long/' -e 's/until: 2/until: 40/' s.yaml >long.yaml
name=$(ms f sweep run long.yaml 2>/dev/null)
claim "run without --wait prints the name" test "$name" = long/1
is_made()
{
    [ "$(csv f "$1" outcome | grep -c ok)" -ge "$2" ]
}
claim "runs are made" wait_for 30 is_made long 3
claim "a report of a running sweep is provisional" says "provisional" ms f report long
claim "drain stops it" ms f host drain h1
drained()
{
    ms f host show h1 | grep -q 'does  *nothing'
}
claim "a drained host comes to rest" wait_for 30 drained
before=$(csv f long run | wc -l)
claim "resume of the host" ms f host resume h1
more()
{
    [ "$(csv f long run | wc -l)" -gt "$before" ]
}
claim "it goes on" wait_for 30 more
claim "pause" ms f sweep pause long --because lunch
claim "it is paused" wait_for 10 sweep_is f long/1 paused
claim "a paused host comes to rest" wait_for 30 drained
claim "resume" ms f sweep resume long
claim "it is active" wait_for 10 sweep_is f long/1 active
start watch.out ms f watch long
watch=$pid
claim "watch shows progress" wait_for 20 grep -q "of 240 runs" watch.out
claim "cancel" ms f sweep cancel long --because enough
claim "it is cancelled" wait_for 20 sweep_is f long/1 cancelled
watch_over()
{
    ! alive "$watch"
}
claim "watch ends with it" wait_for 20 watch_over
claim "its report remains" says "(a)" ms f report long
claim "the reason is shown" says "enough" ms f sweep list
claim "a cancelled sweep is not retried" exits 64 ms f sweep retry long

if command -v script >/dev/null 2>&1; then
    MAKESPAN_HOME=$TMPDIR/f/home script -qec "makespan sweep run --wait --set pause=0.02 $TMPDIR/s.yaml" typescript >/dev/null 2>&1 </dev/null
    claim "on a terminal there are bars" grep -q '\[=*>* *\]\|\[=*\]\|\[#' typescript
    MAKESPAN_HOME=$TMPDIR/f/home NO_COLOR=1 script -qec "makespan report s" plain >/dev/null 2>&1 </dev/null
    claim "NO_COLOR is honoured" sh -c '! grep -q "$(printf "\033")\[[0-9;]*m" plain'
else
    ok "on a terminal there are bars # SKIP script(1) is not installed"
fi

# Exit statuses of --wait.
printf 'sweep: fails\nworkload: {run: "false"}\nhosts: [h1]\njobs: [1]\nrepeat: {warmup: 0, until: 2}\n' >fails.yaml
claim "a sweep with failures: 1" exits 1 ms f sweep run --wait fails.yaml
claim "its cells have ended" says ended ms f sweep show fails
claim "none of them is open" sh -c '! MAKESPAN_HOME=f/home makespan sweep show fails | grep -w open'
claim "failures are counted below the table" says "failed" ms f report fails
claim "retry makes them again" ms f sweep retry fails
claim "and they end again" wait_for 30 sweep_ended f fails/1
cat >later.yaml <<'END'
sweep: later
workload: {run: sleep 30}
hosts: [h1]
jobs: [1]
repeat: {warmup: 0, until: 2}
END
start later.out ms f sweep run --wait later.yaml
later=$pid
running()
{
    ms f host show h1 | grep -q -e '-j1: run,'
}
claim "a run is being timed" wait_for 20 running
claim "it is cancelled while it runs" ms f sweep cancel later
wait "$later"
claim "a sweep that ended early: 2" test "$?" -eq 2
claim "its tree is gone" wait_for 10 drained

# Without a fleet, and its report as a program reads it.
sed '/^hosts:/d; s/jobs: .*/jobs: [1]/; s/until: 2/until: 1/' s.yaml >alone.yaml
claim "local with a report as JSON" sh -c 'makespan local --format json alone.yaml >alone.json 2>alone.err'
claim "is a document of all its cells" test "$(grep -c '"variant": "[ab]"' alone.json)" -eq 2
claim "local keeps what it made where it is told" sh -c 'makespan local --keep kept alone.yaml >alone.table 2>&1 && test -s kept/coordinator/makespan.db'
claim "and takes no folder that is there" says "is there already" exits 3 makespan local --keep kept alone.yaml

# Ctrl-C in a terminal reaches all of its processes at once.
printf 'sweep: long\nworkload: {run: sleep 0.1}\njobs: [1]\nrepeat: {warmup: 0, until: 500}\n' >long.yaml
start long.out setsid makespan local long.yaml
long=$pid
claim "local is on its way" wait_for 30 grep -q ', [1-9][0-9]* of 500 runs' long.out
kill -s INT -- "-$long"
wait "$long"
claim "local that is interrupted ended early: 2" test "$?" -eq 2
claim "it still prints what was measured" grep -q '^long/1 (provisional' long.out

# A signal at any time: while the private fleet is made, while it starts, when the terminal goes.
mkdir early
# stop_local SIGNAL FILE: ends it as soon as there is that file; its status in $status.
stop_local()
{
    start early.out env TMPDIR="$TMPDIR/early" makespan local long.yaml
    early=$pid
    wait_for 30 sh -c "ls -d early/makespan-local-*$2" && kill -s "$1" "$early"
    wait "$early"
    status=$?
}
for at in TERM: TERM:/coordinator TERM:/port TERM:/worker HUP:/worker; do
    stop_local "${at%%:*}" "${at#*:}"
    claim "local ended by SIG${at%%:*} once there is its folder${at#*:}: 2" test "$status" -eq 2
    claim "and its folder is gone" test -z "$(ls early)"
done
start early.out env TMPDIR="$TMPDIR/early" makespan local long.yaml
early=$pid
claim "local is on its way again" wait_for 30 grep -q ', [1-9][0-9]* of 500 runs' early.out
kill -s HUP "$early"
wait "$early"
claim "local whose terminal goes ended early: 2" test "$?" -eq 2
claim "and leaves no folder" test -z "$(ls early)"
finish
