#!/bin/sh
# The tables of makespan-protocol(7) are those of the files that the programs are compiled from.
# shellcheck source=tests/lint/lib
. "$(dirname "$0")/lib"

page=deploy/man/makespan-protocol.7

check()
{
    made=$(mktemp) || return 1
    if sh "$SRCDIR/deploy/man/protocol-tables" $page >"$made"; then
        awk -v page=$page '
            FNR == NR { made[FNR] = $0; n = FNR; next }
            made[FNR] != $0 || FNR > n { at = FNR; exit }
            END {
                if (!at && FNR < n) at = FNR + 1
                if (!at) exit 0
                print page ":" at ": is not as sh deploy/man/protocol-tables -w " page " makes it"
                exit 1
            }' "$made" $page
    else
        false
    fi
    result=$?
    rm -f "$made"
    return "$result"
}

plants()
{
    mkdir -p proto common
    cp "$SRCDIR"/proto/*.def proto/
    cp "$SRCDIR"/common/*.def common/
    plant $page <"$SRCDIR/$page"
    sh "$SRCDIR/deploy/man/protocol-tables" -w $page
    passes
    messages=$(sed -n 's/^MSG([0-9]*, \([A-Z_]*\),.*/\1/p' proto/schema.def)
    for message in $messages; do
        grep -q "^\.Ss $message (" $page || { echo "self-test: $message is not in the page"; exit 1; }
    done
    sed 's/^F(beat, 2, U64,/F(beat, 2, I64,/' "$SRCDIR/proto/schema.def" >proto/schema.def
    finds "^$page:[0-9]*: is not as"
    cp "$SRCDIR/proto/schema.def" proto/
    echo 'CLOSE(NEW, 99, 1, 1, "something new")' >>proto/close.def
    finds "^$page:[0-9]*: is not as"
    cp "$SRCDIR/proto/close.def" proto/
    echo "One more line." >>$page
    passes
    sed -i.old 's/^\.\\" end of table$/& /' $page
    finds "within a table"
}

lint_main
