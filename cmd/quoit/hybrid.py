#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of "Hybrid intra-node design space for OpenSHMEM on multi-core clusters" (HYBRID), measured on this machine.

Use: hybrid.py QUOIT [SECONDS]     runs QUOIT perf; the report of docs/report.md comes on standard output
Latency of shmem_putmem by the way that it takes, for heap and global buffers, cached and not; message rate of pairs;
barrier and collectives against PEs. Each beside the limit of the machine, which perf measures in the same run.
"""
import json
import os
import subprocess
import sys
import tempfile

import perf

PE_COUNTS = (2, 4, 8, 16)
MEETINGS = ("broadcast", "collect", "reduce")
MEETING_SIZES = (8, 65536)
SECONDS = 30.0
# Of the time: puts on one host, through the ring's proxy, the rate for each number of PEs, meetings for each.
SHARES = {"one": 0.4, "loop": 0.15, "rate": 0.05, "meet": 0.075}


def run(quoit, folder, seconds, *arguments):
    path = os.path.join(folder, "result.json")
    print(f"quoit figures hybrid: perf {' '.join(arguments)}", file=sys.stderr)
    result = subprocess.run([quoit, "perf", "--json", path, "--seconds", f"{seconds:.3f}", *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise perf.Wrong(f"quoit perf {' '.join(arguments)} ended with status {result.returncode}\n{result.stderr}")
    return perf.load(path)


def rows_of(result, test, buffers="heap", cache="warm"):
    return [row for row in result["rows"] if (row["test"], row["buffers"], row["cache"]) == (test, buffers, cache)]


def points(rows, part="ns"):
    return [[row["bytes"], row[part]["median"]] for row in rows]


def latency(title, one, loop, buffers, cache):
    """One of the figures 2 to 5: each way that a put of these buffers can take, and memcpy."""
    rows = rows_of(one, "put", buffers, cache)
    series = [{"name": "mapped memory: what a put does here", "points": points(rows)}]
    kernel = rows_of(one, "cma")
    if kernel and cache == "warm":
        series.append({"name": "CMA call of the kernel", "points": points(kernel), "is_dashed": True})
    loop_rows = rows_of(loop, "put-quiet", buffers, cache)
    if loop_rows:
        series.append({"name": "loopback: through a ring of two hosts", "points": points(loop_rows)})
    return {"kind": "lines", "title": title, "x_label": "bytes", "x_is_bytes": True, "y_is_log": True,
            "y_label": "ns of a put, median", "series": series,
            "limits": [{"name": "memcpy of the same size", "points": points(rows, "limit_ns")}]}


def table(one):
    by_kind = {kind: {row["bytes"]: row for row in rows_of(one, "put", *kind)}
               for kind in (("heap", "warm"), ("global", "warm"), ("heap", "cold"))}
    heap, others = by_kind["heap", "warm"], by_kind["global", "warm"]
    return {"kind": "table", "title": "A put, ns, and over memcpy of the same size; global over heap",
            "columns": ["bytes", "heap", "/ memcpy", "global", "/ memcpy", "global / heap"],
            "rows": [[perf.size_text(size), row["ns"]["median"], row["ratio"], others[size]["ns"]["median"],
                      others[size]["ratio"], others[size]["ns"]["median"] / row["ns"]["median"]]
                     for size, row in heap.items() if size in others]}


def rates(by_pes):
    """Figure 6: million puts a second, all pairs together."""
    return {"kind": "lines", "title": "Message rate of pairs, heap buffers (HYBRID, figure 6)", "x_label": "bytes",
            "x_is_bytes": True, "y_is_log": True, "y_label": "million puts a second",
            "series": [{"name": f"{pes // 2} pair{'s' if pes > 2 else ''}",
                        "points": [[row["bytes"], row["rate"]] for row in rows_of(result, "rate")]}
                       for pes, result in by_pes.items()],
            "limits": [{"name": f"memcpy by as many, {pes} PEs",
                        "points": [[row["bytes"], 1e3 / row["limit_ns"]["median"]] for row in rows_of(result, "rate")]}
                       for pes, result in by_pes.items() if pes in (min(by_pes), max(by_pes))]}


def meetings(title, by_pes, subjects):
    """Figures 10 and 11: against PEs, each with its limit."""
    found = {name: [(pes, row) for pes, result in by_pes.items() for row in rows_of(result, test) if row["bytes"] == size]
             for name, test, size in subjects}
    return {"kind": "lines", "title": title, "x_label": "PEs", "x_is_log2": True, "y_is_log": True,
            "y_label": "ns of a call, median",
            "series": [{"name": name, "points": [[pes, row["ns"]["median"]] for pes, row in of]} for name, of in found.items()],
            "limits": [{"name": f"limit of {name}", "points": [[pes, row["limit_ns"]["median"]] for pes, row in of]}
                       for name, of in found.items()]}


def machine(one):
    return {"kind": "table", "title": "The machine, ns", "columns": ["", "min", "median"],
            "rows": [[name, stat["min"], stat["median"]] for name, stat in one["machine"].items()]}


def report(one, loop, rate, meet):
    last = rows_of(one, "put", "global", "cold")
    figures = [latency("Put, heap buffers, cached (HYBRID, figures 2 and 8)", one, loop, "heap", "warm"),
               latency("Put, global buffers, cached (HYBRID, figures 3 and 9)", one, loop, "global", "warm"), table(one),
               latency("Put, heap buffers, off cache (HYBRID, figure 4)", one, loop, "heap", "cold")]
    if last:
        figures.append(latency("Put, global buffers, off cache", one, loop, "global", "cold"))
    return {"title": "HYBRID: PEs of one host",
            "text": [f"{one['library']} on {one.get('processor', 'unknown')}, {one.get('processors', '?')} processors, "
                     f"{one.get('date', '')}.",
                     "The paper chooses between a mapped heap, two kernel-assisted copies and network loopback by size and kind of "
                     "buffer. Here global variables are mapped as the heap is, so that one way serves both; the kernel's copy and "
                     "a ring of two hosts stand for the others. The paper's machines are not this one: its figures for a second "
                     "socket need one."],
            "sections": [{"title": "The machine", "items": [machine(one)]},
                         {"title": "Latency of shmem_putmem", "items": figures},
                         {"title": "Message rate", "items": [rates(rate)]},
                         {"title": "Barrier and collectives against PEs", "items": [
                             meetings("Barrier (HYBRID, figures 10 and 11)", meet, [("barrier", "barrier", 0)])] + [
                             meetings(f"{test} (HYBRID, figures 10 and 11)", meet,
                                      [(f"{test}, {perf.size_text(size)}", test, size) for size in MEETING_SIZES])
                             for test in MEETINGS]}]}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    quoit, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else SECONDS
    try:
        with tempfile.TemporaryDirectory() as folder:
            one = run(quoit, folder, seconds * SHARES["one"], "-n", "2", "--tests", "put,cma", "--buffers", "heap,global",
                      "--sizes", "1:4M")
            loop = run(quoit, folder, seconds * SHARES["loop"], "--hosts", "2", "--tests", "put-quiet", "--buffers",
                       "heap,global", "--sizes", "1:4M")
            rate = {pes: run(quoit, folder, seconds * SHARES["rate"], "-n", str(pes), "--tests", "rate", "--sizes", "1:4K")
                    for pes in PE_COUNTS[:3]}
            meet = {pes: run(quoit, folder, seconds * SHARES["meet"], "-n", str(pes), "--tests",
                             ",".join(("barrier", *MEETINGS)), "--sizes", ",".join(map(str, MEETING_SIZES)))
                    for pes in PE_COUNTS}
    except perf.Wrong as problem:
        sys.exit(f"quoit figures hybrid: {problem}")
    json.dump(report(one, loop, rate, meet), sys.stdout)
    print()


if __name__ == "__main__":
    main()
