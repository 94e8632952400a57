# SPDX-License-Identifier: BSD-3-Clause
"""The figures of RING-19 and RING-22: what is run, what is drawn, and each relation that the papers state.

A relation stands beside the sentence it comes from (papers.json). It is tested on the quantity that the paper plots: over sizes
by their mean, unless the sentence speaks of sizes; of hosts, threads, hops, links and ways to copy by the one furthest out.
Words such as "slightly" become a range, given in `reading`.
"""
import dataclasses
import math

from relations import Relation
from simulator import protocol_options

KIB, MIB = 1024, 1 << 20
GBIT = 8 / 1000  # of MB/s
HOSTS_19, HOSTS_22 = 3, 5
HOSTS = (3, 4, 5)
THREADS = (1, 2, 4, 8)
PUTS = 8  # outstanding transfers of each host in 22/5: SIM_TURNAROUND_PUTS
STEPS = ("translation set-up", "waiting for an interrupt bit", "payload", "scratchpads", "doorbell")
TITLES = {
    "19/8": "link throughput, one pair alone and all at once",
    "19/9": "latency and throughput of put and get",
    "19/10": "latency of the barrier after puts",
    "22/4a": "throughput of the raw link and of put",
    "22/4b": "time of each step of the puts of 22/4a",
    "22/5": "turnaround latency by size, hosts and threads",
    "22/6": "throughput against threads",
    "22/7": "turnaround latency against hosts and threads",
}


@dataclasses.dataclass(frozen=True)
class Workload:
    """What the papers leave open about sends, and what is tried beside it."""
    name: str
    issue: str  # 22/4: how a host's puts follow each other
    sender: str  # 22/4: which hosts send
    sends: str  # 22/5-7: the neighbour of each put
    text: str


READ = Workload("as read", "quiet", "all", "rl",
                "22/4: all hosts at once (RING-22, 5.1: \u201cwere performed on all hosts in the ring network\u201d), each put "
                "known to be there before the next. 22/5-7: the eight puts of a host go right and left in turn.")
VARIANTS = (dataclasses.replace(READ, name="one pair alone", sender="0", text="22/4: one pair alone."),
            dataclasses.replace(READ, name="in a row", issue="row", text="22/4: a put follows as soon as the one before returned."),
            dataclasses.replace(READ, name="all to the right", sends="r", text="22/5-7: all eight puts of a host go to the right."))


class Ring:
    """The two papers' figures with one set of constants and one workload."""

    def __init__(self, book, workload=READ):
        self.book = book
        self.workload = workload
        self.relations = []

    def sizes_19(self):
        return self.book.sizes(KIB, 512 * KIB)

    def sizes_22(self, least=4 * KIB):
        return self.book.sizes(least, MIB)

    # What is run

    def link(self, size, sender, link, hosts=HOSTS_19, descriptors="page"):
        """MB/s. sender: a host, or all."""
        return self.book.value(f"link {link}", workload="links", hosts=hosts, bytes=size, sender=sender,
                               descriptors=descriptors, steps=4)

    def put(self, size, hops=1, payload="dma", protocol="papers", metric="put", **changes):
        """us: until a blocking put returns ("put"), or a put until all are known to be there ("put, there")."""
        options = {"hosts": HOSTS_19, "descriptors": "page", "issue": "row", "sender": "0", **changes}
        return self.book.value(metric, workload="put", bytes=size, hops=hops, payload=payload, steps=8, **options,
                               **protocol_options(protocol, size))

    def get(self, size, hops=1, payload="dma", protocol="papers", **changes):
        options = {"hosts": HOSTS_19, "descriptors": "page", **changes}
        return self.book.value("get", workload="get", bytes=size, hops=hops, payload=payload, steps=4, **options,
                               **protocol_options(protocol, size))

    def barrier(self, size, protocol="papers"):
        return self.book.value("barrier", workload="barrier", hosts=HOSTS_19, bytes=size, descriptors="page", steps=4,
                               **protocol_options(protocol, size))

    def raw_22(self, size):
        """MB/s, over the hosts that send in the workload."""
        return self.book.value("link", workload="links", hosts=HOSTS_22, bytes=size, sender=self.workload.sender,
                               descriptors="request", steps=4)

    def put_22(self, size, metric="put", protocol="papers", **changes):
        return self.put(size, metric=metric, protocol=protocol, **{"hosts": HOSTS_22, "descriptors": "request",
                        "issue": self.workload.issue, "sender": self.workload.sender, **changes})

    def rate_22(self, size):
        return size / self.put_22(size)

    def turnaround(self, hosts, threads, size, protocol="papers"):
        return self.book.value("turnaround", workload="turnaround", hosts=hosts, lanes=threads, bytes=size, steps=5,
                               sends=self.workload.sends, **protocol_options(protocol, size))

    def mean_turnaround(self, hosts, threads, protocol="papers"):
        return mean(self.turnaround(hosts, threads, size, protocol) for size in self.sizes_22())

    def change(self, before, after):
        """Mean over the sizes of the change between two (hosts, threads), in percent."""
        return mean(100 * (self.turnaround(*after, size) / self.turnaround(*before, size) - 1) for size in self.sizes_22())

    def mean_rate(self, hosts, threads, protocol="papers"):
        """MB/s of a host, mean over the sizes."""
        return mean(PUTS * size / self.turnaround(hosts, threads, size, protocol) for size in self.sizes_22())

    def falls(self):
        """A number of threads over half of it, mean over the sizes, each step and number of hosts."""
        return [self.mean_turnaround(hosts, more) / self.mean_turnaround(hosts, fewer) for hosts in HOSTS
                for fewer, more in zip(THREADS, THREADS[1:])]

    # Statements of the papers

    def add(self, figure, quote, what, reading, unit, low, high, value, **more):
        self.relations.append(Relation(figure, quote, what, reading, unit, low, high, value, **more))

    def relate(self, figures):
        self.relations = []
        for figure in figures:
            {"19/8": self.relate_19_8, "19/9": self.relate_19_9, "19/10": self.relate_19_10, "22/4a": self.relate_22_4a,
             "22/4b": self.relate_22_4b, "22/5": self.relate_22_5, "22/6": self.relate_22_6,
             "22/7": self.relate_22_7}[figure]()
        return self.relations

    def relate_19_8(self):
        sizes, links = self.sizes_19(), range(HOSTS_19)
        best = [max(self.link(size, i, i) for size in sizes) * GBIT for i in links]
        self.add("19/8", "19/8 rate", "best size of each pair alone; the one furthest out", "up to: at the best size", "Gbit/s", 20, 30,
                 max(best, key=lambda rate: abs(rate - 25)))
        ratios = [mean(self.link(size, "all", i) / self.link(size, i, i) for size in sizes) for i in links]
        self.add("19/8", "19/8 diminished", "all at once over alone, mean of sizes; the link furthest out",
                 "slightly: by at most a fifth", "ratio", 0.8, 0.999, max(ratios, key=lambda ratio: abs(ratio - 0.9)))
        totals = [sum(self.link(size, "all", i) for i in links) / sum(self.link(size, i, i) for i in links) for size in sizes]
        self.add("19/8", "19/8 total", "total of all at once over sum of alone, mean of sizes", "", "ratio", 0, 0.999, mean(totals))

    def relate_19_9(self):
        sizes, hops, kinds = self.sizes_19(), (1, 2), ("dma", "copy")
        over = [mean(self.put(size, h) / self.put(size, h, "copy") for size in sizes) for h in hops]
        self.add("19/9", "19/9 latency", "latency of put, DMA over memcpy, mean of sizes; the larger of both hops",
                 "little overhead in comparison: quicker", "ratio", 0, 0.999, max(over))
        gaps = [mean(self.put(size, h, "copy") - self.put(size, h) for size in sizes) -
                abs(mean(self.get(size, h, "copy") - self.get(size, h) for size in sizes)) for h in hops]
        self.add("19/9", "19/9 latency", "us that memcpy takes more than DMA, put less get, mean of sizes; the lesser of both hops",
                 "the gap is that of the plot, in us; of get whichever is longer", "us", 0.001, math.inf, min(gaps))
        puts = [mean(self.put(size, 2, kind) / self.put(size, 1, kind) for size in sizes) for kind in kinds]
        self.add("19/9", "19/9 hops", "put over 2 hops / 1, mean of sizes; the further out of DMA and memcpy",
                 "little: within 10 %", "ratio", 0.9, 1.1, max(puts, key=lambda ratio: abs(ratio - 1)))
        gets = [mean(self.get(size, 2, kind) / self.get(size, 1, kind) for size in sizes) for kind in kinds]
        self.add("19/9", "19/9 hops", "2 hops / 1 of get over that of put, means of sizes; the lesser of DMA and memcpy", "",
                 "ratio", 1.001, math.inf, min(get / put for get, put in zip(gets, puts)))
        shorter = [mean(self.put(size, h, kind) / self.get(size, h, kind) for size in sizes) for h in hops for kind in kinds]
        self.add("19/9", "19/9 smaller", "latency, put over get, mean of sizes; the largest of 1 and 2 hops, DMA and memcpy",
                 "smaller: than that of get", "ratio", 0, 0.999, max(shorter))
        rates = [mean(size / what(size, h) for size in sizes) / mean(size / what(size, h, "copy") for size in sizes)
                 for what in (self.put, self.get) for h in hops]
        self.add("19/9", "19/9 throughput", "throughput, DMA over memcpy, mean of sizes; the least of put, get, 1 and 2 hops",
                 "high: on average more than with memcpy", "ratio", 1.001, math.inf, min(rates))
        self.add("19/9", "19/9 throughput", "throughput of put, 2 hops over 1, mean of sizes; the further out of DMA and memcpy",
                 "little: within 10 %", "ratio", 0.9, 1.1, max((1 / ratio for ratio in puts), key=lambda ratio: abs(ratio - 1)),
                 uncounted="the latency of put over 2 hops / 1, inverted")
        self.add("19/9", "19/9 throughput", "throughput of get, 2 hops over 1, mean of sizes; the larger of DMA and memcpy",
                 "influenced: by more than that little", "ratio", 0, 0.9, max(1 / ratio for ratio in gets))

    def relate_19_10(self):
        sizes = self.sizes_19()
        barriers = [self.barrier(size) for size in sizes]
        longest = max(mean(self.put(size) for size in sizes), mean(self.get(size) for size in sizes))
        self.add("19/10", "19/10 substantial", "barrier over put or get, the longer of both, means of sizes",
                 "substantial: at least half as long", "ratio", 0.5, math.inf, mean(barriers) / longest)
        self.add("19/10", "19/10 small", "barrier over put and over get at the least size; the lesser",
                 "high: at least as long", "ratio", 1, math.inf,
                 barriers[0] / max(self.put(sizes[0]), self.get(sizes[0])))
        self.add("19/10", "19/10 sustained", "barrier, longest over shortest of all sizes", "sustained: within a half",
                 "ratio", 1, 1.5, max(barriers) / min(barriers))

    def relate_22_4a(self):
        sizes = self.sizes_22(KIB)
        raw = [self.raw_22(size) for size in sizes]
        shares = [100 * self.rate_22(size) / self.raw_22(size) for size in sizes]
        self.add("22/4a", "22/4a raw", "raw link, 1 MB", "at most the 7880 of PCIe 3.0 x8", "MB/s", 6000, 7880, raw[-1])
        self.add("22/4a", "22/4a grows", "raw link, a size over the one before; the least", "", "ratio", 1.001, math.inf,
                 min(b / a for a, b in zip(raw, raw[1:])))
        self.add("22/4a", "22/4a put", "put, 1 MB", "at the size of the sentence before", "MB/s", 4500, 5000,
                 self.rate_22(sizes[-1]))
        self.add("22/4a", "22/4a share", "put over raw link, 1 MB", "at that size", "%", 80, 85, shares[-1])
        self.add("22/4a", "22/4a share", "put over raw link, mean of all sizes", "the sentence names no size", "%", 80, 85,
                 mean(shares))

    def relate_22_4b(self):
        sizes = self.sizes_22(KIB)
        def ratio(size):
            step = {name: self.put_22(size, name) for name in STEPS}
            return (min(step["scratchpads"], step["doorbell"]) /
                    max(step["translation set-up"], step["waiting for an interrupt bit"]))
        self.add("22/4b", "22/4b", "the lesser of scratchpads and doorbell over the larger other overhead, mean of sizes",
                 "both are larger than each other overhead", "ratio", 1, math.inf, mean(map(ratio, sizes)))

    def relate_22_5(self):
        for threads in THREADS:
            for fewer, more in zip(HOSTS, HOSTS[1:]):
                self.add("22/5", "22/5 one thread" if threads == 1 else "22/5 more threads",
                         f"{fewer} -> {more} hosts, {threads} thread{'s' * (threads > 1)}", "mean of the sizes' changes", "%",
                         22, 36 if threads == 1 else 34, self.change((fewer, threads), (more, threads)))
        growths = [self.change((fewer, threads), (more, threads)) for fewer, more in zip(HOSTS, HOSTS[1:]) for threads in THREADS]
        self.add("22/5", "22/5 total", "a ring over the one with a host less; the least of the eight above", "", "%", 0.1, math.inf,
                 min(growths), uncounted="the least of the eight above")
        for hosts in HOSTS:
            for (fewer, more), (low, high) in {(1, 2): (-45, -38), (2, 4): (-25, -12)}.items():
                self.add("22/5", "22/5 threads", f"{fewer} -> {more} threads, {hosts} hosts", "mean of the sizes' changes",
                         "%", low, high, self.change((hosts, fewer), (hosts, more)))
        self.add("22/5", "22/5 trend", "a number of threads over half of it, mean of sizes; the largest of all steps and hosts", "",
                 "ratio", 0, 0.999, max(self.falls()))
        cases = [self.turnaround(hosts, 8, size) > self.turnaround(hosts, 4, size) for hosts in HOSTS
                 for size in self.sizes_22()]
        self.add("22/5", "22/5 eight", "4 -> 8 threads: cases (hosts and size) with a longer latency",
                 "some: at least one, at most half", "%", 0.1, 50, 100 * mean(cases))
        for fewer, more in zip(HOSTS, HOSTS[1:]):
            self.add("22/5", "22/5 gain", f"fall from 1 to 2, 4, 8 threads, {more} hosts over {fewer}; the largest",
                     "lower for each number of threads", "ratio", 0, 0.999,
                     max(self.change((more, 1), (more, t)) / self.change((fewer, 1), (fewer, t)) for t in THREADS[1:]))

    def relate_22_6(self):
        def gains(before, after):
            return [self.mean_rate(hosts, after) / self.mean_rate(hosts, before) for hosts in HOSTS]
        self.add("22/6", "22/6 more", "2, 4, 8 threads over 1; the least of 3, 4, 5 hosts", "significantly: by half at least",
                 "ratio", 1.5, math.inf, min(gain for threads in THREADS[1:] for gain in gains(1, threads)),
                 uncounted="the least is that of 2 threads, which is the next")
        self.add("22/6", "22/6 growth", "1 -> 2 threads; the least of 3, 4, 5 hosts", "greatly: by half at least", "ratio", 1.5,
                 math.inf, min(gains(1, 2)))
        self.add("22/6", "22/6 growth", "2 -> 4 and 2 -> 8 threads; the largest of 3, 4, 5 hosts",
                 "not significantly: at most what -25 % of latency, said of 2 -> 4 threads, gives", "ratio", 0, 1.334,
                 max(gains(2, 4) + gains(2, 8)))
        self.add("22/6", "22/6 eight", "4 -> 8 threads; the furthest out of 3, 4, 5 hosts",
                 "similar or slightly lower: 10 % lower to 2 % higher", "ratio", 0.9, 1.02,
                 max(gains(4, 8), key=lambda gain: abs(gain - 0.96)))
        self.add("22/6", "22/6 overall", "2 -> 8 threads; the least of 3, 4, 5 hosts", "", "ratio", 1.001, math.inf,
                 min(gains(2, 8)))

    def relate_22_7(self):
        steps = list(zip(HOSTS, HOSTS[1:]))
        rises = {threads: [self.mean_turnaround(more, threads) - self.mean_turnaround(fewer, threads) for fewer, more in steps]
                 for threads in THREADS}
        self.add("22/7", "22/7 one", "us from 3 to 4 and 4 to 5 hosts; the least of all threads", "", "us", 0.001, math.inf,
                 min(map(min, rises.values())))
        self.add("22/7", "22/7 one", "us from 3 to 4 and 4 to 5 hosts, 2, 4, 8 threads over 1; the largest",
                 "pronounced: in us, as plotted", "ratio", 0, 0.999,
                 max(rise / one for threads in THREADS[1:] for rise, one in zip(rises[threads], rises[1])))
        self.add("22/7", "22/7 threads", "a number of threads over half of it; the largest of 1 -> 2 -> 4 -> 8, 3 to 5 hosts",
                 "", "ratio", 0, 0.999, max(self.falls()), uncounted="that of 22/5, a number of threads over half of it")
        for threads in THREADS[1:]:
            self.add("22/7", "22/7 rate", f"growth 4 -> 5 hosts over 3 -> 4, {threads} threads", "", "ratio", 0, 0.999,
                     self.change((4, threads), (5, threads)) / self.change((3, threads), (4, threads)))

    # Figures

    def draw(self, figure):
        return {"19/8": self.draw_19_8, "19/9": self.draw_19_9, "19/10": self.draw_19_10, "22/4a": self.draw_22_4a,
                "22/4b": self.draw_22_4b, "22/5": self.draw_22_5, "22/6": self.draw_22_6, "22/7": self.draw_22_7}[figure]()

    def draw_19_8(self):
        sizes, links = self.sizes_19(), range(HOSTS_19)
        band = [{"name": "reported", "low": 20, "high": 30}]
        plots = [lines(f"({'abc'[i]}) host {i} to host {(i + 1) % HOSTS_19}", "Gbit/s", [
            series("alone", sizes, lambda size, i=i: self.link(size, i, i) * GBIT),
            series("all at once", sizes, lambda size, i=i: self.link(size, "all", i) * GBIT)], bands=band) for i in links]
        return plots + [lines("(d) all links together", "Gbit/s", [
            series("sum of each alone", sizes, lambda size: sum(self.link(size, i, i) for i in links) * GBIT),
            series("all at once", sizes, lambda size: sum(self.link(size, "all", i) for i in links) * GBIT)])]

    def draw_19_9(self):
        plots = []
        for letter, title, unit, what in (("a", "Latency of put", "us", self.put), ("b", "Latency of get", "us", self.get),
                                          ("c", "Throughput of put", "MB/s", self.put),
                                          ("d", "Throughput of get", "MB/s", self.get)):
            plots.append(lines(f"({letter}) {title}", unit, [
                series(f"{name}, {hops} hop{'s' * (hops > 1)}", self.sizes_19(),
                       lambda size, h=hops, k=kind, w=what, u=unit: w(size, h, k) if u == "us" else size / w(size, h, k))
                for kind, name in (("dma", "DMA"), ("copy", "memcpy")) for hops in (1, 2)]))
        return plots

    def draw_19_10(self):
        sizes = self.sizes_19()
        return [lines("Latency of barrier_all after a put of each size", "us", [
            series("barrier", sizes, self.barrier), series("put of that size", sizes, self.put),
            series("get of that size", sizes, self.get)])]

    def draw_22_4a(self):
        sizes = self.sizes_22(KIB)
        return [lines("Throughput of the raw link and of put", "MB/s", [
            series("raw link", sizes, self.raw_22), series("shmem_double_put", sizes, self.rate_22)],
            bands=[{"name": "reported for put", "points": [[MIB, 4500, 5000]]}],
            limits=[{"name": "raw link, reported above", "y": 6000}])]

    def draw_22_4b(self):
        sizes = self.sizes_22(KIB)
        return [{"kind": "bars", "title": "Time of each step of a put", "y_label": "time", "y_unit": "us",
                 "is_stacked": True,
                 "text": "The same puts as in 22/4a; what the bars lack of them is the way from the PE to the service thread "
                         "and back.", "groups": [f"{size // KIB} K" for size in sizes],
                 "series": [{"name": step, "values": [self.put_22(size, step) for size in sizes]} for step in STEPS]}]

    def draw_22_5(self):
        plots = []
        for letter, threads in zip("abcd", THREADS):
            most = 1.36 if threads == 1 else 1.34
            plots.append(lines(f"({letter}) Turnaround, {threads} thread{'s' * (threads > 1)}", "us", [
                series(f"{hosts} hosts", self.sizes_22(), lambda size, h=hosts, t=threads: self.turnaround(h, t, size))
                for hosts in HOSTS], bands=[
                    {"name": f"reported: {more} hosts +22-{100 * (most - 1):.0f} %",
                     "points": [[size, 1.22 * self.turnaround(fewer, threads, size),
                                 most * self.turnaround(fewer, threads, size)] for size in self.sizes_22()]}
                    for fewer, more in zip(HOSTS, HOSTS[1:])]))
        return plots

    def by_threads(self, title, unit, what, bands=()):
        return [{"kind": "lines", "title": title, "x_label": "threads", "x_is_log2": True, "y_label": MEANINGS[unit],
                 "y_unit": unit,
                 "series": [{"name": f"{hosts} hosts", "points": [[t, what(hosts, t)] for t in THREADS]} for hosts in HOSTS],
                 "bands": list(bands)}]

    def draw_22_6(self):
        return self.by_threads("Throughput of a host, mean of 4 KB to 1 MB", "MB/s", self.mean_rate)

    def draw_22_7(self):
        bands = []
        for hosts in HOSTS:
            one, two = self.mean_turnaround(hosts, 1), self.mean_turnaround(hosts, 2)
            bands.append({"name": f"reported changes, {hosts} hosts",
                          "points": [[2, 0.55 * one, 0.62 * one], [4, 0.75 * two, 0.88 * two]]})
        return self.by_threads("Turnaround, mean of 4 KB to 1 MB", "us", self.mean_turnaround, bands)


MEANINGS = {"us": "latency", "MB/s": "throughput", "Gbit/s": "throughput", "Mbit/s": "throughput"}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def series(name, xs, what):
    return {"name": name, "points": [[x, what(x)] for x in xs]}


def lines(title, unit, of, **more):
    return {"kind": "lines", "title": title, "x_label": "bytes", "x_is_bytes": True, "y_label": MEANINGS[unit], "y_unit": unit, "series": of, **more}


# Ours compared with theirs, under equal conditions

OURS_SIZES = (8 * KIB, 64 * KIB, MIB)
WAYS = (("one at a time: until the call returns", "quiet", "put"),
        ("one at a time: until it is there", "quiet", "put, there"),
        ("in a row: until the call returns", "row", "put"),
        ("in a row: until all are there", "row", "put, there"),
        ("together: until all are there", "together", "put, there"))


def compare(theirs, free, wire):
    """Rows: the same puts, issued the same way, by both protocols; `free` is the book in which a call of the papers'
    driver costs nothing. What is faster than the wire, in MB/s, says so: it was copied aside."""
    rows = []
    def row(name, size, ring_value, ours, rate=True):
        papers, without = ring_value(theirs), ring_value(free)
        note = "above the wire's rate: copied aside, not sent" if rate and size / ours > wire else ""
        rows.append([name, size, papers, without, ours, 100 * ours / papers, 100 * ours / without, note])
    for size in OURS_SIZES:
        for name, issue, metric in WAYS:
            options = {"hosts": HOSTS_22, "descriptors": "request", "issue": issue}
            row(f"put, {name}", size, lambda ring, s=size, m=metric, o=options: ring.put(s, metric=m, **o),
                theirs.put(size, metric=metric, protocol="ours", **options))
        for hops in (1, 2):
            options = {"hosts": HOSTS_22, "descriptors": "request"}
            row(f"get, {hops} hop{'s' * (hops > 1)}", size, lambda ring, s=size, h=hops, o=options: ring.get(s, h, **o),
                theirs.get(size, hops, protocol="ours", **options))
    for hosts in HOSTS:
        for threads in THREADS:
            row(f"turnaround of {PUTS} puts, {hosts} hosts, {threads} thread{'s' * (threads > 1)}", MIB,
                lambda ring, h=hosts, t=threads: ring.turnaround(h, t, MIB), theirs.turnaround(hosts, threads, MIB, "ours"),
                False)
    row("barrier after a put", 64 * KIB, lambda ring: ring.barrier(64 * KIB), theirs.barrier(64 * KIB, "ours"), False)
    return rows
