# SPDX-License-Identifier: BSD-3-Clause
"""quoit predict: what rings of 2 to 256 hosts are worth, simulated, with the conditions under which that holds; with a program:
what that takes on machines of other sizes (program.py).

Rates are of a steady state (sim/workload_predict.c). Every value is the mean over seeds with noise, and has its range.
"""
import json
import re
import sys

import drawing
import network
import page
import program
import units
from arguments import Parser
from simulator import Book, Failed, Simulator, wire_rate

FIGURES = ("put 8 B, neighbour", "put 8 B, farthest", "barrier", "allreduce 8 B", "allreduce, large", "one stream",
           "neighbours", "all-to-all", "bisection", "put 8 B, round a dead link", "barrier, one link dead",
           "all-to-all, one link dead")
RATES = ("one stream", "neighbours", "all-to-all", "bisection", "all-to-all, one link dead")
SHARES = {"neighbours": "neighbours, least share", "all-to-all": "all-to-all, least share",
          "bisection": "bisection, least share", "all-to-all, one link dead": "one link dead, least share"}
SIZES = tuple(1 << shift for shift in (16, 18, 20, 22, 24))
SIZE_HOSTS = (5, 8)
SLOTS = (8, 16, 32, 64)
SLOT_SIZES = (256 << 10, 1 << 20, 4 << 20)
NOISE_NS = 100
SWITCH_SHARE = 0.75  # of a switch's rate; less is clearly less, whatever the start-up costs
RANGE_LEAST = 0.005  # of the mean: a smaller range is not shown
GROWTH_LEAST = 1.05  # a larger ring with less than 5 % more throughput counts as equal
ASSUMED = ("memory_bus_ps_per_byte", "memory_turn_ns", "link_ps_per_byte", "link_latency_ns", "dma_start_ns", "thread_wake_ns",
           "frame_ns")
MEMORY_ALTERNATIVES = (("memory_bus_ps_per_byte=27", "a channel and a half"), ("memory_bus_ps_per_byte=23", "two channels"))


RING_OPTIONS = {"bytes": "256K", "seeds": 3, "conditions": False, "network": None, "processors": 0}  # and their defaults
PROGRAM_OPTIONS = {"pes_per_host": 1, "set": [], "compute": "zero"}


def read_hosts(text, least, most):
    if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", text):
        raise ValueError
    hosts = [int(word) for word in text.split(",")]
    if hosts != sorted(set(hosts)) or hosts[0] < least or hosts[-1] > most:
        raise ValueError
    return hosts


def read_bytes(text):
    found = re.fullmatch(r"(\d{1,9})([KMG]?)", text)
    size = int(found.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[found.group(2)] if found else 0
    if size % 64 or not 4096 <= size <= 1 << 26:
        raise ValueError
    return size


def make_parser():
    parser = Parser("quoit predict", usage="quoit predict [OPTION]... [PROGRAM [ARGUMENT]...]", description=(
        "With PROGRAM, the path of one or a name of PATH: runs it by oshrun --virtual with each number of hosts, and prints time,\n"
        "speed-up, where the time goes and the fullest link. Options of the program stand behind \"--\".\n"
        "Without: simulates rings with one PE a host and the cost model of quoit sim, and says where a ring stops paying.\n"
        "Rates are of a steady state; each value is a mean over seeds with noise, beside its range."))
    parser.add_argument("words", metavar="PROGRAM [ARGUMENT]...", nargs="*", help="the program, and its arguments")
    parser.add_argument("--hosts", metavar="LIST",
                        help=f"numbers of hosts, growing: of a program 1 to {program.HOSTS_MAX} ({program.HOSTS}), of rings 2 to 256 "
                             "(2,3,4,5,6,8,12,16,32)")
    parser.add_argument("--model", metavar="MODEL", action="append", default=[],
                        help="with PROGRAM the machine (quoit model list), many times to compare some; without, NAME=VALUE, a constant "
                             "of the cost model, many times (quoit sim --show-model)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write it as a page with plots")
    one = parser.add_argument_group("of a program")
    one.add_argument("--pes-per-host", metavar="N", type=int, help="PEs of each host (1)")
    one.add_argument("--set", metavar="NAME=VALUE", action="append",
                     help="change constants of the model, as oshrun --set; many times")
    one.add_argument("--compute", choices=("zero", "measured"), help="what computing takes: nothing (zero), or this machine's time")
    rings = parser.add_argument_group("of rings")
    rings.add_argument("--bytes", metavar="SIZE",
                       help="what a PE puts to each neighbour, or in all to others; size of the large allreduce (256K)")
    rings.add_argument("--seeds", metavar="N", type=int, help="runs of each, with noise of their own (3)")
    rings.add_argument("--conditions", action="store_true", default=None,
                       help="also other sizes, slots, constants of public sources, and each assumption 10 %% up and down: "
                            "some minutes")
    rings.add_argument("--network", metavar="FILES",
                       help="hosts on an ordinary network instead, up to 1024: collectives by a model that is fitted to the first "
                            "of these results of quoit perf (see its --loggp), simulated, and as the files have them")
    rings.add_argument("--processors", metavar="P", type=int,
                       help="of --network: all hosts share so many, as namespaces of one machine do (each has its own)")
    return parser


def set_defaults(parser, options):
    """And refuses what belongs to the other kind."""
    refused, why = (RING_OPTIONS, "is of rings, not of a program") if options.words else (PROGRAM_OPTIONS, "needs a PROGRAM")
    for name in refused:
        if getattr(options, name) is not None:
            parser.error(f"--{name.replace('_', '-')} {why}")
    for name, value in {**RING_OPTIONS, **PROGRAM_OPTIONS}.items():
        if getattr(options, name) is None:
            setattr(options, name, value)


def set_hosts(parser, options, least, most):
    try:
        options.hosts = read_hosts(options.hosts, least, most)
    except ValueError:
        parser.error(f"{options.hosts} is not a growing list of {least} to {most} hosts, such as 2,5,16")


def check_program(parser, options):
    options.hosts = options.hosts or program.HOSTS
    set_hosts(parser, options, 1, program.HOSTS_MAX)
    if not options.model:
        parser.error("a program needs --model MODEL, the machine that it is to run on (quoit model list)")
    if not 1 <= options.pes_per_host <= program.PES_MAX:
        parser.error(f"--pes-per-host is 1 to {program.PES_MAX}, not {options.pes_per_host}")


def check_rings(parser, options):
    options.hosts = options.hosts or "2,3,4,5,6,8,12,16,32"
    set_hosts(parser, options, 2, 1024 if options.network else 256)
    try:
        options.bytes = read_bytes(options.bytes)
    except ValueError:
        parser.error(f"{options.bytes} is not a multiple of 64 from 4K to 64M")
    if not 1 <= options.seeds <= 100:
        parser.error(f"--seeds is 1 to 100, not {options.seeds}")
    if not 0 <= options.processors <= 1024:
        parser.error(f"--processors is 0 to 1024, not {options.processors}")
    if options.network and options.bytes < network.SMALL_BYTES * options.hosts[-1]:
        parser.error(f"--bytes is divided among {options.hosts[-1]} hosts, {network.SMALL_BYTES} at least for each")
    if options.network and (options.model or options.conditions):
        parser.error("--network takes its constants from the first file: no --model, no --conditions")
    if options.processors and not options.network:
        parser.error("--processors is of --network")


def parse(arguments):
    parser = make_parser()
    mark = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_intermixed_args(arguments[:mark])
    options.words += arguments[mark + 1:]
    set_defaults(parser, options)
    (check_program if options.words else check_rings)(parser, options)
    return options, parser


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


class Rings:
    """One set of constants."""

    def __init__(self, simulator, options, model=()):
        self.options = options
        self.book = Book(simulator, [f"noise_ns={NOISE_NS}", *options.model, *model])

    def at(self, figure, hosts, size=None, part="mean", **more):
        size = size or self.options.bytes
        seeds = self.options.seeds if size <= 1 << 20 else 1  # larger puts take too long for more
        return self.book.stat(figure, part, workload="predict", hosts=hosts, bytes=size, seeds=seeds, direct="posted", **more)

    def parts(self, figure, hosts, size=None):
        """Mean, least, largest; the last two are None where the range is not worth a word."""
        mean, least, largest = (self.at(figure, hosts, size, part) for part in ("mean", "least", "largest"))
        return (mean, least, largest) if largest - least > RANGE_LEAST * mean else (mean, None, None)

    def cell(self, figure, hosts, size=None):
        mean, *span = (units.text(part, unit_of(figure)) for part in self.parts(figure, hosts, size) if part is not None)
        return f"{mean} ({' to '.join(span)})" if span else mean


def unit_of(figure):
    return "%" if figure in SHARES.values() else "MB/s" if figure in RATES else "us"


def conclude(rings, hosts):
    all_to_all = [rings.at("all-to-all", count) for count in hosts]
    streams = [rings.at("one stream", count) for count in hosts]
    most = 0
    for i, value in enumerate(all_to_all):
        if value > GROWTH_LEAST * all_to_all[most]:
            most = i
    worse = len(hosts)
    while worse and all_to_all[worse - 1] < SWITCH_SHARE * hosts[worse - 1] * streams[worse - 1]:
        worse -= 1
    size = size_text(rings.options.bytes)
    growth = (f"All-to-all of {size}: {units.text(all_to_all[most], 'MB/s')} of all hosts together with {hosts[most]} hosts; no "
              f"larger ring looked at carries 5 % more.")
    if worse < len(hosts):
        switched = (f"From {hosts[worse]} hosts on the ring carries less than 75 % of the all-to-all of a switch that gives each "
                    f"host one stream of {units.text(streams[worse], 'MB/s')}: there it stops paying for such programs, at this "
                    "size.")
    else:
        switched = "The largest of these rings carries at least 75 % of the all-to-all of a switch with one stream a host."
    return growth, switched


def lines(title, label, unit, names, rings, hosts):
    return {"kind": "lines", "title": title, "x_label": "hosts", "y_label": label, "y_unit": unit, "x_is_log2": True, "y_is_log": True,
            "series": [{"name": name, "points": [[count, rings.at(name, count)] for count in hosts]} for name in names],
            "bands": [{"name": f"{name}, all seeds", "points": [
                [count, rings.at(name, count, part="least"), rings.at(name, count, part="largest")] for count in hosts]}
                for name in names if any(rings.parts(name, count)[1] is not None for count in hosts)]}


def ring_table(title, rings, hosts):
    rows = [[name, *[rings.cell(name, count) for count in hosts]] for name in FIGURES]
    rows += [[f"{share} of a fair one", *[rings.cell(share, count) for count in hosts]] for share in SHARES.values()]
    return {"kind": "table", "title": title, "columns": ["hosts", *map(str, hosts)], "rows": rows}


def size_items(rings):
    items = []
    for hosts in SIZE_HOSTS:
        rows = [[name, *[rings.cell(name, hosts, size) for size in SIZES]] for name in
                ("one stream", "neighbours", "all-to-all", "bisection", *SHARES.values())]
        rows.append(["switch of one stream a host / all-to-all", *[
            hosts * rings.at("one stream", hosts, size) / rings.at("all-to-all", hosts, size) for size in SIZES]])
        items.append({"kind": "table", "title": f"{hosts} hosts, by size (shares of a fair one)",
                      "columns": ["", *map(size_text, SIZES)], "rows": rows})
    return items


def slot_items(rings, wire):
    return [{"kind": "text", "text": [
        "Hosts that have more to send than a queue has slots fill it, and what a relay passes on waits for the few that come "
        "free. So a bisection of large puts carries less than one of puts that fit the slots; every host gets its share."]},
        {"kind": "lines", "title": "Bisection of 5 hosts against the slots of a queue (chunks of 32 KiB)", "x_label": "slots",
         "x_is_log2": True, "y_label": "rate", "y_unit": "MB/s", "series": [
             {"name": size_text(size), "points": [[slots, rings.at("bisection", 5, size, slots=slots)] for slots in SLOTS]}
             for size in SLOT_SIZES],
         "limits": [{"name": "all links in one direction, two hops a byte", "y": 5 * wire / 2}]},
        {"kind": "lines", "title": "The host with the least of it", "x_label": "slots", "x_is_log2": True,
         "y_label": "of a fair share", "y_unit": "%", "series": [
             {"name": size_text(size), "points": [
                 [slots, rings.at("bisection, least share", 5, size, slots=slots)] for slots in SLOTS]} for size in SLOT_SIZES],
         "limits": [{"name": "what is asked", "y": 70}]}]


class Sensitivity:
    def __init__(self, simulator, options, model):
        self.wire = wire_rate(model)
        self.base = Rings(simulator, options)
        self.tilted = [(f"{name} {sign}10 %", Rings(simulator, options, [f"{name}={round(model[name]['value'] * share)}"]))
                       for name in ASSUMED for sign, share in (("-", 0.9), ("+", 1.1))]
        self.tilted += [(f"{setting} ({text})", Rings(simulator, options, [setting])) for setting, text in MEMORY_ALTERNATIVES]

    def table(self):
        names, hosts = ("put 8 B, neighbour", "barrier", "one stream", "all-to-all", "bisection"), 8
        rows = [["as it stands", *[self.base.at(name, hosts) for name in names]]]
        rows += [[text, *[f"{100 * (rings.at(name, hosts) / self.base.at(name, hosts) - 1):+.1f} %" for name in names]]
                 for text, rings in self.tilted]
        return {"kind": "table", "title": f"{hosts} hosts, {size_text(self.base.options.bytes)}: what each assumption changes",
                "columns": ["assumption", *names], "rows": rows}


def report(options, rings, public, sensitivity):
    growth, switched = conclude(rings, options.hosts)
    seeds = f"{options.seeds} seed{'s' if options.seeds > 1 else ''}"
    ranges = f"Mean and range of {seeds}"
    sections = [{"title": f"One PE a host, {size_text(options.bytes)}", "items": [
        ring_table(ranges, rings, options.hosts),
        lines("Times", "time of a call", "us", FIGURES[:5], rings, options.hosts),
        lines("Rates of all hosts together", "rate", "MB/s", FIGURES[5:9], rings, options.hosts),
        lines("Times with one dead link", "time of a call", "us", (FIGURES[0], FIGURES[9], FIGURES[2], FIGURES[10]), rings, options.hosts),
        lines("All-to-all with one dead link", "rate", "MB/s", (FIGURES[7], FIGURES[11]), rings, options.hosts)]}]
    if sensitivity:
        sections += [
            {"title": "Constants of public sources alone", "items": [
                {"kind": "text", "text": list(conclude(public, options.hosts))},
                ring_table(ranges, public, options.hosts)]},
            {"title": "Other sizes", "items": size_items(rings)},
            {"title": "Slots", "items": slot_items(rings, sensitivity.wire)},
            {"title": "Assumptions", "items": [sensitivity.table()]}]
    return {"title": "Rings of many hosts, predicted", "text": [
        growth, switched,
        f"Conditions: one PE a host, one lane, posted writes, direct puts to neighbours, 16 slots of 32 KiB, {size_text(options.bytes)} unless said "
        f"otherwise; each piece of work takes up to {NOISE_NS} ns longer, by chance, over {seeds}; rates are of a "
        "steady state, with two rounds of puts of each PE under way. The constants are those of the papers' hosts, fitted to "
        "their figures, where nothing else is said (docs/sources.md). Nothing here was measured on hardware."],
        "sections": sections}


def print_table(data, options):
    table = data["sections"][0]["items"][0]
    width = max(len(cell) for row in table["rows"] for cell in row[1:]) + 1
    print(f"{'hosts':<48}" + "".join(f"{count:>{width}}" for count in options.hosts))
    for row in table["rows"]:
        print(f"{row[0]:<48}" + "".join(f"{cell:>{width}}" for cell in row[1:]))
    print("\n" + "\n".join(data["text"]))


def prepare(quoit, options, parser):
    """As network.prepare()."""
    simulator = Simulator(quoit)
    try:
        model = simulator.call(["--show-model", *[word for text in options.model for word in ("--model", text)]])
        sensitivity = Sensitivity(simulator, options, model) if options.conditions else None
    except Failed as problem:
        parser.error(str(problem).splitlines()[-1].split("quoit sim: ")[-1])
    rings = Rings(simulator, options)
    public = Rings(simulator, options, ["public", f"noise_ns={NOISE_NS}"]) if options.conditions else None
    return simulator, lambda: report(options, rings, public, sensitivity)


def main_of_program(quoit, options, parser):
    data, problems = program.predict(quoit, options, options.words, parser)
    if data is None:
        sys.exit("quoit predict: no run succeeded")
    try:
        if options.html:
            page.write(data, options.html)
    except (OSError, page.Wrong) as problem:
        sys.exit(f"quoit predict: {problem}")
    if options.json:
        print(json.dumps(data))
    else:
        program.print_table(data)
    return 1 if problems else 0


def main(quoit, arguments):
    options, parser = parse(arguments)
    if options.html:
        drawing.find_matplotlib()
    if options.words:
        return main_of_program(quoit, options, parser)
    simulator, report_now = network.prepare(quoit, options) if options.network else prepare(quoit, options, parser)
    try:
        report_now()
        simulator.make()
        data = report_now()
        if options.html:
            page.write(data, options.html)
    except (OSError, Failed, page.Wrong) as problem:
        sys.exit(f"quoit predict: {problem}")
    if options.json:
        print(json.dumps(data))
    else:
        (network.print_table if options.network else print_table)(data, options)
    return 0
