# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures hybrid: the figures of "Hybrid intra-node design space for OpenSHMEM on multi-core clusters" (HYBRID), measured
on this machine by quoit perf: latency of shmem_putmem by the way that it takes, for heap and global buffers, cached and not;
message rate of pairs; barrier, collectives and BFS. Each beside the limit of the machine, and the paper's improvements beside
those over a baseline that is run here: another OpenSHMEM library, through network loopback and through the kernel's copy.
"""
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import drawing
import page
import papers
import perf
import units
from arguments import Parser, oshrun_of
from relations import MARKS, Relation, cited, reached_text, verdict_cell

PE_COUNTS = (2, 4, 8, 16)
MEETINGS = ("broadcast", "collect", "reduce")
MEETING_SIZES = (8, 256, 65536)
SECONDS, SECONDS_QUICK = 30.0, 2.0
# Of the time: puts on one host, by each path, through the ring's proxy, through a network, the rate for each number of PEs,
# meetings for each.
SHARES = {"one": 0.3, "path": 0.05, "loop": 0.1, "network": 0.1, "rate": 0.05, "meet": 0.075, "baseline": 0.15}
PATHS = ("memcpy", "stream", "cma")
PATH_SIZES = "64,1K,16K,64K,256K,1M,4M"
NETWORK_WAY, RING_WAY = "through a network", "through a ring of two hosts"
BASELINE_TIMEOUT_S, BASELINE_TIMEOUT_QUICK_S = 45, 20
OWN_TIMEOUT_S = 300  # of one run of ours, also where the machine does other work
SCALE = 16  # of the BFS
BFS_SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "graph500")
CMA_ALONE = "our puts by CMA alone"
RING_ALONE = "our own through a ring of two hosts"  # for the paper's UCR, which uses its network within a host too
OWN = {CMA_ALONE: ("put",), RING_ALONE: ("ucr",)}  # which of the improvements each of our own baselines has
# Open MPI's OpenSHMEM, as Debian has it, by what carries its puts. Its hooks of munmap are unloaded before they are taken
# back, so every program ended with a segmentation fault, after its last line: 4.1.4 with UCX 1.13.
OPEN_MPI = "shmemrun --allow-run-as-root --oversubscribe -n {pes} --mca memory ^patcher --mca spml ucx -x UCX_TLS="
BASELINES = {"network loopback": "self,tcp", "kernel's copy (CMA)": "posix,self,cma"}
GIVEN = "the library as --launch starts it"


def run_group(command, timeout):
    """As subprocess.run(); when the time is over the launcher and all that it started end too."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def run(quoit, folder, seconds, *arguments, timeout=OWN_TIMEOUT_S):
    path = os.path.join(folder, "result.json")
    print(f"quoit perf {' '.join(arguments)}", file=sys.stderr)
    try:
        result = run_group([quoit, "perf", "--json", path, "--seconds", f"{seconds:.3f}", *arguments], timeout)
    except subprocess.TimeoutExpired as problem:
        raise perf.Wrong(f"quoit perf {' '.join(arguments)} did not end in {timeout} s") from problem
    if result.returncode != 0:
        raise perf.Wrong(f"quoit perf {' '.join(arguments)} ended with status {result.returncode}\n{result.stderr}")
    return perf.load(path)


def rows_of(result, test, buffers="heap", cache="warm"):
    return [row for row in result["rows"] if (row["test"], row["buffers"], row["cache"]) == (test, buffers, cache)]


def points(rows, part="ns"):
    return [[row["bytes"], row[part]["median"]] for row in rows]


def latency(title, one, loop, network, buffers, cache):
    """One of the figures 2 to 4: each way that a put of these buffers can take, and memcpy."""
    rows = rows_of(one, "put", buffers, cache)
    series = [{"name": "mapped memory: what a put does here", "points": points(rows)}]
    kernel = rows_of(one, "cma")
    if kernel and cache == "warm":
        series.append({"name": "CMA call of the kernel", "points": points(kernel), "is_dashed": True})
    for name, result in ((f"loopback: {NETWORK_WAY}", network), (f"loopback: {RING_WAY}", loop)):
        if found := rows_of(result, "put-quiet", buffers, cache):
            series.append({"name": name, "points": points(found)})
    return {"kind": "lines", "title": title, "x_label": "bytes", "x_is_bytes": True, "y_is_log": True,
            "y_label": "time of a put, median", "y_unit": "ns", "series": series,
            "limits": [{"name": "memcpy of the same size", "points": points(rows, "limit_ns")}]}


def table(one):
    by_kind = {kind: {row["bytes"]: row for row in rows_of(one, "put", *kind)}
               for kind in (("heap", "warm"), ("global", "warm"), ("heap", "cold"))}
    heap, others = by_kind["heap", "warm"], by_kind["global", "warm"]
    return {"kind": "table", "title": "A put, and over memcpy of the same size; global over heap",
            "columns": ["bytes", "heap", "/ memcpy", "global", "/ memcpy", "global / heap"],
            "units": [None, "ns", None, "ns", None, None],
            "rows": [[perf.size_text(size), row["ns"]["median"], row["ratio"], others[size]["ns"]["median"],
                      others[size]["ratio"], others[size]["ns"]["median"] / row["ns"]["median"]]
                     for size, row in heap.items() if size in others]}


def rates(by_pes):
    """Figure 6: million puts a second, all pairs together."""
    return {"kind": "lines", "title": "Message rate of pairs, heap buffers (HYBRID, figure 6)", "x_label": "bytes",
            "x_is_bytes": True, "y_is_log": True, "y_label": "puts a second", "y_unit": "M/s",
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
            "y_label": "time of a call, median", "y_unit": "ns",
            "series": [{"name": name, "points": [[pes, row["ns"]["median"]] for pes, row in of]} for name, of in found.items()],
            "limits": [{"name": f"limit of {name}", "points": [[pes, row["limit_ns"]["median"]] for pes, row in of]}
                       for name, of in found.items()]}


def machine(one):
    return {"kind": "table", "title": "The machine", "columns": ["", "min", "median"], "units": [None, "ns", "ns"],
            "rows": [[name, stat["min"], stat["median"]] for name, stat in one["machine"].items()]}


# Figure 7: which path is best

def selection(by_path, loop, network):
    """For each kind of buffers, the quickest of all ways at each size."""
    rows = []
    for kind in (("heap", "warm"), ("global", "warm"), ("heap", "cold")):
        times = {name: {row["bytes"]: row["ns"]["median"] for row in rows_of(result, "put", *kind)}
                 for name, result in by_path.items()}
        for name, result in ((NETWORK_WAY, network), (RING_WAY, loop)):
            times[name] = {row["bytes"]: row["ns"]["median"] for row in rows_of(result, "put-quiet", *kind)}
        for size in times[PATHS[0]]:
            here = {name: of[size] for name, of in times.items() if size in of}
            best = min(here, key=here.get)
            rows.append([f"{kind[0]}, {'cached' if kind[1] == 'warm' else 'off cache'}", perf.size_text(size), best,
                         *[here.get(name) for name in (*PATHS, NETWORK_WAY, RING_WAY)]])
    return {"kind": "table", "title": "The quickest way of a put (HYBRID, figure 7, whose choices stand in its plot alone)",
            "columns": ["buffers", "bytes", "quickest", *PATHS, f"loopback {NETWORK_WAY}", f"loopback {RING_WAY}"],
            "units": [None, None, None, *["ns"] * (len(PATHS) + 2)], "rows": rows}


# The baseline

def bfs(launch, scale, timeout):
    """Seconds of a BFS, mean over the roots, as the example prints it."""
    result = run_group([*launch, "--scale", str(scale), "--roots", "8"], timeout)
    found = re.search(r"^mean_time:\s*([0-9.eE+-]+)", result.stdout, flags=re.M)
    if result.returncode or not found:
        raise perf.Wrong(f"{' '.join(launch)} gave no mean_time: {result.stderr.strip()[-200:]}")
    return float(found.group(1))


def launchers(given):
    """By the name of a baseline. A launcher that was given carries puts in one way, whichever that is."""
    return {GIVEN: given} if given else {name: OPEN_MPI + transport for name, transport in BASELINES.items()}


def measure_baseline(quoit, folder, seconds, cc, launch, timeout):
    """The tests that the paper's improvements need; None where it did not end, with the reason."""
    results, problems = [], []
    for arguments in (["-n", "2", "--tests", "put-quiet", "--buffers", "heap,global", "--cache", "warm", "--sizes", "4,4M"],
                      ["-n", "2", "--tests", "barrier,broadcast,collect,reduce", "--sizes", "256"]):
        try:
            results.append(run(quoit, folder, seconds, *arguments, "--cc", cc, "--launch", launch,
                               timeout=timeout))
        except perf.Wrong as problem:
            problems.append(str(problem).splitlines()[-1])
    return {"rows": [row for result in results for row in result["rows"]], "problems": problems}


# figure, key of papers.json, what, PEs there, reported improvement in percent (None: similar), what it is over, test, buffers,
# bytes
IMPROVEMENTS = (
    ("8", "hybrid small", "put, heap, 4 B", 2, None, "put", "put-quiet", "heap", 4),
    ("8", "hybrid heap", "put, heap, 4 MiB", 2, 49, "put", "put-quiet", "heap", 4 << 20),
    ("9", "hybrid global", "put, global, 4 B", 2, 70, "put", "put-quiet", "global", 4),
    ("9", "hybrid global", "put, global, 4 MiB", 2, 80, "put", "put-quiet", "global", 4 << 20),
    ("10", "hybrid barrier one host", "barrier of one host", 16, 54, "gasnet", "barrier", None, 0),
    ("10", "hybrid barrier", "barrier, on 4 hosts", 64, 64, "gasnet", "barrier", None, 0),
    ("11", "hybrid barrier", "barrier, on 4 hosts", 96, 68, "gasnet", "barrier", None, 0),
    ("11", "hybrid barrier amd", "barrier of one host", 24, 56, "gasnet", "barrier", None, 0),
    ("10", "hybrid collectives", "broadcast, 256 B", 64, 58, "gasnet", "broadcast", None, 256),
    ("10", "hybrid collectives", "collect, 256 B", 64, 58, "gasnet", "collect", None, 256),
    ("10", "hybrid collectives", "reduce, 256 B", 64, 76, "gasnet", "reduce", None, 256),
    ("11", "hybrid collectives amd", "broadcast, 256 B", 96, 60, "gasnet", "broadcast", None, 256),
    ("11", "hybrid collectives amd", "collect, 256 B", 96, 34, "gasnet", "collect", None, 256),
    ("11", "hybrid collectives amd", "reduce, 256 B", 96, 80, "gasnet", "reduce", None, 256),
    ("10", "hybrid barrier ucr", "barrier, on 4 hosts", 64, 45, "ucr", "barrier", None, 0),
    ("10", "hybrid collectives ucr", "collect, 256 B", 64, 50, "ucr", "collect", None, 256),
    ("10", "hybrid collectives ucr", "reduce, 256 B", 64, 15, "ucr", "reduce", None, 256),
    ("11", "hybrid collectives amd ucr", "broadcast, 256 B", 96, 13, "ucr", "broadcast", None, 256),
    ("11", "hybrid collectives amd ucr", "collect, 256 B", 96, 21, "ucr", "collect", None, 256),
    ("11", "hybrid collectives amd ucr", "reduce, 256 B", 96, 19, "ucr", "reduce", None, 256),
)
# The same of BFS: key, PEs there, reported, what it is over.
SEARCHES = (("hybrid bfs gasnet", 16, 39, "gasnet"), ("hybrid bfs gasnet", 64, 47, "gasnet"),
            ("hybrid bfs amd gasnet", 24, 42, "gasnet"), ("hybrid bfs amd gasnet", 96, 57, "gasnet"),
            ("hybrid bfs ucr", 16, 13, "ucr"), ("hybrid bfs ucr", 64, 18, "ucr"), ("hybrid bfs amd ucr", 24, 13, "ucr"),
            ("hybrid bfs amd ucr", 96, 25, "ucr"))
SIMILAR = 20  # percent


def median(result, test, buffers, size):
    found = [row["ns"]["median"] for row in result["rows"] if row["test"] == test and row["bytes"] == size and
             row["cache"] == "warm" and buffers in (None, row["buffers"])]
    return found[0] if found else None


def gained(ours, theirs):
    """Percent; None where one of them did not run."""
    return None if ours is None or theirs is None else 100 * (1 - ours / theirs)


def improvement_text(ours, theirs):
    return "NOT RUN" if ours is None or theirs is None else f"{gained(ours, theirs):.0f} % ({theirs:.0f} -> {ours:.0f} ns)"


class Improvement:
    """One number of the paper: ours, and theirs by the name of a baseline."""

    def __init__(self, figure, quote, what, pes, reported, over, ours, theirs):
        self.pes, self.over, self.ours = pes, over, ours
        self.theirs = {name: ns for name, ns in theirs.items() if over in OWN.get(name, ("put", "gasnet"))}
        self.reported = f"within {SIMILAR}" if reported is None else str(reported)
        values = [gained(ours, ns) for name, ns in self.theirs.items() if name not in OWN]
        value = None if None in values else max(values, key=abs, default=None) if reported is None else min(values, default=None)
        low, high = (-SIMILAR, SIMILAR) if reported is None else (reported, math.inf)
        self.relation = Relation(figure, quote, f"{what}, {pes} PEs there", "over each other library: the least", "%", low, high,
                                 value, lack=self.lack(values), uncounted=SAME_HOST if over == "ucr" else "")

    def lack(self, values):
        if self.pes > PE_COUNTS[0]:
            return f"{self.pes} PEs there, {PE_COUNTS[0]} here"
        return "no other library was run" if not values or None in values else ""

    def cells(self, baselines):
        return [improvement_text(self.ours, self.theirs[name]) if name in self.theirs else "" for name in baselines]


SAME_HOST = "a ring of the same host stands for UCR, and says nothing of its network"


def improvements(ours, baselines, searches):
    out = [Improvement(figure, quote, what, pes, reported, over, median(ours, *key),
                       {name: median(of, *key) for name, of in baselines.items()})
           for figure, quote, what, pes, reported, over, *key in IMPROVEMENTS]
    return out + [Improvement("12", quote, searches["what"], pes, reported, over, searches["ours"],
                              {name: searches.get(name) for name in baselines}) for quote, pes, reported, over in SEARCHES]


def improvements_table(found, baselines, quotes):
    return {"kind": "table", "title": "Reported improvements over GASNet and UCR, and those of 2 PEs over what was run here",
            "columns": ["figure", "the paper's sentence", "here", "reported, %", *[f"over {name}" for name in baselines], ""],
            "rows": [[one.relation.figure, cited(one.relation, quotes), one.relation.what, one.reported, *one.cells(baselines),
                      verdict_cell(one.relation)] for one in found]}


# What the paper says of the ways against each other (V.B)

def designs(one, by_path, loopback, way, rate_by_cma, rate):
    """Each sentence, the quantity that it speaks of, and whether it is so here. The loopback goes that way."""
    def ns(result, size, test="put", buffers="heap", cache="warm"):
        return next(row["ns"]["median"] for row in rows_of(result, test, buffers, cache) if row["bytes"] == size)

    def loop(size):
        return ns(loopback, size, "put-quiet")
    small, large, pairs = (64, 1 << 10), (1 << 20, 4 << 20), [(row["rate"], other["rate"]) for row, other in zip(
        rows_of(rate_by_cma, "rate"), rows_of(rate, "rate"))]
    trend = [ns(by_path["cma"], size, buffers="global") / ns(by_path["cma"], size) for size in (64, 1 << 10, 16 << 10)]
    found = (
        ("2", "hybrid cached", "mapped memory over the quickest of CMA and loopback, cached, 64 B and 1 KiB; the larger",
         max(ns(one, size) / min(ns(by_path["cma"], size), loop(size)) for size in small), 0, 0.999),
        ("2", "hybrid large", "CMA over mapped memory, cached, 1 and 4 MiB; the larger",
         max(ns(by_path["cma"], size) / ns(one, size) for size in large), 0, 0.999),
        ("2", "hybrid adapter", f"loopback {way} over mapped memory, cached, 1 and 4 MiB; the larger",
         max(loop(size) / ns(one, size) for size in large), 0, 0.999),
        ("3", "hybrid applicable", "CMA, global over heap buffers, 64 B to 16 KiB; the furthest from 1 (similar: by a quarter)",
         max(trend, key=lambda ratio: abs(ratio - 1)), 0.75, 1.25),
        ("4", "hybrid off cache", "mapped memory over CMA, off cache, 64 B and 1 KiB; the larger",
         max(ns(one, size, cache="cold") / ns(by_path["cma"], size, cache="cold") for size in small), 0, 0.999),
        ("6", "hybrid rate", f"message rate by CMA over that by mapped memory, {PE_COUNTS[2]} PEs; the largest of all sizes",
         max(by_cma / mapped for by_cma, mapped in pairs), 0, 0.999))
    return [Relation(figure, quote, what, "", "ratio", low, high, value) for figure, quote, what, value, low, high in found]


def designs_table(found, quotes):
    return {"kind": "table", "title": "What the paper says of the ways against each other, and what was measured",
            "columns": ["figure", "the paper's sentence", "here", "stated, ratio", "measured", ""],
            "rows": [[one.figure, cited(one, quotes), one.what, one.stated(),
                      {"value": one.value, "mark": MARKS[one.verdict]}, verdict_cell(one)] for one in found]}


UNTESTED = [
    "Loopback is judged through a network where there is one, else through a ring of two hosts; the paper's adapter reads memory by "
    "itself, and TCP does not.",
    "Not tested: what the paper says of LiMIC (figures 2 to 6); of loopback off cache, \u201chowever, IB-LOOPBACK performs better "
    "than CMA and LIMIC starting from 32KBytes\u201d (figures 4 and 5), where quoit perf measures no put that is waited for; of "
    "the message rate through loopback; of "
    "shmem_get, \u201csimilar trends\u201d, whose ways quoit perf measures (docs/perf.md); and of UCR against GASNet (34 % at 64 "
    "PEs, and a loss at 16), neither of which is ours."]


def print_tables(*tables):
    for table in tables:
        print(table["title"])
        for row in table["rows"]:
            words = [cell["value"] if isinstance(cell, dict) else cell for cell in row]
            values = [f"{name}: {units.plain(word)}".removeprefix(": ") for name, word in zip(table["columns"][4:], words[4:])
                      if word != ""]
            print(f"{words[0]:<3} {words[2]} ({table['columns'][3]}: {words[3]}): {'; '.join(values)}")


def relate(found):
    """The improvements, and the relations of the ways."""
    ours = {"rows": found["one"]["rows"] + found["quiet"]["rows"] + found["meet"][2]["rows"]}
    loopback, way = (found["network"], NETWORK_WAY) if found["network"]["rows"] else (found["loop"], RING_WAY)
    return improvements(ours, found["baselines"], found["searches"]), designs(
        found["one"], found["paths"], loopback, way, found["rate by cma"], found["rate"][PE_COUNTS[2]])


REPORTED = "What the paper reports, and what was measured"


def report(found, quotes):
    one, loop, network = found["one"], found["loop"], found["network"]
    reported, ways = relate(found)
    last = rows_of(one, "put", "global", "cold")
    puts = [latency("Put, heap buffers, cached (HYBRID, figures 2 and 8)", one, loop, network, "heap", "warm"),
            latency("Put, global buffers, cached (HYBRID, figures 3 and 9)", one, loop, network, "global", "warm"), table(one),
            latency("Put, heap buffers, off cache (HYBRID, figure 4)", one, loop, network, "heap", "cold"),
            selection(found["paths"], loop, network)]
    if last:
        puts.insert(-1, latency("Put, global buffers, off cache", one, loop, network, "global", "cold"))
    notes = [f"{name}: {problem}" for name, result in found["baselines"].items() for problem in result["problems"]]
    notes += [f"Loopback through a network was not run: {problem}" for problem in network["problems"]]
    return {"title": "HYBRID: PEs of one host",
            "text": [f"{one['library']} on {one.get('processor', 'unknown')}, {one.get('processors', '?')} processors, "
                     f"{one.get('date', '')}.",
                     f"Reached: {reached_text([*(each.relation for each in reported), *ways])}.",
                     "The paper chooses between a mapped heap, two kernel-assisted copies and network loopback by size and kind of "
                     "buffer. Here global variables are mapped as the heap is, so that one way serves both; the kernel's copy, "
                     "the loopback of a network and a ring of two hosts stand for the others.",
                     "NOT REACHED here: figure 5 (a second socket), figure 11 (an AMD Magny-Cours), LiMIC and an InfiniBand "
                     "adapter (every figure), and 64 or 96 PEs on as many cores (figures 10 to 12)."],
            "sections": [{"title": "Latency of shmem_putmem", "items": puts},
                         {"title": "Message rate", "items": [rates(found["rate"])]},
                         {"title": "Barrier and collectives against PEs", "items": [
                             meetings("Barrier (HYBRID, figures 10 and 11)", found["meet"], [("barrier", "barrier", 0)])] + [
                             meetings(f"{test} (HYBRID, figures 10 and 11)", found["meet"],
                                      [(f"{test}, {perf.size_text(size)}", test, size) for size in MEETING_SIZES])
                             for test in MEETINGS]},
                         {"title": REPORTED, "items": [
                             improvements_table(reported, found["baselines"], quotes),
                             {"kind": "text", "text": [found["baseline_text"], *notes, *found["searches"]["problems"]]},
                             designs_table(ways, quotes),
                             {"kind": "text", "text": UNTESTED}]},
                         {"title": "The machine", "items": [machine(one)]}]}


def measure_network(quoit, folder, seconds):
    """Without rows, and with the reason, where there is no network."""
    try:
        result = run(quoit, folder, seconds, "-n", "2", "--path", "network", "--tests", "put-quiet", "--buffers", "heap,global",
                     "--sizes", "1:4M")
    except perf.Wrong as problem:
        if "[Q0222]" not in str(problem):
            raise
        return {"rows": [], "problems": [str(problem).splitlines()[-1]]}
    return {"rows": result["rows"], "problems": []}


def build_bfs(folder, quoit, cc):
    """The example, ours and the baseline's: by the compiler wrapper beside quoit, and by cc."""
    sources = [os.path.join(BFS_SOURCES, name) for name in sorted(os.listdir(BFS_SOURCES)) if name.endswith(".c")]
    programs = []
    for name, compiler in (("ours", os.path.join(os.path.dirname(quoit), "oshcc")), ("theirs", cc)):
        programs.append(os.path.join(folder, f"graph500.{name}"))
        subprocess.run([compiler, "-O2", "-o", programs[-1], *sources, "-lm"], check=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    return programs


def search(options, quoit, folder, cc, launches):
    """BFS of the example, ours and each baseline's, if it can be built for both."""
    out = {"what": f"BFS, 2^{options.scale} vertices, edge factor 16, 2 PEs (2^20 there)", "ours": None, "problems": []}
    if not options.bfs and not (cc and os.path.isdir(BFS_SOURCES)):
        out["problems"].append("BFS was not run: there is no other library, or not the source of examples/graph500; --bfs "
                               "OURS,THEIRS names it built with oshcc and with the other library's compiler.")
        return out
    try:
        ours, theirs = options.bfs.split(",") if options.bfs else build_bfs(folder, quoit, cc)
    except (OSError, subprocess.CalledProcessError) as problem:
        out["problems"].append(f"BFS was not run: {problem}")
        return out
    runs = {"ours": [oshrun_of(quoit), "-n", "2", ours]}
    runs[RING_ALONE] = [*runs["ours"][:3], "--hosts", "2", ours]
    runs.update({name: [*launch.replace("{pes}", "2").split(), theirs] for name, launch in launches.items()})
    for name, launch in runs.items():
        try:
            out[name] = 1e9 * bfs(launch, options.scale, options.baseline_timeout)
        except (OSError, subprocess.TimeoutExpired, perf.Wrong) as problem:
            out["problems"].append(f"BFS, {name}: {problem}")
    return out


def measure(quoit, options, seconds):
    launches = launchers(options.launch)
    found = {"baselines": {name: {"rows": [], "problems": []} for name in launches}, "baseline_text": ""}
    cc = options.cc or shutil.which("shmemcc")  # no other library has a compiler of this name
    with tempfile.TemporaryDirectory() as folder:
        found["one"] = run(quoit, folder, seconds * SHARES["one"], "-n", "2", "--tests", "put,cma", "--buffers", "heap,global",
                           "--sizes", "1:4M")
        found["quiet"] = run(quoit, folder, seconds * SHARES["path"], "-n", "2", "--tests", "put-quiet", "--buffers",
                             "heap,global", "--cache", "warm", "--sizes", "4,4M")
        found["paths"] = {path: run(quoit, folder, seconds * SHARES["path"], "-n", "2", "--path", path, "--tests", "put",
                                    "--buffers", "heap,global", "--sizes", PATH_SIZES) for path in PATHS}
        alone = run(quoit, folder, seconds * SHARES["path"], "-n", "2", "--path", "cma", "--tests", "put-quiet", "--buffers",
                    "heap,global", "--cache", "warm", "--sizes", "4,4M")
        found["loop"] = run(quoit, folder, seconds * SHARES["loop"], "--hosts", "2", "--tests", "put-quiet", "--buffers",
                            "heap,global", "--sizes", "1:4M")
        found["network"] = measure_network(quoit, folder, seconds * SHARES["network"])
        found["rate"] = {pes: run(quoit, folder, seconds * SHARES["rate"], "-n", str(pes), "--tests", "rate", "--sizes",
                                  "1:4K") for pes in PE_COUNTS[:3]}
        found["rate by cma"] = run(quoit, folder, seconds * SHARES["rate"], "-n", str(PE_COUNTS[2]), "--path", "cma", "--tests",
                                   "rate", "--sizes", "1:4K")
        by_ring = run(quoit, folder, seconds * SHARES["rate"], "--hosts", "2", "--tests", ",".join(("barrier", *MEETINGS)),
                      "--sizes", "256")
        found["meet"] = {pes: run(quoit, folder, seconds * SHARES["meet"], "-n", str(pes), "--tests",
                                  ",".join(("barrier", *MEETINGS)), "--sizes", ",".join(map(str, MEETING_SIZES)))
                         for pes in PE_COUNTS}
        if cc:
            found["baseline_text"] = f"The baseline is {cc}, started by: " + "; ".join(
                f"{name}: {launch}" for name, launch in launches.items())
            for name, launch in launches.items():
                found["baselines"][name] = measure_baseline(quoit, folder, seconds * SHARES["baseline"], cc, launch,
                                                            options.baseline_timeout)
        else:
            found["baseline_text"] = ("No baseline was run: there is no other OpenSHMEM library here. Debian: apt-get install "
                                      "openmpi-bin libopenmpi-dev; or name one by --cc and --launch.")
        found["searches"] = search(options, quoit, folder, cc, launches)
        found["baselines"][CMA_ALONE] = {"rows": alone["rows"], "problems": []}
        found["baselines"][RING_ALONE] = {"rows": by_ring["rows"], "problems": []}
    return found


def main(quoit, arguments):
    parser = Parser("quoit figures hybrid", description=(
        "Measures the figures of HYBRID on this machine: latency of a put by its way, message rate, barrier and collectives\n"
        "against PEs, each beside the limit of the machine; and the improvements that the paper reports beside those over\n"
        "another OpenSHMEM library, if there is one."))
    page.add_option(parser, "hybrid")
    parser.add_argument("--quick", action="store_true", help="in seconds, with few samples")
    parser.add_argument("--cc", metavar="CC", help="compiler wrapper of the baseline (shmemcc of Open MPI, if it is there)")
    parser.add_argument("--launch", metavar="TEXT", help="its launcher, with {pes} for the number of PEs")
    parser.add_argument("--bfs", metavar="OURS,THEIRS", help="examples/graph500, built with oshcc and with the baseline's (built here, if its source is)")
    parser.add_argument("--scale", metavar="N", type=int, default=SCALE,
                        help="of the BFS: 2^N vertices (16; the paper's is 20)")
    options = parser.parse_args(arguments)
    if options.bfs and options.bfs.count(",") != 1:
        parser.error("argument --bfs: two programs, with a comma between them")
    options.baseline_timeout = BASELINE_TIMEOUT_QUICK_S if options.quick else BASELINE_TIMEOUT_S
    drawing.find_matplotlib()
    quotes = papers.quotes()
    try:
        page.prepare(options.html)
        found = measure(quoit, options, SECONDS_QUICK if options.quick else SECONDS)
        data = report(found, quotes)
        where = page.publish(data, options.html)
    except (OSError, perf.Wrong, page.Wrong) as problem:
        sys.exit(f"quoit figures hybrid: {problem}")
    print_tables(*(item for one in data["sections"] if one["title"] == REPORTED for item in one["items"] if item["kind"] == "table"))
    print(where)
    return 0
