#!/bin/sh
# Sources: a repository read by the coordinator, a work tree, a folder and an archive read by the
# operator's command, the host's own folder; and archives that would leave their tree.
#
# Bad input covered here: an archive with `..`, absolute names, links out, devices. Recipe 29: the archive
# and the unpacked tree are hashed by the worker; of `host_dir` the tree itself is asked.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

fleet f || die "no fleet"

repo()
{
    git -C repo -c user.name=t -c user.email=t@example.org "$@"
}
git init -q -b main repo && mkdir repo/sub && echo one >repo/file && echo "#!/bin/sh" >repo/sub/tool && chmod +x repo/sub/tool &&
    ln -s ../file repo/sub/link && repo add . && repo commit -q -m first || die "no repository"
first=$(repo rev-parse HEAD)
echo two >repo/file && repo commit -q -a -m second
second=$(repo rev-parse HEAD)
repo branch topic
tree=$(repo rev-parse 'HEAD^{tree}')

# sweep NAME SOURCE RUN [VARIANTS]
sweep()
{
    cat >"$1.yaml" <<END
sweep: $1
workload:
  source: $2
  run: $3
  check: test -x sub/tool && test -L sub/link && echo "file=\$(cat file)"
${4:-}
hosts: [h1]
jobs: [none]
repeat: {warmup: 0, until: 1}
END
}

sweep git "{git: $TMPDIR/repo}" 'test "$REV" != ""' "variants: [{name: a, rev: $first}, {name: b, rev: topic}]"
claim "a repository, read by the coordinator" ms f sweep run --wait git.yaml
ms f report git --format json >git.json
claim "each variant is built at its commit" sh -c "grep -q '\"file\": \"one\"' git.json && grep -q '\"file\": \"two\"' git.json"
claim "the full commits are in the report" sh -c "grep -q $first git.json && grep -q $second git.json"
claim "the unpacked tree has git's hash, as the worker computed it" grep -q "\"tree_seen\": \"$tree\"" git.json
claim "the worker hashed the archive" grep -q '"blob_seen": "[0-9a-f]\{64\}"' git.json
sweep range "{git: $TMPDIR/repo}" "true" "variants: [{rev: '$first..main'}]"
claim "a range of commits is a variant each" ms f sweep run --wait range.yaml
claim "named by its commit" test "$(csv f range variant)" = "$(echo "$second" | cut -c 1-12)"

echo three >repo/file
sweep work '{git: ., dirty: true}' "true"
claim "a work tree with its changes, read by the command" says "sending the archive of git: . at $(echo "$second" | cut -c 1-12) with what is not committed (" sh -c "cd repo && MAKESPAN_HOME='$TMPDIR/f/home' makespan sweep run --wait ../work.yaml"
ms f report work --format json >work.json
claim "has the changes" grep -q '"file": "three"' work.json
claim "and is marked so" grep -q '"dirty": true' work.json
sweep clean '{git: .}' "true"
claim "without dirty: what is committed" sh -c "cd repo && MAKESPAN_HOME='$TMPDIR/f/home' makespan sweep run --wait ../clean.yaml"
ms f report clean --format json >clean.json
claim "has no changes" grep -q '"file": "two"' clean.json
sweep dir "{dir: $TMPDIR/repo}" "true"
claim "a folder" says "sending the archive of dir: $TMPDIR/repo (" ms f sweep run --wait dir.yaml
tar -C repo --exclude .git -czf good.tar.gz .
sweep archive "{archive: $TMPDIR/good.tar.gz}" "true"
claim "an archive" says "sending the archive of archive: $TMPDIR/good.tar.gz (" ms f sweep run --wait archive.yaml
claim "the same archive is not sent again" sh -c "! MAKESPAN_HOME=f/home makespan sweep run --wait archive.yaml 2>&1 | grep 'sending the archive'"

# The host's own folder, allowed by the host alone.
sweep own "{host_dir: $TMPDIR/repo}" "true"
claim "the host's own folder is not allowed as it is" exits 3 ms f sweep run --wait own.yaml
claim "and it says what would allow it" says "allow.host_dir" ms f report own
worker_stop f-h1
printf 'allow:\n  host_dir: [%s]\n' "$TMPDIR/repo" >>f-h1/worker.yaml
worker_start f-h1
claim "the worker with other limits" wait_for 20 is_up f h1
claim "the host's own folder" ms f sweep run --wait own.yaml
ms f report own --format json >own.json
claim "what it is was asked of the folder" grep -q "\"tree_seen\": \"$second+dirty\"" own.json
claim "every report marks it" sh -c 'MAKESPAN_HOME=f/home makespan report own | grep -q -i "own folder\|host_dir\|host.s own"'

# Archives that would leave their tree, or make what no build needs.
mkdir -p bad/sub && echo evil >bad/evil
tar -P -C bad --transform 's,^evil,../../../evil-up,' -cf up.tar evil
tar -P -C bad --transform "s,^evil,$TMPDIR/evil-absolute," -cf absolute.tar evil
ln -s /etc/passwd bad/out && tar -C bad -cf link.tar out
ln -s ../../../.. bad/sub/up && tar -C bad -cf climb.tar sub
rm bad/sub/up bad/out
mkfifo bad/pipe && tar -C bad -cf pipe.tar pipe
archives="up absolute link climb pipe"
if [ "$(id -u)" -eq 0 ] && mknod bad/device c 1 3 2>/dev/null; then
    tar -C bad -cf device.tar device
    archives="$archives device"
fi
head -c 100000 /dev/urandom >noise.tar
printf 'not an archive' >text.tar
for name in $archives noise text; do
    printf 'sweep: bad-%s\nworkload: {source: {archive: %s}, run: "true"}\nhosts: [h1]\njobs: [none]\nrepeat: {warmup: 0, until: 1}\n' \
        "$name" "$TMPDIR/$name.tar" >"bad-$name.yaml"
    ms f sweep run --wait "bad-$name.yaml" >"bad-$name.out" 2>&1
    status=$?
    claim "archive $name: refused" test "$status" -eq 1 -o "$status" -eq 64
    if [ "$status" -eq 1 ]; then
        csv f "bad-$name" outcome text >"bad-$name.tsv"
        claim "archive $name: the attempt says why" grep -q '^failed.*archive' "bad-$name.tsv"
    fi
    [ "$status" -eq 1 ] && grep -q '^failed.*archive' "bad-$name.tsv" || cat "bad-$name.out" "bad-$name.tsv" 2>/dev/null
done
claim "nothing was written outside" sh -c '! ls -d evil-absolute f-h1/evil* evil-up /evil-up victim 2>/dev/null'
claim "the worker goes on" ms f sweep run --wait archive.yaml
finish
