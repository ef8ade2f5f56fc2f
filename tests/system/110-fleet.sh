#!/bin/sh
# A fleet from nothing: init, start, token, join, login, host list, show, drain, resume, label, revoke.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

claim "init makes a fleet" fleet_init f myfleet
claim "the operator's key is private" test "$(stat -c %a f/home/operator.key)" = 600
claim "the authority's key is private" test "$(stat -c %a f/state/ca.key)" = 600
claim "a second init overwrites nothing" exits 3 ms f init other --dir "$TMPDIR/f/state"
claim "the configuration is checked" makespand -n -c f/coordinator.yaml
claim "the configuration is printed" says "beat: 2s" makespand -p -c f/coordinator.yaml
claim "what the file does not say keeps its default" says "hello: 10s" makespand -p -c f/coordinator.yaml
makespand -p -c f/coordinator.yaml >f/printed.yaml
claim "what was printed is a configuration" makespand -n -c f/printed.yaml
claim "the coordinator starts" fleet_start f || finish

claim "without hosts the list says what to do" says "makespan-worker join" ms f host list
token=$(ms f token create --role worker --class quad --ttl 10m)
claim "a token is printed" test "${token#mks1-}" != "$token"
mkdir w
claim "a worker joins" makespan-worker join "$(address f)" "$token" --name h1 --dir "$TMPDIR/w"
claim "the worker's key is private" test "$(stat -c %a w/key.pem)" = 600
claim "joining again with the same token and key is fine" \
    makespan-worker join "$(address f)" "$token" --name h1 --dir "$TMPDIR/w"
claim "the worker's configuration keeps its defaults" says "jobs: 0" makespan-worker -p -c w/worker.yaml
makespan-worker -p -c w/worker.yaml >w/printed.yaml
claim "what the worker printed is a configuration" makespan-worker -n -c w/printed.yaml
worker_start w
claim "the worker connects" wait_for 20 is_up f h1
claim "the host is listed with its class" says quad ms f host list
claim "the host is shown with its facts" says cpus. ms f host show h1
claim "an unknown host is not shown" exits 64 ms f host show nobody

claim "drain" ms f host drain h1
claim "a drained host is listed as such" says drain ms f host list
claim "resume" ms f host resume h1
claim "label" ms f host label h1 red
claim "the label is listed" says red ms f host list
claim "unlabel" ms f host unlabel h1 red
claim "the label is gone" sh -c '! MAKESPAN_HOME=f/home makespan host list | grep -q red'
claim "drain of an unknown host fails" exits 64 ms f host drain nobody

# A second operator with fewer rights.
submitter=$(ms f token create --role submitter --ttl 10m)
mkdir sub
claim "an operator logs in" env MAKESPAN_HOME="$TMPDIR/sub" makespan login "$(address f)" "$submitter" --name anna
claim "the operator sees hosts" env MAKESPAN_HOME="$TMPDIR/sub" makespan host list
claim "a submitter may make no token: no, and which role may" says "takes the role admin" exits 1 env MAKESPAN_HOME="$TMPDIR/sub" makespan token create
claim "a submitter may not drain a host" says "anna is a submitter" exits 1 env MAKESPAN_HOME="$TMPDIR/sub" makespan host drain h1

# A login that fails leaves the identity that is there.
as_anna()
{
    MAKESPAN_HOME=$TMPDIR/sub "$@"
}
claim "a second identity in the folder is refused" exits 3 as_anna makespan login "$(address f)" "$submitter"
claim "login with a malformed address" exits 64 as_anna makespan login --force nowhere "$submitter"
claim "login where nobody listens" exits 3 as_anna makespan login --force 127.0.0.1:1 "$submitter"
claim "login with a token that was used" as_anna sh -c '! makespan login --force "$1" "$2"' login "$(address f)" "$submitter"
claim "the operator is who it was" as_anna makespan host list
claim "and its role" says "anna is a submitter" exits 1 as_anna makespan host drain h1
claim "--force with a new token replaces it" as_anna makespan login --force "$(address f)" "$(ms f token create --role viewer)" --name ben
claim "with the other role" says "ben is a viewer" exits 1 as_anna makespan host drain h1
claim "a token for one name gives that name, and says so" says "not as eve" as_anna makespan login --force "$(address f)" \
    "$(ms f token create --role viewer --name dora)" --name eve
claim "no key is left waiting" test ! -e sub/operator.key.new

claim "revoke" ms f host revoke h1
is_down()
{
    ! is_up f h1
}
claim "the live link is closed" wait_for 20 is_down
claim "the worker says why" wait_for 20 grep -q -i revoked w/worker.*.log
worker_stop w
worker_start w
sleep_free()
{
    grep -i revoked "$1" | grep -q .
}
newest=$(ls -t w/worker.*.log | head -n 1)
claim "it is refused at the next handshake, with a reason" wait_for 20 sleep_free "$newest"
claim "the link stays down" is_down
worker_stop w

status=0
fleet_stop f || status=$?
claim "the coordinator ends well on SIGTERM" test "$status" -eq 0
claim "without a coordinator: exit 3" exits 3 ms f host list
claim "without a coordinator: the address that was tried is named" \
    sh -c "MAKESPAN_HOME=f/home makespan host list 2>&1 | grep -F '$(address f)'"

# Another port and folder: init says it to daemon and operator, nothing is edited.
port=$(cat f/port)
mkdir g
claim "a port that the system chooses is no place for a fleet" exits 64 env MAKESPAN_HOME="$TMPDIR/g/home" \
    makespan init g --dir g/state --listen 127.0.0.1:0
claim "and nothing was made of it" test ! -e g/state -a ! -e g/home
claim "init for another port" says "makespand -c $TMPDIR/g/state/makespand.yaml" env MAKESPAN_HOME="$TMPDIR/g/home" \
    makespan init g --dir g/state/ --listen "127.0.0.1:$port" --name boss
claim "what it wrote is a configuration" says "listen: \"127.0.0.1:$port\"" makespand -p -c g/state/makespand.yaml
start g/coordinator.log makespand -c g/state/makespand.yaml --port-file "$TMPDIR/g/ready"
g_pid=$pid
claim "the coordinator starts by it" wait_for 20 test -s g/ready
claim "the operator finds it" says "makespan-worker join" ms g host list
stop "$g_pid"
finish
