#!/bin/sh
# tools/ctest_twice.sh BUILD [ctest options]: all tests, several at once. When few fail, those run
# once more, alone and one after the other: a test that only failed because the others kept the
# machine busy does not stop a change, but it is named at the end, where it is seen: fix it.
# Stores of the tests are in memory where there is room, since waiting for a disk tests nothing:
# what a disk may do is simulated (tests/store), and `make faults` and `make bench` use the real one.
set -u
build=$1
shift
if [ -z "${TMPDIR:-}" ] && room=$(df --output=avail -k /dev/shm 2> /dev/null) &&
    [ "${room##*[!0-9]}" -ge 8000000 ]; then
    TMPDIR=$(mktemp -d /dev/shm/perdura-tests-XXXX)
    export TMPDIR
    chmod 755 "$TMPDIR"
    trap 'rm -rf "$TMPDIR"' EXIT
    trap 'exit 1' INT TERM
fi
if ctest --test-dir "$build" --output-on-failure "$@"; then
    exit 0
fi
failed=$build/Testing/Temporary/LastTestsFailed.log
count=$(grep -c . "$failed" 2>/dev/null) || exit 1
[ "$count" -le 3 ] || exit 1
names=$(sed 's/^[0-9]*://' "$failed" | tr '\n' ' ')
printf '\n%s failed beside the others; once more, alone:\n' "$names"
ctest --test-dir "$build" --output-on-failure --rerun-failed || exit 1
printf '\nAll tests passed, but not at once: %s\n' "$names"
