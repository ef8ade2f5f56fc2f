#!/bin/sh
# Who is let in, and what is said to who is not: why, and what to do.
#
# Bad input covered here: a token used again with another key, expired, mistyped, of another fleet; a
# certificate of another authority, past its end; a worker's clock at 1970 (it joins and works, with a
# warning), and ahead of the certificate's end (refused, naming the clock); a coordinator that does not
# run (exit 3 with the address).
#
# The machine's clock is not touched: a library loaded into one program moves what it sees as the wall
# clock by WALL_OFFSET seconds, or sets it to begin at WALL_START.
# shellcheck source=tests/system/lib.sh disable=SC2086
. "$SRCDIR/tests/system/lib.sh"

cat >wall.c <<'END'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *ts)
{
    long rc = syscall(SYS_clock_gettime, id, ts);
    const char *offset = getenv("WALL_OFFSET"), *start = getenv("WALL_START");
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        struct timespec up;
        if (offset != NULL)
            ts->tv_sec += atoll(offset);
        if (start != NULL && syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &up) == 0)
            ts->tv_sec = atoll(start) + up.tv_sec % 100000;
    }
    return (int)rc;
}
time_t time(time_t *out)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out != NULL)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return 0;
}
END
cc -shared -fPIC -O1 -o wall.so wall.c >cc.log 2>&1 || { cat cc.log; die "the library for clocks cannot be built"; }

# $at SETTING COMMAND...: with the wall clock so set.
at="env LD_PRELOAD=$TMPDIR/wall.so ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0"
claim "the library moves the clock" test "$($at WALL_OFFSET=-100000000 date +%s)" -lt $(($(date +%s) - 99999990))

fleet_init f && fleet_start f && fleet_init g other && fleet_start g || die "no fleets"

# join W HOST TOKEN [F]: with a key of its own.
join()
{
    mkdir -p "$1"
    makespan-worker join "$(address "${4:-f}")" "$3" --name "$2" --dir "$TMPDIR/$1"
}

token=$(ms f token create --role worker --ttl 10m)
claim "a token is used" join w1 h1 "$token"
claim "again with another key: refused, and why" says "another key" exits 3 join w2 h2 "$token"
claim "and what to do" says "token create" exits 3 join w3 h2 "$token"
claim "the key that was made for it grants nothing" sh -c '! test -s w2/cert.pem'

token=$(ms f token create --role worker --ttl 10m)
wrong=$(echo "$token" | awk '{ c = substr($0, 12, 1); print substr($0, 1, 11) (c == "a" ? "b" : "a") substr($0, 13) }')
claim "a mistyped token: seen as such" says "typ" exits 64 join w4 h4 "$wrong"
claim "a token cut short" exits 64 join w4 h4 "$(echo "$token" | cut -c 1-30)"
claim "no token at all" exits 64 join w4 h4 hello
claim "a token of another fleet: seen before anything is sent" says "fleet" exits 3 join w4 h4 "$(ms g token create --role worker)"
claim "the other coordinator knows nothing of it" sh -c '! grep -q h4 f/*.log'
unknown=$(ms f token create --role worker --ttl 10m --name h5)
claim "a token for one name gives that name" says "as h5" join w5 h6 "$unknown"
claim "and says that it is not the one asked for" says "not as h6" join w5 h6 "$unknown"
claim "a worker's token makes no operator" says "makespan-worker join" exits 64 env MAKESPAN_HOME="$TMPDIR/o" makespan login "$(address f)" "$unknown" --name eve

old=$(ms f token create --role worker --ttl 1m)
fleet_stop f
claim "nobody listens: exit 3 with the address" says "$(address f)" exits 3 join w6 h6 "$old"
start f/later.log $at WALL_OFFSET=7200 makespand -c f/coordinator.yaml -l "$(address f)"
serves()
{
    ms f host list
}
claim "a coordinator two hours later" wait_for 20 serves
claim "an expired token: refused, and why" says "the token ended" exits 3 join w7 h7 "$old"
stop "$pid"
rm -f f/ready
fleet_start f || die "the coordinator does not come back"

# A certificate of another authority.
join g1 h1 "$(ms g token create --role worker)" g >join.out 2>&1 || { cat join.out; die "no worker of the other fleet"; }
sed "s/^coordinator:.*/coordinator: $(address f)/" g1/worker.yaml >g1/wrong.yaml
start g1/wrong.log makespan-worker -c g1/wrong.yaml
claim "a certificate of another authority: both fleets are named" wait_for 20 grep -q -i "authority\|fleet" g1/wrong.log
claim "it is not let in" sh -c '! grep -q "connected to" g1/wrong.log'
stop "$pid"

# Clocks.
start w1/past.log $at WALL_START=10 makespan-worker -c w1/worker.yaml
past=$pid
claim "a worker whose clock stands at 1970 connects" wait_for 20 is_up f h1
claim "with a warning at the worker" wait_for 10 grep -q -i "warn.*clock" w1/past.log
claim "and at the coordinator" sh -c 'grep -h "warn.*h1.*clock" f/*.log'
printf 'sweep: old\nworkload: {run: "true"}\nhosts: [h1]\njobs: [1]\nrepeat: {warmup: 0, until: 2}\n' >old.yaml
claim "and works" ms f sweep run --wait old.yaml
claim "its attempts count" test "$(csv f old counted | sort | uniq -c | tr -d ' \n')" = 21
stop "$past"
token=$(ms f token create --role worker)
mkdir w8
claim "with that clock it joins too" $at WALL_START=10 makespan-worker join "$(address f)" "$token" --name h8 --dir "$TMPDIR/w8"

start w1/future.log $at WALL_OFFSET=70000000 makespan-worker -c w1/worker.yaml
future=$pid
claim "a clock ahead of the certificate's end: refused, naming the clock" wait_for 20 grep -q -i "clock" w1/future.log
claim "it is not connected" sh -c '! grep -q "connected to" w1/future.log'
stop "$future"

# A fleet of two years ago: its worker's certificate has ended.
mkdir -p p
printf 'dir: %s/state\nlisten: 127.0.0.1:0\nbeat: 2s\n' "$TMPDIR/p" >p/coordinator.yaml
$at WALL_OFFSET=-63072000 env MAKESPAN_HOME="$TMPDIR/p/home" makespan init past --dir "$TMPDIR/p/state" --name boss >p/init.log 2>&1 ||
    { cat p/init.log; die "no fleet of two years ago"; }
start p/past.log $at WALL_OFFSET=-63072000 makespand -c p/coordinator.yaml --port-file "$TMPDIR/p/port"
past=$pid
wait_for 20 test -s p/port
echo "127.0.0.1:$(cat p/port)" >p/home/address
token=$($at WALL_OFFSET=-63072000 env MAKESPAN_HOME="$TMPDIR/p/home" makespan token create --role worker)
mkdir p1
claim "a worker of two years ago" $at WALL_OFFSET=-63072000 makespan-worker join "$(address p)" "$token" --name h1 --dir "$TMPDIR/p1"
stop "$past"
start p/now.log makespand -c p/coordinator.yaml -l "$(address p)" --port-file "$TMPDIR/p/ready"
wait_for 20 test -s p/ready
start p1/now.log makespan-worker -c p1/worker.yaml
claim "its certificate has ended: said, with what to do" wait_for 20 grep -q -i "certificate.*\(ended\|expired\|past\).*" p1/now.log
claim "it is not let in" sh -c '! grep -q "connected to" p1/now.log'
claim "an operator's certificate that has ended: said, with what to do" says "new token" exits 3 ms p host list
finish
