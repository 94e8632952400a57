#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a JSON file that is damaged, or was never ours, costs quoit perf and quoit report one line, not a traceback, and
leaves no file behind. Method: valid data changed at random in its parts and in its bytes; the readers run in this process,
where any exception but their own is a failure. Prints the seed; --seed N repeats a run, --seconds N bounds it.
Use: json_readers.py SOURCE_FOLDER [--seconds N] [--seed N]"""
import contextlib
import copy
import io
import json
import os
import random
import sys
import tempfile
import time
import traceback

ARGUMENTS = sys.argv[1:]
SOURCE = ARGUMENTS[0]
sys.path[:0] = [os.path.join(SOURCE, "cmd", "quoit"), os.path.join(SOURCE, "cmd", "quoit", "figures")]
import drawing
import page
import perf

DRAWN_MAX = 40  # pages drawn; the others end before the plots
STRANGE = [None, True, False, 0, -1, 1, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), 10 ** 400, 1 << 63,
           "", "x", "\ud800", "\x1b[31m\x00", "a" * 5000, [], {}, [[]], [None], {"": None}, [1, "2", {"three": 4}],
           {"value": [], "mark": "good"}, "quoit perf 1"]
TIMES = {"min": 9, "p25": 9.5, "median": 10, "p75": 11, "p99": 20, "samples": 9}
RESULT = {"form": "quoit perf 1", "library": "X (1.6)", "pes": 2, "note": "n", "machine": {"timer": {"min": 1, "median": 2, "p99": 3}},
          "rows": [{"test": test, "bytes": size, "buffers": "heap", "cache": cache, "calls": 9, "ns": dict(TIMES),
                    "limit": "memcpy", "limit_ns": dict(TIMES), "ratio": 1.0, "rate": 3.5, "rate_unit": "MB/s"}
                   for test, size, cache in (("put", 8, "warm"), ("put", 4096, "cold"), ("put", 8192, "cold"), ("fence", 0, "warm"))]}
REPORT = {"title": "t", "text": ["p"], "sections": [
    {"title": "one", "items": [
        {"kind": "text", "text": ["q"]},
        {"kind": "table", "title": "T", "columns": ["a", "b"], "rows": [["x", 1.25], [{"value": "off", "mark": "bad"}, None]]},
        {"kind": "lines", "title": "l", "x_label": "x", "y_label": "y", "x_is_bytes": True,
         "series": [{"name": "s", "points": [[1024, 100], [4096, 321.5]]}],
         "bands": [{"name": "b", "points": [[1024, 10, 60]]}, {"name": "c", "low": 1, "high": 2}],
         "limits": [{"name": "d", "y": 6410}, {"name": "e", "points": [[1024, 9]]}]}]},
    {"title": "two", "items": [
        {"kind": "bars", "title": "m", "text": "c", "y_label": "us", "groups": ["one", "two"], "is_stacked": True,
         "series": [{"name": "p", "values": [1, None]}], "bands": [{"name": "t", "group": "two", "low": 2, "high": 3}],
         "limits": [{"name": "f", "y": 4}]}]}]}


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from places(one, path + (key,))


def change(value, rng):
    """One part is replaced, removed, doubled, renamed or moved."""
    path = rng.choice(list(places(value)))
    if not path:
        return rng.choice(STRANGE)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    last, deed = path[-1], rng.randrange(5)
    if deed == 0:
        del holder[last]
    elif deed == 1 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[last]))
    elif deed == 1:
        holder[rng.choice(["", "kind", "points", "rows", "x\n"])] = holder.pop(last)
    elif deed == 2:
        holder[last] = copy.deepcopy(rng.choice([value, holder, holder[last]]))
    else:
        holder[last] = copy.deepcopy(rng.choice(STRANGE))
    return value


def damage(text, rng):
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(data) + 1)
        deed = rng.randrange(4)
        if deed == 0:
            del data[at:]
        elif deed == 1:
            data[at:at] = rng.randbytes(rng.randrange(1, 5))
        elif deed == 2:
            data[at:at + rng.randrange(1, 40)] = b""
        else:
            data[at:at] = rng.choice([b"[" * 100000, b"1e999", b"9" * 5000, b"\\ud800", b"\xef\xbb\xbf", b"NaN"])
    return bytes(data)


def make(sample, rng, path):
    value = copy.deepcopy(sample)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
        value = change(value, rng)
    text = json.dumps(value)
    with open(path, "wb") as file:
        file.write(damage(text, rng) if rng.randrange(2) else text.encode())


def run(main, arguments):
    """What the command would print on stderr and its status; any other exception comes through."""
    out, sys.argv = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), ["x", *arguments]
    with contextlib.redirect_stdout(out):
        try:
            main()
            out.flush()
            return ""
        except SystemExit as end:
            return str(end.code or "")


def try_perf(rng, folder, names):
    make(RESULT, rng, names[0])
    told = run(perf.main, rng.choice([["compare", names[0], names[1]], ["compare", names[1], f"{names[1]},{names[0]}"],
                                      ["page", names[0]]]))
    return told


def try_report(rng, folder, names):
    make(REPORT, rng, names[0])
    target = os.path.join(folder, "page.html")
    told = run(lambda: page.main("quoit", [names[0], "--html", target]), [])
    left = sorted(set(os.listdir(folder)) - {os.path.basename(name) for name in names})
    if left not in (([], ["page.html"]) if not told else ([],)):
        raise AssertionError(f"left behind: {left}")
    for name in left:
        os.remove(os.path.join(folder, name))
    return told


def option(name, default):
    return type(default)(ARGUMENTS[ARGUMENTS.index(name) + 1]) if name in ARGUMENTS else default


def main():
    seed, seconds = option("--seed", random.SystemRandom().randrange(1 << 32)), option("--seconds", 3.0)
    print(f"seed {seed}: repeat with json_readers.py {SOURCE} --seed {seed}", flush=True)
    try:
        drawing.load_matplotlib()
    except SystemExit:
        drawing.svg = lambda item, number: ""
    drawing.find_matplotlib = lambda: None
    draw, rng, counts = drawing.svg, random.Random(seed), {"read": 0, "refused": 0}
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("changed.json", "valid.json")]
        with open(names[1], "w", encoding="utf-8") as file:
            json.dump(RESULT, file)
        while time.monotonic() < end:
            drawing.svg = draw if counts["read"] < DRAWN_MAX else lambda item, number: ""
            for reader in (try_perf, try_report):
                try:
                    told = reader(rng, folder, names)
                    if "\n" in told:
                        raise AssertionError(f"more than one line: {told!r}")
                except (Exception, RecursionError):
                    traceback.print_exc(limit=-4)
                    with open(names[0], "rb") as file:
                        sys.exit(f"{reader.__name__}, seed {seed}, input: {file.read()[:600]!r}")
                counts["refused" if told else "read"] += 1
    print(f"{counts['read']} read, {counts['refused']} refused with one line")
    if min(counts.values()) == 0:
        sys.exit("the changes are all or none of them harmless: this shows nothing")


main()
