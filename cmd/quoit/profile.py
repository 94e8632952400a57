#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quoit profile: prints a profile of oshrun --profile, or compares two. Use: profile.py profile QUOIT [OPTION]... FILE [FILE];
cmd/quoit/python.c gives the first two words. The format: docs/profile.md."""
import argparse
import json
import re
import sys

FORMAT = 1
PAGE_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)
SUMS = ("calls", "bytes", "ns", "wait_ns", "sampled")


class Wrong(Exception):
    """The text says which file cannot be read, and why."""


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="quoit profile", allow_abbrev=False,
        description="Prints where the time of a job went, by a file of oshrun --profile (JSON, or the page). With two files "
        "compares them: time, waiting and calls of an average PE in both, the largest difference of time first.")
    parser.error = lambda text: (sys.stderr.write(f"quoit profile: {text} (see --help)\n"), sys.exit(2))
    parser.add_argument("file", metavar="FILE", help="of oshrun --profile")
    parser.add_argument("other", metavar="OTHER", nargs="?", help="the run to compare with FILE")
    parser.add_argument("--by", choices=("both", "routine", "line", "pe"), default="both",
                        help="a row for each routine and line (both, the default), routine, line, or PE")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="print N rows at most; 0: all (default 20)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args(arguments)
    if options.rows < 0:
        parser.error(f"--rows is {options.rows}, but at least 0 is needed")
    return options


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise Wrong(f"cannot read {path}: {getattr(problem, 'strerror', None) or 'it is no text'}") from None
    page = PAGE_DATA.search(text)
    try:
        profile = json.loads(page[1] if page else text)
        version = profile["quoit_profile"]
        if version == FORMAT:
            check(profile)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Wrong(f"{path} is no profile of oshrun --profile") from None
    if version != FORMAT:
        raise Wrong(f"{path} has version {version} of the format, but this program reads version {FORMAT}")
    return profile


def check(profile):
    """Everything that is read below is there, and a number where it must be."""
    for row in profile["rows"]:
        for cell in [row["all"], *row["pes"]]:
            if not all(isinstance(cell[key], int) for key in SUMS):
                raise TypeError
        if not isinstance(row["routine"], str) or not isinstance(row["line"], str):
            raise TypeError
    for pe in profile["pes"]:
        if not all(isinstance(pe[key], int) for key in (*SUMS, "pe", "run_ns")):
            raise TypeError
    if not all(isinstance(profile[key], int) for key in ("pe_count", "hosts", "run_ns", "span_ns")):
        raise TypeError


def group(profile, by):
    """{name: sums}."""
    if by == "pe":
        return {f"PE {pe['pe']}": {key: pe[key] for key in SUMS} for pe in profile["pes"]}
    groups = {}
    for row in profile["rows"]:
        line = row["line"] or "line unknown"
        name = {"both": f"{row['routine']} ({line})", "routine": row["routine"], "line": line}[by]
        sums = groups.setdefault(name, dict.fromkeys(SUMS, 0))
        for key in SUMS:
            sums[key] += row["all"][key]
    return groups


def format_ns(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def share(part, whole):
    return f"{100 * part / whole:.2f}%" if whole else "-"


def head(profile):
    waiting, inside = (sum(pe[key] for pe in profile["pes"]) for key in ("wait_ns", "ns"))
    return (f"{profile['program']}: {profile['pe_count']} PEs on {profile['hosts']} host{'s' * (profile['hosts'] != 1)}, "
            f"{format_ns(profile['span_ns'])}; OpenSHMEM {share(inside, profile['run_ns'])}, "
            f"waiting {share(waiting, profile['run_ns'])}")


def one(profile, by):
    """Rows: name, and sums."""
    rows = [{"name": name, **sums} for name, sums in group(profile, by).items()]
    return sorted(rows, key=lambda row: (-row["ns"], row["name"]))


def estimate(text, is_one, width):
    """A time, with ~ before it where only some of the calls were timed."""
    return f"{'~ ' + text if is_one else text:>{width}}"


def where(are_estimates):
    return "where" + "; ~ estimated from some of its calls" * any(are_estimates)


def print_one(profile, rows, shown):
    print(head(profile))
    print(f"{'time':>9} {'waiting':>9} {'calls':>12} {'bytes':>15}  {where(row['sampled'] for row in rows[:shown])}")
    for row in rows[:shown]:
        print(f"{estimate(share(row['ns'], profile['run_ns']), row['sampled'], 9)} {share(row['wait_ns'], profile['run_ns']):>9} {row['calls']:>12} "
              f"{row['bytes']:>15}  {row['name']}")


def two(first, second, by):
    """Rows: name, and for an average PE of each run (by pe: for this PE) the sums, by key with the run behind it."""
    groups = [group(profile, by) for profile in (first, second)]
    counts = [1 if by == "pe" else len(profile["pes"]) or 1 for profile in (first, second)]
    rows = []
    for name in sorted({*groups[0], *groups[1]}):
        row = {"name": name}
        for run, count, sums in zip("ab", counts, (each.get(name, {}) for each in groups)):
            row |= {f"{key}_{run}": sums.get(key, 0) / count for key in SUMS}
        rows.append(row | {"difference_ns": row["ns_b"] - row["ns_a"]})
    return sorted(rows, key=lambda row: (-abs(row["difference_ns"]), row["name"]))


def print_two(first, second, rows, shown):
    print(f"A  {head(first)}\nB  {head(second)}")
    print(f"{'time A':>10} {'time B':>10} {'B - A':>10} {'waiting A':>10} {'waiting B':>10} {'calls A':>11} {'calls B':>11}  "
          f"{where(row['sampled_a'] or row['sampled_b'] for row in rows[:shown])}")
    for row in rows[:shown]:
        times = [estimate(format_ns(row[f"ns_{run}"]), row[f"sampled_{run}"], 10) for run in "ab"]
        times += [f"{format_ns(row[key]):>10}" for key in ("difference_ns", "wait_ns_a", "wait_ns_b")]
        print(*times, f"{row['calls_a']:>11.6g} {row['calls_b']:>11.6g}  {row['name']}")


def main(arguments):
    options = parse_arguments(arguments)
    try:
        profiles = [read(path) for path in (options.file, options.other) if path is not None]
    except Wrong as wrong:
        sys.stderr.write(f"quoit profile: {wrong} [Q0724]\n")
        return 1
    shown = options.rows or None
    rows = one(profiles[0], options.by) if len(profiles) == 1 else two(*profiles, options.by)
    if options.json:
        json.dump({"rows": rows[:shown]}, sys.stdout, indent=1)
        print()
    elif len(profiles) == 1:
        print_one(profiles[0], rows, shown)
    else:
        print_two(*profiles, rows, shown)
    if not options.json and len(rows) > len(rows[:shown]):
        print(f"and {len(rows) - shown} further rows (--rows 0)")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[3:]))
    except BrokenPipeError:
        sys.stderr.close()
