#!/bin/sh
# Measures speed and size and prints each figure beside its limit. `make bench` calls it:
# tests/bench/run BUILD figures.sh
#
# The figures are ratios of two measurements in this run, counts, and sizes; MISSED stands behind one
# that is over its limit, "not measured" with the reason where something that it needs is not here.
# The last line is "N figures within their limits, N missed, N not measured".
# Exit status: 0 none missed, 1 some missed or failed.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

within=0 missed=0 absent=0
WORKERS=500

# figure COMMAND...: the command prints a figure and says by its status whether it is within.
figure()
{
    "$@" 2>&1
    case $? in
    0) within=$((within + 1)) ;;
    *) missed=$((missed + 1)) ;;
    esac
}

not_measured()
{
    echo "$1: not measured: $2"
    absent=$((absent + 1))
}

# limit NAME VALUE LIMIT UNIT
limit()
{
    awk -v name="$1" -v value="$2" -v most="$3" -v unit="$4" 'BEGIN {
        ok = value != "" && value + 0 > 0 && value + 0 <= most + 0
        printf "%s: %s%s, limit %s%s: %s\n", name, value, unit, most, unit, ok ? "ok" : "MISSED"
        exit !ok }'
}

# settled PID: its resident memory in KiB, once it has not changed for a second.
settled()
{
    was=
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
        now=$(rss "$1")
        [ "$now" != "$was" ] || break
        was=$now
        sleep 1
    done
    echo "$now"
}

mb()
{
    awk -v kib="$1" 'BEGIN { printf "%.2f", kib * 1024 / 1000000 }'
}

idle_worker()
{
    worker_start one-h1 && wait_for 20 is_up one h1 || return 1
    worker_kib=$(settled "$(cat one-h1/pid)")
    worker_stop one-h1
    start_on bare.in bare.out "$BUILD/tests/bench/bare_client" 127.0.0.1 "$(cat one/port)" one-h1/key.pem one-h1/cert.pem one-h1/authority.pem
    bare=$pid
    exec 7>bare.in
    wait_for 20 grep -q connected bare.out || return 1
    bare_kib=$(settled "$bare")
    exec 7>&-
    echo "idle worker $worker_kib KiB, bare client $bare_kib KiB of resident memory"
    limit "idle worker of this machine, times a bare TLS client with the same libraries" \
        "$(awk -v a="$worker_kib" -v b="$bare_kib" 'BEGIN { printf "%.2f", a / b }')" 1.20 ""
}

small_worker()
{
    program=$BUILD/i386/bin/makespan-worker-static
    mkdir -p small/bin && cp "$program" small/bin/makespan-worker || return 1
    start one-h1/small.log small/bin/makespan-worker -c "$TMPDIR/one-h1/worker.yaml"
    small=$pid
    wait_for 20 is_up one h1 || return 1
    small_kib=$(settled "$small")
    small_anon=$(awk '/^RssAnon:/ { print $2 }' "/proc/$small/status")
    stop "$small"
    limit "idle worker, 32-bit and static, resident memory" "$(mb "$small_kib")" 6 " MB"
}

many_workers()
{
    i=0
    while [ "$i" -lt "$WORKERS" ]; do
        ms many token create --role worker || return 1
        i=$((i + 1))
    done >tokens
    before=$(settled "$(cat many/pid)")
    start_on idle.in idle.log "$BUILD/tests/bench/idle_workers" "$(address many)" tokens
    exec 8>idle.in
    wait_for 300 grep -q "^$WORKERS connected" idle.log || return 1
    after=$(settled "$(cat many/pid)")
    count=$(ms many host list --format json | tr -d '\n' | sed 's/"link": *"up"/\n&\n/g' | grep -c '^"link"')
    exec 8>&-
    [ "$count" -eq "$WORKERS" ] || { echo "only $count hosts are up"; return 1; }
    echo "coordinator $before KiB without, $after KiB with $WORKERS connected idle workers"
    limit "coordinator, a connected idle worker" \
        "$(awk -v a="$after" -v b="$before" -v n="$WORKERS" 'BEGIN { printf "%.1f", (a - b) * 1.024 / n }')" 45 " KB"
}

gaps()
{
    cat >gaps.yaml <<'END'
sweep: gaps
workload: {reset: "true", run: "true $JFLAG", check: "true"}
variants: [{name: a, env: {X: "1"}}, {name: b, env: {X: "2"}}]
hosts: [h1]
jobs: [none, 1, 2, 3, 4]
repeat: {warmup: 1, until: 10}
END
    worker_start one-h1 && wait_for 20 is_up one h1 || return 1
    ms one sweep run --wait gaps.yaml >gaps.out 2>&1 || { cat gaps.out; return 1; }
    ms one report gaps --format json >gaps.json || return 1
    worker_stop one-h1
    "$BUILD/tests/bench/gaps" <gaps.json
}

fleet_init one && fleet_start one && worker_join one one-h1 h1 || die "no fleet"
fleet_init many && sed -i '/^beat:/d' many/coordinator.yaml && fleet_start many || die "no fleet"

figure idle_worker
if (cd "$SRCDIR" && make --no-print-directory BUILD="$BUILD" worker32) >worker32.out 2>&1 &&
    [ -x "$BUILD/i386/bin/makespan-worker-static" ]; then
    figure small_worker
    figure limit "idle worker, 32-bit and static, anonymous memory" "$(mb "$small_anon")" 1 " MB"
else
    not_measured "idle worker, 32-bit and static, resident memory" "make worker32: $(tail -n 1 worker32.out)"
    not_measured "idle worker, 32-bit and static, anonymous memory" "likewise"
fi
figure many_workers
figure gaps
figure "$BUILD/tests/bench/draw"

echo "$within figures within their limits, $missed missed, $absent not measured"
claims_failed=$missed
finish
