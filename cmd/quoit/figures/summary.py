# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures summary: one count over all five papers, by the rule of relations.py, from results that were saved: those of
results.json, which come with quoit, those of another file, or new ones (--run)."""
import dataclasses
import datetime
import json
import math
import os
import shutil
import subprocess
import sys

import drawing
import dsm
import hybrid
import link
import page
import papers
import perf
import ring
from arguments import Parser, oshrun_of
from relations import NOT_REACHED, REACHED, UNCOUNTED, UNJUDGED, VERDICTS, Relation, box, boxes, counts
from simulator import Book, Failed, Simulator

PAPERS = ("RING-19", "RING-22", "HYBRID", "LINK", "DSM")
RESULTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "results.json")
COLUMNS = {REACHED: "reached", NOT_REACHED: "not reached", UNJUDGED: "cannot be judged", UNCOUNTED: "not counted"}
PUBLIC = "reached, public"
RULE = ("A relation is what a sentence of a paper states, as a number or as an order of numbers. It is reached if the value here is "
        "in the range that is stated. It cannot be judged where what the sentence speaks of is not here (more processors, another "
        "library), where the paper's own table contradicts it, or where rounds of a measurement disagree. It is not counted where its number is that of another "
        "relation, where no run could miss it, or where what it is set beside does not stand for what the paper has there.")


# What is run: by kind, pairs of relations with fitted constants, or as measured, and with public ones, or None

def run_ring(quoit, options):
    simulator = Simulator(quoit)
    rings = [ring.Ring(Book(simulator, [constants], options.quick)) for constants in ("fitted", "public")]
    return simulated(simulator, lambda: [one.relate(ring.TITLES) for one in rings])


def run_link(quoit, options):
    simulator = Simulator(quoit)
    links = [link.Link(simulator, (constants, "queued"), options) for constants in ("fitted", "public")]
    return simulated(simulator, lambda: [one.relate() for one in links])


def simulated(simulator, relate):
    relate()
    simulator.make()
    return list(zip(*relate()))


def run_dsm(quoit, options):
    return [(one, None) for one in dsm.relate(dsm.measure(dsm.Machine(oshrun_of(quoit), options.programs), options))]


def run_hybrid(quoit, options):
    reported, ways = hybrid.relate(hybrid.measure(quoit, options, hybrid.SECONDS_QUICK if options.quick else hybrid.SECONDS))
    return [(one, None) for one in [*(each.relation for each in reported), *ways]]


RUNS = {"ring": run_ring, "hybrid": run_hybrid, "link": run_link, "dsm": run_dsm}


# Results as they are saved

def saved(one, kind, public):
    fields = {name: None if isinstance(value, float) and math.isinf(value) else value
              for name, value in dataclasses.asdict(one).items()}
    return {"kind": kind, **fields, "public": public and public.value}


def loaded(fields):
    """The relation, and the same with public constants or None."""
    words = {name: value for name, value in fields.items() if name not in ("kind", "public")}
    words["low"] = -math.inf if words["low"] is None else words["low"]
    words["high"] = math.inf if words["high"] is None else words["high"]
    one = Relation(**words)
    return one, None if fields["public"] is None else dataclasses.replace(one, value=fields["public"])


def run_kinds(quoit, options, results):
    """Replaces the results of the kinds that are asked for."""
    version = subprocess.run([quoit, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    for kind in options.run:
        print(f"quoit figures summary: {kind}", file=sys.stderr, flush=True)
        found = RUNS[kind](quoit, options)
        results["runs"][kind] = {"by": version, "date": datetime.date.today().isoformat(), "processors": os.cpu_count(),
                                 "is_quick": options.quick}
        results["relations"] = [one for one in results["relations"] if one["kind"] != kind] + [
            saved(one, kind, public) for one, public in found]
    results["relations"].sort(key=lambda one: list(RUNS).index(one["kind"]))


def run_text(kind, run):
    how = "simulated" if kind in ("ring", "link") else f"measured on {run['processors']} processors"
    return f"{kind}: {how}, {run['date']}, {run['by']}{', few sizes' if run['is_quick'] else ''}"


# What is said

class Summary:
    def __init__(self, results):
        self.runs = results["runs"]
        quotes = papers.quotes()
        self.pairs = {name: [] for name in PAPERS}
        for fields in results["relations"]:
            pair = loaded(fields)
            self.pairs[quotes[pair[0].quote][0].split(",")[0]].append(pair)

    def counts(self):
        """{paper or "all": {column: count}}; with public constants None where there are none."""
        out = {}
        for name, pairs in (*self.pairs.items(), ("all", [pair for pairs in self.pairs.values() for pair in pairs])):
            of = counts([one for one, _ in pairs])
            public = [one for _, one in pairs if one]
            out[name] = {**{COLUMNS[verdict]: of[verdict] for verdict in VERDICTS},
                         PUBLIC: counts(public)[REACHED] if public and name != "all" else None}
        return out


def print_counts(summary):
    columns = [*COLUMNS.values(), PUBLIC]
    print(f"{'paper':<8}" + "".join(f"  {name}" for name in columns))
    for name, row in summary.counts().items():
        print(f"{name:<8}" + "".join(f"  {'-' if row[column] is None else row[column]:>{len(column)}}" for column in columns))
    for kind, run in summary.runs.items():
        print(run_text(kind, run))


def as_json(summary, results):
    return {"counts": summary.counts(), "runs": summary.runs, "relations": [
        {**fields, "verdict": loaded(fields)[0].verdict} for fields in results["relations"]]}


def box_of(one, public, quotes):
    return box(one, quotes, [("here", one), *([("public constants", public)] if public else [])])


def report(summary):
    quotes, of = papers.quotes(), summary.counts()
    columns = [*COLUMNS.values(), PUBLIC]
    shown = (REACHED, NOT_REACHED, UNJUDGED)
    return {"title": "What the five papers state, and what is reached",
            "text": [RULE],
            "sections": [
                {"title": "The count", "items": [
                    {"kind": "table", "columns": ["paper", *columns],
                     "rows": [[name, *[row[column] for column in columns]] for name, row in of.items()]},
                    {"kind": "bars", "title": "Relations of each paper", "y_label": "relations", "is_stacked": True,
                     "groups": list(PAPERS), "series": [{"name": COLUMNS[verdict], "values": [
                         of[name][COLUMNS[verdict]] for name in PAPERS]} for verdict in shown]},
                    {"kind": "text", "text": [
                        "Ring and LINK are simulated: with constants fitted to the same papers, and, in the last column, with those "
                        "of public sources alone. HYBRID and DSM are measured.",
                        *[run_text(*item) for item in summary.runs.items()]]}]},
                *[{"title": name, "items": [boxes(box_of(*pair, quotes) for pair in pairs)]}
                  for name, pairs in summary.pairs.items()]]}


def parse(arguments):
    parser = Parser("quoit figures summary", description=(
        "Prints how many of the relations that the five papers state are reached, are not, and cannot be judged: from results\n"
        "that came with quoit, or from new ones. A page has each relation with the paper's sentence, the value and the verdict."))
    page.add_option(parser, "summary")
    parser.add_argument("--json", action="store_true", help="print counts and relations as JSON")
    parser.add_argument("--from", metavar="FILE", dest="source", default=RESULTS, help="results of another run")
    parser.add_argument("--run", metavar="KINDS", default="",
                        help="make new results of ring, hybrid, link, dsm (with commas) or all, and save them as results.json\n"
                        "beside the page; a quarter of an hour for all")
    parser.add_argument("--quick", action="store_true", help="with --run: few sizes, few samples")
    parser.add_argument("--programs", metavar="DIR", default="",
                        help="with --run dsm: where examples/dsm_*.c were built (those that were installed with quoit)")
    options = parser.parse_args(arguments)
    options.run = list(RUNS) if options.run == "all" else [kind for kind in options.run.split(",") if kind]
    for kind in options.run:
        if kind not in RUNS:
            parser.error(f"argument --run: {kind} is none of {', '.join(RUNS)}, all")
    if "dsm" in options.run:
        dsm.check_programs(parser, options.programs)
    options.model, options.launch, options.bfs, options.scale = [], None, None, hybrid.SCALE
    options.cc = shutil.which("shmemcc")
    options.baseline_timeout = hybrid.BASELINE_TIMEOUT_QUICK_S if options.quick else hybrid.BASELINE_TIMEOUT_S
    return options


def main(quoit, arguments):
    options = parse(arguments)
    drawing.find_matplotlib()
    try:
        page.prepare(options.html)
        with open(options.source, encoding="utf-8") as file:
            results = json.load(file)
        run_kinds(quoit, options, results)
        if options.run:
            page.save(results, os.path.dirname(options.html), "results")
        summary = Summary(results)
        where = page.publish(report(summary), options.html)
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError, Failed, dsm.Wrong, perf.Wrong, page.Wrong) as problem:
        sys.exit(f"quoit figures summary: {problem}")
    if options.json:
        print(json.dumps(as_json(summary, results)))
    else:
        print_counts(summary)
        print(where)
    return 0
