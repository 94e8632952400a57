# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures link: figure 6 of "A system interconnection device for small-scale clusters" (LINK): unidirectional throughput by
message size, by a ping-pong in the driver and by what NetPIPE and Netperf measure over TCP, with DMA and memcpy, and Gigabit
Ethernet, from the simulator (workload ethernet); every relation that the paper states beside what the model gives, and what our
device reaches. link_wall.py measures the same on emulated links of this machine."""
import json
import math
import os
import sys

import drawing
import link_wall
import page
import papers
from arguments import Parser
from relations import UNCOUNTED, Relation, box, boxes, reached_text
from ring import KIB, MIB, lines, series
from simulator import Book, Failed, Simulator

WIRE_MBITS = 16000  # of an external port (LINK, 4.1)
REPORTED = {"driver": {"dma": 8613, "copy": 7.2 * 941}, "netpipe": {"dma": 5.4, "copy": 1.6}, "netperf": {"dma": 4.4, "copy": 1.8}}
PROGRAMS = {"driver": "ping-pong in the driver", "netpipe": "NetPIPE style", "netperf": "Netperf style"}
PAYLOADS = {"dma": "DMA", "copy": "memcpy"}
OVER_TCP = ("netpipe", "netperf")
SENDS = {"queued": "together", "waiting": "quiet"}  # the paper is silent
COLUMNS = [(constants, sends) for sends in SENDS for constants in ("fitted", "public")]
SATURATED = 0.95  # of its highest
A_TENTH = "within a tenth"
FITTED = "; a fitted constant was chosen by it"
SMALLEST, LARGEST = 256, 8 * MIB
FLAT = "the model cannot miss it: a send costs so little that Netperf is flat from the smallest size on"
OURS_LEAST = {"driver": 95, "netpipe": 90, "netperf": 90}  # % of the wire, below and through TCP


def constants():
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "link.json"), encoding="utf-8") as file:
        return json.load(file)


class Link:
    """The figure with one set of constants and one way of sending."""

    def __init__(self, simulator, column, options):
        which, self.sends = column
        model = ["public", *[f"{name}={one[which]}" for name, one in constants().items()], *options.model]
        self.book = Book(simulator, model, options.quick)
        self.relations = []

    def sizes(self):
        return self.book.sizes(SMALLEST, LARGEST)

    def measured(self, metric, device, program, payload, size):
        sends = {"papers": {"descriptors": "page", "issue": SENDS[self.sends], "payload": payload},
                 "ours": {"issue": "together", "payload": payload}, "gigabit": {}}[device]
        return self.book.value(metric, workload="ethernet", hosts=2, device=device, program=program, bytes=size, **sends)

    def rate(self, device, program, payload, size):
        """Mbit/s"""
        return self.measured("throughput", device, program, payload, size)

    def peak(self, device, program, payload=""):
        """The highest, and its size."""
        return max((self.rate(device, program, payload, size), size) for size in self.sizes())

    def times(self, program, payload):
        """The highest over the highest of Gigabit Ethernet by the same program; below TCP, by Netperf, as the paper does."""
        return self.peak("papers", program, payload)[0] / self.peak("gigabit", "netperf" if program == "driver" else program)[0]

    def saturation(self, device, program, payload=""):
        highest = self.peak(device, program, payload)[0]
        return min(size for size in self.sizes() if self.rate(device, program, payload, size) >= SATURATED * highest)

    def add(self, quote, what, reading, unit, low, high, value, **more):
        self.relations.append(Relation("6", f"link {quote}", what, reading, unit, low, high, value, **more))

    def add_near(self, quote, what, unit, stated, value, fit="", **more):
        self.add(quote, what, A_TENTH + fit, unit, 0.9 * stated, 1.1 * stated, value, **more)

    def relate(self):
        self.relations = []
        self.relate_below()
        self.relate_above()
        self.relate_patterns()
        self.relate_processors()
        return self.relations

    def relate_below(self):
        highest, size = self.peak("papers", "driver", "dma")
        others = [self.peak("papers", program, payload)[0] for program in PROGRAMS for payload in PAYLOADS
                  if (program, payload) != ("driver", "dma")]
        self.add_near("highest", "ping-pong with DMA, highest of all sizes", "Mbit/s", 8613, highest, FITTED)
        self.add("highest", "the size at which it is highest", "", "MB", 2, 2, size / MIB)
        self.add("highest", "ping-pong with DMA over the highest of all others", "", "ratio", 1.001, math.inf,
                 highest / max(others))
        self.add_near("wire", "that, of 16 Gbit/s", "%", 53.8, 100 * highest / WIRE_MBITS, FITTED,
                      uncounted="the highest in Mbit/s, in other words")
        self.add_near("times", "ping-pong with DMA over Gigabit Ethernet", "times", 9.2, self.times("driver", "dma"), FITTED,
                      uncounted="the highest in Mbit/s, in other words")
        self.add_near("times", "ping-pong with memcpy over Gigabit Ethernet", "times", 7.2, self.times("driver", "copy"), FITTED)

    def relate_above(self):
        for program in OVER_TCP:
            for payload, name in PAYLOADS.items():
                self.add_near(program, f"{PROGRAMS[program]} with {name} over Gigabit Ethernet, the highest of both", "times",
                              REPORTED[program][payload], self.times(program, payload))

    def relate_patterns(self):
        links = (("papers", "dma"), ("papers", "copy"), ("gigabit", ""))
        self.add("pattern", "highest over that of Gigabit Ethernet, the least of all programs, DMA and memcpy", "", "times", 1.001,
                 math.inf, min(self.times(program, payload) for program in PROGRAMS for payload in PAYLOADS),
                 uncounted="the least of six that are tested above")
        self.add("reason", "ping-pong over NetPIPE and Netperf, highest of each, the lesser of DMA and memcpy", "", "ratio", 1.001,
                 math.inf, min(self.peak("papers", "driver", payload)[0] / max(self.peak("papers", program, payload)[0]
                                                                               for program in OVER_TCP) for payload in PAYLOADS))
        self.add("later", "size of saturation, NetPIPE over Netperf, the least of three interconnects",
                 f"saturated: {SATURATED:.0%} of its highest", "ratio", 1.001, math.inf,
                 min(self.saturation(device, "netpipe", payload) / self.saturation(device, "netperf", payload)
                     for device, payload in links), uncounted=FLAT)
        shares = [100 * sum(self.rate(device, "netperf", payload, size) > self.rate(device, "netpipe", payload, size)
                            for size in self.sizes()) / len(self.sizes()) for device, payload in links]
        self.add("general", "sizes at which Netperf is higher, the least of three interconnects", "in general: more than half", "%",
                 50.1, 100, min(shares), uncounted=FLAT)
        self.add("degraded", "NetPIPE with DMA, the largest size over the highest", "degraded: by a twentieth", "ratio", 0, 0.95,
                 self.rate("papers", "netpipe", "dma", LARGEST) / self.peak("papers", "netpipe", "dma")[0])

    def relate_processors(self):
        for metric, reading in (("processors", "usage: share of both hosts' processors"),
                                ("processor time", "usage for the same work: time a byte")):
            self.add("processors", f"{metric}, DMA over Gigabit Ethernet, the larger of NetPIPE and Netperf, {LARGEST // MIB} MB",
                     reading, "ratio", 0, 1, max(self.measured(metric, "papers", program, "dma", LARGEST) /
                                                 self.measured(metric, "gigabit", program, "", LARGEST) for program in OVER_TCP))

    def draw(self, device, name):
        """DMA and memcpy by each program, and Gigabit Ethernet."""
        of = [series(f"{PROGRAMS[program]}, {PAYLOADS[payload]}", self.sizes(),
                     lambda size, p=program, d=payload: self.rate(device, p, d, size)) for program in PROGRAMS
              for payload in PAYLOADS]
        of += [{**series(f"{PROGRAMS[program]}, Gigabit Ethernet", self.sizes(),
                         lambda size, p=program: self.rate("gigabit", p, "", size)), "is_dashed": True} for program in OVER_TCP]
        return lines(name, "Mbit/s", of, y_is_log=True)

    def ours(self):
        """Rows: what our device reaches of what the link leaves for payload, and of the 16 Gbit/s."""
        payload_mbits = 8e6 / self.link_ps
        rows = []
        for program, least in OURS_LEAST.items():
            for payload, name in PAYLOADS.items():
                highest, size = self.peak("ours", program, payload)
                rows.append((f"{PROGRAMS[program]}, {name}", size, highest, least, 100 * highest / payload_mbits,
                             100 * highest / WIRE_MBITS))
        return rows

    @property
    def link_ps(self):
        return float(dict(text.split("=") for text in self.book.model if "=" in text)["link_ps_per_byte"])


class Work:
    def __init__(self, simulator, options):
        self.columns = [Link(simulator, column, options) for column in COLUMNS]

    def evaluate(self):
        first = self.columns[0]
        self.relations = [one.relate() for one in self.columns]
        self.plots = [first.draw("papers", "Unidirectional throughput, the paper's way of sending"),
                      first.draw("ours", "The same by our device")]
        self.plots[0]["limits"] = [{"name": "8613 Mbit/s, the paper's highest", "y": 8613}]
        for plot in self.plots:
            plot.setdefault("limits", []).append({"name": "16 Gbit/s", "y": WIRE_MBITS})
        self.ours = [one.ours() for one in self.columns[:2]]


# What is said

def wanted(is_reached):
    return {"value": "reached" if is_reached else "NOT REACHED", "mark": "good" if is_reached else "bad"}


def summary(work, quotes):
    names = [f"{which}, {sends}" for which, sends in COLUMNS]
    return boxes(box(row[0], quotes, zip(names, row)) for row in zip(*work.relations))


def counts_text(work):
    fits = sum(FITTED in one.reading and one.verdict != UNCOUNTED for one in work.relations[0])
    return [f"Reached with {which} constants, {sends}: {reached_text(relations)}"
            f"{f', {fits} of which are what was fitted' if which == 'fitted' else ''}."
            for (which, sends), relations in zip(COLUMNS, work.relations)]


def reported_table(work):
    first = work.columns[0]
    rows = []
    for program, name in PROGRAMS.items():
        for payload, kind in PAYLOADS.items():
            stated = REPORTED[program][payload]
            gigabit = first.peak("gigabit", program)[0] if program != "driver" else 0
            rows.append([name, kind, stated if program == "driver" else f"{stated} times Gigabit Ethernet",
                         *first.peak("papers", program, payload), first.peak("papers", program, payload)[0] / gigabit
                         if gigabit else None])
    for program in OVER_TCP:
        rows.append([PROGRAMS[program], "Gigabit Ethernet", 941 if program == "netperf" else None, *first.peak("gigabit", program),
                     1])
    return {"kind": "table", "title": "Highest of each, fitted constants, queued",
            "columns": ["", "", "the paper", "here", "at bytes", "times Gigabit Ethernet"],
            "units": [None, None, "Mbit/s", "Mbit/s", "B", None], "rows": rows}


def ours_table(work):
    rows = []
    for which, found in zip(("fitted", "public"), work.ours):
        for name, size, highest, least, share, of_wire in found:
            rows.append([which, name, size, highest, f"at least {least} %", share, wanted(share >= least), of_wire,
                         wanted(of_wire >= least)])
    return {"kind": "table", "columns": ["constants", "", "at bytes", "highest", "wanted", "of the link's payload", "",
                                         "of 16 Gbit/s", ""],
            "units": [None, None, "B", "Mbit/s", None, "%", None, "%", None], "rows": rows}


def constants_table():
    return {"kind": "table", "title": "The paper's hosts; all else is the public column of quoit sim --show-model",
            "columns": ["constant", "fitted", "public", "what it is", "public source (docs/sources.md)", "the fitted value was chosen by"],
            "rows": [[name, one["fitted"], one["public"], one["meaning"], one["source"], one["fit"]]
                     for name, one in constants().items()]}


OPEN = [
    "The paper is silent on the size of its frames: 1500 bytes here, since its kernel sees the device as any other of Ethernet. "
    "Below TCP a message is one transfer, by DMA a descriptor a page. \u201cQueued\u201d: frames are handed "
    "to the engine while it works, and its completions are taken later; \u201cwaiting\u201d: the driver waits for each.",
    "Gigabit Ethernet has segmentation and checksums in its adapter, and merges what it receives, as adapters of that time.",
    "Not counted, because the model could not miss it: 941 Mbit/s of Gigabit Ethernet by Netperf, which is what the headers of its "
    "frames leave.",
    "NOT in the model: caches, other work of the hosts, power-saving beyond the way out of it, a 32-bit kernel, congestion control "
    "(no frame is lost), and heat, which the paper suspects where NetPIPE with DMA falls off."]


def report(work, quotes, wall):
    fits = ", ".join(name for name, one in constants().items() if one["fit"])
    return {"title": "LINK: throughput of an Ethernet device on NTB",
            "text": ["Figure 6 of LINK, simulated: two hosts, a link of 16 Gbit/s (four lanes of PCIe Gen2), an Ethernet device that "
                     "sends as the paper says, a small TCP, and programs that measure as NetPIPE and Netperf do.",
                     f"With fitted constants two numbers of the page are a fit ({fits}); what is above TCP was fitted to nothing.",
                     *counts_text(work)],
            "sections": [
                {"title": "Figure 6", "items": [work.plots[0], reported_table(work)]},
                {"title": "What the paper states, and what the model gives", "items": [summary(work, quotes),
                                                                                    {"kind": "text", "text": OPEN}]},
                {"title": "Our device on the same link", "items": [
                    {"kind": "text", "text": [
                        "Segments of 64 KiB pass whole through slots, the engine always has the next, and threads poll. A packet of "
                        "128 bytes of payload has 24 of header and framing, and acknowledgements and flow control take a tenth of the "
                        "link, so that of 16 Gbit/s 12.1 are left for payload whatever the software does.",
                        "The fit blames the engine and the processor's stores for what the paper's driver lacks, so with fitted "
                        "constants both bound our device too: the engine reads 10.1 Gbit/s there."]},
                    ours_table(work), work.plots[1]]},
                link_wall.section(wall),
                {"title": "The cost model", "items": [constants_table()]}]}


def print_relations(work):
    print(f"{'relation':<92} {'stated':>16}" + "".join(f" {which:>9}" for which, _ in COLUMNS))
    print(f"{'':<92} {'':>16}" + "".join(f" {sends:>9}" for _, sends in COLUMNS))
    for row in zip(*work.relations):
        one = row[0]
        values = "".join(f" {each.value:>8.4g}{' ' if each.is_reached else '!'}" for each in row)
        print(f"{one.what[:92]:<92} {one.stated():>16}{values} {one.unit:<6} "
              f"{'' if one.verdict == 'reached' else one.verdict_text}")
    print("\n! is not reached.", *counts_text(work), sep="\n")
    for which, found in zip(("fitted", "public"), work.ours):
        for name, _, highest, least, share, of_wire in found:
            print(f"ours, {which}: {name:<32} {highest:8.0f} Mbit/s, {share:5.1f} % of the link's payload "
                  f"({'at least' if share >= least else 'NOT REACHED:'} {least} %), {of_wire:5.1f} % of 16 Gbit/s")


def as_json(work, wall):
    return {"relations": [{"relation": row[0].what, "quote": row[0].quote, "low": row[0].low,
                           "high": None if math.isinf(row[0].high) else row[0].high, "uncounted": row[0].uncounted,
                           "values": [{"constants": which, "sends": sends, "value": one.value, "reached": one.is_reached}
                                      for (which, sends), one in zip(COLUMNS, row)]} for row in zip(*work.relations)],
            "ours": [{"constants": which, "program": name, "mbits": highest, "least": least, "percent_of_payload": share,
                      "percent_of_wire": of_wire} for which, found in zip(("fitted", "public"), work.ours)
                     for name, _, highest, least, share, of_wire in found],
            "wall": wall}


def parse(arguments):
    parser = Parser("quoit figures link", description=(
        "Makes figure 6 of LINK from the simulator: throughput of an Ethernet device on NTB by message size, below TCP and through\n"
        "it, with DMA and memcpy, beside Gigabit Ethernet; prints every relation that the paper states beside what the model gives,\n"
        "or NOT REACHED, and what our device reaches. Then measures it on emulated links of this machine, if they can be made."))
    page.add_option(parser, "link")
    parser.add_argument("--quick", action="store_true", help="few sizes")
    parser.add_argument("--json", action="store_true", help="print the relations as JSON")
    parser.add_argument("--no-wall", action="store_true", help="only simulate")
    parser.add_argument("--model", metavar="NAME=VALUE", action="append", default=[],
                        help="a constant of the cost model, in all columns (see quoit sim --show-model); many times")
    return parser.parse_args(arguments), parser


def main(quoit, arguments):
    options, parser = parse(arguments)
    drawing.find_matplotlib()
    simulator = Simulator(quoit)
    try:
        simulator.call(["--show-model", *[word for text in options.model for word in ("--model", text)]])
    except Failed as problem:
        parser.error(str(problem).splitlines()[-1].split("quoit sim: ")[-1])
    try:
        page.prepare(options.html)
        work = Work(simulator, options)
        work.evaluate()
        simulator.make()
        work.evaluate()
        wall = link_wall.measure(quoit, options)
        where = page.publish(report(work, papers.quotes(), wall), options.html)
    except (OSError, Failed, page.Wrong) as problem:
        sys.exit(f"quoit figures link: {problem}")
    if options.json:
        print(json.dumps(as_json(work, wall)))
    else:
        print_relations(work)
        print(where)
    return 0
