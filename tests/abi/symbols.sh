#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh LIST LIBRARY: what LIBRARY exports must be LIST. "W" marks the names that a profiling tool may replace.
nm -D --defined-only "$2" | awk '{ print $2, $3 }' | LC_ALL=C sort -k 2 | diff "$1" - && exit 0
echo "exports differ from $1: < missing, > not listed"
exit 1
