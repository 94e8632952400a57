#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a figure of the papers comes out of the simulator with the relations that the papers report, and its page opens
offline. Method: the figure with few sizes; every relation must be in its range; with constants under which one is not, that must
be told; the page is read back and must show the same relations and plots."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report"))
import page

QUOIT, FIGURE = sys.argv[1:]
PLOTS = {"19/8": 1, "19/9": 8, "19/10": 2, "22/4a": 2, "22/4b": 1, "22/5": 8, "22/6": 2, "22/7": 2}


def quoit(*arguments):
    result = subprocess.run([QUOIT, "figures", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=280)
    result.stderr = re.sub(r"^==\d+==WARNING: ASan.*\n", "", result.stderr, flags=re.M)
    return result


def check(condition, what):
    if not condition:
        sys.exit(f"figures_test: {what}")


def test_figure():
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "out")
        result = quoit("--quick", "--json", "--out", target, FIGURE)
        check(result.returncode == 0 and not result.stderr, f"{result}")
        check(sorted(os.listdir(target)) == ["figures.html", "figures.json"], f"{os.listdir(target)}")
        tree = page.check(os.path.join(target, "figures.html"))
    relations = json.loads(result.stdout)
    check(relations and all(one["figure"] == FIGURE and one["source"] for one in relations), f"{relations}")
    for one in relations:
        low, high = one["low"], one["high"]
        is_in_range = (low is None or one["value"] >= low) and (high is None or one["value"] <= high)
        check(is_in_range == one["in_range"], f"{one} says something else")
        name = f"{FIGURE} {one['relation']}"
        check(is_in_range, f"{name}: {one['value']} is not in {low} to {high}")
        print(f"figures_test: {name}: {one['value']} {one['unit']}")
    rows = page.tables(tree)[0][1:]
    for row, one in zip(rows, relations):
        check(row[4] == "in range", f"the page says {row[4]} of {one}")
    check([row[1] for row in rows] == [one["relation"] for one in relations], f"{rows}")
    check(len(list(tree.iter("svg"))) == PLOTS[FIGURE], f"{len(list(tree.iter('svg')))} plots")


def test_mistakes():
    for wrong in (["23/1"], ["--out"], ["--nothing"], ["19/8", "x"], ["--model"], ["--model", "x=1"],
                  ["--model", "poll_ns=0"]):
        result = quoit(*wrong)
        check(result.returncode == 2 and result.stderr.count("\n") == 1 and not result.stdout, f"{wrong}: {result}")
    result = quoit("--out", "/dev/null/x", "19/8")
    check(result.returncode == 1 and "/dev/null/x" in result.stderr, f"{result}")
    check("22/4a" in quoit("--help").stdout, "the help names no figures")


def test_out_of_range():
    """Reading and writing memory cost nothing to turn between: links that are all busy are as fast as one alone."""
    with tempfile.TemporaryDirectory() as folder:
        model = ("--model", "memory_turn_ns=0", "--model", "memory_bus_ps_per_byte=0")
        table = quoit("--quick", "--out", folder, *model, "19/8").stdout
        found = json.loads(quoit("--quick", "--json", "--out", folder, *model, "19/8").stdout)
        rows = page.tables(page.check(os.path.join(folder, "figures.html")))[0][1:]
    out = [one["relation"] for one in found if not one["in_range"]]
    check(out == ["all links at once against one alone, mean of sizes"], f"out of range: {out}")
    check(table.count("OUT OF RANGE") == 1 and "2 of 3 relations in range" in table, table)
    check([row[4] for row in rows] == ["in range", "out of range", "in range"], f"{rows}")


if FIGURE == "mistakes":
    test_mistakes()
elif FIGURE == "out-of-range":
    test_out_of_range()
else:
    test_figure()
