#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# clang.sh SOURCE FOLDER LIST: the library built with clang in FOLDER exports LIST too. Status 77: clang is not
# installed.
if ! command -v clang >/dev/null || ! command -v clang++ >/dev/null; then
    echo "no clang and clang++ on this machine: the library cannot be built with them"
    exit 77
fi
cmake -G Ninja -S "$1" -B "$2" -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release \
    -DQUOIT_TESTS=OFF -DQUOIT_WERROR=OFF >"$2.log" 2>&1 && cmake --build "$2" --target shmem >>"$2.log" 2>&1 || {
    tail -40 "$2.log"
    exit 1
}
exec python3 -B "$(dirname "$0")/abi.py" symbols "$3" "$2/lib/libshmem.so"
