#!/bin/sh
# Functions and constructs that are not used here, by the table banned.txt; and no system test
# sleeps for a fixed time (waiting in steps for a condition is tests/harness's, its name wait_for).
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    wrong=0
    sources common proto worker coordinator tests | bare_c | awk -v table="$LINT/banned.txt" '
        function within(path, place) {
            return path == place || index(path, place "/") == 1 || index(path, place ".") == 1
        }
        BEGIN {
            while ((getline line < table) > 0) {
                if (line ~ /^#/ || line == "") continue
                if (split(line, column, "\t") != 4) { print table ": four columns: " line; bad = 1 }
                n++
                scope[n] = column[1]; regex[n] = column[2]; where[n] = column[3]; text[n] = column[4]
                gsub(/\\t/, "\t", regex[n])
            }
            if (n == 0) { print table ":1: cannot be read"; bad = 1 }
        }
        {
            file = $0; sub(/:.*/, "", file)
            code = substr($0, length(file) + 2); line = code; sub(/:.*/, "", line)
            code = substr(code, length(line) + 2)
            for (i = 1; i <= n; i++) {
                if (code !~ regex[i]) continue
                if (scope[i] == "tests" && file !~ /^tests\//) continue
                allowed = 0; m = split(where[i], list, " ")
                for (j = 1; j <= m; j++) if (within(file, list[j])) allowed = 1
                if (allowed) continue
                print file ":" line ": not used here: " text[i]
                bad = 1
            }
        }
        END { exit bad }' || wrong=1
    files tests/system | grep '\.sh$' | bare_sh | awk '
        /^[^:]*:[0-9]*:([^#]*[;&|({ \t])?sleep[ \t]/ {
            match($0, /^[^:]*:[0-9]*/)
            print substr($0, 1, RLENGTH) ": a test waits for a condition (wait_for), not for seconds"
            bad = 1
        }
        END { exit bad }' || wrong=1
    return "$wrong"
}

plants()
{
    plant common/a.c <<'C'
/* strcpy(a, b) in a comment; system("x") too
 * and sprintf() here */
void f(void) { g("strcpy(x) \" gets(y)"); my_system(); fgets(b); } // atoi(x)
char c = '"'; int d = strcmp("a", "b");
C
    plant tests/system/010-a.sh <<'SH'
# sleep 5
run="sleep 2"
cat >build.mk <<MK
all:
	sleep 1
MK
printf '#!/bin/sh
sleep 3
' >x
SH
    passes
    # violation FILE TEXT
    violation()
    {
        printf '\n%s\n' "$2" | plant "$1"
        finds "^$1:2: "
        rm "$1"
    }
    violation common/b.c 'strcpy(a, b);'
    violation common/b.c 'g("it\"s"); sprintf (a, b);'
    violation worker/b.c '/* x */ n = atoi(t);'
    violation worker/run/b.c 'system(t);'
    violation worker/b.h '#ifdef __linux__'
    violation worker/run/b.c '# if defined(__FreeBSD__)'
    violation coordinator/b.c 'setlocale(LC_ALL, "");'
    violation tests/unit/b_test.c 'usleep(10);'
    violation tests/system/020-b.sh 'sleep 1'
    violation tests/system/020-b.sh 'start & sleep 1'
}

lint_main
