#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quoit perf as a user sees it: every test on one host and on rings with its data verified, results and pages well
formed, comparisons of synthetic results, wrong command lines; and a library with one error, which must be detected.

Use: perf_test.py PART QUOIT PERF_WRONG        PART is one of the functions below without its test_
No measured time decides anything."""
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

PART, QUOIT, PERF_WRONG = sys.argv[1:4]
BIN = os.path.dirname(QUOIT)
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUICK = ["--seconds", "0.3", "--cold-bytes", "1M"]
ALL = {"p", "g", "put", "get", "put-quiet", "put-stream", "get-stream", "put-both", "fan", "rate", "put-overlap", "get-overlap",
       "fetch-add", "add", "compare-swap", "swap", "fetch", "set", "all-fetch-add", "ping-pong", "put-flag", "put-signal",
       "fence", "quiet", "barrier", "sync", "lock", "all-lock", "malloc", "broadcast", "reduce", "collect", "fcollect",
       "alltoall", "alltoalls"}
MACHINE = {"cma"}  # where the kernel allows it
WRONGS = {"putmem": "put", "getmem": "get", "putmem_nbi": "put-stream", "getmem_nbi": "get-stream", "add": "add",
          "fetch_add": "fetch-add", "swap": "swap", "putmem_signal": "put-signal", "sync": "sync",
          "broadcast": "broadcast", "reduce": "reduce", "collect": "collect", "fcollect": "fcollect",
          "alltoall": "alltoall", "alltoalls": "alltoalls"}


def check(condition, what):
    if not condition:
        sys.exit(f"perf_test: {what if len(what) < 3000 else what[:1000] + ' ... ' + what[-2000:]}")


def run(*command, **variables):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=280,
                          env={**os.environ, **variables})


def perf(*arguments):
    return run(QUOIT, "perf", *arguments)


def measured(*arguments):
    result = perf(*QUICK, "--json", "-", *arguments)
    check(result.returncode == 0, f"{arguments}: {result}")
    return json.loads(result.stdout)


def check_result(result, tests):
    check({row["test"] for row in result["rows"]} - MACHINE == tests - MACHINE, f"other tests ran: {result['rows']}")
    check(len({(row["test"], row["bytes"], row["buffers"], row["cache"]) for row in result["rows"]}) ==
          len(result["rows"]), "a row is there twice")
    for row in result["rows"]:
        ns = row["ns"]
        check(0 < ns["min"] <= ns["p25"] <= ns["median"] <= ns["p75"] <= ns["p99"] and ns["samples"] >= 5 and
              row["calls"] >= 5 and row["limit_ns"]["median"] > 0 and row["ratio"] > 0, f"{row}")


def test_one_host():
    for pes in ("2", "3"):
        result = measured("-n", pes, "--sizes", "1,8,513,4K,64K")
        check(result["pes"] == int(pes) and result["form"] == "quoit perf 1", "the head is wrong")
        check_result(result, ALL)
        puts = [row for row in result["rows"] if row["test"] == "put"]
        check(len(puts) == 5 * 3 * 2, f"{len(puts)} rows of put: not every kind of buffers, warm and cold")
    tables = perf(*QUICK, "--sizes", "8", "--tests", "put,barrier")
    check(tables.returncode == 0 and tables.stdout.count("\nput: ") == 6 and "\nbarrier: " in tables.stdout, f"{tables}")


def test_rings():
    check_result(measured("--hosts", "3", "-n", "6", "--peer", "5", "--sizes", "8,513,64K"), ALL)
    far = measured("--hosts", "5", "--peer", "2", "--tests", "put,get,put-both,get-overlap,put-signal,fetch-add,lock",
                   "--sizes", "1,9,4K,300K")
    check(far["pes"] == 5, "a PE for each host is the default")


def test_selection():
    rows = measured("--tests", "put-*,fence", "--sizes", "16:64", "--buffers", "private", "--cache", "cold")["rows"]
    check({row["bytes"] for row in rows if row["test"] == "put-quiet"} == {16, 32, 64}, f"{rows}")
    check({(row["buffers"], row["cache"]) for row in rows if row["test"] == "put-stream"} == {("private", "cold")}, "kinds")
    listed = perf("--list", "--tests", "*lock")
    check([line.split()[0] for line in listed.stdout.splitlines()] == ["lock", "all-lock"], f"{listed}")
    check({line.split()[0] for line in perf("--list").stdout.splitlines()} == ALL | MACHINE, "--list does not list all")


def test_wrong_library():
    right = run(os.path.join(BIN, "oshrun"), "-n", "2", PERF_WRONG, *QUICK, "--sizes", "4K", "--tests",
                ",".join(WRONGS.values()))
    check(right.returncode == 0, f"fails without anything wrong: {right}")
    for wrong, test in WRONGS.items():
        result = run(os.path.join(BIN, "oshrun"), "-n", "2", PERF_WRONG, *QUICK, "--sizes", "4K", "--tests", test,
                     WRONG=wrong)
        check(result.returncode == 1 and f"{test}" in result.stderr, f"a wrong {wrong} was not seen: {result}")


def test_mistakes():
    for wrong in (["--tests", "nothing"], ["--tests", "put,"], ["--sizes", "0"], ["--sizes", "8:4"], ["--sizes", "8x"],
                  ["--buffers", "stack"], ["--cache", "hot"], ["--seconds", "0"], ["--seconds", "x"], ["--peer", "0"],
                  ["--cold-bytes", "1"], ["--nothing"], ["--json"], ["--json", ""], ["--compare", "a"], ["--launch", "x"],
                  ["--html", "a", "--json", "-"], ["--list=1"], ["--cc", "cc", "--hosts", "2"]):
        result = perf(*wrong)
        check(result.returncode == 2 and result.stderr.startswith("quoit perf: ") and not result.stdout, f"{wrong}: {result}")
    for status, wrong in ((2, ["-n", "1"]), (2, ["--peer", "2"]), (2, ["--hosts", "x"]),
                          (1, ["--json", "/nowhere/a.json", "--tests", "fence", *QUICK])):
        result = perf(*wrong)
        check(result.returncode == status and result.stderr, f"{wrong}: {result}")
    check(perf("--help").returncode == 0, "--help fails")


def made_up(path, times, **head):
    """A result with these times: {(test, bytes): (p25, median, p75)}."""
    rows = []
    for (test, size), (low, middle, high) in times.items():
        stat = {"min": low, "p25": low, "median": middle, "p75": high, "p99": high, "samples": 9}
        rows.append({"test": test, "bytes": size, "buffers": "heap", "cache": "warm", "calls": 9, "ns": stat,
                     "limit": "memcpy", "limit_ns": stat, "ratio": 1.0})
    with open(path, "w") as file:
        json.dump({"form": "quoit perf 1", "library": "X", "pes": 2, "note": "", "machine": {}, "rows": rows, **head}, file)


def test_compare():
    with tempfile.TemporaryDirectory() as folder:
        a, b, c, bad = (os.path.join(folder, name) for name in ("a.json", "b.json", "c.json", "bad.json"))
        made_up(a, {("put", 8): (9, 10, 11), ("put", 64): (9, 10, 11), ("put", 512): (100, 100, 100), ("g", 8): (1, 1, 1),
                    ("only", 0): (1, 1, 1)}, library="One (OpenSHMEM 1.6)")
        made_up(b, {("put", 8): (19, 20, 21), ("put", 64): (10.5, 12, 13), ("put", 512): (101, 101, 101),
                    ("g", 8): (0.4, 0.5, 0.6)}, library="Two (OpenSHMEM 1.4)")
        made_up(c, {("put", 8): (5, 30, 31), ("g", 8): (0.4, 0.5, 0.6)}, library="Two (OpenSHMEM 1.4)")
        result = perf("--compare", a, b)
        lines = result.stdout.splitlines()
        ends = [line.split()[-3:] for line in lines if line.startswith(("put", "g"))]
        check(result.returncode == 0 and ends == [["2.11", "2.00", "One"], ["1.17", "1.20", "-"], ["1.01", "1.01", "-"],
                                                  ["0.40", "0.50", "Two"]], f"{result.stdout}")
        check(lines[-1] == "4 rows: One faster in 1, Two in 1, no difference beyond noise in 2", lines[-1])
        # Several files of one side: their difference is noise. 20 and 30 give 25, from 5 on.
        several = perf("--compare", a, f"{b},{c}").stdout.splitlines()
        check([line.split()[-3:] for line in several if line.startswith("put")][0] == ["0.56", "2.50", "-"], f"{several}")
        for text in ("nothing", "[]", '{"form": "quoit perf 1"}', '{"form": "else"}', ""):
            with open(bad, "w") as file:
                file.write(text)
            result = perf("--compare", a, bad)
            check(result.returncode == 1 and bad in result.stderr and result.stderr.count("\n") == 1, f"{text}: {result}")
        check(perf("--compare", a, os.path.join(folder, "none")).returncode == 1, "a file that is not there")
        made_up(bad, {("else", 1): (1, 1, 1)})
        check("no row is in both" in perf("--compare", a, bad).stderr, "nothing to compare")


def test_page():
    sys.path.insert(0, os.path.join(SOURCE, "tests", "report"))
    from page import check as check_page
    with tempfile.TemporaryDirectory() as folder:
        path, kept = os.path.join(folder, "page.html"), os.path.join(folder, "kept.json")
        result = perf(*QUICK, "--tests", "put,get,fence,barrier,reduce", "--sizes", "8,512,4K", "--json", kept, "--html", path)
        if "matplotlib is missing" in result.stderr:
            print("perf_test: no matplotlib: no page")
            return
        check(result.returncode == 0, f"{result}")
        check_page(path)
        with open(kept) as file:
            check_result(json.load(file), {"put", "get", "fence", "barrier", "reduce"})
        both = perf("--compare", kept, kept, "--html", path)
        check(both.returncode == 0 and not both.stderr, f"{both}")
        text = "".join(check_page(path).itertext())
        check("A beside B" in text and "no difference beyond noise in" in text and both.stdout.splitlines()[-1] in text, "comparison")


def test_other_library():
    """The installed source, built by a wrapper and started by a launcher, as with another library."""
    result = perf("--cc", os.path.join(BIN, "oshcc"), "--launch", f"{os.path.join(BIN, 'oshrun')} --tag -np {{pes}}", "-n",
                  "3", "--name", "an\"other", "--tests", "put,barrier", "--sizes", "8", *QUICK, "--json", "/dev/stderr")
    check(result.returncode == 0 and "[PE 0" in result.stdout and 'an\\"other' in result.stderr, f"{result}")
    check(perf("--cc", "/nowhere/cc").returncode == 1, "a wrapper that is not there")


def test_killed():
    """However it ends, its folder is removed."""
    for number in (None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with tempfile.TemporaryDirectory() as where:
            page = os.path.join(where, "page.html")
            command = [QUOIT, "perf", *QUICK, "--html", page, "--tests", "put", "--sizes", "8"]
            if number:
                command[command.index("0.3")] = "60"
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env={**os.environ, "TMPDIR": where}, start_new_session=True)
            while number and not glob.glob(os.path.join(where, "quoit-perf-*")):
                check(process.poll() is None, "it ended without a folder")
                time.sleep(0.01)
            if number == signal.SIGKILL:
                process.kill()
            elif number:
                os.killpg(process.pid, number)
            process.wait(timeout=280)
            until = time.monotonic() + 200
            while glob.glob(os.path.join(where, "quoit-perf-*")) and time.monotonic() < until:
                check(number is not None, "the folder is there after a run that ended well")
                time.sleep(0.01)
            check(not glob.glob(os.path.join(where, "quoit-perf-*")), f"signal {number}: the folder stays")
            if number == signal.SIGKILL:  # its launcher, if already started, survives it and must be ended
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)


def test_hybrid():
    """Every size, PE count and limit is plotted."""
    sys.path.insert(0, os.path.join(SOURCE, "tests", "report"))
    from page import check as check_page, tables
    for wrong in (["--html"], ["--nothing"], ["more"], ["--bfs", "one"]):
        check(run(QUOIT, "figures", "hybrid", *wrong).returncode == 2, f"{wrong}")
    with tempfile.TemporaryDirectory() as folder:
        result = run(QUOIT, "figures", "hybrid", "--quick", "--scale", "10", "--html", os.path.join(folder, "hybrid.html"))
        if "matplotlib is missing" in result.stderr:
            check(result.returncode == 1, f"{result}")
            return
        with open(os.path.join(folder, "hybrid.json")) as file:
            plots = {item["title"]: item for section in json.load(file)["sections"] for item in section["items"]
                     if item["kind"] == "lines"}
        for kind in ("heap", "global"):
            plot = next(plot for title, plot in plots.items() if f"{kind} buffers, cached" in title)
            for line in plot["series"] + plot["limits"]:
                check([x for x, _ in line["points"]] == [1 << i for i in range(23)], f"{kind}, {line['name']}: not every size")
            check(len(plot["series"]) >= 2, "a way is missing")
        meetings = [plot for title, plot in plots.items() if title.split()[0] in ("Barrier", "broadcast", "collect", "reduce")]
        check(len(meetings) == 4 and all([x for x, _ in line["points"]] == [2, 4, 8, 16]
                                         for plot in meetings for line in plot["series"] + plot["limits"]), "PEs")
        check(result.returncode == 0, f"{result}")
        tree = check_page(os.path.join(folder, "hybrid.html"))
    rows = next(table for table in tables(tree) if "reported, %" in table[0])[1:]
    reported = ["within 20", *map(str, (49, 70, 80, 54, 64, 68, 56, 58, 58, 76, 60, 34, 80, 45, 50, 15, 13, 21, 19,
                                        39, 47, 42, 57, 13, 18, 13, 25))]
    check([row[3] for row in rows] == reported, f"reported improvements: {rows}")
    over_network = [*range(14, 20), *range(24, 28)]
    text = "".join(tree.itertext())
    through_network = [any("through a network" in line["name"] for line in plots[title]["series"]) for title in plots if "cached (" in title]
    was_run = "Loopback through a network was not run" not in text
    check(through_network == [was_run] * len(through_network), f"loopback: {through_network}, {was_run}")
    if "No baseline was run" in text:  # then nothing may claim to be reached
        check(all(cell == "NOT RUN" for k, row in enumerate(rows) for cell in row[4:6] if k not in over_network), f"{rows}")
    measured = re.compile(r"% \(\d+ -> \d+ ns\)")
    check([k for k, row in enumerate(rows) if measured.search(row[6])] == [0, 1, 2, 3], f"our puts by CMA alone: {rows}")
    check([k for k, row in enumerate(rows) if measured.search(row[7])] == [k for k in over_network if rows[k][7] != "NOT RUN"],
          f"our own through a ring: {rows}")
    for k, row in enumerate(rows):
        found = [re.match(r"(-?\d+) % \((\d+) -> (\d+) ns\)$", cell) for cell in row[4:-1]]
        gains = [100 * (1 - int(one[3]) / int(one[2])) if one else None for one in found]
        for one in filter(None, found):  # times and percents are rounded
            least, most = (100 * (1 - (int(one[3]) + half) / (int(one[2]) - half)) for half in (0.5, -0.5))
            check(least - 1 < int(one[1]) < most + 1, f"{row}")
        others, pes = gains[:2], int(re.search(r"(\d+) PEs there$", row[2])[1])
        if k in over_network:
            check(row[-1].startswith("not counted"), f"{row}")
        elif pes > 2 or None in others:
            check(row[-1].startswith("cannot be judged"), f"{row}")
        else:  # the worst of them decides; by rounded times it is not decided beside the limit
            beyond = max(map(abs, others)) - 20 if row[3] == "within 20" else float(row[3]) - min(others)
            check(abs(beyond) < 2 or row[-1] == ("NOT REACHED" if beyond > 0 else "reached"), f"{row}")
    ways = next(table for table in tables(tree) if "stated, ratio" in table[0])[1:]
    check([row[0] for row in ways] == ["2", "2", "2", "3", "4", "6"], f"{ways}")
    judged = f"loopback through a {'network' if was_run else 'ring of two hosts'} over "
    check([row[2].startswith(judged) for row in ways] == [False, False, True, False, False, False], f"{ways}")
    for row in ways:
        low, high = map(float, row[3].split(" to "))
        check(row[5] == ("reached" if low <= float(row[4]) <= high else "NOT REACHED"), f"{row}")
        check(f"{row[2]} (stated, ratio: {row[3]})" in result.stdout, f"not printed: {row}")
    check("NOT REACHED here: figure 5" in text, "what cannot be reached here is not told")


globals()[f"test_{PART}"]()
