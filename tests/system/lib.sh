# shellcheck shell=sh
# What the tests of a whole fleet share; each begins with:  . "$SRCDIR/tests/system/lib.sh"
#
# Owns: fleets (a coordinator and its operator's identity, all below one folder), workers (one folder
# each), what they print when a test fails, and the check that nothing is left running. Claims,
# waiting, and ending what was started are those of tests/harness/lib.sh.
#
# As root a test runs in a mount namespace of its own with an empty /run/lock, so that tests running
# side by side on this machine do not wait for each other's measurements.
#
# A fleet in the folder F: F/state (the coordinator's), F/home (the operator's), F/coordinator.yaml,
# F/coordinator.log, F/port, F/pid. A worker in W: W/worker.yaml, W/worker.log, W/pid.

if [ "$(id -u)" -eq 0 ] && [ -d /run/lock ] && [ -z "${MAKESPAN_TEST_NS-}" ] &&
    MAKESPAN_TEST_NS=1 unshare -m true 2>/dev/null; then
    MAKESPAN_TEST_NS=1 exec unshare -m --propagation private sh -c \
        'mount -t tmpfs -o mode=1777,size=1m locks /run/lock && exec sh "$@"' sh "$SRCDIR/${0#"$SRCDIR/"}"
fi

# shellcheck source=tests/harness/lib.sh
. "$SRCDIR/tests/harness/lib.sh"

: "${BUILD:?}"
unset MAKESPAN_HOME NO_COLOR
cd "$TMPDIR" || exit 1

# What is shown when a claim failed, and the claim that nothing runs on.
end_fleets()
{
    status=$?
    trap '' INT TERM HUP
    end_started
    left=$(left_running)
    left=$(for pid in $left; do ! alive "$pid" || echo "$pid"; done)
    if [ -n "$left" ]; then
        not_ok "nothing is left running"
        for pid in $left; do
            ps -o pid=,ppid=,stat=,args= -p "$pid" | sed 's/^/    left: /'
            kill -KILL "$pid" 2>/dev/null
        done
        status=1
    fi
    if [ "$claims_failed" -gt 0 ] || { [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; }; then
        for log in "$TMPDIR"/*.log "$TMPDIR"/*/*.log; do
            [ -s "$log" ] || continue
            echo "--- $log (its last lines)"
            tail -n 15 "$log"
        done
        [ "$status" -ne 0 ] || status=1
    fi
    exit "$status"
}
trap end_fleets EXIT

# The processes that carry this test's folder in their environment, this shell apart.
left_running()
{
    grep -l -a -F "$TMPDIR" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ pid _; do
        case $pid in
        "$$" | "$PPID") ;;
        *) ! alive "$pid" || echo "$pid" ;;
        esac
    done
}

# processes PATTERN: the command lines of this test's processes that match; fails when none does. Others
# may run the same test beside it.
processes()
{
    left_running | while IFS= read -r processes_pid; do
        tr '\0' ' ' <"/proc/$processes_pid/cmdline" 2>/dev/null && echo
    done | grep -e "$1"
}

# --- coordinators ---

# fleet_init F [NAME]: makes a fleet's authority and the admin's identity.
fleet_init()
{
    mkdir -p "$1" || return 1
    printf 'dir: %s/state\nlisten: 127.0.0.1:0\nbeat: 2s\n' "$TMPDIR/$1" >"$1/coordinator.yaml"
    MAKESPAN_HOME=$TMPDIR/$1/home makespan init "${2:-test}" --dir "$TMPDIR/$1/state" --name boss \
        >"$1/init.log" 2>&1 || { cat "$1/init.log"; return 1; }
}

# fleet_start F: the port of its first start is kept for later ones.
fleet_start()
{
    fleet_listen=127.0.0.1:0
    [ ! -s "$1/port" ] || fleet_listen=127.0.0.1:$(cat "$1/port")
    rm -f "$1/ready"
    start "$1/coordinator.$(date +%s%N).log" makespand -c "$TMPDIR/$1/coordinator.yaml" -l "$fleet_listen" \
        --port-file "$TMPDIR/$1/ready"
    echo "$pid" >"$1/pid"
    wait_for 20 test -s "$1/ready" || return 1
    cp "$1/ready" "$1/port"
    echo "127.0.0.1:$(cat "$1/port")" >"$1/home/address"
}

fleet_stop()
{
    stop "$(cat "$1/pid")"
}

# address F
address()
{
    echo "127.0.0.1:$(cat "$1/port")"
}

# ms F ARGUMENT...: the operator's command in that fleet.
ms()
{
    ms_fleet=$1
    shift
    MAKESPAN_HOME=$TMPDIR/$ms_fleet/home makespan "$@"
}

# --- workers ---

# worker_join F W HOST [CLASS]
worker_join()
{
    mkdir -p "$2" || return 1
    worker_token=$(ms "$1" token create --role worker ${4:+--class "$4"} 2>"$2/token.log") ||
        { cat "$2/token.log"; return 1; }
    makespan-worker join "$(address "$1")" "$worker_token" --name "$3" --dir "$TMPDIR/$2" \
        >"$2/join.log" 2>&1 || { cat "$2/join.log"; return 1; }
}

# worker_start W [ARGUMENT...]
worker_start()
{
    worker_dir=$1
    shift
    start "$worker_dir/worker.$(date +%s%N).log" makespan-worker -c "$TMPDIR/$worker_dir/worker.yaml" "$@"
    echo "$pid" >"$worker_dir/pid"
}

worker_stop()
{
    stop "$(cat "$1/pid")"
}

# start_on FIFO LOG COMMAND...: as start, with standard input from the FIFO, which is made here.
start_on()
{
    mkfifo "$1" || return 1
    start_log=$2
    start_fifo=$1
    shift 2
    "$@" >"$start_log" 2>&1 <"$start_fifo" &
    pid=$!
    started="$pid $started"
}

# kill_hard PIDFILE: SIGKILL, as a crash.
kill_hard()
{
    hard=$(cat "$1")
    left=
    for one in $started; do
        [ "$one" = "$hard" ] || left="$left $one"
    done
    started=$left
    kill -KILL "$hard" && { wait "$hard" 2>/dev/null; true; }
}

# is_up F HOST: the coordinator has its link.
is_up()
{
    ms "$1" host list --format json | host_field "$2" link | grep -qx up
}

# objects: every innermost JSON object of standard input as a line without blanks.
objects()
{
    tr -d ' \n' | sed 's/{/\n&/g'
}

# host_field HOST FIELD: of "host list --format json" on standard input.
host_field()
{
    objects | sed -n "s/^{.*\"host\":\"$1\".*\"$2\":\"*\([^\",}]*\).*/\1/p"
}

# fleet F [HOST]: all of it: a coordinator, one worker in F-HOST, and its link.
fleet()
{
    fleet_init "$1" && fleet_start "$1" && worker_join "$1" "$1-${2:-h1}" "${2:-h1}" &&
        worker_start "$1-${2:-h1}" && wait_for 20 is_up "$1" "${2:-h1}"
}

# --- sweeps ---

# sweep_is F NAME/N STATE
sweep_is()
{
    ms "$1" sweep list --format json | objects | grep -F "\"$2\"" | grep -q "\"state\":\"$3\""
}

# sweep_ended F SWEEP
sweep_ended()
{
    sweep_is "$1" "$2" "done" || sweep_is "$1" "$2" cancelled
}

# csv F SWEEP COLUMN...: those columns of the report, tab-separated, without the heading.
csv()
{
    csv_fleet=$1 csv_sweep=$2
    shift 2
    ms "$csv_fleet" report "$csv_sweep" --format csv | csv_columns "$@"
}

# csv_columns COLUMN...: of RFC 4180 on standard input (no line breaks within fields).
csv_columns()
{
    awk -v want="$*" '
        function split_csv(line, out,  n, i, c, quoted, field) {
            n = 0; field = ""; quoted = 0
            for (i = 1; i <= length(line); i++) {
                c = substr(line, i, 1)
                if (quoted && c == "\"" && substr(line, i + 1, 1) == "\"") { field = field c; i++ }
                else if (c == "\"") quoted = !quoted
                else if (c == "," && !quoted) { out[++n] = field; field = "" }
                else field = field c
            }
            out[++n] = field
            return n
        }
        NR == 1 { n = split_csv($0, name); for (i = 1; i <= n; i++) at[name[i]] = i
            m = split(want, w, " ")
            for (i = 1; i <= m; i++) if (!(w[i] in at)) { print "no column " w[i] >"/dev/stderr"; exit 1 }
            next }
        { split_csv($0, f); line = ""
          for (i = 1; i <= m; i++) line = line (i > 1 ? "\t" : "") f[at[w[i]]]
          print line }'
}

# says TEXT COMMAND...: the command's output and talk hold that text; passes both on.
says()
{
    says_text=$1
    shift
    "$@" >says.out 2>&1
    says_status=$?
    cat says.out
    grep -q -F -e "$says_text" says.out || { echo "it does not say: $says_text"; return 1; }
    return "$says_status"
}

# rss PID: resident memory in KiB.
rss()
{
    awk '/^VmRSS:/ { print $2 }' "/proc/$1/status"
}
