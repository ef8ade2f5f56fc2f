#!/bin/sh
# Links that fall silent, builds that say nothing, and a `makespan local` that is killed. Recipe 38: a
# half-open link is noticed by both sides, a silent build is no dead one, and the run in progress is
# neither touched nor made twice.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

fleet_init f && sed -i 's/^beat:.*/beat: 500ms/' f/coordinator.yaml && fleet_start f &&
    worker_join f f-h1 h1 && worker_start f-h1 && wait_for 20 is_up f h1 || die "no fleet"

cat >s.yaml <<'END'
sweep: s
workload: {run: "sleep 12.2468 $JFLAG"}
hosts: [h1]
jobs: [none]
repeat: {warmup: 0, until: 1}
END
start s.out ms f sweep run --wait s.yaml
sweep=$pid
is_running()
{
    ms f host show h1 2>/dev/null | grep -q ': run,'
}
builds()
{
    processes '^sleep 12.2468 ' | wc -l
}
claim "a build that says nothing is being timed" wait_for 20 is_running

# Half-open: the worker's side stands still, its connection stays.
kill -STOP "$(cat f-h1/pid)"
stopped=$(date +%s)
is_down()
{
    ! is_up f h1
}
claim "the coordinator notices a silent worker" wait_for 15 is_down
claim "the build goes on" test "$(builds)" -eq 1
# A sample that is five seconds late is marked; samples are a second or two apart.
stood_still()
{
    [ "$(date +%s)" -ge $((stopped + 9)) ]
}
wait_for 20 stood_still
kill -CONT "$(cat f-h1/pid)"
# While a run is timed the worker does not dial.
claim "the worker comes back" wait_for 30 is_up f h1

# And the coordinator's.
kill -STOP "$(cat f/pid)"
noticed()
{
    cat f-h1/worker.*.log | grep -q -i "no sign of life\|silent"
}
claim "the worker notices a silent coordinator" wait_for 15 noticed
kill -CONT "$(cat f/pid)"
claim "the link comes back" wait_for 30 is_up f h1
wait "$sweep"
claim "the sweep ends as if nothing had been" test "$?" -eq 0
csv f s attempt outcome counted marks >s.tsv
claim "the attempt in which the worker stood still is there, marked" awk -F '\t' '
    { print } $1 == 1 && $4 ~ /paused/ { found = 1 } END { exit !found }' s.tsv
claim "and one that is whole counts" awk -F '\t' '$3 == 1 && $2 == "ok" { n++ } END { exit n != 1 }' s.tsv

# makespan local, killed without a chance to tidy up: its daemons and its build end by themselves.
cat >local.yaml <<'END'
sweep: l
workload: {run: "sleep 777.5 $JFLAG"}
jobs: [none]
repeat: {warmup: 0, until: 1}
END
start local.out makespan local local.yaml
local=$pid
echo "$local" >local.pid
local_runs()
{
    processes '^sleep 777.5 '
}
claim "makespan local times a build" wait_for 30 local_runs
claim "it is killed" kill_hard local.pid
local_gone()
{
    ! local_runs && ! ps -eo args= | grep -q "[m]akespan.* --guard .*$TMPDIR"
}
claim "its daemons and its build are gone" wait_for 30 local_gone

# The same by Ctrl-C: the temporary folder goes too.
rm -rf "$TMPDIR"/makespan-local-*
start local.out makespan local local.yaml
local=$pid
claim "makespan local times a build" wait_for 30 local_runs
stop "$local"
status=$?
claim "on SIGTERM it says that it ended early" test "$status" -eq 2 -o "$status" -ge 128
claim "its daemons and its build are gone" wait_for 30 local_gone
claim "and its folder" sh -c '! ls -d "$TMPDIR"/makespan-local-* 2>/dev/null'
finish
