#!/bin/sh
# A worker that is root and has another user for its builds (`run_as`), started by a root whose own
# files nobody may read (umask 077): builds get what every build gets.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

[ "$(id -u)" -eq 0 ] || skip "only root runs builds as another user"
uid=54321
chmod 711 "$TMPDIR"
fleet_init f || die "no fleet"
fleet_start f || die "no coordinator"
mkdir -m 711 f-h1
umask 077
worker_join f f-h1 h1 || die "h1 cannot join"
printf 'run_as: "%s"\n' "$uid" >>f-h1/worker.yaml
worker_start f-h1
umask 022
wait_for 20 is_up f h1 || { cat f-h1/worker.*.log; die "h1 does not come up"; }

cat >as.yaml <<'E2'
sweep: as
hosts: [h1]
jobs: [1]
repeat: {warmup: 0, until: 1}
workload:
  setup: id -u >by
  run: test -O by && echo x >made && echo x >"$HOME/made" && echo x >"$TMPDIR/made"
  check: |
    echo "user=$(id -u):$(id -g):$(id -G)"
    echo "umask=$(umask)"
    echo "mode=$(stat -c %a made)"
    cat ../../../key.pem >/dev/null 2>&1 && echo reads=secrets
    echo x 2>/dev/null >../stamp && echo writes=stamp
    true
E2
ms f sweep run --wait as.yaml >as.out 2>&1
claim "the sweep is made" test $? -eq 0
cat as.out
ms f report as --format json >as.json
# fact KEY VALUE: check told this of the only attempt.
fact()
{
    grep -q "\"$1\": \"$2\"" as.json
}
claim "as that user, in no other group" fact user "$uid:$uid:$uid"
claim "with the umask of every build" fact umask 0022
claim "which its files show" fact mode 644
claim "what is the worker's is not for it to read" sh -c '! grep -q "\"reads\"" as.json'
claim "nor to write" sh -c '! grep -q "\"writes\"" as.json'
