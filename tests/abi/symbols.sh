#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh LIST LIBRARY: LIBRARY must export exactly LIST. "W" marks the weak names, on which a profiling tool may
# interpose.
nm -D --defined-only "$2" | awk '{ print $2, $3 }' | LC_ALL=C sort -k 2 | diff "$1" - && exit 0
echo "exports differ from $1: < missing, > not listed"
exit 1
