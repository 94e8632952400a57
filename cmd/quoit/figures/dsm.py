# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures dsm: table 2 and figures 8 and 9 of "Can high performance software DSM systems designed with InfiniBand
features benefit from PCI-Express?" (DSM), measured on this machine: shared pages of libqdsm on emulated links whose latency and
rate are those that the paper states for PCI-X and PCI-Express, and on one host. What the paper reports stands beside."""
import dataclasses
import json
import math
import os
import re
import subprocess
import sys

import drawing
import page
import papers
from arguments import Parser, oshrun_of
from relations import Relation, box, boxes, reached_text

# The paper's 2.3: latency of a four-byte message; InfiniBand 4X carries 1 GB/s in each direction, which neither bus raises.
BUSES = {"PCI-X": ("4900ns", "1G"), "PCI-Express": ("3800ns", "1G")}
PROTOCOLS = {"ASYNC": "async", "NEWGENDSM": "newgendsm"}
TABLE_2 = {("PCI-X", "ASYNC", 2): 36, ("PCI-X", "ASYNC", 4): 51, ("PCI-X", "NEWGENDSM", 2): 33, ("PCI-X", "NEWGENDSM", 4): 50,
           ("PCI-Express", "ASYNC", 2): 33, ("PCI-Express", "ASYNC", 4): 40, ("PCI-Express", "NEWGENDSM", 2): 27,
           ("PCI-Express", "NEWGENDSM", 4): 41}
# The program, its arguments as in the paper where those are certain (Barnes), and quick ones.
APPLICATIONS = {"Barnes": ("dsm_barnes", ["4096", "2"], ["256", "1"]), "3Dfft": ("dsm_fft", ["S"], ["S"]),
                "LU": ("dsm_lu", ["512", "16"], ["96", "16"]), "IS": ("dsm_is", ["S"], ["S"])}
HOSTS = 4
ROUNDS = 3
TIMEOUT_S = 120
SPANS = {"compute": ("compute_ns",), "wait": ("lock_ns", "barrier_ns"), "page": ("page_ns", "diff_ns")}


class Wrong(Exception):
    pass


@dataclasses.dataclass
class Run:
    seconds: float
    parts: dict  # compute, wait, page: seconds, the mean of the PEs


class Machine:
    """Runs one program on one bus, or on one host; a failing run ends everything."""

    def __init__(self, oshrun, programs):
        self.oshrun = oshrun
        self.programs = programs

    def run(self, program, arguments, bus, protocol, hosts, variables=()):
        command = [self.oshrun, "-n", str(hosts), "--timeout", f"{TIMEOUT_S}s"]
        if bus:
            latency, rate = BUSES[bus]
            command += ["--hosts", str(hosts), "--write-latency", latency, "--link-rate", rate]
        command += [os.path.join(self.programs, program), *arguments]
        environment = {**os.environ, "DSM_PROTOCOL": PROTOCOLS[protocol], "DSM_STATS": "json", "DSM_MEMORY": "64M",
                       "DSM_COPIES": "invalidate",  # as the paper's protocols do
                       **dict(variables)}
        print(f"quoit figures dsm: {protocol}, {bus or 'one host'}, {hosts} PEs: {program} {' '.join(arguments)}",
              file=sys.stderr)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=TIMEOUT_S + 30, check=False)
        if done.returncode != 0 or "FAILED" in done.stdout:
            raise Wrong(f"{' '.join(command)} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def page_us(self, pages, bus, protocol, hosts):
        done = self.run("dsm_page", [str(pages)], bus, protocol, hosts, {"DSM_PREFETCH": "1"}.items())
        return float(re.search(r"([0-9.]+) us a page", done.stdout).group(1))

    def application(self, name, is_quick, bus, protocol):
        program, arguments, quick = APPLICATIONS[name]
        done = self.run(program, quick if is_quick else arguments, bus, protocol, HOSTS)
        stats = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        if len(stats) != HOSTS:
            raise Wrong(f"{program}: {len(stats)} PEs told their times, not {HOSTS}")
        parts = {part: sum(one[key] for one in stats for key in keys) / HOSTS / 1e9 for part, keys in SPANS.items()}
        return Run(float(re.search(r"PEs[:,] ([0-9.]+) s", done.stdout).group(1)), parts)


def measure_round(machine, options):
    """The buses alternate, so that a slow interval of the machine affects both."""
    pages, runs = {}, {}
    for protocol in PROTOCOLS:
        for hosts in (2, 4):
            for bus in (*BUSES, None):
                pages[bus, protocol, hosts] = machine.page_us(64 if options.quick else 1024, bus, protocol, hosts)
        for name in APPLICATIONS:
            for bus in (*BUSES, None):
                runs[name, bus, protocol] = machine.application(name, options.quick, bus, protocol)
    return pages, runs


def measure(machine, options):
    return [measure_round(machine, options) for _ in range(1 if options.quick else ROUNDS)]


def least(rounds):
    """The minimum of all rounds."""
    pages = {key: min(of[key] for of, _ in rounds) for key in rounds[0][0]}
    runs = {key: min((of[key] for _, of in rounds), key=lambda run: run.seconds) for key in rounds[0][1]}
    return pages, runs


# Relations

def relation(figure, quote, what, low, high, value, unit, reading="", table=None, uncounted=""):
    """`table`: what the paper's own table has for it."""
    lack = "" if table is None or low <= table <= high else f"the paper's own table has {table:.3g}"
    return Relation(figure, quote, what, reading, unit, low, high, value, uncounted, lack, table)


def gain(slow, fast):
    """By how many percent the second is smaller than the first."""
    return 100 * (1 - fast / slow) if slow > 0 else 0.0


def page_gain(pages, protocol, hosts):
    return gain(pages["PCI-X", protocol, hosts], pages["PCI-Express", protocol, hosts])


def page_ratio(pages, bus, hosts):
    return pages[bus, "ASYNC", hosts] / pages[bus, "NEWGENDSM", hosts]


def more_at_four(pages, protocol):
    return page_gain(pages, protocol, 4) - page_gain(pages, protocol, 2)


def relate_pages(pages):
    out = []
    for bus in BUSES:
        for hosts in (2, 4):
            out.append(relation("table 2", "dsm ahead", f"a page by ASYNC over one by NEWGENDSM, {bus}, {hosts} hosts", 1.001, 1.25,
                                page_ratio(pages, bus, hosts), "", "slightly: up to 1.25, as in the table",
                                page_ratio(TABLE_2, bus, hosts)))
    def least_gain(of):
        return min(page_gain(of, protocol, hosts) for protocol in PROTOCOLS for hosts in (2, 4))
    out.append(relation("table 2", "dsm better", "what PCI-Express gains, the least of both protocols, 2 and 4 hosts", 0.1,
                        math.inf, least_gain(pages), "%", "better", least_gain(TABLE_2), "the least of the four that follow"))
    for hosts, quote, low, high in ((2, "dsm two", 6, 15), (4, "dsm four", 18, 21)):
        for protocol in PROTOCOLS:
            out.append(relation("table 2", quote, f"what PCI-Express gains, {protocol}, {hosts} hosts", low, high,
                                page_gain(pages, protocol, hosts), "%", "", page_gain(TABLE_2, protocol, hosts)))
    for protocol in PROTOCOLS:
        out.append(relation("table 2", "dsm four", f"the gain at 4 hosts less that at 2, {protocol}", 0, math.inf,
                            more_at_four(pages, protocol), "%", "increases", more_at_four(TABLE_2, protocol)))
    return out


def relate_times(runs):
    out, bests = [], []
    for name, quote, low, high, reading in (("Barnes", "dsm barnes", 0, 6, ""), ("3Dfft", "dsm fft", 0, 13, ""),
                                            ("LU", "dsm lu", 0, 3, ""), ("IS", "dsm is", 5, 15, "approximately: 5 more or less")):
        best = max(gain(runs[name, "PCI-X", protocol].seconds, runs[name, "PCI-Express", protocol].seconds)
                   for protocol in PROTOCOLS)
        bests.append(best)
        out.append(relation("8", quote, f"what PCI-Express gains at most, {name}", low, high, best, "%", reading))
    out.append(relation("8", "dsm most", "what PCI-Express gains at most, of all four", 0, 13, max(bests), "%",
                        uncounted="the largest of the four above"))
    return out


def relate_parts(runs):
    def part_gain(name, part):
        return gain(runs[name, "PCI-X", "NEWGENDSM"].parts[part], runs[name, "PCI-Express", "NEWGENDSM"].parts[part])
    out = []
    for name in APPLICATIONS:
        out.append(relation("9", "dsm wait", f"what PCI-Express gains in wait time, {name}", 0, 15,
                            part_gain(name, "wait"), "%", "small: up to 15, less than a page gains at 4 hosts"))
        out.append(relation("9", "dsm page", f"page time's gain less wait time's, {name}", 0, math.inf,
                            part_gain(name, "page") - part_gain(name, "wait"), "%", "more significant"))
        out.append(relation("9", "dsm reduces", f"what PCI-Express gains in page time, {name}", 0.1, math.inf,
                            part_gain(name, "page"), "%"))
    for name in ("Barnes", "3Dfft", "IS"):
        out.append(relation("9", "dsm where", f"page time's gain, {name} less LU", 0, math.inf,
                            part_gain(name, "page") - part_gain("LU", "page"), "%", "particularly: more than LU"))
    return out


def relate_round(pages, runs):
    return relate_pages(pages) + relate_times(runs) + relate_parts(runs)


def relate(rounds):
    """Of the minimum of all rounds. What one round reaches and another one misses is not known."""
    out = relate_round(*least(rounds))
    for one, *of in zip(out, *(relate_round(*each) for each in rounds)):
        if len({each.is_reached for each in of}) > 1 and not one.lack:
            one.lack = f"of {len(of)} rounds {sum(each.is_reached for each in of)} reach it"
    return out


# The page

def table_2(pages):
    rows = [[bus or "one host", protocol, hosts, TABLE_2.get((bus, protocol, hosts)), us]
            for (bus, protocol, hosts), us in sorted(pages.items(), key=lambda item: (str(item[0][0]), *item[0][1:]))]
    return {"kind": "table", "title": "Time of a page (DSM, table 2)",
            "columns": ["bus", "protocol", "PEs", "the paper", "here"], "units": [None, None, None, "us", "us"], "rows": rows}


def figure_8(runs):
    rows = []
    for name in APPLICATIONS:
        times = {key: runs[name, *key].seconds for key in ((bus, protocol) for protocol in PROTOCOLS for bus in (*BUSES, None))}
        rows.append([name, *times.values()])
    columns = ["", *[f"{protocol}-{'one host' if not bus else bus[4]}" for protocol in PROTOCOLS for bus in (*BUSES, None)]]
    return {"kind": "table", "title": f"Execution time, {HOSTS} PEs (DSM, figure 8; X is PCI-X, E is PCI-Express)",
            "columns": columns, "units": [None, *["s"] * (len(columns) - 1)], "rows": rows}


def figure_9(runs):
    rows = []
    for name in APPLICATIONS:
        for bus in (*BUSES, None):
            parts = runs[name, bus, "NEWGENDSM"].parts
            whole = sum(parts.values())
            rows.append([name, bus or "one host", *[value for part in parts.values()
                                                    for value in (part, 100 * part / whole if whole else 0)]])
    return {"kind": "table", "title": "Where the time goes, NEWGENDSM (DSM, figure 9)",
            "columns": ["", "bus", *[column for part in SPANS for column in (part, "share")]],
            "units": [None, None, *["s", "%"] * len(SPANS)], "rows": rows}


def draw_pages(pages):
    """Table 2 beside what was measured; the paper has no page on one host."""
    keys = [(bus, protocol) for bus in BUSES for protocol in PROTOCOLS]
    return [{"kind": "bars", "title": f"Time of a page, {hosts} hosts (DSM, table 2)", "y_label": "time of a page", "y_unit": "us",
             "y_is_log": True, "groups": [f"{protocol}, {bus}" for bus, protocol in keys],
             "series": [{"name": "the paper", "values": [TABLE_2[bus, protocol, hosts] for bus, protocol in keys]},
                        {"name": "here", "values": [pages[bus, protocol, hosts] for bus, protocol in keys]}]} for hosts in (2, 4)]


def draw_applications(runs):
    """Figures 8 and 9."""
    buses = (*BUSES, None)
    times = [{"kind": "bars", "title": f"Execution time, {name} (DSM, figure 8)", "y_label": "execution time", "y_unit": "s",
              "groups": [bus or "one host" for bus in buses],
              "series": [{"name": protocol, "values": [runs[name, bus, protocol].seconds for bus in buses]}
                         for protocol in PROTOCOLS]} for name in APPLICATIONS]
    places = [(name, bus) for name in APPLICATIONS for bus in BUSES]
    shares = {"kind": "bars", "title": "Where the time goes, NEWGENDSM (DSM, figure 9)", "y_label": "share of the time", "y_unit": "%",
              "is_stacked": True, "groups": [f"{name}, {bus}" for name, bus in places], "series": []}
    for part in SPANS:
        values = []
        for name, bus in places:
            parts = runs[name, bus, "NEWGENDSM"].parts
            values.append(100 * parts[part] / (sum(parts.values()) or 1))
        shares["series"].append({"name": part, "values": values})
    return [*times, shares]


def summary(relations, quotes):
    return boxes(box(one, quotes, [("here", one)], [] if one.table is None else [
        ["the paper's table", {"value": one.table, "unit": one.unit}]]) for one in relations)


def report(pages, runs, relations, options, quotes):
    sizes = ", ".join(f"{name} {' '.join(words[1 if not options.quick else 2])}" for name, words in APPLICATIONS.items())
    latencies = ", ".join(f"{bus} {latency} and {rate}B/s" for bus, (latency, rate) in BUSES.items())
    return {"title": "DSM: shared pages by ASYNC and NEWGENDSM",
            "text": [f"Measured on this machine: {os.cpu_count()} processors run all the hosts, each a PE with the service "
                     "threads of its host, so computing is shared out as it is not in the paper.",
                     f"A bus is a time added to each write through a window, and a rate of the links: {latencies} in each direction, "
                     "which is InfiniBand 4X's. That PCI-X is shared by both directions is not emulated. A page travels as one write "
                     "over as many links as the ring has between two hosts.",
                     f"Sizes: {sizes}. The paper's table 3 lost its exponents; 4096 bodies are sure. Its figures 8 and 9 "
                     "have no numbers in the text but the percentages that are tested here. Not tested: what it says of the "
                     "applications' own traffic (4.3.1) and of larger systems, which it only expects. Where its table 2 has a value "
                     "for a sentence, the value stands beside it, and not all are in the range that the sentence states."],
            "sections": [
                {"title": "Page micro-benchmark", "items": [*draw_pages(pages), table_2(pages)]},
                {"title": "Applications", "items": [*draw_applications(runs), figure_8(runs), figure_9(runs)]},
                {"title": "What the paper states, and what was measured", "items": [
                    {"kind": "text", "text": [f"Reached: {reached_text(relations)}."]},
                    summary(relations, quotes)]}]}


def print_relations(relations):
    for one in relations:
        print(f"{one.figure:<8} {one.what:<60} {one.stated():>14} {one.value:>9.3g} {one.unit:<2}"
              f"{'' if one.verdict == 'reached' else f' {one.verdict_text}'}")
    print(f"reached: {reached_text(relations)}")


def parse(quoit, arguments):
    parser = Parser("quoit figures dsm", description=(
        "Measures table 2 and figures 8 and 9 of DSM on this machine: a page, and Barnes, 3Dfft, LU and IS, by ASYNC and\n"
        "NEWGENDSM, on emulated links with the latency and rate of PCI-X and of PCI-Express, and on one host; and prints\n"
        "every relation that the paper states beside what was measured, or NOT REACHED."))
    page.add_option(parser, "dsm")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--programs", metavar="DIR", required=True,
                        help="where examples/dsm_*.c were built (those that were installed with quoit)")
    options = parser.parse_args(arguments)
    check_programs(parser, options.programs)
    return options


def check_programs(parser, folder):
    for program in ("dsm_page", *(words[0] for words in APPLICATIONS.values())):
        if not os.access(os.path.join(folder, program), os.X_OK):
            parser.error(f"there is no program {os.path.join(folder, program)}: --programs")


def main(quoit, arguments):
    options = parse(quoit, arguments)
    drawing.find_matplotlib()
    quotes = papers.quotes()
    try:
        page.prepare(options.html)
        rounds = measure(Machine(oshrun_of(quoit), options.programs), options)
        (pages, runs), relations = least(rounds), relate(rounds)
        where = page.publish(report(pages, runs, relations, options, quotes), options.html)
    except (OSError, subprocess.TimeoutExpired, Wrong, page.Wrong) as problem:
        sys.exit(f"quoit figures dsm: {problem}")
    print_relations(relations)
    print(where)
    return 0
