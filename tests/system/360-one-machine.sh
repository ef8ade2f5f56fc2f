#!/bin/sh
# Two workers on one machine never measure at once: of one coordinator, of two, of two users, and `local`
# beside a fleet's worker; whoever waits names the holder. Recipe 45: what the service's limits allow.
#
# Each build makes a folder, and removes it at its end: it fails when it is there.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

if [ "$(id -u)" -ne 0 ]; then
    skip "two users: this test needs root"
fi
command -v setpriv >/dev/null 2>&1 || skip "two users: setpriv is not installed"
mkdir -m 777 shared

# sweep_file NAME HOSTS RUNS SECONDS
sweep_file()
{
    cat >"$1.yaml" <<END
sweep: $1
workload:
  run: mkdir $TMPDIR/shared/busy || { echo another build is being measured; exit 9; }; sleep $4; rmdir $TMPDIR/shared/busy
hosts: [$2]
jobs: [none]
repeat: {warmup: 0, until: $3}
END
}

fleet f || die "no fleet"
worker_join f f-h2 h2 && worker_start f-h2 && wait_for 20 is_up f h2 || die "no second worker"
fleet_init g other && fleet_start g || die "no second coordinator"
worker_join g g-h3 h3 || die "no third worker"
chown -R 65534:65534 g-h3
start g-h3/worker.log setpriv --reuid 65534 --regid 65534 --clear-groups \
    makespan-worker -c "$TMPDIR/g-h3/worker.yaml"
claim "a worker of another user and another coordinator" wait_for 20 is_up g h3

# Who holds it is named while another waits.
sweep_file long h1 1 "0.1; until test -e $TMPDIR/shared/go; do sleep 0.1; done"
sweep_file waits h2 1 0.1
sweep_file other h3 1 0.1
ms f sweep run long.yaml >/dev/null 2>&1
measuring()
{
    test -d shared/busy
}
claim "one measures" wait_for 30 measuring
ms f sweep run waits.yaml >/dev/null 2>&1
ms g sweep run other.yaml >/dev/null 2>&1
# shows F PATTERN SWEEP HOST
shows()
{
    { ms "$1" sweep show "$3" && ms "$1" host show "$4"; } >shows.out 2>&1
    cat shows.out
    grep -q -e "$2" shows.out
}
claim "the coordinator of both hands out nothing meanwhile, and names the holder" \
    wait_for 30 shows f 'waits for the machine (h1)' waits h2
claim "the other user's worker of the other coordinator names it too" \
    wait_for 30 shows g 'makespan-worker h1 of test' other h3
: >shared/go
for one in long waits; do
    claim "$one ends" wait_for 40 sweep_is f "$one/1" "done"
done
claim "other ends" wait_for 40 sweep_is g other/1 "done"

# All of them at once, and local beside them.
sweep_file both 'h1, h2' 8 0.05
sweep_file third h3 8 0.05
sweep_file alone h1 8 0.05
start both.out ms f sweep run --wait both.yaml
pids="both:$pid"
start third.out ms g sweep run --wait third.yaml
pids="$pids third:$pid"
start alone.out makespan local --format csv alone.yaml
for one in $pids "alone:$pid"; do
    wait "${one#*:}"
    status=$?
    claim "${one%:*}: every run was made, none beside another" test "$status" -eq 0
    [ "$status" -eq 0 ] || tail -n 5 "${one%:*}.out"
done
claim "of two workers of one coordinator" test "$(csv f both outcome | grep -c ok)" -eq 16
claim "of another user" test "$(csv g third outcome | grep -c ok)" -eq 8

# Recipe 45: 40 processes are too few for 16 jobs, and the attempt says so.
worker_stop f-h2
chown -R 65533:65533 f-h2
start f-h2/limited.log setpriv --reuid 65533 --regid 65533 --clear-groups \
    prlimit --nproc=40 makespan-worker -c "$TMPDIR/f-h2/worker.yaml"
claim "a worker with few processes" wait_for 20 is_up f h2
cat >few.yaml <<'END'
sweep: few
workload: {run: "true $JFLAG"}
hosts: [h2]
jobs: [16]
repeat: {warmup: 0, until: 1}
END
ms f sweep run --wait few.yaml >few.out 2>&1
claim "the limit is a mark" sh -c 'MAKESPAN_HOME=f/home makespan report few --format csv | tee few.csv | grep -q process-limit'
ms f report few --format json >few.json
claim "with the number" grep -q '40' few.json
finish
