#!/bin/sh
# Includes go down the floors, and outside libraries stay in their rooms: floors.txt is the table.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

check()
{
    sources common proto worker coordinator | xargs awk -v table="$LINT/floors.txt" '
    # Is path below the place, or a file of that name?
    function within(path, place) {
        return path == place || index(path, place "/") == 1 || index(path, place ".") == 1 ||
            index(path, place "_") == 1
    }
    function bad(text) { print FILENAME ":" FNR ": " text; violations = 1 }
    function folder(path) { return sub(/\/[^\/]*$/, "", path) ? path : "" }
    function floor_of(path,  w, best) {
        best = ""
        for (w in may) if (within(path, w) && length(w) > length(best)) best = w
        return best != "" ? best : folder(path) in top ? folder(path) : ""
    }
    function check_quoted(header,  n, list, i, allowed) {
        if (header == "makespan_build.h" || floor_of(header) == place) return
        if (header !~ /\//) { bad("\"" header "\" is not named from the root of the tree"); return }
        n = split(place in may ? may[place] : top[place], list, " "); allowed = 0
        for (i = 1; i <= n; i++) {
            if (substr(list[i], 1, 1) == "-") {
                if (within(header, substr(list[i], 2))) allowed = 0
            } else if (within(header, list[i])) allowed = 1
        }
        if (!allowed) bad("a file of " place " may not include \"" header "\"")
    }
    function check_angled(header,  l, n, list, i) {
        if (header in anywhere) return
        for (l in library) {
            if (header != l && !(l ~ /\/$/ && index(header, l) == 1)) continue
            n = split(library[l], list, " ")
            for (i = 1; i <= n; i++) if (within(FILENAME, list[i])) return
            bad("<" header "> may not be included here, only in: " library[l])
            return
        }
        bad("<" header "> is in no line of tests/lint/floors.txt")
    }
    BEGIN {
        while ((getline line < table) > 0) {
            n = split(line, word, " ")
            if (n < 2 || word[1] ~ /^#/) continue
            rest = ""
            for (i = 3; i <= n; i++) rest = rest (i > 3 ? " " : "") word[i]
            if (word[1] == "folder") may[word[2]] = rest
            else if (word[1] == "files") top[word[2]] = rest
            else if (word[1] == "library") library[word[2]] = rest
            else if (word[1] == "anywhere") for (i = 2; i <= n; i++) anywhere[word[i]] = 1
            else { print table ": " line ": not a line of this table"; violations = 1 }
            rows++
        }
        if (rows < 10) { print table ":1: cannot be read"; violations = 1 }
    }
    FNR == 1 {
        place = floor_of(FILENAME)
        if (place == "") bad("no line of tests/lint/floors.txt says what this file may include")
    }
    /^[ \t]*#[ \t]*include/ {
        if (match($0, /"[^"]*"/)) check_quoted(substr($0, RSTART + 1, RLENGTH - 2))
        else if (match($0, /<[^>]*>/)) check_angled(substr($0, RSTART + 1, RLENGTH - 2))
        else bad("an include that this lint cannot read")
    }
    END { exit violations }' /dev/null
}

# include FILE HEADER
include()
{
    echo "#include $2" | plant "$1"
}

plants()
{
    include common/a.c '"common/a.h"'
    include common/loop.c '<event2/event.h>'
    include proto/tls_ctx.c '<openssl/ssl.h>'
    include worker/run/slot.c '"proto/msg.h"'
    include worker/agent.c '"worker/run/slot.h"'
    include coordinator/coord.c '"coordinator/net/listen.h"'
    include coordinator/model.h '"common/err.h"'
    include coordinator/store/db.c '<sqlite3.h>'
    include coordinator/plan/order.c '"makespan_build.h"'
    passes

    # violation FILE HEADER: found, then gone again
    violation()
    {
        include "$1" "$2"
        finds "^$1:1: .*"
        rm "$1"
    }
    violation worker/run/bad.c '"coordinator/store/db.h"'
    violation worker/bad.c '"coordinator/model.h"'
    violation worker/run/bad.c '"proto/conn.h"'
    violation worker/os/bad.c '"worker/run/slot.h"'
    violation worker/probe/bad.c '"worker/run/slot.h"'
    violation common/bad.c '"proto/msg.h"'
    violation coordinator/ctl/bad.c '"coordinator/store/db.h"'
    violation coordinator/bad.c '"coordinator/ctl/out.h"'
    violation coordinator/model_x.h '"coordinator/store/db.h"'
    violation coordinator/plan/bad.c '"coordinator/result/ingest.h"'
    violation coordinator/result/bad.c '"proto/msg.h"'
    violation worker/bad.c '<sqlite3.h>'
    violation common/str.c '<openssl/sha.h>'
    violation proto/frame.c '<msgpack.h>'
    violation common/bad.c '<curl/curl.h>'
    violation common/bad.c '"bad.h"'
    violation coordinator/news/bad.c '<sys/prctl.h>'
    violation coordinator/nowhere/bad.c '"common/err.h"'
}

lint_main
