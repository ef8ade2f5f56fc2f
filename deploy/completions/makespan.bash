# bash completion of makespan, makespand and makespan-worker. Names of sweeps and hosts are asked of
# the coordinator, which must answer within two seconds.

# _makespan_names NOUN MEMBER: what `makespan NOUN list` knows.
_makespan_names()
{
    timeout 2 makespan "$1" list --format json 2>/dev/null |
        sed -n "s/^ *\"$2\": \"\\([^\"]*\\)\".*/\\1/p" | sort -u
}

# _makespan_options NOUN [VERB]: the options of a command.
_makespan_options()
{
    case $1${2:+ $2} in
    local) echo "--set --class --format --keep" ;;
    init) echo "--dir --listen --address --name" ;;
    "token create") echo "--role --class --ttl --name --coordinator" ;;
    login) echo "--name --force" ;;
    "host list" | "host show" | "sweep list" | "sweep show") echo "--format --coordinator" ;;
    "sweep check" | "sweep plan") echo "--set --format --coordinator" ;;
    "sweep run") echo "--set --yes --wait --key --coordinator" ;;
    "sweep pause" | "sweep resume" | "sweep cancel" | "sweep retry") echo "--because --coordinator" ;;
    report) echo "--format --attempt --coordinator" ;;
    *) echo "--coordinator" ;;
    esac
}

_makespan()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local noun=${COMP_WORDS[1]} verb='' first=2 words=''
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "local init token login host sweep watch report -h -V" -- "$cur")
        return
    fi
    case $noun in
    host) words="list show drain resume label unlabel revoke" ;;
    sweep) words="check plan run list show pause resume cancel retry" ;;
    token) words="create" ;;
    esac
    if [ -n "$words" ]; then
        if [ "$COMP_CWORD" -eq 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "$words -h" -- "$cur")
            return
        fi
        verb=${COMP_WORDS[2]} first=3
    fi
    case $prev in
    --format | -f)
        words="table json"
        case $noun in report | local) words="table mail csv json markdown" ;; esac
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
        return
        ;;
    --role | -r)
        mapfile -t COMPREPLY < <(compgen -W "worker viewer submitter admin" -- "$cur")
        return
        ;;
    --keep | --dir | -d)
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --set | -s | --class | -c | --ttl | -t | --name | -n | --key | -k | --because | -b | --attempt | -a | --coordinator)
        return
        ;;
    esac
    case $cur in
    -*)
        mapfile -t COMPREPLY < <(compgen -W "$(_makespan_options "$noun" "$verb") --help" -- "$cur")
        return
        ;;
    esac
    case "$noun $verb" in
    "local " | "sweep check" | "sweep plan" | "sweep run")
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    "watch " | "report " | "sweep "*)
        [ "$verb" = list ] || mapfile -t COMPREPLY < <(compgen -W "$(_makespan_names sweep sweep)" -- "$cur")
        ;;
    "host "*)
        [ "$verb" = list ] || [ "$COMP_CWORD" -gt "$first" ] ||
            mapfile -t COMPREPLY < <(compgen -W "$(_makespan_names host host)" -- "$cur")
        ;;
    esac
}

_makespand()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    case $prev in
    -c | --config | --port-file)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    -d | --dir | --operator-dir)
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    -l | --listen | --address | --fleet | --operator)
        COMPREPLY=()
        return
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "--background --config --dir --listen --check --print --guard
        --port-file --init --fleet --operator-dir --operator --address --version --help" -- "$cur")
}

_makespan_worker()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    case $prev in
    -c | --config)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --dir)
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --name)
        COMPREPLY=()
        return
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "join run --background --config --guard --check --print --name
        --dir --version --help" -- "$cur")
}

complete -o filenames -F _makespan makespan
complete -o filenames -F _makespand makespand
complete -o filenames -F _makespan_worker makespan-worker
