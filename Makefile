# Makespan's build, for GNU make and bmake.
#
#   make                    the three programs, in $(BUILD)/bin
#   make test               installs what the tests need, builds, lints, runs every test
#   make quickstart         a fleet of one on this machine, a sweep of a real build, its table
#   make bench              speed and size, each figure beside its limit
#   make real               a sweep of Linux 6.1 tinyconfig on this machine: half an hour
#   make install            PREFIX=/usr/local DESTDIR=
#
#   make lint, check-unit, check-sim, check-fuzz, check-system     one kind of test
#   make unit T=common/jobs       one unit test program       (also: sim T=fleet, system T=010-help)
#   make fuzz T=frame SECONDS=60  one fuzz target under libFuzzer
#   make test-asan, test-clang    the tests under the sanitizers; built by clang
#   make test32             the unit tests as 32-bit programs for the Pentium Pro
#   make worker32           the worker as such a program, static: $(BUILD)/i386/bin/makespan-worker-static
#   make worker-static      the worker of this machine, static: $(BUILD)/bin/makespan-worker-static
#
# Variables: BUILD (folder for everything that is made), CC, CFLAGS, LDFLAGS, WERROR=-Werror, V=1
# (shows the commands), SAN=address,undefined; each may also be set in the environment.
#
# Sources are found by folder: deploy/rules.sh writes $(BUILD)/rules.mk, a plain rule for each
# object, library and program, before make reads on. A new source file needs no edit here.

all: programs

BUILD  != echo "$${BUILD:-build}"
CC     != echo "$${CC:-cc}"
CFLAGS != echo "$${CFLAGS--O2 -g}"
LDFLAGS != echo "$${LDFLAGS:-}"
WERROR != echo "$${WERROR:-}"
SAN    != echo "$${SAN:-}"
V      != echo "$${V:-}"
PREFIX = /usr/local
DESTDIR =
T =
SECONDS = 60
FUZZ_ARGS =

# For a foreign target: flags for every compilation and link, and a sysroot.
ARCHFLAGS =
SYSROOT =

RULES != BUILD='$(BUILD)' CC='$(CC)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' WERROR='$(WERROR)' \
    SAN='$(SAN)' V='$(V)' ARCHFLAGS='$(ARCHFLAGS)' SYSROOT='$(SYSROOT)' \
    sh deploy/rules.sh
include $(BUILD)/rules.mk
include $(BUILD)/deps.mk

.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: all programs tests test check lint check-unit check-sim check-fuzz check-system \
    unit sim system fuzz test-asan test-clang test32 worker32 worker-static unit-tests test-tools quickstart bench real \
    install clean

# GNU make alone has MAKE_HOST, and only it would print the names of the folders it enters.
QUIET = $(MAKE_HOST:%=--no-print-directory)

# For a make below this one: as many jobs as there are CPUs, unless jobs were asked for above.
SETJ = j=; case " $$MAKEFLAGS" in *" -j"*|*" -J"*|*--jobserver*) ;; \
    *) j=-j$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) ;; esac

RUN_TESTS = sh tests/harness/run-tests -b '$(BUILD)'

programs: $(PROGRAMS)

tests: $(LIBRARIES) $(PROGRAMS) $(UNIT_TESTS) $(SIM_TESTS) $(FUZZ_TESTS) $(TEST_TOOLS)

test:
	@sh deploy/deps --test
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)' tests
	@$(RUN_TESTS) all

check: tests
	@$(RUN_TESTS) all

lint: $(LIBRARIES) $(PROGRAMS)
	@$(RUN_TESTS) lint

unit-tests: $(UNIT_TESTS)

test-tools: $(TEST_TOOLS)

check-unit: unit-tests
	@$(RUN_TESTS) unit

check-sim: $(SIM_TESTS)
	@$(RUN_TESTS) sim

check-fuzz: $(FUZZ_TESTS)
	@$(RUN_TESTS) fuzz

check-system: $(PROGRAMS) $(TEST_TOOLS)
	@$(RUN_TESTS) system

unit: $(BUILD)/tests/unit/$(T)_test
	@$(RUN_TESTS) -v unit '$(BUILD)/tests/unit/$(T)_test'

sim: $(BUILD)/tests/sim/$(T)_test
	@$(RUN_TESTS) -v sim '$(BUILD)/tests/sim/$(T)_test'

system: $(PROGRAMS) $(TEST_TOOLS)
	@$(RUN_TESTS) -v system 'tests/system/$(T).sh'

# The seeds of the tree are only read; what libFuzzer finds stays in $(BUILD)-fuzz/corpus.
fuzz:
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)-fuzz' CC=clang SAN=fuzzer-no-link,address,undefined \
	    '$(BUILD)-fuzz/libfuzzer/fuzz_$(T)'
	@mkdir -p '$(BUILD)-fuzz/corpus/$(T)' 'tests/fuzz/corpus/$(T)'
	'$(BUILD)-fuzz/libfuzzer/fuzz_$(T)' -max_total_time=$(SECONDS) $(FUZZ_ARGS) \
	    -artifact_prefix='$(BUILD)-fuzz/' '$(BUILD)-fuzz/corpus/$(T)' 'tests/fuzz/corpus/$(T)'

# Which kinds of tests these two run.
KINDS = unit sim fuzz system

test-asan:
	@sh deploy/deps --test
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)-asan' SAN=address,undefined tests
	@sh tests/harness/run-tests -b '$(BUILD)-asan' -a $(KINDS)

test-clang:
	@sh deploy/deps --test --clang
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)-clang' CC=clang tests
	@sh tests/harness/run-tests -b '$(BUILD)-clang' $(KINDS)

I386 = CC=gcc SAN= ARCHFLAGS='-m32 -march=pentiumpro' SYSROOT='$(BUILD)/i386/sysroot'

test32:
	@sh deploy/deps --test --worker32
	@sh deploy/i386-sysroot '$(BUILD)/i386/sysroot' libcriterion-dev
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)/i386' $(I386) unit-tests
	@sh tests/harness/run-tests -b '$(BUILD)/i386' unit

worker32:
	@sh deploy/deps --worker32 --check
	@sh deploy/i386-sysroot '$(BUILD)/i386/sysroot'
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)/i386' $(I386) worker-static

worker-static: $(BUILD)/bin/makespan-worker-static

quickstart:
	@sh deploy/deps --quickstart
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)' programs
	@PATH="$$(cd '$(BUILD)/bin' && pwd):$$PATH" sh deploy/quickstart

bench:
	@sh deploy/deps --test
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)' programs test-tools
	@sh tests/bench/run '$(BUILD)' figures.sh

real:
	@sh deploy/deps --real
	@$(SETJ); $(MAKE) $(QUIET) $$j BUILD='$(BUILD)' programs
	@sh tests/bench/run '$(BUILD)' kernel.sh

install: programs
	@sh deploy/install '$(BUILD)' '$(DESTDIR)$(PREFIX)' '$(PREFIX)'

clean:
	@for d in '$(BUILD)' '$(BUILD)-asan' '$(BUILD)-clang' '$(BUILD)-fuzz' \
	    '$(BUILD)-bmake'; do \
	    if [ -f "$$d/.makespan-build" ]; then rm -rf "$$d"; fi; done
