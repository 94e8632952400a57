#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Results of quoit perf (--json), compared and plotted.

Use: perf.py compare A.json[,A2.json...] B.json[,...]   a table with a ratio for each common row
     perf.py loggp RESULT.json                          the constants of a network, as quoit sim --model takes them
     perf.py page RESULT.json                           the report of docs/report.md on standard output
     perf.py compare-page A.json[,...] B.json[,...]     the same of a comparison"""
import json
import math
import os
import statistics
import sys

FORM = "quoit perf 1"
KEY = ("test", "bytes", "buffers", "cache")
NOISE_MIN = 1.03  # smaller differences are not significant, however quiet the machine was
NEAR_LIMIT = 1.15
UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1))
DAY_NS = 86400e9


class Wrong(Exception):
    """A file is not the output of quoit perf --json; the text says which and why."""


# Reading

def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1e300 and math.isfinite(value)


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def is_text(value):
    """What can be printed on a terminal: no control characters, no half of a surrogate pair."""
    return isinstance(value, str) and value.isprintable()


def check_machine(machine, path):
    for name, one in machine.items():
        if not isinstance(one, dict) or not all(is_number(one.get(key)) for key in ("min", "median", "p99")):
            raise Wrong(f"{path}: machine[{name!r}] lacks a number")


def check(result, path):
    if not isinstance(result, dict) or result.get("form") != FORM:
        raise Wrong(f"{path} is no result of quoit perf --json (\"form\" is not \"{FORM}\")")
    for key, kind in (("library", str), ("pes", int), ("rows", list), ("machine", dict), ("note", str)):
        if not isinstance(result.get(key), kind):
            raise Wrong(f"{path}: \"{key}\" is missing or of another type")
    if not is_text(result["library"]) or not is_text(result["note"]):
        raise Wrong(f"{path}: \"library\" or \"note\" has a character that cannot be printed")
    check_machine(result["machine"], path)
    if not is_count(result["pes"]):
        raise Wrong(f"{path}: \"pes\" is no number of PEs")
    for i, row in enumerate(result["rows"]):
        try:
            numbers = [row[part][one] for part in ("ns", "limit_ns") for one in ("min", "p25", "median", "p75", "p99")]
            numbers.append(row["ratio"])
            counts = [row["bytes"], row["ns"]["samples"], row["limit_ns"].get("samples", 0)]
            texts = [row["test"], row["buffers"], row["cache"], row["limit"]]
            if "rate" in row or "rate_unit" in row:
                numbers.append(row["rate"])
                texts.append(row["rate_unit"])
        except (KeyError, TypeError, AttributeError):
            raise Wrong(f"{path}: rows[{i}] lacks a part") from None
        if not all(map(is_text, texts)) or \
           not all(map(is_number, numbers)) or not all(map(is_count, counts)):
            raise Wrong(f"{path}: rows[{i}] has a part of another type")


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except OSError as problem:
        raise Wrong(f"{path}: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise Wrong(f"{path} is no JSON: {problem}") from None
    check(result, path)
    return result


def merge(results):
    """Merges runs of one configuration: the least minimum, the median of the medians, and the outermost quartiles, so that
    variation between runs counts as noise."""
    whole = dict(results[0])
    rows = {}
    for result in results:
        for row in result["rows"]:
            rows.setdefault(tuple(row[key] for key in KEY), []).append(row)
    whole["rows"] = []
    for same in rows.values():
        row = dict(same[0])
        for part in ("ns", "limit_ns"):
            row[part] = {"min": min(one[part]["min"] for one in same), "p25": min(one[part]["p25"] for one in same),
                         "median": statistics.median(one[part]["median"] for one in same),
                         "p75": max(one[part]["p75"] for one in same), "p99": max(one[part]["p99"] for one in same),
                         "samples": sum(one[part].get("samples", 0) for one in same)}
        row["ratio"] = statistics.median(one["ratio"] for one in same)
        whole["rows"].append(row)
    return whole


def load_side(text):
    results = [load(path) for path in text.split(",")]
    if len({result["pes"] for result in results}) > 1:
        raise Wrong(f"{text}: not all have the same number of PEs")
    return merge(results)


# Comparing

def verdict(a, b):
    """The faster of two rows: "A", "B", or "" if their quartiles overlap or their medians differ by less than NOISE_MIN."""
    slower, faster = (a, b) if a["ns"]["median"] > b["ns"]["median"] else (b, a)
    if slower["ns"]["median"] < NOISE_MIN * faster["ns"]["median"] or slower["ns"]["p25"] <= faster["ns"]["p75"]:
        return ""
    return "B" if slower is a else "A"


def pairs(a, b):
    """Yields (row of A, row of B) for each row that both have, in A's order."""
    others = {tuple(row[key] for key in KEY): row for row in b["rows"]}
    for row in a["rows"]:
        other = others.get(tuple(row[key] for key in KEY))
        if other:
            yield row, other


def size_text(size):
    return "" if size == 0 else f"{size >> 20} MiB" if size >= 1 << 20 and size % (1 << 20) == 0 else \
        f"{size >> 10} KiB" if size >= 1 << 10 and size % (1 << 10) == 0 else f"{size} B"


def time_text(ns):
    for unit, factor in UNITS:
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}" if ns < 999.5 * factor else f"{ns / factor:.0f} {unit}"
    return f"{ns:.2f} ns"


def short(library):
    return library.split(" (")[0][:24]


def name_text(row):
    return f"{row['test']}, {row['buffers']}, {row['cache']}" if row["test"] in ("put", "get") or \
        row["buffers"] != "heap" or row["cache"] != "warm" else row["test"]


def factor(a, b):
    return a / b if b else float("inf") if a else 1.0


def print_comparison(a, b, a_name, b_name):
    """Prints the table. Returns the number of rows in which A is faster, B is faster, and neither is."""
    counts = {"A": 0, "B": 0, "": 0}
    print(f"A: {a['library']}, {a['pes']} PEs  {a['note']}\nB: {b['library']}, {b['pes']} PEs  {b['note']}")
    if a["pes"] != b["pes"]:
        print("A and B do not have the same number of PEs.")
    print("min and median of a call; B/A above 1: A is faster; a name where the quartiles do not overlap\n")
    print(f"{'':<28}{'':>8}{'A min':>10}{'median':>9}{'x limit':>8}{'B min':>10}{'median':>9}{'x limit':>8}{'B/A':>8}"
          f"{'median':>8}  faster")
    for left, right in pairs(a, b):
        who = verdict(left, right)
        counts[who] += 1
        ratios = [factor(right["ns"][one], left["ns"][one]) for one in ("min", "median")]
        print(f"{name_text(left):<28}{size_text(left['bytes']):>8}"
              + "".join(f"{time_text(row['ns']['min']):>10}{time_text(row['ns']['median']):>9}{row['ratio']:>8.2f}"
                        for row in (left, right))
              + f"{ratios[0]:>8.2f}{ratios[1]:>8.2f}  {({'A': a_name, 'B': b_name, '': '-'})[who]}")
    print(f"\n{sum(counts.values())} rows: {a_name} faster in {counts['A']}, {b_name} in {counts['B']}, "
          f"no difference beyond noise in {counts['']}")
    return counts


def sides(a_text, b_text):
    """Both results, and what to call each."""
    a, b = load_side(a_text), load_side(b_text)
    a_name, b_name = short(a["library"]), short(b["library"])
    return a, b, *(("A", "B") if a_name == b_name else (a_name, b_name))


def compare(a_text, b_text):
    counts = print_comparison(*sides(a_text, b_text))
    if sum(counts.values()) == 0:
        raise Wrong("no row is in both")


# The constants of a network

def least(result, test):
    """By size: what else runs on the machine only adds."""
    return {row["bytes"]: row["ns"]["min"] for row in result["rows"] if row["test"] == test and row["buffers"] == "heap"
            and row["cache"] == "warm"}


def fit_line(points):
    """a and b of a + b * size, with the least sum of squares of relative errors."""
    weights = {size: 1 / ns ** 2 for size, ns in points.items()}
    total = sum(weights.values())
    mean_size = sum(weights[size] * size for size in points) / total
    mean_ns = sum(weights[size] * ns for size, ns in points.items()) / total
    slope = max(0, sum(weights[size] * (size - mean_size) * (ns - mean_ns) for size, ns in points.items()) /
                sum(weights[size] * (size - mean_size) ** 2 for size in points))
    return mean_ns - slope * mean_size, slope


def fit_loggp(result, path):
    """({constant: value}, the largest relative error, the mean one). The time of a message of k bytes, one way, is overhead +
    latency + k * (ns a byte): put-signal. A host that sends to n others in turn needs n - 1 gaps more than for one: fan and
    put-quiet. The sender's overhead cannot be told from that gap by calls of the library, so it is as long."""
    one_way, round_trips, fans = (least(result, test) for test in ("put-signal", "put-quiet", "fan"))
    small = min(round_trips.keys() & fans.keys(), default=None)
    if len(one_way) < 3 or small is None or result["pes"] < 3:
        raise Wrong(f"{path} lacks put-signal of three sizes, or put-quiet and fan of a common one, on three PEs or more: "
                    "quoit perf --host A,B,C --tests put-signal,put-quiet,fan --sizes 8:64K")
    if not all(1 <= ns <= DAY_NS for ns in (*one_way.values(), round_trips[small], fans[small])):
        raise Wrong(f"{path}: put-signal, put-quiet or fan takes less than 1 ns or more than a day")
    base, slope = fit_line(one_way)
    if base <= 0:
        raise Wrong(f"{path}: the times of put-signal do not lie near a line that begins above 0")
    others = result["pes"] - 1
    gap = min(max(0, (others * fans[small] - round_trips[small]) / (others - 1)), base)
    errors = [abs((base + slope * size) / ns - 1) for size, ns in one_way.items()]
    return {"network_overhead_ns": round(gap), "network_gap_ns": round(gap), "network_latency_ns": round(base - gap),
            "network_ps_per_byte": round(1000 * slope)}, max(errors), statistics.mean(errors)


def loggp(path):
    result = load(path)
    constants, most, mean = fit_loggp(result, path)
    print(f"# {result['library']}, {result['pes']} PEs: {result['note']}")
    print(f"# one way of {', '.join(size_text(size) for size in sorted(least(result, 'put-signal')))}: "
          f"{100 * mean:.0f} % off in the mean, {100 * most:.0f} % at most")
    for name, value in constants.items():
        print(f"{name}={value}")


# A page

def series_name(row):
    return f"{row['buffers']}, {row['cache']}"


def lines_of(rows, title, label, unit, value, limit_name, limit):
    """A plot over bytes: one series per kind of buffers and cache; limits are dashed."""
    series = {}
    for row in rows:
        series.setdefault(series_name(row), []).append(row)
    limits = [{"name": f"{limit_name} ({name})" if len(series) > 1 else limit_name,
               "points": [[row["bytes"], limit(row)] for row in of]} for name, of in series.items()
              if len(series) == 1 or name.startswith("heap")] if limit else [{"name": "the limit", "y": 1}]
    return {"kind": "lines", "title": title, "x_label": "bytes", "x_is_bytes": True, "y_is_log": True, "y_label": label,
            **({"y_unit": unit} if unit else {}),
            "series": [{"name": name, "points": [[row["bytes"], value(row)] for row in of]} for name, of in series.items()],
            "limits": limits}


def table_of(rows):
    return {"kind": "table", "title": "Every row: one call",
            "columns": ["bytes", "buffers", "min", "median", "p99", "samples", "rate", "limit", "ratio"],
            "units": ["B", None, "ns", "ns", "ns", None, None, "ns", None],
            "rows": [[row["bytes"], series_name(row), row["ns"]["min"], row["ns"]["median"], row["ns"]["p99"],
                      row["ns"]["samples"], {"value": row["rate"], "unit": row["rate_unit"]} if "rate" in row else "",
                      row["limit_ns"]["median"], {"value": row["ratio"], "mark": "good"} if row["ratio"] <= NEAR_LIMIT else row["ratio"]]
                     for row in rows]}


def section(test, rows):
    items = []
    if len({row["bytes"] for row in rows}) > 1:
        items.append(lines_of(rows, f"{test}: time of a call", "median", "ns", lambda row: row["ns"]["median"],
                              rows[0]["limit"], lambda row: row["limit_ns"]["median"]))
        if all(row.get("rate_unit") == "MB/s" for row in rows):
            items.append(lines_of(rows, f"{test}: bandwidth", "median", "MB/s", lambda row: row["rate"], rows[0]["limit"],
                                  lambda row: row["bytes"] / max(row["limit_ns"]["median"], 1e-3) * 1e3))
        items.append(lines_of(rows, f"{test}: time over the limit", "ratio", None, lambda row: row["ratio"], None, None))
    return {"title": test, "items": items + [table_of(rows)]}


def fixed_section(rows):
    """Bars and a table of the tests that have no sizes."""
    names = [row["test"] for row in rows]
    return {"title": "Calls without data", "items": [
        {"kind": "bars", "title": "time of a call and its limit", "y_label": "median", "y_unit": "ns", "y_is_log": True,
         "groups": names,
         "series": [{"name": "call", "values": [row["ns"]["median"] for row in rows]},
                    {"name": "limit", "values": [row["limit_ns"]["median"] for row in rows]}]},
        {"kind": "table", "columns": ["test", "min", "median", "p99", "limit", "", "ratio"], "units": [None, *["ns"] * 4, None, None],
         "rows": [[row["test"], row["ns"]["min"], row["ns"]["median"], row["ns"]["p99"], row["limit_ns"]["median"],
                   row["limit"], row["ratio"]] for row in rows]}]}


def page(path):
    result = load(path)
    tests = {}
    for row in result["rows"]:
        tests.setdefault(row["test"], []).append(row)
    fixed = [rows[0] for rows in tests.values() if len(rows) == 1]
    machine = {"kind": "table", "title": "This machine", "columns": ["", "min", "median", "p99"], "units": [None, *["ns"] * 3],
               "rows": [[name, one["min"], one["median"], one["p99"]] for name, one in result["machine"].items()]}
    report = {"title": f"{result['library']}, {result['pes']} PEs",
              "text": [f"{result.get('processor', '')}, {result.get('processors', '?')} processors; {result.get('date', '')}; "
                       f"{result['note']}",
                       "Each time is that of one call, the median of many batches. The ratio is over the limit: what this "
                       "machine took in the same run for the least that the call must do. 1 is the limit."],
              "sections": [{"title": "The machine", "items": [machine]}] + ([fixed_section(fixed)] if fixed else []) +
                          [section(test, rows) for test, rows in tests.items() if len(rows) > 1]}
    json.dump(report, sys.stdout)
    print()


def compared_rows(rows, a_name, b_name):
    """A table of pairs of rows; the quicker one is marked."""
    out = []
    for left, right in rows:
        who = verdict(left, right)
        out.append([left["bytes"] or "", f"{left['buffers']}, {left['cache']}",
                    *[{"value": row["ns"]["median"], **({"mark": "good"} if who == side else {})}
                      for side, row in (("A", left), ("B", right))],
                    factor(right["ns"]["median"], left["ns"]["median"]), left["ratio"], right["ratio"],
                    {"A": a_name, "B": b_name, "": "no difference beyond noise"}[who]])
    return {"kind": "table", "title": "Median of a call", "rows": out,
            "columns": ["bytes", "buffers", a_name, b_name, f"{b_name} / {a_name}", f"{a_name}, x limit", f"{b_name}, x limit", "faster"],
            "units": ["B", None, "ns", "ns", None, None, None, None]}


def compared_section(test, rows, a_name, b_name):
    items = []
    kinds = {}
    for left, right in rows:
        kinds.setdefault((left["buffers"], left["cache"]), []).append((left, right))
    for (buffers, cache), of in kinds.items():
        if len({left["bytes"] for left, _ in of}) > 1:
            items.append({"kind": "lines", "title": f"{test}, {buffers}, {cache}", "x_label": "bytes", "x_is_bytes": True,
                          "y_is_log": True, "y_label": "median", "y_unit": "ns",
                          "series": [{"name": name, "points": [[pair[side]["bytes"], pair[side]["ns"]["median"]] for pair in of]}
                                     for side, name in enumerate((a_name, b_name))]})
    return {"title": test, "items": items + [compared_rows(rows, a_name, b_name)]}


def compare_page(a_text, b_text):
    a, b, a_name, b_name = sides(a_text, b_text)
    tests = {}
    for left, right in pairs(a, b):
        tests.setdefault(left["test"], []).append((left, right))
    found = [verdict(left, right) for rows in tests.values() for left, right in rows]
    report = {"title": f"{a_name} beside {b_name}",
              "text": [f"{name}: {one['library']}, {one['pes']} PEs; {one.get('processor', '')}; {one.get('date', '')}; {one['note']}"
                       for name, one in ((a_name, a), (b_name, b))] +
                      [f"{len(found)} rows: {a_name} faster in {found.count('A')}, {b_name} in {found.count('B')}, no difference "
                       f"beyond noise in {found.count('')}. Faster: the quartiles do not overlap, and the medians differ by more "
                       f"than {100 * (NOISE_MIN - 1):.0f} %."],
              "sections": [compared_section(test, rows, a_name, b_name) for test, rows in tests.items()]}
    json.dump(report, sys.stdout)
    print()


def main():
    words = sys.argv[1:]
    try:
        if len(words) == 3 and words[0] == "compare":
            compare(words[1], words[2])
        elif len(words) == 3 and words[0] == "compare-page":
            compare_page(words[1], words[2])
        elif len(words) == 2 and words[0] == "loggp":
            loggp(words[1])
        elif len(words) == 2 and words[0] == "page":
            page(words[1])
        else:
            print(__doc__, file=sys.stderr)
            sys.exit(2)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed the pipe
    except Wrong as problem:
        sys.exit(f"quoit perf: {problem}")


if __name__ == "__main__":
    main()
