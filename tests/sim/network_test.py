#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Aim: quoit perf --loggp finds the constants of a network, and the model of quoit predict --network takes as long as the schedules
of src/coll, which the simulator runs, and as a job of quoit perf.
Method: results of a network that is known to the last digit; the model beside the simulator for every collective, small and
large, on 2 to 64 hosts, and with `large` on 1000. The simulator compares each word of the results itself, and that none is
written before its PE calls.

Use: network_test.py QUOIT [large]"""
import json
import os
import subprocess
import sys
import tempfile

QUOIT, IS_LARGE = sys.argv[1], sys.argv[2:] == ["large"]
OVERHEAD, LATENCY, PS_PER_BYTE = 700, 9000, 250
SIZES = (8, 512, 4096, 65536)
NEAR = (0.85, 1.2)  # of the simulator to the model


def check(condition, what):
    if not condition:
        sys.exit(f"network_test: {what}")


def row(test, size, ns):
    stat = {name: ns for name in ("min", "p25", "median", "p75", "p99")} | {"samples": 9}
    return {"test": test, "bytes": size, "buffers": "heap", "cache": "warm", "ns": stat, "limit_ns": stat, "limit": "none", "ratio": 1}


def one_way(size):
    return OVERHEAD + LATENCY + size * PS_PER_BYTE / 1000


def result(pes=4, disturbed=1.0, more=()):
    round_trip = OVERHEAD + 2 * LATENCY
    rows = [row("put-signal", size, one_way(size) * (disturbed if size == SIZES[1] else 1)) for size in SIZES]
    rows += [row("put-quiet", 8, round_trip), row("fan", 8, (round_trip + (pes - 2) * OVERHEAD) / (pes - 1)), *more]
    return {"form": "quoit perf 1", "library": "none", "pes": pes, "peer": 1, "machine": {}, "note": "", "rows": rows}


def write(folder, data, name="result.json"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file)
    return path


def quoit(*arguments):
    return subprocess.run([QUOIT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=1500)


def table(*arguments):
    """{collective: {hosts: [model, simulated over model, measured over model or None]}}"""
    found = quoit("predict", "--json", *arguments)
    check(found.returncode == 0, f"{arguments}: {found}")
    data = json.loads(found.stdout)["sections"][0]["items"][0]
    def numbers(text):
        words = text.replace("(", "").replace(")", "").replace(",", "").split()
        return [float(words[0]), float(words[2]), float(words[4]) if len(words) > 3 else None]
    return {one[0]: dict(zip(map(int, data["columns"][1:]), map(numbers, one[1:]))) for one in data["rows"]}


def check_near(found, least_names):
    check(len(found) == least_names, f"collectives: {sorted(found)}")
    for name, hosts in found.items():
        for count, (model, ratio, _) in hosts.items():
            check(model > 0 and NEAR[0] <= ratio <= NEAR[1], f"{name} on {count} hosts: simulated {ratio} x the model's {model} us")


def test_fit(folder):
    lines = quoit("perf", "--loggp", write(folder, result())).stdout.splitlines()
    check(lines[2:] == [f"network_overhead_ns={OVERHEAD}", f"network_gap_ns={OVERHEAD}", f"network_latency_ns={LATENCY}",
                        f"network_ps_per_byte={PS_PER_BYTE}"] and "0 % off in the mean, 0 % at most" in lines[1], f"fit: {lines}")
    disturbed = quoit("perf", "--loggp", write(folder, result(disturbed=1.5))).stdout
    check(" 0 % at most" not in disturbed, f"a point that is 50 % off leaves no error: {disturbed}")


def test_mistakes(folder):
    without = result()
    without["rows"] = [one for one in without["rows"] if one["test"] != "fan"]
    for data, status in (without, 1), (result(pes=2) | {"rows": []}, 1):
        path = write(folder, data, "wrong.json")
        for command in ("perf", "--loggp", path), ("predict", "--network", path, "--hosts", "2"):
            found = quoit(*command)
            check(found.returncode == status and "put-signal,put-quiet,fan" in found.stderr and not found.stdout, f"{command}: {found}")
    for (least, steep), words in {(0, 1): "less than 1 ns", (1e300, 1): "more than a day", (1, 10): "a line that begins"}.items():
        steps = [row("put-signal", size, least * steep ** i) for i, size in enumerate((8, 16, 24))]
        wrong = result() | {"rows": steps + [row("put-quiet", 8, 9), row("fan", 8, 9)]}
        found = quoit("perf", "--loggp", write(folder, wrong, "wrong.json"))
        check(found.returncode == 1 and words in found.stderr and found.stderr.count("\n") == 1 and not found.stdout, f"{found}")
    path = write(folder, result())
    found = quoit("predict", "--network", f"{path},{path}", "--hosts", "2")
    check(found.returncode == 1 and "has 4 PEs, as a file before it" in found.stderr and not found.stdout, f"two of 4 PEs: {found}")
    for wrong in (["predict", "--network", path, "--hosts", "1025"], ["predict", "--network", path, "--hosts", "2,600", "--bytes", "4K"],
                  ["predict", "--network", path, "--model", "noise_ns=1"], ["predict", "--network", path, "--conditions"],
                  ["predict", "--processors", "2"],
                  ["sim", "--workload", "network", "--hosts", "4", "--pes", "8"], ["sim", "--workload", "network", "--fault", "link"]):
        found = quoit(*wrong)
        check(found.returncode == 2 and found.stderr and not found.stdout, f"{wrong}: {found}")


def test_model_beside_simulator(folder):
    path = write(folder, result())
    hosts = "256,1000" if IS_LARGE else "2,3,4,5,6,7,8,16,33,64"
    check_near(table("--network", path, "--hosts", hosts, "--bytes", "64K"), 9)
    if not IS_LARGE:
        check_near(table("--network", path, "--hosts", "2,5,6,16", "--bytes", "1M"), 9)
        check_near(table("--network", path, "--hosts", "16,33,64", "--bytes", "4K"), 9)
        check_near(table("--network", path, "--hosts", "2,4,6", "--bytes", "64K", "--processors", "2"), 9)


def test_nobody_writes_early(folder):
    """Round the hosts, and along a tree, whose root sends to hosts that are not its neighbours."""
    table("--network", write(folder, result()), "--hosts", "2,3,4,5,6,8", "--bytes", "160K")


def simulated(hosts, *more):
    """{row: us}; the simulator compares every word itself."""
    found = quoit("sim", "--workload", "network", "--hosts", str(hosts), "--bytes", "64K", "--json", *more)
    check(found.returncode == 0, f"{more}: {found}")
    return {name: one["mean"] for name, one in json.loads(found.stdout)["figures"].items()}


def test_any_schedule(_):
    """Each schedule has the results, and a time of its own, which is that of the rules where they choose it."""
    for hosts in 2, 5, 7, 16, 33:
        rules = simulated(hosts)
        log = simulated(hosts, "--schedules", "broadcast:tree,reduce:halving,exchange:dissemination")
        around = simulated(hosts, "--schedules", "broadcast:around,reduce:around,exchange:around")
        once = simulated(hosts, "--schedules", "reduce:at-once")
        check(once == rules, f"at once on {hosts} hosts, of what is too large for that and of what goes at once by itself")
        for name in ("barrier", "broadcast, large", "reduce, large", "fcollect, large") if hosts > 2 else ():
            check(log[name] != around[name] and rules[name] in (log[name], around[name]), f"{name} on {hosts} hosts: {rules} {log} {around}")
        check(hosts < 16 or around["barrier"] > 1.5 * log["barrier"], f"barrier on {hosts} hosts: {around} {log}")
        check(simulated(hosts, "--schedules", "rule") == rules, f"rule on {hosts} hosts")


def test_measured(folder):
    """A row of quoit perf stands beside the model, of its number of hosts alone."""
    barrier = table("--network", write(folder, result()), "--hosts", "3,4", "--bytes", "4K")["barrier"]
    path = write(folder, result(more=[row("barrier", 0, 2000 * barrier[4][0])]))
    found = table("--network", path, "--hosts", "3,4", "--bytes", "4K")["barrier"]
    check(found[4][2] == 2 and found[3][2] is None, f"measured: {found}")


with tempfile.TemporaryDirectory() as FOLDER:
    for NAME, TEST in sorted(globals().copy().items()):
        if NAME.startswith("test_") and (not IS_LARGE or NAME == "test_model_beside_simulator"):
            TEST(FOLDER)
            print(f"network_test: {NAME} passed")
