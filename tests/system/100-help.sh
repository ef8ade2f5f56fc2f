#!/bin/sh
# Every program and every verb explains itself, and refuses what it does not know with the nearest name.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"

for program in makespan makespand makespan-worker; do
    claim "$program -h" says "usage: $program" "$program" -h
    claim "$program -V" says "$program " "$program" -V
    claim "$program: an unknown option is usage" exits 64 "$program" --no-such-option
done

verbs=$(makespan -h | sed -n 's/^  \([a-z][a-z]*\( [a-z][a-z]*\)*\)\( [A-Z].*\)*  .*/\1/p' | grep -v '^makespan')
claim "the verbs are listed" sh -c 'echo "$1" | grep -x "sweep run" && test "$(echo "$1" | wc -l)" -ge 20' sh "$verbs"
while IFS= read -r verb; do
    # shellcheck disable=SC2086 # two words
    claim "makespan $verb -h" says "usage: makespan $verb" makespan $verb -h
    # shellcheck disable=SC2086
    claim "makespan $verb: an unknown option is usage" exits 64 makespan $verb --no-such-option
done <<END
$verbs
END
for noun in token host sweep; do
    claim "makespan $noun -h" says "usage: makespan" makespan "$noun" -h
    claim "makespan $noun alone is usage" exits 64 makespan "$noun"
done
claim "an unknown command is usage, with the nearest" says "did you mean sweep" exits 64 makespan swep
claim "an unknown verb is usage, with the nearest" says "did you mean run" exits 64 makespan sweep rnu
claim "nothing is usage" exits 64 makespan
claim "a missing argument is usage" exits 64 makespan report
claim "one argument too many is usage" exits 64 makespan report a b
claim "an unknown format is usage" exits 64 makespan report a --format xml
claim "an unknown format of a list is usage too" says "table and json" exits 64 makespan host list --format xml

mkdir empty
claim "without an identity it says how to get one" \
    says "makespan login" exits 3 env MAKESPAN_HOME="$TMPDIR/empty" makespan host list
claim "a worker that has not joined says how" says "makespan-worker join" exits 3 \
    sh -c 'printf "dir: %s/none\ncoordinator: 127.0.0.1:1\n" "$TMPDIR" >none.yaml; makespan-worker -c none.yaml'
claim "a coordinator without a fleet says how to make one" says "init" exits 3 makespand -d "$TMPDIR/none" -l 127.0.0.1:0

cat >bad.yaml <<'END'
listn: :7443
beat: 3
END
claim "an unknown key of makespand.yaml: place and nearest name" says "bad.yaml:1:1: " exits 64 makespand -n -c bad.yaml
claim "the nearest name" says "listen" exits 64 makespand -n -c bad.yaml
claim "all mistakes at once" says "bad.yaml:2:" exits 64 makespand -n -c bad.yaml
claim "the same of worker.yaml" says "bad.yaml:1:1: " exits 64 makespan-worker -n -c bad.yaml
finish
