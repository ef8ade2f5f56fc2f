#!/bin/sh
# The units of systemd are well-formed, and a worker's lets a build have all the processes it wants.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

# The programs need not be installed here.
check()
{
    copies=$(mktemp -d) || return 1
    result=0
    for unit in deploy/systemd/*.service; do
        [ -f "$unit" ] || continue
        sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$unit" >"$copies/${unit##*/}"
        if ! said=$(systemd-analyze verify --man=no --recursive-errors=one "$copies/${unit##*/}" 2>&1) ||
            [ -n "$said" ]; then
            echo "$unit:1: $said"
            result=1
        fi
        case $unit in
        *worker*)
            for limit in TasksMax=infinity KillMode=mixed Delegate=yes; do
                grep -qx "$limit" "$unit" || { echo "$unit:1: no $limit"; result=1; }
            done
            ;;
        esac
    done
    rm -rf "$copies"
    return "$result"
}

plants()
{
    printf '[Service]\nExecStart=/no/program -x\n' | plant deploy/systemd/a.service
    passes
    printf '[Service]\nExecStart=/no/program\nTasksMux=infinity\n' | plant deploy/systemd/b.service
    finds '^deploy/systemd/b.service:1: .*TasksMux'
    rm deploy/systemd/b.service
    printf '[Service]\nExecStart=/no/program\nKillMode=mixed\nDelegate=yes\n' |
        plant deploy/systemd/a-worker.service
    finds '^deploy/systemd/a-worker.service:1: no TasksMax=infinity'
}

if ! command -v systemd-analyze >/dev/null 2>&1; then
    echo "systemd-analyze is not there"
    exit 77
fi
lint_main
