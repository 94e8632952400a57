#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quoit predict as a user sees it: reproducible results, relations that must hold, clear errors, a page."""
import json
import os
import re
import subprocess
import sys
import tempfile

QUOIT = sys.argv[1]


def predict(*arguments):
    return subprocess.run([QUOIT, "predict", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=500)


def check(condition, what):
    if not condition:
        sys.exit(f"predict_test: {what}")


def series_of(*arguments):
    """Points by the name of their series."""
    report = json.loads(predict("--json", *arguments).stdout)
    items = [item for section in report["sections"] for item in section["items"]]
    return {series["name"]: dict(map(tuple, series["points"])) for item in items for series in item.get("series", [])}


def test_mistakes():
    for wrong in (["--hosts", "1"], ["--hosts", "4,3"], ["--hosts", "257"], ["--hosts", "2,"], ["--hosts"], ["--no"],
                  ["--bytes", "1"], ["--seeds", "0"], ["--model", "nothing=1"],
                  ["--conditions", "--model", "link_ps_per_byte=0"]):
        result = predict(*wrong)
        check(result.returncode == 2 and result.stderr.startswith("quoit predict: ") and not result.stdout,
              f"{wrong}: {result}")


def test_same_each_time():
    check(predict("--hosts", "3,6").stdout == predict("--hosts", "3,6").stdout, "two runs differ")


def test_relations():
    rings = [2, 4, 8, 16]
    series = series_of("--seeds", "1", "--hosts", ",".join(map(str, rings)))
    for name in ("put 8 B, farthest", "barrier", "allreduce, large", "neighbours"):
        values = [series[name][hosts] for hosts in rings]
        check(values == sorted(values), f"{name} does not grow with the ring: {values}")
    for hosts in rings[1:]:
        check(series["put 8 B, farthest"][hosts] > series["put 8 B, neighbour"][hosts], "far is as near as near")
        check(series["put 8 B, round a dead link"][hosts] > series["put 8 B, farthest"][hosts], "round is not longer")
        check(series["all-to-all, one link dead"][hosts] < series["all-to-all"][hosts], "a dead link costs nothing")
        check(series["barrier, one link dead"][hosts] > series["barrier"][hosts], "a dead link costs no time")
    # Each host has two directions, and a byte passes a quarter of the ring on average.
    link = 1e6 / 160  # MB/s of link_ps_per_byte
    check(all(series["all-to-all"][hosts] <= 8 * link for hosts in rings), "all-to-all is more than the links carry")
    check(all(series["neighbours"][hosts] <= 2 * hosts * link for hosts in rings), "more than the links carry")
    check(all(0.98 * link < series["one stream"][hosts] <= link for hosts in rings), f"one stream: {series['one stream']}")
    small = series_of("--seeds", "1", "--hosts", "2", "--bytes", "64K")["one stream"][2]
    check(abs(small / series["one stream"][2] - 1) < 0.01, f"one stream of 64 KiB has start-up in it: {small}")


def simulated(*arguments):
    result = subprocess.run([QUOIT, "sim", "--json", "--workload", "predict", "--model", "noise_ns=100", *arguments],
                            stdout=subprocess.PIPE, text=True, timeout=500)
    return {name: one["mean"] for name, one in json.loads(result.stdout)["figures"].items()}


def test_direct():
    """Puts to neighbours are direct, as by default in the product."""
    put = series_of("--seeds", "1", "--hosts", "3")["put 8 B, neighbour"][3]
    direct, framed = (simulated("--hosts", "3", "--bytes", "262144", "--seed", "1", "--direct", way)["put 8 B, neighbour"]
                      for way in ("posted", "no"))
    check(abs(put / direct - 1) < 1e-6 and framed > 1.05 * direct, f"{put} us, {direct} direct, {framed} in frames")


def test_small_frames_keep_pace():
    """Lanes that have more to move do not copy: all-to-all in shares that end within a chunk, or are half of one, is not far
    from that in whole chunks. One after the other they were copied, at two thirds and a quarter of the rate."""
    rates = {(hosts, kib): series_of("--seeds", "1", "--hosts", str(hosts), "--bytes", f"{kib}K")["all-to-all"][hosts]
             for hosts, kib in ((4, 192), (4, 256), (5, 256), (5, 64))}
    check(rates[4, 256] > 0.85 * rates[4, 192], f"shares of 85 KiB against 64 KiB: {rates}")
    check(rates[5, 64] > 0.5 * rates[5, 256], f"shares of 16 KiB against 64 KiB: {rates}")


FAIR_OF = ("neighbours", "all-to-all", "bisection", "one link dead")


def check_fair(hosts, size, seed, *more, names=FAIR_OF):
    figures = simulated("--hosts", hosts, "--bytes", size, "--seed", seed, "--direct", "posted", *more)
    for name in names:
        share = figures[f"{name}, least share"]
        check(share >= 70, f"{hosts} hosts, {size}, seed {seed}: a host has {share} % of its fair share of {name}")


def test_fair():
    """In a steady state no host has less than 70 % of its fair share, also with puts larger than the slots, and with a
    dead link."""
    for hosts, size, seed in (("5", "1M", "1"), ("5", "1M", "2"), ("5", "1M", "3"), ("4", "1M", "1"), ("5", "64K", "1"),
                              ("5", "64K", "2"), ("5", "64K", "3")):
        check_fair(hosts, size, seed)


def test_fair_on_long_lines():
    """Where credits come one by one, which they do before a full queue, hosts in the middle of a line inject too."""
    for hosts, slots in ("8", "4"), ("16", "4"):
        check_fair(hosts, "256K", "1", "--slots", slots, names=("one link dead",))


def number_of(text):
    """In units of one scale, of a number with a unit."""
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "MB/s": 1, "GB/s": 1e3, "%": 1}[unit]


def test_ranges():
    """Seeds differ by noise, and the table prints the range."""
    table = json.loads(predict("--json", "--hosts", "5").stdout)["sections"][0]["items"][0]
    spreads = []
    for what, text in (row[:2] for row in table["rows"] if "(" in row[1]):
        mean, least, largest = map(number_of, re.fullmatch(r"(.*) \((.*) to (.*)\)", text).groups())
        check(least <= mean <= largest, f"{what}: {text}")
        spreads.append(largest - least)
    check(len(spreads) > 3 and max(spreads) > 0, f"no range: {table['rows']}")


def test_model_counts():
    slow = series_of("--hosts", "5", "--seeds", "1", "--model", "dma_ps_per_byte=400")["one stream"][5]
    fast = series_of("--hosts", "5", "--seeds", "1")["one stream"][5]
    check(slow < 0.6 * fast, f"an engine that reads at 2.5 GB/s gives {slow} instead of {fast}")


def test_page():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page.html")
        result = predict("--hosts", "2,4", "--html", path)
        check(result.returncode == 0 and "<svg" in open(path, encoding="utf-8").read(), f"no page: {result}")


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"predict_test: {name} passed")
