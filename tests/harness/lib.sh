# shellcheck shell=sh
# What the system tests share; each reads it with:  . "$SRCDIR/tests/harness/lib.sh"
#
# A test makes claims, each printed as "ok NAME" or "not ok NAME" with what was said, and ends with
# `finish`. What it starts in the background by `start` is ended when the test ends, however that
# comes. It waits for conditions by `wait_for`, never for a fixed time. The runner gives it a folder
# of its own as current folder, TMPDIR and HOME, and the programs in PATH.

set -u
claims_failed=0
started=

# Ends what was started, the newest first; a child gets ten seconds to follow SIGTERM.
end_started()
{
    for pid in $started; do
        stop "$pid"
    done
}
trap end_started EXIT
trap 'exit 1' INT TERM HUP

# ok NAME, not_ok NAME: one claim.
ok()
{
    echo "ok $*"
}

not_ok()
{
    echo "not ok $*"
    claims_failed=$((claims_failed + 1))
}

# claim NAME COMMAND...: holds when the command succeeds; otherwise its output is shown.
claim()
{
    claimed=$1
    shift
    if "$@" >claim.out 2>&1; then
        ok "$claimed"
    else
        not_ok "$claimed (exit status $?: $*)"
        sed 's/^/    /' claim.out
    fi
}

# exits STATUS COMMAND...: succeeds when the command ends with that status; passes its output on.
exits()
{
    wanted=$1
    shift
    "$@"
    got=$?
    [ "$got" -eq "$wanted" ] || { echo "exit status $got, not $wanted: $*"; return 1; }
}

# skip REASON: this test cannot be run here.
skip()
{
    echo "$*"
    exit 77
}

# die TEXT: the test cannot go on.
die()
{
    not_ok "$*"
    exit 1
}

finish()
{
    [ "$claims_failed" -eq 0 ]
    exit
}

# start LOG COMMAND...: in the background, output to the file LOG, its process id in $pid.
start()
{
    start_log=$1
    shift
    "$@" >"$start_log" 2>&1 </dev/null &
    pid=$!
    started="$pid $started"
}

# stop PID: SIGTERM, SIGKILL when that is not followed within ten seconds. The child's exit status,
# 137 when it had to be killed.
stop()
{
    left=
    for one in $started; do
        [ "$one" = "$1" ] || left="$left $one"
    done
    started=$left
    kill -TERM "$1" 2>/dev/null
    tries=0
    while alive "$1" && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    if alive "$1"; then
        echo "process $1 had to be killed"
        kill -KILL "$1"
    fi
    wait "$1" 2>/dev/null
}

# alive PID: runs; a child that ended and was not waited for is not alive.
alive()
{
    case $(ps -o stat= -p "$1" 2>/dev/null) in
    '' | Z*) return 1 ;;
    esac
}

# wait_for SECONDS COMMAND...: tries the command until it succeeds, at most that long.
wait_for()
{
    wait_end=$(($(date +%s) + $1))
    shift
    until "$@" >wait_for.out 2>&1; do
        if [ "$(date +%s)" -ge "$wait_end" ]; then
            echo "waited in vain for: $*"
            cat wait_for.out
            return 1
        fi
        sleep 0.1
    done
}
