# shellcheck shell=sh
# A real build swept on a fleet and by `makespan local`, and what the table must say of it. Read behind
# lib.sh by the tests that have such a build.

# real_claims CSV TABLE: -O2 takes more CPU time than -O0, a single job takes about one CPU, none is a
# point of its own.
real_claims()
{
    csv_columns variant jobs counted real_ns user_ns sys_ns foreign_ns <"$1" >real.tsv
    claim "every cell has its three runs" awk -F '\t' -v file="$2" '
        $3 == 1 { n[$1 " " $2]++ }
        END { for (c in n) { cells++; if (n[c] != 3) { print c, n[c]; bad = 1 } }
              if (cells != 8) { print cells " cells"; bad = 1 } exit bad }' real.tsv
    for jobs in none 1 2 3; do
        claim "user + sys of -O2 is above that of -O0, jobs $jobs" awk -F '\t' -v jobs="$jobs" '
            $3 == 1 && $2 == jobs { sum[$1] += $5 + $6 }
            END { printf "O0 %.2f s, O2 %.2f s\n", sum["O0"] / 3e9, sum["O2"] / 3e9; exit !(sum["O2"] > sum["O0"]) }' real.tsv
    done
    claim "none is a row of its own beside -j1" sh -c '
        grep -q "h1  *(O0)" "$1" && grep -q "h1  *-j1  *(O0)" "$1" && test "$(grep -c "  h1  " "$1")" -eq 8' sh "$2"
    claim "one job takes at most one CPU" awk -F '\t' '
        $3 == 1 && $2 == 1 { cpu += $5 + $6; real += $4 }
        END { printf "%.0f %%\n", 100 * cpu / real; exit !(cpu > 0 && cpu <= 1.1 * real) }' real.tsv
    # What others took of the CPUs in the timed windows, as a share of one CPU.
    others=$(awk -F '\t' '$3 == 1 && $2 == 1 { o += $7; real += $4 } END { printf "%.0f", 100 * o / real }' real.tsv)
    if [ "$others" -lt 25 ]; then
        claim "and close to it" awk -F '\t' '
            $3 == 1 && $2 == 1 { cpu += $5 + $6; real += $4 }
            END { printf "%.0f %%\n", 100 * cpu / real; exit !(cpu >= 0.85 * real) }' real.tsv
    else
        ok "and close to it # SKIP other programs took $others % of a CPU meanwhile"
    fi
}

# real_build NAME SOURCE-LINE: with the commands in the files setup, reset, run, check.
real_build()
{
    real_name=$1
    {
        printf 'sweep: %s\nworkload:\n  source: %s\n' "$1" "$2"
        for key in setup reset run check; do
            printf '  %s: |\n' "$key"
            sed 's/^/    /' "$key"
        done
        cat <<'END'
  fingerprint: cc --version
variants:
  - {name: O0, env: {OPT: -O0}}
  - {name: O2, env: {OPT: -O2}}
hosts: [h1]
jobs: [none, 1, 2, 3]
repeat: {warmup: 1, until: 3}
END
    } >real.yaml

    fleet f || die "no fleet"
    claim "a sweep of $real_name on a fleet" ms f sweep run --wait real.yaml
    ms f report "$real_name" --format csv >fleet.csv
    ms f report "$real_name" >fleet.table
    cat fleet.table
    claim "no attempt failed" sh -c 'test "$(wc -l <fleet.csv)" -eq 33 && ! grep -q ",failed,\|,invalid," fleet.csv'
    real_claims fleet.csv fleet.table
    worker_stop f-h1
    fleet_stop f

    makespan local --format csv real.yaml >local.csv 2>local.log
    status=$?
    claim "the same through makespan local" test "$status" -eq 0
    own=$(hostname | sed 's/\..*//')
    sed -i "s/,$own,/,h1,/" local.csv
    claim "every cell has its three runs there too" test "$(csv_columns counted <local.csv | grep -c 1)" -eq 24
    claim "and nothing remains of it" sh -c '! ls -d "$TMPDIR"/makespan-local-* 2>/dev/null'
}
