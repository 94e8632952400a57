#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# misuse.sh TEXT COMMAND... CASE: the command must fail with TEXT (a regular expression) on stderr, followed by the line
# of the program that made the wrong call: one of the function CASE, or of main or of a thread function. MISUSE_NEXT: a
# regular expression for the line after TEXT. MISUSE_RUNS=N: it may say that in the last of N runs. A run has 60 s, times
# TEST_SLOWDOWN, which tests/load/load.py sets.
text=$1
shift
for case; do :; done

run() {
    said=$(timeout $((60 * ${TEST_SLOWDOWN:-1})) "$@" 2>&1 >/dev/null)
    status=$?
    if [ $status -eq 0 ] || [ $status -eq 124 ]; then
        echo "status $status from: $*"
        echo "$said"
        exit 1
    fi
}

says_text() { # variables of a position-independent program appear as PROGRAM+0x4010
    echo "$said" | sed 's/conformance_misuse+0x/0x/g' | grep -E -A1 -- "$text" | grep -Eq -- "${MISUSE_NEXT:-$text}"
}

says_line() {
    case $case in # a tail call in its last statement may appear instead
    check_free_twice) own="$case|free_twice" ;;
    check_malloc_size) own="$case|different_sizes" ;;
    *) own=$case ;;
    esac
    functions="$own|main|[a-z]+_in_thread|use_private_ctx|check_second_thread"
    echo "$said" | grep -Eq "^  at ($functions)\(\) misuse\.c:[0-9]+$"
}

for _ in $(seq "${MISUSE_RUNS:-1}"); do
    run "$@"
    says_text && break
done
if ! says_text; then
    echo "not said: $text"
    echo "said: $said"
    exit 1
fi
case $case in
check_store_after_free | check_store_after_large_free) exit 0 ;; # detected at the end of the program, where no line made a call
check_serialized_ctx) exit 0 ;;   # two threads are in the library, and the name of only one call is recorded
esac
if command -v addr2line >/dev/null && ! says_line; then
    for _ in 1 2 3; do # addr2line has 1.5 s, which may be short on a busy machine
        run "$@"
        says_line && break
    done
    says_line || { echo "the line of the wrong call is not said: $said"; exit 1; }
fi
