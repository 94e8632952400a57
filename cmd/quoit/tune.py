#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quoit tune: measures the methods of copying between PEs of this machine with quoit perf --path, and stores which one each
size takes. Use: tune.py tune QUOIT [OPTION]...; QUOIT is the program that measures; cmd/quoit/python.c gives its own path."""
import argparse
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

METHODS = ("memcpy", "movsb", "stream", "cma")  # the first is what the others must beat
SIZES = [1 << shift for shift in range(17, 27)]  # the entries of the table: 128K to 64M, src/local/paths.h
KINDS = {"heap": "heap", "global": "globals"}  # of quoit perf, and of the table
PASSES = 2
GAIN_WANTED = 1.05  # ratio to memcpy overall that justifies leaving the default ...
LOSS_ALLOWED = 0.97  # ... and a minimum ratio at each size
# Beyond these the measurement shows the load of the machine: the share of its processors used by other processes, and
# the slowest pass of memcpy relative to its fastest, for the middle row.
LOST_ALLOWED, SPREAD_ALLOWED = 0.05, 1.20
BUSY = "the machine was too busy to tell the methods apart, so nothing is stored: {}; run it when nothing else computes, or with --force"


class Wrong(Exception):
    """Nothing can be measured or stored; the text says why."""


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="quoit tune", allow_abbrev=False,
        description="Measures each copy method between PEs of this machine with quoit perf, prints how each does beside "
        "memcpy, and stores which one a size takes in $XDG_CONFIG_HOME/quoit or ~/.config/quoit, where every job looks at "
        "start (quoit info paths). Best on a machine that does nothing else.")
    parser.error = lambda text: (sys.stderr.write(f"quoit tune: {text} (see --help)\n"), sys.exit(2))
    parser.add_argument("--dry-run", action="store_true", help="measure and print, but store nothing")
    parser.add_argument("--force", action="store_true", help="store also what was measured while others computed")
    parser.add_argument("--time", type=seconds, default=30, metavar="TIME", help="measure about so long (default 30s)")
    parser.add_argument("--memory", type=size, metavar="SIZE", help="of a buffer, at least 1M; sizes beyond half of it take "
                        "what the largest measured one takes; default: the last cache, from 128M to a 16th of the memory")
    return parser.parse_args(arguments)


def seconds(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h|)", text)
    value = float(match[1]) * {"ms": 1e-3, "min": 60, "h": 3600}.get(match[2], 1) if match else 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f'wants a time such as 30s, not "{text}"')
    return value


def size(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    value = int(match[1]) << {"K": 10, "M": 20, "G": 30}.get(match[2], 0) if match else 0
    if value < 1 << 20:
        raise argparse.ArgumentTypeError(f'wants a size of at least 1M, not "{text}"')
    return value


def size_text(value):
    return f"{value >> 20}M" if value >= 1 << 20 else f"{value >> 10}K"


def read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def topology(cpu):
    """/sys about a processor: the processors that share its last cache, the size of that in bytes, and the socket."""
    folder = f"/sys/devices/system/cpu/cpu{cpu}"
    caches = [f"{folder}/cache/{name}" for name in os.listdir(f"{folder}/cache") if name.startswith("index")] \
        if os.path.isdir(f"{folder}/cache") else []
    last = max(caches, key=lambda cache: int(read(f"{cache}/level") or 0), default="")
    cache_bytes = re.fullmatch(r"(\d+)K", read(f"{last}/size"))
    return read(f"{last}/shared_cpu_list"), int(cache_bytes[1]) << 10 if cache_bytes else 0, \
        read(f"{folder}/topology/physical_package_id")


def find_places():
    """A pair of processors for each kind of distance, by name, and the bytes of the last cache."""
    own, *others = sorted(os.sched_getaffinity(0))
    own_sharers, cache_bytes, own_socket = topology(own)
    places = {}
    for other in others:
        sharers, _, socket = topology(other)
        name = "same cache" if sharers == own_sharers else "other cache" if socket == own_socket else "other socket"
        places.setdefault(name, (own, other))
    return places or {"one processor": (own, own)}, cache_bytes


def busy_seconds(cpus):
    """Time that these processors spent for any process, or that the hypervisor took from them."""
    rows = [line.split() for line in read("/proc/stat").splitlines()]
    parts = [row[1:4] + row[6:9] for row in rows if row and row[0] in {f"cpu{cpu}" for cpu in cpus}]
    return sum(int(part) for row in parts for part in row) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_perf(quoit, method, cpus, run_seconds, memory, folder):
    """{(kind, cache, bytes): ns} of puts by one method; None if the kernel or the processor does not support it."""
    result = os.path.join(folder, "perf.json")
    sizes = ",".join(str(one) for one in SIZES if 2 * one <= memory)
    words = [quoit, "perf", "-n", "2", "--bind-to", "core", "--path", method, "--tests", "put", "--buffers", "heap,global",
             "--cache", "warm,cold", "--cold-bytes", str(memory), "--sizes", sizes, "--seconds", f"{run_seconds:.3f}",
             "--json", result]
    run = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                         preexec_fn=lambda: os.sched_setaffinity(0, set(cpus)))
    if run.returncode != 0 and "[Q0305]" in run.stderr:
        return None
    if run.returncode != 0:
        raise Wrong(f"quoit perf --path {method}: {run.stderr.strip() or f'status {run.returncode}'}")
    with open(result, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    return {(KINDS[row["buffers"]], row["cache"], row["bytes"]): row["ns"]["min"] for row in rows}


def measure(quoit, places, options, memory):
    """({place: {method: [a result of run_perf for each pass]}}, the largest share of the processors that other
    processes used in a run)"""
    results = {place: {method: [] for method in METHODS} for place in places}
    each = options.time / (PASSES * len(places) * len(METHODS))
    most = 0
    with tempfile.TemporaryDirectory(prefix="quoit-tune-") as folder:
        for place, method in PASSES * [(place, method) for place in places for method in METHODS]:
            cpus = places[place]
            begin, busy, own = time.monotonic(), busy_seconds(cpus), own_seconds()
            results[place][method].append(run_perf(quoit, method, cpus, each, memory, folder))
            lost = (busy_seconds(cpus) - busy - (own_seconds() - own)) / (time.monotonic() - begin) / len(set(cpus))
            if lost > LOST_ALLOWED and not options.force and not options.dry_run:
                raise Wrong(BUSY.format(f"others took {100 * lost:.0f} % of its processors"))
            most = max(most, lost)
    return results, most


def ratios(results, kind, bytes_, method):
    """The speed relative to memcpy: for each place, pass and use of the cache."""
    return [memcpy[key] / (other or {}).get(key, math.inf) for methods in results.values()
            for memcpy, other in zip(methods["memcpy"], methods[method])
            for key in memcpy if (key[0], key[2]) == (kind, bytes_)]


def choose(results, kind):
    """A method for each size. One that wins at a single size has won by chance: it must win at an adjacent one too."""
    best = []
    for bytes_ in SIZES:
        scores = {method: ratios(results, kind, bytes_, method) for method in METHODS[1:]}
        means = {method: statistics.geometric_mean(score) for method, score in scores.items()
                 if score and min(score) >= LOSS_ALLOWED}
        winner = max(means, key=means.get, default="memcpy")
        is_measured = any(scores.values())
        best.append((winner if means.get(winner, 0) > GAIN_WANTED else "memcpy") if is_measured else best[-1])
    return [method if method in best[max(at - 1, 0):at] + best[at + 1:at + 2] else "memcpy" for at, method in enumerate(best)]


def print_table(results, table):
    print(f"{'buffer':8} {'other PE':13} {'cache':5} {'size':>5} {'memcpy':>8}" + "".join(f" {m:>7}" for m in METHODS[1:]) +
          "  path\n" + " " * 39 + "GB/s" + 3 * "       x")
    for place, methods in results.items():
        for kind, cache, bytes_ in sorted(methods["memcpy"][0]):
            ns = [min((one or {}).get((kind, cache, bytes_), math.inf) for one in methods[method]) for method in METHODS]
            others = "".join(f" {ns[0] / one:7.2f}" if math.isfinite(one) else f" {'-':>7}" for one in ns[1:])
            print(f"{kind:8} {place:13} {cache:5} {size_text(bytes_):>5} {bytes_ / ns[0]:8.1f}{others}  "
                  f"{table[kind][SIZES.index(bytes_)]}")


def spread(results):
    """The slowest pass of memcpy relative to its fastest, of the middle row."""
    return statistics.median(max(one) / min(one) for methods in results.values()
                             for one in zip(*(run.values() for run in methods["memcpy"])))


def make_folder(path):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as problem:
        raise Wrong(f"{path}: {problem.strerror}") from None


def store(told, table):
    """Writes a file and renames it into place when complete, since jobs may start meanwhile."""
    lines = ["quoit paths 2", f"machine {told['machine']}", f"processor {told['processor']}"]
    lines += [" ".join([kind, *methods]) for kind, methods in table.items()]
    beside = f"{told['file']}.{os.getpid()}"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(beside, told["file"])
    except OSError as problem:
        raise Wrong(f"{told['file']}: {problem.strerror}") from None
    print(f"\nstored in {told['file']}")


def tune(quoit, options):
    told = json.loads(subprocess.run([quoit, "info", "paths", "--json"], stdout=subprocess.PIPE, check=True).stdout)["paths"]
    if "file" not in told and not options.dry_run:
        raise Wrong("neither XDG_CONFIG_HOME nor HOME says where the table belongs")
    if not options.dry_run:  # before the measurement, so that a failure to store is reported first
        make_folder(told["file"])
    places, cache_bytes = find_places()
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 16
    memory = options.memory or max(min(cache_bytes, most), 2 * SIZES[-1])
    if memory < cache_bytes:
        print(f"buffers of {size_text(memory)} fit the last cache of {size_text(cache_bytes)}: \"cold\" is not quite cold")
    results, lost = measure(quoit, places, options, memory)
    table = {kind: choose(results, kind) for kind in KINDS.values()}
    print_table(results, table)
    unrest = f"memcpy took {spread(results):.2f} times as long in its slowest of {PASSES} passes as in its quickest"
    print(f"\nothers took up to {100 * lost:.0f} % of the processors; {unrest} (the middle one of all rows)")
    if spread(results) > SPREAD_ALLOWED and not options.force and not options.dry_run:
        raise Wrong(BUSY.format(unrest))
    if not options.dry_run:
        store(told, table)


def main():
    options = parse_arguments(sys.argv[3:])
    for name in [name for name in os.environ if name.startswith(("QUOIT_", "SHMEM_", "SMA_"))]:
        del os.environ[name]  # the measurement must not depend on the user's settings
    try:
        tune(sys.argv[2], options)
    except Wrong as problem:
        sys.stderr.write(f"quoit tune: {problem}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


sys.exit(main())
