#!/bin/sh
# kill -9 of the worker while it measures, of the coordinator, of both: nothing is lost, nothing counted
# twice, no build is left running.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

fleet f || die "no fleet"

# While the file "hold" is there a run does not end: what is killed then was running.
sed "s,HOLD,$TMPDIR/hold," >s.yaml <<'END'
sweep: s
workload:
  setup: echo made >tree
  run: echo "$JFLAG $WHAT" >>log; sleep 0.2; sleep "0.$MARK"; while test -e HOLD; do sleep "0.$MARK"; done
variants:
  - {name: a, env: {WHAT: one, MARK: "13579"}}
  - {name: b, env: {WHAT: two, MARK: "13579"}}
hosts: [h1]
jobs: [none, 2]
repeat: {warmup: 1, until: 6}
END
is_running()
{
    ms f host show h1 2>/dev/null | grep -q ': run,'
}
made()
{
    [ "$(csv f s outcome 2>/dev/null | wc -l)" -ge "$1" ]
}
build_gone()
{
    ! processes '^sleep 0.13579 '
}
one_at_most()
{
    [ "$(processes '^sleep 0.13579 ' | wc -l)" -le 1 ]
}

start s.out ms f sweep run --wait s.yaml
sweep=$pid
claim "attempts come in" wait_for 30 made 3
: >hold
claim "a run is being timed" wait_for 20 is_running
claim "the worker is killed" kill_hard f-h1/pid
not_up()
{
    ! is_up f h1
}
claim "the coordinator sees it" wait_for 20 not_up
worker_start f-h1
claim "the worker is back" wait_for 20 is_up f h1
builds_again()
{
    processes '^sleep 0.13579 '
}
claim "it builds again" wait_for 20 builds_again
claim "which the coordinator knows by the worker's beats" wait_for 20 is_running
claim "nothing is left of the build before" one_at_most
rm -f hold
interrupted()
{
    csv f s outcome | grep -q interrupted
}
claim "the attempt is told as interrupted" wait_for 20 interrupted
before=$(csv f s outcome | wc -l)
claim "it goes on" wait_for 30 made $((before + 2))

claim "the coordinator is killed" kill_hard f/pid
fleet_start f || die "the coordinator does not come back"
claim "the worker finds it again" wait_for 60 is_up f h1
before=$(csv f s outcome | wc -l)
claim "it goes on" wait_for 30 made $((before + 2))

: >hold
claim "a run is being timed" wait_for 20 is_running
claim "both are killed: the coordinator" kill_hard f/pid
claim "and the worker" kill_hard f-h1/pid
rm -f hold
worker_start f-h1
fleet_start f || die "the coordinator does not come back"
claim "both are back" wait_for 60 is_up f h1
claim "the sweep ends" wait_for 120 sweep_ended f s/1
wait "$sweep"
status=$?
claim "whoever waited for it knows" test "$status" -eq 0
claim "it is done" sweep_is f s/1 "done"

csv f s variant jobs run attempt warmup outcome counted >all.tsv
claim "every cell has its six runs, each counted once" awk -F '\t' '
    $7 == 1 { n[$1 " " $2]++; run[$3]++ }
    END { for (c in n) { cells++; if (n[c] != 6) bad = 1; print c, n[c] }
          for (r in run) if (run[r] != 1) bad = 1
          exit bad || cells != 4 }' all.tsv
claim "only what was ok counts" awk -F '\t' '$7 == 1 && $6 != "ok" { bad = 1; print } END { exit bad }' all.tsv
claim "no attempt is there twice" test "$(cut -f 3,4 all.tsv | sort | uniq -d | wc -l)" -eq 0
claim "nothing is left of the builds" wait_for 10 build_gone
finish
