#!/bin/sh
# deploy/quickstart, in a small form: twice in a row, ends with the table, leaves nothing running and
# nothing behind; from a tree with history, and from one without.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

export QUICKSTART_RUNS=1 QUICKSTART_JOBS=2
mkdir history && cp -R "$SRCDIR/common" "$SRCDIR/deploy" history/ || die "no tree"
commit()
{
    git -C history add -A && git -C history -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m "$1"
}
if git init -q history && commit first; then
    echo 'int broken(' >>history/common/str.c && commit "does not build"
    cp "$SRCDIR/common/str.c" history/common/ && commit last
    claim "from a tree with history" sh -c "cd history && sh deploy/quickstart >../one.out 2>&1" || tail -n 40 one.out
    claim "it ends with the table" sh -c 'grep -q "here  *-j2  *(older)  *1 " one.out && grep -q "here  *-j2  *(head)  *1 " one.out'
    claim "the older commit is the first that builds" grep -q "older (.*first)" one.out
    claim "progress was shown" grep -q "of 2 runs" one.out
    rm -rf history/.git
else
    not_ok "no repository can be made"
fi
claim "again, without history" sh -c "cd history && sh deploy/quickstart >../two.out 2>&1" || tail -n 40 two.out
claim "it ends with the table" sh -c 'grep -q "here  *-j2  *(plain)  *1 " two.out && grep -q "here  *-j2  *(fast)  *1 " two.out'
claim "nothing is left behind" sh -c '! ls -d "$TMPDIR"/makespan-quickstart.* 2>/dev/null'
finish
