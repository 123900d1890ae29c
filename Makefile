# The commands people type. CMake and Ninja do the work; everything is built below build*/.
BUILD ?= build
PREFIX ?= /usr/local
# Debian's has the packages that deps-test installs.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
JOBS ?= $(shell nproc)
# Most tests wait most of the time: five at once leave two cores half idle.
TESTS_AT_ONCE ?= $(shell expr 3 \* $$(nproc))

all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) --target perdura perdura_shared perdura_static

$(BUILD)/build.ninja: CMakeLists.txt cmake/tests.cmake cmake/install.cmake cmake/dashboard.cmake cmake/hardening.cmake \
		cmake/grpc.cmake
	@sh tools/deps.sh build
	@cmake -S . -B $(BUILD) -G Ninja > $(BUILD).log 2>&1 || (cat $(BUILD).log; exit 1)
	@rm -f $(BUILD).log

# The server with a demonstration, on a fresh store that goes away with it.
run: all
	@store=$$(mktemp -d); trap 'rm -rf "$$store"' EXIT; trap : INT TERM; \
	$(BUILD)/perdura serve --demo --store "$$store/demo.db" $(ARGS)

# Everything that must hold before a change lands: both compilers, every test.
test: deps-test
	@cmake -S . -B $(BUILD) -G Ninja > /dev/null
	@cmake --build $(BUILD)
	@cmake -S . -B $(BUILD)-faults -G Ninja -DPERDURA_FAULTS=ON \
	-DPERDURA_DASHBOARD=OFF > /dev/null
	@cmake --build $(BUILD)-faults --target perdura
	@CC=clang cmake -S . -B $(BUILD)-clang -G Ninja -DPERDURA_DASHBOARD=OFF > /dev/null
	@cmake --build $(BUILD)-clang --target perdura
	@PERDURA_FAULTS_BUILD=$(CURDIR)/$(BUILD)-faults \
	sh tools/ctest_twice.sh $(BUILD) -j $(TESTS_AT_ONCE)

test-asan: deps-test
	@cmake -S . -B $(BUILD)-asan -G Ninja -DCMAKE_BUILD_TYPE=Debug -DPERDURA_FAULTS=ON \
	-DPERDURA_SANITIZE=address,undefined > /dev/null
	@cmake --build $(BUILD)-asan
	@PERDURA_FAULTS_BUILD=$(CURDIR)/$(BUILD)-asan UBSAN_OPTIONS=halt_on_error=1 \
	ctest --test-dir $(BUILD)-asan --output-on-failure -j $(JOBS)

test-tsan: deps-test
	@cmake -S . -B $(BUILD)-tsan -G Ninja -DCMAKE_BUILD_TYPE=Debug -DPERDURA_FAULTS=ON \
	-DPERDURA_SANITIZE=thread > /dev/null
	@cmake --build $(BUILD)-tsan
	@PERDURA_FAULTS_BUILD=$(CURDIR)/$(BUILD)-tsan TSAN_OPTIONS=halt_on_error=1 \
	ctest --test-dir $(BUILD)-tsan --output-on-failure -j $(JOBS)

# Fuzzing with libFuzzer: make fuzz [TIME=60] runs each target that long.
TIME ?= 60
fuzz: deps-test
	@CC=clang cmake -S . -B $(BUILD)-fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DPERDURA_FUZZ=ON \
	-DPERDURA_DASHBOARD=OFF -DPERDURA_SANITIZE=address,undefined,fuzzer-no-link > /dev/null
	@cmake --build $(BUILD)-fuzz --target $(notdir $(basename $(wildcard tests/fuzz/*_fuzz.c)))
	@for target in $(BUILD)-fuzz/*_fuzz; do name=$$(basename $$target _fuzz); \
	dict=tests/fuzz/$$name.dict; [ -f $$dict ] && dict=-dict=$$dict || dict=; \
	mkdir -p $(BUILD)-fuzz/corpus/$$name; \
	$$target $$dict -max_total_time=$(TIME) $(BUILD)-fuzz/corpus/$$name \
	tests/fuzz/corpus/$$name || exit 1; done

# Lines and branches of src/ that the tests run, into reports/coverage.json; 2 when below the goals.
coverage: deps-test
	@$(PYTHON) tools/coverage.py --build $(BUILD)-coverage --jobs $(JOBS) $(ARGS)

# The fault campaign: continues from its ledger (reports/faults.jsonl), writes docs/faults.md.
# make faults ARGS="--parts kills,stops" runs some parts, ARGS=--report-only none.
faults: deps-test
	@cmake -S . -B $(BUILD) -G Ninja > /dev/null
	@cmake --build $(BUILD)
	@cmake -S . -B $(BUILD)-faults -G Ninja -DPERDURA_FAULTS=ON \
	-DPERDURA_DASHBOARD=OFF > /dev/null
	@cmake --build $(BUILD)-faults --target perdura
	@PERDURA_BUILD=$(CURDIR)/$(BUILD) PERDURA_FAULTS_BUILD=$(CURDIR)/$(BUILD)-faults \
	$(PYTHON) tests/campaign/faults.py $(ARGS)

# The models of leases, leadership and lost answers (model/README.md), checked with spin: what must
# hold does, what is left out on purpose is found. ARGS=--large takes minutes and 4 GB.
model:
	@sh tools/deps.sh model
	@python3 model/check.py $(ARGS)

# Everything a long life has, at half load, and the question whether anything grows.
MINUTES ?= 60
soak: all
	$(PYTHON) tests/campaign/soak.py --minutes $(MINUTES) $(ARGS)

# The bare limit, Perdura and its peers in turns, on the disk of this folder; docs/benchmarks.md is
# written from it. make bench [ARGS="--turns 5 --only raw,own --quick"]; see bench/run.py.
BENCH_PROGRAMS = raw_sync raw_sqlite raw_pg http_load lib_load clock_handler cron_next
bench: all
	@cmake --build $(BUILD) --target $(BENCH_PROGRAMS)
	@! grep -q '^build instructions:' $(BUILD)/build.ninja || cmake --build $(BUILD) --target instructions
	@! grep -q '^build call_peer:' $(BUILD)/build.ninja || cmake --build $(BUILD) --target call_peer call_load
	@$(PYTHON) bench/run.py --build $(BUILD) $(ARGS)

# Is the rate still the same with a million waiting and five million ended, on SQLite and on
# PostgreSQL? Many minutes, and 12 GB for a while.
bench-growth: all
	@cmake --build $(BUILD) --target $(BENCH_PROGRAMS)
	@$(PYTHON) bench/run.py --build $(BUILD) --only growth,pg-growth $(ARGS)

# Do claims cost more beside a million waiting tasks of a type that no worker serves, on both stores?
bench-unserved: all
	@cmake --build $(BUILD) --target $(BENCH_PROGRAMS)
	@$(PYTHON) bench/run.py --build $(BUILD) --only unserved $(ARGS)

# Do tables on PostgreSQL stay as they should while tasks come and go at a steady rate?
CHURN_MINUTES ?= 30
bench-churn: all
	@cmake --build $(BUILD) --target $(BENCH_PROGRAMS)
	@$(PYTHON) bench/run.py --build $(BUILD) --only churn --minutes $(CHURN_MINUTES) $(ARGS)

# The calendar against brute force in every zone over 2000 to 2100 and against other calendars; about
# 25 minutes of two idle cores, continues where it stopped, writes docs/calendar-proof.md.
calendar-proof: deps-test
	@cmake -S . -B $(BUILD) -G Ninja > /dev/null
	@cmake --build $(BUILD) --target calendar_proof calendar_proof_seconds \
	calendar_probe cron_next
	@$(PYTHON) tests/calendar/proof.py --build $(BUILD) --jobs $(JOBS) $(ARGS)

# clang-tidy over everything; about three minutes on two cores.
lint: deps-test
	@CC=clang cmake -S . -B $(BUILD)-clang -G Ninja -DPERDURA_DASHBOARD=OFF > /dev/null
	@cmake --build $(BUILD)-clang --target perdura
	@git ls-files 'src/*.c' | xargs -P $(JOBS) -n 8 clang-tidy -p $(BUILD)-clang --quiet

# The pictures of the dashboard in docs/images, of a server that is made busy for them.
screenshots: all deps-test
	@sh tests/browser/packages.sh $(BUILD)/browser
	@PERDURA_BUILD=$(CURDIR)/$(BUILD) node tests/browser/screenshots.mjs docs/images

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

deps-test:
	@sh tools/deps.sh test

clean:
	rm -rf $(BUILD) $(BUILD)-faults $(BUILD)-clang $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz \
	$(BUILD)-coverage

.PHONY: all run test test-asan test-tsan fuzz coverage faults model bench bench-growth bench-unserved \
	bench-churn soak calendar-proof lint screenshots install deps-test clean
