# SPDX-License-Identifier: BSD-3-Clause
"""Aim: `oshrun --trace` records what happened: every call once, every request with a complete chain of hops, nested
slices, counters that agree with --stats; and a valid file whichever process is killed, and however many events are
lost.
Method: programs whose calls, routes and hops are known are traced, and the file is read by perfetto.py, which was
written from Perfetto's .proto files. Machines are commands of this one, by a --rsh that ignores the name; one of them has
another clock, where a time namespace may be made."""
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))

import perfetto
import scenario

KNOWN = scenario.program("trace_known")
BUSY = os.environ["TRACE_BUSY"]
THREADS = os.path.join(scenario.BIN, "threads")
SEED = int(os.environ.get("SCENARIO_SEED", time.time_ns() % 1000000))
CHUNK = 32 << 10
SLOTS = 16


class Tracing(scenario.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "job.pftrace")

    def tearDown(self):
        self.folder.cleanup()
        super().tearDown()

    def trace(self, *arguments):
        """With one lane, unless the test sets more: which of several lanes carries a request is not determined."""
        lanes = () if "--lanes" in arguments else ("--lanes", 1)
        result = self.run_job("--trace", self.path, *lanes, *arguments)
        self.assertEqual((result.status, result.err), (0, ""), result)
        trace = perfetto.Trace(self.path)
        self.assertEqual(trace.open, [])
        return trace

    def named(self, trace, name):
        found = [uuid for uuid, track in trace.tracks.items()
                 if track["name"] == name and ("thread" in track or "process" not in track)]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def hops(self, hosts, source, dest):
        """The hosts on the shortest route; of two equally long ones the parity described in ring.h decides."""
        right, left = (dest - source) % hosts, (source - dest) % hosts
        step = 1 if right < left or (right == left and source % 2 == 0) else -1
        way = [source]
        while way[-1] != dest:
            way.append((way[-1] + step) % hosts)
        return way


class Known(Tracing):
    def check_way(self, trace, chain, way, kind):
        """A chain of events: sent by the first host, relayed by those between, delivered by the last."""
        deeds = ["send", *["relay"] * (len(way) - 2), "deliver"]
        self.assertEqual([(trace.name(part.track), part.name) for part in chain],
                         [(f"lane 0 host{host}", f"{deed} {kind}") for host, deed in zip(way, deeds)])

    def check_request(self, trace, request, chain, way, kind, answer):
        self.assertEqual((chain[0], request.name), (request, f"request {kind}"))
        self.check_way(trace, chain[1:len(way) + 1], way, kind)
        if answer:
            self.assertEqual(len(chain), 1 + 2 * len(way))
            # Ties are broken by the flow of the request, so a response comes back by the same route.
            self.check_way(trace, chain[len(way) + 1:], way[::-1], answer)
        else:
            self.assertEqual(len(chain), 1 + len(way))

    def check_job(self, hosts, rounds, size):
        """One PE per host; PE 0 works. Without DMA, since a proxy decides by measurement whether that is faster."""
        trace = self.trace("--dma-bytes", "never", "--hosts", hosts, "-n", hosts, KNOWN, rounds, size)
        self.assertEqual([part for part in trace.slices if part.category == "DMA"], [])
        flows = trace.flows()
        mine = [part for part in trace.slices if part.track == self.named(trace, "PE 0 host0")]
        calls = [part for part in mine if part.category == "call"]
        for name, kind, answer, extent in (("shmem_putmem", "PUT", None, size), ("shmem_getmem", "GET", "DATA", size),
                                           ("shmem_long_atomic_fetch_add", "AMO_FETCH", "VALUE", 8)):
            found = [call for call in calls if call.name == name]
            self.assertEqual([call.notes for call in found],
                             [{"pe": pe, "bytes": extent} for _ in range(rounds) for pe in range(1, hosts)])
            for call in found:
                way = self.hops(hosts, 0, call.notes["pe"])
                inside = [part for part in mine if part.parent == (call.begin, call.name) and part.flows]
                self.assertTrue(all(call.begin <= part.begin <= part.end <= call.end for part in inside))
                self.assertEqual(sum(part.notes["bytes"] for part in inside), 0 if kind == "AMO_FETCH" else extent)
                if kind == "PUT" and len(way) == 2:
                    self.assertEqual([part.name for part in inside], ["direct put"])
                    start, landing = flows[inside[0].flows[0]]
                    self.assertEqual((start, landing.name, trace.name(landing.track)),
                                     (inside[0], "landed from PE 0", f"PE {call.notes['pe']} landings"))
                    continue
                chunks = 1 if kind == "AMO_FETCH" else -(-extent // CHUNK)
                self.assertEqual(len(inside), chunks)
                for request in inside:
                    self.assertEqual(len(request.flows), 1)
                    self.check_request(trace, request, flows[request.flows[0]], way, kind, answer)
        for name, count in (("shmem_quiet", rounds * (hosts - 1)), ("shmem_barrier_all", 2), ("shmem_finalize", 1)):
            self.assertEqual(len([call for call in calls if call.name == name]), count)
        for chain in flows.values():
            begins = [part.begin for part in chain]
            self.assertEqual(begins, sorted(begins))
        return trace

    def test_every_call_and_every_hop(self):
        for hosts, rounds, size in ((2, 5, 8), (3, 5, 3000), (5, 20, 8), (6, 3, 100000), (9, 3, 40000)):
            with self.subTest(hosts=hosts, rounds=rounds, size=size):
                self.check_job(hosts, rounds, size)

    def test_one_host(self):
        trace = self.trace("-n", 3, KNOWN, 7, 100)
        calls = collections.Counter(part.name for part in trace.slices
                                    if part.track == self.named(trace, "PE 0 host0"))
        self.assertEqual((calls["shmem_putmem"], calls["shmem_getmem"], calls["shmem_long_atomic_fetch_add"]),
                         (14, 14, 14))
        self.assertEqual([track["name"] for track in trace.tracks.values() if "counter" in track], [])

    def test_processes_and_times(self):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        trace = self.trace("--hosts", 3, "-n", 6, "--lanes", 2, BUSY, 5)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        names = [track["name"] for track in trace.tracks.values() if "process" in track]
        self.assertEqual(names, ["PE 0 host0", "PE 1 host0", "proxy host0", "PE 2 host1", "PE 3 host1", "proxy host1",
                                 "PE 4 host2", "PE 5 host2", "proxy host2"])
        self.assertEqual(sorted(track["process"]["legacy_sort_index"] for track in trace.tracks.values()
                                if "process" in track), list(range(9)))
        self.assertTrue(before <= trace.clocks[perfetto.MONOTONIC] <= after)
        self.assertTrue(all(before < part.begin <= part.end < after for part in trace.slices))
        for lane in range(2):
            self.assertTrue([part for part in trace.slices if part.track == self.named(trace, f"lane {lane} host1")])

    def test_counters(self):
        stats = os.path.join(self.folder.name, "stats.json")
        trace = self.trace("--stats-json", stats, "--hosts", 4, "-n", 4, BUSY, 20)
        with open(stats) as file:
            links = json.load(file)["links"]
        for row in links:
            way = "right" if row["link"] == row["from"] else "left"
            name = f"host{row['from']} -> host{row['to']} ({way})"
            carried = trace.counters[self.named(trace, name + " bytes")]
            self.assertEqual(carried[-1][1], row["bytes"])
            self.assertEqual(carried, sorted(carried))
            depth = [value for _, value in trace.counters[self.named(trace, name + " lane 0 slots in use")]]
            self.assertTrue(depth and min(depth) >= 0 and max(depth) <= 2 * SLOTS, depth)
            sent = [part for part in trace.slices if trace.name(part.track) == f"lane 0 host{row['from']}"
                    and part.category in ("send", "relay") and way in part.notes]
            direct = [part for part in trace.slices if part.name == "direct put" and
                      part.track == self.named(trace, f"PE {row['from']} host{row['from']}") and
                      part.notes["pe"] == row["to"]]
            self.assertEqual(len(sent) + len(direct), row["messages"])
            self.assertEqual(len([part for part in sent if part.category == "relay"]), row["relays"])

    def skip_without_network(self):
        found = subprocess.run([os.path.join(scenario.BIN, "quoit"), "info", "networks"], capture_output=True, text=True,
                               timeout=scenario.LIMIT_S, check=False)
        if "taken" not in found.stdout:
            self.skipTest("no network driver finds a network here")

    def check_over_network(self, trace, flows, request, pe):
        chain, kind = flows[request.flows[0]], request.name.removeprefix("request ")
        moved = [part for part in chain if part.category == "network"]
        rest = [part for part in chain if part.category != "network"]
        if kind == "GET":
            self.assertEqual((rest, [part.name for part in moved]), ([request], ["network GET"]))
        else:
            self.check_request(trace, request, rest, [0, pe], kind, "VALUE" if kind == "AMO_FETCH" else None)
            is_large = kind == "PUT" and request.notes["bytes"] > 4096
            self.assertEqual([part.name for part in moved], ["network PUT"] * is_large)
        for part in moved:
            self.assertEqual((trace.name(part.track), part.notes), ("lane 0 network", {"bytes": request.notes["bytes"], "pe": pe}))
        return kind

    def test_network_tracks(self):
        """Each request to its end: frames from lane to lane, large payload and gets from memory to memory."""
        self.skip_without_network()
        for size, put in ((8, "PUT_MANY"), (3000, "PUT"), (40000, "PUT")):
            with self.subTest(size=size):
                trace = self.trace("--hosts", 3, "-n", 3, "--network", "auto", KNOWN, 4, size)
                flows, seen = trace.flows(), collections.Counter()
                mine = [part for part in trace.slices if part.track == self.named(trace, "PE 0 host0")]
                for call in mine:
                    if call.name in ("shmem_putmem", "shmem_getmem", "shmem_long_atomic_fetch_add"):
                        inside = [part for part in mine if part.parent == (call.begin, call.name) and part.flows]
                        seen.update(self.check_over_network(trace, flows, request, call.notes["pe"]) for request in inside)
                parts = 4 * 2 * -(-size // CHUNK)
                self.assertEqual(seen, {put: parts, "GET": parts, "AMO_FETCH": 4 * 2})

    def test_network_counters(self):
        self.skip_without_network()
        stats = os.path.join(self.folder.name, "stats.json")
        trace = self.trace("--stats-json", stats, "--hosts", 2, "-n", 2, "--network", "auto", BUSY, 20)
        with open(stats) as file:
            rows = json.load(file)["network"]
        for row in rows:
            sent = trace.counters[self.named(trace, f"host{row['host']} network bytes sent")]
            self.assertEqual(sent[-1][1], row["put_bytes"] + row["message_bytes"])
            self.assertEqual(sent, sorted(sent))
        self.assertFalse([track for track in trace.tracks.values() if " -> " in track["name"]])

    def take_dma(self, trace, chain):
        """The chain without its DMA slices, which are returned as (host, name)."""
        dma = [part for part in chain if part.category == "DMA"]
        self.assertTrue(all(trace.name(part.track) == "lane 0 DMA" for part in dma), dma)
        hosts = [int(trace.name(trace.tracks[part.track]["parent_uuid"]).removeprefix("proxy host")) for part in dma]
        return [part for part in chain if part not in dma], list(zip(hosts, (part.name for part in dma)))

    def test_dma(self):
        """Every payload that does not fit beside its header goes by DMA on each hop, and the hop's slice starts with
        it."""
        hosts, rounds, size, deed = 6, 4, 40000, ("send", "relay")
        trace = self.trace("--dma-bytes", 1, "--hosts", hosts, "-n", hosts, KNOWN, rounds, size)
        seen = collections.Counter()
        for chain in trace.flows().values():
            rest, dma = self.take_dma(trace, chain)
            hops = [part for part in rest if part.category in deed and part.name.split()[1] in ("PUT", "DATA") and
                    part.notes["bytes"] > 1024]
            hosts_of = [int(trace.name(part.track).removeprefix("lane 0 host")) for part in hops]
            self.assertEqual(dma, [(host, "DMA " + part.name.split()[1]) for host, part in zip(hosts_of, hops)])
            moved = [part for part in chain if part.category == "DMA"]
            for hop, part in zip(hops, moved):
                self.assertTrue(hop.begin <= part.begin <= hop.end, (hop, part))
                self.assertEqual(part.notes["bytes"], hop.notes["bytes"])
            for part, after in zip(moved, hops[1:]):  # the next host receives the frame once all of it has arrived
                self.assertLessEqual(part.begin, after.begin)
            seen.update(name for _, name in dma)
        # Two chunks each. Puts to neighbours are direct up to a size; data to all five, over 1, 2, 3, 2 and 1 hops.
        self.assertEqual(seen["DMA DATA"], rounds * 2 * 9)
        self.assertGreaterEqual(seen["DMA PUT"], rounds * 2 * 7)

    def check_papers_way(self, trace, chain, kind, answer, way, way_back):
        self.check_way(trace, chain[:len(way)], way, kind)
        self.check_way(trace, chain[len(way):], way_back, answer)

    def test_arrows_of_the_papers_protocol(self):
        """From the request through each hop to where it is executed, and on with the response: all to the right, except
        the requests of gets, which travel against their data."""
        hosts, rounds, size = 4, 3, 40000
        trace = self.trace("--protocol", "scratchpad", "--hosts", hosts, "-n", hosts, KNOWN, rounds, size)
        ways = collections.Counter()
        for chain in trace.flows().values():
            rest, dma = self.take_dma(trace, chain)
            kind = rest[0].name.removeprefix("request ")
            if not rest[0].name.startswith("request ") or trace.name(rest[0].track) != "PE 0 host0":
                continue  # of the barrier, from other PEs
            to = rest[0].notes["pe"]
            right, left = list(range(to + 1)), [0, *range(hosts - 1, to - 1, -1)]
            back = [*range(to, hosts), 0]
            if kind == "PUT":
                self.check_papers_way(trace, rest[1:], "PUT", "ACK", right, back)
                self.assertEqual(dma, [(host, "DMA PUT") for host in right[:-1]] if rest[0].notes["bytes"] > 1024 else [])
            elif kind == "GET":
                self.check_papers_way(trace, rest[1:], "GET", "DATA", left, left[::-1])
                self.assertEqual(dma, [(host, "DMA DATA") for host in back[:-1]])
            elif kind == "AMO_FETCH":
                self.check_papers_way(trace, rest[1:], "AMO_FETCH", "VALUE", right, back)
            else:
                continue
            ways[kind, to] += 1
        for to in range(1, hosts):
            self.assertGreaterEqual(ways["PUT", to], rounds * 2)
            self.assertEqual((ways["GET", to], ways["AMO_FETCH", to]), (rounds * 2, rounds))

    def test_scratchpad_protocol(self):
        trace = self.trace("--protocol", "scratchpad", "--hosts", 4, "-n", 4, KNOWN, 3, 40000)
        deeds = collections.Counter((trace.name(part.track), part.name) for part in trace.slices)
        # All to the right: to PE 2 through host 1, to PE 3 through hosts 1 and 2, in two chunks each.
        self.assertEqual(deeds["lane 0 host0", "send PUT"], 3 * 3 * 2)
        self.assertEqual(deeds["lane 0 host1", "relay PUT"], 3 * 2 * 2)
        self.assertEqual(deeds["lane 0 host2", "relay PUT"], 3 * 2)
        for host in (1, 2, 3):
            self.assertEqual(deeds[f"lane 0 host{host}", "deliver PUT"], 3 * 2)

    def test_link_that_fails(self):
        result = self.run_job("--trace", self.path, "--hosts", 3, "-n", 3, "--link-limit", "20s", "--fault",
                              "links random every 20ms for 10ms seed 7", BUSY, 1000)
        self.assertEqual(result.status, 0, result)
        trace = perfetto.Trace(self.path)
        seen = collections.Counter(part.name for part in trace.slices if part.category == "link")
        self.assertTrue(seen["link to the right down"] and seen["link to the left up"], seen)


CLOCK_AHEAD_S = 100000
RSH = f"""#!/bin/sh
name=$1; shift
[ "$name" = ahead ] && exec unshare --time --monotonic {CLOCK_AHEAD_S} --fork --kill-child "$@"
exec "$@"
"""


class Machines(Tracing):
    def setUp(self):
        super().setUp()
        self.rsh = os.path.join(self.folder.name, "rsh")
        with open(self.rsh, "w", encoding="utf-8") as file:
            file.write(RSH)
        os.chmod(self.rsh, 0o755)

    def on(self, hosts):
        return ("--trace", self.path, "--host", hosts, "--rsh", self.rsh, "--network", "tcp")

    def errors(self, trace, hosts):
        """How far the clock of each host may be off, in ns, as the trace says it."""
        found = {trace.name(part.track): part.notes["error_ns"] for part in trace.slices if part.name == "clock compared"}
        self.assertEqual(sorted(found), [f"proxy host{host}" for host in range(1, hosts)])
        return [0] + [found[f"proxy host{host}"] for host in range(1, hosts)]

    def agents(self):
        found = []
        for pid in self.pids_of("quoit-job"):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found += [pid] * (b"--agent" in file.read())
        return found

    def host_of(self, trace, part):
        return int(re.search(r"host(\d+)", trace.name(part.track))[1])

    def check_times(self, trace, hosts, span_ns):
        """All is of one clock: a frame arrives after it was sent, and a barrier ends after all have come to it."""
        errors = self.errors(trace, hosts)
        begin, end = min(part.begin for part in trace.slices), max(part.end for part in trace.slices)
        self.assertLess(end - begin, span_ns + 2 * max(errors))
        hops = 0
        for chain in trace.flows().values():
            sent = {(self.host_of(trace, part), part.name.split()[1]): part for part in chain if part.category == "send"}
            for part in chain:
                if part.category == "deliver":
                    (source, _), start = next(item for item in sent.items()
                                              if item[0][1] == part.name.split()[1] and item[0][0] != self.host_of(trace, part))
                    self.assertGreaterEqual(part.end + errors[source] + errors[self.host_of(trace, part)], start.begin)
                    hops += 1
        self.assertGreater(hops, 0)
        calls = [part for part in trace.slices if part.name == "shmem_barrier_all"]
        for name in {trace.name(part.track) for part in calls}:
            self.assertEqual(len([part for part in calls if trace.name(part.track) == name]), 2)
        for which in (0, 1):  # the first and the second of each PE
            both = [[part for part in calls if part.track == track][which] for track in {part.track for part in calls}]
            for left in both:
                for came in both:
                    self.assertGreaterEqual(left.end + errors[self.host_of(trace, left)] + errors[self.host_of(trace, came)],
                                            came.begin)

    def check_calls(self, trace, pes, rounds, size):
        """The calls of known.c, and each request with its whole chain over the network."""
        mine, seen = [part for part in trace.slices if part.track == self.named(trace, "PE 0 host0")], 0
        flows, hosts = trace.flows(), {pe: int(re.search(r"host(\d+)", track["name"])[1]) for track in trace.tracks.values()
                                       if "process" in track for pe in re.findall(r"^PE (\d+) ", track["name"])}
        for name, kind, answer, extent in (("shmem_putmem", "PUT", "ACK", size), ("shmem_getmem", "GET", None, size),
                                           ("shmem_long_atomic_fetch_add", "AMO_FETCH", "VALUE", 8)):
            found = [part for part in mine if part.category == "call" and part.name == name]
            self.assertEqual([call.notes for call in found],
                             [{"pe": pe, "bytes": extent} for _ in range(rounds) for pe in range(1, pes)])
            for call in found:
                inside = [part for part in mine if part.parent == (call.begin, call.name) and part.flows]
                to = hosts[str(call.notes["pe"])]
                if inside or to == 0: # else by an endpoint of the PE itself, which has no lane
                    self.assertEqual([part.name for part in inside], [f"request {kind}"] * (to != 0))
                seen += bool(inside)
                for part in inside:
                    names = {(trace.name(each.track), each.name) for each in flows[part.flows[0]]} - {
                        (f"lane 0 host{to}", "send ACK"), ("lane 0 host0", "deliver ACK")}
                    expected = {("PE 0 host0", part.name)}
                    if kind == "GET":
                        expected |= {("lane 0 network", "network GET")}
                    else:
                        expected |= {("lane 0 host0", f"send {kind}"), (f"lane 0 host{to}", f"deliver {kind}")}
                    if kind == "AMO_FETCH":
                        expected |= {(f"lane 0 host{to}", f"send {answer}"), ("lane 0 host0", f"deliver {answer}")}
                    self.assertEqual(names, expected)
        self.assertGreater(seen, rounds)

    def test_calls_and_hops(self):
        """Also through agents that other agents start."""
        for hosts, options in (("a:2,b", ()), ("a,b,c,d:2", ("--fan-out", 1))):
            with self.subTest(hosts=hosts):
                pes, count, start = (3, 2, time.monotonic_ns()) if not options else (5, 4, time.monotonic_ns())
                result = self.run_job(*self.on(hosts), *options, "-n", pes, KNOWN, 5, 3000)
                span_ns = time.monotonic_ns() - start
                self.assertEqual(result.status, 0, result)
                self.assertRegex(result.err, rf"^oshrun: the clocks of {count} machines agree in the trace to \d+\.\d us\n$")
                trace = perfetto.Trace(self.path)
                self.assertEqual(trace.open, [])
                self.check_calls(trace, pes, 5, 3000)
                self.check_times(trace, count, span_ns)
                ids = [track[kind].get("tid", track[kind]["pid"]) for track in trace.tracks.values()
                       for kind in ("process", "thread") if kind in track]
                self.assertEqual({number for number in set(ids) if ids.count(number) > 2}, set())

    def test_clocks_that_differ(self):
        """Of the second machine by a day; of the first one, whose clock is that of the trace."""
        if subprocess.run(["unshare", "--time", "--monotonic", "5", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no time namespace may be made here")
        for hosts, is_first in (("a,ahead", False), ("ahead,b", True)):
            with self.subTest(hosts=hosts):
                start = time.monotonic_ns()
                result = self.run_job(*self.on(hosts), "-n", 2, KNOWN, 20, 3000)
                end = time.monotonic_ns()
                self.assertEqual(result.status, 0, result)
                trace = perfetto.Trace(self.path)
                self.check_calls(trace, 2, 20, 3000)
                self.check_times(trace, 2, end - start)
                ahead_ns = CLOCK_AHEAD_S * 10**9 * is_first
                self.assertTrue(start + ahead_ns <= trace.clocks[perfetto.MONOTONIC] <= end + ahead_ns)
                slack_ns = max(self.errors(trace, 2))
                self.assertTrue(all(start + ahead_ns - slack_ns <= part.begin <= part.end <= end + ahead_ns + slack_ns
                                    for part in trace.slices))

    def test_rings_that_are_full(self):
        result = self.run_job(*self.on("a,b,c"), "--trace-buffer", "8K", "-n", 3, BUSY, 200)
        self.assertEqual(result.status, 0, result)
        trace = perfetto.Trace(self.path)
        lost = sum(part.notes["count"] for part in trace.slices if part.name == "events lost")
        self.assertGreater(lost, 0)
        self.assertRegex(result.err, rf"(?m)^oshrun: the trace lacks {lost} of \d+ events; ")

    def test_jobs_that_end_badly(self):
        """A PE is killed: the events of all machines are there; an agent is: those of the others."""
        for kind in ("scenario_busy", "agent"):
            with self.subTest(kind=kind):
                job = self.start(*self.on("a,b"), "-n", 2, BUSY)
                self.assertEqual(job.stdout.readline(), b"begun\n")
                time.sleep(0.1)
                victims = self.pids_of("scenario_busy") if kind != "agent" else self.agents()
                os.kill(victims[-1], signal.SIGKILL)
                _, err = job.communicate(timeout=scenario.LIMIT_S)
                self.assert_nothing_left()
                trace = perfetto.Trace(self.path)
                found = {trace.name(part.track) for part in trace.slices if part.category == "call"}
                if kind == "agent":
                    self.assertEqual(len(found), 1, found)
                    self.assertRegex(err.decode(), "(?m)^oshrun: the trace has no events of ")
                else:
                    self.assertEqual(found, {"PE 0 host0", "PE 1 host1"})
                self.assertTrue([part for part in trace.slices if part.name == "shmem_putmem"])


class Virtual(Tracing):
    """In virtual time a trace is a function of the program and the model."""
    MODEL = ("--virtual", "papers-2022")

    def content(self, *arguments):
        """What the job takes, and the bytes of its trace."""
        result = self.run_job("--trace", self.path, *self.MODEL, *arguments)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.err, r"^oshrun: \d+\.\d{3} us of virtual time, [^\n]*\n$")
        with open(self.path, "rb") as file:
            return result.err, file.read()

    def test_two_runs_are_equal(self):
        shapes = (("-n", 3, KNOWN, 5, 3000), ("--hosts", 3, "-n", 6, KNOWN, 3, 40000), ("--hosts", 2, "-n", 2, BUSY, 20),
                  ("--hosts", 5, "--lanes", 1, "-n", 5, KNOWN, 2, 8), ("-n", 2, "--trace-buffer", "16M", BUSY, 500))
        for shape in shapes:
            with self.subTest(shape=shape):
                first = self.content(*shape)
                again = self.content(*shape)
                self.assertEqual(again[0], first[0])
                self.assertTrue(again[1] == first[1], f"of {len(first[1])} and {len(again[1])} bytes "
                                f"{len(os.path.commonprefix([first[1], again[1]]))} are equal")
                without = self.run_job(*self.MODEL, *shape)
                self.assertEqual(without.err, first[0], "the trace took virtual time")

    def test_calls_and_times(self):
        """Every call, within the time that the job took, from shmem_init on."""
        hosts, rounds, size = 4, 3, 40000
        took, _ = self.content("--hosts", hosts, "-n", hosts, "--lanes", 1, KNOWN, rounds, size)
        micro, nano = map(int, re.findall(r"\d+", took)[:2])
        trace = perfetto.Trace(self.path)
        self.assertEqual(trace.open, [])
        self.assertEqual(list(trace.clocks), [perfetto.MONOTONIC])
        self.assertTrue(all(0 <= part.begin <= part.end <= micro * 1000 + nano for part in trace.slices))
        mine = [part for part in trace.slices if part.track == self.named(trace, "PE 0 host0")]
        for name, extent in (("shmem_putmem", size), ("shmem_getmem", size), ("shmem_long_atomic_fetch_add", 8)):
            self.assertEqual([part.notes for part in mine if part.name == name],
                             [{"pe": pe, "bytes": extent} for _ in range(rounds) for pe in range(1, hosts)])
        for chain in trace.flows().values():
            deeds = [part.name.split()[0] for part in chain]
            self.assertIn(deeds[-1], ("deliver", "landed"), chain)
        for uuid, track in trace.tracks.items():
            if "counter" in track:
                self.assertTrue(all(0 <= value <= 2 * SLOTS for _, value in trace.counters[uuid]), track)


class Lost(Tracing):
    def test_what_is_lost_is_counted(self):
        result = self.run_job("--trace", self.path, "--trace-buffer", "8K", "--hosts", 3, "-n", 3, BUSY, 2000)
        self.assertEqual(result.status, 0, result)
        trace = perfetto.Trace(self.path)
        lost = sum(part.notes["count"] for part in trace.slices if part.name == "events lost")
        self.assertGreater(lost, 0)
        self.assertRegex(result.err, f"^oshrun: the trace lacks {lost} of \\d+ events; ")

    def test_wrong(self):
        result = self.run_job("--trace", "/nowhere/x", "-n", 2, BUSY, 1)
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertIn("/nowhere/x", result.err)


class Killed(Tracing):
    def has_puts(self):
        """Enough that some have ended."""
        with open(self.path, "rb") as file:
            return file.read().count(b"shmem_putmem") > 20

    def test_any_process(self):
        print(f"seed {SEED}; replay: SCENARIO_SEED={SEED}", flush=True)
        rng = random.Random(SEED)
        for round_number in range(6):
            kind = ("scenario_busy", "quoit-proxy", "oshrun")[round_number % 3]
            with self.subTest(seed=SEED, round=round_number, kind=kind):
                job = self.start("--trace", self.path, "--hosts", 3, "-n", 3, BUSY)
                self.assertEqual(job.stdout.readline(), b"begun\n")
                self.wait_for(self.has_puts, "puts in the trace")
                time.sleep(rng.random() * 0.2)
                victims = self.pids_of(kind)
                os.kill(rng.choice(victims), signal.SIGKILL)
                job.communicate(timeout=scenario.LIMIT_S)
                self.assert_nothing_left()
                trace = perfetto.Trace(self.path, may_be_cut=kind == "oshrun")
                self.assertTrue([part for part in trace.slices if part.name == "shmem_putmem"])
                # Calls during which a PE was killed are still open, and no others; a truncated file may end inside any
                # of them.
                self.assertTrue(kind == "oshrun" or all(trace.name(part.track).startswith("PE ") for part in trace.open),
                                trace.open)


class Threads(Tracing):
    def test_threads(self):
        result = self.run_job("--trace", self.path, "--hosts", 2, "-n", 2, THREADS, "--seconds", 1)
        self.assertEqual(result.status, 0, result)
        trace = perfetto.Trace(self.path)
        threads = {track["thread"]["tid"] for track in trace.tracks.values()
                   if track["name"].startswith("PE 0 host0") and "thread" in track}
        self.assertGreater(len(threads), 2)
        if "lacks" not in result.err:  # on a busy machine the end of a call may be lost
            self.assertEqual(trace.open, [])


if __name__ == "__main__":
    scenario.main()
