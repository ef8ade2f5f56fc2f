#!/bin/sh
# A sweep of Linux 6.1 tinyconfig from Debian's linux-source-6.1, jobs 1, 2 and 4, on this machine alone.
# `make real` calls it: tests/bench/run BUILD kernel.sh
#
# Takes about half an hour on two cores. REAL_RUNS=N chooses another number of runs than one. The package
# is kept in $BUILD/cache. Exit status: that of `makespan local`; 77 the registry does not answer.
# shellcheck source=tests/system/lib.sh
. "$SRCDIR/tests/system/lib.sh"
# shellcheck source=tests/system/debian.sh
. "$SRCDIR/tests/system/debian.sh"

cache=$BUILD/cache/linux-source-6.1
if [ ! -s "$cache/.complete" ]; then
    debian_open "$TMPDIR/debian" || skip "linux-source-6.1 was not fetched: the registry does not answer"
    rm -rf "$cache"
    debian_package linux-source-6.1 "$cache" || die "the package linux-source-6.1 cannot be fetched"
    echo fetched >"$cache/.complete"
fi
archive=$(ls "$cache"/usr/src/linux-source-6.1.tar.*)
cat >kernel.yaml <<END
sweep: kernel
workload:
  name: tinyconfig
  source: {archive: $archive}
  setup: make -s -C linux-source-6.1 tinyconfig
  reset: make -s -C linux-source-6.1 clean
  run: make -s -C linux-source-6.1 \$JFLAG vmlinux
  check: test -s linux-source-6.1/vmlinux
  fingerprint: cc --version; make --version
  timeout: {setup: 30m, run: 4h}
jobs: [1, 2, 4]
repeat: {warmup: 0, until: ${REAL_RUNS:-1}}
END
makespan local kernel.yaml
exit
