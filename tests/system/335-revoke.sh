#!/bin/sh
# A host that is revoked in the middle of a run: it is not busy any more, its runs have no data, and
# nobody waits for it: neither a sweep with no other host nor one with two.
# shellcheck source=tests/system/lib.sh disable=SC2016
. "$SRCDIR/tests/system/lib.sh"

fleet f h1 && worker_join f f-h2 h2 && worker_start f-h2 && wait_for 20 is_up f h2 || die "no fleet"

# sweep NAME HOSTS: on h1 its runs end at once, on h2 they do not.
sweep()
{
    printf 'sweep: %s\nworkload: {run: "case $(pwd) in */f-h2/*) exec sleep 298.5 ;; esac"}\n' "$1"
    printf 'hosts: [%s]\njobs: [none]\nrepeat: {warmup: 0, until: 2}\n' "$2"
}
sweep one h2 >one.yaml
sweep two 'h1, h2' >two.yaml
builds()
{
    test "$(ps -eo args= | grep -c '^sleep 298\.5')" -eq "$1"
}

start one.out ms f sweep run --wait one.yaml
one=$pid
claim "a run is being made" wait_for 30 builds 1
start two.out ms f sweep run --wait two.yaml
two=$pid
claim "another sweep waits for both hosts" wait_for 20 sweep_is f two/1 active
claim "the host is revoked" ms f host revoke h2
wait "$one"
claim "the sweep of that host alone ends: hosts are missing" test "$?" -eq 3
wait "$two"
claim "that of two hosts ends with what the other one made" test "$?" -eq 3
claim "it made all of its runs" test "$(csv f two host outcome | sort | uniq -c | tr -d ' \n\t')" = 2h1ok
not_busy()
{
    ms f host list | grep -q "^h2 *revoked *down .* nothing$"
}
claim "the host is revoked, not busy" not_busy
claim "nothing is being made there" test "$(ms f host show h2 | sed -n 's/^does *//p')" = nothing
claim "the sweep says why it is without data" says "h2: the host was revoked" ms f sweep list
claim "what ran there is ended" wait_for 20 builds 0
claim "it is not asked again" says "h2\` was revoked" exits 64 ms f sweep retry one
claim "nothing waits" sweep_is f one/1 "done"
finish
