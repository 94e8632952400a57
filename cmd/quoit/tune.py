#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quoit tune: measures the methods of copying between PEs of this machine with quoit perf --path, or the schedules of
collectives between hosts with quoit perf --schedules, and stores which one each size takes. Use: tune.py tune QUOIT
[OPTION]...; QUOIT is the program that measures; cmd/quoit/python.c gives its own path."""
import argparse
import json
import math
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

METHODS = ("memcpy", "movsb", "stream", "cma")  # the first is what the others must beat
SIZES = [1 << shift for shift in range(17, 27)]  # the entries of the table: 128K to 64M, src/local/paths.h
KINDS = {"heap": "heap", "global": "globals"}  # of quoit perf, and of the table
# Between hosts: by collective the test of quoit perf, and the names of the methods, the first of which the others must beat.
COLLECTIVES = {"broadcast": ("broadcast", {"rule": "rule", "around": "around", "log": "tree"}),
               "reduce": ("reduce", {"rule": "rule", "around": "around", "log": "halving", "at-once": "at-once"}),
               "exchange": ("fcollect", {"rule": "rule", "around": "around", "log": "dissemination"})}
TOGETHER = (("broadcast", "reduce"), ("exchange",))  # in one run: sizes of an exchange are those of all hosts together
HOST_SIZES = [1 << shift for shift in range(12, 23)]  # 4K, and the entries of the table: 8K to 4M, src/host/schedules.h
PART_MOST = 1 << 20  # of a PE: the largest that quoit perf measures
AT_ONCE_SIZES = HOST_SIZES[:2]  # larger ones have no room
PLACE_OPTIONS = {"host": "NAME,...", "hosts": "N", "network": "DRIVER", "network-provider": "NAME", "network-device": "NAME|SUBNET,...",
                 "network-ports": "LOW-HIGH", "network-limit": "TIME", "rsh": "COMMAND"}
KEPT_VARIABLES = {"QUOIT_" + name.upper().replace("-", "_") for name in PLACE_OPTIONS} - {"QUOIT_HOST", "QUOIT_HOSTS"}
PASSES = 2
GAIN_WANTED = 1.05  # ratio to memcpy overall that justifies leaving the default ...
LOSS_ALLOWED = 0.97  # ... and a minimum ratio at each size
# Beyond these the measurement shows the load of the machine: the share of its processors used by other processes, and
# the slowest pass of memcpy relative to its fastest, for the middle row.
LOST_ALLOWED, SPREAD_ALLOWED = 0.05, 1.20
BUSY = "the machines were too busy to tell the methods apart, so nothing is stored: {}; run it when nothing else computes, or with --force"


class Wrong(Exception):
    """Nothing can be measured or stored; the text says why. status: 2 where options are wrong."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="quoit tune", allow_abbrev=False,
        description="Measures each copy method between PEs of this machine with quoit perf, prints how each does beside "
        "memcpy, and stores which one a size takes in $XDG_CONFIG_HOME/quoit or ~/.config/quoit, where every job looks at "
        "start (quoit info paths). With --host or --hosts measures the schedules of collectives between these hosts "
        "instead, beside the built-in rules, and stores them for jobs on the same hosts (quoit info schedules). Best on "
        "machines that do nothing else.")
    parser.error = lambda text: (sys.stderr.write(f"quoit tune: {text} (see --help)\n"), sys.exit(2))
    parser.add_argument("--dry-run", action="store_true", help="measure and print, but store nothing")
    parser.add_argument("--force", action="store_true", help="store also what was measured while others computed")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON instead of a table")
    parser.add_argument("--time", type=seconds, default=30, metavar="TIME", help="measure about so long (default 30s)")
    parser.add_argument("--memory", type=size, metavar="SIZE", help="of a buffer, at least 1M; sizes beyond half of it take "
                        "what the largest measured one takes; default: the last cache, from 128M to a 16th of the memory")
    for name, value in PLACE_OPTIONS.items():
        parser.add_argument("--" + name, metavar=value, help="with --host or --hosts: as oshrun has it")
    options = parser.parse_args(arguments)
    options.places = [word for name in PLACE_OPTIONS for value in [getattr(options, name.replace("-", "_"))] if value
                      for word in ("--" + name, one_a_host(value) if name == "host" else value)]
    if options.places and not (options.host or options.hosts):
        parser.error(f"{options.places[0]} is of --host or --hosts")
    if options.host and options.hosts:
        parser.error("--host and --hosts both say on which hosts")
    if options.places and options.memory:
        parser.error("--memory is of the copies on one machine")
    return options


def one_a_host(machines):
    """Without the numbers of PEs, and each machine once."""
    return ",".join(dict.fromkeys(re.sub(r"^([^:]*):\d+$", r"\1", name) for name in machines.split(",")))


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


class Progress:
    """A line on stderr before each run, where somebody reads it."""

    def __init__(self, count):
        self.count, self.begun, self.start = count, 0, time.monotonic()

    def begin(self, what):
        if not sys.stderr.isatty():
            return
        left = (time.monotonic() - self.start) / self.begun * (self.count - self.begun) if self.begun else None
        self.begun += 1
        print(f"run {self.begun} of {self.count}: {what}" + ("" if left is None else f", about {left:.0f} s left"),
              file=sys.stderr, flush=True)


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
        runs = PASSES * [(place, method) for place in places for method in METHODS]
        progress = Progress(len(runs))
        for place, method in runs:
            progress.begin(f"{method}, {place}")
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


def choose(sizes, methods, ratios_of):
    """A method for each size; ratios_of(size, method): to the first. One that wins at a single size has won by chance: it must
    win at an adjacent one too. The largest sizes, where they were not measured, take that of the largest that was."""
    best, first = [], methods[0]
    for bytes_ in sizes:
        scores = {method: ratios_of(bytes_, method) for method in methods[1:]}
        if not any(scores.values()):
            break
        means = {method: statistics.geometric_mean(score) for method, score in scores.items()
                 if score and min(score) >= LOSS_ALLOWED}
        winner = max(means, key=means.get, default=first)
        best.append(winner if means.get(winner, 0) > GAIN_WANTED else first)
    kept = [method if method in best[max(at - 1, 0):at] + best[at + 1:at + 2] else first for at, method in enumerate(best)]
    return kept + (len(sizes) - len(kept)) * kept[-1:]


def quickest(passes, key):
    """None: measured in no pass."""
    return min((one[key] for one in passes if one and key in one), default=None)


def ratio_text(first, other, width):
    return f" {first / other:{width}.2f}" if other else f" {'-':>{width}}"


def copy_rows(results, table):
    """A row for each place, kind of buffer, use of the cache and size, with the time of each method."""
    return [{"buffer": kind, "place": place, "cache": cache, "bytes": bytes_,
             "ns": {method: quickest(passes, (kind, cache, bytes_)) for method, passes in methods.items()},
             "chosen": table[kind][SIZES.index(bytes_)]}
            for place, methods in results.items() for kind, cache, bytes_ in sorted(methods["memcpy"][0])]


def print_copies(rows):
    print(f"{'buffer':8} {'other PE':13} {'cache':5} {'size':>5} {'memcpy':>8}" + "".join(f" {m:>7}" for m in METHODS[1:]) +
          "  path\n" + " " * 39 + "GB/s" + 3 * "       x")
    for row in rows:
        first, *others = row["ns"].values()
        print(f"{row['buffer']:8} {row['place']:13} {row['cache']:5} {size_text(row['bytes']):>5} {row['bytes'] / first:8.1f}" +
              "".join(ratio_text(first, ns, 7) for ns in others) + f"  {row['chosen']}")


def spread(results):
    """The slowest pass of memcpy relative to its fastest, of the middle row."""
    return statistics.median(max(one) / min(one) for methods in results.values()
                             for one in zip(*(run.values() for run in methods["memcpy"])))


def make_folder(path):
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as problem:
        raise Wrong(f"{path}: {problem.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise Wrong(f"{folder}: no file can be written there")


def store(path, head, table):
    """Writes a file and renames it into place when complete, since jobs may start meanwhile."""
    lines = head + [" ".join([kind, *methods]) for kind, methods in table.items()]
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(beside, path)
    except OSError as problem:
        raise Wrong(f"{path}: {problem.strerror}") from None


def finish(options, told, result, print_rows, unrest, head, table):
    """Prints what was measured, and stores what follows from it unless the machines were too busy."""
    is_busy = result["spread"] > SPREAD_ALLOWED and not options.force and not options.dry_run
    stored = None if options.dry_run or is_busy else told["file"]
    if not options.json:
        print_rows(result["rows"])
        print(f"\n{unrest} (the middle one of all rows)")
    if stored:
        store(stored, head, table)
    if options.json:
        print(json.dumps({**result, "stored": stored}, indent=1))
    elif stored:
        print(f"\nstored in {stored}")
    if is_busy:
        raise Wrong(BUSY.format(unrest))


def ask(quoit, section, options):
    """What quoit info tells of the table."""
    told = subprocess.run([quoit, "info", section, "--json", *options.places], stdout=subprocess.PIPE, check=False)
    if told.returncode != 0:
        raise Wrong(f"quoit info {section} has refused these options", told.returncode)
    return json.loads(told.stdout)[section]


def make_place(told):
    """Before the measurement, so that a failure to store is reported first."""
    if "file" not in told:
        raise Wrong("neither XDG_CONFIG_HOME nor HOME says where the table belongs")
    make_folder(told["file"])


def tune(quoit, options):
    told = ask(quoit, "paths", options)
    if not options.dry_run:
        make_place(told)
    places, cache_bytes = find_places()
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 16
    memory = options.memory or max(min(cache_bytes, most), 2 * SIZES[-1])
    if memory < cache_bytes and not options.json:
        print(f"buffers of {size_text(memory)} fit the last cache of {size_text(cache_bytes)}: \"cold\" is not quite cold")
    results, lost = measure(quoit, places, options, memory)
    table = {kind: choose(SIZES, METHODS, lambda bytes_, method, kind=kind: ratios(results, kind, bytes_, method))
             for kind in KINDS.values()}
    result = {"machine": told["machine"], "others": lost, "spread": spread(results), "rows": copy_rows(results, table)}
    unrest = (f"others took up to {100 * lost:.0f} % of the processors; memcpy took {result['spread']:.2f} times as long in its slowest "
              f"of {PASSES} passes as in its quickest")
    finish(options, told, result, print_copies, unrest,
           ["quoit paths 2", f"machine {told['machine']}", f"processor {told['processor']}"], table)


# Between hosts

def run_collectives(quoit, places, hosts, collectives, method, run_seconds, folder):
    """{collective: {bytes: ns}}, the median call, by one PE of each host; bytes of an exchange are those of all hosts."""
    result = os.path.join(folder, "perf.json")
    taking = [name for name in collectives if method in COLLECTIVES[name][1]]
    parts = {size: max(8, size // hosts // 8 * 8) if taking == ["exchange"] else size
             for size in (AT_ONCE_SIZES if method == "at-once" else HOST_SIZES)}
    parts = {size: part for size, part in parts.items() if part <= PART_MOST}
    schedules = "rule" if method == "rule" else ",".join(f"{name}:{COLLECTIVES[name][1][method]}" for name in taking)
    words = [quoit, "perf", "-n", str(hosts), *places, "--schedules", schedules, "--tests",
             ",".join(COLLECTIVES[name][0] for name in taking), "--buffers", "heap", "--cache", "warm", "--sizes",
             ",".join(dict.fromkeys(map(str, parts.values()))), "--seconds", f"{run_seconds:.3f}", "--json", result]
    run = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Wrong(f"quoit perf --schedules {schedules}: {run.stderr.strip() or f'status {run.returncode}'}",
                    2 if run.returncode == 2 else 1)
    with open(result, encoding="utf-8") as file:
        found = {(row["test"], row["bytes"]): row["ns"]["median"] for row in json.load(file)["rows"]}
    return {name: {size: found[COLLECTIVES[name][0], part] for size, part in parts.items()} for name in taking}


def measure_hosts(quoit, options, hosts):
    """{collective: {method: [{bytes: ns} of each pass]}}"""
    results = {name: {method: [] for method in methods} for name, (_, methods) in COLLECTIVES.items()}
    runs = PASSES * [(together, method) for together in TOGETHER for method in COLLECTIVES[together[-1]][1]]
    progress = Progress(len(runs))
    with tempfile.TemporaryDirectory(prefix="quoit-tune-") as folder:
        for together, method in runs:
            progress.begin(", ".join(f"{name} {COLLECTIVES[name][1][method]}" for name in together if method in COLLECTIVES[name][1]))
            found = run_collectives(quoit, options.places, hosts, together, method, options.time / len(runs), folder)
            for name, times in found.items():
                results[name][method].append(times)
    return results


def schedule_rows(results, table):
    """A row for each collective and size, with the time of each schedule by its name; an exchange's bytes are of all hosts."""
    return [{"collective": name, "bytes": size,
             "ns": {COLLECTIVES[name][1][method]: quickest(passes, size) for method, passes in methods.items()},
             "chosen": table[name][HOST_SIZES.index(size)]}
            for name, methods in results.items() for size in HOST_SIZES if size in methods["rule"][0]]


def print_schedules(rows):
    last = None
    for row in rows:
        first, *others = row["ns"].values()
        if row["collective"] != last:
            print(f"{row['collective']:10} {'rule':>9}" + "".join(f" {name:>13}" for name in list(row["ns"])[1:]) +
                  "  schedule\n" + " " * 18 + "us" + len(others) * f"{'x':>14}")
        last = row["collective"]
        print(f"{size_text(row['bytes']):10} {first / 1000:9.1f}" + "".join(ratio_text(first, ns, 13) for ns in others) +
              f"  {row['chosen']}")


def tune_hosts(quoit, options):
    told = ask(quoit, "schedules", options)
    if "network" not in told:
        raise Wrong(f"there is nothing to choose: {told['why']} (--network auto)")
    if not options.dry_run:
        make_place(told)
    results = measure_hosts(quoit, options, told["hosts"])
    table = {}
    for name, methods in results.items():
        chosen = choose(HOST_SIZES, list(methods), lambda size, method, methods=methods: [
            rule[size] / other[size] for rule, other in zip(methods["rule"], methods[method]) if size in other])
        table[name] = [COLLECTIVES[name][1][method] for method in chosen]
    unrest = statistics.median(max(one) / min(one) for methods in results.values()
                               for one in zip(*(times.values() for times in methods["rule"])))
    finish(options, told,
           {"hosts": told["hosts"], "network": told["network"], "spread": unrest, "rows": schedule_rows(results, table)},
           print_schedules, f"the rules took {unrest:.2f} times as long in their slowest of {PASSES} passes as in their quickest",
           ["quoit schedules 1", f"hosts {told['hosts']}", f"network {told['network']}", f"digest {told['digest']}"],
           {name: schedules[1:] for name, schedules in table.items()})


def main():
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # and what it runs, and wrote in /tmp
    options = parse_arguments(sys.argv[3:])
    for name in [name for name in os.environ if name.startswith(("QUOIT_", "SHMEM_", "SMA_")) and name not in KEPT_VARIABLES]:
        del os.environ[name]  # the measurement must not depend on the user's settings
    try:
        (tune_hosts if options.places else tune)(sys.argv[2], options)
    except Wrong as problem:
        sys.stderr.write(f"quoit tune: {problem}\n")
        return problem.status
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
