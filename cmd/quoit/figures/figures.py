# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures: the papers' figures, every relation that the papers state, and whether the model reaches it.

Each relation has a value for two sets of constants: fitted (chosen by relations of the same papers) and public (public sources
alone). NOT REACHED is printed where it is so. What the papers leave open about sends is tried in other ways too (ring.VARIANTS),
which are counted.
"""
import importlib
import json
import math
import os
import sys

import drawing
import fit
import page
import papers
import ring
import tune
from arguments import Parser
from relations import NOT_REACHED, REACHED, box, boxes, counts, reached_text
from simulator import Book, Failed, Simulator, wire_rate

KINDS = ("summary", "hybrid", "dsm", "link")
COLUMNS = ("fitted", "public")


def parse(arguments):
    titles = "\n".join(f"  {name:<6} {title}" for name, title in ring.TITLES.items())
    parser = Parser("quoit figures", description=(
        "Makes the figures of the two ring papers from the simulator, and prints every relation that the papers state\n"
        "beside what the model gives, or NOT REACHED: with constants fitted to the papers and with those of public\n"
        "sources alone. What the papers leave open about sends is tried in other ways too, and counted."),
        epilog=f"figures:\n{titles}\n  summary one count over all five papers (quoit figures summary --help)\n"
               "  hybrid those of HYBRID, measured on this machine (quoit figures hybrid --help)\n"
               "  dsm    those of DSM, measured on this machine (quoit figures dsm --help)\n"
               "  link   that of LINK, simulated and measured (quoit figures link --help)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a figure; none: all")
    page.add_option(parser, "figures")
    parser.add_argument("--json", action="store_true", help="print the relations as JSON")
    parser.add_argument("--quick", action="store_true", help="few sizes")
    parser.add_argument("--sensitivity", action="store_true",
                        help="also each fitted constant 10 %% up and down: some minutes")
    parser.add_argument("--model", metavar="NAME=VALUE", action="append", default=[],
                        help="a constant of the cost model, in both columns (see quoit sim --show-model); many times")
    parser.add_argument("--fit", action="store_true",
                        help="search for better constants than the fitted ones, and print them, the fitted and the public ones\n"
                        "with what each set reaches; the page is figures/fit.html")
    parser.add_argument("--budget", metavar="TIME", type=tune.seconds, default=600.0, help="how long --fit searches (10min)")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the order in which --fit tries sets (1)")
    options = parser.parse_args(arguments)
    if options.fit and (options.names or options.sensitivity):
        parser.error("--fit is for all figures, and alone")
    if options.fit and options.html == parser.get_default("html"):
        options.html = "figures/fit.html"
    for name in options.names:
        if name not in ring.TITLES:
            parser.error(f"there is no figure {name}")
    options.names = [name for name in ring.TITLES if not options.names or name in options.names]
    return options, parser


class Work:
    """Everything that is run, asked for once to collect and once for its values."""

    def __init__(self, simulator, options, model):
        self.options = options
        self.model = model
        self.rings = [ring.Ring(Book(simulator, [constants, *options.model], options.quick)) for constants in COLUMNS]
        self.variants = [ring.Ring(Book(simulator, options.model, options.quick), workload) for workload in ring.VARIANTS]
        self.is_whole = len(options.names) == len(ring.TITLES)
        self.wire = wire_rate(model) if self.is_whole else None
        self.free = ring.Ring(Book(simulator, [*options.model, "driver_call_ns=0"], options.quick))
        self.tilted = {}
        if options.sensitivity:
            for name, constant in model.items():
                if constant["fit"]:
                    self.tilted[name] = [ring.Ring(Book(simulator, [*options.model, f"{name}={tilt(constant, share)}"],
                                                        is_quick=True)) for share in (0.9, 1.1)]
        self.quick = ring.Ring(Book(simulator, options.model, is_quick=True))

    def evaluate(self):
        names = self.options.names
        self.relations = [one.relate(names) for one in self.rings]
        self.plots = {name: self.rings[0].draw(name) for name in names}
        self.varied = [one.relate(names) for one in self.variants]
        self.rows = self.is_whole and ring.compare(self.rings[0], self.free, self.wire)
        self.tilts = {name: [one.relate(names) for one in pair] for name, pair in self.tilted.items()}
        self.quick_relations = self.quick.relate(names) if self.tilted else []


def tilt(constant, share):
    return max(round(constant["value"] * share), 0)


def counted(work):
    """(constants, workload, its relations) of all that is counted."""
    rows = [(name, ring.READ, relations) for name, relations in zip(COLUMNS, work.relations)]
    return rows + [(COLUMNS[0], workload, relations) for workload, relations in zip(ring.VARIANTS, work.varied)]


def print_table(work):
    print(f"{'':<6} {'relation':<92} {'stated':>16}" + "".join(f" {name:>9}" for name in COLUMNS))
    for row in zip(*work.relations):
        first = row[0]
        values = "".join(f" {one.value:>8.4g}{' ' if one.is_reached else '!'}" for one in row)
        print(f"{first.figure:<6} {first.what[:92]:<92} {first.stated():>16}{values} {first.unit:<7}"
              f"{'' if first.verdict == 'reached' else first.verdict_text}")
    print("\n! is not as stated. Reached, of those that count:")
    for name, workload, relations in counted(work):
        print(f"  {name} constants, {workload.name}: {reached_text(relations)}")


def as_json(work):
    out = []
    for row in zip(*work.relations):
        one = row[0]
        out.append({"figure": one.figure, "relation": one.what, "quote": one.quote, "reading": one.reading, "unit": one.unit,
                    "low": finite(one.low), "high": finite(one.high), "uncounted": one.uncounted, "values": [
                        {"constants": name, "value": each.value, "reached": each.is_reached}
                        for name, each in zip(COLUMNS, row)]})
    return out


def finite(number):
    return None if math.isinf(number) else number


# The page

def summary(work, quotes):
    return boxes(box(row[0], quotes, zip((f"{name} constants" for name in COLUMNS), row)) for row in zip(*work.relations))


def counts_table(work):
    return {"kind": "table", "title": "How many relations are reached", "columns": ["constants", "sends", "", "reached"],
            "rows": [[f"{name} constants", workload.name, workload.text, reached_text(relations)]
                     for name, workload, relations in counted(work)]}


def not_reached(work):
    names = [f"{one.figure}: {one.what} ({one.value:.4g} {one.unit}, stated {one.stated()})"
             for one in work.relations[0] if one.verdict == NOT_REACHED]
    return ["NOT REACHED with fitted constants:", *names] if names else \
        ["With fitted constants all are reached."]


def sensitivity(work):
    rows = []
    base = [one.is_reached for one in work.quick_relations]
    for name, (down, up) in work.tilts.items():
        changed = sorted({one.figure + " " + one.what for tilted in (down, up)
                          for one, was in zip(tilted, base) if one.is_reached != was})
        constant = work.model[name]
        rows.append([name, constant["value"], constant["fit"], counts(down)[REACHED], counts(up)[REACHED], "; ".join(changed) or "nothing"])
    return {"kind": "table", "title": f"Each fitted constant 10 % down and up, few sizes: "
                                      f"{reached_text(work.quick_relations)} are reached as it stands",
            "columns": ["constant", "value", "chosen by", "reached, -10 %", "reached, +10 %", "relations that change"],
            "rows": rows}


def constants(model):
    return {"kind": "table", "columns": ["constant", "fitted", "public", "what it is", "public source (docs/sources.md)",
                                         "the fitted value was chosen by"],
            "rows": [[name, one["fitted"], one["public"], one["meaning"], one["source"], one["fit"]]
                     for name, one in model.items()]}


UNCOUNTED = [
    "Not counted, because the model could not miss it: \u201coverall network throughput increased in the ring network as the "
    "number of hosts that participated in the network increased\u201d and \u201crelative higher data transfer rate in comparison "
    "with an individual NTB port connection\u201d (RING-19, IV; links share nothing but a host's memory).",
    "Not tested, because it names a cause and its effect is tested: \u201cWhen there are more than 4 threads, physical transfer of "
    "the interconnection network dominates thread parallelism, and as a result, parallelism of threads has little effect.\u201d "
    "(RING-22, 5.2; 22/6, 4 -> 8 threads), and why the rate of reduction falls with the hosts (22/5). The papers show means of five "
    "runs (RING-22, 5.1); simulated runs are all alike.",
    "Against the papers: a put to the left neighbour travels the whole ring, since the protocol sends payload in one direction; "
    "RING-19, III.B.3 says \u201cIf the source host and destination host are neighbors, only one data transfer is required to "
    "access remote symmetric data objects.\u201d The figures that have sends to the left (22/5 to 22/7) rest on that; the row "
    "\u201call to the right\u201d is without it.",
    "Not modelled: what copies of several threads cost each other in a host's memory, and the papers' kernel driver beyond "
    "one cost a call. LINK measured other things (docs/performance.md)."]


def report(work, quotes):
    fits = {name: one["fit"].split(":")[0] in ring.TITLES for name, one in work.model.items() if one["fit"]}
    chosen, kept = (", ".join(name for name, is_chosen in fits.items() if is_chosen == wanted) for wanted in (True, False))
    sections = [{"title": f"{name}: {ring.TITLES[name]}", "items": plots} for name, plots in work.plots.items()]
    sections.append({"title": "What the papers state, and what the model gives", "items": [
        counts_table(work), {"kind": "text", "text": not_reached(work)}, summary(work, quotes), {"kind": "text", "text": UNCOUNTED}]})
    if work.is_whole:
        sections.append({"title": "Our protocol beside the papers', like for like", "items": [
            {"kind": "text", "text": [
                "The same puts, issued the same way, on the same constants. \u201cDriver free\u201d leaves out what a call of the "
                "papers' kernel driver costs, which ours does not pay because it maps the registers."]},
            {"kind": "table", "columns": ["", "bytes", "papers", "papers, driver free", "ours", "ours of papers",
                                          "of driver free", ""], "units": [None, "B", "us", "us", "us", "%", "%", None],
             "rows": work.rows}]})
    if work.tilts:
        sections.append({"title": "How much the count depends on each fitted constant", "items": [sensitivity(work)]})
    sections.append({"title": "The cost model", "items": [constants(work.model)]})
    return {"title": "The figures of the ring papers, simulated",
            "text": ["The production code of the papers' protocol, run in virtual time on one cost model of the papers' hosts. "
                     "19 is RING-19, 22 is RING-22. Plots have fitted constants; what the papers report "
                     "is shaded, and where they report changes, the shade is their range around the simulated value from which "
                     "the change starts.",
                     f"With fitted constants this is a fit, not a prediction: {chosen} were chosen by relations on this page; first "
                     f"estimates that were kept: {kept}. With public constants none was chosen."],
            "sections": sections}


def main(quoit, arguments):
    if arguments and arguments[0] in KINDS:
        return importlib.import_module(arguments[0]).main(quoit, arguments[1:])
    options, parser = parse(arguments)
    drawing.find_matplotlib()
    simulator = Simulator(quoit)
    quotes = papers.quotes()
    try:
        model = simulator.call(["--show-model", *[word for text in options.model for word in ("--model", text)]])
        work = Work(simulator, options, model)
    except Failed as problem:
        parser.error(str(problem).splitlines()[-1].split("quoit sim: ")[-1])
    try:
        page.prepare(options.html)
        if options.fit:
            return fit.main(quoit, model, options)
        work.evaluate()
        simulator.make()
        work.evaluate()
        where = page.publish(report(work, quotes), options.html)
    except (OSError, Failed, page.Wrong) as problem:
        sys.exit(f"quoit figures: {problem}")
    if options.json:
        print(json.dumps(as_json(work)))
    else:
        print_table(work)
        print(where)
    return 0
