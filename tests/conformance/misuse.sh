#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# misuse.sh TEXT COMMAND...: the command must fail, and say TEXT (a regular expression) on stderr.
text=$1
shift
said=$(timeout 15 "$@" 2>&1 >/dev/null)
status=$?
if [ $status -eq 0 ] || [ $status -eq 124 ]; then
    echo "status $status from: $*"
    echo "$said"
    exit 1
fi
if ! echo "$said" | grep -Eq -- "$text"; then
    echo "not said: $text"
    echo "said: $said"
    exit 1
fi
