#!/bin/sh
# The disk is full at the worker, and at the coordinator: it is said, nothing that was acknowledged is
# lost, and when there is room again everything goes on by itself. Each has a small file system of its
# own, mounted by this test within its own namespace.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

[ -n "${MAKESPAN_TEST_NS-}" ] || skip "small file systems: this test needs root and a mount namespace"

mkdir -p f/state f-h1
mount -t tmpfs -o size=24m,mode=700 small f/state || die "no small file system"
mount -t tmpfs -o size=24m,mode=755 small f-h1 || die "no small file system"
fleet f || die "no fleet"

fill()
{
    dd if=/dev/zero of="$1/ballast" bs=64k >/dev/null 2>&1
    dd if=/dev/zero of="$1/ballast2" bs=1k >/dev/null 2>&1
    [ "$(df -k --output=avail "$1" | tail -n 1)" -lt 16 ]
}
empty()
{
    rm -f "$1"/ballast*
}
# What ended runs gave back meanwhile is taken, too.
fill_more()
{
    taken=$((${taken-0} + 1))
    dd if=/dev/zero of="f-h1/ballast.$taken" bs=1k >/dev/null 2>&1
}
says_full()
{
    fill_more
    grep -q "f-h1/.*no space left.* free\|f-h1/.* is full (.* free)" f-h1.log
}
made()
{
    [ "$(csv f "$1" outcome 2>/dev/null | grep -c ok)" -ge "$2" ]
}
# attempts SWEEP COUNT: that many count, each run once, none is there twice.
attempts()
{
    csv f "$1" run attempt counted >attempts.tsv
    [ "$(awk -F '\t' '$3 == 1' attempts.tsv | wc -l)" -eq "$2" ] &&
        [ "$(cut -f 1,2 attempts.tsv | sort | uniq -d | wc -l)" -eq 0 ]
}
# A log on the full disk could not say it.
says_log()
{
    cat f/*.log f-h1.log 2>/dev/null | grep -q -i -e "$1"
}

cat >s.yaml <<'END'
sweep: s
workload:
  run: echo $JFLAG; sleep 0.3
hosts: [h1]
jobs: [1, 2]
repeat: {warmup: 0, until: 20}
END

# The worker. Its log lies elsewhere.
worker_stop f-h1
start f-h1.log makespan-worker -c "$TMPDIR/f-h1/worker.yaml"
echo "$pid" >h1.pid
claim "the worker is up" wait_for 20 is_up f h1
start s.out ms f sweep run --wait s.yaml
sweep=$pid
claim "attempts come in" wait_for 30 made s 4
claim "the worker's disk is filled" fill f-h1
claim "it says so, with the folder and what is free" wait_for 30 says_full
shown()
{
    fill_more
    ms f host list >hosts.out 2>&1 || return 1
    grep -q "f-h1/.* free" hosts.out || return 1
    ms f host show h1 >host.out && grep -q "f-h1/.* free" host.out
}
claim "host list and host show say so" wait_for 30 shown
claim "it lives" alive "$(cat h1.pid)"
before=$(csv f s outcome | wc -l)
empty f-h1
more()
{
    [ "$(csv f s outcome | wc -l)" -gt "$((before + 1))" ]
}
claim "with room again it goes on by itself" wait_for 90 more
no_retries()
{
    ! csv f s outcome | grep -q "interrupted\|invalid"
}
claim "no attempt was lost to the full disk" no_retries

# The coordinator.
claim "the coordinator's disk is filled" fill f/state
claim "it says so" wait_for 30 says_log "disk\|space\|full"
claim "it lives" alive "$(cat f/pid)"
sed 's/^sweep: s/sweep: refused/' s.yaml >refused.yaml
refused()
{
    exits 3 ms f sweep run refused.yaml >refused.out 2>&1 && grep -q "no space left\|disk is full" refused.out || {
        cat refused.out
        return 1
    }
}
claim "a new sweep is refused, and why" refused
empty f/state
claim "with room again the sweep ends by itself" wait_for 120 sweep_ended f s/1
wait "$sweep"
claim "as if nothing had been" sweep_is f s/1 "done"
claim "every run counts one attempt, none is there twice" attempts s 40
claim "a new sweep is taken again" ms f sweep run --wait refused.yaml
claim "and has its runs" attempts refused 40
finish
