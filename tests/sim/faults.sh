#!/bin/sh
# Shows that the scenario can fail: compiles one source file with a fault in it, links it before the
# archives, so that theirs is not taken, and says within how many seeds the scenario finds it.
#
#   sh tests/sim/faults.sh BUILD [SEEDS [NAME...]]
#
# BUILD has tests/sim/scenario_test built. Everything that a faulty file could do to this machine
# goes through the fakes: it has no files, no children and no network but the simulation's.
set -eu
[ $# -ge 1 ] || { sed -n '2,9p' "$0" >&2; exit 64; }
BUILD=$1 seeds=${2:-200}
shift
[ $# -eq 0 ] || shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
compile=$(sed -n 1p "$BUILD/flags") link=$(sed -n 2p "$BUILD/flags") libs=$(sed -n 3p "$BUILD/flags")
missed=0

# fault NAME FILE SED WHAT
fault()
{
    case " $wanted " in
    "  " | *" $1 "*) ;;
    *) return 0 ;;
    esac
    # The file lies where its own includes are found: they are all from the root of the tree.
    sed -e "$3" "$2" >"$tmp/fault.c"
    if cmp -s "$2" "$tmp/fault.c"; then
        echo "$1: the fault does not fit $2 any more" >&2
        exit 1
    fi
    # shellcheck disable=SC2086 # commands and flags
    $compile -w -c -o "$tmp/fault.o" "$tmp/fault.c"
    # shellcheck disable=SC2046,SC2086
    $link -o "$tmp/fault" "$BUILD"/obj/tests/sim/scenario_test.o \
        $(find "$BUILD/obj/tests/sim" -name '*.o' ! -name '*_test.o') "$tmp/fault.o" \
        -Wl,--start-group "$BUILD"/lib*.a -Wl,--end-group $libs
    first=$(MAKESPAN_SEEDS=$seeds MAKESPAN_STOP=1 timeout 600 "$tmp/fault" 2>&1 |
        sed -n 's/.*seed \([0-9]*\): \(.*\)/\1 \2/p' | sort -n | head -n 1)
    if [ -n "$first" ]; then
        echo "$1: found with seed ${first%% *}: ${first#* } ($4)"
    else
        echo "$1: NOT FOUND with $seeds seeds ($4)"
        missed=1
    fi
}

wanted="$*"
fault ack-early coordinator/coord.c \
    '/^    err = plan_failed(c->plan);/i\    ingest_committed(c->ingest); net_committed(c->net);' \
    'ACK leaves before the commit'
fault spool-no-sync worker/run/spool.c \
    '/^int spool_commit/,/^}/s/err = file_sync(spool->file);/err = 0;/' \
    'an attempt counts as spooled before it is on the disk'
fault journal-no-sync worker/run/journal.c \
    's/err = file_sync(j->files\[at\]);/err = 0;/' \
    'the journal is not synced'
fault store-no-sync coordinator/store/open.c \
    's/synchronous = FULL/synchronous = OFF/' \
    'the database is not synced'
fault attempt-uncounted coordinator/plan/send.c \
    's/run.attempts++;/run.attempts += run.attempts == 0;/' \
    'a run that is made again gets the same attempt number'
fault no-sweep worker/agent.c \
    's/return confine_sweep(agent->confine, on_swept, agent, diag);/struct confine_left none = {.names = ""}; on_swept(\&none, agent); return 0;/' \
    'what an earlier start left is not killed'
fault freed-early worker/run/feed.c \
    's/^    if (!a->whole)$/    if (a->seq + 1 < e->count)/' \
    'a spooled attempt is freed one record too early'
fault interrupted-lost worker/agent_queue.c \
    's/err = slot_report_interrupted(.*/err = 0;/' \
    'an attempt that died with its worker is not reported'
exit "$missed"
